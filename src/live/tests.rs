//! Tests of the state of a run, as ticks, looks and records change it, and of the texts made from it.

use super::state::{Fate, State, rate_text, seconds_text};
use super::*;
use crate::results::fixture;
use crate::results::{Cause, Outcome, StepKind};
use crate::runner::Doing;
use std::sync::Arc;

/// The state of the fixture's run during its third trial.
pub(super) fn state() -> State {
    let mut run = fixture::run();
    let mut state = State::new(&run);
    for record in fixture::records().into_iter().take(2) {
        state.trial_begins(&record.trial, record.trial.order as usize);
        state.trial_ended(&record);
    }
    let trial = run.plan.trials.remove(2);
    state.trial_begins(&trial, 2);
    state
}

/// A tick of the third trial's first phase after `ops`.
pub(super) fn tick(ops: u64) -> Tick {
    let trial = fixture::run().plan.trials.remove(2);
    let phase = &trial.workload.phases[0];
    let record = fixture::records().remove(2);
    Tick {
        phase: phase.name.clone(),
        round: None,
        ops,
        level: record.phases[0].durability_in_force.unwrap(),
        interval_ns: 1_000_000_000,
        ops_per_second: Some(1_234_567.0),
        p50_ns: Some(600),
        p99_ns: Some(1_500),
        service_ns: vec![(512, 700), (640, 290), (1_024, 9), (80_000, 1)],
        done_share: Some(0.25),
        rss_bytes: Some(120 << 20),
        disk_bytes: Some(3 << 20),
        cpu_ns: Some(990_000_000),
        written_bytes: Some(5 << 20),
    }
}

fn snapshot(changes: u64, place: Option<usize>, threads: Vec<u64>) -> Snapshot {
    Snapshot {
        changes,
        doing: if place.is_some() { Doing::Phase } else { Doing::Step(StepKind::Settle) },
        place,
        round: None,
        threads,
    }
}

#[test]
fn looks_provide_the_rate_between_ticks_and_the_step_between_phases() {
    let mut state = state();
    state.snapshot(&snapshot(1, Some(0), vec![100, 100]));
    std::thread::sleep(std::time::Duration::from_millis(20));
    state.snapshot(&snapshot(1, Some(0), vec![1_100, 1_100]));
    let now = state.now.as_ref().unwrap();
    assert_eq!((now.ops, now.threads, now.phase_text()), (2_200, 2, "fill".to_string()));
    let rate = now.rate.unwrap();
    assert!(rate > 0.0 && rate <= 2_000.0 / 0.02, "{rate}");
    state.snapshot(&snapshot(2, None, vec![]));
    let now = state.now.as_ref().unwrap();
    assert_eq!((now.phase_text(), now.rate, now.ops), ("settle".to_string(), None, 0));
    state.snapshot(&snapshot(3, Some(1), vec![7]));
    assert_eq!(state.now.as_ref().unwrap().phase_text(), "read");
}

#[test]
fn ticks_alone_are_enough_if_processes_share_no_memory() {
    let mut state = state();
    state.tick(&tick(500));
    let now = state.now.as_ref().unwrap();
    assert_eq!((now.ops, now.phase_share, now.rate), (500, Some(0.25), Some(1_234_567.0)));
    assert_eq!((now.rows.len(), now.service_ns[&512], now.p99_text()), (1, 700, "1.5 us".to_string()));
    state.tick(&tick(900));
    assert_eq!(state.now.as_ref().unwrap().service_ns[&512], 1_400, "the times of a phase are added up");
    let other = Tick { phase: "read".into(), ..tick(5) };
    state.tick(&other);
    assert_eq!(state.now.as_ref().unwrap().service_ns[&512], 700, "each phase has its own times");
    assert_eq!(state.now.as_ref().unwrap().rows.len(), 3, "the series is that of the trial");
    state.tick(&Tick { phase: "sweep by get".into(), ..tick(5) });
    let now = state.now.as_ref().unwrap();
    assert_eq!((now.phase_text(), now.turn, now.rows.len()), ("sweep".to_string(), None, 3));
}

