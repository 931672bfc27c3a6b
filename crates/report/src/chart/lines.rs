//! Line charts: each line has a colour, a dash, a marker and its name at its end.

use super::palette::{Style, marker};
use super::scale::{Ends, Scale, Unit};
use super::{Chart, Scales, WIDTH, axis, text_width};
use crate::markup::{Html, html};
use kvdyno_core::results::statistics::Interval;

/// A point of a line.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The x value.
    pub x: f64,
    /// The y value; `None` if unknown, which leaves a gap in the line.
    pub y: Option<f64>,
    /// A whisker.
    pub interval: Option<Interval>,
    /// Whether the point has a marker.
    pub is_marked: bool,
    /// Whether the point is a slow interval.
    pub is_slow: bool,
    /// What is to be told about stalls that began in it; empty without stalls.
    pub stalls: String,
}

/// An engine's line.
pub(super) struct Line {
    /// The engine's name.
    pub engine: String,
    /// Its colour, dash and marker.
    pub style: Style,
    /// The points, from the left.
    pub points: Vec<Point>,
    /// A fitted curve that replaces the line between the points; empty: none.
    pub curve: Vec<(f64, f64)>,
    /// Whether the line is hidden until it is selected.
    pub is_extra: bool,
    /// The tooltip.
    pub tip: String,
}

/// An axis.
pub(super) struct Axis {
    /// The title, with the unit if the figures have none.
    pub title: &'static str,
    /// The unit of the figures.
    pub unit: Unit,
    /// Whether the scale is logarithmic.
    pub is_log: bool,
}

/// A span of the x axis that is marked behind the lines.
pub(super) struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// What it is, in a word or two, above it.
    pub name: String,
    /// The tooltip.
    pub tip: String,
}

/// A chart of lines to draw.
pub(super) struct Lines {
    /// The chart's title.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// The x axis; its kind of scale is fixed.
    pub x: Axis,
    /// The y axis with its default kind of scale.
    pub y: Axis,
    /// The lines, in drawing order.
    pub lines: Vec<Line>,
    /// The number of lines before any were dropped.
    pub of: usize,
    /// Whether a page has a switch of scales.
    pub has_switch: bool,
    /// Spans that are marked, such as faults.
    pub bands: Vec<Band>,
}

const HEIGHT: f64 = 236.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = HEIGHT - 36.0;
/// The left edge of the plot, right of the figures.
const LEFT: f64 = 50.0;
/// The minimum vertical distance of two names.
const NAME: f64 = 12.5;

