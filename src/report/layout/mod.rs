//! Layouts: what a run has found, as an older tool would have printed it, from records alone.

pub(super) mod cells;
mod histogram;
mod ladder;
mod metrics;
mod ranks;
mod rounds;
mod seconds;
mod sizes;
mod wide;

use crate::results::summary::Summary;

/// A layout of reports.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What people type.
    pub name: &'static str,
    /// What a run must have for it.
    pub needs: &'static str,
    /// Makes its pages; none if the run has nothing for it.
    pub render: fn(&Summary, Runs) -> Vec<Page>,
    /// The names of its columns as CSV.
    columns: &'static [&'static str],
    /// Its rows as CSV, cells ready to be written; what is not known is empty.
    rows: fn(&Summary) -> Vec<Vec<String>>,
}

/// What a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// All runs of a cell: their histograms merged, else their median.
    Together,
    /// One run, in a folder for it.
    Each,
}

/// A piece of a layout that stands by itself; printed one below the other, or a file each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The folder that its file belongs in, if any; a plain name.
    pub folder: Option<String>,
    /// The name of its file.
    pub file: String,
    /// Printable ASCII; it ends with a newline.
    pub text: String,
}

/// The layouts, in the order that people see.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "histogram",
        needs: "a phase that was run to its end",
        render: histogram::pages,
        columns: histogram::COLUMNS,
        rows: histogram::rows,
    },
    Layout {
        name: "sizes",
        needs: "a phase that was run to its end, best at several sizes (`--keys 1M,5M,10M`) or in rounds",
        render: sizes::pages,
        columns: sizes::COLUMNS,
        rows: sizes::csv_rows,
    },
    Layout {
        name: "wide",
        needs: "the phases of workload kvbench: batch-write, and any of prefix, set, get, mixed and delete",
        render: wide::pages,
        columns: wide::COLUMNS,
        rows: wide::rows,
    },
    Layout {
        name: "ranks",
        needs: "the phases of workload kvbench, and 5 runs or more (`--runs 5`), for fewer show no order",
        render: ranks::pages,
        columns: ranks::COLUMNS,
        rows: ranks::rows,
    },
    Layout {
        name: "seconds",
        needs: "a phase that was run to its end and has rows per second",
        render: seconds::pages,
        columns: seconds::COLUMNS,
        rows: seconds::rows,
    },
    Layout {
        name: "rounds",
        needs: "a workload with rounds or with scans alone in a phase, such as toku-insert or toku-scan",
        render: rounds::pages,
        columns: rounds::COLUMNS,
        rows: rounds::rows,
    },
];

/// The layout of that name; none if there is none.
pub fn layout(name: &str) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.name == name)
}

impl Layout {
    /// For a terminal: all pages, one below the other; none if the run has nothing for it.
    pub fn text(&self, summary: &Summary) -> Option<String> {
        let pages: Vec<String> =
            (self.render)(summary, Runs::Together).into_iter().map(|page| page.text).collect();
        (!pages.is_empty()).then(|| pages.join("\n"))
    }

    /// As CSV, the head first; none if the run has nothing for it.
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

    /// As files, a page of its own for each run; no two have the same name.
    pub fn files(&self, summary: &Summary) -> Vec<Page> {
        let mut pages: Vec<Page> = Vec::new();
        for mut page in (self.render)(summary, Runs::Each) {
            let (stem, ending) = page.file.rsplit_once('.').unwrap_or((&page.file, "txt"));
            let (stem, ending) = (stem.to_string(), ending.to_string());
            let mut number = 2;
            while pages.iter().any(|other| (&other.folder, &other.file) == (&page.folder, &page.file)) {
                page.file = format!("{stem}-{number}.{ending}");
                number += 1;
            }
            pages.push(page);
        }
        pages
    }
}

#[cfg(test)]
mod tests;
