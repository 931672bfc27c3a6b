//! A matrix in words: what its cells, its rows and the text below it say. The overview draws it for a terminal (`text/grid.rs`), and
//! the page as a map of shades (`html/heatmap.rs`).

use super::block::Block;
use super::describe::{data, headline, p99_words, question, runs};
use super::figure::known;
use super::matrix::{Column, Entry, Mark, Matrix, Noise, Row, Section, Standing, State, matrices};
use super::safety;
use kvdyno_core::results::means::Mean;
use kvdyno_core::results::statistics::{FEWEST_FOR_ORDER, Rank};
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Durability, Kind};
use kvdyno_measure::text::{listed, plain_text, short_text};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of a phase's name in the line on noise.
const NAME_LIMIT: usize = 16;
/// The sign of a cell that later runs of a race skip.
pub(super) const LEFT: &str = "'";
/// If more than this share of the cells were disturbed, the cells are not marked, and a line says so.
const MANY_DISTURBED: f64 = 0.5;

/// The engines of a workload by its phases, in words. Names may contain anything.
pub(super) struct Grid {
    /// The workload's name.
    pub workload: String,
    /// The runs whose median a rate is: `5 runs`.
    pub runs: String,
    /// The size of the data, and what they fit into; none: unknown.
    pub data: Option<String>,
    /// The phases.
    pub columns: Vec<Head>,
    /// The rows with figures, by their levels; empty: no engine was measured.
    pub levels: Vec<Level>,
    /// The signs of the cells, each with its meaning.
    pub signs: Vec<(&'static str, String)>,
    /// What the means are; none: there are none.
    pub means: Option<MeansLegend>,
    /// How many cells were disturbed, if they are too many to be marked; none: they are marked.
    pub disturbed: Option<String>,
    /// What the noise of the runs hides; none: no order is claimed.
    pub noise: Option<String>,
    /// What acknowledged writes survive at the levels, after the name of the weakest; none: nothing.
    pub promise: Option<(Durability, String)>,
    /// The marks of safety with the engines that have them.
    pub safety: Vec<String>,
    /// The engines without figures.
    pub absent: Vec<String>,
}

/// The head of a column.
pub(super) struct Head {
    /// The phase's name.
    pub name: String,
    /// What the phase asks.
    pub question: String,
    /// Whether it only loads keys.
    pub only_loads: bool,
    /// Whether its requests arrive at a rate, so that it is ranked by response p99.
    pub has_rate: bool,
}

/// Rows with the same effective levels, below their title.
pub(super) struct Level {
    /// Their title.
    pub title: Title,
    /// The level of most columns; none: unknown, or not that of an engine.
    pub own: Option<Durability>,
    /// The places of the columns that rows of their kind above have at the same level; none: there are no such rows.
    pub comparable: Option<Vec<usize>>,
    /// Whether they store nothing, which is the cost of the harness.
    pub is_floor: bool,
    /// The rows, in descending order of their means.
    pub lines: Vec<Line>,
}

/// The title of rows: `level process (sync: power), servers behind a socket`.
pub(super) struct Title {
    start: String,
    /// The columns with another level: the place and `sync: power`.
    exceptions: Vec<(usize, String)>,
    end: &'static str,
}

/// An engine with its options.
pub(super) struct Line {
    /// Its label.
    pub engine: String,
    /// The marks of its safety: `+`, or `+/X`; empty: nothing is to be proven of it.
    pub safe: String,
    /// Its mean over the columns; none: it is compared with no other.
    pub mean: Option<MeanWords>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// An engine in a phase.
pub(super) enum Cell {
    /// It has no figures, because it was not run.
    NotRun,
    /// It has no figures, because the engine failed.
    Failed,
    /// It has figures.
    Measured(Figures),
}

/// The figures of an engine in a phase.
pub(super) struct Figures {
    /// Its rate, `1.23M`, or its response p99, `1.2ms`; `-` if unknown.
    pub headline: String,
    /// Its range of ranks and the marks: `1-3 h`; empty if there are none.
    pub rank: String,
    /// Whether later runs of a race skip it.
    pub has_left: bool,
    /// Whether no other engine has a higher rate at this level; false if there is no other.
    pub is_highest: bool,
    /// Whether no other engine was shown to be faster, although some were shown to be slower.
    pub is_leader: bool,
    /// Its rate divided by the highest at its level; none: it is compared with nothing.
    pub ratio: Option<f64>,
    /// Its 99th percentile, or that of each kind of op: `p99 1.2us`; none: unknown.
    pub p99: Option<String>,
}

/// The matrices of a run, one for each workload, in the order of the plan.
pub(super) fn blocks(summary: &Summary) -> Vec<Block> {
    matrices(summary).iter().map(|matrix| Block::Matrix(Box::new(Grid::of(matrix, summary)))).collect()
}

impl Grid {
    fn of(matrix: &Matrix, summary: &Summary) -> Grid {
        let all = matrix.sections.iter().flat_map(|section| &section.rows);
        let (rows, absent): (Vec<&Row>, Vec<&Row>) = all.partition(|row| row.has_figures());
        let disturbed = Disturbed::of(&rows);
        let columns = matrix.columns.len();
        let sections: Vec<&Section> = matrix
            .sections
            .iter()
            .filter(|section| section.rows.iter().any(|row| row.has_figures()))
            .collect();
        let level = |(place, section): (usize, &&Section)| {
            Level::of(section, matrix, comparable(section, &sections[..place]), &disturbed)
        };
        Grid {
            workload: matrix.workload.to_string(),
            runs: runs(summary),
            data: data(summary, matrix.workload),
            columns: matrix.columns.iter().map(Head::of).collect(),
            levels: sections.iter().enumerate().map(level).collect(),
            signs: signs(&rows, &disturbed, summary.runs),
            means: means_legend(&rows, columns),
            disturbed: disturbed.words(),
            noise: noise(matrix),
            promise: promise(&sections),
            safety: safety::lines(summary, matrix.workload),
            absent: absent.iter().map(|row| row.label.to_string()).collect(),
        }
    }

