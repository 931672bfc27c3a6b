//! How throughput scales: the rates of each engine at several numbers of threads, with the Universal Scalability Law.

use super::block::Block;
use super::describe::{all_threads, level_words};
use super::figure::{UNKNOWN, known, rate};
use kvdyno_core::results::label::Labels;
use kvdyno_core::results::scaling::{FEWEST_COUNTS, Law, Load, Misfit, fit};
use kvdyno_core::results::summary::{Cell, Group, PhaseSummary, Summary};
use kvdyno_measure::text::{Align, Column, Table, counted, plain_text};

/// The minimum number of counts for a table and a line.
const FEWEST: usize = 2;

/// How to read the tables.
const LEGEND: &str = "Medians of ops/s over runs. The Universal Scalability Law says that N of them do \
    lambda N / (1 + sigma (N - 1) + kappa N (N - 1)) ops per second. serial: sigma, the share of the work that is done one \
    after another. crosstalk: kappa, what each pair costs, as a share of an op's time. Both with their interval of 95 % from \
    all runs. peak: the number with the highest rate, if the runs show that the rate falls beyond it. off by: the largest \
    difference between the law and a median. The law is a description of this machine within the numbers that were measured; \
    with more threads than CPUs it describes the scheduler too.";

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Axis {
    /// Threads of one process.
    Threads,
    /// Load generators.
    #[strum(serialize = "load generators")]
    LoadGenerators,
    /// Nodes of the cluster that an engine starts, by one of its options.
    Nodes,
}

/// Whether an option of a cell is the number of its nodes.
fn is_nodes(cell: &Cell, name: &str) -> bool {
    cell.nodes_option.as_deref() == Some(name)
}

impl Axis {
    /// `threads`.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// The place of a cell on the axis; none: it has none.
    fn of(self, phase: &PhaseSummary, cell: &Cell) -> Option<u32> {
        match self {
            Axis::Threads => Some(all_threads(phase)),
            Axis::LoadGenerators => Some(phase.load_generators),
            Axis::Nodes => cell.options.iter().find(|option| is_nodes(cell, &option.0))?.1.parse().ok(),
        }
    }

    /// A cell's engine with its options, the same along the axis.
    fn engine(self, cell: &Cell) -> (&str, Vec<(String, String)>) {
        let is_kept = |option: &&(String, String)| self != Axis::Nodes || !is_nodes(cell, &option.0);
        (&cell.engine, cell.options.iter().filter(is_kept).cloned().collect())
    }

    /// What stays the same along the axis.
    fn fixed(self, phase: &PhaseSummary) -> String {
        let several =
            |count: u32, one, many| if count > 1 { counted(count.into(), one, many) } else { String::new() };
        match self {
            Axis::Threads => several(phase.load_generators, "load generator", "load generators"),
            Axis::LoadGenerators => counted(all_threads(phase).into(), "thread each", "threads each"),
            Axis::Nodes => [
                several(phase.load_generators, "load generator", "load generators"),
                several(all_threads(phase), "thread", "threads"),
            ]
            .join(", ")
            .trim_matches([',', ' '])
            .to_string(),
        }
    }
}

/// A phase at one effective level, with all numbers of threads.
pub(super) struct Sweep<'a> {
    /// What is varied.
    pub axis: Axis,
    /// The workload and the phase.
    pub name: String,
    /// The common settings: level, and keys if they differ in the run.
    pub settings: String,
    /// The engines, the fastest at any count first.
    pub engines: Vec<Scaled<'a>>,
}

/// An engine at several counts.
pub(super) struct Scaled<'a> {
    /// Its name in tables and charts.
    pub name: String,
    /// The count and the cell, ascending.
    pub cells: Vec<(u32, &'a Cell)>,
    /// The law, or why there is none.
    pub law: Result<Law, Misfit>,
}

impl<'a> Scaled<'a> {
    fn new(name: String, mut cells: Vec<(u32, &'a Cell)>) -> Scaled<'a> {
        cells.sort_by_key(|(count, _)| *count);
        let runs = |(count, cell): &(u32, &Cell)| {
            let rates =
                cell.runs.iter().filter(|run| run.state.counts()).filter_map(|run| run.ops_per_second);
            rates.map(|rate| Load { count: *count, rate }).collect::<Vec<_>>()
        };
        let loads: Vec<Load> = cells.iter().flat_map(runs).collect();
        Scaled { name, law: fit(&loads), cells }
    }

    fn fastest(&self) -> f64 {
        self.cells.iter().filter_map(|(_, cell)| cell.ops_per_second).fold(0.0, f64::max)
    }
}

/// What the cells of a sweep have in common; they differ in the count.
#[derive(PartialEq)]
struct Key<'a> {
    base: &'a str,
    phase: &'a str,
    level: String,
    keys: u64,
    fixed: String,
}

/// The sweeps of a run: phases of workloads that were run with several numbers of threads or load generators.
pub(super) fn sweeps(summary: &Summary) -> Vec<Sweep<'_>> {
    let mut all = of_axis(summary, Axis::Threads);
    all.extend(of_axis(summary, Axis::LoadGenerators));
    all.extend(of_axis(summary, Axis::Nodes));
    all
}

