//! A race: the time of engines that can no longer be the fastest goes to those that still can.
//!
//! The first blocks are those of any run. Then the run looks at its own figures. In later blocks an engine is run up to the
//! last phase that it may still win; a phase is longer for those that may still win it, by the time that others no longer need, so
//! that a block takes no longer than planned. The number of looks is fixed in the plan, and every claim of the run allows for as
//! many looks, so its error holds whatever the figures are.
//!
//! A look changes the trials of the plan that are not measured yet, and is part of the plan. So a run that is resumed, and a
//! report years later, have the plan that was followed.

use super::label::full_name;
use super::summary::{Cell, Group, PhaseSummary, RunState, Summary, beaten_by};
use super::{Plan, Record, Run, Trial};
use crate::workload::{OpKind, Phase, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// The blocks before the first look.
pub const FIRST_LOOK: u32 = 3;
/// The minimum number of blocks of a race.
pub const FEWEST_BLOCKS: u32 = 5;
/// The minimum number of engines of a race: with fewer, the time of those that are skipped is not worth the looks.
pub const FEWEST_ENGINES: usize = 4;
/// The maximum length of a phase, as a multiple of the planned one.
const LONGEST: f64 = 8.0;
/// Lengths are rounded down to full parts of the planned one, of which there are so many.
const LENGTH_PARTS: f64 = 1e3;

/// The looks of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Race {
    /// The blocks after which the run looks at its figures, in order; the last one is its last block.
    pub looks_after: Vec<u32>,
    /// What it has found so far. The last look is the report, and changes no trial.
    pub looks: Vec<Look>,
}

/// What the run has found when it looked at its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Look {
    /// The last block that it has considered.
    pub after: u32,
    /// The tables in which engines were compared, in the order of the report.
    pub tables: Vec<Standing>,
    /// The later trials that are not run at all: an engine may no longer win any phase.
    pub trials_left_out: u32,
}

/// A table at a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The phase.
    pub phase: String,
    /// The effective level of its engines, and their kind if they are not embedded: `process`, or `none, caches`.
    pub group: String,
    /// The engines, with options, that may still win.
    pub open: Vec<String>,
    /// Those that may not.
    pub beaten: Vec<Beaten>,
    /// The length of the phase in later blocks for engines that may still win, as a multiple of the planned one.
    pub length: f64,
}

/// An engine that can no longer be the fastest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beaten {
    /// The engine, with options.
    pub engine: String,
    /// One that is faster.
    pub by: String,
}

/// What a look has found about an engine in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chance {
    /// It may still win: the length for it.
    Open(f64),
    /// It may not.
    Beaten,
    /// It is not compared, because it is alone, or because a run failed: it is run as planned.
    Uncompared,
    /// It lacks what the phase needs.
    Impossible,
}

impl Race {
    /// The race of a run with this number of blocks.
    pub fn new(blocks: u32) -> Race {
        let mut looks_after = vec![FIRST_LOOK, (blocks / 2).max(FIRST_LOOK + 1), blocks];
        looks_after.dedup();
        Race { looks_after, looks: Vec::new() }
    }

    /// The number of blocks.
    pub fn blocks(&self) -> u32 {
        self.looks_after.last().copied().unwrap_or_default()
    }

    /// The look after which an engine could no longer win a phase, and an engine that was faster; none: it still can.
    pub fn beaten(&self, phase: &str, engine: &str) -> Option<(u32, &str)> {
        self.looks.iter().find_map(|look| {
            let tables = look.tables.iter().filter(|table| table.phase == phase);
            let found = tables.flat_map(|table| &table.beaten).find(|beaten| beaten.engine == engine)?;
            Some((look.after, found.by.as_str()))
        })
    }

    /// What a look so far has found of an engine in a table, if it could no longer win it.
    fn beaten_in(&self, phase: &str, group: &str, engine: &str) -> Option<&Beaten> {
        let tables = self.looks.iter().filter_map(|look| look.table(phase, group));
        tables.flat_map(|table| &table.beaten).find(|beaten| beaten.engine == engine)
    }

    /// The block after which the next look changes the plan; none: all such looks are made.
    pub fn next_look(&self) -> Option<u32> {
        let after = self.looks_after.get(self.looks.len()).copied();
        after.filter(|after| *after < self.blocks())
    }
}

/// The trials of a plan up to its next look: all of them if there is none.
pub fn trials_until_look(plan: &Plan) -> &[Trial] {
    let after = plan.race.as_ref().and_then(Race::next_look).unwrap_or(u32::MAX);
    let end = plan.trials.iter().position(|trial| trial.repetition > after);
    &plan.trials[..end.unwrap_or(plan.trials.len())]
}