/// Draws the chart; `None` if there is no point.
pub(super) fn draw(lines: &Lines, scales: Scales) -> Option<Chart> {
    let points = || lines.lines.iter().flat_map(|line| &line.points).filter(|point| point.y.is_some());
    points().next()?;
    // Only a page can show further lines on request.
    let is_drawn = |line: &&Line| !line.is_extra || scales == Scales::Both;
    let names = lines.lines.iter().map(|line| text_width(&line.engine)).fold(0.0, f64::max);
    let right = WIDTH - names.clamp(40.0, 170.0) - 12.0;
    let x_scale = x_scale(&lines.x, points(), Ends { from: LEFT, to: right });
    let mut content = html!(
        "<text class=\"t\" x=\"0\" y=\"11\">{}</text>{}<text class=\"t c\" x=\"{}\" y=\"{}\">{}</text>",
        lines.y.title,
        axis::below(&x_scale, Ends { from: TOP, to: BOTTOM }),
        (LEFT + right) / 2.0,
        HEIGHT - 6.0,
        lines.x.title
    );
    lines.bands.iter().for_each(|band| content.push(&marked(band, &x_scale, right)));
    let mut drawn = Vec::new();
    for (class, is_log) in scales.kinds(lines.y.is_log, lines.has_switch) {
        let scale = y_scale(lines.y.unit, points(), is_log);
        content.push(&html!(
            "<g class=\"{}\">{}</g>",
            class,
            axis::left(&scale, Ends { from: LEFT, to: right })
        ));
        let names = name_places(lines, &scale);
        drawn.push((class, scale, names));
    }
    content.push(&html!("<path class=\"x\" d=\"M{} {}V{}H{}\"/>", LEFT, TOP, BOTTOM, right));
    if scales != Scales::Both && lines.lines.iter().any(|line| line.is_extra) {
        let shown = lines.lines.iter().filter(is_drawn).count();
        let text = format!("the {shown} fastest of {}", lines.of);
        content.push(&html!("<text class=\"t e\" x=\"{}\" y=\"{}\">{}</text>", WIDTH, HEIGHT - 6.0, text));
    }
    let shared_x =
        lines.lines.iter().map(|line| x_of(lines, line)).max_by_key(String::len).unwrap_or_default();
    for (place, line) in lines.lines.iter().enumerate().filter(|(_, line)| is_drawn(line)) {
        let mut inside = html!("<title>{}</title>", line.tip);
        for (class, y_scale, names) in &drawn {
            let own = Places { x: &x_scale, y: y_scale, right };
            inside.push(&html!(
                "<g class=\"{}\">{}{}</g>",
                class,
                own.line(line),
                own.name(line, names[place])
            ));
        }
        let own_x = x_of(lines, line);
        let own_x = match is_beginning(&own_x, &shared_x) {
            true => Html::default(),
            false => html!(" data-x=\"{}\"", own_x),
        };
        content.push(&html!(
            "<g class=\"r{}\" data-e=\"{}\"{} data-v=\"{}\">{}</g>",
            if line.is_extra { " extra" } else { "" },
            line.engine,
            own_x,
            separated(line.points.iter().filter_map(|point| point.y).map(|y| lines.y.unit.text(y))),
            inside
        ));
    }
    let is_log = match scales {
        Scales::Both | Scales::Own => lines.y.is_log,
        Scales::Linear => false,
        Scales::Log => true,
    };
    let (title, about) = (lines.title.clone(), lines.about.clone());
    Some(Chart { title, about, height: HEIGHT, content, x: shared_x, is_log, has_switch: lines.has_switch })
}

/// A band, from its begin to its end or that of the chart.
fn marked(band: &Band, x: &Scale, right: f64) -> Html {
    let from = x.at(band.from).clamp(LEFT, right);
    let to = x.at(band.to).clamp(from, right);
    html!(
        "<g><title>{}</title><path class=\"u\" d=\"M{} {}H{}V{}H{}z\"/><path class=\"z\" d=\"M{} {}V{}\"/>\
         <text class=\"t\" x=\"{}\" y=\"{}\">{}</text></g>",
        band.tip,
        from,
        TOP,
        to,
        BOTTOM,
        from,
        from,
        TOP,
        BOTTOM,
        from + 3.0,
        TOP + 9.0,
        band.name
    )
}

/// The x values of the known points of a line.
fn x_of(lines: &Lines, line: &Line) -> String {
    separated(line.points.iter().filter(|point| point.y.is_some()).map(|point| lines.x.unit.text(point.x)))
}

/// Whether a list is a prefix of another or equal to it.
fn is_beginning(list: &str, of: &str) -> bool {
    of.strip_prefix(list).is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
}

/// Values for the script, which splits them at `|`.
fn separated(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("|")
}

fn x_scale<'a>(axis: &Axis, points: impl Iterator<Item = &'a Point>, room: Ends) -> Scale {
    let (mut least, mut largest) = (f64::INFINITY, 0.0_f64);
    for point in points {
        least = least.min(point.x);
        largest = largest.max(point.x);
    }
    match axis.is_log {
        true => Scale::log(axis.unit, least, largest, room),
        false => Scale::linear(axis.unit, largest, room),
    }
}

fn y_scale<'a>(unit: Unit, points: impl Iterator<Item = &'a Point>, is_log: bool) -> Scale {
    let (mut least, mut largest) = (f64::INFINITY, 0.0_f64);
    for point in points {
        let ends = point.interval.map(|interval| [interval.low, interval.high]);
        for value in ends.into_iter().flatten().chain(point.y) {
            least = if value > 0.0 { least.min(value) } else { least };
            largest = largest.max(value);
        }
    }
    let ends = Ends { from: BOTTOM, to: TOP };
    match is_log {
        true => Scale::log(unit, least, largest, ends),
        false => Scale::linear(unit, largest, ends),
    }
}