fn of_axis(summary: &Summary, axis: Axis) -> Vec<Sweep<'_>> {
    let mut found: Vec<(Key, Vec<(u32, &Cell)>)> = Vec::new();
    for phase in &summary.phases {
        // Nodes are an option of an engine, the other counts are variants of a workload.
        let base = if axis == Axis::Nodes { Some(&phase.workload) } else { phase.variant_of.as_ref() };
        let Some(base) = base else { continue };
        for group in &phase.groups {
            let key = key(axis, base, phase, group);
            let cells = group.cells.iter().filter_map(|cell| Some((axis.of(phase, cell)?, cell)));
            match found.iter_mut().find(|(seen, _)| *seen == key) {
                Some((_, all)) => all.extend(cells),
                None => found.push((key, cells.collect())),
            }
        }
    }
    let differ = |of: &dyn Fn(&Key) -> String| found.iter().any(|(key, _)| of(key) != of(&found[0].0));
    let several_keys = differ(&|key| key.keys.to_string());
    found.iter().filter_map(|(key, cells)| sweep(axis, key, cells, several_keys)).collect()
}

fn key<'a>(axis: Axis, base: &'a str, phase: &'a PhaseSummary, group: &Group) -> Key<'a> {
    let effective = group.durability_effective;
    // One node is a server and three are a distributed store: different groups.
    let shown = if axis == Axis::Nodes { effective.to_string() } else { group.name() };
    Key {
        base,
        phase: &phase.name,
        level: level_words(&shown, effective, phase.durability_requested),
        keys: phase.keys,
        fixed: axis.fixed(phase),
    }
}

/// An engine with its options.
type Named<'a> = (&'a str, Vec<(String, String)>);

fn sweep<'a>(axis: Axis, key: &Key, cells: &[(u32, &'a Cell)], several_keys: bool) -> Option<Sweep<'a>> {
    let mut engines: Vec<(Named, Vec<(u32, &Cell)>)> = Vec::new();
    for &(count, cell) in cells.iter().filter(|(_, cell)| cell.ops_per_second.is_some()) {
        let name = axis.engine(cell);
        match engines.iter_mut().find(|(seen, _)| *seen == name) {
            // Two variants that differ in something else than the count are no sweep.
            Some((_, own)) if own.iter().any(|(other, _)| *other == count) => return None,
            Some((_, own)) => own.push((count, cell)),
            None => engines.push((name, vec![(count, cell)])),
        }
    }
    engines.retain(|(_, own)| own.len() >= FEWEST);
    let labels = Labels::new(engines.iter().map(|((engine, options), _)| (*engine, &options[..])));
    let scaled = |((engine, options), cells): (Named, _)| Scaled::new(labels.of(engine, &options), cells);
    let mut engines: Vec<Scaled> = engines.into_iter().map(scaled).collect();
    engines.sort_by(|one, other| other.fastest().total_cmp(&one.fastest()));
    let keys = if several_keys { format!(", {} keys", key.keys) } else { String::new() };
    let fixed = if key.fixed.is_empty() { String::new() } else { format!(", {}", key.fixed) };
    (!engines.is_empty()).then(|| Sweep {
        axis,
        name: plain_text(&format!("{} / {}", key.base, key.phase)),
        settings: plain_text(&format!("{}{keys}{fixed}", key.level)),
        engines,
    })
}

/// The tables for a report; empty if nothing was varied.
pub(super) fn blocks(summary: &Summary) -> Vec<Block> {
    let sweeps = sweeps(summary);
    if sweeps.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Part("How throughput scales".to_string())];
    for sweep in &sweeps {
        blocks.push(Block::Section(format!(
            "{}: ops/s by {}, {}",
            sweep.name,
            sweep.axis.name(),
            sweep.settings
        )));
        blocks.push(Block::Table(table(sweep)));
        blocks.extend(reasons(sweep).map(|lines| Block::Lines(vec![lines])));
    }
    blocks.push(Block::Lines(vec![LEGEND.to_string()]));
    blocks
}

