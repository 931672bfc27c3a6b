//! A phase in plain words: ops, keys, threads, end, what is timed, what is verified, caches.

use super::said_level;
use super::words::{counted, listed, number, percent, size};
use crate::generator::Distribution;
use crate::workload::{Emulate, Phase, Workload};

/// The parts of a phase's explanation, each with what it is about.
pub fn parts(workload: &Workload, place: usize) -> Vec<(&'static str, String)> {
    let phase = &workload.phases[place];
    let parts = vec![
        ("Ops", ops(workload, phase)),
        ("Keys", keys(workload, phase)),
        ("Threads", threads(phase)),
        ("Ends", ends(workload, phase)),
        ("Timed", timed(phase)),
        ("Verified", verified(workload, phase)),
        ("Caches", caches(phase, place)),
    ];
    parts.into_iter().filter(|(what, said)| !(said.is_empty() && *what == "Keys")).collect()
}

/// What ops of a kind are called, and what there is to say of them.
fn kind(workload: &Workload, phase: &Phase, name: &str) -> String {
    let group = |what: &str| match (phase.join, phase.atomic) {
        (0 | 1, _) => format!("{what}, each alone"),
        (join, true) => format!("{what}, {} to a transaction", number(join.into())),
        (join, false) => format!("{what}, {} to a group that may share one commit", number(join.into())),
    };
    match name {
        "get" => "gets, the value copied out".to_string(),
        "multi_get" => format!("multi-gets of {} each", counted(phase.multi_get_keys.into(), "key", "keys")),
        "put" => match phase.existing {
            Some(0.0) => group("puts of new keys"),
            Some(1.0) => group("puts, which overwrite a key that is there"),
            Some(share) => {
                group(&format!("puts ({} of keys that are there, the rest of new ones)", percent(share)))
            }
            None => group("puts"),
        },
        "insert" => match phase.existing {
            Some(share) => {
                group(&format!("inserts ({} of keys that are there, which must be refused)", percent(share)))
            }
            None => group("inserts of new keys"),
        },
        "update" => group("updates, which overwrite the whole value"),
        "delete" => group("deletes"),
        "scan" if workload.collections.are_hashes() => {
            "scans of a whole hash, fields and values copied out".to_string()
        }
        "scan" => scans(phase),
        "merge" => {
            let made = phase.emulate.contains(&Emulate::Merge);
            let how =
                if made { "by get and put even where the engine can" } else { "by the engine where it can" };
            group(&format!("merges, which add 1 to a counter, {how}"))
        }
        "read_modify_write" => "gets, each with a put of a new value to the same key".to_string(),
        "transaction" => {
            format!("transactions of {}", counted(phase.transaction_ops.into(), "update", "updates"))
        }
        "insert_indexed" => group("inserts of new rows with their index rows"),
        "push" => group("pushes of new values at the right end of a list"),
        "pop" => {
            "pops of the value at the left end of a list, by get and delete where the engine has no lists"
                .to_string()
        }
        other => other.replace('_', "-"),
    }
}

fn scans(phase: &Phase) -> String {
    let scan = &phase.scan;
    let what = match (scan.prefix, scan.rows, scan.uniform_rows) {
        (true, 0, _) => "prefix scans: all rows that share a key's prefix".to_string(),
        (true, rows, _) => format!("prefix scans of up to {}", counted(rows.into(), "row", "rows")),
        (false, 0, _) => "scans of all rows".to_string(),
        (false, rows, true) => format!("scans of 1 to {}", counted(rows.into(), "row", "rows")),
        (false, rows, false) => format!("scans of {}", counted(rows.into(), "row", "rows")),
    };
    let index = if scan.index > 0 { format!(" by index {}", scan.index) } else { String::new() };
    let calls = match scan.rows_per_call {
        0 => String::new(),
        rows => format!(", {} to a call", counted(rows.into(), "row", "rows")),
    };
    let down = if scan.reverse { ", downward" } else { "" };
    format!("{what}{index}{down}{calls}, keys and values copied out")
}

