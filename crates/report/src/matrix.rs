//! The engines of a workload by its phases: rates, ratios to the best, ranges of ranks and marks, as data without texts;
//! `grid.rs` puts it into words.

use kvdyno_core::results::Durability;
use kvdyno_core::results::Kind;
use kvdyno_core::results::means::{Mean, Rates, means, noise};
use kvdyno_core::results::statistics::{FEWEST_FOR_ORDER, median};
use kvdyno_core::results::summary::{Cell, Group, PhaseSummary, RunFigures, RunState, Summary, is_mutant};
use kvdyno_measure::warning::HARNESS_SHARE_LIMIT;
use std::collections::{BTreeMap, BTreeSet};

/// A workload: its engines by its phases.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The phases, in the order of the plan.
    pub columns: Vec<Column<'a>>,
    /// The rows: engines with the same effective levels are together. The weakest levels are first, then caches and servers,
    /// then rows that are never ranked.
    pub sections: Vec<Section<'a>>,
}

/// A phase.
#[derive(Debug)]
pub(super) struct Column<'a> {
    /// The phase.
    pub phase: &'a PhaseSummary,
    /// Whether it only loads keys.
    pub only_loads: bool,
}

/// What the rows of a section are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Engines of a kind.
    Engines(Kind),
    /// Engines without any figure, and engines with a planted bug.
    Unranked,
    /// Engines that store nothing: the cost of the harness.
    Floor,
}

/// Rows with the same effective levels.
#[derive(Debug)]
pub(super) struct Section<'a> {
    /// What its rows are.
    pub standing: Standing,
    /// The effective level in each column; none: no row has figures there.
    pub levels: Vec<Option<Durability>>,
    /// The rows, in descending order of their means.
    pub rows: Vec<Row<'a>>,
}

/// An engine with its options. An engine whose runs of one phase had different effective levels has a row for each.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// The engine.
    pub engine: &'a str,
    /// Its requested options.
    pub options: &'a [(String, String)],
    /// Its label.
    pub label: &'a str,
    /// An entry for each column; none: the engine was not planned in this phase.
    pub entries: Vec<Option<Entry<'a>>>,
    /// Its mean over the columns, relative to the best row of its section, by which rows are sorted; none: it is compared with
    /// no other row.
    pub mean: Option<Mean>,
}

impl Row<'_> {
    /// Whether it has figures. Rows without any are in the lines on failures.
    pub(super) fn has_figures(&self) -> bool {
        self.entries.iter().flatten().any(|entry| entry.state == State::Measured)
    }
}

/// Whether an entry has figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has figures.
    Measured,
    /// It has none, because the engine failed.
    Failed,
    /// It has none, because the phase was not run: the engine lacks a capability or a level.
    NotRun,
    /// It has none, because no trial has been measured yet.
    Pending,
}

/// An engine in a phase. Its rate, interval, rank and latency are those of the cell.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What it is; [`Standing::Unranked`] also if the engine has figures in other phases only.
    pub standing: Standing,
    /// Whether it has figures.
    pub state: State,
    /// Its rate divided by the highest rate at the same level in the same phase; none: it has no figures, is never ranked, its
    /// level is contradicted, or it is alone at its level.
    pub ratio: Option<f64>,
    /// Whether no other engine has a higher rate at this level in this phase; false if there is no other.
    pub is_highest: bool,
    /// Whether no other engine was shown to be faster, although some were shown to be slower.
    pub is_leader: bool,
    /// What a reader must know about its figures, the most serious first.
    pub marks: Vec<Mark>,
}

/// What a reader must know about the figures of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// Some runs have no figures.
    Incomplete,
    /// The driver's times do not account for its calls.
    Unaccounted,
    /// The system calls are not those of the durability level.
    Contradicted,
    /// The phase was run with different settings from the other engines.
    OtherSettings,
    /// A cache evicted rows that were read later.
    Evicted,
    /// Its ops use a socket to another process.
    Server,
    /// Some ops were emulated by the core.
    Emulated,
    /// The harness took a large share of the time.
    HarnessBound,
    /// Most runs were disturbed.
    Disturbed,
}

/// The matrices of a run, one for each workload, in the order of the plan.
pub(super) fn matrices(summary: &Summary) -> Vec<Matrix<'_>> {
    let mut workloads: Vec<&str> = Vec::new();
    for phase in &summary.phases {
        if !workloads.contains(&phase.workload.as_str()) {
            workloads.push(&phase.workload);
        }
    }
    workloads.into_iter().map(|workload| matrix(summary, workload)).collect()
}

