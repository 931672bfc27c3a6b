//! Tests of the summary: what is counted, what is ranked, and that nothing is dropped.

use super::*;
use crate::measure::Histogram;
use crate::results::fixture;
use crate::results::statistics::Rank;
use crate::workload::Durability;

fn summary() -> Summary {
    Summary::new(&fixture::run(), fixture::records())
}

fn phase<'a>(summary: &'a Summary, name: &str) -> &'a PhaseSummary {
    summary.phases.iter().find(|phase| phase.name == name).unwrap()
}

fn cells(phase: &PhaseSummary) -> impl Iterator<Item = &Cell> {
    let grouped = phase.groups.iter().flat_map(|group| &group.cells);
    phase.floors.iter().chain(grouped).chain(&phase.unranked)
}

fn cell<'a>(phase: &'a PhaseSummary, engine: &str) -> &'a Cell {
    cells(phase).find(|cell| cell.engine == engine).unwrap()
}

fn marks(cell: &Cell) -> Vec<&str> {
    cell.notes.iter().map(|note| note.mark.as_str()).collect()
}

#[test]
fn every_planned_engine_is_in_every_phase_once() {
    for phase in &summary().phases {
        let mut seen: Vec<&str> = cells(phase).map(|cell| cell.engine.as_str()).collect();
        seen.sort();
        let mut planned = fixture::ENGINES.to_vec();
        planned.sort();
        assert_eq!(seen, planned, "phase {}", phase.name);
        for cell in cells(phase) {
            assert_eq!(cell.runs.len(), 3, "{} in {}", cell.engine, phase.name);
        }
    }
}

#[test]
fn engines_of_different_level_in_force_are_never_in_one_ranking() {
    let summary = summary();
    let fill = phase(&summary, "fill");
    let levels: Vec<Durability> = fill.groups.iter().map(|group| group.durability_in_force).collect();
    assert_eq!(levels, [Durability::Process, Durability::Power]);
    for group in summary.phases.iter().flat_map(|phase| &phase.groups) {
        for cell in &group.cells {
            assert_eq!(cell.durability_in_force, Some(group.durability_in_force), "{}", cell.engine);
        }
    }
    assert_eq!(fill.groups[1].cells[0].engine, "redb");
    assert_eq!(fill.groups[1].cells[0].rank, Some(Rank { place: 1, tied: false }));
}

#[test]
fn ranks_follow_the_intervals() {
    let summary = summary();
    let read = &phase(&summary, "read").groups[0].cells;
    let order: Vec<&str> = read.iter().map(|cell| cell.engine.as_str()).collect();
    assert_eq!(order, ["lmdb", "sled", "fjall", "sqlite"]);
    assert_eq!(read[0].rank, Some(Rank { place: 1, tied: false }));
    let sync = &phase(&summary, "sync").groups[0].cells;
    let tied: Vec<(&str, Option<Rank>)> = sync.iter().map(|cell| (cell.engine.as_str(), cell.rank)).collect();
    let first = Some(Rank { place: 1, tied: true });
    assert_eq!(tied[..2], [("lmdb", first), ("redb", first)]);
}

#[test]
fn null_engines_are_the_floor_and_mutants_have_no_place() {
    let summary = summary();
    for phase in &summary.phases {
        assert_eq!(phase.floors.len(), 1);
        assert_eq!(phase.floors[0].rank, None);
        assert!(phase.floors[0].ops_per_second.is_some());
        let mutant = phase.unranked.iter().find(|cell| is_mutant(&cell.engine)).unwrap();
        assert_eq!((mutant.rank, mutant.ops_per_second), (None, None));
        assert_eq!(marks(mutant), ["3/3 failed"]);
    }
}

#[test]
fn failed_runs_stay_visible_with_their_cause_and_cost_the_rank() {
    let summary = summary();
    let mixed = cell(phase(&summary, "mixed"), "fjall");
    assert_eq!((mixed.counted_runs, mixed.rank), (2, None));
    assert!(mixed.ops_per_second.is_some());
    assert_eq!(mixed.notes[0].mark, "1/3 failed");
    assert_eq!(mixed.notes[0].detail.as_deref(), Some("run 2: crashed: SIGABRT"));
    // The phases before the crash were whole.
    let fill = cell(phase(&summary, "fill"), "fjall");
    assert_eq!(fill.counted_runs, 3);
    assert!(fill.rank.is_some());
    assert_eq!(marks(fill), ["1/3 failed later"]);
    let crashed = summary.failures.iter().find(|failure| failure.engine == "fjall").unwrap();
    assert_eq!(crashed.details.last().map(String::as_str), Some("aborting"));
    assert_eq!(summary.failures.len(), 4);
}

#[test]
fn a_phase_that_an_engine_cannot_do_says_why() {
    let summary = summary();
    let sled = cell(phase(&summary, "sync"), "sled");
    assert_eq!(marks(sled), ["did not run"]);
    assert_eq!(sled.notes[0].detail.as_deref(), Some("the engine cannot reach level power"));
    assert_eq!((sled.ops_per_second, sled.durability_in_force), (None, None));
    assert_eq!(sled.durability_asked, Durability::Power);
}

