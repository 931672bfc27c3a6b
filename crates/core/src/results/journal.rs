//! The journal of a run: a line per finished trial, each with a checksum that reveals lines torn by a crash.

use serde::{Deserialize, Serialize};

/// The longest line that is accepted, bytes.
const LINE_LIMIT_BYTES: usize = 64 << 10;

/// A finished trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its id.
    pub trial: String,
    /// The path of its record, relative to the run's folder; for information: the tool derives the path from the id.
    pub record: String,
    /// Length of the record's file, bytes.
    pub bytes: u64,
    /// CRC-32 (IEEE) of the record's file, eight hexadecimal digits.
    pub crc32: String,
    /// `ok`, `wrong-answers`, `crashed`, or the cause of the failure.
    pub status: String,
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The complete lines, in the order of writing.
    pub entries: Vec<Entry>,
    /// The end of the last complete line: the rest was torn by a crash and may be removed.
    pub whole_bytes: u64,
    /// Lines before that end that do not match their checksum.
    pub damaged_lines: u32,
}

/// The checksum of lines and files: CRC-32 (IEEE) in eight hexadecimal digits.
pub(super) fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

/// The line for an entry: its checksum, the entry and a newline.
pub(super) fn encode(entry: &Entry) -> Vec<u8> {
    let json =
        serde_json::to_string(entry).expect("an entry has only texts and a number, which JSON can hold");
    format!("{} {json}\n", checksum(json.as_bytes())).into_bytes()
}

/// Reads a journal, which may end anywhere and contain anything.
pub(super) fn scan(journal: &[u8]) -> Scan {
    let mut scan = Scan::default();
    let mut damaged_since_whole = 0;
    let mut start = 0;
    // A last line without a newline was never acknowledged, even if it is complete otherwise.
    while let Some(length) = journal[start..].iter().position(|byte| *byte == b'\n') {
        let line = &journal[start..start + length];
        start += length + 1;
        match decode(line) {
            Some(entry) => {
                scan.entries.push(entry);
                scan.whole_bytes = start as u64;
                scan.damaged_lines += std::mem::take(&mut damaged_since_whole);
            }
            None => damaged_since_whole += 1,
        }
    }
    scan
}

fn decode(line: &[u8]) -> Option<Entry> {
    if line.len() > LINE_LIMIT_BYTES || line.get(8) != Some(&b' ') {
        return None;
    }
    let (sum, json) = (&line[..8], &line[9..]);
    if sum != checksum(json).as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(number: u32) -> Entry {
        Entry {
            trial: format!("{number:04}-null-quick-1"),
            record: format!("trials/{number:04}-null-quick-1/record.json"),
            bytes: 17,
            crc32: "00000000".to_string(),
            status: "ok".to_string(),
        }
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let journal: Vec<u8> = (0..5).flat_map(|number| encode(&entry(number))).collect();
        let scan = scan(&journal);
        assert_eq!(scan.entries, (0..5).map(entry).collect::<Vec<_>>());
        assert_eq!(scan.whole_bytes, journal.len() as u64);
        assert_eq!(scan.damaged_lines, 0);
    }

    #[test]
    fn every_cut_leaves_exactly_the_complete_lines() {
        let lines: Vec<Vec<u8>> = (0..3).map(|number| encode(&entry(number))).collect();
        let journal = lines.concat();
        for cut in 0..=journal.len() {
            let scan = scan(&journal[..cut]);
            let mut whole = 0;
            let mut end = 0;
            while whole < lines.len() && end + lines[whole].len() <= cut {
                end += lines[whole].len();
                whole += 1;
            }
            assert_eq!(scan.entries.len(), whole, "cut at {cut}");
            assert_eq!(scan.whole_bytes, end as u64, "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_line_does_not_damage_later_lines() {
        let lines: Vec<Vec<u8>> = (0..3).map(|number| encode(&entry(number))).collect();
        for byte in 0..lines[1].len() {
            let mut journal = lines.concat();
            journal[lines[0].len() + byte] ^= 0x15;
            let scan = scan(&journal);
            let trials: Vec<&str> = scan.entries.iter().map(|entry| entry.trial.as_str()).collect();
            // If the newline itself is damaged, the two lines around it become one damaged line.
            let hit_newline = byte == lines[1].len() - 1;
            let expected: &[&str] = if hit_newline {
                &["0000-null-quick-1"]
            } else {
                &["0000-null-quick-1", "0002-null-quick-1"]
            };
            assert_eq!(trials, expected, "damage at byte {byte} of the second line");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(journal in proptest::collection::vec(any::<u8>(), 0..300)) {
            let scan = scan(&journal);
            prop_assert!(scan.whole_bytes <= journal.len() as u64);
        }
    }
}
