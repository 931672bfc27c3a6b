//! The name that a person probably meant.

/// The name most like `typed`, or none when all are too far from it. Among equals the first one wins.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase().replace('_', "-");
    let allowed = (typed.chars().count() / 3).max(1);
    let mut best: Option<(usize, &'a str)> = None;
    for name in names {
        let plain = name.to_lowercase().replace('_', "-");
        let mut distance = edits(&typed, &plain);
        // A word cut short, or with more behind it, is near however long the rest is.
        let shorter = typed.len().min(plain.len());
        if shorter >= 3 && (plain.starts_with(&typed) || typed.starts_with(&plain)) {
            distance = distance.min(allowed);
        }
        // Nothing in common is not near, however short the word.
        let near = distance <= allowed && distance < typed.chars().count();
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Edits that turn one text into the other: insert, remove, replace, or swap two neighbours.
fn edits(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for row in 1..=one.len() {
        let mut current = vec![row];
        for column in 1..=other.len() {
            let same = one[row - 1] == other[column - 1];
            let mut least = (last[column - 1] + usize::from(!same)).min(last[column] + 1);
            least = least.min(current[column - 1] + 1);
            let swapped = row > 1 && column > 1 && one[row - 1] == other[column - 2];
            if swapped && one[row - 2] == other[column - 1] {
                least = least.min(before_last[column - 2] + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["mix", "multi_get", "get", "scan", "read_modify_write", "cache_bytes"];

    #[test]
    fn finds_a_word_with_a_slip_in_it() {
        const CASES: &[(&str, Option<&str>)] = &[
            ("mixx", Some("mix")),
            ("multiget", Some("multi_get")),
            ("multi-get", Some("multi_get")),
            ("sacn", Some("scan")),
            ("GET", Some("get")),
            ("cache", Some("cache_bytes")),
            ("read_modify", Some("read_modify_write")),
            ("compaction", None),
            ("x", None),
            ("", None),
        ];
        for (typed, wanted) in CASES {
            assert_eq!(nearest(typed, NAMES.iter().copied()), *wanted, "typed {typed:?}");
        }
    }

    #[test]
    fn takes_the_nearer_of_two() {
        assert_eq!(nearest("gett", ["gets", "get", "get_t"]), Some("gets"));
        assert_eq!(nearest("zipf", ["zip", "zipf"]), Some("zipf"));
    }
}
