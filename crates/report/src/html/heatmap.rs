//! The engines of a workload by its phases as a table: rates and ranks as text, ratios to the best as shades of one colour.

use super::super::describe::{p99_words, question, runs};
use super::super::figure::{known, rate, ratio};
use super::super::markup::{Html, html};
use super::super::matrix::{Column, Entry, Matrix, Row, Section, State, matrices};
use super::super::overview::grid::{
    Disturbed, has_figures, is_compared, mean, noise, rank, remarks, section_title, signs,
};
use super::super::safety;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::text::{counted, listed, plain_text, short_text};

/// The shades: their classes, and the least ratio to the best that has them, the best first.
const SHADES: [(&str, f64); 7] =
    [("q6", 0.9), ("q5", 0.7), ("q4", 0.5), ("q3", 0.3), ("q2", 0.1), ("q1", 0.03), ("q0", 0.0)];
/// The maximum length of a phase's name in the head of its column.
const NAME_LIMIT: usize = 24;
/// The number of workloads whose tables are not folded.
const OPEN: usize = 3;

/// A table for each workload; empty if no phase was planned.
pub(super) fn heatmaps(summary: &Summary) -> Html {
    let matrices = matrices(summary);
    let mut all: Html = matrices.iter().take(OPEN).map(|matrix| heatmap(matrix, summary)).collect();
    let folded: Html = matrices.iter().skip(OPEN).map(|matrix| heatmap(matrix, summary)).collect();
    if !folded.is_empty() {
        let others = counted((matrices.len() - OPEN) as u64, "other workload", "other workloads");
        all.push(&html!("<details><summary>{}</summary>\n{}</details>\n", others, folded));
    }
    all
}

fn heatmap(matrix: &Matrix, summary: &Summary) -> Html {
    let shown = |section: &'_ Section| section.rows.iter().any(has_figures);
    let sections: Vec<&Section> = matrix.sections.iter().filter(|section| shown(section)).collect();
    let rows: Vec<&Row> =
        sections.iter().flat_map(|section| &section.rows).filter(|row| has_figures(row)).collect();
    let name = plain_text(matrix.workload);
    if rows.is_empty() {
        return html!("<p>{}: no engine was measured.</p>\n", name);
    }
    let disturbed = Disturbed::of(&rows);
    let runs = runs(summary);
    let mut map = html!(
        "<h3>{}: ops/s, median of {}, and rank at the level</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{}: engines by phases\"><table class=\"heat\">\n<thead>{}</thead>\n",
        name,
        runs,
        name,
        head(matrix)
    );
    for section in sections {
        map.push(&body(matrix, section, &disturbed));
    }
    map.push(&html!("</table></div>\n{}", legend(matrix, &rows, &disturbed, summary)));
    map
}

/// The titles: each phase with what it asks.
fn head(matrix: &Matrix) -> Html {
    let title = |column: &Column| {
        let name = short_text(&column.phase.name, NAME_LIMIT);
        html!("<th scope=\"col\" title=\"{}\">{}</th>", question(column.phase), name)
    };
    let titles: Html = matrix.columns.iter().map(title).collect();
    html!("<tr><th scope=\"col\">engine</th><th scope=\"col\">mean</th>{}</tr>", titles)
}

/// The rows of a section, below its title.
fn body(matrix: &Matrix, section: &Section, disturbed: &Disturbed) -> Html {
    let title = section_title(section, matrix, |_| true);
    let columns = matrix.columns.len();
    let row = |row: &Row| {
        let cells: Html = row.entries.iter().map(|entry| cell(entry.as_ref(), disturbed)).collect();
        let mark = safety::row_mark(row, section.level());
        let mark = mark.map_or_else(String::new, |mark| format!(" {mark}"));
        let (engine, mean) = (format!("{}{mark}", row.label), mean(row, columns));
        html!("<tr><th scope=\"row\">{}</th><td class=\"r\">{}</td>{}</tr>\n", engine, mean, cells)
    };
    let rows: Html = section.rows.iter().filter(|row| has_figures(row)).map(row).collect();
    html!(
        "<tbody>\n<tr class=\"level\"><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n{}</tbody>\n",
        columns + 2,
        title,
        rows
    )
}

/// The figures of an engine in a phase.
fn cell(entry: Option<&Entry>, disturbed: &Disturbed) -> Html {
    let Some(entry) = entry else { return Html::constant("<td>- <i></i></td>") };
    match entry.state {
        State::Failed => return Html::constant("<td>- failed</td>"),
        State::NotRun | State::Pending => return Html::constant("<td>- <i></i></td>"),
        State::Measured => {}
    }
    let per_second = known(entry.cell.ops_per_second, rate);
    let per_second = match entry.is_highest {
        true => html!("<b>{}</b>", per_second),
        false => html!("{}", per_second),
    };
    let rank = if is_compared(entry) { rank(entry, disturbed) } else { String::new() };
    // An engine that is alone at its level is compared with nothing.
    let Some(of_best) = entry.ratio else {
        return html!("<td>{} <i>{}</i></td>", per_second, rank);
    };
    let p99 = p99_words(entry.cell).map_or_else(String::new, |words| format!("; {words}"));
    html!(
        "<td class=\"{}\" title=\"{} of the best{}\">{} <i>{}</i></td>",
        shade(of_best),
        ratio(of_best),
        p99,
        per_second,
        rank
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
fn legend(matrix: &Matrix, rows: &[&Row], disturbed: &Disturbed, summary: &Summary) -> Html {
    let mut sentences: Vec<String> = signs(rows, disturbed, summary.runs)
        .into_iter()
        .map(|(sign, words)| format!("{}: {words}", if sign == "*" { "bold" } else { sign }))
        .collect();
    sentences = match sentences.is_empty() {
        true => Vec::new(),
        false => vec![format!("{}.", sentences.join("; "))],
    };
    sentences.extend(remarks(rows, matrix.columns.len(), disturbed));
    sentences.extend(noise(matrix).map(|noise| noise + "."));
    sentences.extend(safety::lines(summary, matrix.workload));
    let absent: Vec<String> = matrix
        .sections
        .iter()
        .flat_map(|section| &section.rows)
        .filter(|row| !has_figures(row))
        .map(|row| row.label.to_string())
        .collect();
    if !absent.is_empty() {
        sentences.push(format!("Without figures: {}.", listed(&absent, "and")));
    }
    html!(
        "<p class=\"about key\">ratio to the best: {}</p>\n<p class=\"about\">{}</p>\n",
        shades(),
        plain_text(&sentences.join(" "))
    )
}
