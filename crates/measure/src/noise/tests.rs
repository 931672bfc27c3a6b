//! The parsers on texts as kernels print them; probes that finish on any machine.

use super::{Clock, CpuTicks, Jitter, NoiseProbe, parse_cpu_ticks, parse_pressure_ns, run_delay_share};

#[test]
fn reads_the_time_of_all_cpus() {
    let text = "cpu  1219 1 1538 235896 330 2 22 12 5 6\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let wanted = CpuTicks { busy: 1219 + 1 + 1538 + 2 + 22, steal: 12, all: 239_020 };
    assert_eq!(parse_cpu_ticks(text), Some(wanted));
    for text in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 x 6 7 8"] {
        assert_eq!(parse_cpu_ticks(text), None, "{text}");
    }
}

#[test]
fn reads_pressure() {
    let text = "some avg10=2.34 avg60=1.09 avg300=0.26 total=3863183\nfull avg10=0.00 total=0\n";
    assert_eq!(parse_pressure_ns(text), Some(3_863_183_000));
    assert_eq!(parse_pressure_ns("full avg10=0.00 total=0\n"), None);
    assert_eq!(parse_pressure_ns("some avg10=0.00 total=\n"), None);
}

#[test]
fn waiting_is_a_share_of_the_time_that_threads_wanted_to_run() {
    assert_eq!(run_delay_share(Some(1), Some(3)), Some(0.25));
    assert_eq!(run_delay_share(None, Some(3)), None);
    assert_eq!(run_delay_share(Some(0), Some(0)), None);
}

#[test]
fn others_never_use_less_than_nothing() {
    let ticks = CpuTicks { busy: 10, steal: 0, all: 100 };
    assert!(matches!(ticks.other_share(u64::MAX / 2), None | Some(0.0)));
    assert!(matches!(ticks.other_share(0), None | Some(0.1)));
}

#[test]
fn a_span_has_its_length_and_shares_between_zero_and_one() {
    let noise = NoiseProbe::start().finish();
    assert!(noise.elapsed_ns > 0, "{noise:?}");
    for share in [noise.steal_share, noise.run_delay_share, noise.other_cpu_share].into_iter().flatten() {
        assert!((0.0..=1.0).contains(&share), "{noise:?}");
    }
    let text = serde_json::to_string(&noise).unwrap();
    assert_eq!(serde_json::from_str::<super::Noise>(&text).unwrap(), noise, "{text}");
}

#[test]
fn jitter_is_a_share_of_the_span() {
    let jitter = Jitter::watch(&Clock::monotonic(), 1_000_000);
    assert!((0.0..=1.0).contains(&jitter.lost_share), "{jitter:?}");
    assert!(jitter.longest_gap_ns == 0 || jitter.longest_gap_ns > 1000, "{jitter:?}");
}
