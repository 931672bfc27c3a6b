//! Text made from results and from nothing else: one file per format, all from the same summary.

mod content;
mod csv;
mod describe;
mod escape;
mod figure;
mod json;
mod layout;
mod limits;
mod markdown;
mod next;
mod ranking;
mod table;
mod text;
mod verdict;

pub use escape::{csv_cell, markdown_text, plain_text};
pub use layout::{LAYOUTS, Layout, Page, Runs, layout};
pub use next::next_steps;
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
        name: "csv",
        about: "A row per engine, phase and run, exact.",
        extension: "csv",
        render: csv::render,
    },
    Format {
        name: "json",
        about: "The run, its summary and all records.",
        extension: "json",
        render: json::render,
    },
];

/// The format of that name; none if there is none.
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
