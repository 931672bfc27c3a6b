//! Names are unique, advice is complete sentences, and each fact causes its warning.

use super::find::warnings_of_clock;
use super::{CacheSize, Change, Concern, Warning, warnings_of, warnings_of_noise};
use crate::cgroup::Limit;
use crate::clock::ClockFacts;
use crate::file_system::FileSystemFacts;
use crate::machine::{Conditions, Machine};
use crate::noise::Noise;
use crate::{Printed, SeriesRow};
use std::collections::HashSet;

fn ids(warnings: &[Warning]) -> Vec<&str> {
    warnings.iter().map(|warning| warning.id.as_str()).collect()
}

fn sound_clock() -> ClockFacts {
    ClockFacts {
        kind: "counter".into(),
        source: "tsc".into(),
        ns_per_tick: 0.4,
        cost_ns: 10.0,
        smallest_step_ns: Some(10.0),
        step_p999_ns: 20.0,
        hand_offs: Some(10),
        backward_steps: Some(0),
    }
}

fn quiet_machine() -> Machine {
    Machine { tool_build: "release".into(), cpus: Some(2), ..Machine::default() }
}

#[test]
fn each_kind_has_a_unique_name_and_advice() {
    let mut names = HashSet::new();
    for concern in Concern::ALL {
        let (id, advice) = (concern.id(), concern.advice());
        assert!(names.insert(id), "{id} twice");
        assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        assert!(advice.ends_with('.') && advice.starts_with(|c: char| c.is_ascii_uppercase()), "{advice}");
    }
}

#[test]
fn unknown_facts_cause_no_warning() {
    assert_eq!(warnings_of(&quiet_machine(), &Conditions::default(), Some(&sound_clock())), []);
    assert_eq!(warnings_of_noise(&Noise::default()), []);
}

/// A machine that causes every warning.
fn worst() -> (Machine, Conditions, ClockFacts) {
    let machine = Machine {
        tool_build: "debug".into(),
        governor: Some("powersave".into()),
        turbo: Some(true),
        virtualisation: Some("KVM".into()),
        swap_bytes: Some(1),
        memory_bytes: Some(1 << 34),
        cgroup_memory_bytes: Some(Limit::At(1 << 30)),
        cgroup_cpu_thousandths: Some(Limit::At(1500)),
        transparent_huge_pages: Some("always".into()),
        open_files_soft: Some(Limit::At(1024)),
        file_system: Some(FileSystemFacts {
            kind: "tmpfs".into(),
            device: None,
            options: Vec::new(),
            is_memory: true,
            rotational: None,
            write_cache: None,
            scheduler: None,
        }),
        ..quiet_machine()
    };
    let conditions =
        Conditions { load: Some(1.5), memory_available_bytes: Some(9), disk_free_bytes: Some(9) };
    let clock =
        ClockFacts { kind: "monotonic".into(), cost_ns: 700.0, backward_steps: Some(3), ..sound_clock() };
    (machine, conditions, clock)
}

#[test]
fn each_fact_gives_its_warning() {
    let (machine, conditions, clock) = worst();
    let found = warnings_of(&machine, &conditions, Some(&clock));
    let wanted = [
        "debug-build",
        "load",
        "governor",
        "turbo",
        "virtual-machine",
        "cpu-quota",
        "low-memory",
        "swap",
        "memory-limit",
        "huge-pages",
        "memory-file-system",
        "low-disk-space",
        "few-open-files",
        "slow-clock",
        "costly-clock",
        "clock-steps-back",
    ];
    assert_eq!(ids(&found), wanted);
    assert!(found.iter().all(|warning| warning.text.ends_with('.')), "{found:?}");
    assert_eq!(ids(&warnings_of_clock(&clock)), wanted[13..]);
}

#[test]
fn a_limit_above_the_installed_memory_is_ignored() {
    let machine = Machine {
        memory_bytes: Some(1 << 30),
        cgroup_memory_bytes: Some(Limit::At(1 << 40)),
        cgroup_cpu_thousandths: Some(Limit::Unlimited),
        ..quiet_machine()
    };
    assert_eq!(warnings_of(&machine, &Conditions::default(), None), []);
}