    /// What the columns show.
    pub(super) fn figure(&self) -> &'static str {
        match self.columns.iter().filter(|head| head.has_rate).count() {
            0 => "ops/s",
            count if count == self.columns.len() => "response p99",
            _ => "ops/s, or response p99 (p99)",
        }
    }

    /// The signs as a sentence, each with its meaning as `sign` writes them, what the means are, and how many cells were disturbed.
    /// `has_intervals`: the means have their intervals.
    pub(super) fn legend(&self, sign: impl Fn(&str, &str) -> String, has_intervals: bool) -> Vec<String> {
        let signs: Vec<String> = self.signs.iter().map(|(own, words)| sign(own, words)).collect();
        let signs = (!signs.is_empty()).then(|| format!("{}.", signs.join("; ")));
        let means = self.means.as_ref().map(|means| means.text(has_intervals));
        signs.into_iter().chain(means).chain(self.disturbed.clone()).collect()
    }
}

impl Head {
    fn of(column: &Column) -> Head {
        Head {
            name: column.phase.name.clone(),
            question: question(column.phase),
            only_loads: column.only_loads,
            has_rate: column.phase.settings.rate.is_some(),
        }
    }
}

impl Level {
    fn of(
        section: &Section,
        matrix: &Matrix,
        comparable: Option<Vec<usize>>,
        disturbed: &Disturbed,
    ) -> Level {
        let line = |row: &Row| Line {
            engine: row.label.to_string(),
            safe: safety::row_marks(row, section.level()),
            mean: row.mean.map(|mean| MeanWords::of(mean, matrix.columns.len())),
            cells: row.entries.iter().map(|entry| Cell::of(entry.as_ref(), disturbed)).collect(),
        };
        Level {
            title: Title::of(section, matrix),
            own: section.level().filter(|_| is_of_engines(section)),
            comparable,
            is_floor: section.standing == Standing::Floor,
            lines: section.rows.iter().filter(|row| row.has_figures()).map(line).collect(),
        }
    }
}

impl Title {
    /// The title of a section.
    pub(super) fn of(section: &Section, matrix: &Matrix) -> Title {
        let name = |place: usize| plain_text(&matrix.columns[place].phase.name);
        let exceptions = section.exceptions().into_iter();
        let exceptions = exceptions.map(|(place, level)| (place, format!("{}: {level}", name(place))));
        let (start, exceptions, end) = match section.standing {
            Standing::Engines(kind) => {
                let level = known(section.level(), |level| level.to_string());
                (format!("level {level}"), exceptions.collect(), of_kind(kind))
            }
            Standing::Unranked => ("planted bugs, never ranked".to_string(), Vec::new(), ""),
            Standing::Floor => ("floor: stores nothing, the cost of the harness".to_string(), Vec::new(), ""),
        };
        Title { start, exceptions, end }
    }

