//! Trade-offs: two figures of each engine against each other, with the engines that are beaten in neither.

use super::scale::Unit;
use super::scatter::{self, Axis, Dot, Extent, Level, Scatter};
use super::{Chart, Scales, Scene};
use crate::describe::{cell_name, phase_name};
use kvdyno_core::results::OpKind;
use kvdyno_core::results::comparison::Better;
use kvdyno_core::results::figures::{self, Figure, MEMORY, P99, RATE, SPACE, WRITTEN, figure};
use kvdyno_core::results::statistics::{interval_of_median, median};
use kvdyno_core::results::summary::{Cell, PhaseSummary};
use kvdyno_measure::text::{listed, plain_text, short_text};

/// The meaning of the bars of all these charts, for a page.
pub(crate) const BARS: &str =
    "Bars: the interval of the median of ops/s, and the range of the runs for other figures.";

/// The maximum length of the names of phases in a title, in characters.
const PHASES: usize = 36;

/// All charts of these phases; `is_all`: they are all phases of the run, so that phases can be compared with each other.
pub(crate) fn tradeoffs(scene: &Scene, phases: &[&PhaseSummary], is_all: bool, scales: Scales) -> Vec<Chart> {
    let both = is_all.then(|| reads_and_writes(scene, scales)).into_iter().flatten();
    let of_phases = [latency_and_rate, memory_and_rate, amplification]
        .into_iter()
        .flat_map(|of| phases.iter().filter_map(move |phase| of(phase, scales)));
    both.chain(of_phases).collect()
}

/// The figure of a cell with its bar.
fn extent(figure: &Figure, cell: &Cell) -> Option<Extent> {
    let ends = figure.ends(cell).map(|ends| (ends.low, ends.high));
    Some(Extent { value: figure.of_cell(cell)?, ends })
}

/// The rate of a phase against its p99.
pub(crate) fn latency_and_rate(phase: &PhaseSummary, scales: Scales) -> Option<Chart> {
    of_phase(phase, "rate and p99", P99, RATE, scales)
}

/// The rate of a phase against its memory.
pub(crate) fn memory_and_rate(phase: &PhaseSummary, scales: Scales) -> Option<Chart> {
    of_phase(phase, "rate and memory", MEMORY, RATE, scales)
}

/// The write amplification of a phase against the space amplification after it; `None` for phases that write nothing.
pub(crate) fn amplification(phase: &PhaseSummary, scales: Scales) -> Option<Chart> {
    if !kinds(phase).any(OpKind::writes) {
        return None;
    }
    of_phase(phase, "written bytes and space", SPACE, WRITTEN, scales)
}

/// A chart of two figures of one phase, named.
fn of_phase(phase: &PhaseSummary, title: &str, x: &str, y: &str, scales: Scales) -> Option<Chart> {
    let (of_x, of_y) = (figure(x)?, figure(y)?);
    let (axis_x, axis_y) = (of_x.axis?, of_y.axis?);
    let (mut levels, mut missing) = (Vec::new(), absent(phase));
    for group in &phase.groups {
        let mut dots = Vec::new();
        for cell in &group.cells {
            let engine = cell_name(cell);
            match (extent(of_x, cell), extent(of_y, cell)) {
                (Some(x), Some(y)) => dots.push(Dot { engine, x, y, is_ranked: cell.rank.is_some() }),
                (None, _) => missing.push((engine, axis_x.unknown.to_string())),
                (_, None) => missing.push((engine, axis_y.unknown.to_string())),
            }
        }
        if !dots.is_empty() {
            levels.push(Level { name: group.name(), dots });
        }
    }
    let axis = |figure: &Figure, own: figures::Axis| Axis {
        title: own.title.to_string(),
        short: own.short,
        unit: figure.form.into(),
        better: figure.better,
    };
    let (x, y) = (axis(of_x, axis_x), axis(of_y, axis_y));
    let bars = BARS;
    let title = format!("{}: {title}", phase_name(phase));
    scatter::draw(&Scatter { title, x, y, levels, missing, bars }, scales)
}

/// The cells without figures or without a ranking, with the reason.
fn absent(phase: &PhaseSummary) -> Vec<(String, String)> {
    let why = |cell: &Cell| match cell.notes.first() {
        Some(note) if cell.counted_runs == 0 => plain_text(&note.mark),
        _ => "not ranked".to_string(),
    };
    phase.unranked.iter().map(|cell| (cell_name(cell), why(cell))).collect()
}

