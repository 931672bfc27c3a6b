//! Rows of bars with intervals: a name, a bar from 0, a whisker and the figure. On a logarithmic scale a dot replaces the
//! bar, because the length of a bar would have no meaning.

use super::scale::{Ends, Scale, Unit};
use super::{Chart, Scales, WIDTH, axis, text_width};
use crate::markup::{Html, html};
use kvdyno_core::results::statistics::Interval;

/// One bar.
pub(super) struct Row {
    /// The engine's name.
    pub engine: String,
    /// The text before the name: a rank.
    pub lead: String,
    /// The length; `None` for no bar.
    pub value: Option<f64>,
    /// The whisker.
    pub interval: Option<Interval>,
    /// Whether the engine is surely the first.
    pub is_first: bool,
    /// A text that replaces the figure at the end of the row; `None` for the figure.
    pub instead: Option<String>,
    /// The tooltip; empty for none.
    pub tip: String,
}

/// Rows under a heading.
pub(super) struct Section {
    /// The heading, if any.
    pub heading: Option<String>,
    /// The rows, from the top.
    pub rows: Vec<Row>,
}

/// A chart of bars to draw.
pub(super) struct Bars {
    /// The chart's title.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// The axis title, with the unit.
    pub axis: String,
    /// The unit of the figures.
    pub unit: Unit,
    /// The sections, from the top.
    pub sections: Vec<Section>,
    /// Whether a page has a switch of scales.
    pub has_switch: bool,
}

const ROW: f64 = 19.0;
/// The distance from the top of a row to the base line of its text.
const BASE: f64 = 13.0;
/// The top of the first row, below the axis title and the ticks.
const TOP: f64 = 34.0;
/// The minimum width of the ranks, and the space after the widest.
const LEAD: f64 = 26.0;
const LEAD_GAP: f64 = 7.0;

/// The positions of the columns.
struct Columns {
    name: f64,
    from: f64,
    to: f64,
}

/// Draws the chart; `None` if no row has a figure.
pub(super) fn draw(bars: &Bars, scales: Scales) -> Option<Chart> {
    let rows = || bars.sections.iter().flat_map(|section| &section.rows);
    let ends = |row: &Row| [row.value, row.interval.map(|interval| interval.high)];
    let largest = rows().flat_map(ends).flatten().fold(0.0, f64::max);
    let lows = |row: &Row| [row.value, row.interval.map(|interval| interval.low)];
    let least = rows().flat_map(lows).flatten().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    rows().find(|row| row.value.is_some())?;
    let columns = columns(bars);
    let headings = bars.sections.iter().filter(|section| section.heading.is_some()).count();
    let height = TOP + (rows().count() + headings) as f64 * ROW + 4.0;
    let room = Ends { from: columns.from, to: columns.to };
    let mut content = html!("<text class=\"t\" x=\"0\" y=\"11\">{}</text>", bars.axis);
    let mut drawn = Vec::new();
    for (class, is_log) in scales.kinds(false, bars.has_switch) {
        let scale = match is_log {
            true => Scale::log(bars.unit, least, largest, room),
            false => Scale::linear(bars.unit, largest, room),
        };
        let grid = axis::above(&scale, Ends { from: TOP - 4.0, to: height });
        content.push(&html!("<g class=\"{}\">{}</g>", class, grid));
        drawn.push((class, is_log, scale));
    }
    let mut y = TOP;
    for section in &bars.sections {
        if let Some(heading) = &section.heading {
            let text = html!("<text class=\"h\">{}</text>", heading);
            content.push(&html!("<g class=\"p\" transform=\"translate(0 {})\">{}</g>", y + BASE, text));
            y += ROW;
        }
        for row in &section.rows {
            content.push(&draw_row(row, bars.unit, &columns, &drawn, y));
            y += ROW;
        }
    }
    Some(Chart {
        title: bars.title.clone(),
        about: bars.about.clone(),
        height,
        content,
        x: String::new(),
        is_log: scales == Scales::Log,
        has_switch: bars.has_switch,
    })
}

