//! The contents of the page, in order.

use super::super::chart::{self, Scales, Scene};
use super::super::content::{Block, failure_blocks, header, step_blocks, warning_blocks};
use super::super::describe::{command, phase_name, phase_settings};
use super::super::limits;
use super::super::markup::{self, Html, html};
use super::super::next::next_steps;
use super::super::ranking::{LEGEND, ranking, remarks, service_times, without_figures};
use super::super::verdict::verdict;
use super::engines;
use crate::results::summary::{Cell, PhaseSummary, Summary};
use crate::text::plain_text;

/// The facts of the run that are on the first screen.
const FIRST: [&str; 4] = ["command", "started", "machine", "trials"];
/// The maximum number of verdicts that are not folded.
const VERDICTS: usize = 12;

/// Numbers the charts, for unique ids.
#[derive(Default)]
pub(super) struct Numbers(usize);

impl Numbers {
    /// The charts as figures in a grid; empty without charts.
    pub fn figures(&mut self, charts: impl IntoIterator<Item = chart::Chart>) -> Html {
        let figure = |chart: chart::Chart| {
            self.0 += 1;
            chart.figure(self.0)
        };
        let figures: Html = charts.into_iter().map(figure).collect();
        if figures.is_empty() { figures } else { html!("<div class=\"charts\">\n{}</div>\n", figures) }
    }
}

/// Adds the body, up to the script, in parts, because a page may be large.
pub(super) fn body(scene: &Scene, page: &mut String) {
    let mut add = |part: &Html| page.push_str(part.as_str());
    let mut numbers = Numbers::default();
    add(&html!("<body>\n<header>\n{}</header>\n<main>\n", head(scene)));
    add(&first_screen(scene));
    add(&controls(scene));
    add(&tradeoffs(scene, &mut numbers));
    for (place, phase) in scene.summary.phases.iter().enumerate() {
        add(&phase_section(scene, phase, place, &mut numbers));
    }
    let sizes = numbers.figures(chart::sizes(scene, Scales::Both));
    if !sizes.is_empty() {
        add(&html!("<section id=\"sizes\">\n<h2>Throughput by database size</h2>\n{}</section>\n", sizes));
    }
    add(&blocks(step_blocks(scene.summary)));
    for (title, table) in limits::tables(&scene.summary.records) {
        let legend = Block::Lines(vec![limits::LEGEND.to_string()]);
        add(&blocks(vec![Block::Part(title), Block::Table(table), legend]));
    }
    add(&engines::section(scene));
    add(&blocks(failure_blocks(scene.summary)));
    add(&blocks(warning_blocks(scene.summary)));
    add(&blocks(ending(scene)));
    add(&Html::constant("</main>\n<div id=\"tip\" hidden=\"hidden\"></div>\n"));
}

/// The title, the command and the machine.
fn head(scene: &Scene) -> Html {
    let mut workloads: Vec<&str> = scene.summary.phases.iter().map(|phase| phase.workload.as_str()).collect();
    workloads.dedup();
    let what = match workloads.as_slice() {
        few @ [_, ..] if few.len() <= 4 => few.join(", "),
        many => format!("{} workloads", many.len()),
    };
    let mut head = html!("<h1>kvdyno: {}</h1>\n", what);
    head.push(&block(facts(scene, |name| FIRST.contains(&name))));
    head
}

/// The facts of the run whose names `is_wanted` accepts.
fn facts(scene: &Scene, is_wanted: impl Fn(&str) -> bool) -> Block {
    match header(scene.summary, scene.run) {
        Block::Facts(mut facts) => {
            facts.retain(|(name, _)| is_wanted(name));
            Block::Facts(facts)
        }
        other => other,
    }
}

