//! Counts against planted programs: exact for each kind, in threads, after fork and exec, and in Go.

#![allow(unsafe_code, reason = "the planted programs make system calls")]

use super::*;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A file in memory, whose syncs cost nothing.
fn file() -> File {
    // SAFETY: a system call that returns a new descriptor, which has no other owner.
    unsafe { File::from_raw_fd(libc::memfd_create(c"planted".as_ptr(), 0)) }
}

/// The counts of a planted program; `None`, with a printed reason, where the kernel has no such filter.
fn counts(work: impl FnOnce()) -> Option<CallCounts> {
    counts_with(None, work)
}

fn counts_with(fault: Option<Fault>, work: impl FnOnce()) -> Option<CallCounts> {
    // A panic must not leave the new process, which has a copy of this one's stack. What is missing is found in the counts.
    let work = || drop(catch_unwind(AssertUnwindSafe(work)));
    match counted(fault, work) {
        Ok(counts) => Some(counts),
        Err(error) => {
            let must = std::env::var("CI").as_deref() == Ok("true");
            assert!(!must, "CI needs the seccomp filter: {error}");
            println!("skipped: no seccomp notification: {error}");
            None
        }
    }
}

fn sync(file: &File, times: u32) {
    // SAFETY: a plain system call.
    (0..times).for_each(|_| assert_eq!(unsafe { libc::fdatasync(file.as_raw_fd()) }, 0));
}

#[test]
fn every_one_of_20000_syncs_is_counted() {
    let begun = Instant::now();
    let Some(counts) = counts(|| sync(&file(), 20_000)) else { return };
    println!("{} ns per counted fdatasync", begun.elapsed().as_nanos() / 20_000);
    assert_eq!(counts.by_name(), BTreeMap::from([("fdatasync".to_string(), 20_000)]));
    assert_eq!((counts.syncs(), counts.writes()), (20_000, 0));
}

#[test]
fn every_one_of_20000_durable_writes_is_counted() {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = folder.path().join("file");
    let begun = Instant::now();
    let work = || {
        use std::os::unix::fs::{FileExt, OpenOptionsExt};
        let mut options = File::options();
        let file =
            options.create(true).write(true).truncate(true).custom_flags(libc::O_DSYNC).open(&path).unwrap();
        (0..20_000).for_each(|_| file.write_all_at(b"durable", 0).unwrap());
    };
    let Some(counts) = counts(work) else { return };
    println!("{} ns per counted O_DSYNC write", begun.elapsed().as_nanos() / 20_000);
    assert_eq!(counts.by_name(), BTreeMap::from([("O_DSYNC write".to_string(), 20_000)]));
}

#[test]
fn threads_and_processes_of_the_process_are_counted() {
    let work = || {
        let file = file();
        std::thread::scope(|scope| {
            scope.spawn(|| sync(&file, 500));
            scope.spawn(|| sync(&file, 700));
        });
        // SAFETY: the new process makes system calls only.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                sync(&file, 300);
                libc::_exit(0);
            }
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    };
    let Some(counts) = counts(work) else { return };
    assert_eq!(counts.of(CallKind::Fdatasync), 1500);
}

