//! Tests of the summary: counted runs, ranks, and complete output.

use super::*;
use crate::results::audit::AuditVerdict;
use crate::results::audit::Certified;
use crate::results::fixture::{
    self,
    sketch::{PhaseSketch, Sketch, drawn},
};
use crate::results::statistics::Rank;
use crate::results::{CallTimes, Kind, Observed, StepKind};
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
fn a_cell_whose_times_do_not_account_for_its_calls_is_shown_without_a_rank() {
    let mut records = fixture::records();
    let record = records.iter_mut().find(|record| record.trial.engine == "redb").unwrap();
    record.phases[0].call_times = Some(CallTimes {
        calls: 100,
        called_ns: 6_400,
        waited_ns: 0,
        unaccounted_ns: 3_200,
        bound_ns: 200,
        calls_over_bound: 100,
        beyond: Some("the driver's times leave 50 % of the calls unaccounted".into()),
    });
    let (run, name) = (fixture::run(), record.phases[0].phase.name.clone());
    let summary = Summary::new(&run, records);
    let found = cell(phase(&summary, &name), "redb");
    assert!(found.rank.is_none() && found.ops_per_second.is_some(), "{found:?}");
    assert!(marks(found).contains(&"1/3 times unaccounted"), "{:?}", marks(found));
    let before = self::summary();
    assert!(cell(phase(&before, &name), "redb").rank.is_some(), "without it the cell is ranked");
}

#[test]
fn times_of_a_null_engine_are_no_warning_and_other_warnings_name_their_engines() {
    let mut records = fixture::records();
    let warn = |record: &mut Record, concern: Concern| {
        record.warnings = vec![concern.because(format!("Seen in {}.", record.trial.engine))];
    };
    for record in &mut records {
        match record.trial.engine.as_str() {
            "null" => warn(record, Concern::UnaccountedTime),
            "lmdb" | "redb" => warn(record, Concern::ShortSample),
            _ => record.warnings.clear(),
        }
    }
    let null = records.iter_mut().find(|record| record.trial.engine == "null").unwrap();
    null.phases[0].call_times = Some(CallTimes {
        calls: 100,
        called_ns: 6_400,
        waited_ns: 0,
        unaccounted_ns: 1_780,
        bound_ns: 2_100,
        calls_over_bound: 40,
        beyond: Some("the driver's times leave more of 40 of 100 calls unaccounted".into()),
    });
    let name = null.phases[0].phase.name.clone();
    let summary = Summary::new(&fixture::run(), records);
    let found: Vec<&TrialWarning> = summary.warnings.iter().filter(|found| found.trials > 0).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].warning.id, Concern::ShortSample.id());
    let seen = found[0].seen(6);
    let (one, other) = ("lmdb (write-map=false) and redb)", "redb and lmdb (write-map=false))");
    let is_it = seen.contains("(6 trials of ") && (seen.ends_with(one) || seen.ends_with(other));
    assert!(is_it, "{seen}");
    let floor = phase(&summary, &name).floors.iter().find(|cell| cell.engine == "null").unwrap();
    assert!(!marks(floor).iter().any(|mark| mark.contains("unaccounted")), "{:?}", marks(floor));
}

#[test]
fn a_cell_whose_level_is_contradicted_is_shown_without_a_rank() {
    let with = |verdict| {
        let mut records = fixture::records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "redb") {
            let reason = Some("20 of 20 puts were acknowledged before any sync began".to_string());
            record.phases[0].observed = Some(Observed {
                syncs_per_commit: Some(0.5),
                calls_per_commit: [("fdatasync".to_string(), 0.5)].into(),
                verdict,
                reason,
                certified: None,
            });
        }
        let name = records[0].phases[0].phase.name.clone();
        cell(phase(&Summary::new(&fixture::run(), records), &name), "redb").clone()
    };
    let found = with(AuditVerdict::Contradicted);
    assert!(found.rank.is_none() && found.ops_per_second.is_some(), "{found:?}");
    assert!(found.syncs_per_commit == Some(0.5) && marks(&found).contains(&"syncs/commit 0.50"), "{found:?}");
    let note = found.notes.iter().find(|note| note.mark == "level contradicted").unwrap();
    let detail = "20 of 20 puts were acknowledged before any sync began; not ranked";
    assert_eq!(note.detail.as_deref(), Some(detail));
    for verdict in [AuditVerdict::Agrees, AuditVerdict::Stronger, AuditVerdict::NotObserved] {
        let found = with(verdict);
        assert!(found.rank.is_some() && !marks(&found).contains(&"level contradicted"), "{found:?}");
    }
}

