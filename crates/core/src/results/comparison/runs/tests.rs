//! Tests of comparisons of two runs: obstacles, failures and changes.

use super::*;
use crate::results::figures::{self, RATE};
use crate::results::race::{Look, Race};
use crate::results::{Record, Trial, fixture};
use kvdyno_measure::{Pace, PhaseNoise};
use std::sync::Arc;

fn compared(base: (&Run, Vec<Record>), new: (&Run, Vec<Record>)) -> RunComparison {
    let (old, other) = (Summary::new(base.0, base.1), Summary::new(new.0, new.1));
    RunComparison::new(
        Side { run: base.0, summary: &old },
        Side { run: new.0, summary: &other },
        &figures::compared(),
    )
}

#[test]
fn a_run_equals_itself_in_every_row() {
    let run = fixture::run();
    let found = compared((&run, fixture::records()), (&run, fixture::records()));
    assert_eq!((found.differences.len(), found.unmatched.len(), found.remarks.len()), (0, 0, 0));
    assert!(found.rows.len() > 50);
    for row in found.rows.iter().filter_map(|row| row.compared.as_ref()) {
        assert_eq!((row.verdict, row.ratio), (Verdict::Open, 1.0));
    }
    // Two of the runs of one engine count, which is too few for a comparison, but the row exists.
    let few = found.rows.iter().find(|row| row.engine == "sqlite" && row.figure.name == RATE).unwrap();
    assert_eq!((few.base_runs, few.compared.is_none(), few.base_median.is_some()), (2, true, true));
}

#[test]
fn a_change_is_found_in_its_row() {
    let (run, mut records) = (fixture::run(), fixture::records());
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        let phase = record.phases.iter_mut().find(|phase| phase.phase.name == "read").unwrap();
        phase.elapsed_ns *= 2;
    }
    let found = compared((&run, fixture::records()), (&run, records));
    let worse: Vec<(&str, &str, &str)> = found
        .rows
        .iter()
        .filter(|row| row.compared.as_ref().is_some_and(|row| row.verdict != Verdict::Open))
        .map(|row| (row.engine.as_str(), row.phase.as_str(), row.figure.name))
        .collect();
    assert_eq!(worse, [("lmdb", "read", RATE)]);
    let row = found.rows.iter().find(|row| row.is_regression(0.05)).unwrap();
    assert!((row.compared.as_ref().unwrap().ratio - 0.5).abs() < 1e-9);
    assert!(!row.is_regression(1.01) && !row.is_inconclusive(0.05), "an op takes twice the time");
    assert!((row.loss(0.8) - 0.25).abs() < 1e-12);
}

#[test]
fn a_comparison_says_which_of_the_runs_was_a_race() {
    let run = fixture::run();
    let mut raced = run.clone();
    raced.plan.race = Some(Race::new(5));
    let remarks = |base: &Run, new: &Run| {
        compared((base, fixture::records()), (new, fixture::records())).remarks.join("\n")
    };
    assert_eq!(remarks(&run, &raced), "", "a race that has not looked yet is a run like any other");
    raced.plan.race.as_mut().unwrap().looks.push(Look { after: 3, tables: Vec::new(), trials_left_out: 0 });
    assert!(remarks(&run, &raced).starts_with("the new run was a race: "));
    assert!(remarks(&raced, &run).starts_with("the base run was a race: "));
    assert!(remarks(&raced, &raced).starts_with("both runs were races: "));
}

#[test]
fn runs_of_other_lengths_are_not_compared() {
    let (run, records) = (fixture::run(), fixture::records());
    // Late runs of one engine are longer, and twice as fast.
    let longer = |from: u32| -> (Run, Vec<Record>) {
        let (mut run, mut records) = (run.clone(), records.clone());
        let is_longer = |trial: &Trial| trial.engine == "lmdb" && trial.repetition >= from;
        for trial in run.plan.trials.iter_mut().filter(|trial| is_longer(trial)) {
            trial.lengths.insert("read".to_string(), 4.0);
        }
        for record in records.iter_mut().filter(|record| is_longer(&record.trial)) {
            record.trial.lengths.insert("read".to_string(), 4.0);
            let read = record.phases.iter_mut().find(|phase| phase.phase.name == "read").unwrap();
            (read.ops, read.phase.ops) = (read.ops * 4, read.phase.ops * 4);
            read.elapsed_ns *= 2;
        }
        (run, records)
    };
    let row = |base: &(Run, Vec<Record>), new: &(Run, Vec<Record>)| {
        let found = compared((&base.0, base.1.clone()), (&new.0, new.1.clone()));
        let is_it = |row: &&Row| row.engine == "lmdb" && row.phase == "read" && row.figure.name == RATE;
        let row = found.rows.iter().find(is_it).unwrap().clone();
        (row.base_runs, row.new_runs, row.new_median.unwrap() / row.base_median.unwrap())
    };
    let (even, late, last) = ((run.clone(), records.clone()), longer(3), longer(2));
    let (base, new, ratio) = row(&even, &late);
    assert_eq!((base, new), (3, 2));
    assert!((ratio - 1.0).abs() < 0.2, "{ratio}");
    let (base, new, ratio) = row(&late, &last);
    assert_eq!((base, new), (2, 1));
    assert!((ratio - 1.0).abs() < 0.2, "{ratio}");
    assert_eq!(row(&late, &late), (3, 3, 1.0), "the same lengths in both");
    assert_eq!(row(&even, &even), (3, 3, 1.0));
}

