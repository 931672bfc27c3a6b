//! The report for services that keep the results of many commits: Bencher, and github-action-benchmark.
//!
//! Both take a name, a number and its ends for each figure, and nothing of runs that failed. The figures are those by which runs
//! are compared. Names have the settings of the phase, as those for benchstat do, so that other settings are another benchmark.

use super::gobench;
use kvdyno_core::results::Run;
use kvdyno_core::results::comparison::Better;
use kvdyno_core::results::figures::{Ends, Figure, compared};
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary};
use kvdyno_measure::text::{counted, plain_text};
use serde::Serialize;
use std::collections::BTreeMap;

/// A figure of a cell in Bencher's metric format.
#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// A figure of a cell in the format for other tools of github-action-benchmark.
#[derive(Serialize)]
struct Benchmark {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// Bencher's metric format: for each cell its figures, each with its ends.
pub(super) fn bencher(summary: &Summary, _: &Run) -> String {
    let mut all: BTreeMap<String, BTreeMap<&str, Metric>> = BTreeMap::new();
    for (phase, cell) in cells(summary) {
        let of_cell = figures(cell).map(|(figure, value, ends)| {
            let (lower_value, upper_value) = (ends.map(|ends| ends.low), ends.map(|ends| ends.high));
            (measure(figure), Metric { value, lower_value, upper_value })
        });
        all.entry(gobench::settings(phase, cell)).or_default().extend(of_cell);
    }
    all.retain(|_, figures| !figures.is_empty());
    json(&all)
}

/// Those of which more is better, for `customBiggerIsBetter`.
pub(super) fn github_bigger(summary: &Summary, run: &Run) -> String {
    github(summary, run, Better::Higher)
}

/// Those of which less is better, for `customSmallerIsBetter`.
pub(super) fn github_smaller(summary: &Summary, run: &Run) -> String {
    github(summary, run, Better::Lower)
}

fn github(summary: &Summary, run: &Run, better: Better) -> String {
    let mut all = Vec::new();
    for (phase, cell) in cells(summary) {
        let runs = counted(cell.counted_runs.into(), "run", "runs");
        for (figure, value, ends) in figures(cell).filter(|(figure, ..)| figure.better == better) {
            all.push(Benchmark {
                name: format!("{} {}", gobench::settings(phase, cell), measure(figure)),
                unit: figure.unit,
                value,
                range: ends.map(|ends| format!("{}..{}", ends.low, ends.high)),
                extra: plain_text(&format!("{runs}; kvdyno {}, run {}", run.tool_version, run.id)),
            });
        }
    }
    json(&all)
}

fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value)
        .expect("it has only texts and finite numbers, which JSON can hold");
    text + "\n"
}

fn cells(summary: &Summary) -> impl Iterator<Item = (&PhaseSummary, &Cell)> {
    summary
        .phases
        .iter()
        .flat_map(|phase| phase.floors.iter().chain(phase.cells()).map(move |cell| (phase, cell)))
}

/// The known figures of a cell.
fn figures(cell: &Cell) -> impl Iterator<Item = (&'static Figure, f64, Option<Ends>)> {
    let known = |figure: &'static Figure| {
        let value = figure.of_cell(cell).filter(|value| value.is_finite())?;
        let ends = figure.ends(cell).filter(|ends| ends.low.is_finite() && ends.high.is_finite());
        Some((figure, value, ends))
    };
    compared().into_iter().filter_map(known).collect::<Vec<_>>().into_iter()
}

