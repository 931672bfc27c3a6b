//! Tests of the state of a run, as ticks, looks and records change it, and of the texts made from it.

use super::state::{Fate, State, rate_text, seconds_text};
use super::*;
use kvdyno_core::results::fixture;
use kvdyno_core::results::{Cause, Outcome, StepKind};
use kvdyno_core::runner::Doing;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
        level: record.phases[0].durability_effective.unwrap(),
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
    let level = first.phases[0].durability_effective.unwrap();
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
fn each_request_to_stop_is_answered_once() {
    let stops =
        [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (2, 0)].map(|(seen, told)| super::answer(seen, told));
    let [none, first, told, second, both, at_once] = stops;
    assert_eq!((none, told, both), (None, None, None));
    assert!(
        first.is_some_and(|text| text.starts_with("stopping after this trial; Ctrl-C again")),
        "{first:?}"
    );
    assert_eq!((second, at_once), (Some("stopping now"), Some("stopping now")));
}

#[test]
fn the_bar_begins_with_the_time_left() {
    let mut state = State::new(&fixture::run());
    assert!(lines::text(&state).ends_with(" left"), "{}", lines::text(&state));
    let trial = fixture::run().plan.trials[0].clone();
    state.trial_begins(&trial, 0);
    let text = lines::text(&state);
    let (left, rest) = text.split_once(" left: ").unwrap_or_else(|| panic!("{text}"));
    assert!(left.len() < 15 && rest.starts_with(&trial.engine), "{text}");
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

/// A clock that a test sets, in milliseconds.
fn simulated(state: &mut State) -> Arc<AtomicU64> {
    let (began, clock) = (state.began, Arc::new(AtomicU64::new(0)));
    let reader = Arc::clone(&clock);
    state.clock = Box::new(move || began + Duration::from_millis(reader.load(Ordering::Relaxed)));
    clock
}

#[test]
fn the_time_left_depends_on_the_current_engine() {
    let run = fixture::run();
    let mut state = State::new(&run);
    let clock = simulated(&mut state);
    // Trials of one engine took a minute each, trials of the others a second.
    for mut record in fixture::records().into_iter().filter(|record| record.trial.repetition == 1) {
        let seconds = if record.trial.engine == "lmdb" { 60 } else { 1 };
        record.noise.as_mut().unwrap().elapsed_ns = seconds * 1_000_000_000;
        state.earlier(&record);
    }
    let left = |state: &State| state.estimate((state.clock)()).0;
    let waiting = left(&state);
    assert!((120.0..200.0).contains(&waiting), "two more trials of a minute: {waiting}");
    let of = |engine: &str| {
        run.plan.trials.iter().find(|trial| trial.engine == engine && trial.repetition == 2).unwrap()
    };
    for engine in ["lmdb", "redb"] {
        let trial = of(engine);
        state.trial_begins(trial, trial.order as usize);
        assert!(
            (left(&state) - waiting).abs() < 1e-6,
            "{engine}: a trial that has begun has all of its time left"
        );
        clock.fetch_add(500, Ordering::Relaxed);
        let passed = waiting - left(&state);
        // The first step takes longer than before, which may add a little.
        assert!((-0.1..=0.5 + 1e-6).contains(&passed), "{engine}: {passed}");
        state.now = None;
        state.trials[trial.order as usize].fate = Fate::Waiting;
    }
}

#[test]
fn the_first_trial_of_an_engine_is_used_to_estimate_its_others() {
    let run = fixture::run();
    let mut state = State::new(&run);
    let clock = simulated(&mut state);
    let trial = run.plan.trials.iter().find(|trial| trial.engine == "redb").unwrap();
    state.trial_begins(trial, trial.order as usize);
    let name = trial.workload.phases[1].name.clone();
    state.tick(&Tick { phase: name.clone(), done_share: Some(0.0), ..tick(0) });
    let left = |state: &State| state.estimate((state.clock)()).0;
    let plan = left(&state);
    assert!(plan < 30.0, "{plan} s by the plan");
    // Half of the phase took 30 s, so the other half and two further runs of a minute each are left.
    clock.store(30_000, Ordering::Relaxed);
    state.tick(&Tick { phase: name, done_share: Some(0.5), ..tick(1) });
    let left = left(&state);
    assert!((150.0..150.0 + 3.0 * plan).contains(&left), "{left} s, and {plan} s by the plan");
}

#[test]
fn the_line_of_a_trial_has_its_place_its_time_and_the_time_left() {
    let mut state = state();
    let clock = simulated(&mut state);
    // Again, at the simulated time.
    state.trial_begins(&fixture::run().plan.trials[2], 2);
    clock.store(3_000, Ordering::Relaxed);
    let ended = lines::Ended::of(&state).expect("a trial is running");
    let record = fixture::records().remove(2);
    let failure = state.trial_ended(&record);
    let line = ended.line(&state, &record, failure);
    let trial = &record.trial;
    let text = format!("  3/21  {} quick run {}: 3.0 s, ", trial.engine, trial.repetition);
    assert!(line.contains(&text) && line.ends_with(" left"), "{line}");
    let failed = ended.line(&state, &record, Some("fjall quick run 2: crashed: SIGABRT".to_string()));
    assert!(failed.contains("  3/21  fjall quick run 2: crashed: SIGABRT, "), "{failed}");
    let outcome = Outcome::Failed { cause: Cause::Skipped, text: "run 1 was too slow".into() };
    let skipped = ended.line(&state, &Record { outcome, ..record.clone() }, None);
    let text = format!("  3/21  {} quick run {}: skipped, ", trial.engine, trial.repetition);
    assert!(skipped.contains(&text), "{skipped}");
}

#[test]
fn trials_that_are_skipped_need_no_time() {
    let run = fixture::run();
    let mut state = State::new(&run);
    let trial = run.plan.trials.iter().find(|trial| trial.engine == "redb").unwrap();
    state.trial_begins(trial, trial.order as usize);
    let mut record = fixture::record(trial.clone());
    let left = |state: &State| state.estimate((state.clock)()).0;
    let before = left(&state);
    let text = "loaded 5 of 2,000 keys in 1 s".to_string();
    record.outcome = Outcome::Failed { cause: Cause::TooSlow, text };
    let line = state.trial_ended(&record).unwrap();
    assert!(line.contains("too-slow: loaded 5 of 2,000 keys in 1 s; its other runs are skipped"), "{line}");
    let others = run.plan.trials.iter().filter(|other| other.is_cell_of(trial)).count();
    assert!(others > 1 && left(&state) < before);
    record.outcome = Outcome::Failed { cause: Cause::Skipped, text: "run 1 was too slow".into() };
    state.trial_begins(trial, trial.order as usize);
    assert_eq!(state.trial_ended(&record), None, "the run has said that they are skipped");
}

/// A simulated run: the durations of all stages of each of its trials, in seconds.
struct Simulation {
    run: kvdyno_core::results::Run,
    stages: Vec<Vec<f64>>,
}

/// A run of engines that load at different rates and need different times for steps; trials of an engine differ a little.
fn simulation(engines: usize, repetitions: u32, seed: u64) -> Simulation {
    // A linear congruential generator is random enough here.
    let mut random = seed;
    let mut between = |low: f64, high: f64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low * (high / low).powf((random >> 40) as f64 / (1_u64 << 24) as f64)
    };
    let mut run = fixture::run();
    let any = run.plan.trials.remove(1);
    let mut workload = Arc::clone(&any.workload);
    let timed = Arc::make_mut(&mut workload);
    (timed.keys, timed.load_seconds) = (200_000, Some(8.0));
    timed.phases.iter_mut().filter(|phase| !phase.each_key).for_each(|phase| phase.seconds = 0.2);
    let mut usual: Vec<Vec<f64>> = Vec::new();
    for _ in 0..engines {
        let mut stages = vec![between(0.01, 0.5)];
        for phase in &workload.phases {
            let is_fill = phase.each_key;
            let fill = between(0.05, workload.load_seconds.unwrap() * 0.8);
            // Some phases end by their number of ops.
            let share = between(0.5, 1.5).min(1.0);
            stages.extend([if is_fill { fill } else { phase.seconds * share }, between(0.001, 0.3)]);
        }
        let last = stages.len() - 1;
        stages[last] += between(0.1, 2.0);
        usual.push(stages);
    }
    run.plan.trials.clear();
    let mut stages = Vec::new();
    for repetition in 1..=repetitions {
        for (engine, usual) in usual.iter().enumerate() {
            let order = run.plan.trials.len() as u32;
            run.plan.trials.push(kvdyno_core::results::Trial {
                id: format!("{order}"),
                order,
                repetition,
                engine: format!("engine-{engine}"),
                workload: Arc::clone(&workload),
                ..any.clone()
            });
            stages.push(usual.iter().map(|seconds| seconds * between(0.9, 1.1)).collect());
        }
    }
    Simulation { run, stages }
}

