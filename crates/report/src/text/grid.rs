//! A matrix for a terminal: columns that do not fit the width are in further blocks below.
//!
//! It is no [`kvdyno_measure::text::Table`]: a column has a rate on the right and its rank on the left, lines of levels are between the
//! rows, further blocks repeat only the engine, and a cell has a colour.

use super::{Screen, WIDTH};
use crate::figure::known;
use crate::grid::{Cell, Grid, Head, LEFT, Level, Line};
use kvdyno_measure::text::{plain_text, short_text, wrapped};

/// The maximum length of a phase's name in the head of its column.
const NAME_LIMIT: usize = 16;
/// The space between columns.
const GAP: &str = "  ";

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
    /// What is between them.
    gap: &'static str,
    rank: String,
    look: Look,
}

/// A column with its width.
struct Drawn {
    title: String,
    /// A cell for each row.
    cells: Vec<Shown>,
    rate_width: usize,
    rank_width: usize,
    /// Its place in the matrix.
    place: usize,
}

impl Drawn {
    fn width(&self) -> usize {
        let gap = usize::from(self.rank_width > 0 || self.cells.iter().any(|cell| cell.gap == LEFT));
        (self.rate_width + gap + self.rank_width).max(self.title.len())
    }

    fn cell(&self, row: usize, has_colours: bool) -> String {
        let Shown { rate, gap, rank, look } = &self.cells[row];
        let text = format!("{rate:>0$}{gap}{rank:<1$}", self.rate_width, self.rank_width);
        look.of(&format!("{text:<0$}", self.width()), has_colours)
    }
}

/// The matrix with its title and its legend.
pub(super) fn text(grid: &Grid, screen: Screen) -> String {
    let prose = screen.width.min(WIDTH);
    let data = grid.data.as_ref().map_or_else(String::new, |data| format!("; {data}"));
    let title =
        plain_text(&format!("{}: {}, median of {}, and rank{data}", grid.workload, grid.figure(), grid.runs));
    let mut text = wrapped("", "  ", &title, prose);
    if grid.levels.is_empty() {
        return text + "no engine was measured\n";
    }
    let columns: Vec<Drawn> =
        grid.columns.iter().enumerate().map(|(place, head)| column(grid, place, head)).collect();
    let room = |names: &Names| screen.width.saturating_sub(names.width());
    // The page has the intervals of the means, too. A further block costs a screen more lines than they are worth.
    let (whole, short) = (names(grid, true), names(grid, false));
    let has_intervals = blocks(&columns, room(&whole)).len() <= blocks(&columns, room(&short)).len();
    let names = if has_intervals { whole } else { short };
    // It has a line of its own only where it does not fit the first title.
    let titled = grid.promise.as_ref().filter(|(level, text)| {
        let first = &grid.levels[0];
        let title = first.title.text(|_| true);
        let is_first = grid.levels.len() > 1 && first.own == Some(*level);
        is_first && "-- : ".len() + title.len() + text.len() <= screen.width
    });
    let (titled, is_titled) = (titled.map(|(_, text)| text.as_str()), titled.is_some());
    for block in blocks(&columns, room(&names)) {
        text += &block_text(grid, &names, block, titled, screen.has_colours);
    }
    let mut legend = grid.legend(|sign, words| format!("{sign} {words}"), has_intervals);
    let promise = grid.promise.as_ref().filter(|_| !is_titled);
    legend.extend(promise.map(|(level, text)| format!("{level}: {text}.")));
    legend.extend(grid.safety.iter().cloned());
    let lines = grid.noise.clone().into_iter().chain([legend.join(" ")]).filter(|line| !line.is_empty());
    text + &lines.map(|line| wrapped("", "", &plain_text(&line), prose)).collect::<String>()
}

/// The rows of all levels.
fn lines(grid: &Grid) -> impl Iterator<Item = &Line> {
    grid.levels.iter().flat_map(|level| &level.lines)
}

