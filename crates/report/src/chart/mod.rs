//! Charts of a run as SVG, for the page and for files: their data and their drawing.

mod axis;
mod bars;
mod commits;
mod data_to_memory;
mod history;
mod labels;
mod latency;
mod lines;
mod palette;
mod pareto;
mod rates;
mod resources;
mod scale;
mod scaling;
mod scatter;
mod scene;
mod series;
mod sizes;
mod throughput;
mod tradeoff;

pub(super) use commits::{Commits, Dot, Mark, commits};
pub(super) use data_to_memory::data_to_memory;
pub(super) use history::{Past, history};
pub(super) use latency::latency;
pub(super) use palette::{RULES, Theme, colours, plain_rules};
pub(super) use rates::rate_chart;
pub use rates::{RateCurve, rate_curves};
pub(super) use resources::resources;
pub(super) use scaling::scaling;
pub(super) use scatter::FRONT;
pub(super) use scene::Scene;
pub(super) use series::series;
pub(super) use sizes::sizes;
pub(super) use throughput::throughput;
pub(super) use tradeoff::{
    BARS, amplification, latency_and_rate, memory_and_rate, reads_and_writes, tradeoffs,
};

use super::block::Chart;
use super::markup::{Html, html};

/// The width of every chart in units: the width of a phone. A unit is a pixel if there is enough room.
pub(super) const WIDTH: f64 = 384.0;

/// The kinds of scale that a chart is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scales {
    /// Both, one of them hidden, for a page with a switch.
    Both,
    /// The chart's default.
    Own,
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

impl Scales {
    /// The kinds to draw: their classes, and whether they are logarithmic. `own_is_log`: the chart's default is logarithmic.
    /// `has_switch`: on a page, its readers can switch between both.
    fn kinds(self, own_is_log: bool, has_switch: bool) -> Vec<(&'static str, bool)> {
        let (linear, log) = (("lin", false), ("log", true));
        match self {
            Scales::Both if has_switch => vec![linear, log],
            Scales::Both | Scales::Own if own_is_log => vec![log],
            Scales::Both | Scales::Own | Scales::Linear => vec![linear],
            Scales::Log => vec![log],
        }
    }
}

impl Chart {
    /// The chart for a page, with its title and a switch of scales that works without a script.
    pub(crate) fn figure(&self, id: usize) -> Html {
        let checked = if self.is_log { Html::constant(" checked=\"checked\"") } else { Html::default() };
        let x = match self.x.is_empty() {
            true => Html::default(),
            false => html!(" data-x=\"{}\"", self.x),
        };
        let about = match self.about.is_empty() {
            true => Html::default(),
            false => html!("<p class=\"about\">{}</p>", self.about),
        };
        let switch = match self.has_switch {
            true => html!(
                "<input type=\"checkbox\" class=\"scale\" id=\"s{}\"{}/><label for=\"s{}\">log scale</label>",
                id,
                checked,
                id
            ),
            false => Html::default(),
        };
        let class = if self.has_switch { Html::default() } else { Html::constant(" class=\"wide\"") };
        html!(
            "<figure><figcaption{}>{}</figcaption>{}{}{}</figure>\n",
            class,
            self.title,
            switch,
            html!(
                "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{}>{}</svg>",
                WIDTH,
                self.height,
                self.title,
                x,
                self.content
            ),
            about
        )
    }
}

/// The width of a text at 12 units in DejaVu Sans, the widest of the usual fonts.
fn text_width(text: &str) -> f64 {
    let thousandths = |letter: char| match letter {
        'm' | 'M' | 'W' | '@' | '%' => 980.0,
        'w' | '=' | '+' | '<' | '>' | '~' | 'O' | 'Q' => 838.0,
        'i' | 'j' | 'l' | '\'' | 'I' => 290.0,
        'A'..='Z' => 720.0,
        'f' | 'r' | 't' | '-' | '.' | ',' | ' ' | '(' | ')' | ':' | ';' | '/' => 410.0,
        _ => 636.0,
    };
    text.chars().map(thousandths).sum::<f64>() * 12.0 / 1_000.0
}