#[test]
fn trials_without_a_record_are_counted_as_pending() {
    let summary = summary();
    assert_eq!(summary.pending, 1);
    let sqlite = cell(phase(&summary, "read"), "sqlite");
    assert_eq!(sqlite.runs[2].state, RunState::Pending);
    assert_eq!((sqlite.counted_runs, sqlite.rank, sqlite.ops_per_second_interval), (2, None, None));
    let nothing = Summary::new(&fixture::run(), Vec::new());
    assert_eq!(nothing.pending, 21);
    assert!(nothing.phases.iter().all(|phase| phase.groups.is_empty() && phase.unranked.len() == 6));
}

#[test]
fn figures_are_medians_over_runs_and_quantiles_of_merged_histograms() {
    let summary = summary();
    let lmdb = cell(phase(&summary, "fill"), "lmdb");
    let records: Vec<Record> =
        fixture::records().into_iter().filter(|record| record.trial.engine == "lmdb").collect();
    let mut merged = Histogram::empty();
    let mut rates = Vec::new();
    for record in &records {
        merged.merge(&record.phases[0].kinds[0].service_ns);
        rates.push(record.phases[0].ops as f64 / (record.phases[0].elapsed_ns as f64 / 1e9));
    }
    rates.sort_by(f64::total_cmp);
    assert_eq!(lmdb.ops_per_second, Some(rates[1]));
    let interval = lmdb.ops_per_second_interval.unwrap();
    assert_eq!((interval.low, interval.high), (rates[0], rates[2]));
    assert_eq!(lmdb.latency.p99_ns, merged.quantile(99, 100));
    assert_eq!(lmdb.latency.max_ns, merged.max_ns());
    assert_eq!(lmdb.latency.count, 6_000);
    // 2,000 writes of 116 bytes each, and 290 bytes to storage for each.
    assert_eq!(lmdb.write_amplification, Some(2.5));
    assert_eq!(lmdb.disk_allocated_bytes, Some(450_000 + 2 * 4_096));
    assert_eq!(lmdb.space_amplification, Some(458_192.0 / (2_000.0 * 116.0)));
    assert_eq!(lmdb.rss_bytes, Some(30 << 20));
    assert_eq!(lmdb.check_level, Some(crate::results::CheckLevel::Full));
    assert_eq!(lmdb.options, [("write-map".to_string(), "false".to_string())]);
}

#[test]
fn what_is_not_known_is_absent() {
    let summary = summary();
    let read = cell(phase(&summary, "read"), "lmdb");
    assert_eq!(read.write_amplification, None, "nothing was written");
    let null = &phase(&summary, "fill").floors[0];
    assert_eq!((null.write_amplification, null.disk_allocated_bytes), (None, None));
    let sync = cell(phase(&summary, "sync"), "lmdb");
    assert_eq!(sync.latency.count, 600);
    assert!(sync.latency.p99_ns.is_some());
    assert_eq!(sync.latency.p999_ns, None, "600 ops have no p99.9");
}

#[test]
fn kinds_have_their_own_latencies() {
    let summary = summary();
    let kinds = &cell(phase(&summary, "mixed"), "lmdb").kinds;
    let names: Vec<(&str, u64)> = kinds.iter().map(|kind| (kind.kind.as_str(), kind.ops)).collect();
    assert_eq!(names, [("get", 4_500), ("update", 4_500)]);
    assert!(kinds.iter().all(|kind| kind.latency.count == kind.ops));
}

#[test]
fn a_large_harness_share_is_marked() {
    let summary = summary();
    assert!(marks(&phase(&summary, "fill").floors[0]).contains(&"harness 61%"));
    assert!(marks(cell(phase(&summary, "fill"), "lmdb")).is_empty());
    assert_eq!(marks(cell(phase(&summary, "mixed"), "sqlite")), ["1/3 missing", "emulated"]);
}

#[test]
fn a_phase_with_other_settings_is_shown_but_not_ranked() {
    let mut records = fixture::records();
    for record in records.iter_mut().filter(|record| record.trial.engine == "sled") {
        record.phases[1].phase.ops = 9;
    }
    let summary = Summary::new(&fixture::run(), records);
    let sled = cell(phase(&summary, "read"), "sled");
    assert_eq!((sled.rank, sled.settings_differ), (None, true));
    assert!(sled.ops_per_second.is_some());
    assert_eq!(phase(&summary, "read").settings.ops, 4_000);
}

#[test]
fn a_cell_whose_runs_had_different_levels_is_split() {
    let mut records = fixture::records();
    let lmdb = records.iter_mut().find(|record| record.trial.engine == "lmdb").unwrap();
    lmdb.phases[1].durability_in_force = Some(Durability::Power);
    let summary = Summary::new(&fixture::run(), records);
    let levels: Vec<(Durability, u32)> = phase(&summary, "read")
        .groups
        .iter()
        .flat_map(|group| &group.cells)
        .filter(|cell| cell.engine == "lmdb")
        .map(|cell| (cell.durability_in_force.unwrap(), cell.counted_runs))
        .collect();
    assert_eq!(levels, [(Durability::Process, 2), (Durability::Power, 1)]);
}