#[test]
fn disturbance_above_its_limits_is_reported() {
    let noise = Noise {
        steal_share: Some(0.011),
        // Threads that wait for a CPU in a part of the time say nothing about a rate.
        run_delay_share: Some(0.5),
        other_cpu_share: Some(0.2),
        ..Noise::default()
    };
    let found = warnings_of_noise(&noise);
    assert_eq!(ids(&found), ["steal", "other-work"]);
    assert!(found[0].text.contains("1.1 %"), "{found:?}");
    let quiet = Noise { steal_share: Some(0.01), other_cpu_share: Some(0.1), ..Noise::default() };
    assert_eq!(warnings_of_noise(&quiet), []);
}

#[test]
fn phases_above_their_limits_are_marked() {
    assert_eq!(Warning::of_harness_share("fill", 0.10), None);
    assert_eq!(Warning::of_harness_share("fill", 0.11).unwrap().id, "harness-share");
    assert_eq!(Warning::of_sample("fill", 100), None);
    assert!(Warning::of_sample("fill", 7).unwrap().text.contains("fill has 7 ops"));
}

fn seconds(ops: &[u64]) -> Vec<SeriesRow> {
    let row = |(place, ops): (usize, &u64)| SeriesRow {
        at_ns: (place as u64 + 1) * 1_000_000_000,
        interval_ns: 1_000_000_000,
        ops: *ops,
        ..SeriesRow::default()
    };
    ops.iter().enumerate().map(row).collect()
}

#[test]
fn a_changing_rate_is_reported_and_one_slow_second_is_not() {
    let told = |ops: &[u64]| Warning::of_series("fill", &seconds(ops)).map(|warning| warning.text);
    assert_eq!(told(&[100; 30]), None);
    assert_eq!(told(&[50, 50, 50, 100, 100, 101, 99, 1, 100]), None, "the beginning, and one slow second");
    assert_eq!(told(&[100, 100, 100, 100, 100, 100, 50, 50]), None, "too short");
    let falls = told(&[100, 100, 100, 100, 100, 100, 80, 70, 60]).unwrap();
    assert!(falls.contains("30 % lower"), "{falls}");
    assert!(told(&[1, 1, 1, 10, 10, 10, 12, 12, 12]).unwrap().contains("20 % higher"));
    let mut short = seconds(&[100; 10]);
    (short[9].ops, short[9].interval_ns) = (1, 60_000_000);
    assert_eq!(Warning::of_series("fill", &short), None, "the last row is shorter");
    assert_eq!(told(&[0; 30]), None);
    assert_eq!(told(&[]), None);
}

fn growing(mib: &[u64], files: u64) -> Vec<SeriesRow> {
    let mut rows = seconds(&vec![100; mib.len()]);
    for (place, (row, mib)) in rows.iter_mut().zip(mib).enumerate() {
        row.rss_anonymous_bytes = Some(mib << 20);
        row.open_files = Some(10 + files * place as u64);
    }
    rows
}

#[test]
fn growth_that_does_not_end_is_reported_and_a_cache_that_fills_is_not() {
    let told = |mib: &[u64], files: u64| {
        Warning::of_growth("read", &growing(mib, files)).map(|warning| warning.text)
    };
    let steady: Vec<u64> = (0..12).map(|second| 100 + second * 20).collect();
    assert_eq!(
        told(&steady, 0).unwrap(),
        "At the end of phase read, which added no keys, the memory of its process still grew by 20 MiB per second, to 300 \
         MiB."
    );
    assert!(told(&[100; 12], 100).unwrap().contains("open files still grew by 100 per second, to 1010."));
    assert!(told(&steady, 100).unwrap().contains(", and open files"));
    let fills: Vec<u64> = [0, 100, 180, 240, 280, 300, 310, 315, 316, 316, 316, 316].to_vec();
    assert_eq!(told(&fills, 0), None, "a cache that fills");
    let slows: Vec<u64> = (0..12_u32).map(|second| 1000 - 1000 / (second as u64 + 1)).collect();
    assert_eq!(told(&slows, 0), None, "growth that slows down");
    assert_eq!(told(&steady[..7], 0), None, "too short");
    assert_eq!(told(&[100; 12], 1), None, "few files");
    let mut unknown = growing(&steady, 0);
    unknown[5].rss_anonymous_bytes = None;
    assert_eq!(Warning::of_growth("read", &unknown), None);
    assert_eq!(Warning::of_growth("read", &[]), None);
}

