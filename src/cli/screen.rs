//! What stdout shows: the width of its terminal, and whether it has colours.

use anstream::{AutoStream, ColorChoice};
use kvdyno_report::Screen;
use std::io::{IsTerminal, stdout};
use terminal_size::{Width, terminal_size_of};

/// The maximum width of a table, so that a line is still found by eye on a very wide terminal.
const WIDEST: usize = 240;

/// The screen that stdout is. `COLUMNS` replaces the terminal's own width; `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` decide
/// about colours as in other programs.
pub(super) fn of_stdout() -> Screen {
    let columns = std::env::var("COLUMNS").ok();
    let terminal =
        stdout().is_terminal().then(|| terminal_size_of(stdout()).map(|(Width(width), _)| width)).flatten();
    Screen {
        width: width(columns.as_deref(), terminal),
        has_colours: AutoStream::choice(&stdout()) != ColorChoice::Never,
    }
}

/// The width, from `COLUMNS`, from the terminal, or that of a file.
fn width(columns: Option<&str>, terminal: Option<u16>) -> usize {
    let asked = columns.and_then(|columns| columns.trim().parse().ok()).filter(|columns| *columns > 0);
    let found = asked.or(terminal.map(usize::from).filter(|columns| *columns > 0));
    found.unwrap_or(Screen::FILE.width).clamp(Screen::NARROWEST, WIDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_terminal_within_limits() {
        for (columns, terminal, expected) in [
            (None, None, 120),
            (None, Some(100), 100),
            (None, Some(40), 80),
            (None, Some(0), 120),
            (None, Some(999), 240),
            (Some("90"), Some(200), 90),
            (Some("90"), None, 90),
            (Some("wide"), Some(132), 132),
            (Some("0"), None, 120),
            (Some("-3"), None, 120),
        ] {
            assert_eq!(width(columns, terminal), expected, "{columns:?} {terminal:?}");
        }
    }
}
