//! Verdicts on runs whose truth is known.

use super::*;
use crate::matrix::{Mark, matrices};
use crate::tests::scaled;
use kvdyno_core::results::fixture;
use kvdyno_core::results::fixture::sketch::{PhaseSketch, Sketch, at_rate, drawn};
use kvdyno_core::results::summary::Ratio;
use kvdyno_core::results::{Cause, Choice, Durability, Outcome, PhaseRecord, Record, Run};
use kvdyno_measure::Histogram;

/// Runs that differ by up to 4 %, differently for each engine.
fn noise(engine: &str, run: u32) -> f64 {
    1.0 + f64::from(run * engine.len() as u32 % 5) / 100.0
}

/// The verdict on a phase, which must have one level.
fn of<'a>(all: &'a [Verdict<'a>], phase: &str) -> &'a Verdict<'a> {
    let own: Vec<&Verdict> = all.iter().filter(|verdict| verdict.phase.name == phase).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    own[0]
}

fn leaders<'a>(verdict: &'a Verdict) -> Vec<&'a str> {
    verdict.leaders.iter().map(|cell| cell.engine.as_str()).collect()
}

/// The line on a phase.
fn line(summary: &Summary, phase: &str) -> String {
    let lines = brief(summary, true);
    let own: Vec<&String> = lines.iter().filter(|line| line.contains(&format!("({phase})"))).collect();
    assert_eq!(own.len(), 1, "{lines:?}");
    own[0].clone()
}

/// The summary with changed records.
fn changed(run: &Run, summary: Summary, change: impl Fn(&mut Record)) -> Summary {
    let mut records = summary.records;
    records.iter_mut().for_each(change);
    let trials = records.iter().map(|record| record.trial.clone()).collect();
    let run = Run { plan: kvdyno_core::results::Plan { trials, ..run.plan.clone() }, ..run.clone() };
    Summary::new(&run, records)
}

#[test]
fn a_clear_winner_is_named_with_the_interval_of_its_lead() {
    let (summary, _) = scaled(&["lmdb", "fjall", "sqlite"], 5, |engine, run| {
        noise(engine, run) * if engine == "lmdb" { 2.0 } else { 1.0 }
    });
    let all = verdicts(&summary);
    let read = of(&all, "read");
    assert_eq!((leaders(read), read.slower), (vec!["lmdb"], 2));
    let Statement::Winner(Lead { by: By::Times { value, interval: Some(interval), at_least }, .. }) =
        read.statement
    else {
        panic!("{:?}", read.statement)
    };
    assert!((1.9..2.1).contains(&value) && interval.low < 2.0 && 2.0 < interval.high, "{value} {interval:?}");
    assert!(at_least.is_some_and(|times| times > 1.0 && times < 2.0), "{at_least:?}");
    let text = line(&summary, "read");
    assert!(text.starts_with("point reads (read): lmdb (write-map=false), "), "{text}");
    assert!(text.contains("x ahead of ") && text.contains("..2.") && text.contains("; p99 "), "{text}");
}

/// A run of these engines in one phase, each slower than the one before it.
fn read_by(engines: &[&str]) -> (Run, Vec<Record>) {
    let phases = [PhaseSketch::new("read", &["get"], 100)];
    drawn(&[Sketch { name: "a", phases: &phases, engines, runs: 5, ..Sketch::EMPTY }])
}

#[test]
fn a_reference_of_this_project_is_never_the_winner() {
    let (run, records) = read_by(&["memory-btree", "fjall", "lmdb"]);
    let summary = Summary::new(&run, records);
    let text = line(&summary, "read");
    assert!(text.starts_with("point reads (read): fjall, ") && text.contains("x ahead of lmdb ("), "{text}");
    let sentences = verdict(&summary).join("\n");
    assert!(sentences.contains("the winner is fjall") && !sentences.contains("memory-btree"), "{sentences}");
    assert!(!recommendation(&summary, &run).join("\n").contains("memory-btree"));
    let (run, records) = read_by(&["memory-btree", "memory-map"]);
    let expected = "only references of kvdyno were measured, which have no rank among libraries";
    assert_eq!(brief(&Summary::new(&run, records), true), [expected]);
}

