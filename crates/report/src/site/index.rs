//! The first page: the engines to look at first, a table of engines by phases for each machine and durability level, a comparison
//! of two engines, and the list of runs.

use super::ENGINES;
use super::collect::{Entry, HISTORIES, Level, RUNS, Site};
use super::picks;
use crate::certificate::overview;
use crate::figure::rate;
use crate::html::{shade, shades};
use crate::markup::{Html, html, table};
use crate::safety;
use kvdyno_core::results::Safety;
use kvdyno_core::results::statistics::Rank;
use kvdyno_measure::text::counted;

const LEGEND: [&str; 5] = [
    "A figure is ops/s, the median over the runs of a cell, from the newest run on that machine that measured it. It is \
     followed by its rank in that run, if it has one (1-4: the places that it may have; ~: unknown).",
    "A cell is shaded by the ratio of its figure to the highest of its column among the ranked engines of the same run; an engine \
     alone at its level is not shaded.",
    "*: from an older run than other figures in its column. Runs from different times differ more than their intervals show.",
    "A column contains one phase with one set of settings. The same phase with other settings has a number (#2); all settings \
     are listed below. Durability levels are the effective ones.",
    "Each figure links to the report of its run, and each engine to its history over versions.",
];

/// Below the table of certificates.
pub(super) const CERTIFIED: &str = "From certificates of kvdyno prove --certificate. The class is what was seen in that many crashes; the level \
    is what the driver claims.";

/// The body of the page, up to the script.
pub(super) fn body(site: &Site, page: &mut String) {
    let mut add = |part: &Html| page.push_str(part.as_str());
    add(&html!(
        "<body>\n<header>\n<h1>kvdyno: results of {}</h1>\n",
        counted(site.runs.len() as u64, "run", "runs")
    ));
    add(&html!("<p>{}</p>\n</header>\n<main>\n", extent(site)));
    add(&picks::section(site));
    add(&controls(site));
    for place in 0..site.machines.len() {
        add(&machine(site, place));
    }
    if !site.certificates.is_empty() {
        add(&html!(
            "<section>\n<h2>Durability, claimed and measured</h2>\n{}<p class=\"about\">{}</p>\n</section>\n",
            table(&overview(&site.certificates)),
            CERTIFIED
        ));
    }
    add(&compare(site));
    add(&histories(site));
    add(&settings(site));
    add(&runs(site));
    if !site.skipped.is_empty() {
        let line = |(folder, why): &(String, String)| html!("<li>{}: {}</li>\n", folder, why);
        let lines: Html = site.skipped.iter().map(line).collect();
        add(&html!("<section>\n<h2>Skipped folders and files</h2>\n<ul>\n{}</ul>\n</section>\n", lines));
    }
    let legend: Html =
        LEGEND.iter().chain([&safety::LEGEND]).map(|line| html!("<li>{}</li>\n", *line)).collect();
    add(&html!("<section>\n<h2>How to read this page</h2>\n<ul>\n{}</ul>\n</section>\n</main>\n", legend));
}

fn workloads(site: &Site) -> Vec<&str> {
    let mut workloads: Vec<&str> = site.columns.iter().map(|column| column.workload.as_str()).collect();
    workloads.sort_unstable();
    workloads.dedup();
    workloads
}

/// `15 engines, 8 workloads, 1 machine`.
fn extent(site: &Site) -> String {
    let engines = counted(site.engines().len() as u64, "engine", "engines");
    let workloads = counted(workloads(site).len() as u64, "workload", "workloads");
    format!("{engines}, {workloads}, {}", counted(site.machines.len() as u64, "machine", "machines"))
}

