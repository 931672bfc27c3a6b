//! A matrix as a table: rates and ranks as text, ratios to the best as shades of one colour.

use super::super::figure::{known, ratio};
use super::super::grid::{Cell, Grid, Head, LEFT, Level, Line};
use super::super::markup::{Html, html};
use kvdyno_measure::text::{listed, plain_text, short_text};

/// The shades: their classes, and the least ratio to the best that has them, the best first.
const SHADES: [(&str, f64); 7] =
    [("q6", 0.9), ("q5", 0.7), ("q4", 0.5), ("q3", 0.3), ("q2", 0.1), ("q1", 0.03), ("q0", 0.0)];
/// The maximum length of a phase's name in the head of its column.
const NAME_LIMIT: usize = 24;

/// The matrix with its title and its legend.
pub(super) fn heatmap(grid: &Grid) -> Html {
    let name = plain_text(&grid.workload);
    if grid.levels.is_empty() {
        return html!("<p>{}: no engine was measured.</p>\n", name);
    }
    html!(
        "<h3>{}: {}, median of {}, and rank at the level</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{}: engines by phases\"><table class=\"heat\">\n<thead>{}</thead>\n{}</table></div>\n{}",
        name,
        grid.figure(),
        grid.runs,
        name,
        head(&grid.columns),
        grid.levels.iter().map(|level| body(level, grid.columns.len())).collect::<Html>(),
        legend(grid)
    )
}

/// The titles: each phase with what it asks.
fn head(columns: &[Head]) -> Html {
    let title = |column: &Head| {
        let p99 = if column.has_rate { " (p99)" } else { "" };
        let name = short_text(&column.name, NAME_LIMIT) + p99;
        html!("<th scope=\"col\" title=\"{}\">{}</th>", column.question, name)
    };
    let titles: Html = columns.iter().map(title).collect();
    html!("<tr><th scope=\"col\">engine</th><th scope=\"col\">mean</th>{}</tr>", titles)
}

/// The rows of a level, below its title.
fn body(level: &Level, columns: usize) -> Html {
    let row = |line: &Line| {
        let mark = if line.safe.is_empty() { String::new() } else { format!(" {}", line.safe) };
        let engine = format!("{}{mark}", line.engine);
        let cells: Html = line.cells.iter().map(cell).collect();
        html!(
            "<tr><th scope=\"row\">{}</th><td class=\"r\">{}</td>{}</tr>\n",
            engine,
            known(line.mean.as_ref(), |mean| mean.text(true)),
            cells
        )
    };
    html!(
        "<tbody>\n<tr class=\"level\"><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n{}</tbody>\n",
        columns + 2,
        level.title.text(|_| true),
        level.lines.iter().map(row).collect::<Html>()
    )
}

/// The figures of an engine in a phase.
fn cell(cell: &Cell) -> Html {
    let figures = match cell {
        Cell::NotRun => return Html::constant("<td>- <i></i></td>"),
        Cell::Failed => return Html::constant("<td>- failed</td>"),
        Cell::Measured(figures) => figures,
    };
    let left = if figures.has_left { LEFT } else { "" };
    let per_second = match figures.is_highest {
        true => html!("<b>{}</b>{}", figures.headline, left),
        false => html!("{}{}", figures.headline, left),
    };
    // An engine that is alone at its level is compared with nothing.
    let Some(of_best) = figures.ratio else {
        return html!("<td>{} <i>{}</i></td>", per_second, figures.rank);
    };
    let p99 = figures.p99.as_ref().map_or_else(String::new, |words| format!("; {words}"));
    html!(
        "<td class=\"{}\" title=\"{} of the best{}\">{} <i>{}</i></td>",
        shade(of_best),
        ratio(of_best),
        p99,
        per_second,
        figures.rank
    )
}

/// The class of the shade of a ratio to the best.
pub(crate) fn shade(of_best: f64) -> &'static str {
    let found = SHADES.iter().find(|(_, least)| of_best >= *least);
    found.map_or("q0", |(class, _)| class)
}

/// The shades with their ratios.
pub(crate) fn shades() -> Html {
    let key = |(place, (class, least)): (usize, &(&'static str, f64))| {
        let text = match (place, place + 1 == SHADES.len()) {
            (0, _) => format!("1 to {least}"),
            (_, true) => format!("below {}", SHADES[place - 1].1),
            _ => format!("to {least}"),
        };
        html!("<span class=\"{}\">{}</span>\n", *class, text)
    };
    SHADES.iter().enumerate().map(key).collect()
}

/// The shades and signs in words, and the engines without figures.
fn legend(grid: &Grid) -> Html {
    let sign = |sign: &str, words: &str| format!("{}: {words}", if sign == "*" { "bold" } else { sign });
    let mut sentences = grid.legend(sign, true);
    sentences.extend(grid.noise.as_ref().map(|noise| format!("The runs are {noise}.")));
    sentences.extend(grid.promise.as_ref().map(|(level, text)| format!("{level}: {text}.")));
    sentences.extend(grid.safety.iter().cloned());
    if !grid.absent.is_empty() {
        sentences.push(format!("Without figures: {}.", listed(&grid.absent, "and")));
    }
    html!(
        "<p class=\"about key\">ratio to the best: {}</p>\n<p class=\"about\">{}</p>\n",
        shades(),
        plain_text(&sentences.join(" "))
    )
}
