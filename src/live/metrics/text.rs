//! The metrics in Prometheus's text exposition format, version 0.0.4. Unknown values are omitted.

use crate::live::state::{Fate, State};
use std::fmt::Write;

/// Writes metric families.
#[derive(Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Adds a gauge with one sample, if its value is known.
    fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: Option<f64>) {
        if let Some(value) = value {
            self.family(name, "gauge", help);
            self.sample(name, labels, value);
        }
    }
}

/// Escapes a label value.
pub(super) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// All metrics.
pub(super) fn figures(state: &State) -> String {
    let mut text = Exposition::default();
    text.gauge(
        "kvdyno_info",
        "The run and the version of kvdyno.",
        &[("run", &state.run), ("version", env!("CARGO_PKG_VERSION"))],
        Some(1.0),
    );
    text.family("kvdyno_trials", "gauge", "Planned trials by state.");
    for (fate, name) in [
        (Fate::Waiting, "waiting"),
        (Fate::Running, "running"),
        (Fate::Ok, "ok"),
        (Fate::Failed, "failed"),
        (Fate::Wrong, "wrong_answers"),
    ] {
        text.sample("kvdyno_trials", &[("state", name)], state.count(&[fate]) as f64);
    }
    text.gauge("kvdyno_run_done_ratio", "Share of the run that is done.", &[], Some(state.share()));
    let left = "Estimated time until the run ends.";
    text.gauge("kvdyno_run_left_seconds", left, &[], state.seconds_left());
    trial(&mut text, state);
    results(&mut text, state);
    text.0
}

/// The metrics of the current trial.
fn trial(text: &mut Exposition, state: &State) {
    let Some(now) = &state.now else { return };
    let Some(planned) = state.trials.get(now.place) else { return };
    let (phase, repetition) = (now.phase_text(), planned.repetition.to_string());
    let labels: &[(&str, &str)] = &[
        ("engine", &planned.engine),
        ("workload", &planned.workload),
        ("phase", &phase),
        ("repetition", &repetition),
    ];
    let in_phase = now.turn.is_some();
    if in_phase {
        text.family(
            "kvdyno_phase_ops_total",
            "counter",
            "Ops since the start of the phase, warm-up included.",
        );
        text.sample("kvdyno_phase_ops_total", labels, now.ops as f64);
    }
    text.gauge("kvdyno_ops_per_second", "Ops per second in the last second.", labels, now.rate);
    text.gauge("kvdyno_phase_done_ratio", "Share of the phase that is done.", labels, now.phase_share);
    text.gauge(
        "kvdyno_rank_so_far",
        "Rank of the current rate among the engines measured so far in this phase.",
        labels,
        state.place().map(|(place, _)| place as f64),
    );
    let Some(tick) = now.tick_now() else { return };
    let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
    let name = "kvdyno_service_time_seconds";
    if tick.p50_ns.is_some() {
        text.family(name, "gauge", "Service time in the last second, by quantile.");
        for (quantile, value) in [("0.5", seconds(tick.p50_ns)), ("0.99", seconds(tick.p99_ns))] {
            if let Some(value) = value {
                text.sample(name, &[labels, &[("quantile", quantile)]].concat(), value);
            }
        }
    }
    let number = |figure: Option<u64>| figure.map(|figure| figure as f64);
    text.gauge("kvdyno_rss_bytes", "Resident memory of the trial's process.", labels, number(tick.rss_bytes));
    text.gauge(
        "kvdyno_disk_allocated_bytes",
        "Disk space allocated to the database.",
        labels,
        number(tick.disk_bytes),
    );
    let row = now.rows.back();
    let cpus = row.and_then(|row| row.cpus);
    text.gauge("kvdyno_cpu_seconds_per_second", "CPU time of the trial's process per second.", labels, cpus);
    let written = row.and_then(|row| row.written_per_second);
    let help = "Bytes per second written to storage by the trial.";
    text.gauge("kvdyno_written_bytes_per_second", help, labels, written);
}

/// The medians of the completed trials.
fn results(text: &mut Exposition, state: &State) {
    let name = "kvdyno_result_ops_per_second";
    if !state.results.phases.is_empty() {
        text.family(name, "gauge", "Ops per second in a phase, median over the runs so far.");
    }
    for phase in &state.results.phases {
        for row in &phase.rows {
            let labels = [
                ("engine", &row.engine[..]),
                ("workload", &phase.workload),
                ("phase", &phase.phase),
                ("level", &phase.level),
            ];
            row.rate().iter().for_each(|rate| text.sample(name, &labels, *rate));
        }
    }
}