fn matrix<'a>(summary: &'a Summary, workload: &'a str) -> Matrix<'a> {
    let phases = summary.phases.iter().filter(|phase| phase.workload == workload);
    let columns: Vec<Column> =
        phases.map(|phase| Column { phase, only_loads: phase.settings.is_fill() }).collect();
    Matrix { workload, sections: sections(rows(&columns)), columns }
}

/// A row, and what its section must be.
struct Placed<'a> {
    standing: Standing,
    row: Row<'a>,
}

impl Placed<'_> {
    fn levels(&self) -> Vec<Option<Durability>> {
        let level = |entry: &Option<Entry>| {
            entry.as_ref().filter(|entry| entry.state == State::Measured)?.cell.durability_effective
        };
        self.row.entries.iter().map(level).collect()
    }
}

/// The rows in order of appearance.
fn rows<'a>(columns: &[Column<'a>]) -> Vec<Placed<'a>> {
    let mut rows: Vec<Placed> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        for entry in entries(column.phase) {
            let standing = entry.standing;
            let is_free = |row: &Row| {
                row.engine == entry.cell.engine
                    && row.options == entry.cell.options
                    && row.entries[place].is_none()
            };
            let found = match rows.iter().position(|placed| is_free(&placed.row)) {
                Some(found) => found,
                None => {
                    let entries = columns.iter().map(|_| None).collect();
                    let Cell { engine, options, label, .. } = entry.cell;
                    rows.push(Placed { standing, row: Row { engine, options, label, entries, mean: None } });
                    rows.len() - 1
                }
            };
            // A row is ranked if the engine has figures in one phase.
            rows[found].standing = rows[found].standing.min(standing);
            rows[found].row.entries[place] = Some(entry);
        }
    }
    rows
}

fn entries(phase: &PhaseSummary) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for group in &phase.groups {
        let standing = Standing::Engines(group.kind);
        // Ranked cells are first, in descending order of their rates.
        let best = group.cells.first().filter(|cell| group.cells.len() > 1 && !is_contradicted(cell));
        let highest = best.and_then(|cell| cell.speed()).filter(|highest| *highest > 0.0);
        for (place, cell) in group.cells.iter().enumerate() {
            // What has no rank because its level is contradicted is not compared with the others either.
            let rate = cell.speed().filter(|_| !is_contradicted(cell));
            let ratio = rate.and_then(|rate| Some(rate / highest?));
            let is_leader = cell.rank.is_some_and(|rank| rank.best == 1 && rank.of > 1 && !rank.is_open());
            let is_highest = place == 0 && best.is_some();
            entries.push(Entry { ratio, is_highest, is_leader, ..entry(cell, standing) });
        }
    }
    entries.extend(phase.unranked.iter().map(|cell| entry(cell, Standing::Unranked)));
    entries.extend(phase.floors.iter().map(|cell| entry(cell, Standing::Floor)));
    entries
}

fn entry(cell: &Cell, standing: Standing) -> Entry<'_> {
    let is = |test: fn(&RunState) -> bool| cell.runs.iter().any(|run| test(&run.state));
    let state = match cell.counted_runs {
        1.. => State::Measured,
        0 if is(|state| matches!(state, RunState::Failed { .. })) => State::Failed,
        0 if is(|state| matches!(state, RunState::NotRun { .. })) => State::NotRun,
        0 => State::Pending,
    };
    let marks = if state == State::Measured { marks(cell) } else { Vec::new() };
    Entry { cell, standing, state, ratio: None, is_highest: false, is_leader: false, marks }
}

fn is_contradicted(cell: &Cell) -> bool {
    cell.safety.is_contradicted()
}

fn marks(cell: &Cell) -> Vec<Mark> {
    let found = [
        (Mark::Incomplete, cell.runs.iter().any(|run| !run.state.counts())),
        (Mark::Unaccounted, cell.runs.iter().any(|run| run.unaccounted.is_some())),
        (Mark::Contradicted, is_contradicted(cell)),
        (Mark::OtherSettings, cell.settings_differ),
        (Mark::Evicted, cell.evicted_share.is_some_and(|share| share > 0.0)),
        (Mark::Server, cell.class.kind.is_server()),
        (Mark::Emulated, !cell.emulated.is_empty()),
        (Mark::HarnessBound, cell.harness_share.is_some_and(|share| share > HARNESS_SHARE_LIMIT)),
        (Mark::Disturbed, cell.is_disturbed()),
    ];
    // The null engine is nothing but the harness, and a planted bug is no property of an engine.
    found
        .into_iter()
        .filter(|(_, is_found)| *is_found && !is_mutant(&cell.engine))
        .map(|(mark, _)| mark)
        .collect()
}

