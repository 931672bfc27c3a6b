//! Scatter charts: engines as points of two figures, with the Pareto front of each durability level.

use super::labels::{self, Anchor, Area, Label, Named};
use super::pareto::{front, worse};
use super::scale::{Ends, Scale, Unit};
use super::{Chart, Scales, WIDTH, axis, text_width};
use crate::markup::{Html, html};
use kvdyno_core::results::comparison::Better;
use kvdyno_measure::text::{listed, wrapped_lines};

/// A figure of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    /// The figure.
    pub value: f64,
    /// The ends of its bar: an interval or the range of the runs.
    pub ends: Option<(f64, f64)>,
}

/// An engine.
#[derive(Clone, Debug)]
pub(super) struct Dot {
    /// The engine's name.
    pub engine: String,
    /// The figure on the x axis.
    pub x: Extent,
    /// The figure on the y axis.
    pub y: Extent,
    /// Whether the engine is ranked in the phases of both figures. The others are never on the front.
    pub is_ranked: bool,
}

/// The engines at one durability level.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// The level's name.
    pub name: String,
    /// Its engines.
    pub dots: Vec<Dot>,
}

/// An axis.
pub(super) struct Axis {
    /// The title.
    pub title: String,
    /// The name of the figure in tooltips; empty if its unit says enough.
    pub short: &'static str,
    /// The unit of the figures.
    pub unit: Unit,
    /// The better direction.
    pub better: Better,
}

/// A scatter chart to draw.
pub(super) struct Scatter {
    /// The chart's title.
    pub title: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// The engines, by level.
    pub levels: Vec<Level>,
    /// Engines without a point, with the reason.
    pub missing: Vec<(String, String)>,
    /// The meaning of the bars; empty if there are none.
    pub bars: &'static str,
}

/// How to read the front, for a file; a page says it once.
pub(crate) const FRONT: &str =
    "A line joins the engines that no other engine at their level beats in both figures, by medians.";

const LEFT: f64 = 50.0;
/// The right edge of the plot: half of a figure below it is to its right.
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 268.0;
/// The base line of the x axis title.
const X_TITLE: f64 = BOTTOM + 31.0;
const HEIGHT: f64 = BOTTOM + 38.0;
/// The minimum number of engines: one alone is compared with nothing.
const FEWEST: usize = 2;
/// An axis is logarithmic if its largest figure is more than this many times its least one.
const WIDE: f64 = 8.0;
/// The size of the names, relative to that of [`text_width`].
const NAME_SIZE: f64 = 11.0 / 12.0;
/// The maximum length of a note below a chart in a file, in characters.
const NOTE: usize = 62;

/// Both axes.
struct Axes {
    x: Across,
    y: Across,
}

/// A point with its place on the chart.
struct Placed<'a> {
    dot: &'a Dot,
    level: &'a str,
    at: (f64, f64),
    is_first: bool,
}

