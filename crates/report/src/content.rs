//! The contents of a report for people, as blocks. Text and Markdown have all of them; the page has its own beginning and end.
//! A section that is added to `details`, `results` or `problems` is in all three.

use super::arrivals;
use super::block::{Block, Chart, Charts};
use super::chart::{self, Scales, Scene};
use super::choice;
use super::cost::{self, costs};
use super::data_to_memory;
use super::describe::{
    clock, command, engine_name, machine, memory, phase_name, phase_settings, race, trials,
};
use super::figure::{UNKNOWN, bytes, known, time};
use super::limits;
use super::load_generators;
use super::member_faults;
use super::next::next_steps;
use super::price;
use super::ranking::{LEGEND, ranking, remarks, service_times, without_figures};
use super::safety;
use super::scaling;
use super::settled;
use super::staleness;
use super::stalls::{self, stalls};
use super::steady;
use super::verdict::verdict;
use kvdyno_core::results::statistics::{FEWEST_FOR_ORDER, interval_of_median};
use kvdyno_core::results::summary::{Cell, PhaseSummary, StepSummary, Summary, TrialWarning};
use kvdyno_core::results::{Record, Run, StepKind};
use kvdyno_measure::text::{Align, Column, Table, listed, plain_text};

/// The legend of the engines' table.
const ENGINES_LEGEND: &str = "cache: the size limit of the engine's own cache; - if the engine has no such setting. \
    compression: - if unknown. The HTML report and the records list all effective options.";

/// The maximum number of step columns in one table, so that it fits a terminal.
const STEP_COLUMNS: usize = 7;

/// The complete report as text.
pub(super) fn content(summary: &Summary, run: &Run) -> Vec<Block> {
    let mut blocks = vec![Block::Title(plain_text(&format!("kvdyno, run {}", run.id))), header(summary, run)];
    for phase in &summary.phases {
        blocks.push(Block::Part(phase_name(phase)));
        blocks.push(Block::Lines(vec![phase_settings(phase)]));
        blocks.extend(rankings(phase, summary.baseline.as_deref()));
        blocks.push(Block::Lines(remarks(phase)));
        blocks.extend(details(phase, &summary.records, None));
    }
    blocks.extend(results(summary, run, None));
    blocks.extend(problems(summary));
    blocks.extend(engine_blocks(summary));
    if !summary.absent.is_empty() {
        let absent = summary.absent.iter().map(|(engine, why)| plain_text(&format!("{engine} ({why})")));
        blocks.push(Block::Part("Engines not available".to_string()));
        blocks.push(Block::Lines(vec![absent.collect::<Vec<_>>().join(", ")]));
    }
    blocks.push(Block::Part("How to read the tables".to_string()));
    blocks.push(Block::Lines(legend(summary)));
    blocks.push(Block::Part("Verdict".to_string()));
    blocks.push(Block::Lines(verdict(summary)));
    let next = next_steps(summary, run);
    if !next.is_empty() {
        blocks.push(Block::Part("Next".to_string()));
        blocks.push(Block::Commands(next));
    }
    blocks
}

/// The rankings of a phase, and what is not ranked. With a baseline, a table without ratios says so.
pub(super) fn rankings(phase: &PhaseSummary, baseline: Option<&str>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for group in &phase.groups {
        blocks.push(Block::Section(format!("Durability level {} (effective)", group.name())));
        blocks.push(Block::Table(ranking(&group.cells)));
        if let Some(baseline) = baseline.filter(|_| group.cells.iter().all(|cell| cell.ratio.is_none())) {
            blocks.push(Block::Lines(vec![plain_text(&format!(
                "No ratios: {baseline} is not ranked in this table."
            ))]));
        }
    }
    let measured: Vec<&Cell> = phase.unranked.iter().filter(|cell| cell.counted_runs > 0).collect();
    if !measured.is_empty() {
        blocks.push(Block::Section("Measured but not ranked".to_string()));
        blocks.push(Block::Table(ranking(measured)));
    }
    if let Some(table) = without_figures(phase) {
        blocks.push(Block::Section("Not measured".to_string()));
        blocks.push(Block::Table(table));
    }
    blocks
}

