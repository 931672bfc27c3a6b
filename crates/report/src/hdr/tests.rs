//! Percentile files and logs, compared with HdrHistogram's own reader and iterator.

use super::*;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};

fn sketched() -> (Summary, Run) {
    let phases =
        [PhaseSketch::new("fill", &["put"], 4_000), PhaseSketch::new("mixed", &["get", "put"], 2_000)];
    let (run, records) =
        drawn(&[Sketch { name: "quick", phases: &phases, runs: 2, cost_ns: 1_000_000, ..Sketch::EMPTY }]);
    (Summary::new(&run, records), run)
}

fn reference(histogram: &Histogram) -> hdrhistogram::Histogram<u64> {
    let mut theirs =
        hdrhistogram::Histogram::new_with_bounds(1, kvdyno_measure::histogram::HIGHEST_NS, 3).unwrap();
    histogram.buckets().for_each(|bucket| theirs.record_n(bucket.lowest_ns, bucket.count).unwrap());
    theirs
}

#[test]
fn percentile_lines_match_the_reference() {
    let mut histogram = Histogram::new();
    (1..=20_000_u64).for_each(|ns| histogram.record(ns * ns / 31 + 7));
    let text = percentile_text(&histogram);
    let lines: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(|letter: char| letter.is_ascii_digit()))
        .filter(|line| !line.contains("Percentile"))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    let theirs = reference(&histogram);
    let expected: Vec<_> = theirs.iter_quantiles(5).collect();
    assert!(lines.len() >= expected.len() / 2 && lines.len() > 50, "{} lines", lines.len());
    for line in &lines {
        let quantile = line[1];
        let value = theirs.value_at_quantile(quantile).min(histogram.max_ns().unwrap());
        let own = (line[0] * NS_PER_MS).round() as u64;
        assert!(theirs.equivalent(own, value), "{own} instead of {value} at {quantile}");
        assert_eq!(line[2] as u64, theirs.count_between(0, own), "at {quantile}");
    }
    // The levels are the same.
    for (line, level) in lines.iter().zip(&expected).take(40) {
        assert!((line[1] - level.quantile_iterated_to()).abs() < 1e-9, "{} {level:?}", line[1]);
    }
    assert_eq!(lines.last().map(|line| (line[1], line.len())), Some((1.0, 3)));
    let mean = text.lines().find(|line| line.starts_with("#[Mean")).unwrap();
    let figures: Vec<f64> = mean
        .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!((figures[0] * NS_PER_MS / theirs.mean() - 1.0).abs() < 1e-3, "{mean}");
    assert!((figures[1] * NS_PER_MS / theirs.stdev() - 1.0).abs() < 1e-3, "{mean}");
}

#[test]
fn an_empty_histogram_has_an_empty_file() {
    let text = percentile_text(&Histogram::empty());
    assert!(text.contains("Total count    =            0"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn there_is_a_percentile_file_for_each_phase_and_for_each_of_several_kinds() {
    let (summary, _) = sketched();
    let files: Vec<String> = percentile_pages(&summary).into_iter().map(|page| page.file).collect();
    let of = |engine: &str| ["fill", "mixed"].map(|phase| format!("quick.{phase}.{engine}.process")).to_vec();
    for engine in ["fjall", "lmdb"] {
        let [fill, mixed] = of(engine).try_into().unwrap();
        let wanted = [
            fill + ".hgrm",
            format!("{mixed}.hgrm"),
            format!("{mixed}.get.hgrm"),
            format!("{mixed}.put.hgrm"),
        ];
        for file in wanted {
            assert!(files.contains(&file), "no {file} in {files:?}");
        }
    }
    assert_eq!(files.len(), 8);
}

#[test]
fn the_reference_reads_the_log_and_finds_every_op() {
    let (summary, run) = sketched();
    let text = log(&summary, &run);
    let (mut ops, mut tags, mut last) = (0, Vec::new(), 0.0);
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry.expect("a line that the reference cannot read") {
            LogEntry::Interval(interval) => {
                let bytes = BASE64_STANDARD.decode(interval.encoded_histogram()).unwrap();
                let histogram: hdrhistogram::Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                ops += histogram.len();
                let max = histogram.max() as f64 / NS_PER_MS;
                assert!((interval.max() / max - 1.0).abs() < 2e-3, "{} {max}", interval.max());
                let tag = interval.tag().expect("every line has a tag").as_str().to_string();
                if tags.last() == Some(&tag) {
                    assert!(interval.start_timestamp().as_secs_f64() > last, "{tag} goes back in time");
                }
                last = interval.start_timestamp().as_secs_f64();
                tags.push(tag);
            }
            LogEntry::StartTime(time) | LogEntry::BaseTime(time) => {
                assert!(time.as_secs_f64() > 1.7e9, "{time:?}");
            }
        }
    }
    let rows = summary.records.iter().flat_map(|record| &record.phases).flat_map(|phase| &phase.series);
    let wanted: u64 = rows.flat_map(|row| &row.kinds).map(|(_, times)| times.count()).sum();
    assert!(wanted > 20_000);
    assert_eq!(ops, wanted);
    assert!(tags.contains(&"quick/mixed/lmdb/get/run2".to_string()), "{tags:?}");
    let pages = log_pages(&summary);
    assert_eq!(pages.len(), 4);
    assert!(pages.iter().all(|page| page.file.ends_with(".hlog") && page.text.is_ascii()));
}

#[test]
fn dates_are_seconds_since_1970() {
    assert_eq!(epoch_seconds("1970-01-01T00:00:00Z"), 0.0);
    assert_eq!(epoch_seconds("2000-02-29T12:00:00Z"), 951_825_600.0);
    assert_eq!(epoch_seconds("2026-11-20T09:15:29Z"), 1_795_166_129.0);
    assert_eq!(epoch_seconds("yesterday"), 0.0);
}