#[test]
fn kinds_are_distinguished() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| std::ffi::CString::new(folder.path().join(name).to_str().unwrap()).unwrap();
    let work = || {
        // SAFETY: system calls on descriptors and memory of this process.
        unsafe {
            let open = |name: &str, flags| {
                libc::open(path(name).as_ptr(), libc::O_CREAT | libc::O_RDWR | flags, 0o600)
            };
            let (plain, sync, dsync) = (open("a", 0), open("b", libc::O_SYNC), open("c", libc::O_DSYNC));
            let (byte, mut pipe) = ([7_u8; 4096], [0; 2]);
            let vector = libc::iovec { iov_base: byte.as_ptr() as *mut _, iov_len: 4096 };
            let write = |file| libc::write(file, byte.as_ptr().cast(), 4096);
            (0..3).for_each(|_| assert_eq!(write(plain), 4096));
            (0..4).for_each(|_| assert_eq!(write(sync), 4096));
            (0..5).for_each(|_| assert_eq!(libc::pwrite(dsync, byte.as_ptr().cast(), 4096, 0), 4096));
            (0..6).for_each(|_| assert_eq!(libc::pwritev2(plain, &vector, 1, 0, libc::RWF_DSYNC), 4096));
            assert_eq!(libc::writev(plain, &vector, 1), 4096);
            // Neither is a write to a file.
            libc::pipe(pipe.as_mut_ptr());
            assert_eq!(write(pipe[1]), 4096);
            // From one descriptor to another: what counts is the one that is written to.
            let none = std::ptr::null_mut();
            assert_eq!(libc::splice(pipe[0], none, sync, none, 4096, 0), 4096);
            assert_eq!(libc::sendfile(dsync, plain, &mut 0, 4096), 4096);
            assert_eq!(libc::copy_file_range(dsync, &mut 0, plain, &mut 0, 4096, 0), 4096);
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let map = libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, plain, 0);
            (0..2).for_each(|_| assert_eq!(libc::msync(map, 4096, libc::MS_SYNC), 0));
            assert_eq!(libc::msync(map, 4096, libc::MS_ASYNC), 0);
            (0..7).for_each(|_| assert_eq!(libc::fsync(plain), 0));
            libc::syncfs(plain);
            (0..8).for_each(|_| {
                assert_eq!(libc::sync_file_range(plain, 0, 4096, libc::SYNC_FILE_RANGE_WRITE), 0)
            });
            libc::syscall(libc::SYS_io_uring_setup, 0, 0);
        }
    };
    let Some(counts) = counts(work) else { return };
    let expected = [
        ("write", 5),
        ("O_SYNC write", 5),
        ("O_DSYNC write", 12),
        ("shared mapping", 1),
        ("msync", 2),
        ("fsync", 7),
        ("syncfs", 1),
        ("sync_file_range", 8),
        ("io_uring", 1),
    ];
    assert_eq!(counts.by_name(), expected.map(|(name, count)| (name.to_string(), count)).into());
    assert_eq!(counts.syncs(), 5 + 12 + 2 + 7 + 1);
    assert_eq!(counts.writes(), 5 + 5 + 12);
}

const GO: &str = r#"
package main

import (
	"os"
	"sync"
	"syscall"
)

func main() {
	file, _ := os.Create(os.Args[1])
	var all sync.WaitGroup
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 5000 {
				syscall.Fdatasync(int(file.Fd()))
			}
		}()
	}
	all.Wait()
}
"#;

/// Go makes system calls without libc, and its runtime interrupts its threads by signals.
#[test]
fn every_one_of_20000_syncs_of_a_program_in_go_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("planted.go"), GO).unwrap();
    let built =
        Command::new("go").args(["build", "-o", "planted", "planted.go"]).current_dir(folder.path()).status();
    if !built.is_ok_and(|status| status.success()) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs Go");
        println!("skipped: Go is not installed");
        return;
    }
    let mut program = Command::new(folder.path().join("planted"));
    program.arg(folder.path().join("file"));
    let Some(counts) = counts(|| drop(program.exec())) else { return };
    assert_eq!(counts.of(CallKind::Fdatasync), 20_000);
}