#[test]
fn leaders_are_named_and_not_counted_up_to_the_number_that_fits() {
    let names: Vec<String> = (1..=10).map(|number| format!("engine-{number:02}")).collect();
    for (count, expected) in
        [(6, "engine-05 and engine-06"), (7, "engine-05 and 2 others"), (10, "engine-05 and 5 others")]
    {
        let engines: Vec<&str> = names[..count].iter().map(String::as_str).collect();
        let (run, mut records) = read_by(&engines);
        records.iter_mut().for_each(|record| record.phases[0].elapsed_ns = 1_000_000);
        let text = line(&Summary::new(&run, records), "read");
        assert!(text.starts_with("point reads (read): no difference shown between engine-01, "), "{text}");
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn leaders_that_overlap_are_all_named_and_the_rest_is_behind_by_no_more_than_is_shown() {
    let (summary, _) = scaled(&["lmdb", "fjall", "sqlite", "sled"], 5, |engine, run| {
        noise(engine, run) * if engine.starts_with('s') { 1.0 } else { 3.0 }
    });
    let all = verdicts(&summary);
    let read = of(&all, "read");
    let mut names = leaders(read);
    names.sort_unstable();
    assert_eq!((names, read.slower), (vec!["fjall", "lmdb"], 2));
    let Statement::Leaders { lead: Lead { by: By::Times { at_least: Some(times), .. }, .. }, by_harness } =
        &read.statement
    else {
        panic!("{:?}", read.statement)
    };
    assert!(by_harness.is_empty() && (2.0..3.0).contains(times), "{times}");
    let text = line(&summary, "read");
    let next = if text.contains(" ahead of sqlite (") { "sqlite" } else { "sled" };
    // The ratio is that of the first leader, and says so.
    let first = crate::describe::cell_name(read.leaders[0]);
    assert!(text.contains(" or ") && text.contains(&format!("; {first} is ")), "{text}");
    assert!(text.contains(&format!("x ahead of {next} (2.")) && text.ends_with(')'), "{text}");
    assert!(
        brief_legend(&summary).is_some_and(|legend| legend.contains("the other ranked engines are slower"))
    );
    let without = brief(&summary, false).into_iter().find(|line| line.contains("(read)")).unwrap();
    assert!(without.contains(" or ") && !without.contains("ahead of"), "{without}");
}

#[test]
fn engines_that_cannot_be_distinguished_have_no_winner() {
    let (summary, _) = scaled(&["lmdb", "fjall", "sqlite"], 5, noise);
    let all = verdicts(&summary);
    let read = of(&all, "read");
    assert_eq!((read.leaders.len(), read.slower), (3, 0));
    assert_eq!(read.statement, Statement::NoDifference { by_harness: Vec::new() });
    let engines = "no difference shown between lmdb (write-map=false), sqlite and fjall";
    assert_eq!(line(&summary, "read"), format!("point reads (read): {engines}"));
    // Why, where the settings say it: one thread whose writes are synced one by one.
    let expected =
        format!("durable single writes (sync): {engines}: each write waits for a sync of the disk");
    assert_eq!(line(&summary, "sync"), expected);
}

#[test]
fn fewer_than_five_runs_are_one_line() {
    for (runs, expected) in [
        (1, "inconclusive: a single run shows no order, at least 5 runs are needed"),
        (4, "inconclusive: 4 runs show no order, at least 5 runs are needed"),
    ] {
        let (summary, _) = scaled(&["lmdb", "sqlite"], runs, |engine, _| engine.len() as f64);
        assert_eq!(brief(&summary, true), [expected]);
        assert!(verdicts(&summary).iter().all(|verdict| verdict.statement == Statement::TooFewRuns(runs)));
    }
}

#[test]
fn an_engine_without_a_rank_is_not_a_leader_and_takes_the_title_from_the_winner() {
    let (summary, run) = scaled(&["lmdb", "fjall", "sqlite"], 5, |engine, run| {
        noise(engine, run)
            * [1.0, 2.0, 4.0][["sqlite", "lmdb", "fjall"].iter().position(|name| *name == engine).unwrap()]
    });
    let summary = changed(&run, summary, |record| {
        if record.trial.engine == "fjall" && record.trial.repetition == 3 {
            record.outcome =
                Outcome::Crashed { signal: "SIGSEGV".to_string(), stderr: Vec::new(), suspects: None };
            record.phases.truncate(1);
        }
    });
    let all = verdicts(&summary);
    let read = of(&all, "read");
    assert_eq!((leaders(read), read.unranked.len(), read.is_beaten()), (vec!["lmdb"], 1, true));
    let text = line(&summary, "read");
    assert!(text.contains("lmdb (write-map=false) of the ranked engines, "), "{text}");
    let matrix = &matrices(&summary)[0];
    let row = matrix.sections[0].rows.iter().find(|row| row.engine == "fjall").unwrap();
    let entry = row.entries[1].as_ref().unwrap();
    assert_eq!((entry.cell.rank, entry.marks.first()), (None, Some(&Mark::Incomplete)));
    assert!(!entry.is_highest && !entry.is_leader && entry.ratio.unwrap() > 1.0);
}

#[test]
fn a_lead_that_the_harness_may_have_made_has_no_figure() {
    let (summary, run) = scaled(&["lmdb", "sqlite"], 5, noise);
    let summary = changed(&run, summary, |record| {
        if record.trial.engine == "lmdb" {
            record.phases.iter_mut().for_each(|phase| phase.harness_share = 0.3);
        }
    });
    let all = verdicts(&summary);
    let read = of(&all, "read");
    assert!(matches!(read.statement, Statement::Winner(Lead { by: By::EngineTime, .. })), "{read:?}");
    assert_eq!(read.harness_share(), Some(0.3));
    assert!(
        line(&summary, "read").contains("lmdb (write-map=false), ahead of sqlite by the time inside"),
        "{all:?}"
    );
    let matrix = &matrices(&summary)[0];
    let is_marked = |row: &crate::matrix::Row| {
        row.entries.iter().flatten().all(|entry| entry.marks.contains(&Mark::HarnessBound))
    };
    let rows = &matrix.sections[0].rows;
    assert!(rows.iter().all(|row| is_marked(row) == (row.engine == "lmdb")));
}

#[test]
fn a_leader_whose_interval_ends_at_1_is_behind_by_rate() {
    let (summary, _) = scaled(&["lmdb", "sqlite"], 5, noise);
    let all = verdicts(&summary);
    let [first, second] = &of(&all, "read").leaders[..] else { panic!("{all:?}") };
    // An end at 1 is that of an order which rates show, and the interval alone would not.
    let count = |high: f64| {
        let interval = Some(Interval { low: 0.8, high, level: 0.95 });
        let ratio = second.ratio.map(|ratio| Ratio { interval, ..ratio });
        by_harness(&[*first, &Cell { ratio, ..Cell::clone(second) }]).len()
    };
    assert_eq!([0.99, 1.0, 1.01].map(count), [1, 1, 0]);
}

#[test]
fn levels_are_answered_apart_and_an_engine_alone_at_its_level_is_left_to_the_matrix() {
    let (summary, _) = scaled(&["lmdb", "redb", "sqlite"], 5, |engine, run| {
        noise(engine, run) * if engine == "sqlite" { 1.0 } else { 2.0 }
    });
    let all = verdicts(&summary);
    let levels: Vec<(String, usize)> = all
        .iter()
        .filter(|verdict| verdict.phase.name == "read")
        .map(|verdict| (verdict.group.name(), verdict.leaders.len() + verdict.slower))
        .collect();
    assert_eq!(levels, [("process".to_string(), 2), ("power".to_string(), 1)]);
    let text = line(&summary, "read");
    assert!(text.starts_with("point reads (read): at process: lmdb") && !text.contains("redb"), "{text}");
    // At the level that all reach they are together.
    assert_eq!(of(&all, "sync").leaders.len() + of(&all, "sync").slower, 3);
    let (alone, _) = scaled(&["redb"], 5, noise);
    assert_eq!(line(&alone, "read"), "point reads (read): redb is the only ranked engine");
}

#[test]
fn a_run_of_failures_answers_nothing() {
    let (summary, run) = scaled(&["lmdb", "sqlite"], 5, noise);
    let failed = |record: &mut Record| {
        record.outcome = Outcome::WrongAnswers { faults: vec!["key 1".to_string()] };
    };
    let summary = changed(&run, summary, failed);
    assert_eq!(verdicts(&summary).len(), 0);
    assert_eq!(brief(&summary, true), ["nothing was measured"]);
    assert_eq!(brief(&Summary::new(&fixture::run(), Vec::new()), true), ["nothing was measured"]);
}

#[test]
fn tables_with_one_question_are_counted_by_their_answer() {
    let phases = [PhaseSketch::new("read", &["get"], 100)];
    let sketch = |name: &'static str| Sketch {
        name,
        phases: &phases,
        engines: &["lmdb", "fjall", "sqlite"],
        runs: 5,
        ..Sketch::EMPTY
    };
    let (run, mut records) = drawn(&[sketch("a"), sketch("b"), sketch("c")]);
    for record in records.iter_mut().filter(|record| record.trial.workload.name == "c") {
        // All alike.
        record.phases[0].elapsed_ns = 1_000_000;
    }
    let lines = brief(&Summary::new(&run, records), true);
    assert_eq!(lines, ["point reads (read): lmdb in 2 of 3 tables; no difference shown in 1"]);
}

/// The question of a phase of one thread whose settings were changed.
fn asked(level: Durability, change: impl Fn(&mut PhaseSummary)) -> String {
    let (summary, _) = scaled(&["lmdb"], 1, |_, _| 1.0);
    let mut phase = summary.phases.into_iter().find(|phase| phase.name == "read").unwrap();
    (phase.name, phase.durability_requested) = ("writes".to_string(), level);
    (phase.settings.mix.get, phase.settings.join) = (0.0, 1);
    change(&mut phase);
    question(&phase)
}

#[test]
fn questions_are_named_from_settings_and_never_from_names() {
    let process = |change: fn(&mut PhaseSummary)| asked(Durability::Process, change);
    let power = |change: fn(&mut PhaseSummary)| asked(Durability::Power, change);
    assert_eq!(process(|phase| phase.settings.mix.get = 1.0), "point reads");
    assert_eq!(power(|phase| phase.settings.mix.get = 1.0), "point reads", "a read is not made durable");
    let missing = |phase: &mut PhaseSummary| (phase.settings.mix.get, phase.settings.miss) = (1.0, 0.1);
    assert_eq!(process(missing), "point reads, 10 % misses");
    let absent = |phase: &mut PhaseSummary| {
        (phase.settings.mix.get, phase.settings.miss, phase.settings.threads) = (1.0, 1.0, 4);
    };
    assert_eq!(process(absent), "point reads, all misses, 4 threads");
    let cold =
        |phase: &mut PhaseSummary| (phase.settings.mix.get, phase.settings.drop_caches_before) = (1.0, true);
    assert_eq!(process(cold), "point reads, cold cache");
    let many =
        |phase: &mut PhaseSummary| (phase.settings.mix.multi_get, phase.settings.multi_get_keys) = (1.0, 8);
    assert_eq!(process(many), "point reads in groups of 8");
    let scan = |phase: &mut PhaseSummary| (phase.settings.mix.scan, phase.settings.scan.rows) = (1.0, 10);
    assert_eq!(process(scan), "scans of 10 rows");
    assert_eq!(process(|phase| phase.settings.mix.put = 1.0), "single writes");
    assert_eq!(power(|phase| phase.settings.mix.put = 1.0), "durable single writes");
    let joined = |phase: &mut PhaseSummary| (phase.settings.mix.put, phase.settings.join) = (1.0, 100);
    assert_eq!(power(joined), "durable writes in groups of 100");
    let load = |phase: &mut PhaseSummary| {
        (phase.settings.mix.put, phase.settings.join, phase.settings.each_key) = (1.0, 100, true);
    };
    assert_eq!(process(load), "bulk load");
    let slow = |phase: &mut PhaseSummary| (phase.settings.mix.put, phase.settings.each_key) = (1.0, true);
    assert_eq!(power(slow), "durable load by single writes");
    let mixed = |phase: &mut PhaseSummary| {
        (phase.settings.mix.get, phase.settings.mix.update, phase.settings.threads) = (0.5, 0.5, 2);
    };
    assert_eq!(process(mixed), "mixed reads and writes, 2 threads");
    let roles = |phase: &mut PhaseSummary| {
        (phase.settings.threads, phase.settings.readers, phase.settings.writers) = (0, 1, 1);
    };
    assert_eq!(process(roles), "mixed reads and writes, 2 threads");
    let scans = |phase: &mut PhaseSummary| (phase.settings.mix.scan, phase.settings.mix.insert) = (0.5, 0.5);
    assert_eq!(process(scans), "mixed scans and writes");
    assert_eq!(process(|phase| phase.settings.mix.delete = 1.0), "single deletes");
    assert_eq!(process(|phase| phase.settings.mix.push = 1.0), "single pushes to lists");
    assert_eq!(process(|phase| phase.settings.mix.merge = 1.0), "single counter updates");
    let groups = |phase: &mut PhaseSummary| {
        (phase.settings.mix.transaction, phase.settings.transaction_ops) = (1.0, 4);
    };
    assert_eq!(power(groups), "durable transactions of 4 writes");
}

/// The line of the recommendation at level process, which is the first; each phase has a line below.
fn recommended(summary: &Summary) -> String {
    let lines = recommendation(summary, &fixture::run());
    let of_phases =
        |line: &&String| line.starts_with("- point reads: ") || line.starts_with("- mixed reads and writes");
    assert_eq!(lines.iter().filter(of_phases).count(), 2, "{lines:?}");
    lines[0].clone()
}

#[test]
fn only_what_leads_in_every_phase_is_recommended() {
    let (clear, run) = scaled(&["lmdb", "fjall", "sqlite"], 5, |engine, run| {
        noise(engine, run) * if engine == "lmdb" { 2.0 } else { 1.0 }
    });
    assert_eq!(
        recommended(&clear),
        "at level process: lmdb (write-map=false), among the fastest in every phase"
    );
    // Each is ahead in every other run.
    let (alike, _) =
        scaled(&["lmdb", "fjall"], 6, |engine, run| 1.0 + f64::from((run + engine.len() as u32) % 2) / 50.0);
    let text = recommended(&alike);
    assert!(text.contains("lmdb (write-map=false) or fjall") || text.contains("fjall or lmdb"), "{text}");
    assert!(text.ends_with(": the runs do not show that any of them is slower"), "{text}");
    // lmdb is the slowest in the phase that is not a load and not `read`.
    let split = changed(&run, clear, |record| {
        for phase in &mut record.phases {
            if record.trial.engine == "lmdb" && phase.phase.name != "read" {
                phase.elapsed_ns *= 8;
            }
        }
    });
    assert_eq!(
        recommended(&split),
        "at level process: no engine is among the fastest in every phase; choose by the phase that matters most"
    );
}

#[test]
fn nothing_is_recommended_if_the_runs_cannot_show_it() {
    let (few, run) = scaled(&["lmdb", "fjall"], 2, noise);
    assert_eq!(
        recommended(&few),
        "at level process: no recommendation: some phases have too few runs that count"
    );
    let incomplete = changed(&run, scaled(&["lmdb", "fjall"], 5, noise).0, |record| {
        if record.trial.repetition == 3 {
            record.outcome =
                Outcome::Crashed { signal: "SIGABRT".into(), stderr: Vec::new(), suspects: None };
            record.phases.clear();
        }
    });
    assert_eq!(
        brief(&incomplete, true),
        ["inconclusive: every engine is contradicted, or has runs that failed, are incomplete or doubtful"]
    );
    let none = changed(&run, few, |record| {
        record.outcome = Outcome::Crashed { signal: "SIGABRT".into(), stderr: Vec::new(), suspects: None };
        record.phases.clear();
    });
    assert_eq!(recommendation(&none, &run), ["no recommendation: nothing was measured"]);
    let (alone, _) = scaled(&["lmdb"], 5, noise);
    assert!(
        recommended(&alone)
            .ends_with("lmdb (write-map=false), the only engine that fits and completed its runs")
    );
}

#[test]
fn an_engine_that_failed_after_its_phases_is_not_recommended() {
    let fail = |engine: &'static str| {
        move |record: &mut Record| {
            if record.trial.engine == engine && record.trial.repetition <= 4 {
                let text = "the fresh process that reopens the database ended with SIGKILL".to_string();
                record.outcome = Outcome::Failed { cause: Cause::OutOfMemory, text };
            }
        }
    };
    let (alone, run) = scaled(&["lmdb"], 5, noise);
    assert_eq!(
        recommended(&changed(&run, alone, fail("lmdb"))),
        "at level process: no recommendation: lmdb (write-map=false), which failed in 4 of 5 runs"
    );
    let (both, run) = scaled(&["lmdb", "fjall"], 5, noise);
    assert_eq!(
        recommended(&changed(&run, both, fail("fjall"))),
        "at level process: lmdb (write-map=false), among the fastest in every phase; not recommended: fjall, which \
         failed in 4 of 5 runs"
    );
}

