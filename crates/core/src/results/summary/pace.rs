//! Which runs were measured while the machine was slower or faster than it usually was in the run, or lacked a CPU more often than
//! the other runs of their cell.

use crate::results::statistics::median;
use crate::results::{PhaseRecord, Record};
use kvdyno_measure::text::share_text;
use kvdyno_measure::{Pace, PhaseNoise};
use serde::Serialize;
use std::collections::HashMap;

/// A run is marked if a part of its pace is further than this from the usual one, as a share of it.
pub const PACE_LIMIT: f64 = 0.10;
/// What is usual is not known of fewer paces.
const FEWEST_PACES: usize = 10;
/// Nor if fewer than this share of them are within the limit of their median: then nothing is usual. In a virtual machine others may
/// use the same last cache, so that loads from 8 MiB take now 30 ns and now 140 ns on a machine that does nothing else.
const USUAL_SHARE: f64 = 0.5;
/// If the trial's own threads worked more than this share of the time meanwhile, a pace says nothing about the machine.
const OWN_LIMIT: f64 = 0.10;

/// The parts of a pace, with their names.
type Part = (&'static str, fn(&Pace) -> f64);
const PARTS: [Part; 3] = [
    ("registers", |pace| pace.registers_ns),
    ("256 KiB", |pace| pace.cache_ns),
    ("8 MiB", |pace| pace.memory_ns),
];

/// How far the paces around a phase were from the usual ones: of its three parts the one that differs most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PaceChange {
    /// The part: `registers`, `256 KiB` or `8 MiB`.
    pub part: &'static str,
    /// Of its time per step the difference to the usual one, as a share of that: 0.3 is 30 % slower.
    pub share: f64,
}

impl PaceChange {
    /// Whether the run is marked.
    pub fn is_disturbing(&self) -> bool {
        self.share.abs() > PACE_LIMIT
    }

    /// `8 MiB 30 % slower`.
    pub(super) fn words(&self) -> String {
        let direction = if self.share > 0.0 { "slower" } else { "faster" };
        format!("{} {} {direction}", self.part, share_text(self.share.abs()))
    }
}

/// The usual pace of each machine of a run: the medians over all phases of all its trials. None: no pace of that part is usual.
pub(super) struct UsualPaces {
    of_machine: HashMap<Option<u32>, [Option<f64>; PARTS.len()]>,
}

impl UsualPaces {
    /// `machines` are the numbers of the machines of the trials, if there are several.
    pub(super) fn new(records: &[Record], machines: &HashMap<&str, u32>) -> UsualPaces {
        let mut paces: HashMap<Option<u32>, Vec<Pace>> = HashMap::new();
        for record in records {
            let own = record.phases.iter().filter_map(|phase| phase.noise.as_ref()).flat_map(telling);
            paces.entry(machines.get(record.trial.id.as_str()).copied()).or_default().extend(own);
        }
        let usual = |paces: &[Pace], (_, of): Part| {
            let times: Vec<f64> = paces.iter().map(of).collect();
            let middle = median(&times).filter(|middle| *middle > 0.0 && times.len() >= FEWEST_PACES)?;
            let near = times.iter().filter(|time| (*time / middle - 1.0).abs() <= PACE_LIMIT).count();
            (near as f64 >= USUAL_SHARE * times.len() as f64).then_some(middle)
        };
        let of_machine =
            paces.iter().map(|(machine, paces)| (*machine, PARTS.map(|part| usual(paces, part))));
        UsualPaces { of_machine: of_machine.collect() }
    }

    /// How far a phase was from it; none: its pace is unknown, or there is no usual one.
    pub(super) fn change(&self, machine: Option<u32>, phase: &PhaseRecord) -> Option<PaceChange> {
        let usual = self.of_machine.get(&machine)?;
        let paces: Vec<Pace> = telling(phase.noise.as_ref()?).collect();
        let change = |((part, of), usual): (Part, &Option<f64>)| {
            let mean = paces.iter().map(of).sum::<f64>() / paces.len() as f64;
            usual.map(|usual| PaceChange { part, share: mean / usual - 1.0 })
        };
        let changes =
            PARTS.into_iter().zip(usual).filter_map(change).filter(|change| change.share.is_finite());
        changes.max_by(|one, other| one.share.abs().total_cmp(&other.share.abs()))
    }
}

/// A run is marked if its waits for a CPU made it slower than those of most runs of its cell by more than this share.
const WAIT_LIMIT: f64 = 0.10;

/// How much slower the waits of threads for a CPU made each of a cell's runs than their median, as a share; none: unknown.
pub(super) fn wait_changes<'a>(phases: impl Iterator<Item = Option<&'a PhaseRecord>>) -> Vec<Option<f64>> {
    // Of the time that threads needed a CPU, they had one in the rest.
    let had: Vec<Option<f64>> =
        phases.map(|phase| Some(1.0 - phase?.noise?.run_delay_share?).filter(|had| *had > 0.0)).collect();
    let known: Vec<f64> = had.iter().flatten().copied().collect();
    let usual = median(&known);
    had.into_iter().map(|had| Some(usual? / had? - 1.0)).collect()
}

/// `35 % slower by waits for a CPU`; none: the run is not marked for it.
pub(super) fn wait_words(change: f64) -> Option<String> {
    (change > WAIT_LIMIT).then(|| format!("{} slower by waits for a CPU", share_text(change)))
}

