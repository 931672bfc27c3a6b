//! Tests of a race by made-up records of engines whose speeds are known.

use super::*;
use crate::results::fixture::sketch::{PhaseSketch, Sketch, drawn};
use crate::results::random::Random;
use crate::results::store::RunFolder;
use crate::results::{Outcome, PhaseRecord};
use crate::workload::Mix;

const ENGINES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const PHASES: [&str; 5] = ["fill", "read", "mix", "scan", "sync"];
/// A phase of so many ops is planned to take two seconds.
const OPS: u64 = 200_000;

/// Times per op of the engines in each phase, nanoseconds.
type Truth = [[f64; 6]; 5];

/// `a` and `b` are alike in `read`, `c` is the best in `mix`, `d` in `scan`, and `a` in the others. `e` and `f` are always slow.
const TRUTH: Truth = [
    [1e3, 2e3, 2e3, 2e3, 3e3, 4e3],
    [1e3, 1e3, 2e3, 2e3, 3e3, 4e3],
    [2e3, 2e3, 1e3, 2e3, 3e3, 4e3],
    [2e3, 2e3, 2e3, 1e3, 3e3, 4e3],
    [1e3, 2e3, 2e3, 2e3, 3e3, 4e3],
];

/// A run with a race, and a record as a model for all others.
fn race_of(blocks: u32) -> (Run, Record) {
    let kinds: [&[&str]; 5] = [&["put"], &["get"], &["get", "put"], &["scan"], &["put"]];
    let mut phases: Vec<PhaseSketch> = Vec::new();
    for (name, kinds) in PHASES.iter().zip(kinds) {
        phases.push(PhaseSketch { each_key: *name == "fill", ..PhaseSketch::new(name, kinds, OPS) });
    }
    let sketch = Sketch { name: "quick", phases: &phases, engines: &ENGINES, runs: blocks, ..Sketch::EMPTY };
    let (mut run, mut records) = drawn(&[sketch]);
    run.plan.race = Some(Race::new(blocks));
    (run, records.remove(0))
}

/// What a trial measures: runs differ by `noise`, the standard deviation of log rates.
fn measured(trial: &Trial, model: &Record, truth: &Truth, noise: f64, random: &mut Random) -> Record {
    let engine = ENGINES.iter().position(|name| *name == trial.engine).unwrap();
    let phases = trial.workload.phases.iter().enumerate().map(|(place, phase)| {
        // The sum of 12 uniform numbers is nearly normal.
        let normal = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let length = trial.length(&phase.name);
        let ns = truth[place][engine] * (noise * normal * (0.27 + 0.73 / length).sqrt()).exp();
        let ops = (OPS as f64 * length).round();
        let elapsed_ns = (ops * ns).round() as u64;
        PhaseRecord { phase: phase.clone(), ops: ops as u64, elapsed_ns, ..model.phases[place].clone() }
    });
    Record { phases: phases.collect(), trial: trial.clone(), ..model.clone() }
}

/// Runs a race to its end.
fn raced(mut run: Run, model: &Record, (truth, noise): (&Truth, f64), seed: u64) -> (Run, Vec<Record>) {
    let mut records: Vec<Record> = Vec::new();
    loop {
        for trial in trials_until_look(&run.plan) {
            if !records.iter().any(|record| record.trial.id == trial.id) {
                let mut random = Random::seeded((seed * 1_000 + u64::from(trial.order)) << 20);
                records.push(measured(trial, model, truth, noise, &mut random));
            }
        }
        match after_look(&run, records.clone()) {
            Some(plan) => run.plan = plan,
            None => return (run, records),
        }
    }
}

fn phases_of(run: &Run, engine: &str, repetition: u32) -> Option<Vec<(String, f64)>> {
    let is_it = |trial: &&Trial| trial.engine == engine && trial.repetition == repetition;
    let trial = run.plan.trials.iter().find(is_it)?;
    let length = |phase: &Phase| (phase.name.clone(), trial.length(&phase.name));
    Some(trial.workload.phases.iter().map(length).collect())
}

#[test]
fn the_number_of_looks_is_fixed_by_the_number_of_blocks() {
    let looks = |blocks: u32| Race::new(blocks).looks_after;
    assert_eq!(looks(5), [3, 4, 5]);
    assert_eq!(looks(6), [3, 4, 6]);
    assert_eq!(looks(10), [3, 5, 10]);
    assert_eq!(Race::new(10).blocks(), 10);
}