/// A look at a simulated run; times are in seconds.
struct Seen {
    /// The position of the running trial.
    place: usize,
    shown: f64,
    estimate: f64,
    truth: f64,
    /// The time since all engines have had a trial.
    known_for: Option<f64>,
}

/// What is displayed during a simulated run.
fn displayed(simulation: &Simulation, engines: usize) -> Vec<Seen> {
    const LOOK_MS: u64 = 200;
    let mut state = State::new(&simulation.run);
    let clock = simulated(&mut state);
    let whole: f64 = simulation.stages.iter().flatten().sum();
    let known_at: f64 = simulation.stages.iter().take(engines).flatten().sum();
    let (mut seen, mut now, mut changes) = (Vec::new(), 0.0, 0);
    for (place, (trial, stages)) in simulation.run.plan.trials.iter().zip(&simulation.stages).enumerate() {
        state.trial_begins(trial, place);
        for (stage, seconds) in stages.iter().enumerate() {
            changes += 1;
            let (began, turn) = (now, (stage % 2 == 1).then_some(stage / 2));
            now += seconds;
            let show = |state: &mut State, at_ms: u64| {
                let at = at_ms as f64 / 1e3;
                clock.store(at_ms, Ordering::Relaxed);
                let turns = &state.now.as_ref().unwrap().turns;
                let wanted = turn.and_then(|turn| turns[turn].wanted());
                let ops = wanted.map_or(0.0, |wanted| wanted as f64 * (at - began) / seconds) as u64;
                state.snapshot(&snapshot(changes, turn, vec![ops; usize::from(turn.is_some())]));
            };
            show(&mut state, (began * 1e3) as u64 + 1);
            let looks = (began * 1e3) as u64 / LOOK_MS + 1..=(now * 1e3) as u64 / LOOK_MS;
            for at_ms in looks.map(|look| look * LOOK_MS) {
                show(&mut state, at_ms);
                let at = at_ms as f64 / 1e3;
                seen.push(Seen {
                    place,
                    shown: state.seconds_left().unwrap(),
                    estimate: state.estimate((state.clock)()).0,
                    truth: whole - at,
                    known_for: (place >= engines).then_some(at - known_at),
                });
            }
        }
        clock.store((now * 1e3) as u64, Ordering::Relaxed);
        state.trial_ended(&fixture::record(trial.clone()));
    }
    assert_eq!(state.seconds_left(), Some(0.0));
    seen
}