/// Its name without the unit: `throughput`, `service_p99`.
fn measure(figure: &Figure) -> &'static str {
    figure.long_name.unwrap_or(figure.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::HOSTILE;
    use kvdyno_core::results::figures::{MEMORY, P99, RATE, figure};
    use kvdyno_core::results::fixture;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn fixed() -> (Run, Summary) {
        (fixture::run(), Summary::new(&fixture::run(), fixture::records()))
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn cell<'a>(summary: &'a Summary, phase: &str, engine: &str) -> &'a Cell {
        let mut all = cells(summary);
        all.find(|(of, cell)| of.name == phase && cell.engine == engine).unwrap().1
    }

    /// Equal but for the last digit, which a parser of JSON may change.
    fn is_near(found: Option<f64>, wanted: Option<f64>) -> bool {
        match (found, wanted) {
            (Some(found), Some(wanted)) => (found - wanted).abs() <= 1e-12 * wanted.abs(),
            (found, wanted) => found == wanted,
        }
    }

    #[test]
    fn bencher_has_a_value_for_each_figure_and_its_ends() {
        let (run, summary) = fixed();
        let all = parsed(&bencher(&summary, &run));
        let own = &all["workload=quick/phase=read/engine=redb/level=power/keys=2000/k=16/v=100/t=1"];
        let redb = cell(&summary, "read", "redb");
        for (name, measure) in [(RATE, "throughput"), (P99, "service_p99"), (MEMORY, "rss")] {
            let figure = figure(name).unwrap();
            let ends = figure.ends(redb);
            for (part, wanted) in [
                ("value", figure.of_cell(redb)),
                ("lower_value", ends.map(|ends| ends.low)),
                ("upper_value", ends.map(|ends| ends.high)),
            ] {
                let found = own[measure].get(part).and_then(Value::as_f64);
                assert!(is_near(found, wanted), "{measure}, {part}: {own}");
            }
        }
        // A read-only phase writes nothing, and an unknown figure is absent.
        assert!(own.get("write_amplification").is_none(), "{own}");
        for (name, measures) in all.as_object().unwrap() {
            assert!((1..=1_024).contains(&name.len()), "Bencher takes no longer name: {name}");
            for (measure, metric) in measures.as_object().unwrap() {
                assert!((1..=64).contains(&measure.len()), "{measure}");
                let metric = metric.as_object().unwrap();
                assert!(metric["value"].is_f64(), "{name}, {measure}");
                assert!(
                    metric.keys().all(|key| ["value", "lower_value", "upper_value"].contains(&key.as_str()))
                );
            }
        }
        let is_absent = |name: &String| name.contains("phase=sync/engine=sled");
        assert!(!all.as_object().unwrap().keys().any(is_absent), "what did not run has no figures: {all}");
    }

    #[test]
    fn github_has_each_figure_once_by_its_direction() {
        let (run, summary) = fixed();
        let (bigger, smaller) =
            (parsed(&github_bigger(&summary, &run)), parsed(&github_smaller(&summary, &run)));
        let names = |all: &Value| -> BTreeSet<String> {
            all.as_array().unwrap().iter().map(|own| own["name"].as_str().unwrap().to_string()).collect()
        };
        assert_eq!(names(&bigger).len(), bigger.as_array().unwrap().len(), "names are unique");
        assert_eq!(names(&smaller).len(), smaller.as_array().unwrap().len(), "names are unique");
        assert!(names(&bigger).iter().all(|name| name.ends_with(" throughput")), "{bigger}");
        assert!(!names(&smaller).iter().any(|name| name.ends_with(" throughput")), "{smaller}");
        let of_all = names(&bigger).len() + names(&smaller).len();
        let measures = parsed(&bencher(&summary, &run));
        let measures: usize =
            measures.as_object().unwrap().values().map(|own| own.as_object().unwrap().len()).sum();
        assert_eq!(of_all, measures, "both services get the same figures");
        let name = "workload=quick/phase=read/engine=redb/level=power/keys=2000/k=16/v=100/t=1 service_p99";
        let own = smaller.as_array().unwrap().iter().find(|own| own["name"] == name).unwrap();
        assert_eq!(
            own["value"].as_f64(),
            figure(P99).unwrap().of_cell(cell(&summary, "read", "redb")),
            "{own}"
        );
        assert_eq!(own["unit"], "ns");
        assert!(own["range"].as_str().unwrap().contains(".."), "{own}");
        assert_eq!(own["extra"], "3 runs; kvdyno 0.1.0, run 2026-11-20T09-15-29-quick-2k-a1b2");
    }

    #[test]
    fn hostile_names_stay_one_name() {
        for evil in HOSTILE {
            let (mut run, mut records) = (fixture::run(), fixture::records());
            let trials = run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial));
            trials.filter(|trial| trial.engine == "redb").for_each(|trial| trial.engine = evil.to_string());
            let summary = Summary::new(&run, records);
            let count = |all: &Value| all.as_object().unwrap().len();
            assert_eq!(
                count(&parsed(&bencher(&summary, &run))),
                count(&parsed(&bencher(&fixed().1, &run))),
                "{evil:?}"
            );
            assert!(github_smaller(&summary, &run).is_ascii(), "{evil:?}");
        }
    }
}