#[test]
fn the_share_of_a_run_never_decreases_within_a_trial() {
    let mut state = state();
    let mut last = state.share();
    let turns = state.now.as_ref().unwrap().turns.len();
    for (changes, place) in (0..turns).flat_map(|place| [(place * 2 + 1, None), (place * 2 + 2, Some(place))])
    {
        let threads = if place.is_some() { vec![1] } else { vec![] };
        state.snapshot(&snapshot(changes as u64, place, threads));
        if let Some(place) = place {
            let name = fixture::run().plan.trials[2].workload.phases[place].name.clone();
            state.tick(&Tick { phase: name, done_share: Some(1.0), ..tick(2) });
        }
        assert!(state.share() >= last, "{} after {last} at {place:?}", state.share());
        last = state.share();
    }
    assert!(last <= 3.0 / state.trials.len() as f64 + 1e-9);
}

#[test]
fn the_rank_so_far_counts_the_engines_that_are_ahead_at_the_same_level() {
    let records: Vec<_> =
        fixture::records().into_iter().filter(|record| record.outcome == Outcome::Ok).collect();
    let mut state = State::new(&fixture::run());
    for record in &records {
        state.earlier(record);
    }
    let first = &records[0];
    let trial = first.trial.clone();
    state.trial_begins(&trial, trial.order as usize);
    let level = first.phases[0].durability_in_force.unwrap();
    let rate = |state: &mut State, rate: f64| {
        state.tick(&Tick { level, ops_per_second: Some(rate), ..tick(1) });
        state.place()
    };
    let (best, of) = rate(&mut state, 1e12).unwrap();
    let (worst, _) = rate(&mut state, 1e-3).unwrap();
    assert_eq!((best, worst), (1, of));
    assert!(of > 2, "{of}");
    state.trials[trial.order as usize].is_floor = true;
    assert_eq!(rate(&mut state, 1e12), None, "the floor has no rank");
}

#[test]
fn the_plan_counts_trials_by_state() {
    let mut state = State::new(&fixture::run());
    fixture::records().iter().for_each(|record| state.earlier(record));
    let wrong = state.count(&[Fate::Wrong]);
    let failed = state.count(&[Fate::Failed]);
    assert_eq!((wrong, failed, state.count(&[Fate::Waiting]), state.done()), (3, 1, 1, 20));
    let planned = state.seconds_left().unwrap();
    assert!(planned > 0.0 && planned < 10.0, "{planned}: the plan has one short trial left");
}

#[test]
fn hostile_names_are_harmless_in_all_output() {
    let evil = "\u{1b}]0;title\u{7}\u{202e}\u{9b}31m\r\nx";
    let mut run = fixture::run();
    run.id = evil.into();
    for trial in &mut run.plan.trials {
        trial.engine = evil.into();
        let workload = Arc::make_mut(&mut trial.workload);
        workload.name = evil.into();
        workload.phases[0].name = evil.into();
        trial.options = vec![(evil.into(), evil.into())];
    }
    let mut state = State::new(&run);
    state.trial_begins(&run.plan.trials[0], 0);
    state.tick(&Tick { phase: evil.into(), ..tick(1) });
    let mut record = fixture::record(run.plan.trials[0].clone());
    record.outcome = Outcome::Failed { cause: Cause::EngineError, text: evil.into() };
    let now = state.now.as_ref().unwrap();
    let texts = [state.run.clone(), state.trial_text(), now.phase_text(), now.id.clone()];
    let line = state.trial_ended(&record).unwrap();
    for text in texts.iter().chain([&line]) {
        assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}");
    }
    let event = json::ascii(&serde_json::json!({ "text": evil }).to_string());
    assert!(event.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{event:?}");
    let read: serde_json::Value = serde_json::from_str(&event).unwrap();
    assert_eq!(read["text"], evil);
}

