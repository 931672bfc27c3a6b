//! The report for programs: the run, its summary, the verdicts, and all records with their histograms.

use super::verdict::verdict;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Record, Run};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    run: &'a Run,
    summary: &'a Summary,
    verdicts: Vec<String>,
    records: &'a [Record],
}

/// Renders the report as one line.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    let document = Document {
        schema: summary.schema,
        run,
        summary,
        verdicts: verdict(summary),
        records: &summary.records,
    };
    serde_json::to_string(&document).expect("a report has only texts, numbers and lists, which JSON can hold")
        + "\n"
}