/// Draws the chart; `None` if there are fewer than two engines to compare.
pub(super) fn draw(scatter: &Scatter, scales: Scales) -> Option<Chart> {
    let dots = || scatter.levels.iter().flat_map(|level| &level.dots);
    if dots().count() < FEWEST {
        return None;
    }
    let x = Across::new(&scatter.x, dots().map(|dot| dot.x), scales, Ends { from: LEFT, to: RIGHT });
    let y = Across::new(&scatter.y, dots().map(|dot| dot.y), scales, Ends { from: BOTTOM, to: TOP });
    let axes = Axes { x, y };
    let mut content = titles(scatter);
    content.push(&ticks(&axes));
    content.push(&html!("<path class=\"x\" d=\"M{} {}V{}H{}\"/>", LEFT, TOP, BOTTOM, RIGHT));
    let mut placed: Vec<Placed> = Vec::new();
    let mut lines: Vec<Area> = Vec::new();
    for level in &scatter.levels {
        let ranked: Vec<&Dot> = level.dots.iter().filter(|dot| dot.is_ranked).collect();
        let figures: Vec<(f64, f64)> = ranked.iter().map(|dot| (dot.x.value, dot.y.value)).collect();
        let best = front(&figures, scatter.x.better, scatter.y.better);
        content.push(&front_line(scatter, &best, &figures, &axes, &level.name, &mut lines));
        for dot in &level.dots {
            let is_first = best.iter().any(|place| std::ptr::eq(ranked[*place], dot));
            let at = (axes.x.at(dot.x.value), axes.y.at(dot.y.value));
            placed.push(Placed { dot, level: &level.name, at, is_first });
        }
    }
    // Names of engines on a front are placed first.
    placed.sort_by_key(|placed| !placed.is_first);
    lines.extend(placed.iter().flat_map(|placed| bars(placed, &axes).into_iter().flatten()));
    let named =
        |placed: &Placed| Named { at: placed.at, width: text_width(&placed.dot.engine) * NAME_SIZE + 1.0 };
    let names: Vec<Named> = placed.iter().map(named).collect();
    let room = Area { left: LEFT + 1.0, right: WIDTH, top: TOP - 4.0, bottom: BOTTOM - 1.0 };
    let places = labels::place(&names, &lines, &room);
    let mut unnamed = Vec::new();
    for (placed, label) in placed.iter().zip(places) {
        if label.is_none() {
            unnamed.push(placed.dot.engine.clone());
        }
        content.push(&point(scatter, placed, label, &axes));
    }
    let missing = missing(&scatter.missing, unnamed);
    let mut height = HEIGHT;
    let mut about = missing.clone();
    // A page says once how to read all of them, and wraps its own lines.
    if scales != Scales::Both {
        about = String::new();
        let notes = [FRONT, scatter.bars, missing.as_str()].into_iter().filter(|note| !note.is_empty());
        for line in notes.flat_map(|note| wrapped_lines(note, NOTE)) {
            height += 14.0;
            content.push(&html!("<text class=\"t\" x=\"0\" y=\"{}\">{}</text>", height - 6.0, line));
        }
    }
    Some(Chart {
        title: scatter.title.clone(),
        about,
        height,
        content,
        x: String::new(),
        is_log: false,
        has_switch: false,
    })
}

/// A scale that also has a place for 0 if it is logarithmic: the end of the axis, before its first figure.
struct Across {
    scale: Scale,
    zero: Option<f64>,
}

/// The room for 0 on a logarithmic scale.
const ZERO: f64 = 22.0;

impl Across {
    /// As requested, or logarithmic if the figures and their bars differ much.
    fn new(axis: &Axis, extents: impl Iterator<Item = Extent>, scales: Scales, ends: Ends) -> Across {
        let (mut least, mut largest, mut has_zero) = (f64::INFINITY, 0.0_f64, false);
        for extent in extents {
            let ends = extent.ends.map(|(low, high)| [low, high]);
            for value in ends.into_iter().flatten().chain([extent.value]) {
                least = if value > 0.0 { least.min(value) } else { least };
                largest = largest.max(value);
                has_zero |= value <= 0.0;
            }
        }
        let is_log = match scales {
            Scales::Both | Scales::Own => largest > least * WIDE,
            Scales::Linear => false,
            Scales::Log => true,
        };
        // The points at the ends have room for their shapes.
        match (is_log, has_zero) {
            (true, true) => {
                let first = ends.from + ZERO * (ends.to - ends.from).signum();
                let scale = Scale::log(axis.unit, least / 1.1, largest * 1.1, Ends { from: first, ..ends });
                Across { scale, zero: Some(ends.from) }
            }
            (true, false) => {
                let scale = Scale::log(axis.unit, least / 1.1, largest * 1.1, ends);
                Across { scale, zero: None }
            }
            (false, _) => Across { scale: Scale::linear(axis.unit, largest * 1.04, ends), zero: None },
        }
    }

    fn at(&self, value: f64) -> f64 {
        match self.zero {
            Some(zero) if value <= 0.0 => zero,
            _ => self.scale.at(value),
        }
    }
}

/// The ticks of both axes.
fn ticks(Axes { x, y }: &Axes) -> Html {
    let mut ticks = axis::below(&x.scale, Ends { from: TOP, to: BOTTOM });
    ticks.push(&axis::left(&y.scale, Ends { from: LEFT, to: RIGHT }));
    if let Some(zero) = x.zero {
        ticks.push(&html!("<text class=\"t c\" x=\"{}\" y=\"{}\">0</text>", zero, BOTTOM + 15.0));
    }
    if let Some(zero) = y.zero {
        ticks.push(&html!("<text class=\"t e\" x=\"{}\" y=\"{}\">0</text>", LEFT - 4.0, zero + 4.0));
    }
    ticks
}