/// The sections of a phase below its rankings; with the charts of a page, if there is a scene.
pub(super) fn details(phase: &PhaseSummary, records: &[Record], scene: Option<&Scene>) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(scene) = scene {
        let scales = Scales::Both;
        let main = chart::throughput(phase, scales).into_iter().chain(chart::latency(scene, phase, scales));
        let charts = [
            (None, main.collect()),
            (Some("Over time"), chart::series(scene, phase, scales)),
            (Some("Resources (lower is better)"), chart::resources(phase, scales)),
        ];
        blocks.extend(charts.map(|(title, charts)| Block::Charts(Charts { id: None, title, charts })));
    }
    let times = service_times(phase).map(|table| ("Service times", table));
    let stalls = stalls(phase, records).map(|table| ("Stalls", table));
    let tables = times
        .into_iter()
        .chain(costs(phase))
        .chain(member_faults::tables(phase, records))
        .chain(staleness::table(phase))
        .chain(stalls)
        .map(|(title, table)| (title.to_string(), table));
    let tables = arrivals::table(phase)
        .into_iter()
        .chain(steady::table(phase, records))
        .chain(settled::table(phase, records))
        .chain(tables);
    blocks.extend(tables.flat_map(|(title, table)| [Block::Section(title), Block::Table(table)]));
    blocks
}

/// The parts on several phases; with the charts of a page, if there is a scene.
pub(super) fn results(summary: &Summary, run: &Run, scene: Option<&Scene>) -> Vec<Block> {
    let charts = |id, title, draw: fn(&Scene, Scales) -> Vec<Chart>| {
        let charts = scene.map(|scene| draw(scene, Scales::Both));
        charts.map(|charts| Block::Charts(Charts { id: Some(id), title, charts }))
    };
    let mut blocks = choice::blocks(summary, run);
    blocks.extend(charts("sizes", Some("Throughput by database size"), chart::sizes));
    blocks.extend(charts("data-to-memory", None, chart::data_to_memory));
    blocks.extend(data_to_memory::blocks(summary));
    blocks.extend(load_generators::blocks(summary));
    blocks.extend(charts("scaling", None, chart::scaling));
    blocks.extend(scaling::blocks(summary));
    blocks.extend(price::blocks(summary));
    blocks.extend(step_blocks(summary));
    for (title, table) in limits::tables(summary) {
        blocks.extend([
            Block::Part(title),
            Block::Table(table),
            Block::Lines(vec![limits::LEGEND.to_string()]),
        ]);
    }
    blocks
}

/// What went wrong, and the machines.
pub(super) fn problems(summary: &Summary) -> Vec<Block> {
    [safety::blocks(summary), failure_blocks(summary), warning_blocks(summary), machine_blocks(summary)]
        .into_iter()
        .flatten()
        .collect()
}

/// How to read the tables.
pub(super) fn legend(summary: &Summary) -> Vec<String> {
    let of_faults = member_faults::has_any(&summary.records).then_some(&member_faults::LEGEND);
    let of_stale = staleness::has_any(summary).then_some(&staleness::LEGEND);
    let of_steady = steady::has_any(summary).then_some(&steady::LEGEND);
    let of_settled = settled::has_any(summary).then_some(&settled::LEGEND);
    let of_arrivals = arrivals::has_any(summary).then_some(&arrivals::LEGEND);
    let legend = LEGEND
        .iter()
        .chain(cost::LEGEND)
        .chain([&stalls::LEGEND])
        .chain(of_faults)
        .chain(of_stale)
        .chain(of_arrivals)
        .chain(of_steady)
        .chain(of_settled);
    legend.map(|line| line.to_string()).collect()
}

pub(super) fn header(summary: &Summary, run: &Run) -> Block {
    let mut facts = vec![
        ("command", command(run)),
        ("started", plain_text(&format!("{}, kvdyno {}", run.started_at, run.tool_version))),
        ("machine", machine(run)),
        ("clock", clock(run)),
        ("trials", trials(run, summary)),
        ("intervals", intervals(summary)),
        ("memory", memory(summary)),
    ];
    facts.extend(race(run).map(|race| ("race", race)));
    facts.extend(limits::limits(run).map(|limits| ("limits", limits)));
    facts.push(("engines", engines(summary)));
    Block::Facts(facts)
}