#[test]
fn engines_run_up_to_the_last_phase_that_they_may_still_win_and_longer_where_they_may() {
    let (run, model) = race_of(5);
    let before = run.clone();
    let (run, records) = raced(run, &model, (&TRUTH, 0.01), 1);
    let race = run.plan.race.as_ref().unwrap();
    assert_eq!(race.looks.iter().map(|look| look.after).collect::<Vec<_>>(), [3, 4]);
    let look = &race.looks[0];
    let open: Vec<(&str, Vec<&str>, f64)> = look
        .tables
        .iter()
        .map(|table| (&*table.phase, table.open.iter().map(|name| &**name).collect(), table.length))
        .collect();
    let mut read = open[1].clone();
    read.1.sort();
    assert_eq!(open[0], ("fill", vec!["a"], 1.0));
    // Two engines have the time of all others in all phases: more than they can use.
    assert_eq!(read, ("read", vec!["a", "b"], LONGEST));
    assert_eq!(open[2], ("mix", vec!["c"], 1.0));
    assert_eq!(open[3], ("scan", vec!["d"], 1.0));
    assert_eq!(open[4], ("sync", vec!["a"], 1.0));
    let lengths = |names: &[&str], read: f64| -> Option<Vec<(String, f64)>> {
        Some(names.iter().map(|name| (name.to_string(), if *name == "read" { read } else { 1.0 })).collect())
    };
    for repetition in [4, 5] {
        let phases = |engine: &str| phases_of(&run, engine, repetition);
        assert_eq!(phases("a"), lengths(&PHASES, LONGEST), "all phases up to sync");
        assert_eq!(phases("b"), lengths(&PHASES[..2], LONGEST));
        assert_eq!(phases("c"), lengths(&PHASES[..3], 1.0));
        assert_eq!(phases("d"), lengths(&PHASES[..4], 1.0));
        assert_eq!((phases("e"), phases("f")), (None, None));
    }
    assert_eq!(look.trials_left_out, 4);
    // The first blocks are as planned, and no trial has another identity than planned.
    for trial in &run.plan.trials {
        let planned = before.plan.trials.iter().find(|planned| planned.id == trial.id).unwrap();
        assert!(trial.repetition > 3 || trial == planned, "{}", trial.id);
        assert_eq!((trial.order, trial.workload.seed), (planned.order, planned.workload.seed));
    }
    let longer = run.plan.trials.iter().find(|trial| trial.engine == "b" && trial.repetition == 4).unwrap();
    assert_eq!(longer.workload.phases[1].ops, 8 * OPS);
    let summary = Summary::new(&run, records);
    assert_eq!((summary.pending, summary.failures.len(), summary.runs), (0, 0, 5));
    for phase in &summary.phases {
        let cells: Vec<&Cell> = phase.cells().collect();
        assert_eq!(cells.len(), 6, "{}", phase.name);
        assert!(cells.iter().all(|cell| cell.rank.is_some()), "{}: {cells:?}", phase.name);
        let of_e = cells.iter().find(|cell| cell.engine == "e").unwrap();
        assert_eq!((of_e.runs.len(), of_e.counted_runs, of_e.left_out), (3, 3, 2));
        assert!(of_e.notes.iter().any(|note| note.mark == "3 of 5 runs"), "{:?}", of_e.notes);
    }
}

#[test]
fn a_phase_that_writes_is_longer_only_if_no_other_follows() {
    let (run, model) = race_of(5);
    // All are alike where the database is changed.
    let truth: Truth = [
        [1e3, 2e3, 2e3, 2e3, 2e3, 2e3],
        TRUTH[1],
        [1e3, 1e3, 1e3, 3e3, 3e3, 3e3],
        TRUTH[3],
        [1e3, 1e3, 1e3, 3e3, 3e3, 3e3],
    ];
    let (run, _) = raced(run, &model, (&truth, 0.01), 1);
    let look = &run.plan.race.as_ref().unwrap().looks[0];
    let of = |phase: &str| look.table(phase, "process").map(|table| (table.open.len(), table.length));
    assert_eq!(of("mix"), Some((3, 1.0)));
    assert!(of("sync").is_some_and(|(open, length)| open == 3 && length > 1.0), "{look:?}");
}

/// The seconds of a block, as the plan estimates them.
fn planned_seconds(run: &Run, repetition: u32) -> f64 {
    let trials = run.plan.trials.iter().filter(|trial| trial.repetition == repetition);
    let of = |workload: &Workload| trial_seconds(workload, workload.phases.iter().map(|phase| (phase, 1.0)));
    trials.map(|trial| of(&trial.workload)).sum()
}

