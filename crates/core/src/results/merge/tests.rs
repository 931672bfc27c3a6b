//! Tests of merging: any partition gives the same, and what does not belong together is refused.

use super::*;
use crate::results::summary::Summary;
use crate::results::{Record, fixture};
use proptest::prelude::*;
use std::sync::Arc;

const CAMPAIGN: &str = "2026-11-20T09-15-29-quick-0123456789ab";

/// The machine of these tests, in two copies that only have other ids.
fn on(id: &str) -> MeasuredOn {
    let run = fixture::run();
    let (machine, clock, warnings) = (run.machine, run.clock, run.warnings);
    MeasuredOn { id: id.to_string(), machine, clock, warnings, trials: Vec::new() }
}

/// A slice with these trials and records, of the places in the fixture's plan.
fn slice(parent: &Path, name: &str, machine: &str, trials: &[usize], records: &[usize]) -> PathBuf {
    let mut run = Run { id: format!("{CAMPAIGN}-{name}"), ..fixture::run() };
    let all = run.plan.trials.clone();
    run.plan.trials = trials.iter().map(|at| all[*at].clone()).collect();
    run.campaign = Some(Part {
        campaign: CAMPAIGN.to_string(),
        trials: all.len() as u32,
        slice: Some(name.to_string()),
        machines: vec![on(machine)],
    });
    let mut folder = RunFolder::create(parent, &run).unwrap();
    for at in records {
        folder.save(&record(&all[*at])).unwrap();
    }
    folder.path().to_path_buf()
}

fn record(trial: &Trial) -> Record {
    fixture::record(trial.clone())
}

fn summary_of(out: &Path) -> String {
    let folder = RunFolder::open(out).unwrap();
    assert!(folder.warnings().is_empty(), "{:?}", folder.warnings());
    serde_json::to_string(&Summary::new(folder.run(), folder.finished().unwrap())).unwrap()
}

/// The text of an error, with the names of the temporary folder removed.
fn refusal(folders: &[PathBuf], plan: Option<&ReadCampaign>, out: &Path) -> String {
    merge(folders, plan, out).expect_err("it is refused").to_string()
}

#[test]
fn every_partition_of_the_records_of_a_run_gives_the_same_summary() {
    let trials = fixture::run().plan.trials.len();
    let all: Vec<usize> = (0..trials).collect();
    let whole = tempfile::tempdir().unwrap();
    let one = slice(whole.path(), "1-of-1", "m", &all, &all);
    merge(&[one], None, &whole.path().join("out")).unwrap();
    let expected = summary_of(&whole.path().join("out"));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(8));
    let parts = proptest::collection::vec(0..5_usize, trials);
    runner
        .run(&(parts, any::<bool>()), |(parts, is_reversed)| {
            let parent = tempfile::tempdir().unwrap();
            let mut folders = Vec::new();
            for part in 0..5 {
                let own: Vec<usize> = all.iter().copied().filter(|at| parts[*at] == part).collect();
                if !own.is_empty() {
                    folders.push(slice(parent.path(), &format!("{part}-of-5"), "m", &own, &own));
                }
            }
            if is_reversed {
                folders.reverse();
            }
            let merged = merge(&folders, None, &parent.path().join("out")).unwrap();
            prop_assert_eq!((merged.records, merged.missing, merged.duplicates), (trials, 0, 0));
            prop_assert!(summary_of(&parent.path().join("out")) == expected, "partition {:?}", parts);
            // A merge of merges gives the same as one merge.
            let (first, second) = (parent.path().join("first"), parent.path().join("second"));
            merge(&folders[..1], None, &first).unwrap();
            let mut rest = folders[1..].to_vec();
            rest.push(first);
            merge(&rest, None, &second).unwrap();
            prop_assert!(summary_of(&second) == expected, "partition {:?}", parts);
            Ok(())
        })
        .unwrap();
}

