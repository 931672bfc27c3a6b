//! Axes: labelled ticks and grid lines.

use super::scale::{Ends, Scale};
use crate::markup::{Html, html};

/// Ticks above the plot, each with a vertical grid line.
pub(super) fn above(scale: &Scale, Ends { from: top, to: bottom }: Ends) -> Html {
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

/// Ticks below the plot, each with a vertical grid line.
pub(super) fn below(scale: &Scale, Ends { from: top, to: bottom }: Ends) -> Html {
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

/// Ticks to the left of the plot, each with a horizontal grid line.
pub(super) fn left(scale: &Scale, Ends { from, to }: Ends) -> Html {
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