#[test]
fn figures_have_units_and_unknown_ones_are_a_dash() {
    assert_eq!(rate_text(Some(1_234_567.0)), "1.23 M ops/s");
    assert_eq!(rate_text(Some(1_234.0)), "1.2 k ops/s");
    assert_eq!(rate_text(Some(12.3)), "12 ops/s");
    assert_eq!(rate_text(None), "- ops/s");
    assert_eq!(seconds_text(Some(59.9)), "59 s");
    assert_eq!(seconds_text(Some(200.0)), "3 min 20 s");
    assert_eq!(seconds_text(Some(7_260.0)), "2 h 1 min");
    assert_eq!(seconds_text(None), "-");
}

#[test]
fn the_time_left_depends_on_the_current_engine() {
    let run = fixture::run();
    let mut state = State::new(&run);
    // Trials of one engine took a minute each, trials of the others a second.
    for mut record in fixture::records().into_iter().filter(|record| record.trial.repetition == 1) {
        let seconds = if record.trial.engine == "lmdb" { 60 } else { 1 };
        record.noise.as_mut().unwrap().elapsed_ns = seconds * 1_000_000_000;
        state.earlier(&record);
    }
    let left = |state: &State| state.seconds_left().unwrap();
    let waiting = left(&state);
    assert!((120.0..200.0).contains(&waiting), "two more trials of a minute: {waiting}");
    let of = |engine: &str| {
        run.plan.trials.iter().find(|trial| trial.engine == engine && trial.repetition == 2).unwrap()
    };
    for (engine, least) in [("lmdb", 50.0), ("redb", 0.5)] {
        let trial = of(engine);
        state.trial_begins(trial, trial.order as usize);
        let others: f64 = waiting - if engine == "lmdb" { 60.0 } else { 1.0 };
        let this = left(&state) - others;
        assert!((least - 1.0..=60.5).contains(&this), "{engine}: {this}");
        assert!(engine == "lmdb" || this < 5.0, "{engine}: {this}");
        state.now = None;
        state.trials[trial.order as usize].fate = Fate::Waiting;
    }
}

#[test]
fn the_first_trial_of_an_engine_is_used_to_estimate_its_others() {
    let run = fixture::run();
    let mut state = State::new(&run);
    let trial = run.plan.trials.iter().find(|trial| trial.engine == "redb").unwrap();
    state.trial_begins(trial, trial.order as usize);
    let name = trial.workload.phases[1].name.clone();
    state.tick(&Tick { phase: name, done_share: Some(0.5), ..tick(1) });
    let plan = state.seconds_left().unwrap();
    assert!(plan < 30.0, "{plan} s by the plan");
    // Half of the phase took 30 s, so the other half and two further runs of a minute each are left.
    state.now.as_mut().unwrap().began_earlier_by(std::time::Duration::from_secs(30));
    let left = state.seconds_left().unwrap();
    assert!((150.0..150.0 + 3.0 * plan).contains(&left), "{left} s, and {plan} s by the plan");
}

#[test]
fn the_line_of_a_trial_has_its_place_its_time_and_the_time_left() {
    let mut state = state();
    state.now.as_mut().unwrap().began_earlier_by(std::time::Duration::from_secs(3));
    let ended = lines::Ended::of(&state).expect("a trial is running");
    let record = fixture::records().remove(2);
    let failure = state.trial_ended(&record);
    let line = ended.line(&state, failure);
    let trial = &record.trial;
    let text = format!("  3/21  {} quick run {}: 3.0 s, ", trial.engine, trial.repetition);
    assert!(line.contains(&text) && line.ends_with(" left"), "{line}");
    let failed = ended.line(&state, Some("fjall quick run 2: crashed: SIGABRT".to_string()));
    assert!(failed.contains("  3/21  fjall quick run 2: crashed: SIGABRT, "), "{failed}");
}
