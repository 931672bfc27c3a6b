//! Names of runs, and dates in UTC: a single date format does not justify a dependency.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest part of a run's id that comes from a workload or from parameters, in characters.
const PART_LIMIT: usize = 40;

/// Now, UTC, as RFC 3339 with seconds: `2026-11-20T09:15:29Z`. A clock before 1970 counts as 1970.
pub fn now_rfc3339() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(since_epoch.as_secs())
}

/// The UTC date of a moment given in seconds since 1970, as RFC 3339: `2026-11-20T09:15:29Z`.
pub fn rfc3339(seconds: u64) -> String {
    let (year, month, day) = civil_date(seconds / 86_400);
    let second_of_day = seconds % 86_400;
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the date `days` after 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last of its year (Hinnant, `civil_from_days`).
fn civil_date(days: u64) -> (u64, u64, u64) {
    // There are 719,468 days between 0000-03-01 and 1970-01-01; an era is 400 years of 146,097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
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
    fn writes_known_dates() {
        // Known answers: `date -u -d @SECONDS +%FT%TZ`.
        const CASES: &[(u64, &str)] = &[
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_166_129, "2026-11-20T09:15:29Z"),
        ];
        for (seconds, date) in CASES {
            assert_eq!(rfc3339(*seconds), *date, "at {seconds} s");
        }
    }

    #[test]
    fn each_day_follows_the_day_before() {
        let mut before = civil_date(0);
        for day in 1..146_097 {
            let date = civil_date(day);
            let next_day = date == (before.0, before.1, before.2 + 1);
            let next_month = date == (before.0, before.1 + 1, 1) && before.2 >= 28;
            let next_year = date == (before.0 + 1, 1, 1) && before.1 == 12 && before.2 == 31;
            assert!(next_day || next_month || next_year, "{before:?} is followed by {date:?}");
            before = date;
        }
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
