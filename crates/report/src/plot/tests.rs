//! Tests of plots: each kind is a complete picture in one file, and charts without data are not drawn.

use super::*;
use crate::escape::HOSTILE;
use kvdyno_core::results::fixture;
use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, drawn};
use roxmltree::{Document, ParsingOptions};
use std::sync::Arc;

/// A workload with three sizes, ten engines, phases of four seconds.
fn sizes_of_ten() -> (Run, Summary) {
    let engines: Vec<String> = (0..10).map(|number| format!("engine-{number}")).collect();
    let engines: Vec<&str> = engines.iter().map(String::as_str).collect();
    let phases = [PhaseSketch::new("read", &["get"], 20_000)];
    let names = ["grow-1k", "grow-2k", "grow-4k"];
    let sketch = |(name, keys): (&'static str, u64)| Sketch {
        name,
        keys,
        variant_of: Some("grow"),
        phases: &phases,
        engines: &engines,
        cost_ns: 200_000,
        ..Sketch::EMPTY
    };
    let sketches: Vec<Sketch> = names.into_iter().zip([1_000, 2_000, 4_000]).map(sketch).collect();
    let (run, records) = drawn(&sketches);
    let summary = Summary::new(&run, records);
    (run, summary)
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse_with_options(svg, ParsingOptions::default()).unwrap();
    let texts =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.filter_map(|node| node.text().map(String::from)).collect()
}

#[test]
fn a_long_title_is_wrapped_so_that_it_stays_above_its_own_panel() {
    let (run, mut summary) = crate::scaling::tests::swept(&[1, 2, 4, 8], |_| 20_000);
    let name = "a phase whose name is so long that the title of its panel has several lines";
    summary.phases.iter_mut().for_each(|phase| phase.name = name.into());
    let svg = plot("scale").unwrap().svg(&summary, &run, &PlotChoice::default()).unwrap();
    let texts = texts(&svg);
    let first = texts.iter().position(|text| text.starts_with("grow / a phase")).unwrap();
    assert!(
        texts[first..first + 2].iter().all(|line| line.len() <= (WIDTH / CHARACTER) as usize),
        "{texts:?}"
    );
    assert!(texts[first..first + 3].join(" ").contains(name), "{texts:?}");
}

#[test]
fn every_kind_is_a_complete_picture_with_its_title_and_source() {
    let (run, summary) = sizes_of_ten();
    let (swept_run, swept) =
        crate::scaling::tests::swept(&[1, 2, 4, 8], |count| 20_000 / u64::from(count) + 500);
    let (capped_run, capped) = crate::data_to_memory::tests::swept();
    for plot in PLOTS {
        let (run, summary) = match plot.name {
            "scale" => (&swept_run, &swept),
            "memory" => (&capped_run, &capped),
            _ => (&run, &summary),
        };
        let svg = plot.svg(summary, run, &PlotChoice::default()).unwrap_or_else(|| panic!("{}", plot.name));
        let texts = texts(&svg);
        assert!(texts.iter().any(|text| text.ends_with(&format!(": {}", plot.name))), "{texts:?}");
        let source = texts.iter().find(|text| text.starts_with("Source: run ")).unwrap();
        assert!(source.contains("2026-11-20") && texts.join(" ").contains("Example CPU 3000"), "{texts:?}");
        assert!(
            !svg.contains("var(") && !svg.contains("class=\"r extra\"") && svg.is_ascii(),
            "{}",
            plot.name
        );
        for scale in [true, false] {
            let choice = PlotChoice { is_log: Some(scale), ..PlotChoice::default() };
            let svg = plot.svg(summary, run, &choice).unwrap();
            let other = if scale { "class=\"lin\"" } else { "class=\"log\"" };
            assert!(!svg.contains(other), "{}: only the requested scale", plot.name);
        }
    }
    assert!(PLOTS.iter().all(|one| PLOTS.iter().filter(|other| one.name == other.name).count() == 1));
    assert!(plot("pie").is_none());
}

#[test]
fn a_workload_that_grows_in_rounds_has_its_rates_by_size() {
    let insert = PhaseSketch { each_round: true, ..PhaseSketch::new("insert", &["insert"], 1_000) };
    let sketch = Sketch { name: "nudb-mixed", rounds: 3, phases: &[insert], ..Sketch::EMPTY };
    let (run, mut records) = drawn(&[sketch]);
    for record in &mut records {
        for (round, phase) in (1..).zip(&mut record.phases) {
            phase.keys_after = Some(round * 20_000);
        }
    }
    let summary = Summary::new(&run, records);
    let svg = plot("sizes").unwrap().svg(&summary, &run, &PlotChoice::default()).unwrap();
    let texts = texts(&svg);
    assert!(texts.contains(&"keys in the database after the round".to_string()), "{texts:?}");
    assert!(["20k", "50k"].iter().all(|tick| texts.contains(&tick.to_string())), "{texts:?}");
    assert_eq!(svg.matches("data-e=").count(), 2, "a line for each engine");
}

#[test]
fn only_the_fastest_of_many_lines_are_drawn_and_the_rest_is_counted() {
    let (run, summary) = sizes_of_ten();
    let svg = plot("sizes").unwrap().svg(&summary, &run, &PlotChoice::default()).unwrap();
    assert!(texts(&svg).contains(&"the 8 fastest of 10".to_string()));
    assert_eq!(svg.matches("data-e=").count(), 8);
    assert!(
        ["1k", "2k", "5k"].iter().all(|tick| texts(&svg).contains(&tick.to_string())),
        "{:?}",
        texts(&svg)
    );
}

#[test]
fn charts_without_data_are_not_drawn_and_a_phase_can_be_chosen() {
    let run = fixture::run();
    let summary = Summary::new(&run, fixture::records());
    let choice = |phase: &str| PlotChoice { phase: Some(phase.to_string()), ..PlotChoice::default() };
    assert!(plot("sizes").unwrap().svg(&summary, &run, &PlotChoice::default()).is_none());
    assert!(
        plot("series").unwrap().svg(&summary, &run, &PlotChoice::default()).is_none(),
        "one interval each"
    );
    let throughput = plot("throughput").unwrap();
    assert!(throughput.svg(&summary, &run, &choice("nothing")).is_none());
    for phase in ["read", "quick/read"] {
        let texts = texts(&throughput.svg(&summary, &run, &choice(phase)).unwrap());
        assert!(texts.contains(&"quick / read: ops/s".to_string()), "{texts:?}");
        assert!(!texts.contains(&"quick / fill: ops/s".to_string()), "{texts:?}");
    }
}

#[test]
fn hostile_strings_stay_text() {
    for evil in HOSTILE {
        let (mut run, mut records) = (fixture::run(), fixture::records());
        for trial in run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial)) {
            trial.engine = if trial.engine == "lmdb" { evil.to_string() } else { trial.engine.clone() };
            Arc::make_mut(&mut trial.workload).name = evil.to_string();
        }
        run.id = evil.to_string();
        run.machine.cpu_model = Some(evil.to_string());
        let summary = Summary::new(&run, records);
        for plot in PLOTS {
            plot.svg(&summary, &run, &PlotChoice::default())
                .iter()
                .for_each(|svg| assert!(!texts(svg).is_empty()));
        }
    }
}
