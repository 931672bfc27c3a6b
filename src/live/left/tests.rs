//! Tests of the estimates for one trial, of what is learnt from trials, and of the displayed time.

use super::*;
use kvdyno_core::results::fixture;

fn expected() -> Stages {
    Stages(vec![1.0, 10.0, 1.0, 20.0, 0.0, 5.0, 2.0])
}

fn at(so_far: &[f64], share: Option<f64>) -> At {
    At { so_far: Stages(so_far.to_vec()), stage: so_far.len() - 1, share, limit: None }
}

fn left(so_far: &[f64], share: Option<f64>) -> f64 {
    expected().left(&at(so_far, share)).1
}

#[test]
fn the_time_left_decreases_with_stages_and_their_progress() {
    assert_eq!(left(&[0.0], None), 39.0);
    // Without the progress of the phase, its last duration counts.
    assert_eq!(left(&[1.0, 3.0], None), 7.0 + 28.0);
    // Half of it took 15 s, so it is slower than the last time.
    assert_eq!(left(&[1.0, 15.0], Some(0.5)), 15.0 + 28.0);
    // A tenth of it took 2 s: halfway between the last time and the rate so far.
    assert_eq!(left(&[1.0, 2.0], Some(0.1)), 15.0 - 2.0 + 28.0);
    assert_eq!(left(&[1.0, 10.0, 1.0, 20.0, 0.0, 4.0], Some(0.8)), 1.0 + 2.0);
    assert_eq!(left(&[1.0, 10.0, 1.0, 20.0, 0.0, 5.0, 0.5], None), 1.5);
}

#[test]
fn a_stage_that_is_overdue_still_has_time_left_and_a_limit_ends_it() {
    for here in [10.0, 20.0, 300.0] {
        let (in_phase, all) = expected().left(&at(&[1.0, here], None));
        assert!(in_phase >= here / 10.0 && all >= in_phase + 28.0, "{in_phase} of {all} after {here}");
    }
    let limited = At { limit: Some(8.0), ..at(&[1.0, 6.0], Some(0.01)) };
    assert_eq!(expected().left(&limited).0, 2.0);
    // More stages than known.
    assert_eq!(expected().left(&at(&[0.0; 20], None)), (0.0, 0.0));
}

#[test]
fn an_engine_takes_as_long_as_in_its_earlier_trials_and_others_count_until_then() {
    let records = fixture::records();
    let ok = records.iter().find(|record| record.outcome == Outcome::Ok && !record.trial.is_floor).unwrap();
    let planned = Stages(vec![0.0, 4.0]);
    let mut times = Times::default();
    let total = |times: &Times, engine: &str| {
        times.expected("quick", engine, &planned, &times.typical("quick")).total()
    };
    assert_eq!(total(&times, "slow"), 4.0);
    times.take(ok, "quick", "slow", Some(Stages(vec![2.0, 50.0])));
    times.take(ok, "quick", "slow", Some(Stages(vec![0.0, 60.0])));
    times.take(ok, "quick", "fast", Some(Stages(vec![0.0, 2.0])));
    times.take(ok, "other", "fast", Some(Stages(vec![0.0, 900.0])));
    assert_eq!((total(&times, "slow"), total(&times, "fast")), (56.0, 2.0));
    // The plan counts as two engines.
    let of_new = (56.0 + 2.0 + 2.0 * 4.0) / 4.0;
    assert!((total(&times, "new") - of_new).abs() < 1e-9);
    assert_eq!(times.expected("third", "new", &planned, &times.typical("third")), planned);
    let failed = |cause: Cause| {
        let outcome = Outcome::Failed { cause, text: String::new() };
        Record { outcome, ..ok.clone() }
    };
    times.take(&failed(Cause::EngineError), "quick", "broken", Some(Stages(vec![0.0, 0.5])));
    assert_eq!(total(&times, "broken"), 0.5, "its other trials are likely to fail too");
    times.take(&failed(Cause::TooSlow), "quick", "slowest", Some(Stages(vec![0.0, 30.0])));
    times.take(&failed(Cause::Skipped), "quick", "slowest", Some(Stages(vec![])));
    assert_eq!(total(&times, "slowest"), 0.0, "its other trials are skipped");
    assert!((total(&times, "new") - of_new).abs() < 1e-9, "neither is typical");
    assert!(times.has_seen("quick", "slowest") && !times.has_seen("quick", "new"));
}

#[test]
fn the_plan_and_a_record_have_a_stage_for_each_phase_and_the_steps_around_it() {
    let mut record = fixture::records().into_iter().find(|record| record.outcome == Outcome::Ok).unwrap();
    let phases = record.trial.workload.phases.len();
    let planned = Stages::planned(&record.trial);
    assert_eq!(planned.0.len(), 2 * phases + 1);
    assert!(planned.total() > record.trial.workload.rest_seconds());
    assert_eq!(Stages::recorded(&record), None, "the fixture has no durations of trials");
    record.noise.as_mut().unwrap().elapsed_ns = 60_000_000_000;
    let recorded = Stages::recorded(&record).unwrap();
    assert_eq!(recorded.0.len(), 2 * phases + 1);
    assert!((recorded.total() - 60.0).abs() < 1e-6, "{recorded:?}");
    assert_eq!(recorded.of(1), record.phases[0].elapsed_ns as f64 / 1e9);
}

#[test]
fn the_displayed_time_counts_down_and_follows_new_estimates_smoothly() {
    let began = Instant::now();
    let after = |seconds: f64| began + Duration::from_secs_f64(seconds);
    let mut shown = Shown::default();
    assert_eq!(shown.follow(began, 100.0, 0.0), 100.0);
    assert!((shown.follow(after(1.0), 99.0, 0.0) - 99.0).abs() < 1e-9);
    // The estimate doubles.
    let first = shown.follow(after(1.2), 200.0, 0.0);
    assert!((99.0..110.0).contains(&first), "{first}");
    let later = shown.follow(after(30.0), 170.0, 0.0);
    assert!((165.0..=170.0).contains(&later), "{later}");
    assert_eq!(shown.follow(after(30.1), 0.0, 180.0), 180.0, "the current stage alone needs more");
    for second in 31..400 {
        assert!(shown.follow(after(f64::from(second)), 0.0, 0.0) >= LEAST_LEFT);
    }
}

#[test]
fn a_later_trial_of_a_race_has_fewer_turns_of_other_lengths() {
    let stages = Stages(vec![1.0, 10.0, 2.0, 20.0, 3.0, 5.0, 4.0]);
    assert_eq!(stages.clone().with_lengths(&[1.0, 1.0, 1.0]), stages);
    assert_eq!(stages.with_lengths(&[1.0, 3.5]), Stages(vec![1.0, 10.0, 2.0, 70.0, 4.0]));
    assert_eq!(Stages::default().with_lengths(&[1.0]), Stages::default());
}