/// The confidence level of intervals over this number of runs, and the base of ratios.
fn intervals(summary: &Summary) -> String {
    let (count, unit) = match summary.machines.len() as u32 {
        0 => (summary.runs, "runs"),
        machines => (machines, "machines"),
    };
    let places: Vec<f64> = (1..=count).map(f64::from).collect();
    let base = match &summary.baseline {
        Some(engine) => plain_text(engine),
        None => "the first row of each table".to_string(),
    };
    let order = if (summary.runs as usize) < FEWEST_FOR_ORDER {
        format!("; engines are ranked only with {FEWEST_FOR_ORDER} or more runs")
    } else {
        String::new()
    };
    let cells = || summary.phases.iter().flat_map(|phase| phase.groups.iter().flat_map(|group| &group.cells));
    let fewer = match cells().any(|cell| cell.counted_runs < summary.runs) {
        true => " (lower in rows with fewer runs)",
        false => "",
    };
    match interval_of_median(&places) {
        None => format!("- (a single run shows no spread); ratios are relative to {base}{order}"),
        Some(interval) => format!(
            "of ops/s, from {} to {} of the {count} {unit}; they contain the true median in {:.1} % of cases{fewer}; ratios are relative to {base}{order}",
            if interval.low == 1.0 { "the slowest".to_string() } else { format!("number {}", interval.low) },
            if interval.low == 1.0 { "the fastest".to_string() } else { format!("number {}", interval.high) },
            interval.level * 100.0
        ),
    }
}

/// The names and versions of the engines that ran.
fn engines(summary: &Summary) -> String {
    let mut names: Vec<String> = summary
        .engines
        .iter()
        .map(|engine| plain_text(&format!("{} {}", engine.name, engine.version)))
        .collect();
    names.dedup();
    if names.is_empty() { UNKNOWN.to_string() } else { listed(&names, "and") }
}

/// The position of a step in a trial.
#[derive(Clone, PartialEq)]
struct StepPlace<'a> {
    name: StepKind,
    before_phase: Option<&'a str>,
}

impl StepPlace<'_> {
    fn of(step: &StepSummary) -> StepPlace<'_> {
        StepPlace { name: step.name, before_phase: step.before_phase.as_deref() }
    }

    /// `settle > read`, or only the name if it is unique.
    fn title(&self, all: &[StepPlace]) -> String {
        let alone = all.iter().filter(|other| other.name == self.name).count() == 1;
        match self.before_phase {
            Some(phase) if !alone => plain_text(&format!("{} > {phase}", self.name)),
            _ => self.name.to_string(),
        }
    }
}

/// The medians of the steps: a row for each cell and a column for each position in its trials.
fn step_blocks(summary: &Summary) -> Vec<Block> {
    let mut blocks = Vec::new();
    // Trials of several workloads are interleaved, and so are their steps.
    let mut workloads: Vec<&str> = Vec::new();
    for step in &summary.steps {
        if !workloads.contains(&step.workload.as_str()) {
            workloads.push(&step.workload);
        }
    }
    for workload in workloads {
        let steps: Vec<&StepSummary> =
            summary.steps.iter().filter(|step| step.workload == workload).collect();
        let mut places: Vec<StepPlace> = Vec::new();
        for step in &steps {
            if !places.contains(&StepPlace::of(step)) {
                places.push(StepPlace::of(step));
            }
        }
        blocks.push(Block::Part(plain_text(&format!("{workload} / steps (medians)"))));
        for chunk in places.chunks(STEP_COLUMNS) {
            blocks.push(Block::Table(step_table(&steps, chunk, &places)));
        }
        let notes = step_notes(&steps, &places);
        if !notes.is_empty() {
            blocks.push(Block::Lines(notes));
        }
    }
    blocks
}

/// Notes on steps without a time: a line for each note, with the engines it applies to.
fn step_notes(steps: &[&StepSummary], places: &[StepPlace]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for step in steps {
        for note in &step.notes {
            let text = plain_text(&format!("{}: {note}", StepPlace::of(step).title(places)));
            let engine = step.label.clone();
            match notes.iter_mut().find(|(seen, _)| *seen == text) {
                Some((_, engines)) => engines.push(engine),
                None => notes.push((text, vec![engine])),
            }
        }
    }
    notes.into_iter().map(|(text, engines)| format!("{text} ({})", engines.join(", "))).collect()
}

fn step_table(steps: &[&StepSummary], places: &[StepPlace], all: &[StepPlace]) -> Table {
    let titles = places.iter().map(|place| Column { title: place.title(all), align: Align::Right });
    let engine = Column { title: "engine".to_string(), align: Align::Left };
    let mut table = Table::new([engine].into_iter().chain(titles).collect());
    let mut labels: Vec<&str> = Vec::new();
    for step in steps {
        if !labels.contains(&step.label.as_str()) {
            labels.push(&step.label);
        }
    }
    for label in labels {
        let own = |step: &&&StepSummary| step.label == label;
        let figure = |place: &StepPlace| {
            let step = steps.iter().filter(own).find(|step| StepPlace::of(step) == *place);
            known(step.and_then(|step| step.median_ns), time)
        };
        table.push([label.to_string()].into_iter().chain(places.iter().map(figure)).collect());
    }
    table
}

