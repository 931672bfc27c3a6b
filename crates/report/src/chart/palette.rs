//! Colours, dashes and markers: one palette for all charts, light and dark, which does not rely on colour alone.

use crate::markup::{Html, html};

/// Colours of the lines, light and dark: those of Okabe and Ito, which colour-blind people can distinguish, darkened or
/// lightened until the contrast with the background is at least 3 to 1.
pub(crate) const LINES: [(&str, &str); 7] = [
    ("#0072b2", "#56b4e9"),
    ("#b45000", "#e69f00"),
    ("#007a5a", "#2cc295"),
    ("#a8427e", "#d98cbc"),
    ("#5b4bb5", "#a79bf0"),
    ("#6f6200", "#d9c740"),
    ("#444444", "#c8c8c8"),
];

/// Dashes of the lines, classes `d0` (solid) to `d3`.
pub(crate) const DASHES: usize = 4;

/// The other colours: name, light, dark.
const OTHERS: [(&str, &str, &str); 9] = [
    ("paper", "#ffffff", "#15181c"),
    ("panel", "#f6f7f9", "#1d2126"),
    ("ink", "#1b1f24", "#e4e7eb"),
    ("soft", "#57606a", "#a3acb6"),
    ("grid", "#d8dee4", "#343b43"),
    ("first", "#0072b2", "#56b4e9"),
    ("other", "#6c889b", "#5f7482"),
    ("whisker", "#1b1f24", "#e4e7eb"),
    ("stall", "#c62f00", "#ff8a5c"),
];

/// Shades of one colour from far below the best (0) to the best, with the colour of a text on them: shade and text, light
/// and dark.
pub(crate) const SHADES: [[(&str, &str); 2]; 7] = [
    [("#f5f9fd", "#1b1f24"), ("#19222c", "#e4e7eb")],
    [("#e3eef9", "#1b1f24"), ("#1c3044", "#e4e7eb")],
    [("#c9def2", "#1b1f24"), ("#1f405d", "#e4e7eb")],
    [("#a4c8e8", "#1b1f24"), ("#255479", "#ffffff")],
    [("#76abd9", "#10151b"), ("#2d6c9c", "#ffffff")],
    [("#2a6cab", "#ffffff"), ("#5fa8e0", "#10151b")],
    [("#0b4a86", "#ffffff"), ("#93cdff", "#10151b")],
];

/// The light or the dark palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Dark on white.
    Light,
    /// Light on black.
    Dark,
}

/// The style of an engine's line, which depends on the engine's position in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// An index into [`LINES`].
    pub colour: usize,
    /// The dash, less than [`DASHES`].
    pub dash: usize,
    /// The shape of the markers, see [`marker`].
    pub shape: usize,
}

impl Style {
    /// The style of the engine at this position: each cycle through the colours uses another dash.
    pub(super) fn of(place: usize) -> Style {
        Style {
            colour: place % LINES.len(),
            dash: place / LINES.len() % DASHES,
            // Seven colours and six shapes: engines with the same colour have different shapes.
            shape: place % 6,
        }
    }
}

/// The names and values of all colours, for the variables of a style sheet.
pub(crate) fn colours(theme: Theme) -> Vec<(String, &'static str)> {
    let pick = |light: &'static str, dark: &'static str| if theme == Theme::Light { light } else { dark };
    let lines =
        LINES.iter().enumerate().map(|(place, (light, dark))| (format!("c{place}"), pick(light, dark)));
    let others = OTHERS.iter().map(|(name, light, dark)| (name.to_string(), pick(light, dark)));
    let shades = SHADES.iter().enumerate().flat_map(|(place, shades)| {
        let (shade, text) = shades[usize::from(theme == Theme::Dark)];
        [(format!("q{place}"), shade), (format!("t{place}"), text)]
    });
    lines.chain(others).chain(shades).collect()
}

