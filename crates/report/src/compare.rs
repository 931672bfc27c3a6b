//! The comparison of two runs, as `kvdyno compare` prints it.

use super::block::Block;
use super::figure::{UNKNOWN, known, text};
use kvdyno_core::results::comparison::{
    FAMILY_ERROR, FAMILY_ERROR_OF_FEW, FEWEST_RUNS, Row, RunComparison, Verdict,
};
use kvdyno_core::results::figures::Figure;
use kvdyno_core::results::label::Labels;
use kvdyno_core::results::statistics::FEWEST_FOR_ORDER;
use kvdyno_measure::text::{Align, Table, counted, plain_text};

const COLUMNS: [(&str, Align); 9] = [
    ("engine", Align::Left),
    ("base", Align::Right),
    ("new", Align::Right),
    ("ratio", Align::Right),
    ("interval", Align::Left),
    ("p", Align::Right),
    ("runs", Align::Right),
    ("change", Align::Left),
    ("notes", Align::Left),
];

/// For a terminal: the changes, and with `is_full` also the tables of all figures.
pub fn comparison_text(comparison: &RunComparison, is_full: bool) -> String {
    super::text::blocks(content(comparison, is_full))
}

/// For a page or a comment: the changes, and with `is_full` also the tables of all figures.
pub fn comparison_markdown(comparison: &RunComparison, is_full: bool) -> String {
    super::markdown::blocks(content(comparison, is_full))
}

/// The maximum number of notes and of other lines of a kind if not everything is shown.
const LINES: usize = 5;

fn content(comparison: &RunComparison, is_full: bool) -> Vec<Block> {
    let labels = Labels::new(comparison.rows.iter().map(|row| (row.engine.as_str(), &row.options[..])));
    let mut blocks = vec![
        Block::Title("kvdyno compare".to_string()),
        Block::Facts(vec![("base", plain_text(&comparison.base)), ("new", plain_text(&comparison.new))]),
    ];
    let mut changes = summary(comparison, &labels);
    changes.extend((!is_full).then(|| "--full shows all figures with their intervals.".to_string()));
    // The changes are the answer, and not cut.
    let most = if is_full { usize::MAX } else { LINES };
    for (title, lines, most) in [
        ("Not comparable (compared because of --force)", &comparison.differences, usize::MAX),
        ("Failed in the new run", &comparison.failures, usize::MAX),
        ("Changes", &changes, usize::MAX),
        ("Only in one run", &comparison.unmatched, most),
        ("Differences between the runs", &comparison.remarks, most),
        ("Notes on cells", &comparison.notes, most),
    ] {
        if lines.is_empty() {
            continue;
        }
        let mut shown: Vec<String> = lines.iter().take(most).map(|line| plain_text(line)).collect();
        let more = lines.len().saturating_sub(most);
        shown.extend((more > 0).then(|| format!("and {more} more (--full)")));
        blocks.extend([Block::Part(title.to_string()), Block::Lines(shown)]);
    }
    if !is_full {
        return blocks;
    }
    let phases = comparison.rows.chunk_by(|a, b| (&a.workload, &a.phase) == (&b.workload, &b.phase));
    for phase in phases {
        blocks.push(Block::Part(plain_text(&format!("{} / {}", phase[0].workload, phase[0].phase))));
        for rows in phase.chunk_by(|a, b| a.figure == b.figure) {
            // A figure that no engine has gets no table, such as a percentile of a small sample or the writes of a read-only phase.
            if rows.iter().any(|row| row.base_median.is_some() || row.new_median.is_some()) {
                blocks.push(Block::Section(title(rows[0].figure).to_string()));
                blocks.push(Block::Table(table(rows, &labels)));
            }
        }
    }
    blocks.push(Block::Part("How to read the tables".to_string()));
    blocks.push(Block::Lines(legend()));
    blocks
}

fn legend() -> Vec<String> {
    vec![
        "base, new: geometric means over runs without outliers (medians if fewer than 3 runs have the figure). ratio: new divided by base. interval: the 95 % confidence interval of the ratio, for this row alone. ops/s: by the wall clock, the harness's time included.".to_string(),
        format!(
            "p: the probability of such a difference if nothing changed, corrected for all rows of this output (Welch, Holm). change: ~ if p is not below {FAMILY_ERROR} ({FAMILY_ERROR_OF_FEW} for fewer than {FEWEST_FOR_ORDER} runs); - if the figure cannot be compared (fewer than {FEWEST_RUNS} runs, or not in all of them)."
        ),
        "The two runs were not interleaved, so a change of the machine between them appears as a change of the engine.".to_string(),
    ]
}

fn title(figure: &Figure) -> &'static str {
    figure.compared.map_or(figure.name, |compared| compared.title)
}

fn word(figure: &Figure, verdict: Verdict) -> &'static str {
    figure.compared.map_or(UNKNOWN, |compared| compared.word(verdict))
}

