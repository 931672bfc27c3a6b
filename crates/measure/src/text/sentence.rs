//! Words of sentences: lists, counts, ordinals, and the nearest known name.

use super::figure::grouped;

/// Names as a list in a sentence: `a`, `a and b`, `a, b and c`; `last` is the word before the last name.
pub fn listed<Name: AsRef<str>>(names: &[Name], last: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((end, before)) if !before.is_empty() => format!("{} {last} {end}", before.join(", ")),
        _ => names.concat(),
    }
}

/// At most so many names as a list in a sentence: `a, b and 3 others`; `last` is the word before the last one.
pub fn few<Name: AsRef<str>>(names: &[Name], limit: usize, last: &str) -> String {
    if names.len() <= limit {
        return listed(names, last);
    }
    let shown: Vec<&str> = names[..limit.saturating_sub(1).max(1)].iter().map(AsRef::as_ref).collect();
    let others = counted((names.len() - shown.len()) as u64, "other", "others");
    format!("{} {last} {others}", shown.join(", "))
}

/// `1 run`, `3,000 runs`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// `second`, `third`, `4th`, `21st`.
pub fn ordinal(count: u64) -> String {
    match (count, count % 10, count % 100) {
        (2, ..) => "second".to_string(),
        (3, ..) => "third".to_string(),
        (_, 1, rest) if rest != 11 => format!("{}st", grouped(count)),
        (_, 2, rest) if rest != 12 => format!("{}nd", grouped(count)),
        (_, 3, rest) if rest != 13 => format!("{}rd", grouped(count)),
        _ => format!("{}th", grouped(count)),
    }
}

/// The candidate closest to a misspelt word, compared up to the candidate's `:`; `None` if none is close.
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let scored = candidates.iter().map(|candidate| {
        let name = candidate.split(':').next().unwrap_or("").trim().to_lowercase();
        let is_start =
            word.len() >= 3 && name != word && (name.starts_with(&word) || word.starts_with(&name));
        (if is_start { 1 } else { distance(&word, &name) }, name.chars().count(), *candidate)
    });
    let (edits, length, candidate) = scored.min_by_key(|&(edits, ..)| edits)?;
    (edits <= 1 + length.max(word.chars().count()) / 4).then_some(candidate)
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(64).collect();
    let right: Vec<char> = right.chars().take(64).collect();
    let mut before: Vec<usize> = vec![0; right.len() + 1];
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1; right.len() + 1];
        for (j, b) in right.iter().enumerate() {
            row[j + 1] = (above[j + 1] + 1).min(row[j] + 1).min(above[j] + usize::from(a != b));
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts_are_words_of_a_sentence() {
        assert_eq!(listed::<&str>(&[], "and"), "");
        assert_eq!(listed(&["a"], "and"), "a");
        assert_eq!(listed(&["a", "b"], "or"), "a or b");
        assert_eq!(listed(&["a", "b", "c"], "and"), "a, b and c");
        assert_eq!(few(&["a", "b", "c"], 3, "and"), "a, b and c");
        assert_eq!(few(&["a", "b", "c", "d"], 3, "and"), "a, b and 2 others");
        assert_eq!(few(&["a", "b"], 1, "and"), "a and 1 other");
        assert_eq!(
            (counted(1, "run", "runs"), counted(2000, "run", "runs")),
            ("1 run".into(), "2,000 runs".into())
        );
        let ordinals = [2, 3, 4, 11, 21, 102, 113, 1023].map(ordinal);
        assert_eq!(ordinals, ["second", "third", "4th", "11th", "21st", "102nd", "113th", "1,023rd"]);
    }

    #[test]
    fn the_nearest_name_is_found_if_one_is_near() {
        assert_eq!(nearest("redbb", &["redb", "fjall", "sled"]), Some("redb"));
        assert_eq!(nearest("RocksDB", &["grocksdb", "rocksdb"]), Some("rocksdb"));
        assert_eq!(nearest("slde", &["redb", "fjall", "sled"]), Some("sled"));
        assert_eq!(nearest("postgres", &["redb", "fjall", "sled"]), None);
        assert_eq!(nearest("", &["redb"]), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