/// The y positions of the line names: at the ends of the lines, spread so that they do not overlap. Names of hidden lines
/// are not moved.
fn name_places(lines: &Lines, scale: &Scale) -> Vec<f64> {
    let end =
        |line: &Line| line.points.iter().rev().find_map(|point| point.y).map_or(BOTTOM, |y| scale.at(y));
    let mut places: Vec<f64> = lines.lines.iter().map(end).collect();
    let mut shown: Vec<usize> = (0..places.len()).filter(|place| !lines.lines[*place].is_extra).collect();
    shown.sort_by(|one, other| places[*one].total_cmp(&places[*other]));
    let mut above = f64::NEG_INFINITY;
    for place in &shown {
        places[*place] = places[*place].max(above + NAME);
        above = places[*place];
    }
    let mut below = BOTTOM + NAME;
    for place in shown.iter().rev() {
        places[*place] = places[*place].min(below - NAME);
        below = places[*place];
    }
    places
}

/// The scales of one chart.
struct Places<'a> {
    x: &'a Scale,
    y: &'a Scale,
    right: f64,
}

impl Places<'_> {
    fn of(&self, point: &Point) -> Option<(f64, f64)> {
        Some((self.x.at(point.x), self.y.at(point.y?)))
    }

    /// The line, interrupted at its gaps, with its whiskers, markers, slow intervals and stalls.
    fn line(&self, line: &Line) -> Html {
        let mut drawn = Html::default();
        let (colour, dash) = (line.style.colour, line.style.dash);
        if !line.curve.is_empty() {
            let place = |(number, (x, y)): (usize, &(f64, f64))| {
                html!("{}{},{}", if number == 0 { "" } else { " " }, self.x.at(*x), self.y.at(*y))
            };
            let places: Html = line.curve.iter().enumerate().map(place).collect();
            drawn.push(&html!("<polyline class=\"l s{} d{}\" points=\"{}\"/>", colour, dash, places));
        }
        let pieces = line.points.split(|point| point.y.is_none());
        let pieces = pieces.filter(|piece| !piece.is_empty() && line.curve.is_empty());
        for piece in pieces {
            let place = |(number, point): (usize, &Point)| {
                let (x, y) = self.of(point)?;
                Some(html!("{}{},{}", if number == 0 { "" } else { " " }, x, y))
            };
            let places: Html = piece.iter().enumerate().filter_map(place).collect();
            drawn.push(&html!("<polyline class=\"l s{} d{}\" points=\"{}\"/>", colour, dash, places));
        }
        for point in &line.points {
            let Some((x, y)) = self.of(point) else { continue };
            if let Some(interval) = point.interval {
                let (low, high) = (self.y.at(interval.low), self.y.at(interval.high));
                let whisker = html!("M{} {}h6M{} {}V{}M{} {}h6", x - 3.0, low, x, low, high, x - 3.0, high);
                drawn.push(&html!("<path class=\"l s{}\" d=\"{}\"/>", line.style.colour, whisker));
            }
            if point.is_marked {
                drawn.push(&marker(line.style, x, y));
            }
            if point.is_slow {
                drawn.push(&html!("<path class=\"z\" d=\"M{} {}l8 8m0 -8l-8 8\"/>", x - 4.0, y - 4.0));
            }
            if !point.stalls.is_empty() {
                let (shape, tip) = (html!("M{} {}l-4 -7h8z", x, y - 3.0), &point.stalls);
                drawn.push(&html!("<path class=\"z\" d=\"{}\"><title>{}</title></path>", shape, tip));
            }
        }
        drawn
    }

    /// The line's name and the leader from the end of the line to the name.
    fn name(&self, line: &Line, at: f64) -> Html {
        let Some((x, y)) = line.points.iter().rev().find_map(|point| self.of(point)) else {
            return Html::default();
        };
        html!(
            "<path class=\"k\" d=\"M{} {}L{} {}\"/><text class=\"n f{}\" x=\"{}\" y=\"{}\">{}</text>",
            x,
            y,
            self.right + 6.0,
            at,
            line.style.colour,
            self.right + 8.0,
            at + 4.0,
            line.engine
        )
    }
}