/// The axis titles with arrows in the better directions, and the shapes of the levels.
fn titles(scatter: &Scatter) -> Html {
    let words = |axis: &Axis| match axis.better {
        Better::Higher => format!("{}, higher is better", axis.title),
        Better::Lower => format!("{}, lower is better", axis.title),
    };
    let (x, y) = (words(&scatter.x), words(&scatter.y));
    let up = match scatter.y.better {
        Better::Higher => Html::constant("M4 11V3M1 6L4 3L7 6"),
        Better::Lower => Html::constant("M4 3V11M1 8L4 11L7 8"),
    };
    let mut titles =
        html!("<path class=\"y\" d=\"{}\"/><text class=\"t\" x=\"12\" y=\"11\">{}</text>", up, y);
    let wide = text_width(&x) * NAME_SIZE;
    let middle = ((LEFT + RIGHT) / 2.0).min(WIDTH - wide / 2.0 - 14.0);
    let (from, line) = (X_TITLE - 4.0, wide / 2.0 + 4.0);
    let along = match scatter.x.better {
        Better::Higher => {
            html!("M{} {}h9M{} {}l3 3l-3 3", middle + line, from, middle + line + 6.0, from - 3.0)
        }
        Better::Lower => {
            html!("M{} {}h-9M{} {}l-3 3l3 3", middle - line, from, middle - line - 6.0, from - 3.0)
        }
    };
    titles.push(&html!(
        "<path class=\"y\" d=\"{}\"/><text class=\"t c\" x=\"{}\" y=\"{}\">{}</text>",
        along,
        middle,
        X_TITLE,
        x
    ));
    let mut at = 6.0;
    let has_hollow = scatter.levels.iter().flat_map(|level| &level.dots).any(|dot| !dot.is_ranked);
    let levels = scatter.levels.iter().map(|level| (level.name.as_str(), "b", level.name.as_str()));
    for (level, class, text) in levels.chain(has_hollow.then_some(("process", "o b2", "hollow: no rank"))) {
        let drawn = shape(level, class, at, 23.0);
        titles.push(&html!("{}<text class=\"t\" x=\"{}\" y=\"27\">{}</text>", drawn, at + 8.0, text));
        at += 8.0 + text_width(text) * NAME_SIZE + 16.0;
    }
    titles
}

/// The line of a front: the figures that can be had at this level, as steps.
fn front_line(
    scatter: &Scatter,
    best: &[usize],
    figures: &[(f64, f64)],
    Axes { x, y }: &Axes,
    level: &str,
    lines: &mut Vec<Area>,
) -> Html {
    if best.len() < 2 {
        return Html::default();
    }
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for pair in best.windows(2) {
        let (one, other) = (figures[pair[0]], figures[pair[1]]);
        let corner = (worse(scatter.x.better, one.0, other.0), worse(scatter.y.better, one.1, other.1));
        corners.extend([one, corner]);
    }
    corners.extend(best.last().map(|place| figures[*place]));
    let corners: Vec<(f64, f64)> = corners.into_iter().map(|(one, other)| (x.at(one), y.at(other))).collect();
    for pair in corners.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let (left, right, top, bottom) =
            (x0.min(x1) - 0.5, x0.max(x1) + 0.5, y0.min(y1) - 0.5, y0.max(y1) + 0.5);
        lines.push(Area { left, right, top, bottom });
    }
    let step =
        |(place, (x, y)): (usize, &(f64, f64))| html!("{}{} {}", if place == 0 { "M" } else { "L" }, x, y);
    let path: Html = corners.iter().enumerate().map(step).collect();
    html!("<path class=\"v d{}\" d=\"{}\"/>", dash(level), path)
}

/// The dash of a level's front.
fn dash(level: &str) -> usize {
    match level {
        "none" => 2,
        "power" => 1,
        level if level.contains(", ") => 3, // caches, servers
        _ => 0,
    }
}

