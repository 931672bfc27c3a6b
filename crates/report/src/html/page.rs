//! The contents of the page, in order.

use super::super::block::{Block, Chart, Charts};
use super::super::chart::{self, Scales, Scene};
use super::super::content::{details, header, legend, problems, rankings, results};
use super::super::describe::{command, machine, phase_name, phase_settings, trials};
use super::super::grid;
use super::super::markup::{self, Html, html};
use super::super::next::next_steps;
use super::super::ranking::remarks;
use super::super::verdict::{brief, brief_legend, verdict};
use super::engines;
use super::heatmap::heatmap;
use kvdyno_core::results::summary::{PhaseSummary, Summary};
use kvdyno_measure::text::{counted, plain_text};

/// The maximum number of verdicts that are not folded.
const VERDICTS: usize = 8;
/// The maximum number of lines of a list that is not folded.
const LINES: usize = 6;
/// The number of workloads whose matrices are not folded.
const MATRICES: usize = 3;

/// Numbers the charts, for unique ids.
#[derive(Default)]
pub(super) struct Numbers(usize);

impl Numbers {
    /// The charts as figures in a grid; empty without charts.
    pub(super) fn figures(&mut self, charts: impl IntoIterator<Item = Chart>) -> Html {
        let figure = |chart: Chart| {
            self.0 += 1;
            chart.figure(self.0)
        };
        let figures: Html = charts.into_iter().map(figure).collect();
        if figures.is_empty() { figures } else { html!("<div class=\"charts\">\n{}</div>\n", figures) }
    }

    /// The blocks, with a section for each part.
    fn blocks(&mut self, blocks: Vec<Block>) -> Html {
        let mut set = Html::default();
        let mut is_open = false;
        for found in blocks {
            let id = match &found {
                Block::Part(title) if title == "How to repeat" => Some("<section id=\"repeat\">\n"),
                Block::Part(_) => Some("<section>\n"),
                _ => None,
            };
            let is_part = id.is_some() || matches!(&found, Block::Charts(Charts { id: Some(_), .. }));
            if is_part && is_open {
                set.push(&Html::constant("</section>\n"));
                is_open = false;
            }
            if let Some(id) = id {
                set.push(&Html::constant(id));
                is_open = true;
            }
            set.push(&self.block(found));
        }
        set.push(&Html::constant(if is_open { "</section>\n" } else { "" }));
        set
    }

    /// A block inside a section. Charts that are a part of the report are a section of their own.
    fn block(&mut self, block: Block) -> Html {
        match block {
            Block::Title(title) => html!("<h1>{}</h1>\n", title),
            Block::Part(title) => html!("<h2>{}</h2>\n", title),
            Block::Section(title) => html!("<h3>{}</h3>\n", title),
            Block::Facts(facts) => {
                let fact = |(name, value): (&str, String)| html!("<dt>{}</dt><dd>{}</dd>\n", name, value);
                html!("<dl>\n{}</dl>\n", facts.into_iter().map(fact).collect::<Html>())
            }
            Block::Table(table) => markup::table(&table),
            Block::Matrix(matrix) => heatmap(&matrix),
            Block::Lines(lines) => list(&lines),
            Block::Commands(commands) => {
                let line = |(command, purpose): (String, String)| {
                    html!("<li><code>{}</code><br/>{}</li>\n", command, purpose)
                };
                html!("<ul class=\"commands\">\n{}</ul>\n", commands.into_iter().map(line).collect::<Html>())
            }
            Block::Charts(Charts { id, title, charts }) => {
                let figures = self.figures(charts);
                match (id, title) {
                    _ if figures.is_empty() => figures,
                    (None, None) => figures,
                    (None, Some(title)) => html!("<h3>{}</h3>\n{}", title, figures),
                    (Some(id), title) => {
                        let title = title.map(|title| html!("<h2>{}</h2>\n", title));
                        html!("<section id=\"{}\">\n{}{}</section>\n", id, title, figures)
                    }
                }
            }
        }
    }
}

/// Adds the body, up to the script, in parts, because a page may be large.
pub(super) fn body(scene: &Scene, page: &mut String) {
    let mut add = |part: &Html| page.push_str(part.as_str());
    let mut numbers = Numbers::default();
    add(&html!("<body>\n<header>\n{}</header>\n<main>\n", head(scene)));
    add(&first_screen(scene, &mut numbers));
    add(&controls(scene));
    add(&tradeoffs(scene, &mut numbers));
    for (place, phase) in scene.summary.phases.iter().enumerate() {
        add(&phase_section(scene, phase, place, &mut numbers));
    }
    add(&numbers.blocks(results(scene.summary, scene.run, Some(scene))));
    add(&engines::section(scene));
    add(&numbers.blocks(problems(scene.summary)));
    add(&ending(scene, &mut numbers));
    add(&Html::constant("</main>\n<div id=\"tip\" hidden=\"hidden\"></div>\n"));
}

/// The title, and the run and the machine in a line each.
fn head(scene: &Scene) -> Html {
    let mut workloads: Vec<&str> = scene.summary.phases.iter().map(|phase| phase.workload.as_str()).collect();
    workloads.dedup();
    let what = match workloads.as_slice() {
        few @ [_, ..] if few.len() <= 4 => few.join(", "),
        many => format!("{} workloads", many.len()),
    };
    let (run, summary) = (scene.run, scene.summary);
    html!(
        "<h1>kvdyno: {}</h1>\n<p class=\"about\">{}<br/>\nstarted {}; {}</p>\n",
        what,
        machine(run),
        run.started_at,
        trials(run, summary)
    )
}