/// The maximum error of the estimate by its rule: 15 % and 3 s, and for an engine without a complete trial the difference of
/// each of its stages from any of those that the estimate is a mean of: the plan's, and those of the engines before it.
fn allowed(simulation: &Simulation, engines: usize, place: usize, truth: f64) -> f64 {
    let planned = left::Stages::planned(&simulation.run.plan.trials[0]);
    let difference = |(stage, seconds): (usize, &f64)| {
        let before = simulation.stages.iter().take(place.min(engines)).map(|other| other[stage]);
        before.chain([planned.of(stage)]).map(|known| (known - seconds).abs()).fold(0.0, f64::max)
    };
    let unknown =
        simulation.stages.iter().enumerate().skip(place).filter(|(trial, _)| trial % engines >= place);
    let unknown: f64 = unknown.map(|(_, own)| own.iter().enumerate().map(difference).sum::<f64>()).sum();
    0.15 * truth + 3.0 + unknown
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_displayed_time_left_is_near_the_truth_and_never_zero_while_work_remains(
        engines in 2_usize..12, repetitions in 2_u32..6, seed in any::<u64>(),
    ) {
        let simulation = simulation(engines, repetitions, seed);
        let seen = displayed(&simulation, engines);
        for (look, Seen { place, shown, estimate, truth, known_for }) in seen.iter().enumerate() {
            prop_assert!(*shown >= 1.0, "{} s shown, {} s left", shown, truth);
            let is_near = |seconds: f64, bound: f64| (seconds - truth).abs() <= bound;
            let bound = allowed(&simulation, engines, *place, *truth);
            prop_assert!(is_near(*estimate, bound), "look {}: {} s, {} s left", look, estimate, truth);
            // The display has followed the estimate by then.
            if known_for.is_some_and(|seconds| seconds > 12.0) {
                prop_assert!(is_near(*shown, 0.15 * truth + 4.0), "look {}: {} s, {} s left", look, shown, truth);
            }
        }
        for pair in seen.windows(2) {
            let (before, after) = (pair[0].shown, pair[1].shown);
            let is_smooth = (after - before).abs() <= 0.1 * before + 1.0;
            prop_assert!(is_smooth, "from {} s to {} s at a look", before, after);
        }
    }
}

#[test]
fn the_displayed_time_left_is_seldom_wrong_by_much_of_the_run_even_before_all_engines_are_known() {
    // Without knowledge of the engines, no estimate is near the truth for all of these runs; they are the same in each test.
    let mut errors: Vec<f64> = (1..=200_u64)
        .map(|seed| {
            let (engines, repetitions) = (2 + seed as usize % 10, 2 + seed as u32 / 10 % 4);
            let simulation = simulation(engines, repetitions, seed);
            let run: f64 = simulation.stages.iter().flatten().sum();
            let seen = displayed(&simulation, engines);
            seen.iter().map(|look| ((look.shown - look.truth).abs() - 3.0) / run).fold(0.0, f64::max)
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    let (median, p90, p99) = (errors[100], errors[180], errors[198]);
    assert!(median <= 0.25 && p90 <= 0.40 && p99 <= 0.75, "of the run: {median}, {p90}, {p99}");
}

#[test]
fn a_changed_plan_keeps_what_has_ended_and_counts_only_its_own_trials() {
    let mut run = fixture::run();
    let mut state = State::new(&run);
    let records = fixture::records();
    for record in &records[..2] {
        state.trial_begins(&record.trial, record.trial.order as usize);
        state.trial_ended(record);
    }
    run.plan.trials.remove(5);
    state.replan(&run);
    assert_eq!((state.done(), state.trials.len()), (2, run.plan.trials.len()));
    // Trials after the one that is skipped are found by their number in the plan.
    let later = records.iter().find(|record| record.trial.order == 7).unwrap();
    state.earlier(later);
    assert_eq!((state.done(), state.trials[6].fate == Fate::Waiting), (3, false));
}
