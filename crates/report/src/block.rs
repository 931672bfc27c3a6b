//! The parts that reports are made of. Text, Markdown and the page each draw them in one `match`.

use super::grid::Grid;
use super::markup::Html;
use kvdyno_measure::text::Table;

/// A block of a report. Its texts are plain: printable ASCII, one line.
pub(super) enum Block {
    /// The report's title.
    Title(String),
    /// A part of the report.
    Part(String),
    /// A section of a part.
    Section(String),
    /// Names and their values.
    Facts(Vec<(&'static str, String)>),
    /// A table.
    Table(Table),
    /// The engines of a workload by its phases, which the overview and a page have.
    Matrix(Box<Grid>),
    /// Sentences, one per line.
    Lines(Vec<String>),
    /// Commands, each with its purpose.
    Commands(Vec<(String, String)>),
    /// Charts, which only a page has.
    Charts(Charts),
}

/// Charts next to each other.
pub(super) struct Charts {
    /// If they are a part of the report: its id.
    pub id: Option<&'static str>,
    /// Their title, if they need one.
    pub title: Option<&'static str>,
    /// The charts; without any, there is no title either.
    pub charts: Vec<Chart>,
}

/// A chart with its texts.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// The title: `ops/s, level process`.
    pub title: String,
    /// A sentence on how to read the chart; empty if the title is enough.
    pub about: String,
    /// The height in units.
    pub height: f64,
    /// The inside of the picture.
    pub content: Html,
    /// The x values of all lines; empty if each line has its own, and for bars.
    pub x: String,
    /// Whether the scale is logarithmic at first.
    pub is_log: bool,
    /// Whether a page shows a switch of scales.
    pub has_switch: bool,
}
