//! What is known of a claim: the table that all parts have in common.

use super::Part;
use kvdyno_core::results::Durability;
use kvdyno_measure::text::{Align, Table, wrapped};
use serde::Serialize;
use std::fmt;

/// A claim of an engine, and what was found of it.
#[derive(Debug, Serialize)]
pub(super) struct Claim {
    pub engine: String,
    pub part: Part,
    /// The claimed level, if the claim is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Durability>,
    pub result: Standing,
    /// What was seen, in a few words if it is kept, or else the reason.
    pub found: String,
}

/// What is known of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Standing {
    Kept,
    Broken,
    /// This machine, this user or these options decide nothing.
    #[serde(rename = "not-provable-here")]
    NotHere,
}

impl fmt::Display for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Standing::Kept => "kept",
            Standing::Broken => "broken",
            Standing::NotHere => "not provable here",
        })
    }
}

/// A claim of which nothing is known, and why.
pub(super) fn not_here(engine: &str, part: Part, level: Option<Durability>, reason: &str) -> Claim {
    Claim { engine: engine.into(), part, level, result: Standing::NotHere, found: reason.into() }
}

/// The table, the reasons of claims that are not kept, and the sums.
pub(super) fn text(claims: &[Claim]) -> String {
    let mut table = Table::with_titles(&[
        ("engine", Align::Left),
        ("claim", Align::Left),
        ("level", Align::Left),
        ("result", Align::Left),
        ("found", Align::Left),
    ]);
    let mut reasons = String::new();
    for claim in claims {
        let level = claim.level.map_or("-".into(), |level| level.to_string());
        let is_kept = claim.result == Standing::Kept;
        let found = if is_kept { claim.found.clone() } else { "see below".into() };
        table.push(vec![
            claim.engine.clone(),
            claim.part.to_string(),
            level,
            claim.result.to_string(),
            found,
        ]);
        if !is_kept {
            let level = claim.level.map_or(String::new(), |level| format!(", level {level}"));
            let line = format!("{}, {}{level}: {}: {}", claim.engine, claim.part, claim.result, claim.found);
            reasons += &wrapped("", "  ", &line, 100);
        }
    }
    let count = |result| claims.iter().filter(|claim| claim.result == result).count();
    let (kept, broken, rest) = (count(Standing::Kept), count(Standing::Broken), count(Standing::NotHere));
    let gap = if reasons.is_empty() { "" } else { "\n" };
    format!("{}\n{reasons}{gap}{kept} kept, {broken} broken, {rest} not provable here\n", table.text())
}
