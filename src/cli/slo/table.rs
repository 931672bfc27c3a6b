//! What a search prints: the table, its CSV form, and the curves as characters.

use super::{PARTS, SHOWN, Subject};
use kvdyno_core::workload::{Workload, arrivals_text};
use kvdyno_load::search::{Limits, Outcome};
use kvdyno_measure::text::{Align, Table, counted, grouped, time_text};
use kvdyno_report::{RateCurve, RatePage, csv_cell, rate_page};
use std::fmt::Write;

/// Columns and rows of the drawing.
const SIZE: (usize, usize) = (64, 16);

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Form {
    Text,
    Csv,
}

/// Requests or ops per second.
pub(super) fn rate(rate: f64) -> String {
    grouped(rate.round() as u64)
}

/// A time, nanoseconds; `-` if unknown.
pub(super) fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_string(), |ns| time_text(ns as f64))
}

/// The answers of all engines.
pub(super) fn print(
    form: Form,
    workload: &Workload,
    place: usize,
    limits: &Limits,
    subjects: &[Subject],
) -> String {
    match form {
        Form::Text => text(workload, place, limits, subjects),
        Form::Csv => csv(workload, limits, subjects),
    }
}

/// What the columns of the table mean.
const LEGEND: &str = "requests/s, p50, p99, p99.9: of the run that confirmed the rate, after the search. breaks at: the lowest rate that was\n\
     shown to break a limit. closed loop: ops/s if a thread sends its next request when the last one has ended. level: what an\n\
     acknowledged write survives; engines at different levels do different work.";

/// What was searched for: `ycsb-b / run: the highest rate with p99<1ms; Poisson arrivals, one queue for all threads, 2 threads`.
fn question(workload: &Workload, place: usize, limits: &Limits) -> String {
    let phase = &workload.phases[place];
    let how = arrivals_text(&"poisson:1".parse().expect("it is a rate"), phase.arrivals, phase.when_late);
    let how = how.strip_prefix("poisson:1, ").unwrap_or(&how).to_string();
    format!(
        "{} / {}: the highest rate with {limits}; Poisson arrivals, {how}, {}",
        workload.name,
        phase.name,
        counted(phase.threads.into(), "thread", "threads"),
    )
}

fn text(workload: &Workload, place: usize, limits: &Limits, subjects: &[Subject]) -> String {
    let mut text = format!("{}\n\n{}\n{LEGEND}\n", question(workload, place, limits), rows(subjects).text());
    for reason in reasons(subjects) {
        let _ = writeln!(text, "{reason}");
    }
    text
}

/// The page with the table, the reasons and the curves. `source`: where the figures are from.
pub(super) fn page(
    workload: &Workload,
    place: usize,
    limits: &Limits,
    subjects: &[Subject],
    (figure, curves): (&'static str, &[RateCurve]),
    source: &str,
) -> String {
    rate_page(&RatePage {
        workload: &workload.name,
        figure,
        question: &question(workload, place, limits),
        table: &rows(subjects),
        reasons: &reasons(subjects),
        legend: &LEGEND.replace('\n', " "),
        curves,
        source,
    })
}

/// Why engines have no rate, a line each.
fn reasons(subjects: &[Subject]) -> Vec<String> {
    let of = |subject: &Subject| {
        let reason = match (&subject.failure, subject.outcome()) {
            (Some(failure), _) => failure.text.clone(),
            (None, Some(Outcome::NoAnswer(reason))) => reason.to_string(),
            _ => return None,
        };
        let estimate = subject.unconfirmed().map_or_else(String::new, |own| {
            format!("; about {}/s was kept in the search, but no run confirmed it", rate(rounded(own)))
        });
        Some(format!("{}: {reason}{estimate}", subject.name))
    };
    subjects.iter().filter_map(of).collect()
}

/// A rate to three digits: an estimate has no more.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf((rate.log10().floor() - 2.0).max(0.0));
    (rate / unit).round() * unit
}

/// A row for each engine.
fn rows(subjects: &[Subject]) -> Table {
    let titles = [
        "requests/s",
        "breaks at",
        "p50",
        "p99",
        "p99.9",
        "p99 at 50 %",
        "70 %",
        "90 %",
        "closed loop",
        "probes",
    ];
    let mut columns = vec![("engine", Align::Left), ("level", Align::Left)];
    columns.extend(titles.map(|title| (title, Align::Right)));
    let mut table = Table::with_titles(&columns);
    for subject in subjects {
        let (holds, broke) = match subject.outcome() {
            Some(Outcome::Holds { rate: own, broke, .. }) => {
                (rate(*own), broke.map_or_else(|| "-".into(), rate))
            }
            Some(Outcome::AtLeast { rate: own, .. }) => (format!(">= {}", rate(*own)), "-".into()),
            _ => ("-".to_string(), "-".to_string()),
        };
        let mut row = vec![subject.name.clone(), level(subject), holds, broke];
        let confirmed = subject.confirmed().map(|(_, seen)| seen);
        let of = |part, of| time(confirmed.and_then(|seen| seen.response(part, of)));
        row.extend([of(1, 2), of(99, 100), of(999, 1_000)]);
        for part in &PARTS[..SHOWN] {
            let seen = subject.seen.iter().find(|seen| seen.part == Some(*part));
            row.push(time(seen.and_then(|seen| seen.response(99, 100))));
        }
        let closed = subject.closed.as_ref().map_or_else(|| "-".into(), |closed| rate(closed.ops_per_second));
        row.extend([closed, subject.seen.iter().filter(|seen| seen.part.is_none()).count().to_string()]);
        table.push(row);
    }
    table
}

