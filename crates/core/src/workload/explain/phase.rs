//! Describes a phase in plain words: ops, keys, threads, end, timing, verification, caches.

use super::text_of_level;
use super::words::{pareto, percent, size};
use crate::generator::{Bound, Hot};
use crate::workload::{Access, Emulate, OpKind, Phase, Until, Workload, arrivals_text};
use kvdyno_measure::text::{counted, grouped, listed};

/// The parts of a phase's description, each with its title.
pub(super) fn parts(workload: &Workload, place: usize) -> Vec<(&'static str, String)> {
    let phase = &workload.phases[place];
    let parts = vec![
        ("Ops", ops(workload, phase)),
        ("Keys", keys(workload, phase)),
        ("Threads", threads(phase)),
        ("Arrivals", arrivals(phase)),
        ("Ends", ends(workload, phase)),
        ("Faults", workload.text_of_faults(phase)),
        ("Timed", timed(phase)),
        ("Verified", verified(workload, phase)),
        ("Caches", caches(phase, place)),
    ];
    parts
        .into_iter()
        .filter(|(what, described)| !(described.is_empty() && ["Keys", "Arrivals", "Faults"].contains(what)))
        .collect()
}

/// The words for the ops of a kind.
fn words(workload: &Workload, phase: &Phase, kind: OpKind) -> String {
    let what = match kind {
        OpKind::MultiGet => {
            format!("{} of {} each", kind.words(), counted(phase.multi_get_keys.into(), "key", "keys"))
        }
        OpKind::Put => match phase.existing {
            Some(0.0) => "puts of new keys".to_string(),
            Some(1.0) => "puts that overwrite existing keys".to_string(),
            Some(share) => format!("puts ({} of existing keys, the others of new keys)", percent(share)),
            None => kind.words().to_string(),
        },
        OpKind::Insert => match phase.existing {
            Some(share) => format!("inserts ({} of existing keys, which must be refused)", percent(share)),
            None => "inserts of new keys".to_string(),
        },
        OpKind::Scan if workload.collections.are_hashes() => {
            "scans of a complete hash, with fields and values copied out".to_string()
        }
        OpKind::Scan => scans(phase),
        OpKind::Merge => {
            let is_emulated = phase.emulate.contains(&Emulate::Merge);
            let how = if is_emulated { "always by get and put" } else { "by the engine if it supports them" };
            format!("{}, {how}", kind.words())
        }
        OpKind::Transaction => {
            format!("{} of {}", kind.words(), counted(phase.transaction_ops.into(), "update", "updates"))
        }
        _ => kind.words().to_string(),
    };
    if !kind.is_joined() {
        return what;
    }
    match (phase.join, phase.atomic) {
        (0 | 1, _) => format!("{what}, not grouped"),
        (join, true) => format!("{what}, {} per transaction", grouped(join.into())),
        (join, false) => format!("{what}, in groups of {} that may share one commit", grouped(join.into())),
    }
}

fn scans(phase: &Phase) -> String {
    let scan = &phase.scan;
    let is_drawn = scan.uniform_rows || scan.pareto_rows.is_some();
    let what = match (scan.prefix, scan.rows, is_drawn) {
        (true, 0, _) => "prefix scans: all rows that share a key's prefix".to_string(),
        (true, rows, _) => format!("prefix scans of up to {}", counted(rows.into(), "row", "rows")),
        (false, 0, _) => "scans of all rows".to_string(),
        (false, rows, true) => format!("scans of 1 to {}", counted(rows.into(), "row", "rows")),
        (false, rows, false) => format!("scans of {}", counted(rows.into(), "row", "rows")),
    };
    let law = scan.pareto_rows.map_or_else(String::new, |shape| format!(", their number {}", pareto(shape)));
    let index = if scan.index > 0 { format!(" by index {}", scan.index) } else { String::new() };
    let calls = match scan.rows_per_call {
        0 => String::new(),
        rows => format!(", {} per call", counted(rows.into(), "row", "rows")),
    };
    let down = if scan.reverse { ", in descending order" } else { "" };
    format!("{what}{law}{index}{down}{calls}, with keys and values copied out")
}

