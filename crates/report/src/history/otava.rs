//! A history for Apache Otava: a CSV file with a row for each commit and a column for each series, and the configuration that reads it.

use super::series::{History, Series};
use crate::escape::csv_cell;
use kvdyno_core::results::comparison::Better;
use kvdyno_measure::text::plain_text;
use std::fmt::Write;

/// The name of the test in the configuration.
const TEST: &str = "kvdyno";

/// The file: `time`, `commit`, and the series. Otava refuses empty cells and fills gaps of other sources with the value before them,
/// or else with the first one, so this does the same.
pub fn otava_csv(history: &History) -> String {
    let columns: Vec<Vec<f64>> = history.series.iter().map(|series| filled(history, series)).collect();
    let names = history.series.iter().map(|series| csv_cell(&name(series)));
    let heads: Vec<String> = ["time", "commit"].map(String::from).into_iter().chain(names).collect();
    let mut text = heads.join(",") + "\n";
    for (row, place) in measured(history).into_iter().enumerate() {
        let commit = &history.commits[place];
        let mut cells = vec![csv_cell(&plain_text(&commit.time)), csv_cell(&plain_text(&commit.id))];
        cells.extend(columns.iter().map(|column| column[row].to_string()));
        text += &(cells.join(",") + "\n");
    }
    text
}

/// The number of series with commits that they lack, for which [`otava_csv`] repeats a value.
pub fn repeated(history: &History) -> usize {
    let rows = measured(history).len();
    history.series.iter().filter(|series| series.points.len() < rows).count()
}

/// The configuration for a file `history.csv`. `direction` is 1 if more is better, and -1 otherwise.
pub fn otava_config(history: &History) -> String {
    let mut text = format!(
        "tests:\n  {TEST}:\n    type: csv\n    file: history.csv\n    time_column: time\n    attributes: [commit]\n    metrics:\n"
    );
    for series in &history.series {
        let direction = if series.figure.better == Better::Higher { 1 } else { -1 };
        // A text in JSON is one in YAML. Writing to a String cannot fail.
        let _ = write!(text, "      {:?}:\n        direction: {direction}\n", name(series));
    }
    text
}

/// `quick/read/redb(cache=1G)/power/p99`, without what ends a cell or a column.
fn name(series: &Series) -> String {
    let options: Vec<String> = series.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let options = if options.is_empty() { String::new() } else { format!("({})", options.join("+")) };
    let name =
        format!("{}/{}{options}/{}/{}", series.path, series.engine, series.level, series.figure_name());
    let safe = |letter: char| if " ,;'\"\\".contains(letter) { '_' } else { letter };
    plain_text(&name).chars().map(safe).collect()
}

/// The places of the commits that any of the series has.
fn measured(history: &History) -> Vec<usize> {
    let mut places: Vec<usize> =
        history.series.iter().flat_map(|series| &series.points).map(|point| point.commit).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// A value for each of these commits.
fn filled(history: &History, series: &Series) -> Vec<f64> {
    let mut points = series.points.iter().peekable();
    let mut value = series.points.first().map_or(0.0, |point| point.value);
    let at = |place: usize| {
        while let Some(point) = points.next_if(|point| point.commit <= place) {
            value = point.value;
        }
        value
    };
    measured(history).into_iter().map(at).collect()
}