#[test]
fn what_a_process_leaves_after_a_crash_was_counted() {
    let work = || {
        sync(&file(), 10);
        // SAFETY: kills this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    };
    let Some(counts) = counts(work) else { return };
    assert_eq!(counts.syncs(), 10);
}

#[test]
fn a_second_filter_is_refused_with_a_reason() {
    let Some(counts) = counts(|| {
        // A process with a filter cannot have another one; its syncs are still counted by the first.
        let second = counted(None, || ());
        assert_eq!(second.map_err(|error| error.kind()), Err(io::ErrorKind::ResourceBusy));
        sync(&file(), 1);
    }) else {
        return;
    };
    assert_eq!(counts.syncs(), 1);
}

/// What each call of a planted program returns if calls of a kind fail in a folder: 0 or an error.
fn assert_outcomes(
    (calls, first, lasts, errno): (FaultyCalls, u64, bool, i32),
    expected: &[i32],
    work: fn(&Path, &mut Vec<i32>),
) {
    let parent = tempfile::tempdir().unwrap();
    let folder = std::fs::canonicalize(parent.path()).unwrap().join("tested");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("old"), [7; 8192]).unwrap();
    std::fs::write(parent.path().join("elsewhere"), [7; 8192]).unwrap();
    let fault = Fault { folder: folder.clone(), calls, first, lasts, errno };
    let report = parent.path().join("report");
    let ran = counts_with(Some(fault), || {
        let mut outcomes = Vec::new();
        work(&folder, &mut outcomes);
        std::fs::write(&report, format!("{outcomes:?}")).unwrap();
    });
    if ran.is_some() {
        let outcomes = std::fs::read_to_string(&report).unwrap_or_else(|_| "a panic".into());
        assert_eq!(outcomes, format!("{expected:?}"));
    }
}

/// The error of a call, or 0.
fn outcome<T>(outcome: io::Result<T>) -> i32 {
    outcome.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1))
}

fn open(path: PathBuf) -> io::Result<File> {
    File::options().create(true).truncate(false).read(true).write(true).open(path)
}

#[test]
fn one_sync_of_the_folder_fails_and_no_other_one() {
    assert_outcomes(
        (FaultyCalls::Syncs, 3, false, libc::EIO),
        &[0, 0, libc::EIO, 0, 0, 0],
        |folder, outcomes| {
            let (own, other) =
                (open(folder.join("old")).unwrap(), open(folder.join("../elsewhere")).unwrap());
            outcomes.push(outcome(own.sync_data()));
            // This one is not counted.
            outcome(other.sync_all());
            outcomes.push(outcome(own.sync_all()));
            outcomes.push(outcome(own.sync_data()));
            outcomes.push(outcome(own.sync_data()));
            outcomes.push(outcome(own.sync_all()));
            outcomes.push(outcome(other.sync_data()));
        },
    );
}

#[test]
fn a_failing_write_writes_nothing_and_reads_are_not_touched() {
    use std::os::unix::fs::FileExt;
    assert_outcomes(
        (FaultyCalls::Writes, 2, false, libc::EIO),
        &[0, libc::EIO, 0, 0, 5],
        |folder, outcomes| {
            let file = open(folder.join("old")).unwrap();
            outcomes.push(outcome(file.write_all_at(&[1], 0)));
            outcomes.push(outcome(file.write_at(&[2], 0)));
            outcomes.push(outcome(file.write_all_at(&[3], 1)));
            let mut bytes = [0; 3];
            outcomes.push(outcome(file.read_exact_at(&mut bytes, 0)));
            outcomes.push(if bytes == [1, 3, 7] { 5 } else { -1 });
        },
    );
}

#[test]
fn reads_fail_by_every_call_that_reads() {
    use std::io::Read;
    use std::os::unix::fs::FileExt;
    let eio = libc::EIO;
    assert_outcomes((FaultyCalls::Reads, 1, true, eio), &[eio, eio, eio, 0, 0], |folder, outcomes| {
        let (mut file, mut other) =
            (open(folder.join("old")).unwrap(), open(folder.join("../elsewhere")).unwrap());
        let mut bytes = [0; 8];
        outcomes.push(outcome(file.read(&mut bytes)));
        outcomes.push(outcome(file.read_at(&mut bytes, 0)));
        outcomes.push(outcome(file.read_vectored(&mut [io::IoSliceMut::new(&mut bytes)])));
        outcomes.push(outcome(other.read(&mut bytes)));
        outcomes.push(outcome(file.write_all_at(&[1], 0)));
    });
}

