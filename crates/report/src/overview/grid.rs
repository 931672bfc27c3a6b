//! A matrix as text: columns that do not fit the width are in further blocks below.

use super::Screen;
use crate::describe::{data, runs};
use crate::figure::{known, rate};
use crate::matrix::{Column, Entry, Mark, Matrix, Noise, Row, Section, Standing, State};
use crate::safety;
use kvdyno_core::results::statistics::FEWEST_FOR_ORDER;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Durability, Kind};
use kvdyno_measure::text::{plain_text, short_text, wrapped};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of a phase's name in the head of its column.
const NAME_LIMIT: usize = 16;
/// The space between columns.
const GAP: &str = "  ";
/// If more than this share of the cells were disturbed, the cells are not marked, and a line says so.
const MANY_DISTURBED: f64 = 0.5;

/// How a part of a line is shown on a terminal with colours.
#[derive(Clone, Copy, PartialEq)]
enum Look {
    Plain,
    Strong,
    Faint,
}

impl Look {
    fn of(self, text: &str, has_colours: bool) -> String {
        match self {
            Look::Strong if has_colours => format!("\x1b[1m{text}\x1b[0m"),
            Look::Faint if has_colours => format!("\x1b[2m{text}\x1b[0m"),
            _ => text.to_string(),
        }
    }
}

/// A cell: its rate on the left of its rank and marks.
struct Shown {
    rate: String,
    rank: String,
    look: Look,
}

/// A column with its width.
struct Drawn<'a> {
    title: String,
    /// A cell for each row.
    cells: Vec<Shown>,
    rate_width: usize,
    rank_width: usize,
    /// Its place in the matrix.
    place: usize,
    matrix: &'a Matrix<'a>,
}

impl Drawn<'_> {
    fn width(&self) -> usize {
        let gap = usize::from(self.rank_width > 0);
        (self.rate_width + gap + self.rank_width).max(self.title.len())
    }

    fn cell(&self, row: usize, has_colours: bool) -> String {
        let Shown { rate, rank, look } = &self.cells[row];
        let text = format!("{rate:>0$} {rank:<1$}", self.rate_width, self.rank_width);
        look.of(&format!("{text:<0$}", self.width()), has_colours)
    }
}

/// The matrix with its title and its legend.
pub(super) fn text(matrix: &Matrix, summary: &Summary, screen: Screen) -> String {
    let sections: Vec<(&Section, Vec<&Row>)> = matrix
        .sections
        .iter()
        .map(|section| (section, section.rows.iter().filter(|row| has_figures(row)).collect::<Vec<_>>()))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let runs = runs(summary);
    let data = data(summary, matrix.workload).map_or_else(String::new, |data| format!("; {data}"));
    let title = plain_text(&format!("{}: ops/s, median of {runs}, and rank{data}", matrix.workload));
    let mut text = wrapped("", "  ", &title, screen.width.min(super::PROSE));
    if sections.is_empty() {
        return text + "no engine was measured\n";
    }
    let rows: Vec<&Row> = sections.iter().flat_map(|(_, rows)| rows).copied().collect();
    let disturbed = Disturbed::of(&rows);
    let columns: Vec<Drawn> =
        (0..matrix.columns.len()).map(|place| column(matrix, &sections, place, &disturbed)).collect();
    let names = names(&sections);
    let promise = promise(&sections);
    // It has a line of its own only where it does not fit the first title.
    let titled = promise.as_ref().filter(|(level, text)| {
        let first = sections[0].0;
        let title = section_title(first, matrix, |_| true);
        let is_first = sections.len() > 1 && first.level() == Some(*level);
        is_first && "-- : ".len() + title.len() + text.len() <= screen.width
    });
    let (titled, is_titled) = (titled.map(|(_, text)| text.as_str()), titled.is_some());
    for block in blocks(&columns, screen.width.saturating_sub(names.width())) {
        text += &block_text(&sections, &names, block, (titled, screen.has_colours));
    }
    let promise = promise.filter(|_| !is_titled).map(|(level, text)| format!("{level}: {text}."));
    let legend = legend(&rows, columns.len(), &disturbed, summary.runs);
    let legend =
        [vec![legend], promise.into_iter().collect(), safety::lines(summary, matrix.workload)].concat();
    let legend = legend.join(" ").trim().to_string();
    let lines = noise(matrix).into_iter().chain([legend]).filter(|line| !line.is_empty());
    text + &lines
        .map(|line| wrapped("", "", &plain_text(&line), screen.width.min(super::PROSE)))
        .collect::<String>()
}

