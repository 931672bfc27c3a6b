//! A verdict for each phase and durability level, which claims no more than the runs show.

use super::describe::{cell_name, phase_name};
use super::figure;
use crate::measure::warning::HARNESS_SHARE_LIMIT;
use crate::results::statistics::{FEWEST_FOR_ORDER, Rank};
use crate::results::summary::{Cell, Group, Summary};
use crate::text::{listed, share_text};

/// The verdicts, phase by phase and level by level; a verdict may be that the runs are inconclusive.
///
/// The word winner appears only if one engine is surely ahead of all others in the same ranking.
pub fn verdict(summary: &Summary) -> Vec<String> {
    let mut verdicts = Vec::new();
    for phase in &summary.phases {
        let name = phase_name(phase);
        for group in &phase.groups {
            verdicts.push(format!("{name}, level {}: {}", group.name(), sentence(group)));
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
    let without = without_rank(group);
    match ranked.as_slice() {
        [] => format!("inconclusive: no engine has completed all its runs{without}."),
        [(only, _)] => format!("{} is the only ranked engine{without}.", cell_name(only)),
        _ if runs == 1 => {
            format!(
                "inconclusive: a single run shows no order, at least {FEWEST_FOR_ORDER} runs are needed{without}."
            )
        }
        _ if (runs as usize) < FEWEST_FOR_ORDER => {
            format!(
                "inconclusive: {runs} runs show no order, at least {FEWEST_FOR_ORDER} runs are needed{without}."
            )
        }
        [(first, rank), (second, _), ..] if rank.is_first() => {
            let is_faster = |cell: &&Cell| cell.rank.is_none() && cell.ops_per_second > first.ops_per_second;
            let is_beaten = group.cells.iter().any(|cell| is_faster(&cell));
            format!("{}{without}.{}", winner(first, second, is_beaten), harness_bound(first))
        }
        _ => format!("{}{without}.", open(&ranked)),
    }
}

/// One engine is surely ahead of all other ranked engines. `is_beaten`: an engine without a rank had a higher rate.
fn winner(first: &Cell, second: &Cell, is_beaten: bool) -> String {
    let (winner, next) = (cell_name(first), cell_name(second));
    let ratio = match (first.ratio, second.ratio) {
        (Some(base), Some(ratio)) if base.value == 1.0 && base.interval.is_none() && ratio.value > 0.0 => {
            match ratio.interval {
                // The rates alone do not show that it is ahead.
                Some(interval) if interval.high >= 1.0 => {
                    format!(", ahead of {next} by the time inside the engines")
                }
                Some(interval) => format!(
                    ", {} times as fast as {next} ({})",
                    figure::ratio(1.0 / ratio.value),
                    figure::ratio_range(1.0 / interval.high, 1.0 / interval.low)
                ),
                None => format!(", {} times as fast as {next}", figure::ratio(1.0 / ratio.value)),
            }
        }
        // Ratios are relative to another engine.
        _ => format!(", ahead of {next}"),
    };
    match is_beaten {
        true => format!("of the ranked engines {winner} is the fastest{ratio}"),
        false => format!("the winner is {winner}{ratio}"),
    }
}

/// Several engines may be the fastest.
fn open(ranked: &[(&Cell, Rank)]) -> String {
    let first: Vec<&Cell> = ranked.iter().filter(|(_, rank)| rank.best == 1).map(|(cell, _)| *cell).collect();
    let names: Vec<String> = first.iter().map(|cell| cell_name(cell)).collect();
    let others = match ranked.len() - first.len() {
        0 => String::new(),
        1 => "; the other engine is slower".to_string(),
        others => format!("; the other {others} engines are slower"),
    };
    // The first row is surely ahead of these engines by rate, but not by the time inside the engines.
    let is_by_harness = |cell: &&&Cell| {
        let interval = cell.ratio.and_then(|ratio| ratio.interval);
        first[0].ratio.is_some_and(|ratio| ratio.interval.is_none())
            && interval.is_some_and(|interval| interval.high < 1.0)
    };
    let by_harness: Vec<String> =
        first[1..].iter().filter(is_by_harness).map(|cell| cell_name(cell)).collect();
    let harness = match by_harness.as_slice() {
        [] => String::new(),
        names => format!(
            "; {} has more ops/s than {} only because of the harness",
            cell_name(first[0]),
            listed(names, "and")
        ),
    };
    format!("inconclusive: the fastest is one of {}{others}{harness}", listed(&names, "and"))
}

/// A note on the winner if the harness took a large share of its time.
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

/// The engines of the group with figures but without a rank.
fn without_rank(group: &Group) -> String {
    let names: Vec<String> = group.cells.iter().filter(|cell| cell.rank.is_none()).map(cell_name).collect();
    if names.is_empty() { String::new() } else { format!(" (without a rank: {})", listed(&names, "and")) }
}
