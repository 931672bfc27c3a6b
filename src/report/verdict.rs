//! A sentence per phase and durability level that says no more than the runs show.

use super::describe::{cell_name, phase_name};
use super::figure::{listed, three_digits};
use crate::measure::units::share_text;
use crate::measure::warning::HARNESS_SHARE_LIMIT;
use crate::results::statistics::{FEWEST_FOR_ORDER, Rank};
use crate::results::summary::{Cell, Group, Summary};

/// The verdicts, phase by phase and level by level; where nothing can be said, it says so.
///
/// The word winner appears only where one engine is surely ahead of all others that are ranked with it.
pub fn verdict(summary: &Summary) -> Vec<String> {
    let mut verdicts = Vec::new();
    for phase in &summary.phases {
        let name = phase_name(phase);
        for group in &phase.groups {
            verdicts.push(format!("{name}, level {}: {}", group.durability_in_force, sentence(group)));
        }
        if phase.groups.is_empty() {
            verdicts.push(format!("{name}: no engine was measured."));
        }
    }
    if verdicts.is_empty() {
        verdicts.push("Nothing was measured.".to_string());
    }
    verdicts
}

fn sentence(group: &Group) -> String {
    let ranked: Vec<(&Cell, Rank)> = group.cells.iter().filter_map(|cell| Some((cell, cell.rank?))).collect();
    let runs = ranked.iter().map(|(cell, _)| cell.counted_runs).max().unwrap_or(0);
    match ranked.as_slice() {
        [] => format!("inconclusive: no engine has all its runs{}.", without_rank(group)),
        [(only, _)] => {
            format!("{} is the only ranked engine{}.", cell_name(only), without_rank(group))
        }
        _ if (runs as usize) < FEWEST_FOR_ORDER => {
            let number = if runs == 1 { "1 run".to_string() } else { format!("{runs} runs") };
            format!("inconclusive: {number} show no order, {FEWEST_FOR_ORDER} can.")
        }
        [(first, rank), (second, _), ..] if rank.is_first() => {
            format!("{}.{}", winner(first, second), harness_bound(first))
        }
        _ => open(&ranked),
    }
}

/// One engine is surely ahead of all others.
fn winner(first: &Cell, second: &Cell) -> String {
    let (winner, next) = (cell_name(first), cell_name(second));
    // The ratio is the next engine's to the winner, unless another engine is the baseline.
    let ratio = match (first.ratio, second.ratio) {
        (Some(first), Some(second))
            if first.value == 1.0 && first.interval.is_none() && second.value > 0.0 =>
        {
            let times = three_digits(1.0 / second.value);
            match second.interval {
                // The rates do not show it.
                Some(interval) if interval.high >= 1.0 => {
                    format!(", ahead of {next} by the time inside the engines")
                }
                Some(interval) => format!(
                    ", {times} times as fast as {next} ({}..{})",
                    three_digits(1.0 / interval.high),
                    three_digits(1.0 / interval.low)
                ),
                None => format!(", {times} times as fast as {next}"),
            }
        }
        _ => format!(", ahead of {next}"),
    };
    format!("the winner is {winner}{ratio}")
}

/// Several engines may be the fastest.
fn open(ranked: &[(&Cell, Rank)]) -> String {
    let first: Vec<String> =
        ranked.iter().filter(|(_, rank)| rank.best == 1).map(|(cell, _)| cell_name(cell)).collect();
    let others = match ranked.len() - first.len() {
        0 => String::new(),
        1 => "; the other engine is slower".to_string(),
        others => format!("; the other {others} engines are slower"),
    };
    format!("inconclusive: the fastest is one of {}{others}.", listed(&first))
}

/// A note on the winner if much of its time was the harness's.
fn harness_bound(winner: &Cell) -> String {
    match winner.harness_share {
        Some(share) if share > HARNESS_SHARE_LIMIT => {
            format!(
                " The harness took {} of its time, so the engine itself is faster than shown.",
                share_text(share)
            )
        }
        _ => String::new(),
    }
}

/// The engines of the group that have figures but no rank.
fn without_rank(group: &Group) -> String {
    let names: Vec<String> = group.cells.iter().filter(|cell| cell.rank.is_none()).map(cell_name).collect();
    if names.is_empty() { String::new() } else { format!(" (without a rank: {})", listed(&names)) }
}