/// The op kinds that the phase ran, as in its records.
fn kinds(phase: &PhaseSummary) -> impl Iterator<Item = OpKind> + '_ {
    let kinds = phase.cells().flat_map(|cell| &cell.kinds).filter(|kind| kind.ops > 0);
    kinds.filter_map(|kind| kind.kind.known())
}

/// Whether the phase ran ops, all of them of such a kind.
fn has_only(phase: &PhaseSummary, is: fn(OpKind) -> bool) -> bool {
    kinds(phase).next().is_some() && kinds(phase).all(is)
}

/// The rate of the phases of a workload that only read against the rate of those that only write, a chart for each requested
/// durability level of the writes.
pub(crate) fn reads_and_writes(scene: &Scene, scales: Scales) -> Vec<Chart> {
    let mut workloads: Vec<&str> = Vec::new();
    for phase in &scene.summary.phases {
        if !workloads.contains(&phase.workload.as_str()) {
            workloads.push(&phase.workload);
        }
    }
    workloads.into_iter().flat_map(|workload| of_workload(scene, workload, scales)).collect()
}

fn of_workload(scene: &Scene, workload: &str, scales: Scales) -> Vec<Chart> {
    let own: Vec<&PhaseSummary> =
        scene.summary.phases.iter().filter(|phase| phase.workload == workload).collect();
    // Gets and scans have rates of different size, so that one figure is made of either.
    let gets = of_kind(&own, |kind| kind.gets() && !kind.writes());
    let reads = if gets.is_empty() { of_kind(&own, |kind| !kind.writes()) } else { gets };
    let writes = of_kind(&own, OpKind::writes);
    let mut requested: Vec<_> = writes.iter().map(|phase| phase.durability_requested).collect();
    requested.sort_unstable();
    requested.dedup();
    let chart = |level| {
        let at_level = writes.iter().copied().filter(|phase| phase.durability_requested == level);
        let (loads, others): (Vec<&PhaseSummary>, Vec<&PhaseSummary>) =
            at_level.partition(|phase| phase.settings.is_fill());
        draw_reads_and_writes(workload, &reads, if others.is_empty() { &loads } else { &others }, scales)
    };
    requested.into_iter().filter_map(chart).collect()
}

fn of_kind<'a>(phases: &[&'a PhaseSummary], is: fn(OpKind) -> bool) -> Vec<&'a PhaseSummary> {
    phases.iter().copied().filter(|phase| has_only(phase, is)).collect()
}

fn draw_reads_and_writes(
    workload: &str,
    reads: &[&PhaseSummary],
    writes: &[&PhaseSummary],
    scales: Scales,
) -> Option<Chart> {
    let first = writes.first()?;
    let mut levels: Vec<Level> = Vec::new();
    let mut missing = absent(first);
    for group in &first.groups {
        let mut dots = Vec::new();
        for cell in &group.cells {
            let engine = cell_name(cell);
            // The level of a point is that of its writes.
            let name = group.name();
            match (mean(reads, cell, &name, true), mean(writes, cell, &name, false)) {
                (Ok((y, one)), Ok((x, other))) => {
                    dots.push(Dot { engine, x, y, is_ranked: one && other });
                }
                (Err(phase), _) | (_, Err(phase)) => {
                    missing.push((engine, plain_text(&format!("no rate of {phase}"))));
                }
            }
        }
        if !dots.is_empty() {
            levels.push(Level { name: group.name(), dots });
        }
    }
    let names = |phases: &[&PhaseSummary]| {
        let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
        short_text(&listed(&names, "and"), PHASES)
    };
    let title = |what: &str, phases: &[&PhaseSummary]| match phases.len() {
        1 => format!("{what}/s of {}", names(phases)),
        _ => format!("mean {what}/s of {}", names(phases)),
    };
    let axis = |title: String, short| Axis { title, short, unit: Unit::Rate, better: Better::Higher };
    let drawn = Scatter {
        title: plain_text(&format!("{workload}: reads and writes ({})", names(writes))),
        x: axis(title("writes", writes), "writes/s"),
        y: axis(title("reads", reads), "reads/s"),
        levels,
        missing,
        bars: "Bars: the intervals of the medians. A mean of several phases is geometric.",
    };
    scatter::draw(&drawn, scales)
}