/// What the columns of the machines mean.
const MACHINES_LEGEND: &str = "reference: the rate of the engine that runs in every block, as a multiple of that on the median machine, \
    with its interval. Machines are a factor of the analysis: engines are compared within them, and the intervals of ratios include \
    how much the engines' ratios differ between them.";

/// The machines of a campaign.
fn machine_blocks(summary: &Summary) -> Vec<Block> {
    if summary.machines.is_empty() {
        return Vec::new();
    }
    let mut table = Table::with_titles(&[
        ("machine", Align::Right),
        ("id", Align::Left),
        ("trials", Align::Right),
        ("reference", Align::Right),
        ("interval", Align::Left),
        ("remark", Align::Left),
        ("processor", Align::Left),
        ("CPUs", Align::Right),
        ("memory", Align::Right),
        ("kernel", Align::Left),
    ]);
    for of in &summary.machines {
        let reference = of.reference.as_ref();
        let interval = reference.and_then(|found| found.interval);
        table.push(vec![
            of.number.to_string(),
            plain_text(&of.id),
            of.trials.to_string(),
            known(reference, |found| format!("{:.2}x", found.ratio)),
            known(interval, |interval| format!("{:.2}..{:.2}", interval.low, interval.high)),
            if reference.is_some_and(|found| found.is_odd) { "odd".to_string() } else { String::new() },
            known(of.machine.cpu_model.as_deref(), plain_text),
            known(of.machine.cpus_allowed, |cpus| cpus.to_string()),
            known(of.machine.memory_bytes, bytes),
            known(of.machine.kernel.as_deref(), plain_text),
        ]);
    }
    let mut lines = vec![MACHINES_LEGEND.to_string()];
    let engines: Vec<String> =
        summary.machines.iter().filter_map(|of| Some(plain_text(&of.reference.as_ref()?.engine))).collect();
    lines.extend(engines.first().map(|engine| format!("The reference is {engine}.")));
    vec![Block::Part("Machines".to_string()), Block::Table(table), Block::Lines(lines)]
}

/// The engines with their effective cache sizes and compression, which the figures depend on.
fn engine_blocks(summary: &Summary) -> Vec<Block> {
    let titles = ["engine", "version", "cache", "compression"];
    let mut table = Table::with_titles(&titles.map(|title| (title, Align::Left)));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for engine in &summary.engines {
        let row = vec![
            engine_name(&engine.name),
            plain_text(&engine.version),
            known(engine.cache_bytes, bytes),
            known(engine.compression.as_deref(), plain_text),
        ];
        // The other options may differ between workloads.
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.into_iter().for_each(|row| table.push(row));
    if table.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![ENGINES_LEGEND.to_string()];
    lines.extend(avoided_defects(summary));
    vec![Block::Part("Engines".to_string()), Block::Table(table), Block::Lines(lines)]
}

/// A line for each known defect that a driver avoids: what it does for that may cost time.
fn avoided_defects(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for engine in &summary.engines {
        for defect in &engine.avoided_defects {
            let line = plain_text(&format!(
                "{} {}: known defect, avoided by the driver: {defect}.",
                engine.name, engine.version
            ));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

pub(super) fn failure_blocks(summary: &Summary) -> Vec<Block> {
    let mut lines: Vec<String> = Vec::new();
    for failure in &summary.failures {
        lines.push(plain_text(&format!("{}: {}", failure.trial, failure.cause)));
        let details = failure.details.iter().filter(|detail| !failure.cause.contains(detail.as_str()));
        lines.extend(details.map(|detail| plain_text(&format!("    {detail}"))));
    }
    if summary.pending > 0 {
        lines.push(format!("{} of the planned trials have no record.", summary.pending));
    }
    if lines.is_empty() {
        return Vec::new();
    }
    vec![Block::Part("Trials that failed or are missing".to_string()), Block::Lines(lines)]
}

pub(super) fn warning_blocks(summary: &Summary) -> Vec<Block> {
    let line =
        |found: &TrialWarning| plain_text(&format!("{} {}", found.seen(usize::MAX), found.warning.advice));
    let lines: Vec<String> = summary.warnings.iter().map(line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![Block::Part("Warnings".to_string()), Block::Lines(lines)]
}
