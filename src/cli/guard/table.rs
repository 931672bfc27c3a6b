//! What is printed of counts.

use super::counted::is_guarded;
use super::file::{Saved, SavedPhase};
use super::{Checked, Outcome, RUNS};
use kvdyno_change::counts::{Verdict, false_alarms};
use kvdyno_core::results::statistics::median;
use kvdyno_measure::text::{Align, Table, counted, grouped, wrapped};
use kvdyno_report::csv_cell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The width of the text around the table.
const WIDTH: usize = 120;
/// The table of saved counts skips those below this per op.
const RARE: f64 = 0.001;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Form {
    Text,
    Csv,
}

/// The counts of a file.
pub(super) fn saved(saved: &Saved) -> String {
    let titles = [
        ("phase", Align::Left),
        ("count", Align::Left),
        ("per op", Align::Right),
        ("range in the runs", Align::Right),
    ];
    let mut table = Table::with_titles(&titles);
    let (mut rare, mut unguarded) = (0, 0);
    for phase in &saved.phases {
        for name in phase.counts.keys() {
            let Some(all) = phase.per_op(name) else { continue };
            match median(&all) {
                _ if !is_guarded(name) => unguarded += 1,
                Some(middle) if middle < RARE => rare += 1,
                middle => {
                    table.push(vec![phase.name.clone(), name.clone(), per_op(middle), range(&all)]);
                }
            }
        }
    }
    let mut text = format!("{}, {}\n\n{}\n", saved.workload_name, described(saved), table.text());
    let mut legend = "exact: equal in all runs. Half of the runs were made beside busy loops on all CPUs, so that the range has what \
                      a busy machine does to a count."
        .to_string();
    if rare > 0 {
        let verb = if rare == 1 { "is" } else { "are" };
        let _ = write!(legend, " {rare} more, of less than {RARE} per op, {verb} guarded, too.");
    }
    if unguarded > 0 {
        let verb = if unguarded == 1 { "is" } else { "are" };
        let _ = write!(
            legend,
            " {unguarded} {verb} not guarded: calls by which threads start, end and wait depend on which is faster."
        );
    }
    text.push_str(&wrapped("", "", &legend, WIDTH));
    text
}

fn described(saved: &Saved) -> String {
    let runs = saved.phases.first().map_or(0, |phase| phase.ops.len());
    let of = |name: &str| saved.made_with.get(name).cloned().unwrap_or_else(|| "-".to_string());
    format!("{} at level {}: {}", of("engine"), of("level"), counted(runs as u64, "run", "runs"))
}

/// How far apart the runs are: `exact`, or a share of the median.
fn range(all: &[f64]) -> String {
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match median(all) {
        _ if least == most => "exact".to_string(),
        Some(middle) if middle > 0.0 => format!("{} %", digits((most - least) / middle * 100.0, 2)),
        _ => format!("{}..{}", digits(least, 5), digits(most, 5)),
    }
}

fn per_op(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_string(), |value| digits(value, 5))
}

/// So many digits, or all those before the point.
fn digits(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let places = (count - 1 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// What differs between what a file was made with and what is there now, a line each.
pub(super) fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let differs = |(name, now): (&String, &String)| {
        let before = before.get(name).map_or("-", String::as_str);
        (before != now.as_str())
            .then(|| format!("note: {name}: {before} when the counts were saved, {now} now"))
    };
    now.iter().filter_map(differs).collect()
}

/// Counts that were saved and that nothing is known of now, a line each.
pub(super) fn unknown(before: &[SavedPhase], now: &[SavedPhase]) -> Vec<String> {
    let both = before.iter().zip(now);
    let names = both.flat_map(|(before, now)| before.counts.keys().map(move |name| (name, now)));
    let gone = names.filter(|(name, now)| now.per_op(name).is_none());
    gone.map(|(name, now)| format!("note: {}: {name}: saved, but not known now, so not checked", now.name))
        .collect()
}

/// `3 counts are outside the range of the saved runs so far`.
pub(super) fn open(count: usize) -> String {
    format!("{} outside the range of the saved runs so far", counted(count as u64, "count is", "counts are"))
}

/// What a check has found.
pub(super) fn checked(form: Form, outcome: &Outcome) -> String {
    match form {
        Form::Text => text(outcome),
        Form::Csv => csv(outcome),
    }
}

fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    let of = |verdict: Verdict| outcome.checked.iter().filter(move |one| one.verdict == verdict);
    for one in of(Verdict::Rose).chain(of(Verdict::Fell)) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line(one));
    }
    let (rose, fell) = (of(Verdict::Rose).count(), of(Verdict::Fell).count());
    let what = match (rose, fell) {
        (0, 0) => "none rose".to_string(),
        (0, _) => format!("none rose, {fell} fell"),
        (_, 0) => format!("{rose} rose"),
        _ => format!("{rose} rose, {fell} fell"),
    };
    let _ = writeln!(
        text,
        "{}: {what}, of {} in {}",
        outcome.workload,
        counted(outcome.checked.len() as u64, "count", "counts"),
        counted(outcome.runs as u64, "run", "runs")
    );
    if rose + fell > 0 {
        let earlier = outcome.checked.first().map_or(RUNS, |one| one.earlier.len());
        let odds = grouped((1.0 / false_alarms(earlier, outcome.runs)).round() as u64);
        let legend = format!(
            "A count rose if each run exceeds the highest saved one by more than the range of these. A count that has not changed does so in \
             at most one of {odds} checks."
        );
        text.push_str(&wrapped("", "", &legend, WIDTH));
    }
    if fell > 0 && rose == 0 {
        text.push_str("Save the counts again to guard the lower ones.\n");
    }
    text
}

/// `run: write calls rose from 1 to 1.01 per op (+1 %)`.
fn line(one: &Checked) -> String {
    let (before, now) = (median(&one.earlier), median(&one.later));
    let verb = if one.verdict == Verdict::Rose { "rose" } else { "fell" };
    let change = match before.zip(now) {
        Some((before, now)) if before > 0.0 => {
            let percent = (now / before - 1.0) * 100.0;
            format!(" ({}{} %)", if percent > 0.0 { "+" } else { "" }, digits(percent, 3))
        }
        _ => String::new(),
    };
    format!("{}: {} {verb} from {} to {} per op{change}", one.phase, one.name, per_op(before), per_op(now))
}

fn csv(outcome: &Outcome) -> String {
    let mut text = "workload,phase,count,before,now,verdict,runs\n".to_string();
    for one in &outcome.checked {
        let verdict = match one.verdict {
            Verdict::Rose => "rose",
            Verdict::Fell => "fell",
            Verdict::Same | Verdict::Open => "same",
        };
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let cells = [
            csv_cell(&outcome.workload),
            csv_cell(&one.phase),
            csv_cell(&one.name),
            number(median(&one.earlier)),
            number(median(&one.later)),
            verdict.to_string(),
            outcome.runs.to_string(),
        ];
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}
