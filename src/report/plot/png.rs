//! SVG to PNG, with the fonts of this machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels per unit, for high-density screens and for print.
const SCALE: f32 = 2.0;
/// Preferred fonts: the layout of the charts is made for their widths.
const FONTS: [&str; 5] = ["DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica"];

/// The picture. Fails if no font is installed, because a picture without text is useless.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let names: Vec<String> =
        fonts.faces().flat_map(|face| face.families.iter().map(|(name, _)| name.clone())).collect();
    let known = FONTS.iter().find(|font| names.iter().any(|name| name == *font)).map(ToString::to_string);
    let Some(font) = known.or_else(|| names.first().cloned()) else {
        return Err("no font is installed, so a PNG would have no text\n\
             hint: run apt-get install fonts-dejavu-core, or write an SVG file"
            .to_string());
    };
    fonts.set_sans_serif_family(font);
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot draw the PNG: {error}\nhint: write an SVG file");
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or_else(|| failed(&"it is too large"))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}