/// The rates of rows of cells, one for each block, and the machine of each block. A longer phase may have warmer caches, so in each
/// block only the longest runs of a column are compared, as they are for ranks.
fn rates(cells: &[Vec<Option<&Cell>>]) -> (Vec<Vec<Rates>>, Vec<usize>) {
    let block = |run: &RunFigures| (run.machine, run.repetition);
    let longest = |column: usize| -> BTreeMap<(Option<u32>, u32), f64> {
        let mut lengths = BTreeMap::new();
        for run in cells.iter().filter_map(|row| row[column]).flat_map(|cell| &cell.runs) {
            let length = lengths.entry(block(run)).or_insert(run.length);
            *length = run.length.max(*length);
        }
        lengths
    };
    let lengths: Vec<_> = (0..cells.first().map_or(0, Vec::len)).map(longest).collect();
    let runs = |(column, cell): (usize, &Option<&Cell>)| -> BTreeMap<(Option<u32>, u32), f64> {
        let runs = cell.iter().flat_map(|cell| &cell.runs);
        let compared = runs.filter(|run| lengths[column].get(&block(run)) == Some(&run.length));
        compared.filter_map(|run| Some((block(run), run.speed()?))).collect()
    };
    let own: Vec<Vec<_>> = cells.iter().map(|row| row.iter().enumerate().map(runs).collect()).collect();
    let blocks: BTreeSet<_> = own.iter().flatten().flat_map(BTreeMap::keys).copied().collect();
    let of = |runs: &BTreeMap<_, f64>| blocks.iter().map(|block| runs.get(block).copied()).collect();
    let rates = own.iter().map(|row| row.iter().map(of).collect()).collect();
    (rates, blocks.iter().map(|(on, _)| on.unwrap_or_default() as usize).collect())
}

/// The cell of an entry whose rate is compared with others.
fn compared<'a>(entry: &Option<Entry<'a>>) -> Option<&'a Cell> {
    Some(entry.as_ref()?.cell).filter(|cell| !is_contradicted(cell))
}

/// Sets the means of rows of one section: of the rates that their ratios are made of.
fn set_means(rows: &mut [Row]) {
    let cells: Vec<Vec<Option<&Cell>>> =
        rows.iter().map(|row| row.entries.iter().map(compared).collect()).collect();
    let (rates, machines) = rates(&cells);
    for (row, mean) in rows.iter_mut().zip(means(&rates, &machines)) {
        row.mean = mean;
    }
}

/// How much the runs of a column at a level vary, and what that hides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Noise {
    /// The standard deviation of the log of a run's rate, pooled over its ranked engines: about a share of the rate.
    pub share: f64,
    /// An engine is shown to be faster than another if it is ahead by about this share.
    pub gap: f64,
}

impl Noise {
    /// Of the ranked engines of a group, without those of which a race has skipped so many runs that too few are left; none: no
    /// order is claimed.
    fn of(group: &Group) -> Option<Noise> {
        let has_enough = |cell: &&Cell| cell.rank.is_some() && cell.runs.len() >= FEWEST_FOR_ORDER;
        let ranked = || group.cells.iter().filter(has_enough);
        // An order is claimed if the interval of the ratio does not contain 1.
        let intervals = ranked().filter_map(|cell| cell.ratio?.interval);
        let widths: Vec<f64> = intervals.map(|interval| (interval.high / interval.low).ln()).collect();
        let gap = (median(&widths)? / 2.0).exp() - 1.0;
        let (rates, _) = rates(&ranked().map(|cell| vec![Some(cell)]).collect::<Vec<_>>());
        let share = noise(&rates.into_iter().flatten().collect::<Vec<Rates>>())?;
        Some(Noise { share, gap })
    }
}

impl Column<'_> {
    /// The noise of its groups, with their levels.
    pub(crate) fn noise(&self) -> impl Iterator<Item = (Durability, Noise)> {
        self.phase.groups.iter().filter_map(|group| Some((group.durability_effective, Noise::of(group)?)))
    }
}

