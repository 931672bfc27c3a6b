//! The recommendation of `kvdyno choose`: the engines that no other was shown to be faster than in any phase.

use super::words::{names, short};
use super::{Statement, Verdict, verdicts};
use crate::describe::cell_name;
use kvdyno_core::results::summary::{Cell, RunState, Summary};
use kvdyno_measure::text::{listed, plain_text};

/// A line for each effective level with the engines that may be the fastest in each of its phases, then a line for each phase.
/// Phases that only load are not included.
pub fn recommendation(summary: &Summary) -> Vec<String> {
    let all = verdicts(summary);
    let compared: Vec<&Verdict> = all.iter().filter(|verdict| !verdict.phase.settings.is_fill()).collect();
    let mut levels: Vec<String> = Vec::new();
    for verdict in &compared {
        if !levels.contains(&verdict.group.name()) {
            levels.push(verdict.group.name());
        }
    }
    if levels.is_empty() {
        return vec!["no recommendation: nothing was measured".to_string()];
    }
    let mut lines = Vec::new();
    for level in levels {
        let own: Vec<&Verdict> =
            compared.iter().filter(|verdict| verdict.group.name() == level).copied().collect();
        lines.push(plain_text(&format!("at level {level}: {}", choice(&own, summary))));
        lines.extend(
            own.iter()
                .map(|verdict| plain_text(&format!("- {}: {}", verdict.question, short(verdict, true)))),
        );
    }
    lines
}

/// An engine with the options that its runs have set, as a reader must set them: `fjall (transactions=true)`.
fn with_options(name: &str, summary: &Summary) -> String {
    let trial = summary.records.iter().map(|record| &record.trial).find(|trial| trial.engine == name);
    match trial {
        Some(trial) if !trial.options.is_empty() => {
            let options: Vec<String> =
                trial.options.iter().map(|(option, value)| format!("{option}={value}")).collect();
            format!("{name} ({})", options.join(", "))
        }
        _ => name.to_string(),
    }
}

/// What the phases of one level show together.
fn choice(own: &[&Verdict], summary: &Summary) -> String {
    let is_open =
        |verdict: &&Verdict| matches!(verdict.statement, Statement::TooFewRuns(_) | Statement::NoneRanked);
    if own.iter().any(is_open) {
        return "no recommendation: some phases have too few runs that count".to_string();
    }
    let leads = |name: &String, verdict: &&Verdict| names(&verdict.leaders).contains(name);
    let mut everywhere = own.first().map_or_else(Vec::new, |verdict| names(&verdict.leaders));
    everywhere.retain(|name| own.iter().all(|verdict| leads(name, verdict)));
    // The figures of a run count if it failed after its phases, when the database was opened and read again.
    let failures: Vec<String> = everywhere.iter().filter_map(|name| failed(name, own)).collect();
    everywhere.retain(|name| failed(name, own).is_none());
    if everywhere.is_empty() && !failures.is_empty() {
        return format!("no recommendation: {}", listed(&failures, "and"));
    }
    let failures = match failures.as_slice() {
        [] => String::new(),
        failures => format!("; not recommended: {}", listed(failures, "and")),
    };
    everywhere.iter_mut().for_each(|name| *name = with_options(name, summary));
    let is_alone = own.iter().all(|verdict| verdict.statement == Statement::Only);
    let recommended = match everywhere.as_slice() {
        [] => {
            "no engine is among the fastest in every phase; choose by the phase that matters most".to_string()
        }
        [one] if is_alone => format!("{one}, the only engine that fits and completed its runs"),
        [one] => format!("{one}, among the fastest in every phase"),
        several => {
            format!("{}: the runs do not show that any of them is slower", listed(several, "or"))
        }
    };
    recommended + &failures
}

/// `rocksdb, which failed in 4 of 5 runs`; none: no run of the engine has failed after one of these phases.
fn failed(name: &str, own: &[&Verdict]) -> Option<String> {
    let cells = own.iter().flat_map(|verdict| &verdict.leaders).filter(|cell| cell_name(cell) == name);
    let failures = |cell: &Cell| {
        cell.runs.iter().filter(|run| matches!(run.state, RunState::FailedLater { .. })).count()
    };
    let (failures, runs) = cells.map(|cell| (failures(cell), cell.runs.len())).max()?;
    (failures > 0).then(|| format!("{name}, which failed in {failures} of {runs} runs"))
}
