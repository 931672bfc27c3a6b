//! A figure over the commits of a history: a point for each, the means between its changes, and a mark at each change.

use super::scale::{Ends, Scale, Unit};
use super::{Chart, WIDTH, axis, text_width};
use crate::markup::{Html, html};
use kvdyno_core::results::figures::Form;

/// The value of a commit.
pub(crate) struct Dot {
    /// The place of the commit in the history, from 0.
    pub place: usize,
    /// The value.
    pub value: f64,
    /// The tooltip; empty: none.
    pub tip: String,
}

/// A change.
pub(crate) struct Mark {
    /// The place of the first commit that has it, and of the one before it in the series.
    pub place: usize,
    /// The place of the commit before it.
    pub before: usize,
    /// The means before and after it.
    pub means: (f64, f64),
    /// Its name, above the chart.
    pub name: String,
    /// The tooltip.
    pub tip: String,
    /// Whether the figure became worse.
    pub is_worse: bool,
}

/// A series to draw.
pub(crate) struct Commits {
    /// The chart's title.
    pub title: String,
    /// The title of the axis: the figure.
    pub axis: String,
    /// How its values are read.
    pub form: Form,
    /// The values, in the order of commits.
    pub dots: Vec<Dot>,
    /// The changes, in the order of commits.
    pub marks: Vec<Mark>,
    /// The number of commits in the history.
    pub of: usize,
    /// The ids of its first and last commit.
    pub ends: (String, String),
}

const LEFT: f64 = 50.0;
const RIGHT: f64 = WIDTH - 8.0;
/// The distance of points from the edges of the plot.
const INSET: f64 = 6.0;
/// The height of the plot.
const PLOT: f64 = 140.0;
/// The height of a row of names.
const NAMES: f64 = 13.0;
/// The maximum number of rows of names; marks that find no place have only their tooltip.
const ROWS: usize = 3;

/// If there are more points, only those with a tooltip are drawn; the others are corners of the line.
const MOST_DOTS: usize = 200;

/// Draws the series; none without a value.
pub(crate) fn commits(series: &Commits) -> Option<Chart> {
    let values = || series.dots.iter().map(|dot| dot.value);
    let (least, largest) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let names = name_places(series);
    let rows = names.iter().flatten().map(|place| place.row + 1).max().unwrap_or(0);
    let top = 18.0 + NAMES * rows as f64;
    let bottom = top + PLOT;
    let height = bottom + 20.0;
    let y = Scale::around(Unit::from(series.form), least, largest, Ends { from: bottom, to: top });
    let mut content = html!(
        "<text class=\"t\" x=\"0\" y=\"11\">{}</text>{}<path class=\"x\" d=\"M{} {}V{}H{}\"/>\
         <text class=\"t\" x=\"{}\" y=\"{}\">{}</text><text class=\"t e\" x=\"{}\" y=\"{}\">{}</text>",
        series.axis,
        axis::left(&y, Ends { from: LEFT, to: RIGHT }),
        LEFT,
        top,
        bottom,
        RIGHT,
        LEFT,
        bottom + 15.0,
        series.ends.0,
        RIGHT,
        bottom + 15.0,
        series.ends.1
    );
    let x = |place: usize| x_of(place, series.of);
    let point = |(number, dot): (usize, &Dot)| {
        html!("{}{},{}", if number == 0 { "" } else { " " }, x(dot.place), y.at(dot.value))
    };
    let points: Html = series.dots.iter().enumerate().map(point).collect();
    content.push(&html!("<polyline class=\"i\" points=\"{}\"/>", points));
    let is_drawn = |dot: &&Dot| series.dots.len() <= MOST_DOTS || !dot.tip.is_empty();
    let dots = series.dots.iter().filter(is_drawn);
    content.push(&dots.map(|dot| circle(dot, x(dot.place), y.at(dot.value))).collect());
    for (number, mark) in series.marks.iter().enumerate() {
        let at = f64::midpoint(x(mark.before), x(mark.place));
        let begin = number.checked_sub(1).and_then(|last| series.marks.get(last)).map_or_else(
            || series.dots.first().map_or(LEFT, |dot| x(dot.place)),
            |last| f64::midpoint(x(last.before), x(last.place)),
        );
        let end = series.marks.get(number + 1).map_or_else(
            || series.dots.last().map_or(RIGHT, |dot| x(dot.place)),
            |next| f64::midpoint(x(next.before), x(next.place)),
        );
        let (before, after) = (y.at(mark.means.0), y.at(mark.means.1));
        let mut means = html!("M{} {}H{}", at, after, end);
        if number == 0 {
            means.push(&html!("M{} {}H{}", begin, before, at));
        }
        content.push(&html!("<path class=\"l s6\" d=\"{}\"/>", means));
        let class = Html::constant(if mark.is_worse { "z" } else { "v" });
        let name = names.get(number).copied().flatten().map(|place| {
            let base = 18.0 + NAMES * (place.row as f64 + 1.0) - 4.0;
            html!("<text class=\"t{}\" x=\"{}\" y=\"{}\">{}</text>", place.class(), place.x, base, mark.name)
        });
        content.push(&html!(
            "<g><title>{}</title><path class=\"{}\" d=\"M{} {}V{}\"/>{}</g>",
            mark.tip,
            class,
            at,
            top,
            bottom,
            name
        ));
    }
    Some(Chart {
        title: series.title.clone(),
        about: String::new(),
        height,
        content,
        x: String::new(),
        is_log: false,
        has_switch: false,
    })
}