fn first_screen(scene: &Scene) -> Html {
    let verdicts = verdict(scene.summary);
    let items =
        |verdicts: &[String]| -> Html { verdicts.iter().map(|text| html!("<li>{}</li>\n", text)).collect() };
    // A verdict without a comparison is not important enough for the first screen.
    let (mut first, mut rest): (Vec<String>, Vec<String>) =
        verdicts.into_iter().partition(|text| !text.contains("is the only ranked engine"));
    if first.is_empty() {
        std::mem::swap(&mut first, &mut rest);
    }
    rest.splice(0..0, first.split_off(first.len().min(VERDICTS)));
    let mut screen = html!("<section id=\"verdict\">\n<h2>Verdict</h2>\n<ul>\n{}</ul>\n", items(&first));
    if !rest.is_empty() {
        screen.push(&html!(
            "<details><summary>{} more</summary>\n<ul>\n{}</ul>\n</details>\n",
            rest.len(),
            items(&rest)
        ));
    }
    let phases = &scene.summary.phases;
    let link = |(place, phase)| html!("<a href=\"#p{}\">{}</a>\n", place, phase_name(phase));
    let links: Html = phases.iter().enumerate().map(link).collect();
    let mut more = Html::constant("<a href=\"#repeat\">how to repeat</a>\n");
    if !scene.summary.engines.is_empty() {
        more.push(&Html::constant("<a href=\"#engines\">engines</a>\n"));
    }
    screen.push(&html!("</section>\n<nav>\n{}{}</nav>\n", links, more));
    screen
}

/// Controls that need the script, which makes them visible.
fn controls(scene: &Scene) -> Html {
    let chip = |name: &str| {
        html!("<button type=\"button\" aria-pressed=\"false\" data-pick=\"{}\">{}</button>\n", name, name)
    };
    let chips: Html = scene.engines().into_iter().map(chip).collect();
    html!(
        "<div id=\"controls\" hidden=\"hidden\" role=\"group\" aria-label=\"Engines to show\">\n\
         <label for=\"find\">Engines</label> <input id=\"find\" type=\"search\" placeholder=\"part of a name\"/>\n\
         <button type=\"button\" id=\"all\">all</button>\n<div id=\"chips\">\n{}</div>\n</div>\n",
        chips
    )
}

/// The trade-offs by their figures: reads and writes, and the latency of each phase; others are folded.
fn tradeoffs(scene: &Scene, numbers: &mut Numbers) -> Html {
    let phases = || measured(scene.summary);
    let scales = Scales::Both;
    let mut charts = chart::reads_and_writes(scene, scales);
    charts.extend(phases().filter_map(|phase| chart::latency_and_rate(phase, scales)));
    let mut all = numbers.figures(charts);
    let memory = phases().filter_map(|phase| chart::memory_and_rate(phase, scales));
    let space = scene.summary.phases.iter().filter_map(|phase| chart::amplification(phase, scales));
    for (title, charts) in
        [("Rate and memory", memory.collect::<Vec<_>>()), ("Written bytes and space", space.collect())]
    {
        let figures = numbers.figures(charts);
        if !figures.is_empty() {
            all.push(&html!("<details><summary>{}</summary>\n{}</details>\n", title, figures));
        }
    }
    if all.is_empty() {
        return all;
    }
    html!(
        "<section id=\"tradeoffs\">\n<h2>Trade-offs</h2>\n<p class=\"about\">{} {}</p>\n{}</section>\n",
        chart::FRONT,
        chart::BARS,
        all
    )
}

/// The phases that do more than load keys; all phases if there is no other.
fn measured(summary: &Summary) -> impl Iterator<Item = &PhaseSummary> {
    let has_others = summary.phases.iter().any(|phase| !phase.settings.is_fill());
    summary.phases.iter().filter(move |phase| !(has_others && phase.settings.is_fill()))
}

/// How to repeat the run, what to do next, and how to read the page.
fn ending(scene: &Scene) -> Vec<Block> {
    let rest = facts(scene, |name| !FIRST.contains(&name));
    let mut blocks = vec![Block::Part("How it was measured".to_string()), rest];
    if !scene.summary.absent.is_empty() {
        let absent =
            scene.summary.absent.iter().map(|(engine, why)| plain_text(&format!("{engine} ({why})")));
        blocks.extend([Block::Part("Engines not available".to_string()), Block::Lines(absent.collect())]);
    }
    let repeat =
        (command(scene.run), "the command of this run; the same seed produces the same ops".to_string());
    blocks.extend([Block::Part("How to repeat".to_string()), Block::Commands(vec![repeat])]);
    let next = next_steps(scene.summary, scene.run);
    if !next.is_empty() {
        blocks.extend([Block::Part("Next".to_string()), Block::Commands(next)]);
    }
    blocks.push(Block::Part("How to read this page".to_string()));
    let pictures = [
        "A bar is a median over runs, and its whisker is the interval of that median. The engine in the strong colour \
         is surely ahead of all others in its ranking.",
        "On a log scale a dot marks the figure, because the length of a bar would have no meaning.",
    ];
    blocks.push(Block::Lines(LEGEND.iter().chain(&pictures).map(|line| line.to_string()).collect()));
    blocks
}