fn csv(workload: &Workload, limits: &Limits, subjects: &[Subject]) -> String {
    let mut text = String::from(
        "workload,engine,level,slo,slo_rate_per_second,breaks_at_per_second,response_p50_ns,response_p99_ns,response_p999_ns,\
         response_p99_ns_at_50_percent,response_p99_ns_at_70_percent,response_p99_ns_at_90_percent,closed_loop_ops_per_second\n",
    );
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let exact = |value: f64| if value > 0.0 { format!("{value:.3}") } else { String::new() };
    for subject in subjects {
        let confirmed = subject.confirmed();
        let broke = match subject.outcome() {
            Some(Outcome::Holds { broke, .. }) => broke.unwrap_or(0.0),
            _ => 0.0,
        };
        let of = |part, of| number(confirmed.and_then(|(_, seen)| seen.response(part, of)));
        let at = |part: &f64| {
            let seen = subject.seen.iter().find(|seen| seen.part == Some(*part));
            number(seen.and_then(|seen| seen.response(99, 100)))
        };
        let mut cells = vec![
            workload.name.clone(),
            csv_cell(&subject.name),
            level(subject),
            csv_cell(&limits.to_string()),
        ];
        cells.push(exact(confirmed.map_or(0.0, |(rate, _)| rate)));
        cells.extend([exact(broke), of(1, 2), of(99, 100), of(999, 1_000)]);
        cells.extend(PARTS[..SHOWN].iter().map(at));
        cells.push(exact(subject.closed.as_ref().map_or(0.0, |closed| closed.ops_per_second)));
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

/// The effective durability level of an engine; `-` if unknown.
fn level(subject: &Subject) -> String {
    let level = subject.closed.as_ref().and_then(|closed| closed.level);
    level.map_or_else(|| "-".to_string(), |level| level.to_string())
}

/// The curve of an engine: of several runs at a rate, the last one.
pub(super) fn curve(subject: &Subject, part: u64, of: u64) -> RateCurve {
    let mut points: Vec<(f64, Option<f64>)> = Vec::new();
    for seen in &subject.seen {
        let point = (seen.rate, seen.response(part, of).map(|ns| ns as f64));
        match points.iter_mut().find(|known| known.0 == seen.rate) {
            Some(known) => *known = point,
            None => points.push(point),
        }
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    RateCurve { engine: subject.name.clone(), points }
}

/// The curves as characters, with a letter for each engine; both axes are logarithmic.
pub(super) fn drawing(figure: &str, curves: &[RateCurve]) -> String {
    let known = || curves.iter().flat_map(|curve| curve.points.iter().filter_map(|(x, y)| Some((*x, (*y)?))));
    let span = |values: &mut dyn Iterator<Item = f64>| {
        values
            .map(f64::ln)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ln| (low.min(ln), high.max(ln)))
    };
    let (x_low, x_high) = span(&mut known().map(|(x, _)| x));
    let (y_low, y_high) = span(&mut known().map(|(_, y)| y));
    if known().count() < 2 {
        return String::new();
    }
    let place = |value: f64, low: f64, high: f64, size: usize| {
        if high > low { ((value.ln() - low) / (high - low) * (size - 1) as f64).round() as usize } else { 0 }
    };
    let mut rows = vec![vec![b' '; SIZE.0]; SIZE.1];
    for (letter, curve) in (b'a'..=b'z').zip(curves) {
        for (x, y) in curve.points.iter().filter_map(|(x, y)| Some((*x, (*y)?))) {
            rows[SIZE.1 - 1 - place(y, y_low, y_high, SIZE.1)][place(x, x_low, x_high, SIZE.0)] = letter;
        }
    }
    let mut text = format!("\n{figure} by requests per second\n");
    for (at, row) in rows.iter().enumerate() {
        let ns = (y_high - (y_high - y_low) * at as f64 / (SIZE.1 - 1) as f64).exp();
        let title = if at % 5 == 0 { time_text(ns) } else { String::new() };
        let _ = writeln!(text, "{title:>8} |{}", String::from_utf8_lossy(row).trim_end());
    }
    let (from, to) = (rate(x_low.exp()), rate(x_high.exp()));
    let _ = writeln!(text, "{:>8} +{}", "", "-".repeat(SIZE.0));
    let _ = writeln!(text, "{:>9}{from}{to:>1$}", "", SIZE.0 + 1 - from.len());
    let names: Vec<String> = (b'a'..=b'z')
        .zip(curves)
        .map(|(letter, curve)| format!("{} {}", letter as char, curve.engine))
        .collect();
    let _ = writeln!(text, "{}", names.join("  "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_has_three_digits() {
        for (rate, wanted) in [(654_781.3, 655_000.0), (12_345.0, 12_300.0), (999.4, 999.0), (7.3, 7.0)] {
            assert_eq!(rounded(rate), wanted, "{rate}");
        }
    }
}