    /// The title in words. `is_shown`: whether the column at this place is shown.
    pub(super) fn text(&self, is_shown: impl Fn(usize) -> bool) -> String {
        let shown = self.exceptions.iter().filter(|(place, _)| is_shown(*place));
        let shown: Vec<&str> = shown.map(|(_, words)| words.as_str()).collect();
        let exceptions = if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) };
        format!("{}{exceptions}{}", self.start, self.end)
    }
}

/// What rows of a kind have in common, for the end of their title.
fn of_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Embedded => "",
        Kind::Foreign => ", foreign data, values not checked",
        Kind::Cache => ", caches that evict rows",
        Kind::Server => ", servers behind a socket",
        Kind::CacheServer => ", cache servers, which evict rows, behind a socket",
        Kind::Distributed => ", distributed stores with several copies, behind sockets",
        Kind::Stale => ", stores with several copies whose reads may be stale",
        Kind::Reference => ", references: simple engines of kvdyno for comparison, not libraries",
    }
}

impl Cell {
    fn of(entry: Option<&Entry>, disturbed: &Disturbed) -> Cell {
        let Some(entry) = entry else { return Cell::NotRun };
        match entry.state {
            State::Failed => Cell::Failed,
            State::NotRun | State::Pending => Cell::NotRun,
            State::Measured => Cell::Measured(Figures {
                headline: headline(entry.cell),
                rank: if is_compared(entry) { rank(entry, disturbed) } else { String::new() },
                has_left: has_left(entry),
                is_highest: entry.is_highest,
                is_leader: entry.is_leader,
                ratio: entry.ratio,
                p99: p99_words(entry.cell),
            }),
        }
    }
}

/// `too noisy (6.8-9.9 %) to rank engines closer than 26 % (best column) to 58 % (mix) at process, 216 % (mix) at power`, with the
/// phase that has the largest gap, and without levels if there is one only; none: no order is claimed.
fn noise(matrix: &Matrix) -> Option<String> {
    let number = |share: f64| match share * 100.0 {
        percent if percent < 9.95 => format!("{percent:.1}"),
        percent if percent < 999.5 => format!("{percent:.0}"),
        _ => "over 1,000".to_string(),
    };
    let range = |low: f64, high: f64| match (number(low), number(high)) {
        (low, high) if low == high => format!("{high} %"),
        (low, high) => format!("{low}-{high} %"),
    };
    // The least and the largest gap of each level, and the phase that has it.
    let mut levels: BTreeMap<Durability, (f64, f64, &str)> = BTreeMap::new();
    let mut shares: Vec<f64> = Vec::new();
    for column in &matrix.columns {
        let name = column.phase.name.as_str();
        for (level, Noise { share, gap }) in column.noise() {
            let (low, high, most) = levels.entry(level).or_insert((gap, gap, name));
            if gap > *high {
                (*high, *most) = (gap, name);
            }
            *low = low.min(gap);
            shares.push(share);
        }
    }
    let noise = range(shares.iter().copied().reduce(f64::min)?, shares.into_iter().reduce(f64::max)?);
    let has_levels = levels.len() > 1;
    let gaps = levels.iter().enumerate().map(|(place, (level, (low, high, most)))| {
        let at = if has_levels { format!(" at {level}") } else { String::new() };
        let gap = match (number(*low), number(*high)) {
            // The first one explains the others.
            (low, high) if place == 0 && low != high => format!("{low} % (best column) to {high} %"),
            _ => range(*low, *high),
        };
        format!("{gap} ({}){at}", short_text(most, NAME_LIMIT))
    });
    let gaps = gaps.collect::<Vec<_>>().join(", ");
    Some(format!("too noisy ({noise}) to rank engines closer than {gaps}"))
}

/// What acknowledged writes survive at the levels of the sections, after the name of the weakest; none: nothing.
fn promise(sections: &[&Section]) -> Option<(Durability, String)> {
    const KILL: &str = "acknowledged writes survive a kill of the program";
    let own = sections.iter().filter(|section| is_of_engines(section));
    let levels: BTreeSet<Durability> =
        own.flat_map(|section| section.levels.iter().flatten().copied()).collect();
    match (levels.contains(&Durability::Process), levels.contains(&Durability::Power)) {
        (true, true) => Some((Durability::Process, format!("{KILL}; power: also a power cut"))),
        (true, false) => Some((Durability::Process, KILL.to_string())),
        (false, true) => Some((Durability::Power, format!("{KILL} and a power cut"))),
        (false, false) => None,
    }
}

