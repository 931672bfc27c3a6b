//! The most important warnings, and what failed or was skipped, in a few lines.

use super::{ELSEWHERE, Prose};
use crate::describe::cell_name;
use crate::next::given;
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::{PhaseSummary, RunState, Summary, TrialWarning};
use kvdyno_measure::text::{counted, few, middle_text, plain_text};
use kvdyno_measure::warning::Concern;

/// The maximum number of warnings.
const WARNINGS: usize = 2;
/// The maximum number of lines on failed and skipped engines, and without details.
const LINES: usize = 4;
const FEWEST_LINES: usize = 2;
/// The maximum number of names in a list.
const NAMES: usize = 6;
/// A warning of fewer trials than this share is less important than those of the run and of more trials.
const FEW_TRIALS: f64 = 0.1;

/// The concerns by importance: what makes figures wrong, what makes them imprecise, and what limits their use. Within a class,
/// those of the run are first, then those of most trials.
const CLASSES: [&[Concern]; 3] = [
    &[
        Concern::DebugBuild,
        Concern::MemoryFileSystem,
        Concern::ClockStepsBack,
        Concern::UnaccountedTime,
        Concern::NotWhole,
        Concern::LeftProcesses,
        Concern::Printed,
        Concern::GuardPages,
        Concern::OddMachine,
    ],
    &[
        Concern::CpuQuota,
        Concern::LowMemory,
        Concern::MemoryLimit,
        Concern::LowDiskSpace,
        Concern::OtherWork,
        Concern::Steal,
        Concern::Load,
        Concern::CachesNotDropped,
        Concern::NotSteady,
        Concern::MachinesDiffer,
        Concern::Growth,
    ],
    &[
        Concern::Shrunk,
        Concern::SmallerGroups,
        Concern::HarnessShare,
        Concern::ShortSample,
        Concern::SlowClock,
        Concern::CostlyClock,
        Concern::VirtualMachine,
        Concern::Governor,
        Concern::Turbo,
        Concern::Swap,
        Concern::FewOpenFiles,
        Concern::CachesDiffer,
        Concern::ChecksReduced,
        Concern::SmallValues,
        Concern::HugePages,
    ],
];

/// The most important warnings, below a title that says how many are not shown. Without details, those that make no figure wrong are
/// counted.
pub(super) fn warnings(summary: &Summary, has_details: bool) -> (String, Vec<String>) {
    let place = |found: &TrialWarning| {
        let is_it = |concern: &Concern| concern.id() == found.warning.id;
        let class = CLASSES.iter().position(|class| class.iter().any(is_it)).unwrap_or(CLASSES.len());
        let few = f64::from(found.trials) < FEW_TRIALS * summary.records.len() as f64;
        let trials = if found.trials == 0 { u32::MAX } else { found.trials };
        (class > 0 && found.trials > 0 && few, class, std::cmp::Reverse(trials))
    };
    let mut found: Vec<&TrialWarning> = summary.warnings.iter().collect();
    found.sort_by_key(|found| place(found));
    let is_of_wrong = |found: &TrialWarning| CLASSES[0].iter().any(|own| own.id() == found.warning.id);
    let shown = found.iter().take(WARNINGS).filter(|found| has_details || is_of_wrong(found));
    // They are never shortened: half a sentence with figures misleads.
    let line = |found: &&TrialWarning| plain_text(&format!("{} {}", found.seen(NAMES), found.warning.advice));
    let mut lines: Vec<String> = shown.map(line).collect();
    let others = found.len() - lines.len();
    if !has_details && others > 0 {
        let which = if lines.is_empty() { "" } else { "other " };
        let (one, many) = (format!("{which}warning"), format!("{which}warnings"));
        lines.push(format!("{}: {ELSEWHERE}", counted(others as u64, &one, &many)));
        return ("Warnings".to_string(), lines);
    }
    let title = match found.len() {
        0..=WARNINGS => "Warnings".to_string(),
        all => format!("Warnings ({WARNINGS} of {all}, all with --full)"),
    };
    (title, lines)
}