fn x_of(place: usize, of: usize) -> f64 {
    let share = if of > 1 { place as f64 / (of - 1) as f64 } else { 0.5 };
    LEFT + INSET + (RIGHT - LEFT - 2.0 * INSET) * share
}

fn circle(dot: &Dot, x: f64, y: f64) -> Html {
    let tip = match dot.tip.is_empty() {
        true => Html::default(),
        false => html!("<title>{}</title>", dot.tip),
    };
    html!("<circle class=\"f0\" cx=\"{}\" cy=\"{}\" r=\"2.4\">{}</circle>", x, y, tip)
}

/// Where the name of a mark is.
#[derive(Clone, Copy)]
struct NamePlace {
    x: f64,
    row: usize,
    is_end: bool,
}

impl NamePlace {
    fn class(self) -> Html {
        Html::constant(if self.is_end { " e" } else { "" })
    }
}

/// The places of the names of marks, none on another one. Names right of the middle end at their mark.
fn name_places(series: &Commits) -> Vec<Option<NamePlace>> {
    let mut taken: Vec<(usize, f64, f64)> = Vec::new();
    let mut place = |mark: &Mark| {
        let at = f64::midpoint(x_of(mark.before, series.of), x_of(mark.place, series.of));
        let width = text_width(&mark.name) * 11.0 / 12.0;
        let is_end = at > f64::midpoint(LEFT, RIGHT);
        let (from, to) = if is_end { (at - width, at) } else { (at, at + width) };
        let is_free = |row: &usize| {
            !taken.iter().any(|(own, left, right)| own == row && from < right + 6.0 && *left < to + 6.0)
        };
        let row = (0..ROWS).find(is_free)?;
        taken.push((row, from, to));
        Some(NamePlace { x: at, row, is_end })
    };
    series.marks.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64], marks: Vec<Mark>) -> Commits {
        let dot = |(place, value): (usize, &f64)| Dot { place, value: *value, tip: format!("c{place}") };
        Commits {
            title: "quick / read, redb, level power: p99".to_string(),
            axis: "p99".to_string(),
            form: Form::Time,
            dots: values.iter().enumerate().map(dot).collect(),
            marks,
            of: values.len(),
            ends: ("c0".to_string(), "last".to_string()),
        }
    }

    fn mark(place: usize, means: (f64, f64)) -> Mark {
        let (name, tip) = (format!("c{place} +10.0 %"), format!("slower since c{place}"));
        Mark { place, before: place - 1, means, name, tip, is_worse: means.1 > means.0 }
    }

    #[test]
    fn a_change_is_marked_between_its_commits_with_the_means_of_both_sides() {
        let values = [1000.0, 1010.0, 990.0, 1100.0, 1110.0, 1090.0];
        let chart = commits(&series(&values, vec![mark(3, (1000.0, 1100.0))])).unwrap();
        let content = chart.content.as_str();
        assert_eq!(content.matches("<circle").count(), 6, "{content}");
        assert!(content.contains("<title>slower since c3</title><path class=\"z\" d=\"M213 "), "{content}");
        assert!(content.contains(">c3 +10.0 %</text>") && content.contains("<title>c5</title>"), "{content}");
        // The means are at different heights, the later one, which is larger, above.
        let heights: Vec<f64> = content
            .split("class=\"l s6\" d=\"M")
            .nth(1)
            .unwrap()
            .split(['M', '"'])
            .take(2)
            .map(|piece| piece.split([' ', 'H']).nth(1).unwrap().parse().unwrap())
            .collect();
        assert!(heights[0] + 20.0 < heights[1], "{heights:?}");
        assert!(commits(&series(&[], Vec::new())).is_none());
        let mut long = series(&[1.0; MOST_DOTS + 1], Vec::new());
        long.dots[1..].iter_mut().for_each(|dot| dot.tip = String::new());
        assert_eq!(commits(&long).unwrap().content.as_str().matches("<circle").count(), 1);
        assert!(commits(&series(&[0.0], Vec::new())).is_some());
    }

    #[test]
    fn names_of_near_changes_are_in_rows_and_of_too_many_in_tooltips_only() {
        let values = [1000.0; 40];
        let marks =
            |places: &[usize]| places.iter().map(|place| mark(*place, (1.0, 2.0))).collect::<Vec<_>>();
        let rows = |places: &[usize]| -> Vec<Option<usize>> {
            let series = series(&values, marks(places));
            name_places(&series).iter().map(|place| place.map(|place| place.row)).collect()
        };
        assert_eq!(rows(&[5, 30]), [Some(0), Some(0)]);
        assert_eq!(rows(&[5, 7, 9, 11]), [Some(0), Some(1), Some(2), None]);
        let chart = commits(&series(&values, marks(&[5, 7, 9, 11]))).unwrap();
        assert_eq!(chart.content.as_str().matches("<title>slower since").count(), 4);
    }
}