#[test]
fn a_block_takes_no_longer_than_planned_and_uses_the_time_of_those_that_stopped() {
    let (run, model) = race_of(6);
    let planned = planned_seconds(&run, 1);
    let (mut longer, mut full) = (0, 0);
    for seed in 1..=20 {
        let mut random = Random::seeded(seed);
        let truth: Truth =
            [0; 5].map(|_| [0; 6].map(|_| [1e3, 1e3, 1.05e3, 2e3][(random.unit() * 4.0) as usize]));
        let (run, _) = raced(run.clone(), &model, (&truth, 0.02), seed);
        let looks = &run.plan.race.as_ref().unwrap().looks;
        for repetition in 4..=6 {
            let look = looks.iter().rfind(|look| look.after < repetition).unwrap();
            let seconds = planned_seconds(&run, repetition);
            assert!(seconds <= planned + 1e-6, "seed {seed}, block {repetition}: {seconds} of {planned} s");
            let lengths = || look.tables.iter().map(|table| table.length).filter(|length| *length > 1.0);
            let is_full = lengths().next().is_some() && lengths().all(|length| length < LONGEST);
            assert!(!is_full || seconds > 0.99 * planned, "seed {seed}: {seconds} of {planned} s");
            longer += u32::from(lengths().next().is_some());
            full += u32::from(is_full);
        }
    }
    assert!(longer > 20 && full > 5, "{longer} blocks have longer phases, and {full} of them all their time");
}

#[test]
fn a_last_phase_that_adds_or_deletes_as_long_as_it_runs_is_not_longer() {
    let (run, _) = race_of(5);
    let mut workload = run.plan.trials[0].workload.as_ref().clone();
    let last = workload.phases.len() - 1;
    let mut longer = |change: &dyn Fn(&mut Phase)| {
        workload.phases[last] = Phase { name: "last".into(), ops: OPS, ..Phase::default() };
        change(&mut workload.phases[last]);
        may_be_longer(&workload, last)
    };
    for kind in OpKind::ALL {
        let mix: Mix = serde_json::from_value(serde_json::json!({ (kind.field()): 1.0 })).unwrap();
        let grows_or_shrinks = matches!(
            kind,
            OpKind::Insert | OpKind::InsertIndexed | OpKind::Delete | OpKind::Push | OpKind::Pop
        );
        assert_eq!(longer(&|phase| phase.mix = mix), !grows_or_shrinks, "{}", kind.name());
    }
    let put =
        |existing: Option<f64>| move |phase: &mut Phase| (phase.mix.put, phase.existing) = (1.0, existing);
    assert!(longer(&put(Some(1.0))) && !longer(&put(Some(0.9))), "the other puts write new keys");
    let writers =
        |existing: Option<f64>| move |phase: &mut Phase| (phase.writers, phase.existing) = (1, existing);
    assert!(longer(&writers(None)) && !longer(&writers(Some(0.0))));
}

#[test]
fn what_a_look_has_left_out_stays_out() {
    let (mut run, model) = race_of(5);
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<String>>();
    let standing = |phase: &str, open: &[&str], beaten: &[&str]| Standing {
        phase: phase.into(),
        group: "process".into(),
        open: names(open),
        beaten: names(beaten).into_iter().map(|engine| Beaten { engine, by: open[0].into() }).collect(),
        length: 1.0,
    };
    // After the first look, d might only win `scan`, and was beaten in the others.
    let tables = vec![
        standing("read", &["a", "b"], &["c", "d", "e", "f"]),
        standing("scan", &["c", "d"], &["a", "b", "e", "f"]),
    ];
    run.plan.race.as_mut().unwrap().looks.push(Look { after: 3, tables, trials_left_out: 0 });
    let mut truth = TRUTH;
    truth[3] = [2e3, 2e3, 1e3, 2e3, 3e3, 4e3];
    let after = |fault: bool, short: bool| {
        let mut run = run.clone();
        if short {
            // It was left out of all phases after `read`.
            for trial in
                run.plan.trials.iter_mut().filter(|trial| trial.engine == "d" && trial.repetition > 3)
            {
                Arc::make_mut(&mut trial.workload).phases.truncate(2);
            }
        }
        let mut records: Vec<Record> = Vec::new();
        for trial in trials_until_look(&run.plan) {
            let mut random = Random::seeded(u64::from(trial.order) << 20);
            let mut record = measured(trial, &model, &truth, 0.01, &mut random);
            if fault && trial.engine == "d" && trial.repetition == 4 {
                // It has no rank in `read` any more, and so is not compared there.
                record.phases[1].check.faults = 1;
            }
            records.push(record);
        }
        let plan = after_look(&run, records).unwrap();
        phases_of(&Run { plan, ..run }, "d", 5).map(|phases| phases.len())
    };
    assert_eq!(after(false, false), None, "it is behind in all phases");
    assert_eq!(after(true, false), None, "`read` was lost before");
    assert_eq!(after(true, true), None);
}