fn table(sweep: &Sweep) -> Table {
    let mut counts: Vec<u32> =
        sweep.engines.iter().flat_map(|engine| engine.cells.iter().map(|(count, _)| *count)).collect();
    counts.sort_unstable();
    counts.dedup();
    let number = |title: String| Column { title, align: Align::Right };
    let engine = Column { title: "engine".to_string(), align: Align::Left };
    let titles = counts.iter().map(u32::to_string).chain(LAW.map(String::from)).map(number);
    let mut table = Table::new([engine].into_iter().chain(titles).collect());
    for engine in &sweep.engines {
        let at = |count: &u32| {
            engine.cells.iter().find(|(own, _)| own == count).and_then(|(_, cell)| cell.ops_per_second)
        };
        let figures = counts.iter().map(|count| known(at(count), rate));
        let law = match &engine.law {
            Ok(law) => law_texts(law, engine),
            Err(_) => LAW.map(|_| UNKNOWN.to_string()),
        };
        table.push([engine.name.clone()].into_iter().chain(figures).chain(law).collect());
    }
    table
}

/// The columns of the law.
const LAW: [&str; 4] = ["serial", "crosstalk", "peak", "off by"];

fn law_texts(law: &Law, engine: &Scaled) -> [String; 4] {
    let percent = |share: f64| {
        let percent = share * 100.0;
        let decimals = if percent >= 10.0 {
            0
        } else if percent >= 1.0 || percent == 0.0 {
            1
        } else {
            3
        };
        format!("{percent:.decimals$}")
    };
    let estimate = |of: kvdyno_core::results::scaling::Estimate| {
        format!("{} % ({}..{})", percent(of.value), percent(of.low), percent(of.high))
    };
    let most = engine.cells.last().map_or(0, |(count, _)| *count);
    let peak = law.peak().map(|peak| match peak <= f64::from(most) {
        true => format!("{peak:.0}"),
        false => format!("over {most}"),
    });
    [
        estimate(law.sigma),
        estimate(law.kappa),
        peak.unwrap_or_else(|| UNKNOWN.to_string()),
        format!("{} %", percent(law.deviation)),
    ]
}

/// Why engines have no law, in one line; none: all have one.
fn reasons(sweep: &Sweep) -> Option<String> {
    let reason = |engine: &Scaled| {
        Some(format!("{}: {}", engine.name, misfit(engine.law.as_ref().err()?, sweep.axis)))
    };
    let all: Vec<String> = sweep.engines.iter().filter_map(reason).collect();
    (!all.is_empty()).then(|| plain_text(&format!("No law is fitted. {}.", all.join("; "))))
}

