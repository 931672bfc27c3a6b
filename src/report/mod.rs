//! Reports, generated from results alone: one file per format, all from the same summary.

mod chart;
mod compare;
mod content;
mod csv;
mod csv_long;
mod describe;
mod escape;
mod figure;
mod gobench;
mod hdr;
mod html;
mod json;
mod layout;
mod left_out;
mod limits;
mod markdown;
mod markup;
mod next;
mod plot;
mod ranking;
mod site;
mod text;
mod verdict;

pub use compare::{comparison_markdown, comparison_text};
pub use escape::{csv_cell, markdown_text};
pub use layout::{LAYOUTS, Layout, Page, Runs, layout};
pub use next::next_steps;
pub use plot::{OVERVIEW, PLOTS, Plot, PlotChoice, plot};
pub use site::Site;
pub use text::troubles;
pub use verdict::verdict;

use crate::results::Run;
use crate::results::summary::Summary;

/// A format of reports.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The extension of file names, without the dot.
    pub extension: &'static str,
    /// Renders the report; the text ends with a newline.
    pub render: fn(&Summary, &Run) -> String,
}

/// The formats, in the order in which they are listed.
pub const FORMATS: &[Format] = &[
    Format {
        name: "text",
        about: "Tables and verdicts for a terminal.",
        extension: "txt",
        render: text::render,
    },
    Format {
        name: "markdown",
        about: "The text report as Markdown, for a page or a comment.",
        extension: "md",
        render: markdown::render,
    },
    Format {
        name: "html",
        about: "A self-contained page with charts.",
        extension: "html",
        render: html::render,
    },
    Format {
        name: "csv",
        about: "A row for each engine, phase and run, with exact figures.",
        extension: "csv",
        render: csv::render,
    },
    Format {
        name: "csv-long",
        about: "A row for each figure, with exact values.",
        extension: "csv",
        render: csv_long::render,
    },
    Format {
        name: "hgrm",
        about: "HdrHistogram percentile files; with --out, one file per engine and phase.",
        extension: "hgrm",
        render: hdr::percentiles,
    },
    Format {
        name: "hlog",
        about: "HdrHistogram interval logs, one line per second; with --out, one file per trial.",
        extension: "hlog",
        render: hdr::log,
    },
    Format {
        name: "gobench",
        about: "A line for each run in the format of Go benchmarks, for benchstat.",
        extension: "txt",
        render: gobench::render,
    },
    Format {
        name: "json",
        about: "The run, its summary and all records as JSON.",
        extension: "json",
        render: json::render,
    },
];

impl Format {
    /// The files of a report, for formats that write one per cell or trial; `None` for formats that write a single text.
    pub fn pages(&self, summary: &Summary) -> Option<Vec<Page>> {
        match self.name {
            "hgrm" => Some(hdr::percentile_pages(summary)),
            "hlog" => Some(hdr::log_pages(summary)),
            _ => None,
        }
    }

    /// Whether the format writes several files.
    pub fn has_pages(&self) -> bool {
        ["hgrm", "hlog"].contains(&self.name)
    }

    /// Whether each page needs a file of its own, so that several pages cannot be printed one after the other.
    pub fn is_one_page(&self) -> bool {
        self.name == "hgrm"
    }
}

/// The format with this name, if there is one.
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