#[test]
fn a_full_disk_stops_what_grows_and_nothing_else() {
    use std::io::{Seek, SeekFrom, Write};
    use std::os::unix::fs::FileExt;
    let full = libc::ENOSPC;
    let expected = [0, 0, 0, full, full, full, 0, full, full, 0, 0, 0];
    assert_outcomes((FaultyCalls::Growth, 1, true, full), &expected, |folder, outcomes| {
        let mut file = open(folder.join("old")).unwrap();
        let mut end = File::options().append(true).open(folder.join("old")).unwrap();
        let other = open(folder.join("../elsewhere")).unwrap();
        let descriptor = file.as_raw_fd();
        // SAFETY: a plain system call.
        let fallocate = |mode, length| match unsafe { libc::fallocate(descriptor, mode, 0, length) } {
            0 => 0,
            _ => io::Error::last_os_error().raw_os_error().unwrap_or(-1),
        };
        // Within the file: its start, its last byte, and a write at the position.
        outcomes.push(outcome(file.write_all_at(&[1; 4096], 0)));
        outcomes.push(outcome(file.write_all_at(&[1], 8191)));
        outcomes.push(outcome(file.write_all(&[1])));
        // Past it, by one byte, by the position, by appending, into a hole, and by reservation.
        outcomes.push(outcome(file.write_at(&[1, 2], 8191)));
        file.seek(SeekFrom::End(0)).unwrap();
        outcomes.push(outcome(file.write(&[1])));
        outcomes.push(outcome(end.write(&[1])));
        outcomes.push(outcome(file.set_len(1 << 20)));
        outcomes.push(outcome(file.write_at(&[1], 500_000)));
        outcomes.push(fallocate(0, 4096));
        // Less space, and another folder.
        outcomes.push(fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 4096));
        outcomes.push(outcome(file.set_len(100)));
        outcomes.push(outcome(other.set_len(100_000)));
    });
}

#[test]
fn without_descriptors_nothing_in_the_folder_can_be_opened() {
    let none = libc::EMFILE;
    assert_outcomes(
        (FaultyCalls::Opens, 2, true, none),
        &[0, none, none, none, none, 0],
        |folder, outcomes| {
            outcomes.push(outcome(open(folder.join("old"))));
            outcomes.push(outcome(open(folder.join("old"))));
            outcomes.push(outcome(open(folder.join("new"))));
            outcomes.push(outcome(std::fs::read_dir(folder)));
            outcomes.push(outcome(open(folder.join("../tested/./old"))));
            outcomes.push(outcome(open(folder.join("../elsewhere"))));
        },
    );
}

#[test]
fn a_fault_that_starts_at_no_call_changes_nothing() {
    assert_outcomes((FaultyCalls::Writes, 0, true, libc::EIO), &[0, 0], |folder, outcomes| {
        use std::os::unix::fs::FileExt;
        let file = open(folder.join("old")).unwrap();
        outcomes.push(outcome(file.write_all_at(&[1], 0)));
        outcomes.push(outcome(file.sync_all()));
    });
}

/// A process that waits for a line, then makes three sync calls, and hands them over before.
fn syncing(syncs: &SlowSyncs, folder: &Path) -> Option<std::process::Child> {
    let channel = syncs.channel();
    let mut command = Command::new("sh");
    command.args(["-c", "read line; exec sync -d . . ."]).current_dir(folder);
    command.stdin(std::process::Stdio::piped());
    // SAFETY: between fork and exec it makes system calls and allocates.
    unsafe { command.pre_exec(move || hand_over_syncs(channel)) };
    match command.spawn() {
        Ok(child) => {
            while !syncs.sees(child.id()) {
                std::thread::yield_now();
            }
            Some(child)
        }
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs the seccomp filter: {error}");
            println!("skipped: no seccomp notification: {error}");
            None
        }
    }
}

