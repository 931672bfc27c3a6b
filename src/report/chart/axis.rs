//! Axes: ticks with their figures, and the lines of the grid.

use super::scale::Scale;
use crate::report::markup::{Html, html};

/// Ticks above the plot, and a line of the grid down from each.
pub(super) fn above(scale: &Scale, (top, bottom): (f64, f64)) -> Html {
    let tick = |(x, text): (f64, String)| {
        html!(
            "<path class=\"g\" d=\"M{} {}V{}\"/><text class=\"t c\" x=\"{}\" y=\"{}\">{}</text>",
            x,
            top,
            bottom,
            x,
            top - 4.0,
            text
        )
    };
    scale.ticks().into_iter().map(tick).collect()
}

/// Ticks below the plot, and a line of the grid up from each.
pub(super) fn below(scale: &Scale, (top, bottom): (f64, f64)) -> Html {
    let tick = |(x, text): (f64, String)| {
        html!(
            "<path class=\"g\" d=\"M{} {}V{}\"/><text class=\"t c\" x=\"{}\" y=\"{}\">{}</text>",
            x,
            top,
            bottom,
            x,
            bottom + 15.0,
            text
        )
    };
    scale.ticks().into_iter().map(tick).collect()
}

/// Ticks to the left of the plot, and a line of the grid to the right of each.
pub(super) fn left(scale: &Scale, (from, to): (f64, f64)) -> Html {
    let tick = |(y, text): (f64, String)| {
        html!(
            "<path class=\"g\" d=\"M{} {}H{}\"/><text class=\"t e\" x=\"{}\" y=\"{}\">{}</text>",
            from,
            y,
            to,
            from - 4.0,
            y + 4.0,
            text
        )
    };
    scale.ticks().into_iter().map(tick).collect()
}