/// The plan after its next look, at the records of all trials before it; none: no look changes it any more.
pub fn after_look(run: &Run, records: Vec<Record>) -> Option<Plan> {
    let race = run.plan.race.as_ref()?;
    let after = race.next_look()?;
    let mut seen = run.clone();
    seen.plan.trials.retain(|trial| trial.repetition <= after);
    seen.plan.race = Some(Race { looks_after: vec![after], looks: race.looks.clone() });
    let workload = Arc::clone(&seen.plan.trials.first()?.workload);
    let summary = Summary::new(&seen, records);
    let mut tables = standings(&summary, race, &workload);
    let mut chances = HashMap::new();
    for (place, phase) in workload.phases.iter().enumerate() {
        let found = summary.phases.iter().find(|found| found.name == phase.name);
        for (group, cell) in found.into_iter().flat_map(cells) {
            let name = full_name(&cell.engine, &cell.options);
            let of_cell =
                |table: &&Standing| (&table.phase, Some(&table.group)) == (&phase.name, group.as_ref());
            let was_beaten = match &group {
                Some(group) => race.beaten_in(&phase.name, group, &name).is_some(),
                None => race.beaten(&phase.name, &name).is_some(),
            };
            let chance = chance(cell, &name, tables.iter().find(of_cell), was_beaten);
            // An engine that has reached several levels has several cells.
            chances
                .entry((name, place))
                .and_modify(|known| {
                    if *known != chance {
                        *known = Chance::Uncompared
                    }
                })
                .or_insert(chance);
        }
    }
    let chance = |name: &str, place: usize| {
        chances.get(&(name.to_string(), place)).copied().unwrap_or(Chance::Uncompared)
    };
    let next: Vec<&Trial> = run.plan.trials.iter().filter(|trial| trial.repetition == after + 1).collect();
    let block = run.plan.trials.iter().filter(|trial| trial.repetition == 1 && !trial.is_floor).count();
    let as_planned = trial_seconds(&workload, workload.phases.iter().map(|phase| (phase, 1.0)));
    let part = part_within(as_planned * block as f64, &next, &workload, &chance);
    tables.iter_mut().for_each(|table| table.length = length(table.length, part));
    let chance = |name: &str, place: usize| match chance(name, place) {
        Chance::Open(wanted) => Chance::Open(length(wanted, part)),
        other => other,
    };
    let mut plan = run.plan.clone();
    let planned = plan.trials.len();
    let later = |trial: Trial| match trial.repetition <= after || trial.is_floor {
        true => Some(trial),
        false => changed(trial, &workload.phases, chance),
    };
    plan.trials = plan.trials.into_iter().filter_map(later).collect();
    let trials_left_out = (planned - plan.trials.len()) as u32;
    plan.race.as_mut()?.looks.push(Look { after, tables, trials_left_out });
    Some(plan)
}

/// The cells of a phase that are not floors, with the names of their tables.
fn cells(phase: &PhaseSummary) -> impl Iterator<Item = (Option<String>, &Cell)> {
    let ranked =
        phase.groups.iter().flat_map(|group| group.cells.iter().map(|cell| (Some(group.name()), cell)));
    ranked.chain(phase.unranked.iter().map(|cell| (None, cell)))
}

/// The tables in which two engines or more are compared.
fn standings(summary: &Summary, race: &Race, workload: &Workload) -> Vec<Standing> {
    let ranked = |group: &Group| group.cells.iter().take_while(|cell| cell.rank.is_some()).count();
    let all = summary.phases.iter().flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
    let compared: Vec<_> = all.filter(|(_, group)| ranked(group) > 1).collect();
    let of_table = |(phase, group): &(&PhaseSummary, &Group)| {
        let cells = &group.cells[..ranked(group)];
        let names: Vec<String> = cells.iter().map(|cell| full_name(&cell.engine, &cell.options)).collect();
        let beaten_by =
            beaten_by(cells, |cell| phase.throughput(cell), compared.len(), race.looks_after.len());
        let mut table = Standing {
            phase: phase.name.clone(),
            group: group.name(),
            open: Vec::new(),
            beaten: Vec::new(),
            length: 1.0,
        };
        for (name, by) in names.iter().zip(beaten_by) {
            let now = by.map(|by| Beaten { engine: name.clone(), by: names[by].clone() });
            match race.beaten_in(&table.phase, &table.group, name).cloned().or(now) {
                Some(beaten) => table.beaten.push(beaten),
                None => table.open.push(name.clone()),
            }
        }
        let place = workload.phases.iter().position(|planned| planned.name == phase.name);
        // A table that is decided needs no more time.
        if table.open.len() > 1 && place.is_some_and(|place| may_be_longer(workload, place)) {
            table.length = names.len() as f64 / table.open.len() as f64;
        }
        table
    };
    compared.iter().map(of_table).collect()
}

/// The length of a phase for engines that may still win it. `wanted`: the engines of its table for each of them; 1: it stays as
/// planned. `part`: how much of that there is time for.
fn length(wanted: f64, part: f64) -> f64 {
    match wanted > 1.0 {
        true => ((wanted * part).clamp(1.0, LONGEST) * LENGTH_PARTS).floor() / LENGTH_PARTS,
        false => 1.0,
    }
}