#[test]
fn records_are_copied_byte_by_byte() {
    let parent = tempfile::tempdir().unwrap();
    let folders = [
        slice(parent.path(), "1-of-2", "a", &[0, 1], &[0, 1]),
        slice(parent.path(), "2-of-2", "b", &[7, 8], &[7, 8]),
    ];
    fs::write(
        folders[0].join("trials").join(&fixture::run().plan.trials[0].id).join("stderr.txt"),
        "noise\n",
    )
    .unwrap();
    let out = parent.path().join("out");
    let merged = merge(&folders, None, &out).unwrap();
    assert_eq!(
        (merged.machines, merged.records, merged.unknown),
        (2, 4, fixture::run().plan.trials.len() - 4)
    );
    for (folder, at) in [(0, 0), (0, 1), (1, 7), (1, 8)] {
        let path = Path::new("trials").join(&fixture::run().plan.trials[at].id).join("record.json");
        assert!(fs::read(folders[folder].join(&path)).unwrap() == fs::read(out.join(&path)).unwrap());
    }
    let noise = out.join("trials").join(&fixture::run().plan.trials[0].id).join("stderr.txt");
    assert_eq!(fs::read_to_string(noise).unwrap(), "noise\n");
    let run = RunFolder::open(&out).unwrap().run().clone();
    let machines: Vec<(String, usize)> =
        run.campaign.unwrap().machines.into_iter().map(|on| (on.id, on.trials.len())).collect();
    assert_eq!(machines, [("a".to_string(), 2), ("b".to_string(), 2)]);
}

#[test]
fn a_block_that_another_machine_finished_replaces_the_unfinished_one() {
    let parent = tempfile::tempdir().unwrap();
    let block: Vec<usize> = (0..7).collect();
    let died = slice(parent.path(), "1-of-1", "a", &block, &block[..3]);
    let finished = slice(parent.path(), "1-of-1-take-2", "b", &block, &block);
    let out = parent.path().join("out");
    let merged = merge(&[died.clone(), finished.clone()], None, &out).unwrap();
    assert_eq!((merged.records, merged.superseded, merged.missing, merged.machines), (7, 3, 0, 1));
    assert_eq!(RunFolder::open(&out).unwrap().run().campaign.as_ref().unwrap().machines[0].id, "b");
    // On the same machine, the two are parts of one block.
    let rest = slice(parent.path(), "1-of-1-take-3", "a", &block[3..], &block[3..]);
    let merged = merge(&[died, rest], None, &parent.path().join("both")).unwrap();
    assert_eq!((merged.records, merged.superseded, merged.machines), (7, 0, 1));
    // Two machines that both finished it.
    let other = slice(parent.path(), "1-of-1-take-4", "c", &block, &block);
    let text = refusal(&[finished, other], None, &parent.path().join("third"));
    assert!(text.contains("measured by two machines") && text.contains("take-4"), "{text}");
}

#[test]
fn the_same_record_twice_is_dropped_and_another_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let (first, second) = (parent.path().join("first"), parent.path().join("second"));
    let one = slice(&first, "1-of-1", "a", &[0, 1], &[0, 1]);
    let copy = slice(&second, "1-of-1", "a", &[0, 1], &[0, 1]);
    let merged = merge(&[one.clone(), copy], None, &parent.path().join("out")).unwrap();
    assert_eq!((merged.records, merged.duplicates), (2, 2));
    // The same folder by two paths is one folder.
    let merged = merge(&[one.clone(), first.clone()], None, &parent.path().join("again")).unwrap();
    assert_eq!((merged.runs, merged.duplicates), (1, 0));
    let mut run = RunFolder::open(&one).unwrap().run().clone();
    run.id = format!("{CAMPAIGN}-other");
    let mut changed = RunFolder::create(&parent.path().join("third"), &run).unwrap();
    let mut other = record(&run.plan.trials[0]);
    other.started_at = "2026-11-20T10:00:00Z".to_string();
    changed.save(&other).unwrap();
    let text = refusal(&[one, changed.path().to_path_buf()], None, &parent.path().join("fourth"));
    assert!(text.contains("two different records") && text.contains(&run.plan.trials[0].id), "{text}");
}

#[test]
fn what_does_not_belong_together_is_refused_with_what_differs() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("out");
    let one = slice(&parent.path().join("one"), "1-of-2", "a", &[0], &[0]);
    let variant = |name: &str, change: &dyn Fn(&mut Run)| {
        let mut run = RunFolder::open(&one).unwrap().run().clone();
        change(&mut run);
        RunFolder::create(&parent.path().join(name), &run).unwrap().path().to_path_buf()
    };
    let of_campaign = |id: &str| {
        let id = id.to_string();
        move |run: &mut Run| run.campaign.as_mut().unwrap().campaign.clone_from(&id)
    };
    for (name, folder, expected) in [
        ("plan", variant("plan", &of_campaign("other")), "slices of different plans"),
        ("version", variant("version", &|run| run.tool_version = "9.9.9".to_string()), "with kvdyno 9.9.9"),
        ("alone", variant("alone", &|run| run.campaign = None), "is no slice of a plan"),
        (
            "settings",
            variant("settings", &|run| {
                let trial = &mut run.plan.trials[0];
                trial.workload = Arc::new(crate::workload::Workload { keys: 7, ..(*trial.workload).clone() });
            }),
            "different settings",
        ),
        ("order", variant("order", &|run| run.plan.trials[0].order = 90), "different places"),
    ] {
        let text = refusal(&[one.clone(), folder], None, &out);
        assert!(text.contains(expected), "{name}: {text}");
        assert!(!out.exists(), "{name}: nothing is written");
    }
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(refusal(&[empty], None, &out).contains("contains no results"));
    fs::create_dir(&out).unwrap();
    fs::write(out.join("mine"), "").unwrap();
    assert!(refusal(&[one], None, &out).contains("not empty"));
    assert!(out.join("mine").exists());
}