fn change<Value>(before: Value, after: Value) -> Change<Value> {
    Change { before, after }
}

fn cache(bytes: u64, engine: &str) -> CacheSize<'_> {
    CacheSize { bytes, engine }
}

#[test]
fn numbers_of_keys_are_grouped() {
    let warning = Warning::of_shrinking("quick", change(200_000, 57_000), change(5.0, 5.0)).unwrap();
    assert!(warning.text.contains(": 57,000 keys instead of 200,000."), "{}", warning.text);
}

#[test]
fn every_warning_can_be_raised() {
    let (machine, conditions, clock) = worst();
    let noise = Noise { steal_share: Some(0.5), other_cpu_share: Some(0.5), ..Noise::default() };
    let mut found = warnings_of(&machine, &conditions, Some(&clock));
    found.extend(warnings_of_noise(&noise));
    found.extend(Warning::of_harness_share("fill", 0.5));
    found.extend(Warning::of_sample("fill", 1));
    found.push(Warning::of_missing_keys("fill"));
    found.extend(Warning::of_series("fill", &seconds(&[9, 9, 9, 9, 9, 9, 1, 1, 1])));
    found.extend(Warning::of_growth("read", &growing(&[0, 50, 100, 150, 200, 250, 300, 350], 0)));
    found.extend(Warning::of_shrinking("quick", change(200_000, 20_000), change(5.0, 1.0)));
    found.extend(Warning::of_groups("quick", &[("fill".into(), change(100, 7))]));
    found.extend(Warning::of_caches("read", Some("not permitted")));
    found.extend(Warning::of_checks("read", true));
    found.extend(Warning::of_small_values(0, 100));
    found.extend(Warning::of_cache_sizes(cache(1 << 20, "lmdb"), cache(1 << 30, "redb")));
    found.extend(Warning::of_left(&[("server", 2)].into()));
    let mut printed = Printed::default();
    printed.add("compaction begins\n");
    found.extend(Warning::of_printed("stderr", &printed));
    found.extend(Warning::of_guard_pages(true));
    found.extend(Warning::of_odd_machines(&["machine 3 is slow".to_string()]));
    found.extend(Warning::of_different_machines(&["kernel 6.1 and 6.2".to_string()]));
    found.extend(Warning::of_call_times("read", Some("the times leave 50 % of the calls unaccounted")));
    let raised: HashSet<&str> = ids(&found).into_iter().collect();
    let all: HashSet<&str> = Concern::ALL.iter().map(|concern| concern.id()).collect();
    assert_eq!(raised, all);
    assert!(found.iter().all(|warning| warning.text.ends_with('.')), "{found:?}");
    let none = [
        Warning::of_shrinking("quick", change(9, 9), change(1.0, 1.0)),
        Warning::of_groups("quick", &[]),
        Warning::of_caches("read", None),
        Warning::of_checks("read", false),
        Warning::of_small_values(8, 100),
        Warning::of_cache_sizes(cache(1 << 20, "lmdb"), cache(1 << 20, "redb")),
        Warning::of_left(&[].into()),
        Warning::of_printed("stdout", &Printed::default()),
        Warning::of_odd_machines(&[]),
        Warning::of_different_machines(&[]),
        Warning::of_guard_pages(false),
        Warning::of_call_times("read", None),
    ];
    assert!(none.iter().all(Option::is_none), "{none:?}");
}