/// The blocks, with a section for each part.
pub(super) fn blocks(blocks: Vec<Block>) -> Html {
    let mut set = Html::default();
    let mut is_open = false;
    for found in blocks {
        if let Block::Part(title) = &found {
            let id = if title == "How to repeat" { "<section id=\"repeat\">\n" } else { "<section>\n" };
            set.push(&Html::constant(if is_open { "</section>\n" } else { "" }));
            set.push(&Html::constant(id));
            is_open = true;
        }
        set.push(&block(found));
    }
    set.push(&Html::constant(if is_open { "</section>\n" } else { "" }));
    set
}

/// A block inside a section.
pub(super) fn block(block: Block) -> Html {
    match block {
        Block::Title(title) => html!("<h1>{}</h1>\n", title),
        Block::Part(title) => html!("<h2>{}</h2>\n", title),
        Block::Section(title) => html!("<h3>{}</h3>\n", title),
        Block::Facts(facts) => {
            let fact = |(name, value): (&str, String)| html!("<dt>{}</dt><dd>{}</dd>\n", name, value);
            html!("<dl>\n{}</dl>\n", facts.into_iter().map(fact).collect::<Html>())
        }
        Block::Table(table) => markup::table(&table),
        Block::Lines(lines) => {
            let line = |line: String| html!("<li>{}</li>\n", line.trim_start());
            html!("<ul>\n{}</ul>\n", lines.into_iter().map(line).collect::<Html>())
        }
        Block::Commands(commands) => {
            let line = |(command, purpose): (String, String)| {
                html!("<li><code>{}</code><br/>{}</li>\n", command, purpose)
            };
            html!("<ul class=\"commands\">\n{}</ul>\n", commands.into_iter().map(line).collect::<Html>())
        }
    }
}

/// The section of a phase: its settings, a table for each effective durability level, charts, and remarks on its rows.
fn phase_section(scene: &Scene, phase: &PhaseSummary, place: usize, numbers: &mut Numbers) -> Html {
    let mut section = html!("<section id=\"p{}\" class=\"phase\">\n<h2>{}</h2>\n", place, phase_name(phase));
    section.push(&html!("<p>{}</p>\n", phase_settings(phase)));
    for group in &phase.groups {
        section.push(&html!("<h3>Durability level {} (effective)</h3>\n", group.name()));
        section.push(&markup::table(&ranking(&group.cells)));
    }
    let measured: Vec<&Cell> = phase.unranked.iter().filter(|cell| cell.counted_runs > 0).collect();
    if !measured.is_empty() {
        section.push(&Html::constant("<h3>Measured but not ranked</h3>\n"));
        section.push(&markup::table(&ranking(measured)));
    }
    if let Some(found) = without_figures(phase) {
        section.push(&html!("<h3>Not measured</h3>\n{}", markup::table(&found)));
    }
    section.push(&block(Block::Lines(remarks(phase))));
    let main =
        chart::throughput(phase, Scales::Both).into_iter().chain(chart::latency(scene, phase, Scales::Both));
    section.push(&numbers.figures(main));
    let series = numbers.figures(chart::series(scene, phase, Scales::Both));
    if !series.is_empty() {
        section.push(&html!("<h3>Over time</h3>\n{}", series));
    }
    let resources = numbers.figures(chart::resources(phase, Scales::Both));
    if !resources.is_empty() {
        section.push(&html!("<h3>Resources (lower is better)</h3>\n{}", resources));
    }
    if let Some(found) = service_times(phase) {
        section.push(&html!("<h3>Service times</h3>\n{}", markup::table(&found)));
    }
    section.push(&Html::constant("</section>\n"));
    section
}