#[test]
fn a_lead_that_may_be_next_to_none_has_an_unknown_margin() {
    let (summary, _) = scaled(&["lmdb", "fjall"], 5, |engine, run| {
        noise(engine, run) * if engine == "lmdb" { 2.0 } else { 1.0 }
    });
    let all = verdicts(&summary);
    let next = of(&all, "read").leaders[0];
    let name = crate::describe::cell_name(next);
    let ahead = |low: f64| {
        let interval = Some(Interval { low, high: 2.5, level: 0.95 });
        words::ahead(&Lead { next, by: By::Times { value: 1.57, interval, at_least: None } })
    };
    assert_eq!(ahead(1.0), format!(", ahead of {name} by an unknown margin (1.57x, up to 2.50x)"));
    assert_eq!(ahead(1.25), format!(", 1.57x ahead of {name} (1.250..2.50)"));
}

/// Response times of 2,000 requests: most took 10 us, and this many as long as is given.
fn response(slow: u64, ns: u64) -> Histogram {
    let mut times = Histogram::new();
    times.record_n(10_000, 2_000 - slow);
    times.record_n(ns, slow);
    times
}

/// What a choice at 2,000 requests/s recommends among these engines, whose phases are `read` and, if there are two, `scan`. `times`
/// has the response times of an engine in a phase and a run.
fn recommended_at_rate(
    engines: &[&str],
    phases: &[&str],
    limits: Option<&str>,
    times: impl Fn(&str, &str, u32) -> Histogram,
    change: impl Fn(&str, &mut PhaseRecord),
) -> Vec<String> {
    let sketches = [PhaseSketch::new("read", &["get"], 100), PhaseSketch::new("scan", &["scan"], 100)];
    let sketch = Sketch { name: "a", phases: &sketches[..phases.len()], engines, runs: 5, ..Sketch::EMPTY };
    let (mut run, mut records) = drawn(&[sketch]);
    for record in &mut records {
        let (engine, repetition) = (record.trial.engine.clone(), record.trial.repetition);
        for phase in &mut record.phases {
            let times = times(&engine, &phase.phase.name, repetition);
            *phase = at_rate(phase, "poisson:2k", &times);
            change(&engine, phase);
        }
    }
    run.plan.command = ["kvdyno", "run", "choose-a b.toml"].map(String::from).to_vec();
    let limits = limits.map(String::from);
    run.choice = Some(Choice { rate: Some("poisson:2k".into()), limits, ..Choice::default() });
    recommendation(&Summary::new(&run, records), &run)
}

