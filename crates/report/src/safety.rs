//! What is known about the safety of the engines of a run: a mark beside a name, and its meaning in words.

use super::block::Block;
use super::describe::cell_name;
use super::matrix::{Row, Standing, State};
use kvdyno_core::results::summary::{Cell, PhaseSummary, Summary, is_mutant};
use kvdyno_core::results::{Durability, Safety};
use kvdyno_measure::text::{Align, Table, few, listed, plain_text, share_text};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of names in a list.
const NAMES: usize = 6;
/// The end of what the crashes of a certificate show.
const LOST: &str = " left lost or wrong data";

/// What the marks mean, for the end of a report.
pub(super) const LEGEND: &str = "safe: what kvdyno's certificates and the sync calls of the run show of the durability level. +: no loss \
     seen after crashes that the level must survive, which does not exclude a rare one; ?: not tested in this version with these options; \
     X: contradicted, and not ranked; -: the level promises nothing.";

/// The mark of a cell in a table.
pub(super) fn cell_mark(cell: &Cell) -> String {
    cell.safety.mark().map_or_else(|| "-".to_string(), String::from)
}

/// The gravest mark of an engine's cells at the level of their section, or of all its cells if it has none at that level; none:
/// nothing is to be proven of it. What contradicts another level is marked in the cells of that level.
pub(super) fn row_mark(row: &Row, level: Option<Durability>) -> Option<char> {
    let at_level = measured(row).filter(|cell| cell.durability_effective == level).map(|cell| &cell.safety);
    at_level.max().or_else(|| measured(row).map(|cell| &cell.safety).max())?.mark()
}

/// The cells of an engine that have figures.
fn measured<'a>(row: &Row<'a>) -> impl Iterator<Item = &'a Cell> {
    let entries = row.entries.iter().flatten();
    let own = entries.filter(|entry| matches!(entry.standing, Standing::Engines(_)));
    own.filter(|entry| entry.state == State::Measured).map(|entry| entry.cell)
}

/// [`row_mark`], with that of a level of other cells that is contradicted: `+`, or `+/X`; empty: nothing is to be proven of it.
pub(super) fn row_marks(row: &Row, level: Option<Durability>) -> String {
    let own = row_mark(row, level);
    let is_other = own != Some('X') && measured(row).any(|cell| cell.safety.is_contradicted());
    match (own, is_other) {
        (own, true) => format!("{}/X", own.unwrap_or('-')),
        (own, false) => own.map_or_else(String::new, String::from),
    }
}

/// An engine at a level.
struct Known<'a> {
    name: String,
    engine: &'a str,
    level: Durability,
    safety: &'a Safety,
}

/// The engines with figures in these phases at their levels, once each.
fn known<'a>(phases: impl Iterator<Item = &'a PhaseSummary>) -> Vec<Known<'a>> {
    let mut found: Vec<Known> = Vec::new();
    for cell in phases.flat_map(|phase| &phase.groups).flat_map(|group| &group.cells) {
        let Some(level) = cell.durability_effective.filter(|_| !is_mutant(&cell.engine)) else { continue };
        let own = Known { name: cell_name(cell), engine: &cell.engine, level, safety: &cell.safety };
        // What the sync calls of one phase contradict may not show in another.
        match found.iter_mut().find(|other| (&other.name, other.level) == (&own.name, level)) {
            Some(other) if other.safety < own.safety => *other = own,
            Some(_) => {}
            None => found.push(own),
        }
    }
    found.sort_by(|one, other| (one.level, &one.name).cmp(&(other.level, &other.name)));
    found
}

/// The marks of a workload with the engines that have them, for the text below its matrix; empty if its levels promise nothing.
pub(super) fn lines(summary: &Summary, workload: &str) -> Vec<String> {
    let all = known(summary.phases.iter().filter(|phase| phase.workload == workload));
    [contradicted(&all), not_tested(&all), no_loss_seen(&all), broken_creation(&all)]
        .into_iter()
        .flatten()
        .map(|line| plain_text(&line))
        .collect()
}

/// `X safety contradicted, so not ranked: badger at process (1 of 20 kills left lost or wrong data)`.
fn contradicted(all: &[Known]) -> Option<String> {
    // What was seen of each engine, with the levels.
    let mut found: BTreeMap<&str, Vec<(&str, Vec<String>)>> = BTreeMap::new();
    let mut certified = None;
    for known in all {
        if let Safety::Contradicted { reason, page } = known.safety {
            let own = found.entry(&known.name).or_default();
            match own.iter_mut().find(|(other, _)| *other == reason.as_str()) {
                Some((_, levels)) => levels.push(known.level.to_string()),
                None => own.push((reason.as_str(), vec![known.level.to_string()])),
            }
            certified = certified.or_else(|| page.as_ref().map(|_| known.engine));
        }
    }
    let seen = |(reason, levels): &(&str, Vec<String>)| format!("{} ({reason})", listed(levels, "and"));
    let part = |(name, own): (&&str, &Vec<(&str, Vec<String>)>)| {
        format!("{name} at {}", listed(&own.iter().map(seen).collect::<Vec<_>>(), "and"))
    };
    let text = found.iter().map(part).collect::<Vec<_>>().join(", ");
    // Once is enough.
    let text = match text.split_once(LOST) {
        Some((first, rest)) => format!("{first}{LOST}{}", rest.replace(LOST, "")),
        None => text,
    };
    let command = certified.map_or_else(String::new, |engine| format!("; see `kvdyno engines {engine}`"));
    (!text.is_empty()).then(|| format!("X safety contradicted, so not ranked: {text}{command}."))
}

