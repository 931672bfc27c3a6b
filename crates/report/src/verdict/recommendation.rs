//! The recommendation of `kvdyno choose`: the engines that no other was shown to be faster than in any phase, or at a rate those
//! that keep its limits and have the lowest response times.

use super::kept::{Rejected, rejected};
use super::words::{ahead, names, short};
use super::{Statement, Verdict, verdicts};
use crate::describe::cell_name;
use crate::escape::CommandLine;
use crate::figure::{known, time};
use kvdyno_core::results::statistics::FEWEST_FOR_ORDER;
use kvdyno_core::results::summary::{Cell, RunState, Summary};
use kvdyno_core::results::{Run, Trial};
use kvdyno_load::search::{LimitError, Limits};
use kvdyno_measure::text::{listed, plain_text};
use std::path::Path;

/// The maximum number of engines whose figures a line has.
const SHOWN: usize = 3;

/// An engine takes less CPU time if another takes this many times as much.
const LESS: f64 = 1.05;

/// What is said of engines whose requests were sent too late.
const SENDER: &str = "a late sender is the fault of this machine, and says nothing about the engine: measure on a quiet machine, with fewer threads than CPUs";

/// What requests arrive at, and what an engine must keep then.
struct Asked {
    /// `poisson:20k`.
    rate: String,
    /// None: nothing.
    limits: Option<Limits>,
}

impl Asked {
    /// That of a run; none: its phases are closed loops.
    ///
    /// # Errors
    ///
    /// If this version does not know the limits.
    fn of(run: &Run) -> Result<Option<Asked>, LimitError> {
        let asked = run.choice.as_ref().and_then(|choice| Some((choice.rate.clone()?, &choice.limits)));
        let Some((rate, limits)) = asked else { return Ok(None) };
        Ok(Some(Asked { rate, limits: limits.as_ref().map(|limits| limits.parse()).transpose()? }))
    }

    /// `poisson:20k requests/s with p99<1ms`.
    fn words(&self) -> String {
        let limits = self.limits.as_ref().map_or_else(String::new, |limits| format!(" with {limits}"));
        format!("{} requests/s{limits}", self.rate)
    }
}

/// A line for each effective level with the engines that may be the fastest in each of its phases, then a line for each phase.
/// Phases that only load are not included. At a rate, engines that do not keep it or its limits are not recommended, and follow
/// with the reason.
pub fn recommendation(summary: &Summary, run: &Run) -> Vec<String> {
    let asked = match Asked::of(run) {
        Ok(Some(asked)) => asked,
        Ok(None) => return lines(summary, None),
        Err(error) => return vec![plain_text(&format!("no recommendation: the limits of the run: {error}"))],
    };
    let rejected = rejected(summary, asked.limits.as_ref());
    let has_phases = summary.phases.iter().filter(|phase| !phase.settings.is_fill()).count() > 1;
    let mut found = if rejected.is_empty() {
        lines(summary, Some(&asked))
    } else {
        let is_kept = |trial: &Trial| {
            let is_it =
                |one: &Rejected| (&one.cell.engine, &one.cell.options) == (&trial.engine, &trial.options);
            !rejected.iter().any(is_it)
        };
        let mut left = run.clone();
        left.plan.trials.retain(is_kept);
        // Ranks and ratios are those of the engines that are left.
        let of_left = Summary::new(&left, summary.records.clone());
        let is_any = verdicts(&of_left).iter().any(|verdict| !verdict.phase.settings.is_fill());
        match is_any {
            true => lines(&of_left, Some(&asked)),
            false => none_keeps(run, &asked, &rejected, has_phases),
        }
    };
    if !rejected.is_empty() {
        found.push(plain_text(&format!("not recommended at {}:", asked.words())));
        found.extend(rejected.iter().map(|one| plain_text(&format!("- {}", one.line(has_phases)))));
        if rejected.iter().any(|one| one.is_of_sender) {
            found.push(SENDER.to_string());
        }
    }
    found
}

/// What is said if no engine keeps the limits: how to find the rates at which they do.
fn none_keeps(run: &Run, asked: &Asked, rejected: &[Rejected], has_phases: bool) -> Vec<String> {
    let what = match &asked.limits {
        Some(limits) => format!("{limits} at {} requests/s", asked.rate),
        None => format!("{} requests/s", asked.rate),
    };
    let mut lines = vec![plain_text(&format!("no recommendation: no engine was shown to keep {what}"))];
    let file = run.plan.command.iter().find(|word| word.ends_with(".toml"));
    if let (Some(file), Some(limits)) = (file, &asked.limits) {
        let engines: Vec<&str> = rejected.iter().map(|one| one.cell.engine.as_str()).collect();
        let setting = |one: &Rejected| {
            let of = |(name, value): &(String, String)| format!("{}.{name}={value}", one.cell.engine);
            one.cell.options.iter().map(of).collect::<Vec<_>>()
        };
        // Most engines fail first in the same phase.
        let phase = rejected.first().filter(|_| has_phases).map(|one| one.phase.name.clone());
        let command = CommandLine::of("slo")
            .with_path(Path::new(file))
            .with_flags("--phase", phase)
            .with_flags("--slo", [limits.to_string()])
            .with_flags("--engines", [engines.join(",")])
            .with_flags("--option", rejected.iter().flat_map(setting));
        lines.push(plain_text(&format!("the highest rate of each that does: {command}")));
    }
    lines
}