/// Times that differ by up to 4 %.
fn about(ns: u64, engine: &str, run: u32) -> u64 {
    (ns as f64 * noise(engine, run)) as u64
}

#[test]
fn at_a_rate_the_lowest_response_p99_that_keeps_the_limits_is_recommended_and_the_others_have_their_reasons()
{
    let times = |engine: &str, _: &str, run| match engine {
        "fjall" => response(100, about(100_000, engine, run)),
        "lmdb" => response(100, about(200_000, engine, run)),
        _ => response(100, 2_300_000),
    };
    let backlog = |engine: &str, phase: &mut PhaseRecord| {
        let arrivals = phase.arrivals.as_mut().expect("it has a rate");
        arrivals.growth_per_second = (engine == "sled").then_some(3_100.0);
    };
    let engines = ["fjall", "lmdb", "sqlite", "sled"];
    let lines = recommended_at_rate(&engines, &["read"], Some("p99<1ms"), times, backlog);
    let at = "poisson:2k requests/s with p99<1ms";
    assert_eq!(
        lines[0],
        format!("at level process, {at}: fjall, with the lowest response p99; the runner-up is lmdb")
    );
    assert!(
        lines[1].starts_with("- point reads, poisson:2k requests/s: fjall, ")
            && lines[1].contains("x lower than lmdb ("),
        "{lines:?}"
    );
    assert!(
        lines[1].contains("; response p99, CPU per op: fjall 10") && lines[1].contains("; lmdb 20"),
        "{lines:?}"
    );
    let expected = [
        format!("not recommended at {at}:"),
        "- sqlite: response p99 2.30ms, over 1ms".to_string(),
        "- sled: not sustained: the backlog grows by 3,100 requests/s".to_string(),
    ];
    let mut rest = lines[2..].to_vec();
    rest[1..].sort_by_key(|line| line.contains("sled"));
    assert_eq!(rest, expected);
    // Without limits, only the rate must be kept.
    let lines = recommended_at_rate(&engines, &["read"], None, times, backlog);
    assert!(
        lines[0].starts_with("at level process, poisson:2k requests/s: fjall, with the lowest"),
        "{lines:?}"
    );
    assert_eq!(lines[2..].len(), 2, "{lines:?}");
    assert!(lines[3].starts_with("- sled: not sustained"), "{lines:?}");
}