/// What failed, is contradicted, did not run, is missing or is not available: a line for each reason, without details for the
/// first ones only. The marks in the matrix are there in any case.
pub(super) fn failures(summary: &Summary, run: &Run, prose: &Prose, has_details: bool) -> Vec<String> {
    let mut lines = contradicted(summary);
    lines.extend(failed(summary));
    lines.extend(not_run(summary));
    // The last lines are always shown.
    let mut last = Vec::new();
    if summary.pending > 0 {
        last.push(format!(
            "{} without a record",
            counted(summary.pending.into(), "planned trial is", "planned trials are")
        ));
    }
    if let [first, ..] = run.unverified.as_slice() {
        let plugins = given(run, "--plugins", "");
        last.push(format!(
            "not verified: {}; run `kvdyno prove --only rules {first}{plugins}`",
            few(&run.unverified, NAMES, "and")
        ));
    }
    if !summary.absent.is_empty() {
        let engines = counted(summary.absent.len() as u64, "engine is", "engines are");
        last.push(format!("{engines} not available: kvdyno engines"));
    }
    let most = if has_details { LINES } else { FEWEST_LINES };
    // A reason, and how many others there are.
    let room = most.saturating_sub(last.len()).max(2);
    let mut lines = prose.capped(lines, room, "other reason", "other reasons");
    lines.extend(last);
    lines.iter().map(|line| middle_text(line, prose.two_lines())).collect()
}

/// The engines whose durability level is contradicted: a line for each reason, whatever the phases that it is of.
fn contradicted(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for cell in summary.phases.iter().flat_map(PhaseSummary::cells) {
        let Some(reason) = cell.runs.iter().find_map(|run| run.contradiction()) else { continue };
        let engine = cell_name(cell);
        let level = cell.durability_effective.map_or(String::new(), |level| format!(" {level}"));
        let line = plain_text(&format!("{engine} is not ranked, its level{level} is contradicted: {reason}"));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Failed trials by their cause.
fn failed(summary: &Summary) -> Vec<String> {
    let mut causes: Vec<(&str, Vec<(&str, u32)>)> = Vec::new();
    for failure in summary.failures.iter().filter(|failure| !failure.is_unfit) {
        let engine = failure.label.as_str();
        let known = causes.iter().position(|(cause, _)| *cause == failure.cause);
        let place = known.unwrap_or_else(|| {
            causes.push((&failure.cause, Vec::new()));
            causes.len() - 1
        });
        match causes[place].1.iter_mut().find(|(name, _)| *name == engine) {
            Some((_, trials)) => *trials += 1,
            None => causes[place].1.push((engine, 1)),
        }
    }
    let line = |(cause, engines): (&str, Vec<(&str, u32)>)| {
        let named = |(engine, trials): &(&str, u32)| {
            format!("{engine} ({})", counted((*trials).into(), "trial", "trials"))
        };
        plain_text(&format!(
            "{} failed: {cause}",
            few(&engines.iter().map(named).collect::<Vec<_>>(), NAMES, "and")
        ))
    };
    causes.into_iter().map(line).collect()
}

/// Phases that were not run, by the reason: the engines with the same phases together.
fn not_run(summary: &Summary) -> Vec<String> {
    // The reason, the engine, and the phases.
    let mut found: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for phase in &summary.phases {
        for cell in phase.cells() {
            let reasons = cell.runs.iter().filter_map(|run| match &run.state {
                RunState::NotRun { reason } => Some(reason.as_str()),
                _ => None,
            });
            let Some(reason) = reasons.into_iter().next() else { continue };
            let engine = cell_name(cell);
            match found.iter_mut().find(|(why, name, _)| (*why, name) == (reason, &engine)) {
                Some((_, _, phases)) => phases.push(&phase.name),
                None => found.push((reason, engine, vec![&phase.name])),
            }
        }
    }
    let mut joined: Vec<(&str, Vec<&str>, Vec<String>)> = Vec::new();
    for (reason, engine, phases) in found {
        match joined.iter_mut().find(|(why, own, _)| (*why, own) == (reason, &phases)) {
            Some((_, _, engines)) => engines.push(engine),
            None => joined.push((reason, phases, vec![engine])),
        }
    }
    let line = |(reason, mut phases, engines): (&str, Vec<&str>, Vec<String>)| {
        phases.dedup();
        let phases: Vec<String> = phases.into_iter().map(String::from).collect();
        plain_text(&format!(
            "{} skipped {}: {reason}",
            few(&engines, NAMES, "and"),
            few(&phases, NAMES, "and")
        ))
    };
    joined.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_concern_has_a_place_in_the_order() {
        for concern in Concern::ALL {
            let places = CLASSES.iter().flat_map(|class| class.iter()).filter(|own| *own == concern);
            assert_eq!(places.count(), 1, "{}", concern.id());
        }
    }
}