fn column(grid: &Grid, place: usize, head: &Head) -> Drawn {
    let cells: Vec<Shown> = grid
        .levels
        .iter()
        .flat_map(|level| level.lines.iter().map(|line| shown(&line.cells[place], level.is_floor)))
        .collect();
    let widest = |text: fn(&Shown) -> &str| cells.iter().map(|cell| text(cell).len()).max().unwrap_or(0);
    Drawn {
        title: title(head),
        rate_width: widest(|cell| &cell.rate),
        rank_width: widest(|cell| &cell.rank),
        cells,
        place,
    }
}

/// `read`, `fill (load)`, or `run (p99)`.
fn title(head: &Head) -> String {
    let what = match () {
        () if head.only_loads => " (load)",
        () if head.has_rate => " (p99)",
        () => "",
    };
    short_text(&head.name, NAME_LIMIT - what.len()) + what
}

fn shown(cell: &Cell, is_floor: bool) -> Shown {
    let plain =
        |text: &str| Shown { rate: text.to_string(), gap: " ", rank: String::new(), look: Look::Plain };
    let figures = match cell {
        Cell::NotRun => return plain("-"),
        Cell::Failed => return plain("failed"),
        Cell::Measured(figures) => figures,
    };
    let star = if figures.is_highest { "*" } else { "" };
    let look = match () {
        () if is_floor => Look::Faint,
        () if figures.is_highest || figures.is_leader => Look::Strong,
        () => Look::Plain,
    };
    let gap = if figures.has_left { LEFT } else { " " };
    Shown { rate: format!("{star}{}", figures.headline), gap, rank: figures.rank.clone(), look }
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

fn names(grid: &Grid, has_intervals: bool) -> Names {
    let longest = lines(grid).map(|line| line.engine.len()).max().unwrap_or(0);
    let engine = |line: &Line| match line.safe.as_str() {
        "" => line.engine.clone(),
        marks => format!("{:<longest$} {marks}", line.engine),
    };
    Names {
        engines: lines(grid).map(engine).collect(),
        means: lines(grid).map(|line| known(line.mean.as_ref(), |mean| mean.text(has_intervals))).collect(),
    }
}

/// The columns in blocks that fit the width; a column that is wider has a block of its own.
fn blocks(columns: &[Drawn], width: usize) -> Vec<&[Drawn]> {
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

/// ` (not comparable with the rows above)`, or which of the columns are; empty: all, or there are no such rows.
fn apart(level: &Level, block: &[Drawn]) -> String {
    let Some(comparable) = &level.comparable else { return String::new() };
    let same = block.iter().filter(|column| comparable.contains(&column.place));
    let same: Vec<&str> = same.map(|column| column.title.as_str()).collect();
    match same.len() {
        all if all == block.len() => String::new(),
        0 => " (not comparable with the rows above)".to_string(),
        1 => format!(" (only {} is comparable with the rows above)", same[0]),
        count => format!(" (only {count} columns are comparable with the rows above)"),
    }
}

fn block_text(
    grid: &Grid,
    names: &Names,
    block: &[Drawn],
    promise: Option<&str>,
    has_colours: bool,
) -> String {
    let is_first = block.first().is_none_or(|column| column.place == 0);
    let mut lines = Vec::new();
    let titles = block.iter().map(|column| format!("{GAP}{:<1$}", column.title, column.width()));
    lines.push(names.line("engine", "mean", is_first) + &titles.collect::<String>());
    let mut place = 0;
    for (number, level) in grid.levels.iter().enumerate() {
        if grid.levels.len() > 1 {
            let title = level.title.text(|place| block.iter().any(|column| column.place == place));
            let promise = promise.filter(|_| is_first && number == 0).map(|text| format!(": {text}"));
            let (promise, apart) = (promise.unwrap_or_default(), apart(level, block));
            lines.push(Look::Faint.of(&format!("-- {title}{promise}{apart}"), has_colours));
        }
        for _ in &level.lines {
            let cells = block.iter().map(|column| GAP.to_string() + &column.cell(place, has_colours));
            let start = names.line(&names.engines[place], &names.means[place], is_first);
            lines.push(start + &cells.collect::<String>());
            place += 1;
        }
    }
    lines.iter().map(|line| line.trim_end().to_string() + "\n").collect()
}
