//! A history as a page: the changes, a chart of each series, and the commits.

use super::content::{Change, changes, facts, legend, p_text, part};
use super::series::{History, Series, Shift, short};
use crate::chart::{Commits, Dot, Mark, commits};
use crate::figure::{known, ratio, text};
use crate::html::document;
use crate::markup::{Html, html, table};
use kvdyno_measure::text::counted;

/// A self-contained page with all series.
pub fn history_page(history: &History) -> String {
    document("kvdyno: history", "", "", &|page| body(history, page))
}

fn body(history: &History, page: &mut String) {
    let mut add = |part: &Html| page.push_str(part.as_str());
    add(&Html::constant("<body>\n<header>\n<h1>kvdyno history</h1>\n<dl>\n"));
    for (name, value) in facts(history) {
        add(&html!("<dt>{}</dt><dd>{}</dd>\n", name, value));
    }
    add(&Html::constant("</dl>\n</header>\n<main>\n"));
    let mut charts = 0;
    for machine in 0..history.machines.len() {
        let own: Vec<&Series> = history.series.iter().filter(|series| series.machine == machine).collect();
        if own.is_empty() {
            continue;
        }
        let (changed, same): (Vec<&Series>, Vec<&Series>) =
            own.iter().partition(|series| !series.shifts().is_empty());
        let mut draw = |series: &[&Series], has_tips: bool| -> Html {
            let chart = |series: &&Series| {
                charts += 1;
                Some(commits(&drawing(history, series, has_tips))?.figure(charts))
            };
            html!("<div class=\"charts\">\n{}</div>\n", series.iter().filter_map(chart).collect::<Html>())
        };
        let found = changes(&own);
        add(&html!("<section>\n<h2>{}</h2>\n", part(history, machine, "Changes")));
        if found.is_empty() {
            let all = counted(own.len() as u64, "series", "series");
            add(&html!("<p>None of {} has a change.</p>\n", all));
        }
        found.iter().for_each(|change| add(&section(history, change)));
        if !changed.is_empty() {
            add(&Html::constant("<h3>Charts</h3>\n"));
            add(&draw(&changed, true));
        }
        if !same.is_empty() {
            let title = format!("Without a change: {}", counted(same.len() as u64, "series", "series"));
            add(&html!("<details><summary>{}</summary>\n{}</details>\n", title, draw(&same, false)));
        }
        add(&Html::constant("</section>\n"));
    }
    add(&list(history));
    let of_charts = "A chart has a point for each commit, the means between changes, and a line at each change, red if the figure \
                     became worse. Its axis need not begin at 0.";
    let lines = legend().into_iter().chain([of_charts.to_string()]);
    let lines: Html = lines.map(|line| html!("<li>{}</li>\n", line)).collect();
    add(&html!("<section>\n<h2>How to read this page</h2>\n<ul>\n{}</ul>\n</section>\n</main>\n", lines));
}

fn section(history: &History, change: &Change) -> Html {
    html!("<h3>{}</h3>\n{}", change.title(history), table(&change.table(history)))
}

/// The series as a chart. Only series with changes have a tooltip for each commit, because there may be thousands of points.
fn drawing(history: &History, series: &Series, has_tips: bool) -> Commits {
    let value = |value: f64| text(series.figure.form, value);
    let dot = |point: &super::series::Point| {
        let commit = &history.commits[point.commit];
        let tip = format!("{}, {}: {}", commit.id, commit.time, value(point.value));
        Dot { place: point.commit, value: point.value, tip: if has_tips { tip } else { String::new() } }
    };
    let mark = |shift: &Shift| {
        let (place, before) = series.ends(shift)?;
        let id = &history.commits[place].id;
        let tip = format!(
            "{} since {id}: {} to {}, p {}",
            series.word(shift),
            value(shift.before),
            value(shift.after),
            p_text(shift.p)
        );
        Some(Mark {
            place,
            before,
            means: (shift.before, shift.after),
            name: format!("{}: {}", short(id), known(shift.ratio(), size)),
            tip,
            is_worse: series.is_worse(shift),
        })
    };
    let id = |place: Option<usize>| place.map_or_else(String::new, |place| short(&history.commits[place].id));
    Commits {
        title: format!("{}, {}, level {}", series.phase, history.label(series), series.level),
        axis: series.figure.compared.map_or(series.figure.name, |compared| compared.title).to_string(),
        form: series.figure.form,
        dots: series.points.iter().map(dot).collect(),
        marks: series.shifts().iter().filter_map(mark).collect(),
        of: history.commits.len(),
        ends: (id(Some(0)), id(history.commits.len().checked_sub(1))),
    }
}

/// `-5.2 %`, or `2.40x` for large changes.
fn size(of: f64) -> String {
    if (0.5..2.0).contains(&of) { format!("{:+.1} %", (of - 1.0) * 100.0) } else { format!("{}x", ratio(of)) }
}

/// The commits with their runs.
fn list(history: &History) -> Html {
    let row = |commit: &super::series::Commit| {
        html!(
            "<tr><td>{}</td><td>{}</td><td class=\"long\">{}</td><td class=\"long\">{}</td></tr>\n",
            commit.id,
            commit.time,
            commit.note,
            commit.runs.join(", ")
        )
    };
    let heads: Html = ["commit", "time", "note", "runs"]
        .into_iter()
        .map(|title| html!("<th scope=\"col\">{}</th>", title))
        .collect();
    html!(
        "<section>\n<h2>Commits</h2>\n<details><summary>{}</summary>\n<div class=\"scroll\" tabindex=\"0\"><table>\n\
         <thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n</details>\n</section>\n",
        counted(history.commits.len() as u64, "commit", "commits"),
        heads,
        history.commits.iter().map(row).collect::<Html>()
    )
}
