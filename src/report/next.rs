//! What to do after a run: the two or three commands that would tell most.

use super::describe::command;
use super::escape::shell_word;
use super::figure::counted;
use crate::results::Run;
use crate::results::statistics::FEWEST_FOR_ORDER;
use crate::results::summary::{Summary, is_mutant};

/// The most commands that are shown.
const LIMIT: usize = 3;

/// Commands to try, each with what it is for; at most three, the most telling first.
pub fn next_steps(summary: &Summary, run: &Run) -> Vec<(String, String)> {
    let candidates = [
        go_on(summary, run),
        find_fault(summary),
        decide_tie(summary),
        more_runs(summary, run),
        absent(summary),
        export(),
    ];
    candidates.into_iter().flatten().take(LIMIT).collect()
}

fn go_on(summary: &Summary, run: &Run) -> Option<(String, String)> {
    let missing = counted(summary.pending.into(), "trial", "trials");
    let step = (format!("{} --resume", command(run)), format!("measure the {missing} without a record"));
    (summary.pending > 0).then_some(step)
}

fn find_fault(summary: &Summary) -> Option<(String, String)> {
    // A mutant is there to fail.
    let failure = summary.failures.iter().find(|failure| !is_mutant(&failure.engine))?;
    let engine = shell_word(&failure.engine);
    Some((
        format!("kvdyno verify {engine}"),
        format!("see what is wrong with {engine}, which failed in a trial"),
    ))
}

/// More runs of the engines that share the first place somewhere.
fn decide_tie(summary: &Summary) -> Option<(String, String)> {
    for phase in &summary.phases {
        for group in &phase.groups {
            let first = group.cells.iter().filter(|cell| cell.rank.is_some_and(|rank| rank.best == 1));
            let names: Vec<String> = first.map(|cell| shell_word(&cell.engine)).collect();
            if (2..=4).contains(&names.len()) {
                let workload = shell_word(&phase.workload);
                let command = format!("kvdyno run {workload} --engines {} --runs 10", names.join(","));
                return Some((command, "decide which of them is the fastest".to_string()));
            }
        }
    }
    None
}

fn more_runs(summary: &Summary, run: &Run) -> Option<(String, String)> {
    let few = (summary.runs as usize) < FEWEST_FOR_ORDER && !run.command.iter().any(|word| word == "--runs");
    let command = if run.command.len() < 2 { "kvdyno run quick".to_string() } else { command(run) };
    few.then(|| (format!("{command} --runs 5"), "get enough runs to name a winner".to_string()))
}

fn absent(summary: &Summary) -> Option<(String, String)> {
    let number = counted(summary.absent.len() as u64, "engine", "engines");
    (!summary.absent.is_empty())
        .then(|| ("kvdyno engines".to_string(), format!("see what the {number} absent here would need")))
}

fn export() -> Option<(String, String)> {
    Some(("kvdyno report --format csv".to_string(), "get every run's figures for a spreadsheet".to_string()))
}
