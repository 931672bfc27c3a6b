//! Tests of the screen at several terminal sizes.

use super::*;
use crate::live::tests::{state, tick};
use crate::live::tui::panels::fitting;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn drawn(width: u16, height: u16, state: &State, view: &View) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, view)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(row).collect()
}

fn ascii() -> View {
    View { ascii: true, plain: true, ..View::default() }
}

#[test]
fn everything_is_on_the_screen_of_a_small_terminal_and_of_a_large_one() {
    let mut state = state();
    for ops in 1..30 {
        state.tick(&tick(ops));
    }
    for (width, height) in [(60, 18), (80, 24), (200, 50)] {
        let text = drawn(width, height, &state, &ascii()).join("\n");
        let engine = state.trials[2].engine.clone();
        for wanted in [
            &engine[..],
            "p99",
            "service times, fill",
            "RSS",
            "CPUs",
            "plan: 21 trials",
            "results so far",
            "q: stop",
        ] {
            assert!(text.contains(wanted), "no {wanted} at {width} x {height}:\n{text}");
        }
        assert!(text.contains('#'), "no bar at {width} x {height}:\n{text}");
        assert!(text.is_ascii(), "{width} x {height}");
    }
    assert!(
        !drawn(80, 24, &state, &View::default()).join("").is_ascii(),
        "bars use block characters if possible"
    );
}

#[test]
fn a_message_is_shown_if_the_terminal_is_too_small() {
    let state = state();
    let text = drawn(40, 10, &state, &ascii()).join(" ");
    assert!(text.contains("40 x 10") && text.contains("60 x 18"), "{text}");
    for (width, height) in [(1, 1), (60, 1), (1, 60), (59, 18), (60, 17)] {
        drawn(width, height, &state, &ascii());
    }
}

#[test]
fn the_screen_works_before_the_first_trial() {
    let state = State::new(&kvdyno_core::results::fixture::run());
    let text = drawn(80, 24, &state, &ascii()).join("\n");
    assert!(text.contains("none yet") && text.contains(" s left"), "{text}");
    assert!(!text.contains("- left"), "the plan has an estimate: {text}");
}

#[test]
fn tab_cycles_through_results_and_the_key_line_explains_a_second_press() {
    let state = state();
    let count = state.results.phases.len();
    assert!(count > 2);
    let title = |shown: Option<usize>| {
        let screen = drawn(100, 30, &state, &View { shown, ..ascii() });
        screen.into_iter().find(|line| line.contains("results so far")).unwrap()
    };
    let mut titles: Vec<String> = (0..count).map(|shown| title(Some(shown))).collect();
    assert_eq!(title(Some(count)), titles[0]);
    titles.dedup();
    assert_eq!(titles.len(), count);
    let foot = |stops: u32| drawn(80, 24, &state, &View { stops, ..ascii() }).pop().unwrap();
    assert!(foot(1).contains("STOPPING after this trial") && foot(2).contains("STOPPING now"));
}

#[test]
fn times_are_merged_until_they_fit() {
    let buckets: Vec<(u64, u64)> = (0..160_u64).map(|at| ((4 + at % 4) << (at / 4), 1)).collect();
    for rows in [160, 100, 40, 20, 8, 5] {
        let joined = fitting(&buckets, rows);
        assert!(joined.len() <= rows && !joined.is_empty(), "{} for {rows}", joined.len());
        assert_eq!(joined.iter().map(|(_, count)| count).sum::<u64>(), 160, "{rows}");
        assert_eq!(joined[0].0, 4);
    }
}
