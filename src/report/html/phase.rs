//! A phase on the page: its settings, a table for each effective durability level, charts, and remarks on its rows.

use super::super::chart::{self, Scales, Scene};
use super::super::content::Block;
use super::super::describe::{phase_name, phase_settings};
use super::super::markup::{Html, html, table};
use super::super::ranking::{ranking, remarks, service_times, without_figures};
use super::page::{Numbers, block};
use crate::results::summary::{Cell, PhaseSummary};

/// The section.
pub(super) fn section(scene: &Scene, phase: &PhaseSummary, place: usize, numbers: &mut Numbers) -> Html {
    let mut section = html!("<section id=\"p{}\" class=\"phase\">\n<h2>{}</h2>\n", place, phase_name(phase));
    section.push(&html!("<p>{}</p>\n", phase_settings(phase)));
    for group in &phase.groups {
        section.push(&html!("<h3>Durability level {} (effective)</h3>\n", group.name()));
        section.push(&table(&ranking(&group.cells)));
    }
    let measured: Vec<&Cell> = phase.unranked.iter().filter(|cell| cell.counted_runs > 0).collect();
    if !measured.is_empty() {
        section.push(&Html::constant("<h3>Measured but not ranked</h3>\n"));
        section.push(&table(&ranking(measured)));
    }
    if let Some(found) = without_figures(phase) {
        section.push(&html!("<h3>Not measured</h3>\n{}", table(&found)));
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
        section.push(&html!("<h3>Service times</h3>\n{}", table(&found)));
    }
    section.push(&Html::constant("</section>\n"));
    section
}
