//! The report for people who choose an engine: one self-contained file with charts.
//!
//! A content security policy allows only the style sheet and the script, by their hashes. Without the script all contents
//! are readable, and the switches between scales work.

mod engines;
mod heatmap;
mod page;
mod rates;

pub(super) use heatmap::{shade, shades};
pub use rates::{RatePage, rate_page};

use super::chart::{RULES, Scene, Theme, colours};
use super::markup::html;
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::Summary;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const SORT: &str = include_str!("sort.js");

/// Renders the report.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let scene = Scene::new(summary, run);
    let title = format!("kvdyno, {}", summary.run_id);
    document(&title, "", SCRIPT, &|text| page::body(&scene, text))
}

/// A page with this title. `body` adds everything before the script. `rules` are added to the style sheet.
pub(super) fn document(
    title: &str,
    rules: &'static str,
    script: &'static str,
    body: &dyn Fn(&mut String),
) -> String {
    // The style sheet and the scripts are constant and contain no data of a run.
    let style = style() + rules;
    let script = format!("\n{SORT}{script}");
    let policy = html!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(&style),
        hash(&script)
    );
    let head = html!(
        "<head>\n<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta name=\"generator\" content=\"kvdyno {}\"/>\n<title>{}</title>\n",
        policy,
        env!("CARGO_PKG_VERSION"),
        title
    );
    let mut text =
        format!("<!DOCTYPE html>\n<html lang=\"en\">\n{}<style>{style}</style>\n</head>\n", head.as_str());
    body(&mut text);
    text += &format!("<script>{script}</script>\n</body>\n</html>\n");
    text
}

/// The style sheet: the light and dark palettes, then the rules of charts and of the page.
fn style() -> String {
    let variables = |theme: Theme| -> String {
        colours(theme).iter().map(|(name, colour)| format!("--{name}: {colour}; ")).collect()
    };
    let (light, dark) = (variables(Theme::Light), variables(Theme::Dark));
    format!(
        "\n:root {{ {light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n{RULES}{STYLE}"
    )
}

/// The hash for a content security policy: SHA-256 in base64.
fn hash(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(text.as_bytes());
    let mut out = String::new();
    for bytes in digest.chunks(3) {
        let bits =
            (0..3).fold(0_u32, |bits, place| bits << 8 | u32::from(bytes.get(place).copied().unwrap_or(0)));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            out.push(if place <= bytes.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
pub(super) mod tests;