#[test]
fn with_the_plan_all_of_its_trials_are_shown() {
    let parent = tempfile::tempdir().unwrap();
    let run = fixture::run();
    let campaign = Campaign {
        tool_version: run.tool_version.clone(),
        planned_at: run.started_at.clone(),
        plan: run.plan.clone(),
        cpus: 1,
        absent: Vec::new(),
        warnings: Vec::new(),
        trial_estimates: Vec::new(),
    };
    let one = slice(parent.path(), "1-of-3", "a", &[0, 1], &[0]);
    let plan = ReadCampaign { campaign, id: CAMPAIGN.to_string() };
    let merged = merge(std::slice::from_ref(&one), Some(&plan), &parent.path().join("out")).unwrap();
    assert_eq!((merged.records, merged.missing, merged.unknown), (1, run.plan.trials.len() - 1, 0));
    let other = ReadCampaign { id: "2026-11-20T09-15-29-other-000000000000".to_string(), ..plan };
    let text = refusal(&[one], Some(&other), &parent.path().join("second"));
    assert!(text.contains("--plan names 2026-11-20T09-15-29-other"), "{text}");
}

/// The largest resident memory of this process so far, bytes.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024)
}

#[test]
#[ignore = "writes 10,000 records twice; `make test-all` runs it"]
fn ten_thousand_records_of_a_thousand_slices_merge_in_half_a_minute_and_a_gibibyte() {
    const SLICES: usize = 1000;
    const RECORDS: usize = 10;
    let parent = tempfile::tempdir().unwrap();
    let slices = parent.path().join("slices");
    let base = fixture::run();
    let mut bytes = 0;
    for number in 0..SLICES {
        let mut run = Run { id: format!("{CAMPAIGN}-{number}"), ..base.clone() };
        run.plan.trials = (0..RECORDS)
            .map(|at| {
                let order = (number * RECORDS + at) as u32;
                let repetition = number as u32 + 1;
                let planned = &base.plan.trials[at];
                // Each block has its own seed, and so its own workload.
                let workload =
                    crate::workload::Workload { seed: number as u64, ..(*planned.workload).clone() };
                let id = format!("{order:05}-{}", planned.engine.replace(':', "-"));
                Trial { id, order, repetition, workload: workload.into(), ..planned.clone() }
            })
            .collect();
        run.campaign = Some(Part {
            campaign: CAMPAIGN.to_string(),
            trials: (SLICES * RECORDS) as u32,
            slice: Some(format!("{}/{SLICES}", number + 1)),
            machines: vec![on(&format!("{:08x}", number % 50))],
        });
        let path = slices.join(&run.id);
        let mut target = store::Target::create(&path, &run).unwrap();
        for trial in &run.plan.trials {
            let json = serde_json::to_vec(&record(trial)).unwrap();
            bytes += json.len();
            let entry = Entry {
                trial: trial.id.clone(),
                record: format!("trials/{}/record.json", trial.id),
                bytes: json.len() as u64,
                crc32: journal::checksum(&json),
                status: "ok".to_string(),
            };
            target.add(&entry, &json, None).unwrap();
        }
        target.finish().unwrap();
    }
    let start = std::time::Instant::now();
    let merged = merge(&[slices], None, &parent.path().join("out")).unwrap();
    let elapsed = start.elapsed();
    assert_eq!(
        (merged.runs, merged.records, merged.machines, merged.missing),
        (SLICES, SLICES * RECORDS, 50, 0)
    );
    let peak = peak_bytes().unwrap();
    println!("{} MiB of records in {elapsed:.1?}, at most {} MiB of memory", bytes >> 20, peak >> 20);
    assert!(peak < 1 << 30, "{peak} bytes");
    assert!(elapsed.as_secs() < 30, "{elapsed:?}");
}