fn go(child: &mut std::process::Child) {
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

#[test]
fn syncs_of_a_slow_process_are_delayed_and_counted_and_no_others_wait_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut syncs = SlowSyncs::prepare().unwrap();
    syncs.start().unwrap();
    let (Some(mut held), Some(mut slow), Some(mut quick)) =
        (syncing(&syncs, folder.path()), syncing(&syncs, folder.path()), syncing(&syncs, folder.path()))
    else {
        return;
    };
    syncs.begin(held.id(), Duration::from_secs(3600));
    syncs.begin(slow.id(), Duration::from_millis(50));
    go(&mut held);
    let begun = Instant::now();
    go(&mut slow);
    go(&mut quick);
    assert!(quick.wait().unwrap().success());
    assert!(slow.wait().unwrap().success());
    assert!(
        begun.elapsed() >= Duration::from_millis(150),
        "three syncs of 50 ms each took {:?}",
        begun.elapsed()
    );
    assert!(held.try_wait().unwrap().is_none(), "a sync of an hour has ended");
    assert_eq!((syncs.end(slow.id()), syncs.end(quick.id())), (3, 0));
    held.kill().unwrap();
    held.wait().unwrap();
}

#[test]
fn delayed_syncs_are_counted_until_the_fault_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut syncs = SlowSyncs::prepare().unwrap();
    syncs.start().unwrap();
    let Some(mut slow) = syncing(&syncs, folder.path()) else { return };
    let process = slow.id();
    syncs.begin(process, Duration::from_secs(3600));
    go(&mut slow);
    // It waits in its first sync, so no other one comes.
    while syncs.delayed(process) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(syncs.end(process), 1);
    assert_eq!(syncs.end(process), 0, "another fault counts anew");
    assert!(slow.try_wait().unwrap().is_none(), "a sync that was delayed waits to its end");
    slow.kill().unwrap();
    slow.wait().unwrap();
}

#[test]
fn half_of_a_write_is_done_and_the_next_one_goes_on_there() {
    let halves = |first: u64, expected: &[i32], work: fn(&Path, &mut Vec<i32>)| {
        assert_outcomes((FaultyCalls::PartialWrites, first, false, 0), expected, work);
    };
    fn count(outcome: io::Result<usize>) -> i32 {
        outcome.map_or(-1, |count| count as i32)
    }
    halves(1, &[3, 4, 1], |folder, outcomes| {
        let mut file = open(folder.join("new")).unwrap();
        outcomes.push(count(file.write(b"abcdefg")));
        outcomes.push(count(file.write(b"DEFG")));
        outcomes.push(i32::from(std::fs::read(folder.join("new")).unwrap() == b"abcDEFG"));
    });
    // A write of one byte cannot be done in part, so the second one is the first of them.
    halves(1, &[1, 2, 2, 1], |folder, outcomes| {
        let path = folder.join("old");
        let mut file = File::options().append(true).open(&path).unwrap();
        outcomes.push(count(file.write(b"a")));
        outcomes.push(count(file.write(b"bcde")));
        outcomes.push(count(file.write(b"de")));
        outcomes.push(i32::from(std::fs::read(&path).unwrap()[8192..] == *b"abcde"));
    });
    halves(2, &[2, 2, 1], |folder, outcomes| {
        let mut file = open(folder.join("old")).unwrap();
        outcomes.push(count(file.write_at(b"AB", 100)));
        outcomes.push(count(file.write_at(b"CDEF", 200)));
        let is_kept = file.stream_position().unwrap() == 0;
        let bytes = std::fs::read(folder.join("old")).unwrap();
        outcomes.push(i32::from(is_kept && bytes[100..102] == *b"AB" && bytes[200..204] == *b"CD\x07\x07"));
    });
    halves(1, &[4, 1], |folder, outcomes| {
        let mut file = open(folder.join("new")).unwrap();
        let pieces = [io::IoSlice::new(b"abc"), io::IoSlice::new(b"defgh")];
        outcomes.push(count(file.write_vectored(&pieces)));
        file.write_all(b"!").unwrap();
        outcomes.push(i32::from(std::fs::read(folder.join("new")).unwrap() == b"abcd!"));
    });
}