/// The bars of a point as thin areas: along x and along y.
fn bars(placed: &Placed, Axes { x, y }: &Axes) -> [Option<Area>; 2] {
    let (at_x, at_y) = placed.at;
    let along = placed.dot.x.ends.map(|(low, high)| Area {
        left: x.at(low),
        right: x.at(high),
        top: at_y - 0.5,
        bottom: at_y + 0.5,
    });
    let up = placed.dot.y.ends.map(|(low, high)| Area {
        left: at_x - 0.5,
        right: at_x + 0.5,
        top: y.at(high),
        bottom: y.at(low),
    });
    [along, up]
}

/// A point with its bars, its name and its tooltip.
fn point(scatter: &Scatter, placed: &Placed, label: Option<Label>, axes: &Axes) -> Html {
    let dot = placed.dot;
    let mut inside = html!("<title>{}</title>", tip(scatter, placed));
    let [along, up] = bars(placed, axes);
    let path: Html = [
        along.map(|bar| html!("M{} {}H{}", bar.left, placed.at.1, bar.right)),
        up.map(|bar| html!("M{} {}V{}", placed.at.0, bar.top, bar.bottom)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !path.is_empty() {
        inside.push(&html!("<path class=\"i\" d=\"{}\"/>", path));
    }
    if let Some(label) = label.filter(|label| label.is_far) {
        let (x, y) = placed.at;
        inside.push(&html!("<path class=\"k\" d=\"M{} {}L{} {}\"/>", x, y, label.x, label.y - 3.0));
    }
    let class = match (placed.is_first, dot.is_ranked) {
        (true, _) => "b1",
        (false, true) => "b",
        (false, false) => "o b2",
    };
    inside.push(&shape(placed.level, class, placed.at.0, placed.at.1));
    if let Some(label) = label {
        let anchor = match label.anchor {
            Anchor::Start => "",
            Anchor::Middle => " c",
            Anchor::End => " e",
        };
        inside.push(&html!(
            "<text class=\"a{}\" x=\"{}\" y=\"{}\">{}</text>",
            anchor,
            label.x,
            label.y,
            dot.engine
        ));
    }
    html!("<g class=\"r\" data-e=\"{}\">{}</g>", dot.engine, inside)
}

/// The shape of a level's points.
fn shape(level: &str, class: &'static str, x: f64, y: f64) -> Html {
    match level {
        "none" => html!("<path class=\"{}\" d=\"M{} {}l4.6 8h-9.2z\"/>", class, x, y - 5.0),
        "process" => html!("<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", class, x, y),
        "power" => html!("<path class=\"{}\" d=\"M{} {}h7v7h-7z\"/>", class, x - 3.5, y - 3.5),
        _ => html!("<path class=\"{}\" d=\"M{} {}l5 5l-5 5l-5 -5z\"/>", class, x, y - 5.0),
    }
}

fn tip(scatter: &Scatter, placed: &Placed) -> String {
    let figure = |axis: &Axis, extent: Extent| {
        let ends = extent.ends.map(|(low, high)| (axis.unit.text(low), axis.unit.text(high)));
        let ends = ends.map_or_else(String::new, |(low, high)| format!(" ({low}..{high})"));
        format!("{} {}{ends}", axis.short, axis.unit.text(extent.value))
    };
    format!(
        "{}: {}, {}{}",
        placed.dot.engine,
        figure(&scatter.y, placed.dot.y),
        figure(&scatter.x, placed.dot.x),
        if placed.is_first { "; no engine at this level is better in both" } else { "" }
    )
}

/// The engines without a point and the points without a name; empty if there are none.
fn missing(missing: &[(String, String)], unnamed: Vec<String>) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (engine, why) in missing {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, engines)) => engines.push(engine.clone()),
            None => reasons.push((why, vec![engine.clone()])),
        }
    }
    let reasons: Vec<String> =
        reasons.iter().map(|(why, engines)| format!("{} ({why})", listed(engines, "and"))).collect();
    let mut texts = Vec::new();
    if !reasons.is_empty() {
        texts.push(format!("Not shown: {}.", reasons.join("; ")));
    }
    if !unnamed.is_empty() {
        texts.push(format!("Points without room for a name: {}.", listed(&unnamed, "and")));
    }
    texts.join(" ")
}