#[test]
fn wrong_answers_anywhere_cost_the_trial_all_its_figures() {
    let mut records = fixture::records();
    let lmdb = records.iter_mut().find(|record| record.trial.engine == "lmdb").unwrap();
    lmdb.phases[3].check.faults = 1;
    lmdb.phases[3].check.first_faults = vec!["key 3".to_string()];
    let faulty = Summary::new(&fixture::run(), records.clone());
    assert_eq!(cell(phase(&faulty, "sync"), "lmdb").notes[0].mark, "1/3 failed");
    let lmdb = records.iter_mut().find(|record| record.trial.engine == "lmdb").unwrap();
    lmdb.outcome = Outcome::WrongAnswers { faults: vec!["sync: key 3".to_string()] };
    let faulty = Summary::new(&fixture::run(), records);
    for phase in &faulty.phases {
        let lmdb = cell(phase, "lmdb");
        assert_eq!((lmdb.counted_runs, lmdb.rank), (2, None), "phase {}", phase.name);
    }
}

#[test]
fn steps_have_medians_and_notes() {
    let summary = summary();
    let step =
        |name: &str| summary.steps.iter().find(|step| step.engine == "lmdb" && step.name == name).unwrap();
    assert_eq!((step("open").median_ns, step("open").count), (Some(1_202_000), 3));
    assert_eq!(step("open").before_phase.as_deref(), Some("fill"));
    assert_eq!(step("close").before_phase, None);
    assert_eq!((step("drop-caches").median_ns, step("drop-caches").count), (None, 0));
    assert_eq!(step("drop-caches").notes, ["not permitted"]);
}

#[test]
fn warnings_are_told_once_with_their_number_of_trials() {
    let summary = summary();
    let counts: Vec<(&str, u32)> =
        summary.warnings.iter().map(|found| (found.warning.id.as_str(), found.trials)).collect();
    assert_eq!(counts, [("virtual-machine", 0), ("load", 2)]);
    assert_eq!(summary.absent.len(), 1);
    assert_eq!(summary.rss_before_open_bytes, Some(9 << 20));
}

#[test]
fn rows_of_another_version_or_clock_are_marked() {
    let (run, mut records) = (fixture::run(), fixture::records());
    for record in &mut records {
        match (record.trial.engine.as_str(), record.trial.repetition) {
            ("lmdb", 2) => record.tool_version = "0.9.9".to_string(),
            ("redb", _) => record.clock.as_mut().unwrap().ns_per_tick *= 1.2,
            _ => {}
        }
    }
    let summary = Summary::new(&run, records);
    let read = phase(&summary, "read");
    assert_eq!(marks(cell(read, "lmdb")), ["kvdyno 0.9.9"]);
    assert_eq!(marks(cell(read, "redb")), ["other clock"], "once for all of its runs");
    assert!(!marks(cell(read, "fjall")).contains(&"other clock"));
}

#[test]
fn a_disturbed_run_is_marked_in_its_row_with_what_disturbed_it() {
    use crate::measure::{Noise, PhaseNoise};
    let mut records = fixture::records();
    for record in records.iter_mut().filter(|record| record.trial.engine == "lmdb") {
        match record.trial.repetition {
            // A phase that knows, in a trial that was quiet as a whole.
            1 => {
                record.phases[1].noise =
                    Some(PhaseNoise { run_delay_share: Some(0.5), ..PhaseNoise::default() })
            }
            // An older record: the whole trial stands for each phase.
            2 => {
                record.noise =
                    Some(Noise { steal_share: Some(0.25), other_cpu_share: Some(0.3), ..Noise::default() });
            }
            _ => {}
        }
    }
    let summary = Summary::new(&fixture::run(), records);
    let notes = |name: &str| cell(phase(&summary, name), "lmdb").notes.clone();
    let read = &notes("read")[0];
    assert_eq!(read.mark, "2/3 disturbed");
    let detail = read.detail.as_deref().unwrap();
    assert!(detail.contains("run 1: run delay 50"), "{detail}");
    assert!(detail.contains("run 2: steal 25") && detail.contains(" and other programs 30"), "{detail}");
    assert_eq!(notes("fill")[0].mark, "1/3 disturbed", "its own phase was quiet in run 1");
    assert!(notes("fill")[0].detail.as_deref().unwrap().starts_with("run 2: "));
    assert_eq!(
        cell(phase(&summary, "read"), "lmdb").rank.map(|rank| rank.place),
        Some(1),
        "it keeps its rank"
    );
    assert!(!marks(cell(phase(&summary, "read"), "sled")).iter().any(|mark| mark.contains("disturbed")));
}
