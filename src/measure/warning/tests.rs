//! Names are unique, advice is whole sentences, and each fact gives its warning.

use super::{Concern, Warning, warnings_of, warnings_of_clock, warnings_of_noise};
use crate::measure::cgroup::Limit;
use crate::measure::clock::ClockFacts;
use crate::measure::file_system::FileSystemFacts;
use crate::measure::machine::{Conditions, Machine};
use crate::measure::noise::Noise;
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
fn each_kind_has_a_name_of_its_own_and_advice() {
    let mut names = HashSet::new();
    for concern in Concern::ALL {
        let (id, advice) = (concern.id(), concern.advice());
        assert!(names.insert(id), "{id} twice");
        assert!(id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{id}");
        assert!(advice.ends_with('.') && advice.starts_with(|c: char| c.is_ascii_uppercase()), "{advice}");
        assert_eq!(Concern::from_id(id), Some(*concern));
    }
    assert_eq!(Concern::from_id("nonsense"), None);
}

#[test]
fn what_is_unknown_gives_no_warning() {
    assert_eq!(warnings_of(&quiet_machine(), &Conditions::default(), Some(&sound_clock())), []);
    assert_eq!(warnings_of_noise(&Noise::default()), []);
}

#[test]
fn each_fact_gives_its_warning() {
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
fn a_limit_above_the_memory_that_is_there_is_none() {
    let machine = Machine {
        memory_bytes: Some(1 << 30),
        cgroup_memory_bytes: Some(Limit::At(1 << 40)),
        cgroup_cpu_thousandths: Some(Limit::Unlimited),
        ..quiet_machine()
    };
    assert_eq!(warnings_of(&machine, &Conditions::default(), None), []);
}

#[test]
fn disturbance_is_reported_from_its_limits_on() {
    let noise = Noise {
        steal_share: Some(0.011),
        run_delay_share: Some(0.021),
        other_cpu_share: Some(0.2),
        spin_drift_share: Some(-0.05),
        ..Noise::default()
    };
    let found = warnings_of_noise(&noise);
    assert_eq!(ids(&found), ["steal", "run-delay", "other-work", "spin-drift"]);
    assert!(found[0].text.contains("1.1 %"), "{found:?}");
    let quiet = Noise { steal_share: Some(0.01), run_delay_share: Some(0.02), ..Noise::default() };
    assert_eq!(warnings_of_noise(&quiet), []);
}

#[test]
fn phases_are_marked_from_their_limits_on() {
    assert_eq!(Warning::of_harness_share("fill", 0.10), None);
    assert_eq!(Warning::of_harness_share("fill", 0.11).unwrap().id, "harness-share");
    assert_eq!(Warning::of_sample("fill", 100), None);
    assert!(Warning::of_sample("fill", 7).unwrap().text.contains("fill has 7 ops"));
}