/// The rows by their levels. Rows with figures in most phases are placed first; a row with fewer joins the first section
/// that has the same levels in its phases.
fn sections(mut rows: Vec<Placed>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    rows.sort_by_key(|placed| std::cmp::Reverse(placed.levels().iter().flatten().count()));
    for placed in rows {
        let levels = placed.levels();
        let is_same = |section: &&mut Section| {
            let mut both = section.levels.iter().zip(&levels);
            let never_ranked = matches!(placed.standing, Standing::Unranked | Standing::Floor);
            section.standing == placed.standing
                && (never_ranked || both.all(|(one, other)| one.is_none() || other.is_none() || one == other))
        };
        match sections.iter_mut().find(is_same) {
            Some(section) => {
                for (known, own) in section.levels.iter_mut().zip(levels) {
                    *known = known.or(own);
                }
                section.rows.push(placed.row);
            }
            None => sections.push(Section { standing: placed.standing, levels, rows: vec![placed.row] }),
        }
    }
    for section in &mut sections {
        if matches!(section.standing, Standing::Engines(_)) {
            set_means(&mut section.rows);
        }
        let mean = |row: &Row| row.mean.map_or(f64::NEG_INFINITY, |mean| mean.value);
        section.rows.sort_by(|one, other| {
            mean(other).total_cmp(&mean(one)).then_with(|| one.engine.cmp(other.engine))
        });
    }
    sections.sort_by_key(|section| (section.standing, section.level(), section.levels.clone()));
    sections
}

