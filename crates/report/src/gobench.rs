//! The report in the format of Go benchmarks, for benchstat: a line for each run of a cell in a phase. The name of the
//! benchmark contains the settings as `name=value` (`benchstat -col /engine`).

use super::describe::skipped_runs;
use kvdyno_core::results::Run;
use kvdyno_core::results::figures::FIGURES;
use kvdyno_core::results::summary::{Cell, PhaseSummary, RunFigures, Summary};
use kvdyno_measure::text::plain_text;

/// Units where higher is better; benchstat assumes that lower is better for units it does not know.
const HEAD: &str = "Unit ops/s better=higher\n";

/// Renders the report.
pub(super) fn render(summary: &Summary, run: &Run) -> String {
    // benchstat does not compare files whose `name: value` lines differ. Runs and versions are to be compared, so they are in
    // a comment.
    let mut text = plain_text(&format!("# kvdyno {}, run {}", run.tool_version, run.id)) + "\n";
    if let Some(cpu) = &run.machine.cpu_model {
        text += &format!("cpu: {}\n", plain_text(cpu));
    }
    text += HEAD;
    skipped_runs(summary).iter().for_each(|line| text += &format!("# skipped: {line}\n"));
    for phase in &summary.phases {
        for cell in phase.floors.iter().chain(phase.cells()) {
            let name = name(phase, cell);
            let counted = cell.runs.iter().filter(|run| run.state.counts());
            counted.filter_map(figures).for_each(|figures| text += &format!("{name} {figures}\n"));
        }
    }
    text
}

/// `BenchmarkKvdyno/` and the settings. The text after the last dash never consists of digits alone: benchstat would read it as a
/// number of processors.
fn name(phase: &PhaseSummary, cell: &Cell) -> String {
    format!("BenchmarkKvdyno/{}", settings(phase, cell))
}

/// `workload=quick/phase=read/engine=lmdb/level=process/keys=2000/k=16/v=100/t=1`.
pub(super) fn settings(phase: &PhaseSummary, cell: &Cell) -> String {
    let level = cell.durability_effective.unwrap_or(cell.durability_requested).to_string();
    let value = phase.settings.value_size.as_ref().unwrap_or(&phase.value.size).to_string();
    let options: Vec<String> = cell.options.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    let mut parts = vec![
        ("workload", phase.workload.clone()),
        ("phase", phase.name.clone()),
        ("engine", cell.engine.clone()),
        ("options", options.join("+")),
        ("level", level),
        ("keys", phase.keys.to_string()),
        ("k", phase.key.size.to_string()),
        ("v", value),
        ("t", super::describe::all_threads(phase).to_string()),
    ];
    parts.retain(|(_, value)| !value.is_empty());
    let parts = parts.into_iter().map(|(name, value)| format!("{name}={}", word(&value)));
    parts.collect::<Vec<String>>().join("/")
}

/// The text without the characters that would end a name or a part of it.
fn word(text: &str) -> String {
    let safe = |letter: char| if " /=\"".contains(letter) { '_' } else { letter };
    plain_text(text).chars().map(safe).collect()
}

/// The ops and each known figure with its unit; `None` without ops.
fn figures(run: &RunFigures) -> Option<String> {
    let (ops, elapsed_ns) = (run.ops.filter(|ops| *ops > 0)?, run.elapsed_ns?);
    let mut text = format!("{ops} {} ns/op", elapsed_ns as f64 / ops as f64);
    for (figure, (unit, factor)) in FIGURES.iter().filter_map(|figure| Some((figure, figure.bench?))) {
        if let Some(value) = figure.of_run(run) {
            text += &format!(" {} {unit}", value * factor);
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture;

    #[test]
    fn a_name_is_one_word_and_its_parts_stay_separate_for_any_engine_name() {
        let mut run = fixture::run();
        let mut records = fixture::records();
        let trials = run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial));
        for trial in trials.filter(|trial| trial.engine == "lmdb") {
            trial.engine = "a b/c=d\n\u{1b}[31m-8".into();
        }
        let text = render(&Summary::new(&run, records), &run);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Benchmark")).collect();
        assert!(lines.iter().any(|line| line.contains("/engine=a_b_c_d_?[31m-8/")), "{text}");
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words.len() >= 4 && words.len().is_multiple_of(2), "{line}");
            assert!(words[1].parse::<u64>().is_ok(), "{line}");
            assert!(words[2..].chunks(2).all(|pair| pair[0].parse::<f64>().is_ok()), "{line}");
            let keys: Vec<&str> =
                words[0].split('/').skip(1).map(|part| part.split('=').next().unwrap()).collect();
            assert_eq!(keys[..3], ["workload", "phase", "engine"], "{line}");
            assert_eq!(keys.last(), Some(&"t"), "{line}");
        }
    }
}
