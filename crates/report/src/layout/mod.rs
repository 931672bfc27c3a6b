//! Layouts: the results of a run in the formats of older tools, generated from records alone.

pub(super) mod cells;
mod histogram;
mod metrics;
mod ranks;
mod rounds;
mod seconds;
mod sizes;
mod wide;

use kvdyno_core::results::summary::Summary;

/// What the figures of a layout are by, in words.
const NET: &str = "without the harness's time";

/// A layout of reports.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line description, with the name of the older tool.
    pub about: &'static str,
    /// What a run must contain for this layout.
    pub needs: &'static str,
    /// Renders the pages; none if the run has no data for this layout.
    pub render: fn(&Summary, Runs) -> Vec<Page>,
    /// The column names as CSV.
    columns: &'static [&'static str],
    /// The rows as CSV, with escaped cells; unknown values are empty.
    rows: fn(&Summary) -> Vec<Vec<String>>,
}

/// The runs on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// All runs of a cell: merged histograms, or the median of other figures.
    Together,
    /// One run, in a folder of its own.
    Each,
}

/// A self-contained part of a layout. Pages are printed one after the other, or written to a file each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The folder of the file, if any; a plain name.
    pub folder: Option<String>,
    /// The file name.
    pub file: String,
    /// Printable ASCII that ends with a newline.
    pub text: String,
}

/// The layouts, in the order in which they are listed.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "histogram",
        about: "Latency histogram, percentiles and throughput of each engine and phase, as in mininb.",
        needs: "a completed phase",
        render: histogram::pages,
        columns: histogram::COLUMNS,
        rows: histogram::rows,
    },
    Layout {
        name: "sizes",
        about: "A table for each op, with a row for each database size and a column for each engine, as in NuDB's bench.",
        needs: "a completed phase, preferably at several sizes (`--keys 1M,5M,10M`) or in rounds",
        render: sizes::pages,
        columns: sizes::COLUMNS,
        rows: sizes::csv_rows,
    },
    Layout {
        name: "wide",
        about: "A row for each engine and a column for each metric, as in KVBench's README.",
        needs: "the phases of workload kvbench: batch-write, and any of prefix, set, get, mixed and delete",
        render: wide::pages,
        columns: wide::COLUMNS,
        rows: wide::rows,
    },
    Layout {
        name: "ranks",
        about: "A row for each rank and a column for each metric, with engines in the cells, as in KVBench's README.",
        needs: "the phases of workload kvbench, and at least 5 runs (`--runs 5`), because fewer show no order",
        render: ranks::pages,
        columns: ranks::COLUMNS,
        rows: ranks::rows,
    },
    Layout {
        name: "seconds",
        about: "A row for each second, averages, and latencies of reads and writes, as in KVDK's bench.",
        needs: "a completed phase with rows for each second",
        render: seconds::pages,
        columns: seconds::COLUMNS,
        rows: seconds::rows,
    },
    Layout {
        name: "rounds",
        about: "Rates of each round, shutdown, scans and memory, as in the ft-index examples.",
        needs: "a workload with rounds or with a phase of scans only, such as toku-insert or toku-scan",
        render: rounds::pages,
        columns: rounds::COLUMNS,
        rows: rounds::rows,
    },
];

/// The layout with this name, if there is one.
pub fn layout(name: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.name == name)
}

impl Layout {
    /// All pages for a terminal, one after the other; `None` if the run has no data for this layout.
    pub fn text(&self, summary: &Summary) -> Option<String> {
        let pages: Vec<String> =
            (self.render)(summary, Runs::Together).into_iter().map(|page| page.text).collect();
        (!pages.is_empty()).then(|| pages.join("\n"))
    }

    /// The layout as CSV with a header; `None` if the run has no data for it.
    pub fn csv(&self, summary: &Summary) -> Option<String> {
        let rows = (self.rows)(summary);
        if rows.is_empty() {
            return None;
        }
        let mut text = self.columns.join(",") + "\n";
        for row in rows {
            text += &(row.join(",") + "\n");
        }
        Some(text)
    }

    /// The layout as files with unique names, with a page for each run, each followed by the problems of the run.
    pub fn files(&self, summary: &Summary) -> Vec<Page> {
        let mut pages: Vec<Page> = Vec::new();
        let problems = crate::troubles(summary);
        for mut page in (self.render)(summary, Runs::Each) {
            let (stem, ending) = page.file.rsplit_once('.').unwrap_or((&page.file, "txt"));
            let (stem, ending) = (stem.to_string(), ending.to_string());
            let mut number = 2;
            while pages.iter().any(|other| (&other.folder, &other.file) == (&page.folder, &page.file)) {
                page.file = format!("{stem}-{number}.{ending}");
                number += 1;
            }
            page.text += &problems;
            pages.push(page);
        }
        pages
    }
}

#[cfg(test)]
mod tests;
