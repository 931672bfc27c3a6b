//! The parsers on texts as kernels print them, and on malformed texts.

use super::{Usage, number_after};

const STATUS: &str = "Name:\tcat\nVmPeak:\t    3060 kB\nVmHWM:\t    1732 kB\nVmRSS:\t    1700 kB\nRssAnon:\t     120 kB\n\
                      RssFile:\t    1580 kB\nThreads:\t1\n";
const IO: &str = "rchar: 7274\nwchar: 298\nsyscr: 12\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 12288\n\
                  cancelled_write_bytes: 8192\n";

#[test]
fn reads_memory_from_status() {
    let mut usage = Usage { rss_peak_bytes: Some(9), ..Usage::default() };
    usage.take_status(STATUS);
    assert_eq!((usage.rss_bytes, usage.rss_peak_bytes), (Some(1700 * 1024), Some(1732 * 1024)));
    assert_eq!((usage.rss_anonymous_bytes, usage.rss_file_bytes), (Some(120 * 1024), Some(1580 * 1024)));
    assert_eq!(usage.vm_peak_bytes, Some(3060 * 1024));
    usage.take_status("Name:\tkernel thread\n");
    assert_eq!((usage.rss_bytes, usage.vm_peak_bytes), (None, None));
}

#[test]
fn reads_bytes_of_calls_and_of_storage() {
    let mut usage = Usage::default();
    usage.take_io(IO);
    assert_eq!((usage.read_call_bytes, usage.written_call_bytes), (Some(7274), Some(298)));
    assert_eq!((usage.read_storage_bytes, usage.written_storage_bytes), (Some(4096), Some(12288)));
    assert_eq!(usage.cancelled_storage_bytes, Some(8192));
    usage.take_io("");
    assert_eq!((usage.read_storage_bytes, usage.written_storage_bytes), (None, None));
}

#[test]
fn finds_numbers_only_at_the_beginning_of_a_line() {
    assert_eq!(number_after(IO, "write_bytes:"), Some(12288));
    assert_eq!(number_after(IO, "bytes:"), None);
    assert_eq!(number_after("VmRSS: much kB", "VmRSS:"), None);
    assert_eq!(number_after("VmRSS:", "VmRSS:"), None);
}

#[test]
fn differences_leave_memory_as_it_is_and_the_unknown_unknown() {
    let earlier = Usage {
        user_cpu_ns: Some(5),
        rss_bytes: Some(100),
        rss_peak_bytes: Some(200),
        run_delay_ns: Some(9),
        ..Usage::default()
    };
    let later = Usage {
        user_cpu_ns: Some(7),
        system_cpu_ns: Some(1),
        rss_bytes: Some(80),
        rss_peak_bytes: Some(300),
        vm_peak_bytes: Some(900),
        run_delay_ns: Some(4),
        ..Usage::default()
    };
    let wanted = Usage {
        user_cpu_ns: Some(2),
        vm_peak_bytes: Some(900),
        ..Usage { run_delay_ns: None, system_cpu_ns: None, ..later }
    };
    assert_eq!(later.since(&earlier), wanted);
    assert_eq!((later.cpu_ns(), earlier.cpu_ns()), (Some(8), None));
}

#[cfg(target_os = "linux")]
#[test]
fn this_process_has_used_something() {
    let before = Usage::now();
    let memory = std::hint::black_box(vec![1_u8; 8 << 20]);
    let after = Usage::now();
    // The kernel reads counters of each CPU without a lock, so that a peak may be a few pages lower than it was a moment ago.
    assert!(before.rss_bytes.unwrap() > 0 && after.rss_peak_bytes.unwrap() > 0, "{after:?}");
    assert!(after.minor_faults >= before.minor_faults, "{after:?}, {} bytes", memory.len());
    assert!(after.cpu_ns().unwrap() >= before.cpu_ns().unwrap(), "{after:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_was_started_counts_while_it_runs() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let before = Usage::now();
    // It fills 64 MiB, reports that, and waits for its input to end.
    let script = "x=$(head -c 67108864 /dev/zero | tr '\\0' x); echo full; read y; echo ${#x}";
    let mut child =
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let during = Usage::now();
    // The memory of this process itself changes with other tests, but not from one line to the next each time.
    let of_children = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let own = number_after(&status, "VmRSS:").unwrap() * 1024;
        Usage::now().rss_bytes.unwrap().saturating_sub(own)
    };
    let is_large = (0..20).any(|_| of_children() > 48 << 20);
    let used = during.since(&before);
    let tree_ns = Usage::tree_cpu_ns().unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
    // The CPU time of others is computed as the remainder: it must not change when a process of ours ends.
    let after_ns = Usage::tree_cpu_ns().unwrap();
    assert!(after_ns + 20_000_000 >= tree_ns, "{after_ns} ns after {tree_ns} ns");
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return;
    }
    assert!(is_large);
    // Filling that much takes more than the 10 ms resolution of other processes' CPU times.
    assert!(used.cpu_ns().unwrap() > 10_000_000, "{used:?}");
    // It has ended: its memory is no longer in any figure. Processes of other tests may still run.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while of_children() >= 24 << 20 {
        assert!(std::time::Instant::now() < until, "{} bytes", of_children());
        std::thread::yield_now();
    }
}
