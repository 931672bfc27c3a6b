//! Whether this machine can send requests at the rates of a run: measured before the run, with an engine that does nothing.

use super::error::CliError;
use kvdyno_core::engine::Registry;
use kvdyno_core::generator::{Course, Rate};
use kvdyno_core::results::{PhaseRecord, Plan, Trial};
use kvdyno_core::runner::run_trial;
use kvdyno_core::workload::Phase;
use kvdyno_measure::Clock;
use kvdyno_measure::text::{counted, grouped};
use std::sync::Arc;

/// Seconds of each phase with a rate.
const SECONDS: f64 = 0.2;
/// The most keys of the calibration, and ops of its other phases.
const KEYS: u64 = 10_000;
/// A sender that sends at least this part of the requests keeps the rate; the others were due in its last moments.
const KEPT: f64 = 0.99;

/// Refuses rates that the load generator does not reach on this machine.
pub(super) fn check(plan: &Plan, registry: &Registry) -> Result<(), CliError> {
    let mut seen: Vec<&Trial> = Vec::new();
    for trial in &plan.trials {
        let is_new = seen.iter().all(|one| one.workload.phases != trial.workload.phases);
        if is_new && trial.workload.phases.iter().any(|phase| phase.rate.is_some()) {
            check_trial(trial, registry)?;
            seen.push(trial);
        }
    }
    Ok(())
}

fn check_trial(trial: &Trial, registry: &Registry) -> Result<(), CliError> {
    let failed = |error: String| CliError::failed(format!("cannot calibrate the load generator: {error}"));
    let engine = registry.engine("null").map_err(|_| failed("the engine null is not built in".into()))?;
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let trial = calibration(trial, engine.name());
    let record = run_trial(&trial, engine, folder.path(), Clock::calibrate(), &mut |_| {}, &|_| Ok(()))
        .map_err(|error| failed(error.to_string()))?;
    record.phases.iter().find_map(too_fast).map_or(Ok(()), Err)
}

/// The trial with the null engine, few keys, and short phases at their highest rates.
fn calibration(trial: &Trial, engine: &str) -> Trial {
    let mut workload = (*trial.workload).clone();
    workload.keys = workload.keys.min(KEYS);
    workload.rounds = workload.rounds.min(1);
    workload.faults.clear();
    workload.memory_bytes = None;
    for phase in &mut workload.phases {
        phase.warmup_seconds = 0.0;
        phase.drop_caches_before = false;
        match &phase.rate {
            Some(rate) => {
                let highest = rate.highest() / f64::from(trial.load_generators.max(1));
                let course = Course::Constant(highest);
                phase.rate = Some(Rate { is_poisson: rate.is_poisson, course });
                (phase.seconds, phase.ops, phase.each_key) = (SECONDS, 0, false);
            }
            None if phase.each_key => {}
            None => (phase.seconds, phase.ops) = (0.0, phase.ops.clamp(1, KEYS)),
        }
    }
    Trial {
        id: "calibration".into(),
        engine: engine.into(),
        options: Vec::new(),
        workload: Arc::new(workload),
        placement: Default::default(),
        reused: false,
        is_floor: true,
        load_generators: 1,
        nodes_option: None,
        load_generator: None,
        ..trial.clone()
    }
}

/// The refusal of a phase whose rate was not kept; none: it was.
fn too_fast(record: &PhaseRecord) -> Option<CliError> {
    let Phase { name, rate, threads, .. } = &record.phase;
    let (rate, arrivals) = (rate.as_ref()?, record.arrivals.as_ref()?);
    if arrivals.sent as f64 >= KEPT * arrivals.due as f64 {
        return None;
    }
    let reached = arrivals.sent as f64 / (record.elapsed_ns as f64 / 1e9);
    let text = format!(
        "phase {name}: {} requests/s cannot be sent from this machine: with {} and an engine that does nothing, it sends {} a \
         second",
        grouped(rate.highest().round() as u64),
        counted((*threads).into(), "thread", "threads"),
        grouped(reached.round() as u64)
    );
    Some(
        CliError::usage(text)
            .hint("ask for a lower --rate, or for more --threads if the machine has idle CPUs"),
    )
}