/// `too noisy (6.8-9.9 %) to rank engines closer than 26 % (best column) to 58 % (mix) at process, 216 % (mix) at power`, with the
/// phase that has the largest gap, and without levels if there is one only; none: no order is claimed.
pub(crate) fn noise(matrix: &Matrix) -> Option<String> {
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
fn promise(sections: &[(&Section, Vec<&Row>)]) -> Option<(Durability, String)> {
    const KILL: &str = "acknowledged writes survive a kill of the program";
    let own = sections.iter().filter(|(section, _)| matches!(section.standing, Standing::Engines(_)));
    let levels: BTreeSet<Durability> =
        own.flat_map(|(section, _)| section.levels.iter().flatten().copied()).collect();
    match (levels.contains(&Durability::Process), levels.contains(&Durability::Power)) {
        (true, true) => Some((Durability::Process, format!("{KILL}; power: also a power cut"))),
        (true, false) => Some((Durability::Process, KILL.to_string())),
        (false, true) => Some((Durability::Power, format!("{KILL} and a power cut"))),
        (false, false) => None,
    }
}

/// ` (not comparable with the rows above)`, or which of the columns are; empty: all, or there are no such rows.
fn apart(section: &Section, above: &[(&Section, Vec<&Row>)], block: &[Drawn]) -> String {
    let above = || above.iter().filter(|(other, _)| other.standing == section.standing);
    let is_same = |column: &&Drawn| {
        let level = section.levels[column.place];
        level.is_some() && above().any(|(other, _)| other.levels[column.place] == level)
    };
    let same: Vec<&str> = block.iter().filter(is_same).map(|column| column.title.as_str()).collect();
    match same.len() {
        _ if above().next().is_none() || !matches!(section.standing, Standing::Engines(_)) => String::new(),
        all if all == block.len() => String::new(),
        0 => " (not comparable with the rows above)".to_string(),
        1 => format!(" (only {} is comparable with the rows above)", same[0]),
        count => format!(" (only {count} columns are comparable with the rows above)"),
    }
}

/// Rows without figures are in the lines on failures.
pub(crate) fn has_figures(row: &Row) -> bool {
    row.entries.iter().flatten().any(|entry| entry.state == State::Measured)
}

/// Whether it has figures of an engine, and not of the harness or of a planted bug.
pub(crate) fn is_compared(entry: &Entry) -> bool {
    matches!(entry.standing, Standing::Engines(_))
}

/// The entries of engines.
fn compared<'a>(rows: &'a [&'a Row<'a>]) -> impl Iterator<Item = &'a Entry<'a>> + Clone {
    rows.iter().flat_map(|row| row.entries.iter().flatten()).filter(|entry| is_compared(entry))
}

/// How many of the cells were disturbed.
pub(crate) struct Disturbed {
    cells: usize,
    of: usize,
}

impl Disturbed {
    pub(crate) fn of(rows: &[&Row]) -> Disturbed {
        let ranked = compared(rows);
        let of = ranked.clone().count();
        Disturbed { cells: ranked.filter(|entry| entry.marks.contains(&Mark::Disturbed)).count(), of }
    }

    fn are_many(&self) -> bool {
        self.cells as f64 > MANY_DISTURBED * self.of as f64
    }
}

fn column<'a>(
    matrix: &'a Matrix<'a>,
    sections: &[(&Section, Vec<&Row>)],
    place: usize,
    disturbed: &Disturbed,
) -> Drawn<'a> {
    let cells: Vec<Shown> = sections
        .iter()
        .flat_map(|(section, rows)| {
            rows.iter().map(|row| shown(section, row.entries[place].as_ref(), disturbed))
        })
        .collect();
    let widest = |text: fn(&Shown) -> &str| cells.iter().map(|cell| text(cell).len()).max().unwrap_or(0);
    Drawn {
        title: title(&matrix.columns[place]),
        rate_width: widest(|cell| &cell.rate),
        rank_width: widest(|cell| &cell.rank),
        cells,
        place,
        matrix,
    }
}

/// `read`, or `fill (load)`.
fn title(column: &Column) -> String {
    let load = if column.only_loads { " (load)" } else { "" };
    short_text(&column.phase.name, NAME_LIMIT - load.len()) + load
}

