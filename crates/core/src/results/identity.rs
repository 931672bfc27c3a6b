//! Names of runs, and dates in UTC.

use std::hash::{BuildHasher, RandomState};

/// The longest part of a run's id that comes from a workload or from parameters, in characters.
const PART_LIMIT: usize = 40;

/// Now, UTC, as RFC 3339 with seconds: `2026-11-20T09:15:29Z`.
pub fn now_rfc3339() -> String {
    format!("{:.0}", jiff::Timestamp::now())
}

/// A time with its offset from UTC (`2026-11-20T10:15:29+01:00`, `2026-11-20T09:15:29Z`) as [`now_rfc3339`] writes it; none: it is no
/// such time.
pub fn utc_rfc3339(text: &str) -> Option<String> {
    text.parse::<jiff::Timestamp>().ok().map(|time| format!("{time:.0}"))
}

/// The id of a run and the name of its folder: `2026-11-20T09-15-29-quick-200k-a1b2`.
///
/// `started_at` is RFC 3339; of `workload` and `parameters` (which may be empty) only letters, digits, `.`, `_` and `-` are
/// kept, at most 40 characters. `suffix` distinguishes runs that started in the same second.
pub fn run_id(started_at: &str, workload: &str, parameters: &str, suffix: u16) -> String {
    let date: String = started_at.trim_end_matches('Z').replace(':', "-");
    let mut parts = vec![name_part(&date), name_part(workload), name_part(parameters)];
    parts.retain(|part| !part.is_empty());
    parts.push(format!("{suffix:04x}"));
    parts.join("-")
}

/// The id of a run with another suffix.
pub(super) fn with_suffix(id: &str, suffix: u16) -> String {
    let stem = id.rsplit_once('-').map_or(id, |(stem, _)| stem);
    format!("{stem}-{suffix:04x}")
}

/// Sixteen random bits to distinguish runs that started in the same second. They are only used in a name.
pub fn random_suffix() -> u16 {
    // Each `RandomState` is seeded by the operating system.
    (RandomState::new().hash_one(std::process::id()) & 0xffff) as u16
}

/// The text with each sequence of characters that are unsafe or awkward in a file name replaced by `-`.
fn name_part(text: &str) -> String {
    let mut part = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '.' {
            part.push(letter);
        } else if !part.ends_with('-') {
            part.push('-');
        }
        if part.len() >= PART_LIMIT {
            break;
        }
    }
    part.trim_matches(|end: char| end == '-' || end == '.').to_string()
}

/// Whether the text is a valid folder name: 1 to 160 letters, digits, `_`, `.`, `-`, `:`, beginning with a letter or digit.
pub(super) fn is_safe_name(name: &str) -> bool {
    name.len() <= 160
        && name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && name.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-:".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_converted_to_utc_or_refused() {
        for (text, utc) in [
            ("2026-11-20T10:15:29+01:00", Some("2026-11-20T09:15:29Z")),
            ("2026-11-20T09:15:29.9Z", Some("2026-11-20T09:15:29Z")),
            ("2026-11-20T09:15:29", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(utc_rfc3339(text).as_deref(), utc, "{text}");
        }
    }

    #[test]
    fn a_date_has_whole_seconds() {
        let date = now_rfc3339();
        assert!(date.len() == "2026-11-20T09:15:29Z".len() && date.ends_with('Z'), "{date}");
    }

    #[test]
    fn names_a_run_by_date_workload_and_parameters() {
        let id = run_id("2026-11-20T09:15:29Z", "quick", "200k", 0xa1b2);
        assert_eq!(id, "2026-11-20T09-15-29-quick-200k-a1b2");
        assert_eq!(run_id("2026-11-20T09:15:29Z", "quick", "", 7), "2026-11-20T09-15-29-quick-0007");
    }

    #[test]
    fn a_hostile_workload_name_cannot_leave_the_folder() {
        for name in ["../../etc", "a/b\\c", "\u{1b}[31mred", "", "....", "con:\0x", &"x".repeat(500)] {
            let id = run_id("2026-11-20T09:15:29Z", name, "../..", 1);
            assert!(is_safe_name(&id), "{name:?} became {id:?}");
            assert!(!id.contains('/') && !id.contains(".."), "{name:?} became {id:?}");
        }
    }

    #[test]
    fn refuses_names_that_are_paths() {
        for name in ["", ".", "..", "../a", "a/b", "-a", "a b", "a\n", "\u{e4}", &"x".repeat(161)] {
            assert!(!is_safe_name(name), "{name:?}");
        }
        for name in ["0007-redb-quick-2", "a", "0001-mutant:stale-read-quick-1"] {
            assert!(is_safe_name(name), "{name:?}");
        }
    }
}
