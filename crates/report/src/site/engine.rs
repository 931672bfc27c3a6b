//! An engine's page: all its figures, the oldest first, and charts for phases that were measured several times.

use super::collect::{Entry, RUNS, Site, in_history};
use super::index::CERTIFIED;
use crate::certificate::overview;
use crate::chart::{Past, Scales, history};
use crate::figure::{known, rate};
use crate::markup::{self, Html, html};
use crate::ranking::rates;
use kvdyno_core::results::certificate::Certificate;
use kvdyno_core::results::figures::RATE;
use kvdyno_measure::text::listed;

/// The body of the page, up to the script.
pub(super) fn body(site: &Site, engine: &str, page: &mut String) {
    let mut add = |part: &Html| page.push_str(part.as_str());
    let own: Vec<&Entry> = site.entries.iter().filter(|entry| entry.engine == engine).collect();
    let mut versions: Vec<String> = own.iter().map(|entry| entry.version.clone()).collect();
    versions.dedup();
    let mut seen = Vec::new();
    versions.retain(|version| {
        version != "-" && !seen.contains(version) && {
            seen.push(version.clone());
            true
        }
    });
    add(&html!("<body>\n<header>\n<p><a href=\"../index.html\">all engines</a></p>\n<h1>{}</h1>\n", engine));
    let versions = if versions.is_empty() { "-".to_string() } else { listed(&versions, "and") };
    add(&html!("<p>Versions: {}</p>\n</header>\n<main>\n", versions));
    let mut charts = 0;
    for (place, machine) in site.machines.iter().enumerate() {
        let here: Vec<&Entry> =
            own.iter().filter(|entry| site.runs[entry.run].machine == place).copied().collect();
        if here.is_empty() {
            continue;
        }
        add(&html!("<section>\n<h2>{}</h2>\n", machine));
        let figures: Html = pasts(site, &here)
            .into_iter()
            .filter_map(|(title, past)| history(title, &past, Scales::Both))
            .map(|chart| {
                charts += 1;
                chart.figure(charts)
            })
            .collect();
        if !figures.is_empty() {
            add(&html!("<h3>History</h3>\n<div class=\"charts\">\n{}</div>\n", figures));
        }
        add(&table(site, &here));
        add(&Html::constant("</section>\n"));
    }
    let certified: Vec<&Certificate> = site
        .certificates
        .iter()
        .filter(|certificate| certificate.subject.engine == plain_name(engine))
        .collect();
    if !certified.is_empty() {
        add(&html!(
            "<section>\n<h2>Durability, claimed and measured</h2>\n{}<p class=\"about\">{}</p>\n</section>\n",
            markup::table(&overview(certified)),
            CERTIFIED
        ));
    }
    let legend = "Figures measured at different times, or with different versions of kvdyno, differ more than their \
                  intervals show, because the state of the machine has changed.";
    add(&html!("<p class=\"about\">{}</p>\n</main>\n", legend));
}

/// The engine without its options.
fn plain_name(engine: &str) -> &str {
    engine.split_once(" (").map_or(engine, |(name, _)| name)
}

/// The figures of each phase and level that was measured at least twice, the oldest first.
fn pasts<'a>(site: &'a Site, entries: &[&'a Entry]) -> Vec<(String, Vec<Past>)> {
    let mut pasts: Vec<(String, Vec<Past>)> = Vec::new();
    for entry in entries {
        let (Some(value), Some(level)) = (entry.ops_per_second, &entry.level) else { continue };
        let title = format!("{}, level {}", site.columns[entry.column].title, level.name);
        let run = &site.runs[entry.run];
        let day = run.started_at.split('T').next().unwrap_or_default();
        let past = Past {
            name: format!("{}, {day}", entry.version),
            value,
            interval: entry.interval,
            tip: format!("{}: {} ops/s; kvdyno {}", run.id, rate(value), run.tool_version),
        };
        match pasts.iter_mut().find(|(known, _)| *known == title) {
            Some((_, found)) => found.push(past),
            None => pasts.push((title, vec![past])),
        }
    }
    pasts.retain(|(_, past)| past.len() > 1);
    pasts
}

fn table(site: &Site, entries: &[&Entry]) -> Html {
    let word = |title: &'static str| html!("<th scope=\"col\">{}</th>", title);
    let number = |title: &'static str| html!("<th scope=\"col\" class=\"r\">{}</th>", title);
    let mut heads = ["phase", "durability level", "version", "started"].map(word).to_vec();
    for (figure, title) in in_history() {
        heads.push(number(title));
        heads.extend((figure.name == RATE).then(|| word("interval")));
    }
    heads.extend([word("rank"), number("runs"), word("run"), word("notes")]);
    html!(
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
        heads.into_iter().collect::<Html>(),
        entries.iter().map(|entry| row(site, entry)).collect::<Html>()
    )
}

fn row(site: &Site, entry: &Entry) -> Html {
    let run = &site.runs[entry.run];
    let cell = |text: String| html!("<td>{}</td>", text);
    let number = |text: &str| html!("<td class=\"r\">{}</td>", text);
    let mut cells = vec![
        cell(site.columns[entry.column].title.clone()),
        cell(known(entry.level.as_ref(), |level| level.name.clone())),
        cell(entry.version.clone()),
        cell(run.started_at.clone()),
    ];
    for ((figure, _), text) in in_history().zip(&entry.figures) {
        cells.push(number(text));
        cells.extend((figure.name == RATE).then(|| cell(known(entry.interval, rates))));
    }
    cells.extend([
        cell(known(entry.rank, |rank| rank.to_string())),
        number(&entry.counted_runs.to_string()),
        html!("<td><a href=\"../{}/{}\">{}</a></td>", RUNS, run.file, run.id),
        cell(entry.notes.clone()),
    ]);
    html!("<tr>{}</tr>\n", cells.into_iter().collect::<Html>())
}