/// A marker around a point.
pub(super) fn marker(style: Style, x: f64, y: f64) -> Html {
    let around = |offsets: &[(f64, f64)]| -> Html {
        let point = |(place, (dx, dy)): (usize, &(f64, f64))| {
            html!("{}{},{}", if place == 0 { "" } else { " " }, x + dx, y + dy)
        };
        offsets.iter().enumerate().map(point).collect()
    };
    let polygon = |offsets: &[(f64, f64)]| {
        html!("<polygon class=\"m f{}\" points=\"{}\"/>", style.colour, around(offsets))
    };
    match style.shape {
        0 => html!("<circle class=\"m f{}\" cx=\"{}\" cy=\"{}\" r=\"2.8\"/>", style.colour, x, y),
        1 => polygon(&[(-2.6, -2.6), (2.6, -2.6), (2.6, 2.6), (-2.6, 2.6)]),
        2 => polygon(&[(0.0, -3.4), (3.2, 2.4), (-3.2, 2.4)]),
        3 => polygon(&[(0.0, -3.6), (3.6, 0.0), (0.0, 3.6), (-3.6, 0.0)]),
        4 => polygon(&[(0.0, 3.4), (3.2, -2.4), (-3.2, -2.4)]),
        _ => html!("<circle class=\"m o s{}\" cx=\"{}\" cy=\"{}\" r=\"2.8\"/>", style.colour, x, y),
    }
}

/// The style rules of charts, with colours as variables.
pub(crate) const RULES: &str = include_str!("chart.css");

/// [`RULES`] with the variables replaced by colours, for a file of its own.
pub(crate) fn plain_rules(theme: Theme) -> String {
    let with =
        |rules: String, (name, colour): (String, &str)| rules.replace(&format!("var(--{name})"), colour);
    colours(theme).into_iter().fold(RULES.to_string(), with)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as defined by WCAG.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn lines_and_texts_stand_out_from_both_backgrounds() {
        for theme in [Theme::Light, Theme::Dark] {
            let colours = colours(theme);
            let of = |name: &str| colours.iter().find(|(known, _)| known == name).unwrap().1;
            for ground in [of("paper"), of("panel")] {
                for (name, colour) in &colours {
                    let wanted = match name.as_str() {
                        "ink" | "soft" => 4.5,
                        "paper" | "panel" | "grid" => 1.0,
                        // Texts on shades are compared with their shades.
                        name if name.starts_with(['q', 't']) => 1.0,
                        // Names next to lines have the line's colour.
                        name if name.starts_with('c') => 4.5,
                        _ => 3.0,
                    };
                    let found = contrast(colour, ground);
                    assert!(found >= wanted, "{theme:?}: {name} {colour} has {found:.2} on {ground}");
                }
            }
        }
    }

    #[test]
    fn texts_are_legible_on_all_shades_and_shades_differ_in_brightness() {
        for (place, is_brighter) in [(0, false), (1, true)] {
            let shades: Vec<(&str, &str)> = SHADES.iter().map(|shades| shades[place]).collect();
            for (shade, text) in &shades {
                let found = contrast(text, shade);
                assert!(found >= 4.5, "{text} has {found:.2} on {shade}");
            }
            for pair in shades.windows(2) {
                let (one, other) = (luminance(pair[0].0), luminance(pair[1].0));
                assert_eq!(other > one, is_brighter, "{pair:?}");
                assert!(contrast(pair[0].0, pair[1].0) > 1.1, "{pair:?} are too similar");
            }
        }
    }

    #[test]
    fn engines_of_one_colour_differ_in_dash_or_shape() {
        let styles: Vec<Style> = (0..28).map(Style::of).collect();
        for (place, style) in styles.iter().enumerate() {
            assert!(!styles[..place].contains(style), "{place}");
        }
        assert_ne!(Style::of(0).shape, Style::of(7).shape);
    }

    #[test]
    fn every_variable_has_a_colour() {
        assert!(!plain_rules(Theme::Light).contains("var("), "{}", plain_rules(Theme::Light));
        assert!(!RULES.contains(['<', '>', '"', '\'', '&']), "it is escaped like text");
    }
}
