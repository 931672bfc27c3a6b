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
pub use escape::plain_text;
pub use layout::{LAYOUTS, Layout, Page, layout};
pub use plot::{OVERVIEW, PLOTS, Plot, PlotChoice, plot};
pub use site::Site;
pub use text::troubles;

use crate::results::Run;
use crate::results::summary::Summary;

/// A format of reports.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// What people type.
    pub name: &'static str,
    /// Makes the report; it ends with a newline.
    pub render: fn(&Summary, &Run) -> String,
}

/// The formats, in the order that people see.
pub const FORMATS: &[Format] = &[
    Format { name: "text", render: text::render },
    Format { name: "markdown", render: markdown::render },
    Format { name: "html", render: html::render },
    Format { name: "csv", render: csv::render },
    Format { name: "csv-long", render: csv_long::render },
    Format { name: "hgrm", render: hdr::percentiles },
    Format { name: "hlog", render: hdr::log },
    Format { name: "gobench", render: gobench::render },
    Format { name: "json", render: json::render },
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