#[test]
fn an_engine_that_breaks_a_limit_in_one_phase_hides_none_that_keeps_it_in_all() {
    let times = |engine: &str, phase: &str, run| match (engine, phase) {
        ("fjall", "scan") => response(100, 5_000_000),
        ("fjall", _) => response(100, about(50_000, engine, run)),
        _ => response(100, about(200_000, engine, run)),
    };
    let phases = ["read", "scan"];
    let lines = recommended_at_rate(&["fjall", "lmdb"], &phases, Some("p99<1ms"), times, |_, _| {});
    assert!(lines[0].ends_with(": lmdb, the only engine that was shown to keep the limits"), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("- fjall: scan: response p99 5.00ms, over 1ms"));
}

#[test]
fn if_no_engine_keeps_the_limits_the_command_that_finds_its_rate_is_ready() {
    let times = |_: &str, _: &str, _| response(100, 3_000_000);
    let lines = recommended_at_rate(&["fjall", "lmdb"], &["read"], Some("p99<1ms"), times, |_, _| {});
    assert_eq!(
        lines[..2],
        [
            "no recommendation: no engine was shown to keep p99<1ms at poisson:2k requests/s",
            "the highest rate of each that does: kvdyno slo 'choose-a b.toml' --slo 'p99<1ms' --engines fjall,lmdb"
        ]
    );
    assert_eq!(lines.len(), 5, "{lines:?}");
    let lines = recommended_at_rate(&["fjall", "lmdb"], &["read", "scan"], Some("p99<1ms"), times, |_, _| {});
    assert!(lines[1].contains(" --phase read --slo "), "{lines:?}");
}