/// The effective durability levels on a machine, the weakest first.
fn levels(site: &Site, machine: usize) -> Vec<Level> {
    let here = |entry: &&Entry| site.runs[entry.run].machine == machine;
    let mut levels: Vec<Level> =
        site.entries.iter().filter(here).filter_map(|entry| entry.level.clone()).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// Controls that need the script, which makes them visible.
fn controls(site: &Site) -> Html {
    let option = |value: &str| html!("<option>{}</option>", value);
    let select = |id: &'static str, label: &'static str, options: Html| {
        html!(
            "<label for=\"{}\">{}</label> <select id=\"{}\"><option value=\"\">all</option>{}</select>\n",
            id,
            label,
            id,
            options
        )
    };
    let machines: Html = (0..site.machines.len())
        .map(|place| html!("<option value=\"{}\">{}</option>", place, site.machines[place]))
        .collect();
    let mut levels: Vec<Level> = (0..site.machines.len()).flat_map(|place| levels(site, place)).collect();
    levels.sort_unstable();
    levels.dedup();
    let levels: Html = levels.iter().map(|level| option(&level.name)).collect();
    html!(
        "<div id=\"controls\" hidden=\"hidden\" role=\"group\" aria-label=\"Filters\">\n\
         <label for=\"find\">Engines</label> <input id=\"find\" type=\"search\" placeholder=\"parts of names\"/>\n{}{}{}</div>\n",
        select("workload", "Workload", workloads(site).into_iter().map(option).collect()),
        select("level", "Durability level", levels),
        select("machine", "Machine", machines)
    )
}

/// A machine's tables, one for each effective durability level.
fn machine(site: &Site, machine: usize) -> Html {
    let mut section = html!(
        "<section data-machine=\"{}\">\n<h2>{}</h2>\n<p class=\"about key\">ratio to the highest: {}</p>\n",
        machine,
        site.machines[machine],
        shades()
    );
    for level in levels(site, machine) {
        let entries: Vec<&Entry> = site
            .entries
            .iter()
            .filter(|entry| site.runs[entry.run].machine == machine && entry.level.as_ref() == Some(&level))
            .collect();
        let name = &level.name;
        section.push(&html!(
            "<div data-level=\"{}\">\n<h3>Durability level {} (effective): ops/s, and rank</h3>\n{}</div>\n",
            name,
            name,
            matrix(site, &entries)
        ));
    }
    section.push(&Html::constant("</section>\n"));
    section
}

/// A table of engines by phases.
fn matrix(site: &Site, entries: &[&Entry]) -> Html {
    let mut columns: Vec<usize> = entries.iter().map(|entry| entry.column).collect();
    columns.sort_unstable();
    columns.dedup();
    // Phases with the same name and different settings are next to each other.
    let first = |column: &usize| {
        let name = &site.columns[*column].name;
        site.columns.iter().position(|other| other.name == *name).unwrap_or(*column)
    };
    columns.sort_by_key(first);
    let mut engines: Vec<&str> = entries.iter().map(|entry| entry.engine.as_str()).collect();
    engines.sort_unstable();
    engines.dedup();
    let head = |column: &usize| {
        let column = &site.columns[*column];
        html!("<th scope=\"col\" class=\"r\" data-w=\"{}\">{}</th>", column.workload, column.title)
    };
    let newest =
        |column: usize| entries.iter().filter(|entry| entry.column == column).map(|entry| entry.run).max();
    let cell = |engine: &str, column: usize| {
        let own = entries.iter().rev().find(|entry| entry.engine == engine && entry.column == column);
        own.map_or_else(
            || Html::constant("<td class=\"r\">-</td>"),
            |entry| figure(site, entry, newest(column) == Some(entry.run), of_highest(entries, entry)),
        )
    };
    let row = |engine: &&str| {
        let link = html!("<a href=\"{}/{}\">{}</a>", ENGINES, site.engine_file(engine), *engine);
        let cells: Html = columns.iter().map(|column| cell(engine, *column)).collect();
        // The gravest of the newest run.
        let own = || entries.iter().filter(|entry| entry.engine == *engine);
        let last = own().map(|entry| entry.run).max();
        let gravest = own().filter(|entry| Some(entry.run) == last).map(|entry| &entry.safety).max();
        let safe = gravest.and_then(Safety::mark).map_or_else(String::new, |mark| format!(" {mark}"));
        html!("<tr data-e=\"{}\"><th scope=\"row\">{}{}</th>{}</tr>\n", *engine, link, safe, cells)
    };
    html!(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"figures\">\n<thead><tr><th scope=\"col\">engine</th>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
        columns.iter().map(head).collect::<Html>(),
        engines.iter().map(row).collect::<Html>()
    )
}

/// The rate of a ranked engine as a ratio to the highest of the ranked ones in the same column of the same run; none: it has no
/// rank, or is alone.
fn of_highest(entries: &[&Entry], entry: &Entry) -> Option<f64> {
    let is_compared = |entry: &Entry| entry.rank.is_some_and(|rank| rank.of > 1);
    let others = entries.iter().filter(|other| (other.run, other.column) == (entry.run, entry.column));
    let rates = others.filter(|other| is_compared(other)).filter_map(|other| other.ops_per_second);
    let highest = rates.reduce(f64::max).filter(|highest| *highest > 0.0)?;
    entry.ops_per_second.filter(|_| is_compared(entry)).map(|rate| rate / highest)
}

/// A figure of the table, with the data that the script compares.
fn figure(site: &Site, entry: &Entry, is_newest: bool, of_highest: Option<f64>) -> Html {
    let Some(value) = entry.ops_per_second else { return Html::constant("<td class=\"r\">-</td>") };
    let run = &site.runs[entry.run];
    let first = if is_newest && entry.rank.is_some_and(Rank::is_first) { " first" } else { "" };
    let class =
        format!("r{first}{}", of_highest.map_or_else(String::new, |ratio| format!(" {}", shade(ratio))));
    let rank = entry.rank.map(|rank| format!(" {rank}"));
    let places = match entry.rank {
        Some(rank) => {
            html!(" data-best=\"{}\" data-worst=\"{}\"", rank.best.to_string(), rank.worst.to_string())
        }
        None => Html::default(),
    };
    let interval = match entry.interval {
        Some(interval) => {
            html!(" title=\"{}\"", format!("{} to {}; {}", rate(interval.low), rate(interval.high), run.id))
        }
        None => html!(" title=\"{}\"", run.id),
    };
    html!(
        "<td class=\"{}\" data-v=\"{}\" data-run=\"{}\"{}{}><a href=\"{}/{}\">{}</a>{}<small>{}</small></td>",
        class,
        value.to_string(),
        entry.run,
        places,
        interval,
        RUNS,
        run.file,
        rate(value),
        if is_newest { "" } else { "*" },
        rank
    )
}

/// The comparison of two engines, which the script fills in.
fn compare(site: &Site) -> Html {
    let options: Html =
        site.engines().into_iter().map(|engine| html!("<option>{}</option>", engine)).collect();
    html!(
        "<section id=\"compare\" hidden=\"hidden\">\n<h2>Compare two engines</h2>\n<p><label for=\"one\">Engine</label> <select id=\"one\">{}</select> \
         <label for=\"other\">and</label> <select id=\"other\">{}</select></p>\n<div id=\"pairs\" aria-live=\"polite\"></div>\n</section>\n",
        options,
        options
    )
}

/// The histories of commits; empty if there is none.
fn histories(site: &Site) -> Html {
    if site.histories.is_empty() {
        return Html::default();
    }
    let line = |history: &super::collect::SiteHistory| {
        html!(
            "<li><a href=\"{}/{}\">{}</a>: {}</li>\n",
            HISTORIES,
            history.file,
            history.name,
            history.extent
        )
    };
    let lines: Html = site.histories.iter().map(line).collect();
    html!("<section>\n<h2>Histories of commits</h2>\n<ul>\n{}</ul>\n</section>\n", lines)
}

/// The settings of each column's phase.
fn settings(site: &Site) -> Html {
    let row =
        |column: &super::collect::Column| html!("<dt>{}</dt><dd>{}</dd>\n", column.title, column.settings);
    let rows: Html = site.columns.iter().map(row).collect();
    html!(
        "<section>\n<h2>Phases</h2>\n<details><summary>Settings of each phase</summary>\n<dl>\n{}</dl>\n</details>\n</section>\n",
        rows
    )
}

fn runs(site: &Site) -> Html {
    let row = |run: &super::collect::SiteRun| {
        html!(
            "<tr><td><a href=\"{}/{}\">{}</a></td><td>{}</td><td>{}</td><td class=\"long\">{}</td><td class=\"long\">{}</td><td class=\"long\">{}</td><td class=\"long\"><code>{}</code></td></tr>\n",
            RUNS,
            run.file,
            run.id,
            run.started_at,
            run.tool_version,
            site.machines[run.machine],
            run.workloads.join(", "),
            run.trials,
            run.command
        )
    };
    let head: Html = ["run", "started", "kvdyno", "machine", "workloads", "trials", "command"]
        .into_iter()
        .map(|title| html!("<th scope=\"col\">{}</th>", title))
        .collect();
    html!(
        "<section>\n<h2>Runs</h2>\n<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n</section>\n",
        head,
        site.runs.iter().rev().map(row).collect::<Html>()
    )
}