fn misfit(misfit: &Misfit, axis: Axis) -> String {
    match misfit {
        Misfit::Counts(counts) => {
            format!("{counts} numbers of {}, and the law needs {FEWEST_COUNTS}", axis.name())
        }
        Misfit::Rates => "a rate is 0".to_string(),
        Misfit::Superlinear => format!("throughput grows faster than the number of {}", axis.name()),
        Misfit::Deviation { count, share } => {
            format!("the law is off by {:.0} % at {count} {}", share * 100.0, axis.name())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};
    use std::sync::Arc;

    /// A run of `counts` threads in which engine `a` follows a law and `b` takes 1.5 times as long.
    pub(crate) fn swept(
        counts: &[u32],
        cost_ns: impl Fn(u32) -> u64,
    ) -> (kvdyno_core::results::Run, Summary) {
        let phases = [PhaseSketch::new("read", &["get"], 20_000)];
        let names: Vec<String> = counts.iter().map(|count| format!("grow-t{count}")).collect();
        let sketch = |(name, count): (&'static str, u32)| Sketch {
            name,
            variant_of: Some("grow"),
            phases: &phases,
            engines: &["a", "b"],
            runs: 5,
            cost_ns: cost_ns(count),
            ..Sketch::EMPTY
        };
        let names: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
        let sketches: Vec<Sketch> = names.into_iter().zip(counts.iter().copied()).map(sketch).collect();
        let (mut run, mut records) = drawn(&sketches);
        let threads = |trial: &mut kvdyno_core::results::Trial| {
            let count: u32 = trial.workload.name.rsplit("-t").next().unwrap().parse().unwrap();
            Arc::make_mut(&mut trial.workload).phases.iter_mut().for_each(|phase| phase.threads = count);
            count
        };
        for record in &mut records {
            let count = threads(&mut record.trial);
            record.phases.iter_mut().for_each(|phase| phase.phase.threads = count);
        }
        for trial in &mut run.plan.trials {
            threads(trial);
        }
        let summary = Summary::new(&run, records);
        (run, summary)
    }

    /// The time of an op at which the complete rate follows the law.
    fn lawful(count: u32) -> u64 {
        let n = f64::from(count);
        (20_000.0 * (1.0 + 0.05 * (n - 1.0) + 0.01 * n * (n - 1.0)) / n) as u64
    }

    #[test]
    fn a_sweep_has_a_row_for_each_engine_and_the_law() {
        let (_, summary) = swept(&[8, 1, 4, 2, 16], lawful);
        let all = sweeps(&summary);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].settings.as_str()), ("grow / read", "level process"));
        let names: Vec<String> = all[0].engines.iter().map(|engine| engine.name.clone()).collect();
        assert_eq!(names, ["a", "b"]);
        let law = all[0].engines[0].law.unwrap();
        assert!(law.sigma.low <= 0.05 && 0.05 <= law.sigma.high, "{law:?}");
        assert!(law.kappa.low <= 0.01 && 0.01 <= law.kappa.high, "{law:?}");
        let text = crate::text::blocks(blocks(&summary));
        assert!(text.contains("grow / read: ops/s by threads, level process:"), "{text}");
        let row = text.lines().find(|line| line.trim_start().starts_with("a ")).unwrap();
        assert!(row.contains(" % (") && !row.contains('-'), "{row}");
    }

    #[test]
    fn too_few_counts_have_a_table_and_a_reason_instead_of_a_law() {
        let (_, summary) = swept(&[1, 2, 4], lawful);
        let text = crate::text::blocks(blocks(&summary));
        assert!(text.contains("a: 3 numbers of threads, and the law needs 4"), "{text}");
        assert!(blocks(&swept(&[2], lawful).1).is_empty(), "one count is no sweep");
    }

    #[test]
    fn an_engine_with_several_numbers_of_nodes_is_a_sweep() {
        let phases = [PhaseSketch::new("read", &["get"], 20_000)];
        let sketch = Sketch { name: "look", phases: &phases, engines: &["a", "b", "c"], ..Sketch::EMPTY };
        let (mut run, mut records) = drawn(&[sketch]);
        let change = |trial: &mut kvdyno_core::results::Trial| {
            if let Some(members) = ["a", "b"].iter().position(|name| *name == trial.engine) {
                trial.engine = "store".into();
                trial.nodes_option = Some("members".into());
                trial.options =
                    vec![("size".into(), "1".into()), ("members".into(), (2 * members + 1).to_string())];
            }
        };
        records.iter_mut().for_each(|record| change(&mut record.trial));
        run.plan.trials.iter_mut().for_each(change);
        let summary = Summary::new(&run, records);
        let all = sweeps(&summary);
        assert_eq!((all.len(), all[0].axis, all[0].engines.len()), (1, Axis::Nodes, 1));
        let counts: Vec<u32> = all[0].engines[0].cells.iter().map(|(count, _)| *count).collect();
        assert_eq!((all[0].engines[0].name.as_str(), counts), ("store (size=1)", vec![1, 3]));
        // An option of the same name that is no number of nodes is one like any other.
        run.plan.trials.iter_mut().for_each(|trial| trial.nodes_option = None);
        assert!(sweeps(&Summary::new(&run, summary.records)).is_empty());
    }

    /// Regression: the rows of `redis-cluster (masters=1)` and `(masters=3)` were one, because their names were shortened
    /// first.
    #[test]
    fn engines_whose_long_options_differ_at_the_end_have_rows_of_their_own() {
        let (mut run, summary) = swept(&[1, 2, 4, 8], lawful);
        let mut records = summary.records;
        let change = |trial: &mut kvdyno_core::results::Trial| {
            let count = if trial.engine == "a" { "1" } else { "3" };
            trial.engine = "redis-cluster".into();
            let name = "masters-of-the-cluster".to_string();
            (trial.options, trial.nodes_option) = (vec![(name.clone(), count.into())], Some(name));
        };
        records.iter_mut().for_each(|record| change(&mut record.trial));
        run.plan.trials.iter_mut().for_each(change);
        let summary = Summary::new(&run, records);
        let all = sweeps(&summary);
        let of = |axis: Axis| all.iter().filter(|sweep| sweep.axis == axis).collect::<Vec<_>>();
        assert_eq!(of(Axis::Threads).iter().map(|sweep| sweep.engines.len()).collect::<Vec<_>>(), [2]);
        // Each list has its own tables, in which the other is fixed.
        let nodes: Vec<&str> = of(Axis::Nodes).iter().map(|sweep| sweep.settings.as_str()).collect();
        let wanted =
            ["", ", 2 threads", ", 4 threads", ", 8 threads"].map(|more| format!("level process{more}"));
        assert_eq!(nodes, wanted);
    }

    #[test]
    fn a_law_that_does_not_hold_is_named() {
        let (_, summary) = swept(&[1, 2, 4, 8], |count| if count < 4 { 20_000 } else { 4_000 });
        let text = crate::text::blocks(blocks(&summary));
        assert!(text.contains("No law is fitted. a: "), "{text}");
    }
}