#[test]
fn a_limit_that_the_runs_do_not_show_to_be_kept_is_not_kept() {
    // 1.0 % of the requests are over it, so that either may be true.
    let close = |_: &str, _: &str, run: u32| response(if run == 1 { 16 } else { 21 }, 2_000_000);
    let lines = recommended_at_rate(&["fjall"], &["read"], Some("p99<1ms"), close, |_, _| {});
    assert_eq!(lines[3], "- fjall: p99<1ms is not certain: 1 % of 10,000 requests took longer");
    let few = |_: &str, _: &str, _| response(0, 0);
    let lines = recommended_at_rate(&["fjall"], &["read"], Some("p99.99<1ms"), few, |_, _| {});
    assert_eq!(lines[3], "- fjall: p99.99<1ms needs 46,050 requests, and 10,000 were sent");
    // One of five runs breaks it, which its median hides.
    let once = |_: &str, _: &str, run: u32| response(if run == 3 { 1_900 } else { 0 }, 2_000_000);
    let lines = recommended_at_rate(&["fjall"], &["read"], Some("p90<1ms"), once, |_, _| {});
    assert!(lines[0].starts_with("no recommendation: no engine was shown to keep p90<1ms"), "{lines:?}");
    let longest = |_: &str, _: &str, run: u32| response(u64::from(run == 3), 2_000_000);
    let lines = recommended_at_rate(&["fjall"], &["read"], Some("max<1ms"), longest, |_, _| {});
    assert_eq!(lines[3], "- fjall: response max 2.00ms, over 1ms");
}