fn ops(workload: &Workload, phase: &Phase) -> String {
    let present: Vec<(&str, f64)> =
        phase.mix.shares().into_iter().filter(|(_, share)| *share > 0.0).collect();
    let all: f64 = present.iter().map(|(_, share)| share).sum();
    let said = |(name, share): &(&str, f64)| match present.len() {
        1 => kind(workload, phase, name),
        _ => format!("{} {}", percent(share / all), kind(workload, phase, name)),
    };
    let mut parts: Vec<String> = present.iter().map(said).collect();
    if phase.threads > 0 && (phase.readers > 0 || phase.writers > 0) && !parts.is_empty() {
        parts = vec![format!("in the threads without a role {}", parts.join("; "))];
    }
    if phase.readers > 0 {
        parts.push("gets by the readers".to_string());
    }
    if phase.writers > 0 {
        parts.push("puts by the writers, each alone".to_string());
    }
    let mut text = parts.join("; ") + ".";
    if phase.miss > 0.0 {
        let share = percent(phase.miss);
        text += &format!(" Of the gets {share} ask for a key that was never written.");
    }
    if let Some(other) = &phase.value_size {
        text += &format!(" Values have {}.", size(other));
    }
    if let Some(level) = phase.durability.filter(|level| *level != workload.durability) {
        text += &format!(" At level {level} (the database is opened again for it): {}.", said_level(level));
    }
    text
}

fn keys(workload: &Workload, phase: &Phase) -> String {
    let mix = &phase.mix;
    if workload.collections.are_lists() {
        return "no keys, lists: each belongs to one thread, which draws one of its own for each op."
            .to_string();
    }
    let shares: f64 = mix.shares().iter().map(|(_, share)| share).sum();
    let only_new = phase.existing == Some(0.0);
    let new = mix.insert + mix.insert_indexed + if only_new { mix.put } else { 0.0 };
    let has_roles = phase.readers + phase.writers > 0;
    if new > 0.0 && new == shares && (only_new || phase.existing.is_none()) && !has_roles {
        return "the next new ones, in the order of their numbers.".to_string();
    }
    let is_whole_scan = mix.scan > 0.0 && mix.scan == shares && phase.scan.rows == 0 && !phase.scan.prefix;
    if is_whole_scan && !has_roles {
        return "all of them, in their order.".to_string();
    }
    let file = workload.key.file.is_some();
    let order = match (file, workload.key.scattered) {
        (true, _) => "in the order of the file",
        (false, true) => "in the order of their numbers, which is a random order of keys",
        (false, false) => "in ascending order",
    };
    let mut is_skewed = true;
    let which = match &phase.distribution {
        Distribution::Sequential | Distribution::Permutation => {
            is_skewed = false;
            let order =
                if phase.distribution == Distribution::Sequential { order } else { "in shuffled order" };
            let again = if phase.each_key { "" } else { ", then again from the first" };
            format!("each once, {order}{again}")
        }
        Distribution::Uniform => {
            is_skewed = false;
            "drawn at random, each as likely".to_string()
        }
        Distribution::Zipf(theta) => format!("drawn by a zipf distribution of {theta}"),
        Distribution::YcsbZipfian => "drawn by YCSB's zipfian distribution".to_string(),
        Distribution::Latest => {
            is_skewed = false;
            "drawn so that the newest are the likeliest".to_string()
        }
        Distribution::Hotspot(fraction, share) => {
            format!("{} of the draws fall on {} of the keys", percent(*share), percent(*fraction))
        }
        Distribution::Exponential(percentile, fraction) => {
            format!(
                "drawn by an exponential distribution: {percentile} % of the draws fall on {} of the keys",
                percent(*fraction)
            )
        }
    };
    let hot = match (is_skewed, phase.clustered) {
        (true, true) => "; the hot ones lie side by side",
        (true, false) => "; the hot ones are scattered over all",
        (false, _) => "",
    };
    let grows = if phase.grows { "; the range grows with the inserts of the phase" } else { "" };
    let new = if new > 0.0 { "; inserts take the next new ones" } else { "" };
    format!("{which}{hot}{grows}{new}.")
}