impl Section<'_> {
    /// The level of most of its columns; none: no row has figures.
    pub(crate) fn level(&self) -> Option<Durability> {
        let count = |level: Durability| self.levels.iter().flatten().filter(|own| **own == level).count();
        // If two are equally frequent, the weaker one.
        self.levels.iter().flatten().copied().max_by_key(|level| (count(*level), std::cmp::Reverse(*level)))
    }

    /// The columns with another level, each with its place.
    pub(crate) fn exceptions(&self) -> Vec<(usize, Durability)> {
        let own = self.level();
        let levels = self.levels.iter().enumerate();
        levels
            .filter_map(|(place, level)| Some((place, (*level).filter(|level| Some(*level) != own)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::fixture;

    fn places<'a>(matrix: &'a Matrix) -> Vec<(&'a str, &'a Entry<'a>)> {
        let rows = matrix.sections.iter().flat_map(|section| &section.rows);
        rows.flat_map(|row| row.entries.iter().flatten().map(|entry| (row.engine, entry))).collect()
    }

    #[test]
    fn every_engine_and_phase_of_the_plan_is_in_the_matrix_once() {
        let summary = Summary::new(&fixture::run(), fixture::records());
        let matrices = matrices(&summary);
        assert_eq!((matrices.len(), matrices[0].workload), (1, "quick"));
        let found = places(&matrices[0]);
        for (place, phase) in summary.phases.iter().enumerate() {
            assert_eq!(matrices[0].columns[place].phase.name, phase.name);
            for engine in fixture::ENGINES {
                let cells = |cell: &&Cell| cell.engine == engine;
                let own: Vec<&Cell> = phase.cells().chain(&phase.floors).filter(cells).collect();
                assert_eq!(own.len(), 1, "{engine}");
                let is_it =
                    |(name, entry): &&(&str, &Entry)| *name == engine && std::ptr::eq(entry.cell, own[0]);
                assert_eq!(found.iter().filter(is_it).count(), 1, "{engine} in {}", phase.name);
            }
        }
        assert_eq!(found.len(), fixture::ENGINES.len() * 4);
    }

    #[test]
    fn rows_are_grouped_by_their_levels_and_sorted_by_the_mean_of_their_ratios() {
        let summary = Summary::new(&fixture::run(), fixture::records());
        let matrix = &matrices(&summary)[0];
        let found: Vec<(Standing, Option<Durability>, Vec<&str>)> = matrix
            .sections
            .iter()
            .map(|section| {
                (section.standing, section.level(), section.rows.iter().map(|row| row.engine).collect())
            })
            .collect();
        let expected = [
            // sled does not reach the level of the last phase, and has the level of the others in the rest.
            (
                Standing::Engines(Kind::Embedded),
                Some(Durability::Process),
                vec!["lmdb", "fjall", "sled", "sqlite"],
            ),
            (Standing::Engines(Kind::Embedded), Some(Durability::Power), vec!["redb"]),
            (Standing::Unranked, None, vec!["mutant:stale-read"]),
            (Standing::Floor, Some(Durability::None), vec!["null"]),
        ];
        assert_eq!(found, expected);
        assert_eq!(matrix.sections[0].exceptions(), [(3, Durability::Power)]);
        let loads: Vec<bool> = matrix.columns.iter().map(|column| column.only_loads).collect();
        assert_eq!(loads, [true, false, false, false]);
        let rows = &matrix.sections[0].rows;
        let mean = rows.iter().find(|row| row.engine == "sled").and_then(|row| row.mean).unwrap();
        assert_eq!(mean.columns, 3);
        assert!(
            mean.interval.is_some_and(|interval| interval.low < mean.value && mean.value < interval.high)
        );
        let best = rows[0].mean.unwrap();
        assert_eq!((best.value, best.interval, best.columns), (1.0, None, 4));
        let means = rows.iter().map(|row| row.mean.unwrap().value);
        assert!(means.is_sorted_by(|one, next| one >= next));
        assert_eq!(matrix.sections[1].rows[0].mean, None, "alone at its level");
        for column in 0..matrix.columns.len() {
            let highest = |row: &&Row| row.entries[column].as_ref().is_some_and(|entry| entry.is_highest);
            let all = matrix.sections.iter().flat_map(|section| &section.rows);
            assert_eq!(all.filter(highest).count(), 1, "column {column}");
        }
    }

    #[test]
    fn rates_are_of_runs_with_the_length_that_a_block_has() {
        let summary = Summary::new(&fixture::run(), fixture::records());
        let cells = &summary.phases[1].groups[0].cells;
        let (mut longer, other) = (cells[0].clone(), &cells[1]);
        // In the last run the phase was longer for one of them.
        longer.runs[2].length = 3.0;
        let known = |cells: &[Vec<Option<&Cell>>]| -> Vec<Vec<bool>> {
            let (rates, _) = rates(cells);
            rates.iter().map(|row| row.iter().flatten().map(Option::is_some).collect()).collect()
        };
        assert_eq!(
            known(&[vec![Some(&longer)], vec![Some(other)]]),
            [vec![true; 3], vec![true, true, false]]
        );
        // Columns have lengths of their own.
        let apart = known(&[vec![Some(&longer), None], vec![None, Some(other)]]);
        assert_eq!(apart.iter().map(|row| row.iter().filter(|known| **known).count()).sum::<usize>(), 6);
    }

    #[test]
    fn the_noise_of_a_column_is_that_of_the_engines_with_enough_runs() {
        let noise = |engine: &str, run: u32| 1.0 + f64::from(run * engine.len() as u32 % 5) / 100.0;
        let (summary, _) = crate::tests::scaled(&["lmdb", "fjall", "sqlite"], 5, noise);
        let mut group = summary.phases[1].groups[0].clone();
        let all = Noise::of(&group).unwrap();
        let last = group.cells.len() - 1;
        group.cells[last].runs.truncate(3);
        let without = Noise::of(&group).unwrap();
        assert!(without.share > 0.0 && without.share != all.share, "{without:?} {all:?}");
        group.cells[last - 1].runs.truncate(3);
        assert_eq!(Noise::of(&group), None, "one engine alone has no noise");
    }

    #[test]
    fn entries_without_figures_state_why() {
        let summary = Summary::new(&fixture::run(), fixture::records());
        let matrix = &matrices(&summary)[0];
        let state = |engine: &str, column: usize| {
            let mut rows = matrix.sections.iter().flat_map(|section| &section.rows);
            let row = rows.find(|row| row.engine == engine).unwrap();
            row.entries[column].as_ref().map(|entry| (entry.state, entry.marks.first().copied())).unwrap()
        };
        assert_eq!(state("mutant:stale-read", 1), (State::Failed, None));
        assert_eq!(state("sled", 3), (State::NotRun, None));
        assert_eq!(state("sqlite", 1), (State::Measured, Some(Mark::Incomplete)));
        assert_eq!(state("lmdb", 2), (State::Measured, None));
        let run = fixture::run();
        let empty = Summary::new(&run, Vec::new());
        let pending = &matrices(&empty)[0];
        let own: Vec<State> = places(pending).iter().map(|(_, entry)| entry.state).collect();
        assert!(own.iter().all(|state| *state == State::Pending) && own.len() == 28, "{own:?}");
    }
}
