//! Which engines keep the limits of a choice at its rate, and why the others do not.

use super::verdicts;
use crate::describe::cell_name;
use crate::figure::time;
use kvdyno_core::results::summary::{Arrived, Cell, PhaseSummary, Summary};
use kvdyno_core::results::{PhaseRecord, Unfit, observation};
use kvdyno_load::search::{Limit, Limits, Metric, Unsustained, Verdict};
use kvdyno_measure::Histogram;
use kvdyno_measure::text::{grouped, share_text};
use std::borrow::Cow;

/// How sure it must be that an engine keeps a limit, 0 to 1: that of [`Limit::needed`].
const CONFIDENCE: f64 = 0.99;

/// An engine that is not recommended at a rate.
pub(super) struct Rejected<'a> {
    /// The engine.
    pub cell: &'a Cell,
    /// The phase that shows it.
    pub phase: &'a PhaseSummary,
    /// Why, in words.
    pub reason: String,
    /// Whether it is a fault of the load generator, so that nothing is known about the engine.
    pub is_of_sender: bool,
}

impl Rejected<'_> {
    /// `lmdb: response p99 2.30ms, over 1ms`, with the phase if there are several.
    pub(super) fn line(&self, has_phases: bool) -> String {
        let place = if has_phases { format!("{}: ", self.phase.name) } else { String::new() };
        format!("{}: {place}{}", cell_name(self.cell), self.reason)
    }
}

/// The engines that do not keep the rate or the limits in a measured phase, each with the first reason.
pub(super) fn rejected<'a>(summary: &'a Summary, limits: Option<&Limits>) -> Vec<Rejected<'a>> {
    let mut found: Vec<Rejected> = Vec::new();
    for verdict in verdicts(summary).into_iter().filter(|verdict| !verdict.phase.settings.is_fill()) {
        for cell in &verdict.group.cells {
            let is_known = found
                .iter()
                .any(|one| (&one.cell.engine, &one.cell.options) == (&cell.engine, &cell.options));
            if let (false, Some((reason, is_of_sender))) =
                (is_known, reason(cell, verdict.phase, limits, summary))
            {
                found.push(Rejected { cell, phase: verdict.phase, reason, is_of_sender });
            }
        }
    }
    found
}

/// Why an engine does not keep the limits in a phase, and whether that is the fault of the load generator; none: it keeps them.
fn reason(
    cell: &Cell,
    phase: &PhaseSummary,
    limits: Option<&Limits>,
    summary: &Summary,
) -> Option<(String, bool)> {
    let counted = cell.runs.iter().filter(|run| run.state.counts());
    let records =
        counted.filter_map(|run| summary.records.iter().find(|record| record.trial.id == run.trial));
    let runs: Vec<Cow<PhaseRecord>> = records.filter_map(|record| record.whole_phase(&phase.name)).collect();
    let runs: Vec<&PhaseRecord> = runs.iter().map(AsRef::as_ref).collect();
    let Some(arrived) = &cell.arrived else {
        return Some(("its requests did not arrive at the rate".to_string(), false));
    };
    let unfit = |run: &&PhaseRecord| run.arrivals.as_ref()?.unfit(&run.times(|kind| &kind.response_ns));
    if let Some(unfit) = runs.iter().find_map(unfit) {
        return Some((unfit.to_string(), !matches!(unfit, Unfit::NotSustained(_))));
    }
    limits.and_then(|limits| not_kept(arrived, &runs, limits)).map(|reason| (reason, false))
}

/// Why these runs do not keep the limits; none: they do.
fn not_kept(arrived: &Arrived, runs: &[&PhaseRecord], limits: &Limits) -> Option<String> {
    let seen = observation(runs, limits);
    let judgement = seen.judge(limits, CONFIDENCE);
    if judgement.verdict == Verdict::Kept {
        return None;
    }
    match judgement.unsustained {
        Some(Unsustained::NotAchieved) => {
            return Some("not sustained: it answers too few requests".to_string());
        }
        Some(_) => return Some("not sustained: its backlog grows".to_string()),
        None => {}
    }
    let mut response = Histogram::empty();
    runs.iter().for_each(|run| response.merge(&run.times(|kind| &kind.response_ns)));
    let each = || limits.list().iter().enumerate().zip(&judgement.verdicts);
    if let Some(((_, limit), _)) = each().find(|(_, verdict)| **verdict == Verdict::Broken) {
        return Some(broken(limit, arrived, &response, seen.backlog));
    }
    let Some(((place, limit), _)) = each().find(|(_, verdict)| **verdict == Verdict::Unclear) else {
        return Some("it answered no request at the end of a run".to_string());
    };
    let requests = seen.requests();
    if requests < limit.needed() {
        let (needed, requests) = (grouped(limit.needed()), grouped(requests));
        return Some(format!("{limit} needs {needed} requests, and {requests} were sent"));
    }
    let over: u64 = seen.windows.iter().filter_map(|window| window.over.get(place)).sum();
    let share = share_text(over as f64 / requests.max(1) as f64);
    Some(format!("{limit} is not certain: {share} of {} requests took longer", grouped(requests)))
}

/// `response p99 2.30ms, over 1ms`: of the tables, or of all runs together if a few runs break the limit.
fn broken(limit: &Limit, arrived: &Arrived, response: &Histogram, backlog: u64) -> String {
    let (metric, bound) = (limit.metric(), limit.bound_text());
    let shown = match metric {
        Metric::Backlog => {
            return format!("{} requests waited at the end of a run, which is not {limit}", grouped(backlog));
        }
        Metric::Errors => return format!("more than {bound} of its requests were dropped"),
        Metric::P50 => arrived.response.p50_ns,
        Metric::P99 => arrived.response.p99_ns,
        Metric::P999 => arrived.response.p999_ns,
        Metric::Max => response.max_ns(),
        _ => None,
    };
    let is_over = |ns: &u64| limit.longest_ns().is_some_and(|longest| *ns > longest);
    let together = || {
        let (part, of) = metric.percentile()?;
        Some(format!(" of all runs together {}", time(response.quantile(part, of)?)))
    };
    let value = shown.filter(is_over).map(|ns| format!(" {}", time(ns))).or_else(together);
    format!("response {metric}{}, over {bound}", value.unwrap_or_default())
}