/// The cell of the same engine with the same options, preferably in the group with this name, or `None` if there is none
/// and `is_any` is false.
fn of_engine<'a>(phase: &'a PhaseSummary, cell: &Cell, group: &str, is_any: bool) -> Option<&'a Cell> {
    let is_same = |other: &&Cell| other.engine == cell.engine && other.options == cell.options;
    let (own, others): (Vec<_>, Vec<_>) = phase.groups.iter().partition(|found| found.name() == group);
    let groups = own.into_iter().chain(others.into_iter().filter(|_| is_any));
    groups.flat_map(|group| &group.cells).find(is_same)
}

/// The geometric mean of an engine's rates in several phases, and whether it is ranked in all of them: the median over its
/// trials with the interval of that median. The error is the name of a phase without its rate.
fn mean<'a>(
    phases: &[&'a PhaseSummary],
    cell: &Cell,
    group: &str,
    is_any: bool,
) -> Result<(Extent, bool), &'a str> {
    let found = |phase: &&'a PhaseSummary| of_engine(phase, cell, group, is_any).ok_or(phase.name.as_str());
    let cells: Vec<&Cell> = phases.iter().map(found).collect::<Result<_, _>>()?;
    let (Some(first), Some(name)) = (cells.first(), phases.first().map(|phase| phase.name.as_str())) else {
        return Err("reads");
    };
    let of_trial = |trial: &str| -> Option<f64> {
        let rate = |cell: &&Cell| {
            let run = cell.runs.iter().find(|run| run.trial == trial)?;
            run.ops_per_second.filter(|rate| *rate > 0.0)
        };
        let rates: Vec<f64> = cells.iter().map(rate).collect::<Option<_>>()?;
        Some((rates.iter().map(|rate| rate.ln()).sum::<f64>() / rates.len() as f64).exp())
    };
    let rates: Vec<f64> = first.runs.iter().filter_map(|run| of_trial(&run.trial)).collect();
    let value = median(&rates).ok_or(name)?;
    let ends = interval_of_median(&rates).map(|interval| (interval.low, interval.high));
    Ok((Extent { value, ends }, cells.iter().all(|cell| cell.rank.is_some())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};
    use kvdyno_core::results::fixture::{self};
    use kvdyno_core::results::summary::Summary;
    use kvdyno_core::results::{Record, Run};
    use roxmltree::{Document, Node};

    /// The chart's points: engines with their tooltips, and whether they are on a front.
    fn points(chart: &Chart) -> Vec<(String, String, bool)> {
        let svg = format!("<svg>{}</svg>", chart.content.as_str());
        let document = Document::parse(&svg).unwrap();
        let point = |node: Node| {
            let tip = node.first_element_child()?.text()?.to_string();
            let is_first = node.children().any(|inside| inside.attribute("class") == Some("b1"));
            Some((node.attribute("data-e")?.to_string(), tip, is_first))
        };
        document.descendants().filter_map(point).collect()
    }

    fn summary() -> (Summary, Run) {
        let run = fixture::run();
        (Summary::new(&run, fixture::records()), run)
    }

    #[test]
    fn every_engine_is_a_point_with_its_figures_or_is_named_with_the_reason() {
        let (summary, _) = summary();
        let read = &summary.phases[1];
        let chart = latency_and_rate(read, Scales::Both).unwrap();
        let found = points(&chart);
        assert_eq!(found.len(), 5, "{found:?}");
        for cell in read.groups.iter().flat_map(|group| &group.cells) {
            let (_, tip, _) = found.iter().find(|(engine, ..)| *engine == cell_name(cell)).unwrap();
            let rate = crate::figure::rate(cell.ops_per_second.unwrap());
            let p99 = crate::figure::time(cell.latency.p99_ns.unwrap());
            assert!(
                tip.contains(&format!(": ops/s {rate} (")) && tip.contains(&format!(", p99 {p99} (")),
                "{tip}"
            );
        }
        assert_eq!(chart.about, "Not shown: mutant:stale-read (3/3 failed).");
        // 200 ops of a run have two slower ones, and sled does not reach the level.
        assert!(latency_and_rate(&summary.phases[3], Scales::Both).is_none());
        let memory = memory_and_rate(&summary.phases[3], Scales::Both).unwrap();
        assert_eq!(points(&memory).len(), 4);
        assert!(memory.about.contains("sled (did not run)"), "{}", memory.about);
    }

    #[test]
    fn an_engine_is_on_the_front_of_its_own_level_only() {
        let (mut records, run) = (fixture::records(), fixture::run());
        // redb is alone at its level and slower than others in both figures; fjall has a failed run.
        for record in records.iter_mut().filter(|record| record.trial.engine == "redb") {
            record.phases.iter_mut().for_each(|phase| phase.elapsed_ns *= 1_000);
        }
        let summary = Summary::new(&run, records);
        let found = points(&latency_and_rate(&summary.phases[2], Scales::Both).unwrap());
        let first: Vec<&str> =
            found.iter().filter(|(.., is_first)| *is_first).map(|(engine, ..)| engine.as_str()).collect();
        assert_eq!(first, ["lmdb (write-map=false)", "redb"], "{found:?}");
        assert!(found.iter().any(|(engine, ..)| engine == "fjall"));
    }

    #[test]
    fn fronts_are_those_of_the_figures_level_by_level() {
        let (summary, _) = summary();
        for phase in &summary.phases {
            let Some(chart) = memory_and_rate(phase, Scales::Both) else { continue };
            let found = points(&chart);
            for group in &phase.groups {
                let ranked = || group.cells.iter().filter(|cell| cell.rank.is_some());
                for cell in &group.cells {
                    let (rate, memory) = (cell.ops_per_second.unwrap(), cell.rss_bytes.unwrap());
                    let is_beaten = ranked().any(|other| {
                        let (own, least) = (other.ops_per_second.unwrap(), other.rss_bytes.unwrap());
                        own >= rate && least <= memory && (own, least) != (rate, memory)
                    });
                    let (.., is_first) = found.iter().find(|(name, ..)| *name == cell_name(cell)).unwrap();
                    assert_eq!(
                        *is_first,
                        cell.rank.is_some() && !is_beaten,
                        "{} of {}",
                        cell.engine,
                        phase.name
                    );
                }
            }
        }
    }

    /// The charts of reads and writes in a workload with these phases.
    fn both(phases: &[PhaseSketch]) -> Vec<Chart> {
        let sketch = Sketch { name: "w", phases, runs: 5, ..Sketch::EMPTY };
        let (run, records): (Run, Vec<Record>) = drawn(&[sketch]);
        let summary = Summary::new(&run, records);
        reads_and_writes(&Scene::new(&summary, &run), Scales::Both)
    }

    #[test]
    fn reads_and_writes_are_found_by_their_ops_and_not_by_their_names() {
        let phase = |name: &'static str, kinds: &'static [&'static str]| PhaseSketch::new(name, kinds, 1_000);
        let load = PhaseSketch { each_key: true, ..phase("read", &["put"]) };
        let charts =
            both(&[load, phase("write", &["get"]), phase("get", &["scan"]), phase("put", &["get", "put"])]);
        assert_eq!(charts.len(), 1);
        assert_eq!(charts[0].title, "w: reads and writes (read)", "the load is the only phase that writes");
        assert!(charts[0].content.as_str().contains("reads/s of write,"), "gets are not mixed with scans");
        let others =
            both(&[load, phase("write", &["get"]), phase("delete", &["delete"]), phase("more", &["insert"])]);
        assert_eq!(
            others[0].title, "w: reads and writes (delete and more)",
            "loads are not mixed with other writes"
        );
        let scans = both(&[load, phase("a", &["scan"])]);
        assert!(scans[0].content.as_str().contains("reads/s of a,"), "scans without gets are the reads");
        assert!(both(&[load, phase("mixed", &["get", "put"])]).is_empty(), "no phase only reads");
    }

    #[test]
    fn several_phases_have_the_geometric_mean_of_their_rates() {
        let phases = [
            PhaseSketch::new("one", &["get"], 1_000),
            PhaseSketch::new("two", &["get"], 4_000),
            PhaseSketch::new("put", &["put"], 1_000),
        ];
        let sketch = Sketch { name: "w", phases: &phases, runs: 5, ..Sketch::EMPTY };
        let (run, mut records) = drawn(&[sketch]);
        for record in &mut records {
            record.phases[1].elapsed_ns /= 4;
        }
        let summary = Summary::new(&run, records);
        let charts = reads_and_writes(&Scene::new(&summary, &run), Scales::Both);
        for (engine, tip, _) in points(&charts[0]) {
            let rate = |place: usize| {
                let phase: &PhaseSummary = &summary.phases[place];
                let cell = phase.cells().find(|cell| cell.engine == engine).unwrap();
                cell.ops_per_second.unwrap()
            };
            let mean = crate::figure::rate((rate(0) * rate(1)).sqrt());
            assert!(tip.contains(&format!("reads/s {mean} (")), "{tip}");
            assert!(tip.contains(&format!("writes/s {} (", crate::figure::rate(rate(2)))), "{tip}");
        }
    }
}