/// The fixture, in which an engine at level `process` is another one, in this version and with these options.
fn replaced(engine: &str, version: &str, options: &[(&str, &str)]) -> Summary {
    let (mut run, mut records) = (fixture::run(), fixture::records());
    let options: Vec<_> = options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let trials = run.plan.trials.iter_mut().chain(records.iter_mut().map(|record| &mut record.trial));
    for trial in trials.filter(|trial| trial.engine == "sled") {
        (trial.engine, trial.options) = (engine.to_string(), options.clone());
    }
    for facts in
        records.iter_mut().filter(|record| record.trial.engine == engine).map(|record| &mut record.engine)
    {
        let facts = std::sync::Arc::make_mut(facts.as_mut().expect("the fixture has it"));
        (facts.name, facts.version) = (engine.to_string(), version.to_string());
    }
    Summary::new(&run, records)
}

#[test]
fn an_engine_that_a_certificate_of_its_version_contradicts_has_no_rank_and_a_note_that_says_why() {
    let certified = crate::results::certificate::certified("badger", "v4.9.6", Durability::Process);
    assert!(certified.is_some_and(|certified| certified.is_contradicted), "{certified:?}");
    let own = replaced("badger", "v4.9.6", &[]);
    // A read breaks no promise, but the engine that it is read from does.
    for name in ["fill", "read"] {
        let found = cell(phase(&own, name), "badger");
        assert!(found.rank.is_none() && found.ratio.is_none(), "{found:?}");
        assert!(found.ops_per_second.is_some() && found.safety.is_contradicted(), "{found:?}");
        let note = found.notes.iter().find(|note| note.mark == "level contradicted").unwrap();
        let detail = note.detail.as_deref().unwrap_or_default();
        assert!(
            detail.contains("kills left lost or wrong data (results/certificates/badger-v4.9.6.md)"),
            "{detail}"
        );
        assert!(detail.ends_with("; not ranked"), "{detail}");
        assert!(cell(phase(&own, name), "lmdb").rank.is_some());
    }
    for other in [replaced("badger", "v4.9.5", &[]), replaced("badger", "v4.9.6", &[("sync", "true")])] {
        let found = cell(phase(&other, "read"), "badger");
        assert!(found.rank.is_some() && !marks(found).contains(&"level contradicted"), "{found:?}");
        assert_eq!(found.safety.mark(), Some('?'));
    }
}

#[test]
fn references_are_ranked_apart_also_in_records_that_call_them_embedded() {
    let summary = replaced("memory-btree", "0.1.0", &[]);
    let read = phase(&summary, "read");
    let kinds: Vec<Kind> = read.groups.iter().map(|group| group.kind).collect();
    assert_eq!(kinds, [Kind::Embedded, Kind::Embedded, Kind::Reference]);
    let [own] = &read.groups[2].cells[..] else { panic!("{:?}", read.groups[2]) };
    assert_eq!((own.engine.as_str(), own.rank.map(|rank| rank.of)), ("memory-btree", Some(1)));
    assert_eq!(read.groups[2].name(), "process, references");
}