fn ops(workload: &Workload, phase: &Phase) -> String {
    let present: Vec<(OpKind, f64)> = phase.mix.shares().collect();
    let all: f64 = present.iter().map(|(_, share)| share).sum();
    let described = |(kind, share): &(OpKind, f64)| match present.len() {
        1 => words(workload, phase, *kind),
        _ => format!("{} {}", percent(share / all), words(workload, phase, *kind)),
    };
    let mut parts: Vec<String> = present.iter().map(described).collect();
    if phase.threads > 0 && (phase.readers > 0 || phase.writers > 0) && !parts.is_empty() {
        parts = vec![format!("in threads without a role: {}", parts.join("; "))];
    }
    if phase.readers > 0 {
        parts.push("gets by the readers".to_string());
    }
    if phase.writers > 0 {
        parts.push("puts by the writers, not grouped".to_string());
    }
    let mut text = parts.join("; ") + ".";
    if phase.miss > 0.0 {
        let share = percent(phase.miss);
        text += &format!(" {share} of the gets read a key that was never written.");
    }
    if let Some(other) = &phase.value_size {
        text += &format!(" Values have {}.", size(other));
    }
    if let Some(level) = phase.durability.filter(|level| *level != workload.durability) {
        text += &format!(
            " At durability level {level} (the database is reopened for it): {}.",
            text_of_level(level)
        );
    }
    text
}

fn keys(workload: &Workload, phase: &Phase) -> String {
    let mix = &phase.mix;
    if workload.collections.are_lists() {
        return "lists instead of keys: each list belongs to one thread, which draws one of its lists for each op."
            .to_string();
    }
    let has_roles = phase.readers + phase.writers > 0;
    let only_new = phase.existing == Some(0.0);
    let is_new = |kind: OpKind| kind.access() == Access::Insert || (only_new && kind.inserts(phase));
    let has_new = mix.has(is_new);
    if has_new && mix.kinds().all(is_new) && (only_new || phase.existing.is_none()) && !has_roles {
        return "new keys, in the order of their numbers.".to_string();
    }
    let only_scans = mix.has(|_| true) && mix.kinds().all(|kind| kind == OpKind::Scan);
    let is_whole_scan = only_scans && phase.scan.rows == 0 && !phase.scan.prefix;
    if is_whole_scan && !has_roles {
        return "all keys, in their order.".to_string();
    }
    let file = workload.key.file.is_some();
    let order = match (file, workload.key.scattered) {
        (true, _) => "in the order of the file",
        (false, true) => "in the order of their numbers, which is a random order of keys",
        (false, false) => "in ascending order",
    };
    let which = drawn(phase, order);
    let is_skewed = phase.distribution.row().hot != Hot::Nowhere;
    let hot = match (is_skewed, phase.clustered) {
        (true, true) => "; the hot keys are neighbours",
        (true, false) => "; the hot keys are scattered over the range",
        (false, _) => "",
    };
    let grows = if phase.grows { "; the range grows with the inserts of the phase" } else { "" };
    let new = if has_new { "; inserts use new keys" } else { "" };
    format!("{which}{hot}{grows}{new}.")
}

/// How keys are chosen; `order`: the order of their numbers.
fn drawn(phase: &Phase, order: &str) -> String {
    let distribution = &phase.distribution;
    let mut words = distribution.row().words.replace("{ORDER}", order);
    for ((name, bound), value) in distribution.row().parameters.iter().zip(distribution.parameters()) {
        let number = match bound {
            Bound::Whole(_) => grouped(value as u64),
            _ => value.to_string(),
        };
        words = words.replace(&format!("{{{name}}}"), &number);
        words = words.replace(&format!("{{{name} %}}"), &percent(value));
    }
    let again = if distribution.is_pass() && !phase.each_key { ", then from the first again" } else { "" };
    words + again
}

fn arrivals(phase: &Phase) -> String {
    phase.rate.as_ref().map_or_else(String::new, |rate| {
        let how = arrivals_text(rate, phase.arrivals, phase.when_late);
        format!("requests per second, whether or not earlier ones have ended: {how}.")
    })
}

