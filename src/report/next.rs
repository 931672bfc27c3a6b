//! The two or three most useful commands after a run.

use super::describe::command;
use super::escape::shell_word;
use crate::results::Run;
use crate::results::statistics::FEWEST_FOR_ORDER;
use crate::results::summary::{BY_ENGINE_TIME, Cell, Summary, is_mutant};
use crate::text::counted;

/// The maximum number of commands.
const LIMIT: usize = 3;

/// A flag of the run's command with its values, to be repeated; for `--option`, only the values of one engine.
fn given(run: &Run, flag: &str, engine: &str) -> String {
    let start = if engine.is_empty() { String::new() } else { format!("{engine}.") };
    let mut words = run.plan.command.iter();
    let mut out = String::new();
    while let Some(word) = words.next() {
        let value = match word.split_once('=') {
            Some((name, value)) if name == flag => Some(value),
            _ if word == flag => words.next().map(String::as_str),
            _ => None,
        };
        if let Some(value) = value.filter(|value| value.starts_with(&start)) {
            out += &format!(" {flag} {}", shell_word(value));
        }
    }
    out
}

/// Commands to try next, each with its purpose: at most three, the most useful first.
pub fn next_steps(summary: &Summary, run: &Run) -> Vec<(String, String)> {
    let candidates = [
        go_on(summary, run),
        find_fault(summary, run),
        decide(summary, run),
        more_runs(summary, run),
        absent(summary, run),
        export(),
    ];
    candidates.into_iter().flatten().take(LIMIT).collect()
}

fn go_on(summary: &Summary, run: &Run) -> Option<(String, String)> {
    let missing = counted(summary.pending.into(), "trial is left", "trials are left");
    let step = (format!("{} --resume", command(run)), format!("resume this run: {missing}"));
    (summary.pending > 0).then_some(step)
}

fn find_fault(summary: &Summary, run: &Run) -> Option<(String, String)> {
    // A mutant is made to fail.
    let failure = summary.failures.iter().find(|failure| !is_mutant(&failure.engine))?;
    let engine = shell_word(&failure.engine);
    Some((
        format!(
            "kvdyno verify {engine}{}{}",
            given(run, "--plugins", ""),
            given(run, "--option", &failure.engine)
        ),
        format!("check {engine}, which failed in a trial"),
    ))
}

/// More runs of engines that share the first place of a ranking, with the same settings. If the difference in ops/s is
/// due to the harness, more runs would not help.
fn decide(summary: &Summary, run: &Run) -> Option<(String, String)> {
    for phase in &summary.phases {
        for group in &phase.groups {
            let first: Vec<&Cell> =
                group.cells.iter().filter(|cell| cell.rank.is_some_and(|rank| rank.best == 1)).collect();
            let is_by_harness =
                first.iter().any(|cell| cell.notes.iter().any(|note| note.mark == BY_ENGINE_TIME));
            if (2..=4).contains(&first.len()) && !is_by_harness {
                let names: Vec<&str> = first.iter().map(|cell| cell.engine.as_str()).collect();
                let runs = (summary.runs * 2).max(10).to_string();
                let command = with_flags(run, &[("--engines", names.join(",")), ("--runs", runs)]);
                return Some((command, "find out which of these engines is the fastest".to_string()));
            }
        }
    }
    None
}

/// The run's command, with these flags replaced.
fn with_flags(run: &Run, flags: &[(&str, String)]) -> String {
    let mut kept: Vec<String> = Vec::new();
    let is_set = |word: &str| {
        let word = if word == "-e" { "--engines" } else { word };
        flags.iter().any(|(flag, _)| word == *flag)
    };
    let mut words = run.plan.command.iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((flag, _)) if is_set(flag) => {}
            _ if is_set(word) => _ = words.next(),
            _ => kept.push(shell_word(word)),
        }
    }
    if kept.len() < 2 {
        kept = ["kvdyno", "run", "quick"].map(String::from).to_vec();
    }
    kept.extend(flags.iter().flat_map(|(flag, value)| [flag.to_string(), shell_word(value)]));
    kept.join(" ")
}

fn more_runs(summary: &Summary, run: &Run) -> Option<(String, String)> {
    let few =
        (summary.runs as usize) < FEWEST_FOR_ORDER && !run.plan.command.iter().any(|word| word == "--runs");
    let command = if run.plan.command.len() < 2 { "kvdyno run quick".to_string() } else { command(run) };
    few.then(|| (format!("{command} --runs 5"), "get enough runs to name a winner".to_string()))
}

fn absent(summary: &Summary, run: &Run) -> Option<(String, String)> {
    let number = counted(summary.absent.len() as u64, "engine", "engines");
    (!summary.absent.is_empty()).then(|| {
        (
            format!("kvdyno engines{}", given(run, "--plugins", "")),
            format!("show how to install the {number} not available on this machine"),
        )
    })
}

fn export() -> Option<(String, String)> {
    Some((
        "kvdyno report --format csv".to_string(),
        "export the figures of every run for a spreadsheet".to_string(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn the_flags_that_find_an_engine_are_repeated() {
        let mut run = fixture::run();
        let words = "kvdyno run quick --plugins a --option one.x=1 --option=two.y=2 --plugins=b --runs 3";
        run.plan.command = words.split(' ').map(String::from).collect();
        assert_eq!(given(&run, "--plugins", ""), " --plugins a --plugins b");
        assert_eq!(given(&run, "--option", "two"), " --option two.y=2");
        assert_eq!(
            given(&run, "--option", "on"),
            "",
            "not the options of an engine whose name begins with it"
        );
    }
}