/// `? safety not tested: bbolt and redb at process and power; sled at process`.
fn not_tested(all: &[Known]) -> Option<String> {
    let mut levels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for known in all.iter().filter(|known| matches!(known.safety, Safety::NotTested { .. })) {
        levels.entry(&known.name).or_default().push(known.level.to_string());
    }
    let mut names: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for (name, levels) in levels {
        names.entry(levels).or_default().push(name);
    }
    let part = |(levels, names): (&Vec<String>, &Vec<&str>)| {
        format!("{} at {}", few(names, NAMES, "and"), listed(levels, "and"))
    };
    let parts: Vec<String> = names.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("? safety not tested: {}.", parts.join("; ")))
}

/// `+ no loss seen: in 20 kills of each at process (a loss in up to 15 % of kills is still possible) and 151 crashes at power`.
fn no_loss_seen(all: &[Known]) -> Option<String> {
    let levels = by_level(all, |safety| matches!(safety, Safety::NoLossSeen { .. }));
    let part = |(level, own): &(Durability, Vec<&Known>)| {
        let crashes = own.iter().filter_map(|known| match known.safety {
            Safety::NoLossSeen { crashes, .. } => Some(*crashes),
            _ => None,
        });
        // The least that is true of each.
        crashes.min().map(|crashes| (crashes, *level))
    };
    let text = |(place, (crashes, level)): (usize, (u64, Durability))| {
        let each = if place == 0 { " of each" } else { "" };
        match level {
            // Three over their number (docs/durability.md). States of a replay are no random sample.
            Durability::Process => format!(
                "{crashes} kills{each} at process (a loss in up to {} of kills is still possible)",
                share_text((3.0 / crashes as f64).min(1.0))
            ),
            _ => format!("{crashes} crashes{each} at {level}"),
        }
    };
    let parts: Vec<String> = levels.iter().filter_map(part).enumerate().map(text).collect();
    (!parts.is_empty()).then(|| format!("+ no loss seen: in {}.", listed(&parts, "and")))
}

/// `fjall and redb: a crash during creation can leave files to remove by hand`.
fn broken_creation(all: &[Known]) -> Option<String> {
    let is_broken =
        |known: &&Known| matches!(known.safety, Safety::NoLossSeen { has_broken_creation: true, .. });
    let names: BTreeSet<&str> = all.iter().filter(is_broken).map(|known| known.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!("{}: a crash during creation can leave files to remove by hand.", few(&names, NAMES, "and"))
    })
}

/// The engines whose safety is such, by their levels.
fn by_level<'a>(all: &'a [Known<'a>], is: impl Fn(&Safety) -> bool) -> Vec<(Durability, Vec<&'a Known<'a>>)> {
    let mut levels: Vec<(Durability, Vec<&Known>)> = Vec::new();
    for known in all.iter().filter(|known| is(known.safety)) {
        match levels.last_mut() {
            Some((level, own)) if *level == known.level => own.push(known),
            _ => levels.push((known.level, vec![known])),
        }
    }
    levels
}

/// The safety of each engine at its levels, with the page that shows it; empty if the levels promise nothing.
pub(super) fn blocks(summary: &Summary) -> Vec<Block> {
    let titles = ["engine", "level", "safe", "what was seen"];
    let mut table = Table::with_titles(&titles.map(|title| (title, Align::Left)));
    for known in known(summary.phases.iter()).iter().filter(|known| *known.safety != Safety::NothingToProve) {
        let page = match known.safety {
            Safety::Contradicted { page: Some(page), .. } => format!("; see {page}"),
            _ => String::new(),
        };
        let mark = known.safety.mark().map_or_else(String::new, String::from);
        table.push(vec![
            known.name.clone(),
            known.level.to_string(),
            mark,
            plain_text(&format!("{}{page}", known.safety)),
        ]);
    }
    match table.is_empty() {
        true => Vec::new(),
        false => vec![
            Block::Part("Safety".to_string()),
            Block::Table(table),
            Block::Lines(vec![LEGEND.to_string()]),
        ],
    }
}
