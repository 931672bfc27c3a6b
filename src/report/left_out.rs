//! Runs whose figures do not count, and why. Formats that hold only figures print them as comments.

use super::describe::{cell_name, phase_name};
use crate::results::summary::{RunState, Summary};
use crate::text::plain_text;

/// One line of plain text for each such run.
pub(super) fn left_out(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for phase in &summary.phases {
        for cell in super::ranking::cells(phase).chain(&phase.floors) {
            for run in cell.runs.iter().filter(|run| !run.state.counts()) {
                let why = match &run.state {
                    RunState::Failed { cause } => cause.as_str(),
                    RunState::NotRun { reason } => reason.as_str(),
                    _ => "no record",
                };
                let place = format!("{}, {}, run {}", phase_name(phase), cell_name(cell), run.repetition);
                lines.push(plain_text(&format!("{place}: {why}")));
            }
        }
    }
    lines
}
