//! Reports, generated from results alone: one file per format, all from the same summary.

#![warn(unreachable_pub)]

mod arrivals;
mod block;
mod certificate;
mod chart;
mod choice;
mod compare;
mod content;
mod cost;
mod csv;
mod csv_faults;
mod csv_long;
mod data_to_memory;
mod describe;
mod escape;
mod figure;
mod gobench;
mod grid;
mod hdr;
mod history;
mod html;
mod json;
mod layout;
mod limits;
mod load_generators;
mod markdown;
mod markup;
mod matrix;
mod member_faults;
mod next;
mod overview;
mod plot;
mod price;
mod ranking;
mod safety;
mod scaling;
mod settled;
mod site;
mod staleness;
mod stalls;
mod steady;
mod text;
mod trackers;
mod verdict;

pub use certificate::{SYNC_COLUMNS, certificate_markdown, certificates_text, sync_cells};
pub use chart::{RateCurve, rate_curves};
pub use compare::{comparison_markdown, comparison_text};
pub use escape::{CommandLine, csv_cell, markdown_text, shell_word};
pub use history::{
    History, HistoryCell, HistoryEntry, HistoryFile, OddCell, Shift, history_csv, history_page, history_text,
    otava_config, otava_csv, repeated,
};
pub use html::{RatePage, rate_page};
pub use layout::{LAYOUTS, Layout, Page, layout};
pub use markdown::table as markdown_table;
pub use overview::overview;
pub use plot::{OVERVIEW, PLOTS, Plot, PlotChoice, plot};
pub use site::Site;
pub use text::{Screen, prices, troubles};
pub use verdict::recommendation;

use kvdyno_core::results::Run;
use kvdyno_core::results::summary::Summary;

/// A format of reports.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// Renders the report; the text ends with a newline.
    pub render: fn(&Summary, &Run) -> String,
    /// The files of a report, for formats that write one per cell or trial; `None` for formats that write a single text.
    pub pages: Option<fn(&Summary) -> Vec<Page>>,
    /// Whether each page needs a file of its own, so that several pages cannot be printed one after the other.
    pub is_one_page: bool,
    /// Whether it shows what a million ops cost.
    pub has_prices: bool,
}

/// The formats, in the order in which they are listed.
pub const FORMATS: &[Format] = &[
    priced("text", "Tables and verdicts for a terminal.", text::render),
    priced("markdown", "The text report as Markdown, for a page or a comment.", markdown::render),
    priced("html", "A self-contained page with charts.", html::render),
    priced("csv", "A row for each engine, phase and run, with exact figures.", csv::render),
    printed("csv-long", "A row for each figure, with exact values.", csv_long::render),
    printed("csv-faults", "A row for each fault of a member, with what it did.", csv_faults::render),
    Format {
        pages: Some(hdr::percentile_pages),
        is_one_page: true,
        ..printed(
            "hgrm",
            "HdrHistogram percentile files; with --out, one file per engine and phase.",
            hdr::percentiles,
        )
    },
    Format {
        pages: Some(hdr::log_pages),
        ..printed(
            "hlog",
            "HdrHistogram interval logs, one line per second; with --out, one file per trial.",
            hdr::log,
        )
    },
    printed("gobench", "A line for each run in the format of Go benchmarks, for benchstat.", gobench::render),
    printed("bencher", "The medians in Bencher's metric format.", trackers::bencher),
    printed(
        "github-bigger",
        "Those of which more is better, for github-action-benchmark.",
        trackers::github_bigger,
    ),
    printed(
        "github-smaller",
        "Those of which less is better, for github-action-benchmark.",
        trackers::github_smaller,
    ),
    priced("json", "The run, its summary and all records as JSON.", json::render),
];

/// A format that is a single text.
const fn printed(name: &'static str, about: &'static str, render: fn(&Summary, &Run) -> String) -> Format {
    Format { name, about, render, pages: None, is_one_page: false, has_prices: false }
}

/// A format that is a single text and shows what a million ops cost.
const fn priced(name: &'static str, about: &'static str, render: fn(&Summary, &Run) -> String) -> Format {
    Format { has_prices: true, ..printed(name, about, render) }
}

/// The format with this name, if there is one.
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