fn shown(section: &Section, entry: Option<&Entry>, disturbed: &Disturbed) -> Shown {
    let is_floor = section.standing == Standing::Floor;
    let plain = |text: &str| Shown { rate: text.to_string(), rank: String::new(), look: Look::Plain };
    let Some(entry) = entry else { return plain("-") };
    match entry.state {
        State::Failed => plain("failed"),
        State::NotRun | State::Pending => plain("-"),
        State::Measured => {
            let star = if entry.is_highest { "*" } else { "" };
            let rate = format!("{star}{}", known(entry.cell.ops_per_second, rate));
            let look = match () {
                () if is_floor => Look::Faint,
                () if entry.is_highest || entry.is_leader => Look::Strong,
                () => Look::Plain,
            };
            let rank = if is_compared(entry) { rank(entry, disturbed) } else { String::new() };
            Shown { rate, rank, look }
        }
    }
}

/// The range of ranks and the marks: `1-3 h`. An engine that is alone at its level has no rank to show.
pub(crate) fn rank(entry: &Entry, disturbed: &Disturbed) -> String {
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

/// The engines and the means that sort them.
struct Names {
    engines: Vec<String>,
    means: Vec<String>,
}

impl Names {
    fn engine_width(&self) -> usize {
        self.engines.iter().map(String::len).max().unwrap_or(0).max("engine".len())
    }

    fn mean_width(&self) -> usize {
        self.means.iter().map(String::len).max().unwrap_or(0).max("mean".len())
    }

    fn width(&self) -> usize {
        self.engine_width() + GAP.len() + self.mean_width()
    }

    /// The start of a line; further blocks repeat the engine, not the mean.
    fn line(&self, engine: &str, mean: &str, is_first: bool) -> String {
        let engine = format!("{engine:<0$}", self.engine_width());
        if is_first { format!("{engine}{GAP}{mean:<0$}", self.mean_width()) } else { engine }
    }
}

fn names(sections: &[(&Section, Vec<&Row>)]) -> Names {
    let rows = || sections.iter().flat_map(|(section, rows)| rows.iter().map(move |row| (section, row)));
    let columns = rows().map(|(_, row)| row.entries.len()).max().unwrap_or(0);
    let longest = rows().map(|(_, row)| row.label.len()).max().unwrap_or(0);
    let engine = |(section, row): (&&Section, &&Row)| match safety::row_marks(row, section.level()) {
        marks if marks.is_empty() => row.label.to_string(),
        marks => format!("{:<longest$} {marks}", row.label),
    };
    Names {
        engines: rows().map(engine).collect(),
        means: rows().map(|(_, row)| mean(row, columns)).collect(),
    }
}

/// `0.52 0.44-0.61` with the interval, and `0.52 0.44-0.61 (3)` if it covers 3 of the columns only.
pub(crate) fn mean(row: &Row, columns: usize) -> String {
    known(row.mean, |mean| {
        let interval = mean.interval.map_or_else(String::new, |found| {
            // Rounded outward.
            let (low, high) = ((found.low * 100.0).floor() / 100.0, (found.high * 100.0).ceil() / 100.0);
            format!(" {low:.2}-{high:.2}")
        });
        let partial = if mean.columns == columns { String::new() } else { format!(" ({})", mean.columns) };
        format!("{:.2}{interval}{partial}", mean.value)
    })
}

/// The columns in blocks that fit the width; a column that is wider has a block of its own.
fn blocks<'a, 'b>(columns: &'b [Drawn<'a>], width: usize) -> Vec<&'b [Drawn<'a>]> {
    let mut blocks = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (place, column) in columns.iter().enumerate() {
        let own = GAP.len() + column.width();
        if place > start && used + own > width {
            blocks.push(&columns[start..place]);
            (start, used) = (place, 0);
        }
        used += own;
    }
    blocks.push(&columns[start..]);
    blocks
}

fn block_text(
    sections: &[(&Section, Vec<&Row>)],
    names: &Names,
    block: &[Drawn],
    (promise, has_colours): (Option<&str>, bool),
) -> String {
    let is_first = block.first().is_none_or(|column| column.place == 0);
    let mut lines = Vec::new();
    let titles = block.iter().map(|column| format!("{GAP}{:<1$}", column.title, column.width()));
    lines.push(names.line("engine", "mean", is_first) + &titles.collect::<String>());
    let mut place = 0;
    for (number, (section, rows)) in sections.iter().enumerate() {
        if sections.len() > 1 {
            let is_shown = |place: usize| block.iter().any(|column| column.place == place);
            let title = block.first().map(|column| section_title(section, column.matrix, is_shown));
            let promise = promise.filter(|_| is_first && number == 0).map(|text| format!(": {text}"));
            let title = title.unwrap_or_default() + &promise.unwrap_or_default();
            let apart = apart(section, &sections[..number], block);
            lines.push(Look::Faint.of(&format!("-- {title}{apart}"), has_colours));
        }
        for _ in rows {
            let cells = block.iter().map(|column| GAP.to_string() + &column.cell(place, has_colours));
            let start = names.line(&names.engines[place], &names.means[place], is_first);
            lines.push(start + &cells.collect::<String>());
            place += 1;
        }
    }
    lines.iter().map(|line| line.trim_end().to_string() + "\n").collect()
}

