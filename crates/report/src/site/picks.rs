//! The first part of the first page: for each workload that stands for a kind of program, the engines that may be the fastest in
//! its phases.

use super::ENGINES;
use super::collect::{RUNS, Site};
use crate::grid::Title;
use crate::markup::{Html, html};
use crate::matrix::{Column, Entry, Matrix, Row, Section, Standing, State, matrices};
use crate::safety;
use kvdyno_core::results::Kind;
use kvdyno_core::results::label::full_name;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::workload::{builtin_names, builtin_scenarios};
use kvdyno_measure::text::{counted, listed, plain_text};
use std::cmp::Reverse;

/// The maximum number of engines that are named at a level.
const NAMED: usize = 4;
/// The workload of `kvdyno` without arguments, which is no scenario, and is last.
const MIXTURE: &str = "quick";

const ABOUT: &str = "Engines that may be the fastest in the phases in parentheses: no other engine at their durability level was shown to \
     be faster, and some were shown to be slower. Phases that only load, reference engines, and engines with a contradicted level \
     are not counted. `+` no loss seen, `?` not tested. Of several runs of a workload, the newest of those with the most engines is \
     shown.";

/// What a run shows about a workload.
#[derive(Debug)]
pub(super) struct Picks {
    run: usize,
    /// The place of the workload on the page.
    place: usize,
    name: &'static str,
    about: &'static str,
    /// The number of compared engines.
    engines: usize,
    /// The levels, the weakest first, with the engines that lead in most phases first.
    levels: Vec<(String, Vec<Pick>)>,
}

/// An engine that leads in some phases.
#[derive(Debug)]
struct Pick {
    engine: String,
    /// The mark of its safety.
    safe: Option<char>,
    phases: Vec<String>,
}

/// The workloads that the page is about, in its order: what each stands for.
fn workloads() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mixture = builtin_names().iter().filter(|(name, _)| *name == MIXTURE);
    builtin_scenarios().iter().chain(mixture).copied()
}

/// What a run shows; empty if it has none of the workloads.
pub(super) fn picks(summary: &Summary, run: usize) -> Vec<Picks> {
    let all = matrices(summary);
    let of = |matrix: &Matrix| {
        let (place, (name, about)) =
            workloads().enumerate().find(|(_, (name, _))| *name == matrix.workload)?;
        let compared = || matrix.sections.iter().filter(|section| is_compared(section));
        let engines = compared().flat_map(|section| &section.rows).filter(|row| row.has_figures()).count();
        let title = |section: &Section| Title::of(section, matrix).text(|_| true);
        let levels = compared().map(|section| (title(section), led(matrix, section)));
        let levels = levels.filter(|(_, picks)| !picks.is_empty()).collect();
        Some(Picks { run, place, name, about, engines, levels })
    };
    all.iter().filter_map(of).collect()
}

fn is_compared(section: &Section) -> bool {
    matches!(section.standing, Standing::Engines(kind) if kind != Kind::Reference)
}

/// The engines of a section that lead in some phases, those that lead in most first.
fn led(matrix: &Matrix, section: &Section) -> Vec<Pick> {
    let pick = |row: &Row| {
        let mut entries = row.entries.iter().flatten();
        let cells = matrix.columns.iter().zip(&row.entries);
        let phases: Vec<String> =
            cells.filter_map(|(column, entry)| phase_led(column, entry.as_ref())).collect();
        let is_safe = entries.all(|entry| !entry.cell.safety.is_contradicted());
        (is_safe && !phases.is_empty()).then(|| Pick {
            engine: plain_text(&full_name(row.engine, row.options)),
            safe: safety::row_mark(row, section.level()),
            phases,
        })
    };
    let mut picks: Vec<Pick> = section.rows.iter().filter_map(pick).collect();
    picks.sort_by_key(|pick| Reverse(pick.phases.len()));
    picks
}

/// The phase, if the engine leads in it and it does more than load.
fn phase_led(column: &Column, entry: Option<&Entry>) -> Option<String> {
    let entry = entry.filter(|entry| entry.state == State::Measured && !column.only_loads)?;
    let leads = entry.cell.leader && entry.cell.rank.is_some_and(|rank| rank.of > 1 && !rank.is_open());
    leads.then(|| plain_text(&column.phase.name))
}

impl Site {
    /// Keeps what the newest run shows about its workloads, unless an earlier run has compared more engines.
    pub(super) fn keep_picks(&mut self, found: Vec<Picks>) {
        for new in found {
            match self.picks.iter_mut().find(|known| known.place == new.place) {
                Some(known) if known.engines > new.engines => {}
                Some(known) => *known = new,
                None => self.picks.push(new),
            }
        }
        self.picks.sort_by_key(|picks| picks.place);
    }
}

/// The section; empty if no run has one of the workloads.
pub(super) fn section(site: &Site) -> Html {
    if site.picks.is_empty() {
        return Html::default();
    }
    let entries: Html = site.picks.iter().map(|picks| entry(site, picks)).collect();
    html!(
        "<section id=\"picks\">\n<h2>What does your program do most?</h2>\n<dl class=\"picks\">\n{}</dl>\n<p class=\"about\">{}</p>\n</section>\n",
        entries,
        ABOUT
    )
}

fn entry(site: &Site, picks: &Picks) -> Html {
    let levels: Html = picks.levels.iter().map(|(level, all)| of_level(site, level, all)).collect();
    let levels = match levels.is_empty() {
        true => Html::constant("<li>the runs do not show which engines are the fastest</li>\n"),
        false => levels,
    };
    let run = &site.runs[picks.run];
    let machine = match site.machines.len() {
        1 => String::new(),
        _ => format!(", {}", site.machines[run.machine]),
    };
    html!(
        "<dt>{}</dt><dd>{}\n<ul>\n{}</ul>\n<small><a href=\"{}/{}\">run of {}</a> started {}{}</small></dd>\n",
        picks.name,
        picks.about,
        levels,
        RUNS,
        run.file,
        counted(picks.engines as u64, "engine", "engines"),
        run.started_at,
        machine
    )
}

fn of_level(site: &Site, level: &str, all: &[Pick]) -> Html {
    let pick = |pick: &Pick| {
        let safe = pick.safe.map_or_else(String::new, |mark| format!(" {mark}"));
        let file = site.engine_file(&pick.engine);
        html!(
            "<li><a href=\"{}/{}\">{}</a>{} ({})</li>\n",
            ENGINES,
            file,
            pick.engine,
            safe,
            listed(&pick.phases, "and")
        )
    };
    let others = match all.len().saturating_sub(NAMED) {
        0 => Html::default(),
        others => html!("<li>and {}</li>\n", counted(others as u64, "other", "others")),
    };
    let named: Html = all.iter().take(NAMED).map(pick).collect();
    html!("<li>{}: <ul class=\"names\">\n{}{}</ul></li>\n", level, named, others)
}