/// The paces around a phase, without those that the trial's own threads slowed down.
fn telling(noise: &PhaseNoise) -> impl Iterator<Item = Pace> {
    noise.paces().filter(|pace| pace.own_cpu_share.is_none_or(|share| share <= OWN_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Summary};
    use super::*;
    use crate::results::fixture;

    fn pace(memory_ns: f64) -> Option<Pace> {
        Some(Pace { registers_ns: 1.0, cache_ns: 4.0, memory_ns, own_cpu_share: Some(0.0) })
    }

    /// The records of the fixture on a steady machine, except for the paces after the second phase of the runs of `engine` from
    /// run `from` on.
    fn records(engine: &str, from: u32, after: Option<Pace>) -> Vec<Record> {
        let mut records = fixture::records();
        for record in &mut records {
            let is_it = record.trial.engine == engine && record.trial.repetition >= from;
            for (place, phase) in record.phases.iter_mut().enumerate() {
                let pace_after = if is_it && place == 1 { after } else { pace(20.0) };
                phase.noise =
                    Some(PhaseNoise { pace_before: pace(20.0), pace_after, ..PhaseNoise::default() });
            }
        }
        records
    }

    fn cell(records: Vec<Record>, engine: &str) -> Cell {
        let summary = Summary::new(&fixture::run(), records);
        summary.phases[1].cells().find(|cell| cell.engine == engine).unwrap().clone()
    }

    #[test]
    fn a_run_is_marked_if_its_pace_is_unusual_and_a_cell_if_most_of_its_runs_are() {
        // 20 ns before and 26 ns after: 15 % slower.
        for (from, marked, is_disturbed) in [(1, 3, true), (2, 2, true), (3, 1, false)] {
            let cell = cell(records("lmdb", from, pace(26.0)), "lmdb");
            let own = cell.runs.iter().filter(|run| !run.disturbed.is_empty());
            assert_eq!((own.count(), cell.is_disturbed()), (marked, is_disturbed), "from run {from}");
            assert_eq!(cell.runs[2].disturbed, ["8 MiB 15 % slower"]);
            let mark = format!("{marked}/3 disturbed");
            let note = cell.notes.iter().find(|note| note.mark == mark);
            assert_eq!(note.is_some(), is_disturbed, "{:?}", cell.notes);
            assert_eq!(cell.rank.map(|rank| rank.best), Some(1), "it keeps its rank");
        }
    }

    #[test]
    fn a_small_change_and_one_by_the_engine_itself_are_no_mark() {
        let small = cell(records("lmdb", 1, pace(23.0)), "lmdb");
        assert!(!small.is_disturbed());
        let change = small.runs[0].pace_change.unwrap();
        assert!(change.part == "8 MiB" && (change.share - 0.075).abs() < 1e-9, "{change:?}");
        let own = pace(90.0).map(|pace| Pace { own_cpu_share: Some(0.8), ..pace });
        let own = cell(records("lmdb", 1, own), "lmdb");
        assert!(own.runs.iter().all(|run| run.pace_change.unwrap().share == 0.0), "{:?}", own.runs[0]);
        let faster = cell(records("lmdb", 1, pace(10.0)), "lmdb");
        assert_eq!(faster.runs[0].disturbed, ["8 MiB 25 % faster"]);
    }

    #[test]
    fn a_part_of_the_pace_that_is_never_the_same_marks_nothing_and_the_others_still_do() {
        // Loads from 8 MiB take 20 to 120 ns, as on a machine whose last cache others use, too.
        let unsteady = |register_ns: f64| {
            let mut records = fixture::records();
            let mut place = 0u32;
            for record in &mut records {
                let is_it = record.trial.engine == "lmdb";
                for phase in &mut record.phases {
                    place += 1;
                    let own = pace(20.0 + 10.0 * f64::from(place * place % 11));
                    let after = own.map(|pace| match is_it {
                        true => Pace { registers_ns: register_ns, ..pace },
                        false => pace,
                    });
                    phase.noise =
                        Some(PhaseNoise { pace_before: own, pace_after: after, ..PhaseNoise::default() });
                }
            }
            cell(records, "lmdb")
        };
        let steady = unsteady(1.0);
        assert!(!steady.is_disturbed() && steady.runs.iter().all(|run| run.disturbed.is_empty()));
        assert!(steady.runs.iter().all(|run| run.pace_change.is_some_and(|change| change.share == 0.0)));
        let slower = unsteady(1.5);
        assert_eq!(slower.runs[0].disturbed, ["registers 25 % slower"]);
    }

    #[test]
    fn a_run_is_marked_if_it_lacked_a_cpu_more_often_than_the_others_of_its_cell() {
        let of = |shares: [f64; 3]| {
            let mut records = fixture::records();
            for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
                let share = shares[record.trial.repetition as usize - 1];
                record.phases[1].noise =
                    Some(PhaseNoise { run_delay_share: Some(share), ..PhaseNoise::default() });
            }
            let cell = cell(records, "lmdb");
            let words = cell.runs.iter().map(|run| run.disturbed.join(" and "));
            words.collect::<Vec<_>>()
        };
        assert_eq!(of([0.03, 0.28, 0.04]), ["", "33.3 % slower by waits for a CPU", ""]);
        // An engine with more threads than there are CPUs waits in all of its runs.
        assert_eq!(of([0.5, 0.45, 0.52]), ["", "", ""]);
    }

    #[test]
    fn records_without_paces_have_no_marks() {
        let cell = cell(fixture::records(), "lmdb");
        assert!(!cell.is_disturbed() && cell.runs.iter().all(|run| run.pace_change.is_none()));
    }
}