/// `level process (sync: power)`. `is_shown`: whether the column at this place is shown.
pub(crate) fn section_title(section: &Section, matrix: &Matrix, is_shown: impl Fn(usize) -> bool) -> String {
    let level = known(section.level(), |level| level.to_string());
    let exceptions: Vec<String> = section
        .exceptions()
        .into_iter()
        .filter(|(place, _)| is_shown(*place))
        .map(|(place, level)| format!("{}: {level}", plain_text(&matrix.columns[place].phase.name)))
        .collect();
    let exceptions =
        if exceptions.is_empty() { String::new() } else { format!(" ({})", exceptions.join(", ")) };
    match section.standing {
        Standing::Engines(kind) => {
            let kind = match kind {
                Kind::Embedded => "",
                Kind::Foreign => ", foreign data, values not checked",
                Kind::Cache => ", caches that evict rows",
                Kind::Server => ", servers behind a socket",
                Kind::CacheServer => ", cache servers, which evict rows, behind a socket",
                Kind::Distributed => ", distributed stores with several copies, behind sockets",
                Kind::Stale => ", stores with several copies whose reads may be stale",
                Kind::Reference => ", references: simple engines of kvdyno for comparison, not libraries",
            };
            format!("level {level}{exceptions}{kind}")
        }
        Standing::Unranked => "planted bugs, never ranked".to_string(),
        Standing::Floor => "floor: stores nothing, the cost of the harness".to_string(),
    }
}

/// The signs that the matrix has, in words, and remarks on all of it; empty if there is nothing to explain.
fn legend(rows: &[&Row], columns: usize, disturbed: &Disturbed, runs: u32) -> String {
    let signs = signs(rows, disturbed, runs).into_iter().map(|(sign, words)| format!("{sign} {words}"));
    let signs = signs.collect::<Vec<_>>().join("; ");
    let signs = if signs.is_empty() { signs } else { signs + "." };
    let remarks = remarks(rows, columns, disturbed);
    [signs].into_iter().chain(remarks).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What the means are, and how many cells were disturbed if they are too many to be marked.
pub(crate) fn remarks(rows: &[&Row], columns: usize, disturbed: &Disturbed) -> Vec<String> {
    let means = || rows.iter().filter_map(|row| row.mean);
    let partial = means().find(|mean| mean.columns < columns);
    let partial =
        partial.map_or_else(String::new, |mean| format!("; ({0}): {0} of {columns} columns", mean.columns));
    let interval = match means().any(|mean| mean.interval.is_some()) {
        true => ", with its 95 % interval",
        false => "",
    };
    let text = format!("mean: over all columns, relative to the level's best{interval}{partial}.");
    let mut remarks: Vec<String> = means().next().map(|_| text).into_iter().collect();
    if disturbed.are_many() {
        remarks.push(format!("In {} of {} cells, most runs were disturbed.", disturbed.cells, disturbed.of));
    }
    remarks
}

/// The signs that the matrix has, each with its meaning.
pub(crate) fn signs(rows: &[&Row], disturbed: &Disturbed, runs: u32) -> Vec<(&'static str, String)> {
    let entries = || compared(rows);
    let has_mark = |mark: Mark| entries().any(|entry| marks(entry, disturbed).contains(&mark));
    let has_rank = |is: fn(&kvdyno_core::results::statistics::Rank) -> bool| {
        entries().filter_map(|entry| entry.cell.rank).any(|rank| is(&rank))
    };
    let is_missing = rows.iter().flat_map(|row| &row.entries).any(|entry| {
        entry.as_ref().is_none_or(|entry| matches!(entry.state, State::NotRun | State::Pending))
    });
    let open = match (runs as usize) < FEWEST_FOR_ORDER {
        true => format!("no order shown (that takes {FEWEST_FOR_ORDER} runs or more)"),
        false => "any rank is possible".to_string(),
    };
    let signs = [
        (entries().any(|entry| entry.is_highest), "*", "highest median of a column at its level"),
        (has_rank(|rank| rank.of > 1 && !rank.is_open()), "1-3", "range of ranks at that level"),
        (has_rank(|rank| rank.is_open()), "~", &open),
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