#[test]
fn obstacles_to_a_comparison_are_reported() {
    let run = fixture::run();
    let mut other = run.clone();
    other.machine.cpu_model = Some("Other CPU".to_string());
    for trial in &mut other.plan.trials {
        let workload = Arc::make_mut(&mut trial.workload);
        workload.seed += 1;
        workload.phases[1].ops += 5;
    }
    let mut records = fixture::records();
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        record.phases[0].durability_effective = Some(crate::workload::Durability::Power);
    }
    let found = compared((&run, fixture::records()), (&other, records));
    let text = found.differences.join("\n");
    assert_eq!(found.differences.len(), 3, "{text}");
    assert!(text.contains("machine, cpu_model: Example CPU 3000 and Other CPU"), "{text}");
    assert!(text.contains("workload quick, phases, read, ops: 4000 and 4005"), "{text}");
    assert!(text.contains("effective level process, but power in the second run"), "{text}");
}

#[test]
fn failures_of_the_second_run_are_reported() {
    let (run, mut records) = (fixture::run(), fixture::records());
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        record.outcome = crate::results::Outcome::WrongAnswers { faults: vec!["key 3".to_string()] };
    }
    let found = compared((&run, fixture::records()), (&run, records));
    let of_lmdb: Vec<&String> = found.failures.iter().filter(|text| text.contains("lmdb")).collect();
    assert_eq!(of_lmdb.len(), 4, "one for each phase: {:?}", found.failures);
    assert!(of_lmdb[0].contains("3 of 3 runs failed (wrong answers: key 3)"), "{}", of_lmdb[0]);
    assert!(found.unmatched.is_empty(), "{:?}", found.unmatched);
    let row = found.rows.iter().find(|row| row.engine == "lmdb" && row.figure.name == RATE).unwrap();
    assert!(row.is_inconclusive(0.05) && row.verdict().is_none() && row.new_runs == 0);
    // Engines that failed in both runs are not reported.
    assert!(!found.failures.iter().any(|text| text.contains("fjall")), "{:?}", found.failures);
}

#[test]
fn notes_of_both_runs_are_kept() {
    let (run, mut records) = (fixture::run(), fixture::records());
    for record in &mut records {
        let memory_ns = if record.trial.engine == "lmdb" { 30.0 } else { 20.0 };
        let pace = Pace { registers_ns: 1.0, cache_ns: 4.0, memory_ns, own_cpu_share: None };
        for phase in &mut record.phases {
            phase.noise = Some(PhaseNoise { pace_before: Some(pace), ..PhaseNoise::default() });
        }
    }
    let found = compared((&run, fixture::records()), (&run, records));
    assert_eq!(found.disturbed, 4);
    assert!(
        found.notes.iter().any(|note| note.ends_with("lmdb write-map=false, new: 3/3 disturbed")),
        "{:?}",
        found.notes
    );
}

#[test]
fn zero_has_no_ratio_and_is_unchanged_if_it_stays_zero() {
    let (none, some) = ([0.0; 5], [4096.0; 5]);
    assert_eq!(of_zero(&none, &none, Better::Lower), Some(Verdict::Open));
    assert_eq!(of_zero(&none, &some, Better::Lower), Some(Verdict::Worse));
    assert_eq!(of_zero(&some, &none, Better::Lower), Some(Verdict::Better));
    assert_eq!(of_zero(&some, &some, Better::Lower), None);
    assert_eq!(of_zero(&none[..2], &none, Better::Lower), None);
}

#[test]
fn runs_without_a_cell_in_common_cannot_be_compared() {
    let run = fixture::run();
    let found = compared((&run, fixture::records()), (&run, Vec::new()));
    assert_eq!(found.differences, ["the two runs have no figures of an engine in common"]);
}