fn threads(phase: &Phase) -> String {
    let mut parts = Vec::new();
    if phase.threads > 0 {
        parts.push(number(phase.threads.into()));
    }
    for (count, one, many) in [(phase.readers, "reader", "readers"), (phase.writers, "writer", "writers")] {
        if count > 0 {
            parts.push(counted(count.into(), one, many));
        }
    }
    let turns = if phase.threads + phase.readers + phase.writers > 1 {
        "; each begins its next op when its last has ended, and a key is written by one of them alone"
    } else {
        "; it begins its next op when the last has ended"
    };
    format!("{}{turns}.", listed(&parts))
}

fn ends(workload: &Workload, phase: &Phase) -> String {
    let mut ends = Vec::new();
    if phase.each_key {
        ends.push(format!("after each of the {}", counted(workload.keys, "key", "keys")));
    } else if phase.ops > 0 {
        ends.push(format!("after {}", counted(phase.ops, "op", "ops")));
    }
    if phase.seconds > 0.0 {
        ends.push(format!("after {} s", phase.seconds));
    }
    let first = if ends.len() > 1 { ", whichever comes first" } else { "" };
    let warmup = match phase.warmup_seconds {
        0.0 => String::new(),
        seconds => format!("; the first {seconds} s are run and not counted"),
    };
    format!("{}{first}{warmup}.", ends.join(" or "))
}

fn timed(phase: &Phase) -> String {
    let mix = &phase.mix;
    let joined = mix.put + mix.insert + mix.update + mix.delete + mix.merge + mix.insert_indexed;
    let unit = if phase.join > 1 && joined > 0.0 {
        "each group as one"
    } else if mix.read_modify_write > 0.0 {
        "each op by itself, a get with its put as one"
    } else if mix.insert_indexed > 0.0 {
        "each row with its index rows as one"
    } else {
        "each op by itself"
    };
    format!(
        "{unit}, from where it could start in the driver until the engine has answered. Making keys and values, and \
         verifying, are outside."
    )
}

fn verified(workload: &Workload, phase: &Phase) -> String {
    let mix = &phase.mix;
    let mut parts = Vec::new();
    if mix.get + mix.multi_get + mix.read_modify_write > 0.0 || phase.readers > 0 {
        parts.push("each value that is read is whole, of its key, and of a version that the read may see");
        parts.push("a key that must be there is found");
    }
    if phase.miss > 0.0 {
        parts.push("a key that was never written is not found");
    }
    if mix.scan > 0.0 {
        parts.push("each row of a scan is in order, in bounds, whole, and of a key that was written");
        let writes = mix
            .shares()
            .iter()
            .any(|(name, share)| *share > 0.0 && !["get", "multi_get", "scan"].contains(name));
        if !writes && phase.writers == 0 && phase.scan.index == 0 {
            parts.push("no row is missing");
        }
    }
    if mix.merge > 0.0 {
        parts.push("each counter counted every merge, by the sweep at the end");
    }
    if mix.push + mix.pop > 0.0 {
        parts.push("each value that is pushed is popped once, in its order, or is there at the end");
    }
    if mix.delete > 0.0 {
        parts.push("the engine had the key, where it tells");
    }
    if mix.insert > 0.0 && phase.existing.is_some() {
        parts.push("a key that is there is refused, and keeps its value");
    }
    let writes = mix.shares().iter().any(|(name, share)| {
        *share > 0.0 && !["get", "multi_get", "scan", "merge", "push", "pop"].contains(name)
    });
    if writes || phase.writers > 0 {
        parts.push("what is written is looked for by later reads and by the sweep at the end");
    }
    if parts.is_empty() {
        parts.push("each op's answer");
    }
    let indexed = if workload.indexes.is_empty() { "" } else { "; the sweep goes over each index too" };
    format!("{}{indexed}.", parts.join("; "))
}

fn caches(phase: &Phase, place: usize) -> String {
    let settled =
        if phase.settle_before { "first the engine's background work is waited for; then " } else { "" };
    let rest = if phase.drop_caches_before {
        "cold: the database is closed, the page cache is dropped where the system allows it (the record says), and it is \
         opened again"
    } else if phase.reopen_before {
        "the engine's are empty, for the database is closed and opened again; the page cache is as it was"
    } else if place == 0 {
        "empty, for so is the database"
    } else {
        "as the phase before left them"
    };
    format!("{settled}{rest}.")
}