#[test]
fn the_plan_is_the_same_when_a_look_is_repeated_from_what_is_on_disk() {
    let (run, model) = race_of(5);
    let folder = tempfile::tempdir().unwrap();
    let (ended, records) = raced(run.clone(), &model, (&TRUTH, 0.05), 7);
    let mut kept = RunFolder::create(folder.path(), &run).unwrap();
    let path = kept.path().to_path_buf();
    for (count, record) in records.iter().enumerate() {
        // It is killed before and after each look, and in between.
        if count % 5 == 0 {
            drop(kept);
            kept = RunFolder::resume(&path).unwrap();
        }
        if trials_until_look(&kept.run().plan).iter().all(|trial| kept.is_done(&trial.id)) {
            let plan = after_look(kept.run(), kept.finished().unwrap()).unwrap();
            kept.replan(plan).unwrap();
        }
        kept.save(record).unwrap();
    }
    drop(kept);
    let kept = RunFolder::open(&path).unwrap();
    assert_eq!(kept.run().plan, ended.plan);
    assert_eq!(kept.finished().unwrap(), records);
    assert!(after_look(kept.run(), kept.finished().unwrap()).is_none());
}

#[test]
fn an_engine_with_a_failed_run_goes_on_as_planned() {
    let (run, model) = race_of(5);
    let mut records: Vec<Record> = Vec::new();
    for trial in trials_until_look(&run.plan) {
        let mut random = Random::seeded(u64::from(trial.order) << 20);
        let mut record = measured(trial, &model, &TRUTH, 0.01, &mut random);
        if trial.engine == "f" && trial.repetition == 2 {
            record.phases.truncate(1);
            record.outcome =
                Outcome::Crashed { signal: "SIGSEGV".into(), stderr: Vec::new(), suspects: None };
        }
        records.push(record);
    }
    let plan = after_look(&run, records).unwrap();
    let run = Run { plan, ..run };
    let as_planned = PHASES.map(|name| (name.to_string(), 1.0)).to_vec();
    assert_eq!(phases_of(&run, "f", 4), Some(as_planned));
    assert_eq!(phases_of(&run, "e", 4), None);
}

#[test]
fn a_table_whose_winner_loses_its_rank_has_a_leader_among_those_it_has_beaten() {
    let (run, model) = race_of(5);
    let (run, mut records) = raced(run, &model, (&TRUTH, 0.01), 1);
    let race = run.plan.race.as_ref().unwrap();
    assert!(ENGINES[1..].iter().all(|engine| race.beaten("fill", engine).is_some()), "{race:?}");
    let is_last_of_a = |record: &&mut Record| record.trial.engine == "a" && record.trial.repetition == 5;
    let last = records.iter_mut().find(is_last_of_a).unwrap();
    last.phases.clear();
    last.outcome = Outcome::Crashed { signal: "SIGSEGV".into(), stderr: Vec::new(), suspects: None };
    let summary = Summary::new(&run, records);
    let cells = &summary.phases[0].groups[0].cells;
    let (ranked, others): (Vec<&Cell>, Vec<&Cell>) = cells.iter().partition(|cell| cell.rank.is_some());
    assert_eq!((ranked.len(), others.len(), others[0].engine.as_str()), (5, 1, "a"));
    assert!(ranked.iter().all(|cell| cell.beaten));
    let leaders: Vec<bool> = ranked.iter().map(|cell| cell.leader).collect();
    assert!(leaders[0] && ranked[0].rank.is_some_and(|rank| rank.best == 1), "{leaders:?}");
    // b, c and d are alike, and faster than e and f.
    assert!(ranked.iter().filter(|cell| ["e", "f"].contains(&&*cell.engine)).all(|cell| !cell.leader));
}

#[test]
fn the_true_best_is_left_out_in_at_most_as_many_runs_as_the_error_says() {
    const RUNS: u64 = 60;
    let (run, model) = race_of(5);
    let truth: Truth = [[1e3; 6]; 5];
    let mut lost = 0;
    for seed in 1..=RUNS {
        let (run, _) = raced(run.clone(), &model, (&truth, 0.2), seed);
        let looks = &run.plan.race.as_ref().unwrap().looks;
        // All are alike, so that each is the best.
        lost += u32::from(looks.iter().any(|look| {
            look.tables.iter().any(|table| table.beaten.iter().any(|beaten| beaten.engine == "a"))
        }));
    }
    // 5 % of 60 are 3; more than 8 have a chance of less than 1 %.
    assert!(lost <= 8, "{lost} of {RUNS} runs, seeds 1 to {RUNS}");
}