/// The lines of levels and phases.
fn lines(summary: &Summary, asked: Option<&Asked>) -> Vec<String> {
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
        let at = asked.map_or_else(String::new, |asked| format!(", {}", asked.words()));
        lines.push(plain_text(&format!("at level {level}{at}: {}", choice(&own, summary, asked))));
        let of_phase = |verdict: &&Verdict| match asked {
            Some(_) => at_rate(verdict),
            None => short(verdict, true),
        };
        lines.extend(
            own.iter().map(|verdict| plain_text(&format!("- {}: {}", verdict.question, of_phase(verdict)))),
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

/// What a phase at a rate shows, with the response p99 and the CPU time per op of the first engines.
fn at_rate(verdict: &Verdict) -> String {
    let shown = match &verdict.statement {
        Statement::Winner(lead) => format!("{}{}", cell_name(verdict.leaders[0]), ahead(lead)),
        _ => short(verdict, true),
    };
    let figures = |cell: &Cell| {
        let p99 = cell.arrived.as_ref().and_then(|arrived| arrived.response.p99_ns);
        format!("{} {}, {}", cell_name(cell), known(p99, time), known(cell.cpu_seconds_per_million_ops, cpu))
    };
    let ranked = verdict.group.cells.iter().filter(|cell| cell.rank.is_some());
    let all: Vec<String> = ranked.take(SHOWN).map(figures).collect();
    if all.is_empty() { shown } else { format!("{shown}; response p99, CPU per op: {}", all.join("; ")) }
}

/// CPU time per op, of seconds per million ops.
fn cpu(seconds: f64) -> String {
    time((seconds * 1e3).round() as u64)
}

/// Of these engines the one that takes less CPU time per op than each of the others in all runs of all phases, by a margin that
/// matters.
fn thrifty(names: &[String], own: &[&Verdict]) -> Option<String> {
    let runs = |cell: &Cell| {
        let known: Vec<f64> = cell.runs.iter().filter_map(|run| run.cpu_seconds_per_million_ops).collect();
        (known.len() >= FEWEST_FOR_ORDER).then_some(known)
    };
    let of = |name: &String, verdict: &Verdict| {
        let cell = verdict.leaders.iter().find(|cell| cell_name(cell) == *name)?;
        let known = runs(cell)?;
        Some((known.iter().copied().fold(f64::INFINITY, f64::min), known.into_iter().fold(0.0, f64::max)))
    };
    let takes_less = |one: &String, other: &String| {
        own.iter().all(|verdict| match (of(one, verdict), of(other, verdict)) {
            (Some((_, most)), Some((least, _))) => most * LESS < least,
            _ => false,
        })
    };
    let is_first = |one: &&String| names.iter().all(|other| other == *one || takes_less(one, other));
    names.iter().find(is_first).cloned()
}

/// The engine after the recommended ones: the first of the other ranked engines in the first phase.
fn runner_up(recommended: &[String], own: &[&Verdict]) -> String {
    let cells = own.first().map_or(&[][..], |verdict| &verdict.group.cells[..]);
    let others = cells.iter().filter(|cell| cell.rank.is_some()).map(cell_name);
    let next = others.into_iter().find(|name| !recommended.contains(name));
    next.map_or_else(String::new, |name| format!("; the runner-up is {name}"))
}

/// What the phases of one level show together.
fn choice(own: &[&Verdict], summary: &Summary, asked: Option<&Asked>) -> String {
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
    let next = runner_up(&everywhere, own);
    let least_cpu = thrifty(&everywhere, own).map(|name| with_options(&name, summary));
    everywhere.iter_mut().for_each(|name| *name = with_options(name, summary));
    let is_alone = own.iter().all(|verdict| verdict.statement == Statement::Only);
    let recommended = match everywhere.as_slice() {
        [] if asked.is_some() => {
            "no engine has the lowest response p99 in every phase; choose by the phase that matters most"
                .to_string()
        }
        [] => {
            "no engine is among the fastest in every phase; choose by the phase that matters most".to_string()
        }
        [one] if is_alone && asked.is_some_and(|asked| asked.limits.is_some()) => {
            format!("{one}, the only engine that was shown to keep the limits")
        }
        [one] if is_alone => format!("{one}, the only engine that fits and completed its runs"),
        [one] if asked.is_some() => {
            let is_first = own.iter().all(|verdict| matches!(verdict.statement, Statement::Winner(_)));
            let what = if is_first { "with" } else { "among those with" };
            let place = if own.len() > 1 { " in every phase" } else { "" };
            format!("{one}, {what} the lowest response p99{place}{next}")
        }
        several @ [_, _, ..] if asked.is_some() => {
            let cpu = least_cpu
                .map_or_else(String::new, |name| format!("; {name} takes the least CPU in all runs"));
            let all = listed(several, "or");
            format!("{all}: the runs do not show that the response p99 of any of them is higher{cpu}{next}")
        }
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
