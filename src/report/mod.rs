//! Text made from results and from nothing else: one file per format, all from the same summary.

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
mod table;
mod text;
mod verdict;

pub use compare::{comparison_markdown, comparison_text};
pub use escape::{csv_cell, markdown_text, plain_text};
pub use layout::{LAYOUTS, Layout, Page, Runs, layout};
pub use next::next_steps;
pub use plot::{OVERVIEW, PLOTS, Plot, PlotChoice, plot};
pub use site::Site;
pub use table::{Align, Column, Table};
pub use text::troubles;
pub use verdict::verdict;

use crate::results::Run;
use crate::results::summary::Summary;

/// A format of reports.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What people type.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// The ending of file names, without the dot.
    pub extension: &'static str,
    /// Makes the report; it ends with a newline.
    pub render: fn(&Summary, &Run) -> String,
}

/// The formats, in the order that people see.
pub const FORMATS: &[Format] = &[
    Format {
        name: "text",
        about: "Tables and verdicts for a terminal.",
        extension: "txt",
        render: text::render,
    },
    Format {
        name: "markdown",
        about: "The same for a page or a comment.",
        extension: "md",
        render: markdown::render,
    },
    Format {
        name: "html",
        about: "One page with charts that needs nothing from outside.",
        extension: "html",
        render: html::render,
    },
    Format {
        name: "csv",
        about: "A row per engine, phase and run, exact.",
        extension: "csv",
        render: csv::render,
    },
    Format {
        name: "csv-long",
        about: "A row per figure, exact.",
        extension: "csv",
        render: csv_long::render,
    },
    Format {
        name: "hgrm",
        about: "Percentile files of HdrHistogram; with --out a file per engine and phase.",
        extension: "hgrm",
        render: hdr::percentiles,
    },
    Format {
        name: "hlog",
        about: "Interval logs of HdrHistogram, a line per second; with --out a file per trial.",
        extension: "hlog",
        render: hdr::log,
    },
    Format {
        name: "gobench",
        about: "A line per run as Go's benchmarks print it, for benchstat.",
        extension: "txt",
        render: gobench::render,
    },
    Format {
        name: "json",
        about: "The run, its summary and all records.",
        extension: "json",
        render: json::render,
    },
];

impl Format {
    /// Its files, for formats that have one for each cell or trial; none for the others, which are one text.
    pub fn pages(&self, summary: &Summary) -> Option<Vec<Page>> {
        match self.name {
            "hgrm" => Some(hdr::percentile_pages(summary)),
            "hlog" => Some(hdr::log_pages(summary)),
            _ => None,
        }
    }

    /// Whether it has files.
    pub fn has_pages(&self) -> bool {
        ["hgrm", "hlog"].contains(&self.name)
    }

    /// Whether a file can hold one of its pages only, so that several cannot be printed one below the other.
    pub fn is_one_page(&self) -> bool {
        self.name == "hgrm"
    }
}

/// The format of that name; none if there is none.
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