fn columns(bars: &Bars) -> Columns {
    let rows = || bars.sections.iter().flat_map(|section| &section.rows);
    let names = rows().map(|row| text_width(&row.engine)).fold(0.0, f64::max);
    let lead = rows().map(|row| text_width(&row.lead)).fold(0.0, f64::max);
    let name = if lead > 0.0 { (lead + LEAD_GAP).max(LEAD) } else { 0.0 };
    let figure = |row: &Row| row.value.map_or(8.0, |value| text_width(&bars.unit.text(value)));
    let figures = rows().map(figure).fold(0.0, f64::max);
    let from = name + names.clamp(50.0, 190.0) + 6.0;
    Columns { name, from, to: WIDTH - figures - 8.0 }
}

/// A row. Its origin is the left end of its text's base line.
fn draw_row(row: &Row, unit: Unit, columns: &Columns, drawn: &[(&'static str, bool, Scale)], y: f64) -> Html {
    let figure = row.value.map_or_else(|| "-".to_string(), |value| unit.text(value));
    let mut inside = Html::default();
    if !row.tip.is_empty() {
        inside.push(&html!("<title>{}</title>", row.tip));
    }
    if !row.lead.is_empty() {
        inside.push(&html!("<text class=\"t\">{}</text>", row.lead));
    }
    let name = match columns.name {
        0.0 => html!("<text>{}</text>", row.engine),
        x => html!("<text x=\"{}\">{}</text>", x, row.engine),
    };
    inside.push(&name);
    for (class, is_log, scale) in drawn {
        inside.push(&geometry(row, columns, class, *is_log, scale));
    }
    match &row.instead {
        Some(instead) => inside.push(&html!("<text class=\"t\" x=\"{}\">{}</text>", columns.from, instead)),
        None => inside.push(&html!("<text class=\"e\" x=\"{}\">{}</text>", WIDTH, figure)),
    }
    let (engine, base) = (&row.engine, y + BASE);
    html!(
        "<g class=\"r\" data-e=\"{}\" data-v=\"{}\" transform=\"translate(0 {})\">{}</g>",
        engine,
        figure,
        base,
        inside
    )
}

/// The bar or dot of a row, and its whisker.
fn geometry(row: &Row, columns: &Columns, class: &'static str, is_log: bool, scale: &Scale) -> Html {
    let Some(value) = row.value else { return Html::default() };
    let fill = if row.is_first { "b1" } else { "b" };
    let end = scale.at(value);
    let mut drawn = match is_log {
        true => html!("<circle class=\"{} {}\" cx=\"{}\" cy=\"-4\" r=\"4\"/>", fill, class, end),
        // A minimum width, so that every figure has a visible bar.
        false => {
            let width = (end - columns.from).max(0.6);
            html!("<path class=\"{} {}\" d=\"M{} -10h{}v12h-{}z\"/>", fill, class, columns.from, width, width)
        }
    };
    if let Some(interval) = row.interval {
        let (low, high) = (scale.at(interval.low), scale.at(interval.high));
        let ends = html!("M{} -7.5v7M{} -4H{}M{} -7.5v7", low, low, high, high);
        drawn.push(&html!("<path class=\"w {}\" d=\"{}\"/>", class, ends));
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Scales;

    #[test]
    fn names_begin_after_the_widest_rank() {
        for (lead, is_wider) in [("1", false), ("10-13", true), ("100-120", true)] {
            let row = |lead: &str| Row {
                engine: "engine".into(),
                lead: lead.into(),
                value: Some(1.0),
                interval: None,
                is_first: false,
                instead: None,
                tip: String::new(),
            };
            let sections = vec![Section { heading: None, rows: vec![row("1"), row(lead)] }];
            let bars = Bars {
                title: String::new(),
                about: String::new(),
                axis: String::new(),
                unit: Unit::Rate,
                sections,
                has_switch: false,
            };
            let name = columns(&bars).name;
            assert!(name >= text_width(lead) + 4.0, "{lead}: the names begin at {name}");
            assert_eq!(name > LEAD, is_wider, "{lead}");
            assert!(draw(&bars, Scales::Linear).is_some());
        }
    }
}
