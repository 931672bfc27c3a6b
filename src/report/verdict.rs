//! A sentence per phase and durability level that says no more than the intervals carry.

use super::describe::{cell_name, phase_name};
use super::figure::{listed, rate};
use crate::measure::units::share_text;
use crate::measure::warning::HARNESS_SHARE_LIMIT;
use crate::results::statistics::FEWEST_FOR_WINNER;
use crate::results::summary::{Cell, Group, Summary};

/// The verdicts, phase by phase and level by level; where nothing can be said, it says so.
///
/// The word winner appears only where every engine compared has five whole runs or more.
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
    let ranked: Vec<&Cell> = group.cells.iter().filter(|cell| cell.rank.is_some()).collect();
    let first: Vec<&Cell> =
        ranked.iter().filter(|cell| cell.rank.is_some_and(|rank| rank.place == 1)).copied().collect();
    let behind = ranked.iter().find(|cell| cell.rank.is_some_and(|rank| rank.place > 1));
    let runs = ranked.iter().map(|cell| cell.counted_runs).min().unwrap_or(0);
    match (first.as_slice(), behind) {
        ([], _) => format!("no call, for no engine has enough whole runs{}.", left_out(group)),
        ([only], None) => {
            format!(
                "{} alone can be ranked, so there is nothing to compare{}.",
                cell_name(only),
                left_out(group)
            )
        }
        ([ahead], Some(behind)) => format!("{}.{}", lead(ahead, behind, runs), harness_bound(ahead)),
        (tied, behind) => format!("{}{}.", tie(tied, runs), ahead_of(tied.len(), behind.copied())),
    }
}

/// One engine is ahead of all others: their intervals are apart.
fn lead(ahead: &Cell, behind: &Cell, runs: u32) -> String {
    let (first, second) = (cell_name(ahead), cell_name(behind));
    let rates = format!(
        "{} against {} ops/s",
        rate(ahead.ops_per_second.unwrap_or_default()),
        rate(behind.ops_per_second.unwrap_or_default())
    );
    if runs as usize >= FEWEST_FOR_WINNER {
        format!("the winner is {first}, ahead of {second} ({rates}, intervals apart)")
    } else {
        format!("{first} is ahead of {second} ({rates}, ranges of {runs} runs apart)")
    }
}

fn tie(tied: &[&Cell], runs: u32) -> String {
    let names = listed(&tied.iter().map(|cell| cell_name(cell)).collect::<Vec<_>>());
    if runs as usize >= FEWEST_FOR_WINNER {
        format!("no winner: the intervals of {names} overlap")
    } else {
        format!("no call: the ranges of {names} overlap over {runs} runs")
    }
}

/// The next engine, if all that tie for the first place are surely ahead of it.
fn ahead_of(tied: usize, behind: Option<&Cell>) -> String {
    let surely = |cell: &&Cell| cell.rank.is_some_and(|rank| rank.place as usize > tied);
    behind.filter(surely).map_or_else(String::new, |cell| format!("; they are ahead of {}", cell_name(cell)))
}

/// A note on the engine ahead if much of its time was ours.
fn harness_bound(ahead: &Cell) -> String {
    match ahead.harness_share {
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
fn left_out(group: &Group) -> String {
    let names: Vec<String> = group.cells.iter().filter(|cell| cell.rank.is_none()).map(cell_name).collect();
    if names.is_empty() { String::new() } else { format!(" (without a rank: {})", listed(&names)) }
}