/// The places of the columns that sections of its kind above it have at the same level; none: there are no such sections.
fn comparable(section: &Section, above: &[&Section]) -> Option<Vec<usize>> {
    let above = || above.iter().filter(|other| is_of_engines(section) && other.standing == section.standing);
    above().next()?;
    let is_same = |place: &usize| {
        let level = section.levels[*place];
        level.is_some() && above().any(|other| other.levels[*place] == level)
    };
    Some((0..section.levels.len()).filter(is_same).collect())
}

/// Whether its rows are of engines, and not of the harness or of planted bugs.
fn is_of_engines(section: &Section) -> bool {
    matches!(section.standing, Standing::Engines(_))
}

/// Whether it has figures of an engine, and not of the harness or of a planted bug.
fn is_compared(entry: &Entry) -> bool {
    matches!(entry.standing, Standing::Engines(_))
}

/// Whether later runs of a race skip it, because it could no longer be the fastest.
fn has_left(entry: &Entry) -> bool {
    is_compared(entry) && entry.cell.beaten && entry.cell.left_out > 0
}

/// `left the race after run 3 or 4, cannot win this column any more`; empty: none has.
fn left_words<'a>(entries: impl Iterator<Item = &'a Entry<'a>>) -> String {
    let runs: BTreeSet<usize> =
        entries.filter(|entry| has_left(entry)).map(|entry| entry.cell.runs.len()).collect();
    let runs: Vec<String> = runs.iter().map(usize::to_string).collect();
    match runs.is_empty() {
        true => String::new(),
        false => format!("left the race after run {}: cannot win this column any more", listed(&runs, "or")),
    }
}

/// The entries of engines.
fn compared<'a>(rows: &'a [&'a Row<'a>]) -> impl Iterator<Item = &'a Entry<'a>> + Clone {
    rows.iter().flat_map(|row| row.entries.iter().flatten()).filter(|entry| is_compared(entry))
}

/// How many of the cells were disturbed.
struct Disturbed {
    cells: usize,
    of: usize,
}

impl Disturbed {
    fn of(rows: &[&Row]) -> Disturbed {
        let ranked = compared(rows);
        let of = ranked.clone().count();
        Disturbed { cells: ranked.filter(|entry| entry.marks.contains(&Mark::Disturbed)).count(), of }
    }

    fn are_many(&self) -> bool {
        self.cells as f64 > MANY_DISTURBED * self.of as f64
    }

    /// How many cells were disturbed, if they are too many to be marked; none: they are marked.
    fn words(&self) -> Option<String> {
        let text = || format!("In {} of {} cells, most runs were disturbed.", self.cells, self.of);
        self.are_many().then(text)
    }
}

/// The range of ranks and the marks: `1-3 h`. An engine that is alone at its level has no rank to show.
fn rank(entry: &Entry, disturbed: &Disturbed) -> String {
    let rank = match entry.cell.rank {
        None if entry.marks.contains(&Mark::Contradicted) => "X".to_string(),
        None => "!".to_string(),
        Some(rank) if rank.of == 1 => String::new(),
        Some(rank) => rank.to_string(),
    };
    let is_ranked = entry.cell.rank.is_some();
    let letter = |mark| letter(mark).or_else(|| (mark == Mark::Incomplete && is_ranked).then_some('m'));
    let letters: String = marks(entry, disturbed).into_iter().filter_map(letter).collect();
    format!("{rank} {letters}").trim().to_string()
}

fn marks(entry: &Entry, disturbed: &Disturbed) -> Vec<Mark> {
    let is_shown = |mark: &Mark| *mark != Mark::Disturbed || !disturbed.are_many();
    entry.marks.iter().copied().filter(is_shown).collect()
}

/// The letter of a mark; none: the cell is not ranked, which `!` or `X` shows in the place of the rank.
fn letter(mark: Mark) -> Option<char> {
    match mark {
        Mark::Incomplete | Mark::Unaccounted | Mark::Contradicted | Mark::OtherSettings => None,
        Mark::Evicted => Some('v'),
        Mark::Server => Some('s'),
        Mark::Emulated => Some('e'),
        Mark::HarnessBound => Some('h'),
        Mark::Disturbed => Some('d'),
    }
}