fn threads(phase: &Phase) -> String {
    let mut parts = Vec::new();
    if phase.threads > 0 {
        parts.push(grouped(phase.threads.into()));
    }
    for (count, one, many) in [(phase.readers, "reader", "readers"), (phase.writers, "writer", "writers")] {
        if count > 0 {
            parts.push(counted(count.into(), one, many));
        }
    }
    let turns = if phase.rate.is_some() {
        ""
    } else if phase.threads + phase.readers + phase.writers > 1 {
        "; each starts its next op when its previous one has ended"
    } else {
        "; it starts its next op when the previous one has ended"
    };
    format!("{}{turns}.", listed(&parts, "and"))
}

fn ends(workload: &Workload, phase: &Phase) -> String {
    let mut ends = Vec::new();
    if phase.each_key {
        ends.push(format!("after each of the {}", counted(workload.keys, "key", "keys")));
    } else if let Some(ops) = phase.ops_limit() {
        ends.push(format!("after {}", counted(ops, "op", "ops")));
    }
    if let Some(seconds) = phase.seconds_limit() {
        ends.push(format!("after {seconds} s"));
    }
    if phase.until == Until::Steady {
        ends.push("when its ops/s, p99 and bytes written per op no longer change".to_string());
    }
    let first = if ends.len() > 1 { ", whichever comes first" } else { "" };
    let warmup = match phase.warmup_seconds {
        0.0 => String::new(),
        seconds => format!("; the first {seconds} s are warm-up and not counted"),
    };
    format!("{}{first}{warmup}.", ends.join(" or "))
}

fn timed(phase: &Phase) -> String {
    let mix = &phase.mix;
    let unit = if phase.join > 1 && mix.has(OpKind::is_joined) {
        "each group as one"
    } else if mix.read_modify_write > 0.0 {
        "each op separately, a get and its put as one"
    } else if mix.insert_indexed > 0.0 {
        "each row and its index rows as one"
    } else {
        "each op separately"
    };
    format!(
        "{unit}, from the moment it could start in the driver until the engine has answered. Preparing keys and values \
         and verifying answers are not timed."
    )
}

fn verified(workload: &Workload, phase: &Phase) -> String {
    let mix = &phase.mix;
    let mut parts = Vec::new();
    if mix.has(OpKind::gets) || phase.readers > 0 {
        parts.push("each value read is intact, belongs to its key, and has a version that the read may see");
        parts.push("each key that must exist is found");
    }
    if phase.miss > 0.0 {
        parts.push("no key that was never written is found");
    }
    if mix.scan > 0.0 {
        parts.push(
            "each row of a scan is in order, within bounds, intact, and belongs to a key that was written",
        );
        if !mix.has(OpKind::writes) && phase.writers == 0 && phase.scan.index == 0 {
            parts.push("no row is missing");
        }
    }
    if mix.merge > 0.0 {
        parts.push("each counter has counted every merge (checked by the sweep at the end)");
    }
    if mix.has(OpKind::is_of_lists) {
        parts.push("each pushed value is popped once, in order, or is still in the list at the end");
    }
    if mix.delete > 0.0 {
        parts.push("the engine had the key, if it reports that");
    }
    if mix.insert > 0.0 && phase.existing.is_some() {
        parts.push("an insert of an existing key is refused, and the key keeps its value");
    }
    if mix.has(OpKind::writes_rows) || phase.writers > 0 {
        parts.push("written values are checked by later reads and by the sweep at the end");
    }
    if parts.is_empty() {
        parts.push("each op's answer");
    }
    let indexed = if workload.indexes.is_empty() { "" } else { "; the sweep reads each index too" };
    format!("{}{indexed}.", parts.join("; "))
}

fn caches(phase: &Phase, place: usize) -> String {
    let settled = if phase.settle_before { "after waiting for the engine's background work, " } else { "" };
    let rest = if phase.drop_caches_before {
        "cold: the database is closed, the page cache is dropped if the system allows it (the record reports whether it \
         did), and the database is opened again"
    } else if phase.reopen_before {
        "the engine's caches are empty, because the database is closed and opened again; the page cache stays as it is"
    } else if place == 0 {
        "empty, because the database is empty"
    } else {
        "as the previous phase left them"
    };
    format!("{settled}{rest}.")
}