/// The estimated seconds of a trial with these phases, from its start to its end. Those of phases that are longer for an engine are
/// multiplied; a warm-up stays as long as it is.
fn trial_seconds<'p>(workload: &Workload, phases: impl Iterator<Item = (&'p Phase, f64)>) -> f64 {
    let of = |(phase, length): (&Phase, f64)| {
        phase.warmup_seconds + (workload.expected_seconds(phase) - phase.warmup_seconds) * length
    };
    workload.rest_seconds() + phases.map(of).sum::<f64>()
}

/// The estimated seconds of these trials after a look, with a part of the lengths that tables would like to have.
fn block_seconds(
    trials: &[&Trial],
    planned: &Workload,
    chance: &impl Fn(&str, usize) -> Chance,
    part: f64,
) -> f64 {
    let of = |trial: &&Trial| {
        let name = full_name(&trial.engine, &trial.options);
        let last = last_needed(trial, |place| chance(&name, place))?;
        let phases = planned.phases[..=last].iter().enumerate().map(|(place, phase)| {
            let length = match chance(&name, place) {
                Chance::Open(wanted) => length(wanted, part),
                _ => 1.0,
            };
            (phase, length)
        });
        Some(trial_seconds(planned, phases))
    };
    trials.iter().filter(|trial| !trial.is_floor).filter_map(of).sum()
}

/// How much of the lengths that tables would like to have fits into a block that takes no longer than planned. It may be more than
/// all of it: engines without any trial leave the time for their loads, too. Only estimates of the plan count, and not how long
/// engines took: that would decide how precise others are.
fn part_within(
    planned_seconds: f64,
    trials: &[&Trial],
    planned: &Workload,
    chance: &impl Fn(&str, usize) -> Chance,
) -> f64 {
    const STEPS: u32 = 40;
    let fits = |part: f64| block_seconds(trials, planned, chance, part) <= planned_seconds;
    let (mut low, mut high) = (0.0, LONGEST);
    if fits(high) {
        return high;
    }
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

impl Look {
    fn table(&self, phase: &str, group: &str) -> Option<&Standing> {
        self.tables.iter().find(|table| table.phase == phase && table.group == group)
    }
}

/// Whether the phase may be longer for some engines. A load is as long as its keys. A phase that writes changes what later
/// phases find, which must be the same for all engines. A last phase that adds or deletes as long as it runs would be measured on
/// another database than planned: with more or fewer rows, or with none left.
fn may_be_longer(workload: &Workload, place: usize) -> bool {
    let phase = &workload.phases[place];
    let has = |is: &dyn Fn(OpKind) -> bool| phase.mix.has(is) || (phase.writers > 0 && is(OpKind::Put));
    let resizes = |kind: OpKind| kind.inserts(phase) || kind.deletes() || kind.is_of_lists();
    let is_last = place + 1 == workload.phases.len();
    let leaves_rows = if is_last { !has(&resizes) } else { !has(&OpKind::writes) };
    !phase.each_key && !phase.each_round && phase.transaction.is_none() && leaves_rows
}

/// `was_beaten`: an earlier look has found that it could not win any more. It stays so, also if it is not compared now.
fn chance(cell: &Cell, name: &str, table: Option<&Standing>, was_beaten: bool) -> Chance {
    match table {
        Some(table) if table.open.iter().any(|open| open == name) => Chance::Open(table.length),
        Some(table) if table.beaten.iter().any(|beaten| beaten.engine == name) => Chance::Beaten,
        _ if was_beaten => Chance::Beaten,
        _ if cell.runs.iter().all(|run| matches!(run.state, RunState::NotRun { .. })) => Chance::Impossible,
        _ => Chance::Uncompared,
    }
}

/// The last phase of a trial that its engine may still win or is not compared in; none: there is none.
fn last_needed(trial: &Trial, chance: impl Fn(usize) -> Chance) -> Option<usize> {
    let is_needed = |place: &usize| matches!(chance(*place), Chance::Open(_) | Chance::Uncompared);
    (0..trial.workload.phases.len()).rev().find(is_needed)
}

/// A later trial after a look: its phases up to the last one that its engine may still win or is not compared in, each as long as
/// the look says. All phases before that one are run, so that it finds what it always finds. Phases that an earlier look has
/// skipped are not run again. None: it is skipped.
fn changed(mut trial: Trial, planned: &[Phase], chance: impl Fn(&str, usize) -> Chance) -> Option<Trial> {
    let name = full_name(&trial.engine, &trial.options);
    let of_place = |place: usize| chance(&name, place);
    let last = last_needed(&trial, of_place)?;
    let mut phases = planned[..=last].to_vec();
    trial.lengths.clear();
    for (place, phase) in phases.iter_mut().enumerate() {
        if let Chance::Open(length) = of_place(place)
            && length > 1.0
        {
            // Rounded down, as the length is; a microsecond before that makes up for binary fractions.
            phase.seconds = (phase.seconds * length * 1e3 + 1e-3).floor() / 1e3;
            phase.ops = (phase.ops as f64 * length + 1e-6).floor() as u64;
            trial.lengths.insert(phase.name.clone(), length);
        }
    }
    trial.workload = Arc::new(Workload { phases, ..trial.workload.as_ref().clone() });
    Some(trial)
}

#[cfg(test)]
mod tests;