/// The mean of a row in words.
pub(super) struct MeanWords {
    value: String,
    /// ` 0.44-0.61`; empty: unknown.
    interval: String,
    /// ` (3)` if it covers 3 of the columns only.
    partial: String,
}

impl MeanWords {
    fn of(mean: Mean, columns: usize) -> MeanWords {
        let interval = mean.interval.map_or_else(String::new, |found| {
            // Rounded outward.
            let (low, high) = ((found.low * 100.0).floor() / 100.0, (found.high * 100.0).ceil() / 100.0);
            format!(" {low:.2}-{high:.2}")
        });
        let partial = if mean.columns == columns { String::new() } else { format!(" ({})", mean.columns) };
        MeanWords { value: format!("{:.2}", mean.value), interval, partial }
    }

    /// `0.52 0.44-0.61 (3)`, or `0.52 (3)` without the interval.
    pub(super) fn text(&self, has_interval: bool) -> String {
        let interval = if has_interval { &self.interval } else { "" };
        format!("{}{interval}{}", self.value, self.partial)
    }
}

/// What the means are.
pub(super) struct MeansLegend {
    /// What the signs of means that cover fewer columns say; empty: all cover all.
    partial: String,
    /// Whether one has an interval.
    have_intervals: bool,
}

impl MeansLegend {
    fn text(&self, has_intervals: bool) -> String {
        let interval = match (self.have_intervals, has_intervals) {
            (false, _) => "",
            (true, true) => ", with its 95 % interval",
            (true, false) => " (its 95 % interval is in report.html)",
        };
        format!("mean: over all columns, relative to the level's best{interval}{}.", self.partial)
    }
}

fn means_legend(rows: &[&Row], columns: usize) -> Option<MeansLegend> {
    let means: Vec<Mean> = rows.iter().filter_map(|row| row.mean).collect();
    let partial = means.iter().find(|mean| mean.columns < columns);
    let partial =
        partial.map_or_else(String::new, |mean| format!("; ({0}): {0} of {columns} columns", mean.columns));
    let have_intervals = means.iter().any(|mean| mean.interval.is_some());
    (!means.is_empty()).then_some(MeansLegend { partial, have_intervals })
}

/// The signs that the matrix has, each with its meaning.
fn signs(rows: &[&Row], disturbed: &Disturbed, runs: u32) -> Vec<(&'static str, String)> {
    let entries = || compared(rows);
    let has_mark = |mark: Mark| entries().any(|entry| marks(entry, disturbed).contains(&mark));
    let has_rank =
        |is: fn(&Rank) -> bool| entries().filter_map(|entry| entry.cell.rank).any(|rank| is(&rank));
    let is_missing = rows.iter().flat_map(|row| &row.entries).any(|entry| {
        entry.as_ref().is_none_or(|entry| matches!(entry.state, State::NotRun | State::Pending))
    });
    let open = match (runs as usize) < FEWEST_FOR_ORDER {
        true => format!("no order shown (that takes {FEWEST_FOR_ORDER} runs or more)"),
        false => "any rank is possible".to_string(),
    };
    let left = left_words(entries());
    let signs = [
        (entries().any(|entry| entry.is_highest), "*", "best median of a column at its level"),
        (has_rank(|rank| rank.of > 1 && !rank.is_open()), "1-3", "range of ranks at that level"),
        (has_rank(|rank| rank.is_open()), "~", &open),
        (!left.is_empty(), LEFT, &left),
        (
            entries().any(|entry| entry.cell.rank.is_none() && !entry.marks.contains(&Mark::Contradicted)),
            "!",
            "not ranked: failed or doubtful",
        ),
        (
            entries().any(|entry| entry.cell.rank.is_some() && entry.marks.contains(&Mark::Incomplete)),
            "m",
            "a run is missing, see the notes (--full)",
        ),
        (is_missing, "-", "not run"),
        (has_mark(Mark::HarnessBound), "h", "the harness took over 10 % of the time"),
        (
            has_mark(Mark::Disturbed),
            "d",
            "disturbed: other work or another speed of the machine around most runs",
        ),
        (has_mark(Mark::Emulated), "e", "emulated"),
        (has_mark(Mark::Server), "s", "in another process, through a socket"),
        (has_mark(Mark::Evicted), "v", "evicted rows"),
    ];
    let present = signs.into_iter().filter(|(is_there, ..)| *is_there);
    present.map(|(_, sign, words)| (sign, words.to_string())).collect()
}