#[test]
fn a_late_sender_is_not_blamed_on_the_engine() {
    let times = |_: &str, _: &str, _| response(100, 300_000);
    let late = |engine: &str, phase: &mut PhaseRecord| {
        if let Some(arrivals) = phase.arrivals.as_mut().filter(|_| engine == "lmdb") {
            arrivals.late_ns = response(100, 200_000);
        }
    };
    let lines = recommended_at_rate(&["fjall", "lmdb"], &["read"], Some("p99<1ms"), times, late);
    assert!(lines[3].starts_with("- lmdb: sender late: it was "), "{lines:?}");
    assert!(lines[4].contains("the fault of this machine") && lines.len() == 5, "{lines:?}");
}

#[test]
fn limits_of_a_later_version_are_not_judged_as_if_there_were_none() {
    let times = |_: &str, _: &str, _| response(0, 0);
    let lines = recommended_at_rate(&["fjall"], &["read"], Some("p42<1ms"), times, |_, _| {});
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("no recommendation: the limits of the run: unknown metric `p42`"),
        "{lines:?}"
    );
}

#[test]
fn of_engines_with_the_same_response_times_the_one_that_takes_less_cpu_is_named() {
    let times = |_: &str, _: &str, run| response(100, 100_000 + u64::from(run) * 1_000);
    let lines = recommended_at_rate(&["fjall", "lmdb"], &["read"], Some("p99<1ms"), times, |_, _| {});
    let words = ": the runs do not show that the response p99 of any of them is higher; fjall takes the least CPU in all runs";
    assert!(lines[0].ends_with(words), "{lines:?}");
    let same = |_: &str, phase: &mut PhaseRecord| phase.usage.user_cpu_ns = Some(phase.ops * 5_000);
    let lines = recommended_at_rate(&["fjall", "lmdb"], &["read"], Some("p99<1ms"), times, same);
    assert!(!lines[0].contains("CPU"), "{lines:?}");
}