fn table(rows: &[Row], labels: &Labels) -> Table {
    let mut table = Table::with_titles(&COLUMNS);
    for row in rows {
        let found = row.compared.as_ref();
        let value = |value| text(row.figure.form, value);
        let aside = found.map(|found| found.set_aside).filter(|aside| *aside > 0);
        let level = format!("level {}", row.level);
        let notes = [
            (rows.iter().any(|other| other.level != row.level)).then_some(level),
            aside.map(|aside| counted(aside as u64, "outlier", "outliers")),
        ];
        table.push(vec![
            labels.of(&row.engine, &row.options),
            known(found.map(|found| found.base_mean).or(row.base_median), value),
            known(found.map(|found| found.new_mean).or(row.new_median), value),
            known(found, |found| super::figure::ratio(found.ratio)),
            known(found, |found| super::figure::ratio_range(found.interval.low, found.interval.high)),
            known(found, |found| p_text(found.p)),
            format!("{}+{}", row.base_runs, row.new_runs),
            known(row.verdict(), |verdict| word(row.figure, verdict).to_string()),
            notes.into_iter().flatten().collect::<Vec<_>>().join(", "),
        ]);
    }
    if let Some((mean, count)) = RunComparison::mean_ratio(rows.iter()).filter(|(_, count)| *count > 1) {
        let mut cells = vec![format!("geometric mean of {count}")];
        cells.extend([UNKNOWN; 2].map(String::from));
        cells.push(super::figure::ratio(mean));
        cells.resize(COLUMNS.len() - 1, String::new());
        cells.push(String::new());
        table.push(cells);
    }
    table
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "<0.001".to_string() } else { format!("{p:.3}") }
}

/// A line for each change, then the number of figures without a change.
fn summary(comparison: &RunComparison, labels: &Labels) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut same, mut unknown, mut changed) = (0, 0, 0);
    for row in &comparison.rows {
        let is_measured = row.base_median.is_some() || row.new_median.is_some();
        match row.verdict() {
            Some(Verdict::Open) => same += 1,
            None => unknown += u64::from(is_measured),
            Some(verdict) => {
                changed += 1;
                lines.push(plain_text(&format!(
                    "{} / {}, {}: {} {} ({})",
                    row.workload,
                    row.phase,
                    labels.of(&row.engine, &row.options),
                    title(row.figure),
                    change(row),
                    word(row.figure, verdict)
                )));
            }
        }
    }
    let unknown = match unknown {
        0 => String::new(),
        unknown => format!(" {} cannot be compared.", counted(unknown, "figure", "figures")),
    };
    lines.push(format!(
        "{} changed; {same} without a significant change.{unknown}",
        counted(changed, "figure", "figures")
    ));
    if !comparison.failures.is_empty() {
        lines.push(format!(
            "{} in the new run but not in the base run.",
            counted(comparison.failures.len() as u64, "cell failed", "cells failed")
        ));
    }
    if comparison.disturbed > 0 {
        lines.push(format!(
            "Most runs of {} were disturbed (see the notes): repeat the runs on an idle machine before you trust a change.",
            counted(comparison.disturbed as u64, "cell", "cells")
        ));
    }
    lines
}

/// `fell by 7.3 %`, `rose to 2.40 times the base`.
fn change(row: &Row) -> String {
    let Some(found) = &row.compared else { return "changed".to_string() };
    let verb = if found.ratio > 1.0 { "rose" } else { "fell" };
    if (0.5..2.0).contains(&found.ratio) {
        format!("{verb} by {:.1} %", (found.ratio - 1.0).abs() * 100.0)
    } else {
        format!("{verb} to {} times the base", super::figure::ratio(found.ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::results::comparison::Side;
    use kvdyno_core::results::figures::{RATE, figure};
    use kvdyno_core::results::fixture;
    use kvdyno_core::results::summary::Summary;

    #[test]
    fn the_changes_come_first_and_the_tables_only_on_request() {
        let run = fixture::run();
        let mut records = fixture::records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
            record.phases[1].elapsed_ns *= 2;
        }
        let (base, new) = (Summary::new(&run, fixture::records()), Summary::new(&run, records));
        let comparison = RunComparison::new(
            Side { run: &run, summary: &base },
            Side { run: &run, summary: &new },
            &[figure(RATE).unwrap()],
        );
        let (short, full) = (comparison_text(&comparison, false), comparison_text(&comparison, true));
        for text in [&short, &full] {
            let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{text}"));
            assert!(
                at("Changes") < at("slower") && at("slower") < at("without a significant change"),
                "{text}"
            );
            assert!(text.lines().position(|line| line == "Changes").is_some_and(|line| line < 25), "{text}");
        }
        assert!(short.contains("--full shows all figures") && !short.contains("geometric mean"), "{short}");
        assert!(full.contains("geometric mean of") && full.contains("How to read the tables"), "{full}");
        assert!(short.lines().count() < 40, "{short}");
    }
}