#[test]
fn the_crashes_of_a_certificate_are_beside_the_level() {
    let certified = |losses, is_contradicted| Certified {
        class: "nothing acknowledged is lost".to_string().into(),
        crashes: 600,
        losses,
        is_contradicted,
    };
    for (certified, mark) in [
        (certified(0, false), "600 crashes, 0 losses"),
        (certified(1, false), "600 crashes, 1 loss"),
        (certified(2, true), "600 crashes, 2 losses: contradicted"),
    ] {
        let mut records = fixture::records();
        for record in records.iter_mut().filter(|record| record.trial.engine == "redb") {
            record.phases[0].observed = Some(Observed {
                syncs_per_commit: Some(1.0),
                calls_per_commit: Default::default(),
                verdict: AuditVerdict::Agrees,
                reason: None,
                certified: Some(certified.clone()),
            });
        }
        let name = records[0].phases[0].phase.name.clone();
        let summary = Summary::new(&fixture::run(), records);
        let found = cell(phase(&summary, &name), "redb");
        let note = found.notes.iter().find(|note| note.mark == mark);
        let note = note.unwrap_or_else(|| panic!("{mark}: {:?}", marks(found)));
        assert_eq!(note.detail.as_deref(), Some("kvdyno prove --certificate: nothing acknowledged is lost"));
    }
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
fn engines_are_ranked_only_against_others_at_the_same_effective_level() {
    let summary = summary();
    let fill = phase(&summary, "fill");
    let levels: Vec<Durability> = fill.groups.iter().map(|group| group.durability_effective).collect();
    assert_eq!(levels, [Durability::Process, Durability::Power]);
    for group in summary.phases.iter().flat_map(|phase| &phase.groups) {
        for cell in &group.cells {
            assert_eq!(cell.durability_effective, Some(group.durability_effective), "{}", cell.engine);
        }
    }
    assert_eq!(fill.groups[1].cells[0].engine, "redb");
    assert_eq!(fill.groups[1].cells[0].rank, Some(Rank { best: 1, worst: 1, of: 1 }));
}

#[test]
fn rows_are_sorted_by_their_medians_and_three_runs_give_no_rank() {
    let summary = summary();
    let read = &phase(&summary, "read").groups[0].cells;
    let order: Vec<&str> = read.iter().map(|cell| cell.engine.as_str()).collect();
    assert_eq!(order, ["lmdb", "sled", "fjall", "sqlite"]);
    let ranks: Vec<Option<Rank>> = read.iter().map(|cell| cell.rank).collect();
    let open = Some(Rank { best: 1, worst: 3, of: 3 });
    assert_eq!(ranks, [open, open, open, None]);
    // The ratio of the second row is estimated nevertheless.
    let ratio = read[1].ratio.unwrap();
    let interval = ratio.interval.unwrap();
    assert!((ratio.value - 635.0 / 925.0).abs() < 0.01, "{ratio:?}");
    assert!(interval.low < ratio.value && ratio.value < interval.high && interval.high < 1.0, "{interval:?}");
    assert_eq!((read[0].ratio.unwrap().value, read[3].ratio), (1.0, None));
}

#[test]
fn null_engines_are_the_floor_and_mutants_are_not_ranked() {
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
fn failed_runs_stay_visible_with_their_cause_and_remove_the_rank() {
    let summary = summary();
    let mixed = cell(phase(&summary, "mixed"), "fjall");
    assert_eq!((mixed.counted_runs, mixed.rank), (2, None));
    assert!(mixed.ops_per_second.is_some());
    assert_eq!(mixed.notes[0].mark, "1/3 failed");
    assert_eq!(mixed.notes[0].detail.as_deref(), Some("run 2: crashed: SIGABRT: aborting"));
    // The phases before the crash were complete.
    let fill = cell(phase(&summary, "fill"), "fjall");
    assert_eq!(fill.counted_runs, 3);
    assert!(fill.rank.is_some());
    assert_eq!(marks(fill), ["1/3 failed later"]);
    let crashed = summary.failures.iter().find(|failure| failure.engine == "fjall").unwrap();
    assert_eq!(crashed.details.last().map(String::as_str), Some("aborting"));
    assert_eq!(summary.failures.len(), 4);
}

#[test]
fn an_unsupported_phase_has_a_reason() {
    let summary = summary();
    let sled = cell(phase(&summary, "sync"), "sled");
    assert_eq!(marks(sled), ["did not run"]);
    assert_eq!(sled.notes[0].detail.as_deref(), Some("the engine cannot reach level power"));
    assert_eq!((sled.ops_per_second, sled.durability_effective), (None, None));
    assert_eq!(sled.durability_requested, Durability::Power);
}

#[test]
fn a_row_says_how_many_of_its_runs_did_not_run_and_why() {
    let mut records = fixture::records();
    let record = records.iter_mut().find(|record| record.trial.engine == "redb").unwrap();
    let text = "phase fill: loaded 1,960 of 2,000 keys in 30 s".to_string();
    record.outcome = Outcome::Failed { cause: Cause::TooSlow, text };
    record.phases[0].ended_by = crate::results::EndedBy::Failure;
    record.phases[0].not_run = Some("cut short".to_string());
    let summary = Summary::new(&fixture::run(), records);
    let found = cell(phase(&summary, "fill"), "redb");
    assert_eq!((found.counted_runs, found.notes[0].mark.as_str()), (2, "1/3 did not run"));
    let detail = found.notes[0].detail.as_deref().unwrap();
    assert!(detail.ends_with(": too slow: phase fill: loaded 1,960 of 2,000 keys in 30 s"), "{detail}");
}

#[test]
fn a_run_that_was_too_slow_costs_that_run_and_not_the_rank() {
    let slow = [1.10, 1.21, 1.33, 1.42, 1.54];
    let fast = [1.00, 1.10, 1.21, 1.29, 1.41];
    let also = [2.01, 2.19, 2.44, 2.57, 2.83];
    let ranks_without = |missing: &[u32]| {
        let (run, mut records) = timed(&[("fjall", &slow), ("lmdb", &fast), ("sled", &also)]);
        let of_lmdb = records.iter_mut().filter(|record| record.trial.engine == "lmdb");
        for record in of_lmdb.filter(|record| missing.contains(&record.trial.repetition)) {
            let text = "phase read: loaded 1,960 of 2,000 keys in 30 s".to_string();
            record.outcome = Outcome::Failed { cause: Cause::TooSlow, text };
            record.phases[0].ended_by = crate::results::EndedBy::Failure;
            record.phases[0].not_run = Some("cut short".to_string());
        }
        let summary = Summary::new(&run, records);
        let found = cell(phase(&summary, "read"), "lmdb");
        assert_eq!(found.counted_runs as usize, 5 - missing.len());
        if !missing.is_empty() {
            assert_eq!(found.notes[0].mark, format!("{}/5 did not run", missing.len()));
        }
        ranks(&summary)
    };
    assert_eq!(ranks_without(&[]), ["lmdb 1", "fjall 2", "sled 3"]);
    assert_eq!(ranks_without(&[4]), ["lmdb 1", "fjall 2", "sled 3"]);
    let two = ranks_without(&[2, 4]);
    assert!(two.contains(&"lmdb -".to_string()), "two of five are too many: {two:?}");
}

#[test]
fn trials_without_a_record_are_counted_as_pending() {
    let summary = summary();
    assert_eq!(summary.pending, 1);
    let sqlite = cell(phase(&summary, "read"), "sqlite");
    assert_eq!(sqlite.runs[2].state, RunState::Pending);
    assert_eq!((sqlite.counted_runs, sqlite.rank, sqlite.ratio), (2, None, None));
    assert_eq!(sqlite.ops_per_second_interval.map(|interval| interval.level), Some(0.5));
    let nothing = Summary::new(&fixture::run(), Vec::new());
    assert_eq!(nothing.pending, 21);
    assert!(nothing.phases.iter().all(|phase| phase.groups.is_empty() && phase.unranked.len() == 6));
}

#[test]
fn figures_are_medians_over_runs_and_so_are_quantiles() {
    let summary = summary();
    let lmdb = cell(phase(&summary, "fill"), "lmdb");
    let records: Vec<Record> =
        fixture::records().into_iter().filter(|record| record.trial.engine == "lmdb").collect();
    let mut p99 = Vec::new();
    let mut max = 0;
    let mut rates = Vec::new();
    for record in &records {
        let times = &record.phases[0].kinds[0].service_ns;
        p99.push(times.quantile(99, 100).unwrap());
        max = max.max(times.max_ns().unwrap());
        rates.push(record.phases[0].ops as f64 / (record.phases[0].elapsed_ns as f64 / 1e9));
    }
    rates.sort_by(f64::total_cmp);
    assert_eq!(lmdb.ops_per_second, Some(rates[1]));
    let interval = lmdb.ops_per_second_interval.unwrap();
    assert_eq!((interval.low, interval.high, interval.level), (rates[0], rates[2], 0.75));
    p99.sort_unstable();
    assert_eq!(lmdb.latency.p99_ns, Some(p99[1]));
    assert_eq!(lmdb.latency.p99_range_ns, Some(Range { low: p99[0], high: p99[2] }));
    assert_eq!((lmdb.latency.max_ns, lmdb.latency.p999_ns), (Some(max), None), "2,000 ops have no p99.9");
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
fn unknown_figures_are_absent() {
    let summary = summary();
    let read = cell(phase(&summary, "read"), "lmdb");
    assert_eq!(read.write_amplification, None, "nothing was written");
    let null = &phase(&summary, "fill").floors[0];
    assert_eq!((null.write_amplification, null.disk_allocated_bytes), (None, None));
    let sync = cell(phase(&summary, "sync"), "lmdb");
    assert_eq!(sync.latency.count, 600);
    assert!(sync.latency.p50_ns.is_some());
    assert_eq!(sync.latency.p99_ns, None, "200 ops a run have no p99, although all runs together would");
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
    lmdb.phases[1].durability_effective = Some(Durability::Power);
    let summary = Summary::new(&fixture::run(), records);
    let levels: Vec<(Durability, u32)> = phase(&summary, "read")
        .groups
        .iter()
        .flat_map(|group| &group.cells)
        .filter(|cell| cell.engine == "lmdb")
        .map(|cell| (cell.durability_effective.unwrap(), cell.counted_runs))
        .collect();
    assert_eq!(levels, [(Durability::Process, 2), (Durability::Power, 1)]);
}

#[test]
fn wrong_answers_remove_all_figures_of_the_trial() {
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
    let step = |name: StepKind| {
        summary.steps.iter().find(|step| step.engine == "lmdb" && step.name == name).unwrap()
    };
    assert_eq!((step(StepKind::Open).median_ns, step(StepKind::Open).count), (Some(1_202_000), 3));
    assert_eq!(step(StepKind::Open).before_phase.as_deref(), Some("fill"));
    assert_eq!(step(StepKind::Close).before_phase, None);
    assert_eq!((step(StepKind::DropCaches).median_ns, step(StepKind::DropCaches).count), (None, 0));
    assert_eq!(step(StepKind::DropCaches).notes, ["not permitted"]);
}

#[test]
fn variants_are_in_their_natural_order_although_the_plan_mixes_them() {
    let phases = [PhaseSketch::new("read", &["get"], 100)];
    // Their keys, levels and names; the other workload is planned between them.
    let variant = |name: &'static str, keys: u64, level: Durability| Sketch {
        name,
        variant_of: name.starts_with("quick-").then_some("quick"),
        keys,
        level,
        phases: &phases,
        ..Sketch::EMPTY
    };
    let mixed = [
        variant("quick-p16", 2_000, Durability::Process),
        variant("quick-100k", 100_000, Durability::Process),
        variant("other", 1_000, Durability::Process),
        variant("quick-p8", 2_000, Durability::Process),
        variant("quick-1M", 1_000_000, Durability::Process),
        variant("quick-p8-power", 2_000, Durability::Power),
    ];
    let (mut run, records) = drawn(&mixed);
    let natural = ["quick-p8", "quick-p16", "quick-p8-power", "quick-100k", "quick-1M", "other"];
    let workloads = |summary: &Summary| {
        let mut names: Vec<String> = summary.phases.iter().map(|phase| phase.workload.clone()).collect();
        let mut steps: Vec<String> = summary.steps.iter().map(|step| step.workload.clone()).collect();
        steps.dedup();
        names.dedup();
        assert_eq!(steps, names);
        names
    };
    assert_eq!(workloads(&Summary::new(&run, records.clone())), natural);
    for (name, threads) in [("quick-p16", 4), ("quick-p8", 8)] {
        for trial in run.plan.trials.iter_mut().filter(|trial| trial.workload.name == name) {
            std::sync::Arc::make_mut(&mut trial.workload).phases[0].threads = threads;
        }
    }
    assert_eq!(workloads(&Summary::new(&run, records))[..2], ["quick-p16", "quick-p8"], "by threads first");
}

#[test]
fn warnings_appear_once_with_their_number_of_trials() {
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

/// Runs of one phase, with the duration of each engine in each run in seconds.
fn timed(engines: &[(&str, &[f64])]) -> (Run, Vec<Record>) {
    timed_in(&["read"], engines)
}

/// The same for several phases, which all take as long.
fn timed_in(phases: &[&'static str], engines: &[(&str, &[f64])]) -> (Run, Vec<Record>) {
    timed_as(phases, &["get"], engines)
}

/// The same with these ops.
fn timed_as(
    phases: &[&'static str],
    kinds: &'static [&'static str],
    engines: &[(&str, &[f64])],
) -> (Run, Vec<Record>) {
    let names: Vec<&str> = engines.iter().map(|(name, _)| *name).collect();
    let phases: Vec<PhaseSketch> = phases.iter().map(|name| PhaseSketch::new(name, kinds, 2_000)).collect();
    let sketch = Sketch {
        name: "quick",
        phases: &phases,
        engines: &names,
        runs: engines[0].1.len() as u32,
        ..Sketch::EMPTY
    };
    let (run, mut records) = drawn(&[sketch]);
    for record in &mut records {
        let (_, seconds) = engines.iter().find(|(name, _)| *name == record.trial.engine).unwrap();
        for phase in &mut record.phases {
            phase.elapsed_ns = (seconds[record.trial.repetition as usize - 1] * 1e9) as u64;
            phase.harness_share = 0.0;
        }
    }
    (run, records)
}

fn ranks(summary: &Summary) -> Vec<String> {
    let cells = &summary.phases[0].groups[0].cells;
    cells
        .iter()
        .map(|cell| format!("{} {}", cell.engine, cell.rank.map_or("-".into(), |rank| rank.to_string())))
        .collect()
}

#[test]
fn five_blocks_rank_clear_differences_despite_drift() {
    let slow = [1.1, 1.21, 1.33, 1.42, 1.54];
    let fast = [1.0, 1.1, 1.21, 1.29, 1.41];
    let also = [1.013, 1.085, 1.225, 1.28, 1.425];
    let (run, records) = timed(&[("fjall", &slow), ("lmdb", &fast), ("sled", &also)]);
    let summary = Summary::new(&run, records.clone());
    assert_eq!(ranks(&summary), ["lmdb 1-2", "sled 1-2", "fjall 3"]);
    let fjall = &summary.phases[0].groups[0].cells[2];
    let ratio = fjall.ratio.unwrap();
    assert!((ratio.value - 0.91).abs() < 0.01 && ratio.interval.unwrap().high < 1.0, "{ratio:?}");
    assert!(ratio.p.is_some_and(|p| p > 0.0 && p < 0.001), "{ratio:?}");
    let against = Summary::against(&run, records, Some("fjall"));
    let cells = &against.phases[0].groups[0].cells;
    assert_eq!((cells[2].ratio.unwrap().value, against.baseline.as_deref()), (1.0, Some("fjall")));
    assert!((cells[0].ratio.unwrap().value - 1.0 / ratio.value).abs() < 1e-9);
}

#[test]
fn a_difference_that_one_table_shows_may_be_chance_in_one_of_many() {
    // The p of the difference is 0.0057.
    let (one, other) = (
        [1.0 / 101.0, 1.0 / 96.0, 1.0 / 110.0, 1.0 / 99.0, 1.0 / 104.0],
        [1.0 / 95.0, 1.0 / 91.0, 1.0 / 101.0, 1.0 / 96.0, 1.0 / 94.0],
    );
    let engines: [(&str, &[f64]); 2] = [("lmdb", &one), ("fjall", &other)];
    let ranks_in = |phases: &[&'static str]| {
        let (run, records) = timed_in(phases, &engines);
        ranks(&Summary::new(&run, records))
    };
    assert_eq!(ranks_in(&["a"]), ["lmdb 1", "fjall 2"]);
    assert_eq!(ranks_in(&["a", "b", "c", "d", "e", "f", "g", "h"]), ["lmdb ~", "fjall ~"]);
}

#[test]
fn caches_of_different_default_sizes_are_a_warning_unless_one_size_was_requested() {
    let (run, mut records) = timed(&[("lmdb", &[1.0]), ("fjall", &[1.0]), ("redb", &[1.0])]);
    for record in &mut records {
        let facts = std::sync::Arc::make_mut(record.engine.as_mut().unwrap());
        facts.cache_bytes = match facts.name.as_str() {
            "fjall" => Some(264 << 10),
            "redb" => Some(128 << 20),
            _ => None,
        };
    }
    let told = |records: &[Record]| {
        let summary = Summary::new(&run, records.to_vec());
        let found = summary.warnings.into_iter().find(|found| found.warning.id == "caches-differ");
        found.map(|found| found.warning.text)
    };
    assert_eq!(told(&records), None, "a size was requested");
    records
        .iter_mut()
        .for_each(|record| std::sync::Arc::make_mut(&mut record.trial.workload).cache_bytes = None);
    let sizes = "The engines had caches of their default sizes, from 264 KiB (fjall) to 128 MiB (redb).";
    assert_eq!(told(&records).as_deref(), Some(sizes));
    records.retain(|record| record.trial.engine != "redb");
    assert_eq!(told(&records), None, "an engine without a cache has no other size");
}

#[test]
fn caches_are_ranked_separately_and_show_their_evictions() {
    let fast = [1.00, 1.01, 0.99, 1.00, 1.005];
    let slow = [1.35, 1.36, 1.34, 1.35, 1.355];
    let (run, mut records) = timed(&[("lmdb", &slow), ("quick-cache", &fast), ("fjall", &fast)]);
    for record in records.iter_mut().filter(|record| record.trial.engine == "quick-cache") {
        let facts = std::sync::Arc::make_mut(record.engine.as_mut().unwrap());
        facts.capabilities.push("evicts".to_string());
        let get = &mut record.phases[0].kinds[0];
        // Of 2000 reads, 400 were of keys that were never written, and 200 of evicted keys.
        (get.ops, get.misses, get.evicted) = (2_000, 600, 200);
    }
    let summary = Summary::new(&run, records);
    let groups = &summary.phases[0].groups;
    let names: Vec<String> = groups.iter().map(|group| group.name()).collect();
    assert_eq!(names, ["process", "process, caches"]);
    assert_eq!(ranks(&summary), ["fjall 1", "lmdb 2"]);
    let cache = &groups[1].cells[0];
    assert_eq!((cache.evicted_share, cache.rank), (Some(0.125), Some(Rank { best: 1, worst: 1, of: 1 })));
    assert!(marks(cache).contains(&"evicted 12.5 %"), "{:?}", marks(cache));
    assert!(groups[0].cells.iter().all(|cell| cell.evicted_share.is_none() && cell.class.kind.is_embedded()));
}

#[test]
fn servers_and_distributed_stores_are_ranked_by_themselves_and_say_what_they_promise() {
    let fast = [1.00, 1.01, 0.99, 1.00, 1.005];
    let slow = [1.35, 1.36, 1.34, 1.35, 1.355];
    let stores = [("lmdb", &fast), ("server", &slow), ("cluster", &slow), ("cache-server", &slow)];
    let (run, mut records) = timed(&stores.map(|(name, rates)| (name, &rates[..])));
    for record in &mut records {
        let facts = std::sync::Arc::make_mut(record.engine.as_mut().unwrap());
        let settings: &[(&str, &str)] = match record.trial.engine.as_str() {
            "server" => &[("class", "server, over a network")],
            "cluster" => &[
                ("class", "distributed, one machine"),
                ("replication", "3"),
                ("consistency", "linearizable"),
                ("persistence", "synced before the reply"),
            ],
            "cache-server" => {
                facts.capabilities.push("evicts".to_string());
                &[("class", "server, one machine")]
            }
            _ => &[],
        };
        facts.options.extend(settings.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    }
    let summary = Summary::new(&run, records);
    let groups = &summary.phases[0].groups;
    let names: Vec<String> = groups.iter().map(|group| group.name()).collect();
    let expected = ["process", "process, servers", "process, cache servers", "process, distributed stores"];
    assert_eq!(names, expected);
    for group in groups {
        assert_eq!(group.cells.len(), 1, "{}", group.name());
        assert_eq!(group.cells[0].rank, Some(Rank { best: 1, worst: 1, of: 1 }));
    }
    assert_eq!(
        groups[3].cells[0].class_words.as_deref(),
        Some("distributed, one machine, replication factor 3, linearizable, synced before the reply")
    );
    assert!(marks(&groups[1].cells[0]).contains(&"server") && groups[2].cells[0].evicted_share.is_some());
    let json = serde_json::to_value(&summary).unwrap();
    let kinds = json["phases"][0]["groups"].as_array().unwrap().iter().map(|group| group["kind"].clone());
    let kinds: Vec<serde_json::Value> = kinds.collect();
    assert_eq!(
        kinds,
        [serde_json::Value::Null, "server".into(), "cache-server".into(), "distributed".into()]
    );
}

#[test]
fn the_harness_does_not_decide_an_order() {
    let fast = [1.00, 1.01, 0.99, 1.00, 1.005];
    let slow = [1.05, 1.06, 1.04, 1.05, 1.055];
    let (run, mut records) = timed(&[("fjall", &slow), ("lmdb", &fast)]);
    assert_eq!(ranks(&Summary::new(&run, records.clone())), ["lmdb 1", "fjall 2"]);
    // Only the harness makes it slower.
    let lmdb = records.iter().find(|record| record.trial.engine == "lmdb").unwrap();
    let share = 1.0 - (1.0 - lmdb.phases[0].harness_share) / 1.05;
    for record in records.iter_mut().filter(|record| record.trial.engine == "fjall") {
        record.phases[0].harness_share = share;
    }
    let summary = Summary::new(&run, records.clone());
    assert_eq!(ranks(&summary), ["fjall ~", "lmdb ~"], "rows are sorted by what is compared");
    assert!(marks(&summary.phases[0].groups[0].cells[0]).contains(&"by engine time"));
    // By engine time it is the faster one.
    for record in records.iter_mut().filter(|record| record.trial.engine == "fjall") {
        record.phases[0].harness_share = 0.3;
    }
    let summary = Summary::new(&run, records);
    let cells = &summary.phases[0].groups[0].cells;
    assert!(cells.iter().all(|cell| marks(cell).contains(&"by engine time")), "{:?}", ranks(&summary));
    assert_eq!(ranks(&summary), ["fjall 1", "lmdb 2"]);
    assert_eq!(cells.iter().map(|cell| cell.leader).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn where_one_thread_writes_the_time_inside_an_engine_without_background_work_decides() {
    use kvdyno_measure::Usage;
    let fast = [1.00, 1.01, 0.99, 1.00, 1.005];
    let slow = [1.25, 1.26, 1.24, 1.25, 1.255];
    let of = |background_ns: Option<u64>| {
        let (run, mut records) = timed_as(&["write"], &["put"], &[("fjall", &slow), ("lmdb", &fast)]);
        for record in &mut records {
            let phase = &mut record.phases[0];
            // lmdb is the faster one by 10 % without the harness, which takes 12 % of the time of fjall.
            phase.harness_share = if record.trial.engine == "fjall" { 0.12 } else { 0.0 };
            phase.watcher = background_ns.map(|_| Usage {
                user_cpu_ns: Some(0),
                system_cpu_ns: Some(0),
                ..Usage::default()
            });
            for thread in &mut phase.threads {
                (thread.cpu_ns, thread.run_delay_ns) = (Some(thread.elapsed_ns), Some(0));
            }
            let calling_ns: u64 = phase.threads.iter().map(|thread| thread.elapsed_ns).sum();
            phase.usage.user_cpu_ns = Some(calling_ns + background_ns.unwrap_or(0));
            phase.usage.system_cpu_ns = Some(0);
        }
        Summary::new(&run, records)
    };
    let throughputs = |summary: &Summary| {
        let phase = &summary.phases[0];
        phase.groups[0].cells.iter().map(|cell| phase.throughput(cell)).collect::<Vec<_>>()
    };
    use crate::results::blocks::Throughput::{Exact, UpperBound};
    let idle = of(Some(0));
    assert_eq!(throughputs(&idle), [Exact, Exact]);
    assert_eq!(ranks(&idle), ["lmdb 1", "fjall 2"]);
    let leaders: Vec<bool> = idle.phases[0].groups[0].cells.iter().map(|cell| cell.leader).collect();
    assert_eq!(leaders, [true, false]);
    // Threads that work while the harness does, and older records, in which that is not known.
    assert_eq!(throughputs(&of(Some(50_000_000_000))), [UpperBound, UpperBound]);
    assert_eq!(throughputs(&of(None)), [UpperBound, UpperBound]);
}

#[test]
fn an_outlier_is_marked_in_its_row() {
    let steady = [1.00, 1.01, 0.99, 1.00, 1.005, 1.002, 0.995, 1.01, 0.998, 1.0];
    let other = [1.2, 1.21, 1.19, 1.2, 1.21, 1.2, 1.195, 1.21, 1.19, 1.2];
    let mut bad = other;
    bad[3] *= 2.0;
    let (run, records) = timed(&[("fjall", &bad), ("lmdb", &steady), ("sled", &other)]);
    let summary = Summary::new(&run, records);
    assert_eq!(ranks(&summary)[0], "lmdb 1");
    let fjall = summary.phases[0].groups[0].cells.iter().find(|cell| cell.engine == "fjall").unwrap();
    assert_eq!(marks(fjall), ["1/10 outlier"]);
    assert_eq!(
        fjall.notes[0].detail.as_deref(),
        Some("run 4 is excluded from comparisons with other engines")
    );
}

#[test]
fn a_single_run_has_ratios_without_intervals() {
    let (run, records) = timed(&[("fjall", &[2.0]), ("lmdb", &[1.0])]);
    let summary = Summary::new(&run, records);
    assert_eq!(ranks(&summary), ["lmdb ~", "fjall ~"]);
    let ratio = summary.phases[0].groups[0].cells[1].ratio.unwrap();
    assert_eq!((ratio.value, ratio.interval), (0.5, None));
}