/// The verdict by questions, and the engines by phases.
fn first_screen(scene: &Scene, numbers: &mut Numbers) -> Html {
    let questions = brief(scene.summary, true);
    let (first, rest) = questions.split_at(questions.len().min(VERDICTS));
    let items =
        |verdicts: &[String]| -> Html { verdicts.iter().map(|text| html!("<li>{}</li>\n", text)).collect() };
    let legend = brief_legend(scene.summary);
    let legend = legend.map_or_else(Html::default, |legend| html!("<p class=\"about\">{}.</p>\n", legend));
    let mut screen =
        html!("<section id=\"verdict\">\n<h2>Verdict</h2>\n{}<ul>\n{}</ul>\n", legend, items(first));
    screen.push(&folded(&counted(rest.len() as u64, "other question", "other questions"), &list(rest)));
    let all = verdict(scene.summary);
    screen.push(&folded("verdicts for each phase and level", &list(&all)));
    let mut matrices = grid::blocks(scene.summary);
    let others = matrices.split_off(matrices.len().min(MATRICES));
    let title = counted(others.len() as u64, "other workload", "other workloads");
    screen.push(&numbers.blocks(matrices));
    screen.push(&folded(&title, &numbers.blocks(others)));
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

/// A list of lines; empty without lines.
pub(super) fn list(lines: &[String]) -> Html {
    let line = |line: &String| html!("<li>{}</li>\n", line.trim_start());
    let items: Html = lines.iter().map(line).collect();
    if items.is_empty() { items } else { html!("<ul>\n{}</ul>\n", items) }
}

/// Contents that are shown on request, without a script; empty without contents.
fn folded(title: &str, contents: &Html) -> Html {
    match contents.is_empty() {
        true => Html::default(),
        false => html!("<details><summary>{}</summary>\n{}</details>\n", title, contents),
    }
}

/// A list that is folded if it is long.
fn short_list(title: &str, lines: &[String]) -> Html {
    let all = list(lines);
    if lines.len() > LINES { folded(title, &all) } else { all }
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

/// How it was measured, how to repeat the run, what to do next, and how to read the page.
fn ending(scene: &Scene, numbers: &mut Numbers) -> Html {
    let facts = numbers.block(header(scene.summary, scene.run));
    let mut end = html!("<section>\n<h2>How it was measured</h2>\n{}", folded("facts of the run", &facts));
    let absent: Vec<String> =
        scene.summary.absent.iter().map(|(engine, why)| plain_text(&format!("{engine} ({why})"))).collect();
    if !absent.is_empty() {
        let title = counted(absent.len() as u64, "engine", "engines");
        end.push(&html!("<h3>Engines not available</h3>\n{}", short_list(&title, &absent)));
    }
    end.push(&Html::constant("</section>\n"));
    let repeat =
        (command(scene.run), "the command of this run; the same seed produces the same ops".to_string());
    let mut more = vec![Block::Part("How to repeat".to_string()), Block::Commands(vec![repeat])];
    let next = next_steps(scene.summary, scene.run);
    if !next.is_empty() {
        more.extend([Block::Part("Next".to_string()), Block::Commands(next)]);
    }
    more.push(Block::Part("How to read this page".to_string()));
    let pictures = [
        "A bar is a median over runs, and its whisker is the interval of that median. The engine in the strong colour \
         is surely ahead of all others in its ranking.",
        "On a log scale a dot marks the figure, because the length of a bar would have no meaning.",
    ];
    let mut lines = legend(scene.summary);
    lines.extend(pictures.map(String::from));
    more.push(Block::Lines(lines));
    end.push(&numbers.blocks(more));
    end
}

/// The section of a phase: its settings, a table for each effective durability level, charts, and remarks on its rows. A
/// phase that only loads is folded.
fn phase_section(scene: &Scene, phase: &PhaseSummary, place: usize, numbers: &mut Numbers) -> Html {
    let is_measured = measured(scene.summary).any(|other| std::ptr::eq(other, phase));
    let contents = phase_contents(scene, phase, numbers);
    // A link to a place inside opens it.
    match is_measured {
        true => html!(
            "<section id=\"p{}\" class=\"phase\">\n<h2>{}</h2>\n{}</section>\n",
            place,
            phase_name(phase),
            contents
        ),
        false => html!(
            "<section class=\"phase\">\n<details><summary><h2>{}</h2> (loads the database)</summary>\n\
             <div id=\"p{}\">\n{}</div>\n</details>\n</section>\n",
            phase_name(phase),
            place,
            contents
        ),
    }
}

fn phase_contents(scene: &Scene, phase: &PhaseSummary, numbers: &mut Numbers) -> Html {
    let mut section = html!("<p>{}</p>\n", phase_settings(phase));
    section.push(&numbers.blocks(rankings(phase, None)));
    let remarks = remarks(phase);
    let (floors, notes) = remarks.split_at(remarks.len().min(phase.floors.len().max(1)));
    section.push(&list(floors));
    section.push(&short_list(&counted(notes.len() as u64, "note", "notes"), notes));
    section.push(&numbers.blocks(details(phase, &scene.summary.records, Some(scene))));
    section
}
