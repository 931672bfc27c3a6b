//! A process that is forked from this one, and that is killed at one of its calls that change a folder: before it, or after some
//! pages of a write. The filter is that of faults; instead of an error, the call gets no answer.
//!
//! Syncs return at once without being done: they change nothing that a process can see, and the kernel outlives the kill.

#![allow(unsafe_code, reason = "system calls")]

use super::change::{self, change_of, unseen_of};
use super::filter;
use super::supervisor::{answer, asked, channel, receive, send, wake_synchronously};
use super::{Change, Point, Ran, Watch};
use crate::checked;
use crate::processes::{Patience, kill_tree};
use crate::resources::{descendants, descendants_of};
use crate::shortage::explained;
use std::collections::BTreeSet;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Interval between two looks at whether the process makes progress, milliseconds.
const LOOK_MS: libc::c_int = 200;
/// What is kept of its stdout, bytes.
const PRINTED_BYTES: usize = 16 << 20;
/// The exit code after a panic.
const PANICKED: i32 = 101;
/// How long a killed process may take to end.
const ENDING: Duration = Duration::from_secs(20);
/// Interval between two looks at a process that is ending.
const PAUSE: Duration = Duration::from_micros(200);

/// A call that syncs was done.
const DONE: Option<i64> = Some(0);

/// Runs `work` in a new process, whose stdout is read here, until it has ended, or is killed: at the call that is watched for, or
/// because neither a call, nor output, nor `progress` has changed for as long as `stall`. If this process has other threads, `work`
/// may do only what a fork of it may. An error says that calls cannot be watched here, or that there is no process.
pub fn forked(
    watch: Option<&Watch>,
    stall: Duration,
    progress: &dyn Fn() -> u64,
    work: impl FnOnce(),
) -> io::Result<Ran> {
    // Before the fork, because the new process must not allocate before it has the filter.
    let mut program = watch.map(|_| filter::program(&change::numbers()));
    let (above, below) = channel()?;
    let (reader, writer) = io::pipe()?;
    // SAFETY: a plain system call; the new process makes only system calls until it has the filter.
    match unsafe { libc::fork() } {
        -1 => Err(explained(io::Error::last_os_error())),
        0 => {
            drop((above, reader));
            let installed = enter(program.as_deref_mut(), &below, writer);
            drop(below);
            let code = match installed {
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
                Ok(()) if catch_unwind(AssertUnwindSafe(work)).is_err() => PANICKED,
                Ok(()) => 0,
            };
            // SAFETY: ends this process without the exit handlers of the process that it was forked from.
            unsafe { libc::_exit(code) }
        }
        process => {
            drop((below, writer));
            let watched = Watched {
                process,
                watch,
                reader,
                ran: Ran {
                    changes: Vec::new(),
                    unseen: BTreeSet::new(),
                    killed: None,
                    is_stalled: false,
                    status: ExitStatus::default(),
                    printed: String::new(),
                },
                printed: Vec::new(),
                below: Vec::new(),
            };
            watched.follow(&above, stall, progress)
        }
    }
}

/// Kills this process with all that it has started, as if from outside: nothing after this is done, no exit handler either.
pub fn end_here() -> ! {
    let own = std::process::id();
    end_started();
    loop {
        // SAFETY: a plain system call.
        unsafe { libc::kill(own as libc::pid_t, libc::SIGKILL) };
    }
}

/// Kills all that this process has started or adopted, and waits until it has ended. Nobody else may wait for one of them.
pub fn end_started() {
    while let [_, ..] = descendants()[..] {
        for process in descendants() {
            // SAFETY: a plain system call, on a process that this one has started.
            unsafe { libc::kill(process as libc::pid_t, libc::SIGKILL) };
        }
        // SAFETY: waits for any child of this process; no status is wanted.
        unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
    }
}

/// What the new process does first: it ends with the one above, adopts what its own ones leave, and prints into the pipe. Makes only
/// system calls.
fn enter(program: Option<&mut [libc::sock_filter]>, below: &OwnedFd, writer: PipeWriter) -> io::Result<()> {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        checked(libc::dup2(writer.as_raw_fd(), libc::STDOUT_FILENO))?;
    }
    drop(writer);
    match program {
        Some(program) => {
            filter::install(program, false).and_then(|listener| send(below, &listener, std::process::id()))
        }
        None => Ok(()),
    }
}

/// A process that is followed to its end.
struct Watched<'w> {
    process: libc::pid_t,
    watch: Option<&'w Watch>,
    reader: PipeReader,
    ran: Ran,
    printed: Vec<u8>,
    /// What it had started when it was killed.
    below: Vec<u32>,
}

fn polled(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

impl Watched<'_> {
    fn follow(mut self, above: &OwnedFd, stall: Duration, progress: &dyn Fn() -> u64) -> io::Result<Ran> {
        let followed = self.answer_all(above, stall, progress);
        if !matches!(followed, Ok(true)) {
            self.kill();
        }
        self.ran.status = self.awaited()?;
        let has_filter = followed?;
        if !has_filter {
            let code = self.ran.status.code().unwrap_or(libc::EIO);
            return Err(io::Error::from_raw_os_error(code));
        }
        self.await_below()?;
        self.drain()?;
        self.ran.printed = String::from_utf8_lossy(&self.printed).into_owned();
        Ok(self.ran)
    }

    /// Answers calls until the process has ended; whether it has installed the filter, if it should.
    fn answer_all(
        &mut self,
        above: &OwnedFd,
        stall: Duration,
        progress: &dyn Fn() -> u64,
    ) -> io::Result<bool> {
        let listener = match self.watch {
            None => None,
            Some(_) => match receive(above)? {
                Some((_, listener)) => Some(listener),
                None => return Ok(false),
            },
        };
        if let Some(listener) = &listener {
            wake_synchronously(listener);
        }
        let ended = descriptor_of(self.process)?;
        let own = listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let mut events = [polled(own), polled(ended.as_raw_fd()), polled(self.reader.as_raw_fd())];
        let (mut patience, mut last) = (Patience::new(stall), progress());
        loop {
            // SAFETY: the array is live and its length is given.
            let count = match checked(unsafe { libc::poll(events.as_mut_ptr(), 3, LOOK_MS) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            };
            if events[2].revents != 0 && !self.read_some()? {
                events[2].fd = -1;
            }
            if events[1].revents != 0 {
                return Ok(true);
            }
            if let Some(listener) = listener.as_ref().filter(|_| events[0].revents & libc::POLLIN != 0) {
                self.answer(listener)?;
                if self.ran.killed.is_some() {
                    // What its other threads ask gets no answer.
                    events[0].fd = -1;
                }
            } else if events[0].revents != 0 {
                // Nobody has the filter any more, so the process is about to end.
                events[0].fd = -1;
            }
            let now = progress();
            if count > 0 || now != last {
                (patience, last) = (Patience::new(stall), now);
            } else if patience.is_over() {
                self.ran.is_stalled = self.ran.killed.is_none();
                return if self.ran.is_stalled {
                    self.kill();
                    Ok(true)
                } else {
                    Err(io::Error::new(io::ErrorKind::TimedOut, "a killed process does not end"))
                };
            }
        }
    }

    /// Counts a call; lets it continue, or kills the process.
    fn answer(&mut self, listener: &OwnedFd) -> io::Result<()> {
        let (Some(watch), Some(asked)) = (self.watch, asked(listener)?) else { return Ok(()) };
        self.ran.unseen.extend(unseen_of(&asked, &watch.folder));
        let Some(change) = change_of(&asked, &watch.folder) else {
            return answer(listener, asked.id, None).map(drop);
        };
        let Change { boundaries, .. } = change;
        self.ran.changes.push(change);
        let call = self.ran.changes.len() as u64;
        if let Some(point) = watch.until.filter(|point| point.call == call) {
            // A call that cannot be done in part is not begun.
            let is_torn =
                (1..=boundaries).contains(&point.pages) && change::tear(&asked, point.pages).is_ok();
            self.kill();
            self.ran.killed = Some(Point { call, pages: if is_torn { point.pages } else { 0 } });
            return Ok(());
        }
        let done = if change::is_sync(&asked) { DONE } else { None };
        if !answer(listener, asked.id, done)? {
            // A signal interrupted it before it was done, and it comes again.
            self.ran.changes.pop();
        }
        Ok(())
    }

    fn kill(&mut self) {
        let process = self.process as u32;
        self.below.extend(descendants_of(process));
        kill_tree(process);
    }

    /// Its status, once it has ended.
    fn awaited(&self) -> io::Result<ExitStatus> {
        let mut status = 0;
        // SAFETY: the pointer refers to a live number.
        while unsafe { libc::waitpid(self.process, &mut status, 0) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(ExitStatus::from_raw(status))
    }

    /// Waits until what it had started has ended.
    fn await_below(&self) -> io::Result<()> {
        let begun = Instant::now();
        for process in &self.below {
            // One that this process has adopted is waited for; another one has no entry any more, or a new parent that does it.
            // SAFETY: a plain system call; no status is wanted.
            while unsafe { libc::waitpid(*process as libc::pid_t, std::ptr::null_mut(), libc::WNOHANG) } == 0
            {
                if begun.elapsed() > ENDING {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "a killed process does not end"));
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// Reads what it has printed; whether it may print more.
    fn read_some(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 << 10];
        let count = self.reader.read(&mut piece)?;
        let room = PRINTED_BYTES.saturating_sub(self.printed.len());
        self.printed.extend(&piece[..count.min(room)]);
        Ok(count > 0)
    }

    /// Reads what is left in the pipe.
    fn drain(&mut self) -> io::Result<()> {
        // SAFETY: a plain system call on a descriptor of this process.
        checked(unsafe { libc::fcntl(self.reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })?;
        loop {
            match self.read_some() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A descriptor that can be read once a process has ended.
fn descriptor_of(process: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call, which returns a new descriptor.
    let descriptor = checked(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) } as i32)?;
    // SAFETY: the descriptor has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync_calls::Unseen;
    use std::fs;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::Path;

    const STALL: Duration = Duration::from_secs(60);

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// A planted program that is killed; `None`, with a printed reason, where the kernel has no such filter.
    fn ran(folder: &Path, until: Option<Point>, stall: Duration, work: impl FnOnce()) -> Option<Ran> {
        let watch = Watch { folder: folder.canonicalize().unwrap(), until };
        match forked(Some(&watch), stall, &|| 0, work) {
            Ok(ran) => Some(ran),
            Err(error) => {
                let must = std::env::var("CI").as_deref() == Ok("true");
                assert!(!must, "CI needs the seccomp filter: {error}");
                println!("skipped: no seccomp notification: {error}");
                None
            }
        }
    }

    /// Writes a file of three pages in two calls, syncs, renames and cuts it, and makes a call that changes nothing.
    fn program(folder: &Path) {
        let (old, new) = (folder.join("old"), folder.join("new"));
        let file =
            fs::File::options().read(true).write(true).create(true).truncate(false).open(&old).unwrap();
        file.write_all_at(&[1; 100], 0).unwrap();
        file.write_all_at(&vec![2; 3 * 4096 - 100], 100).unwrap();
        file.sync_data().unwrap();
        fs::rename(&old, &new).unwrap();
        drop(fs::File::options().write(true).create(true).truncate(false).open(&new).unwrap());
        file.set_len(10).unwrap();
        fs::remove_file(&new).unwrap();
    }

    /// Names and sizes of the files, in order.
    fn files(folder: &Path) -> Vec<(String, u64)> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_process_is_killed_before_each_call_and_within_writes_and_the_files_are_as_before_it() {
        let last = 3 * 4096;
        let states = [
            (1, 0, None),
            (2, 0, Some(("old", 0_u64))),
            (3, 0, Some(("old", 100))),
            (3, 1, Some(("old", 4096))),
            (3, 2, Some(("old", 8192))),
            (4, 0, Some(("old", last))),
            (5, 0, Some(("old", last))),
            (6, 0, Some(("new", last))),
            (7, 0, Some(("new", 10))),
            (8, 0, None),
        ];
        let texts = [
            "create old",
            "pwrite 100 bytes at 0 of old",
            "pwrite 12188 bytes at 100 of old",
            "fdatasync old",
            "rename old -> new",
            "ftruncate new to 10 bytes",
            "unlink new",
        ];
        for (call, pages, expected) in states {
            let folder = folder();
            let point = Point { call, pages };
            let Some(ran) = ran(folder.path(), Some(point), STALL, || program(folder.path())) else { return };
            let found: Vec<&str> = ran.changes.iter().map(|change| change.text.as_str()).collect();
            assert_eq!(found, texts[..texts.len().min(call as usize)], "{point:?}");
            let expected: Vec<_> =
                expected.into_iter().map(|(name, size)| (name.to_string(), size)).collect();
            assert_eq!(files(folder.path()), expected, "{point:?}");
            // After the last call it ends by itself.
            assert_eq!(ran.killed, (call <= texts.len() as u64).then_some(point));
            assert_eq!(ran.status.signal(), ran.killed.map(|_| libc::SIGKILL));
            if call > 3 {
                assert_eq!(ran.changes[2].boundaries, 2);
            }
        }
    }

    #[test]
    fn writes_that_append_and_those_from_several_places_end_at_a_page_boundary_and_direct_ones_do_not() {
        let folder = folder();
        let path = folder.path().join("file");
        fs::write(&path, [9; 4000]).unwrap();
        let appends = || {
            use std::io::{IoSlice, Write};
            let mut file = fs::File::options().append(true).open(&path).unwrap();
            let (first, second) = ([1; 50], [2; 9000]);
            let _ = file.write_vectored(&[IoSlice::new(&first), IoSlice::new(&second)]);
        };
        let point = Some(Point { call: 1, pages: 2 });
        let Some(killed) = ran(folder.path(), point, STALL, appends) else { return };
        assert_eq!((killed.killed, killed.changes[0].boundaries), (point, 3));
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes, [vec![9; 4000], vec![1; 50], vec![2; 8192 - 4050]].concat());
        let direct = || {
            let file = fs::File::options().write(true).custom_flags(libc::O_DIRECT).open(&path);
            let _ = file.and_then(|file| file.write_at(&[3; 8192], 0));
        };
        let Some(killed) = ran(folder.path(), point, STALL, direct) else { return };
        // A file system in memory may have no direct writes at all.
        assert!(killed.changes.iter().all(|change| change.boundaries == 0), "{:?}", killed.changes);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn what_it_prints_and_maps_is_known_and_files_elsewhere_are_not_its_own() {
        let (folder, other) = (folder(), folder());
        let path = folder.path().join("mapped");
        fs::write(&path, [0; 4096]).unwrap();
        let work = || {
            fs::write(other.path().join("file"), "elsewhere").unwrap();
            let file = fs::File::options().read(true).write(true).open(&path).unwrap();
            // SAFETY: a new mapping, and a write of static text to stdout.
            unsafe {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(std::ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file.as_raw_fd(), 0);
                libc::write(libc::STDOUT_FILENO, c"told".as_ptr().cast(), 4);
            }
            end_here()
        };
        let Some(ran) = ran(folder.path(), None, STALL, work) else { return };
        assert_eq!((ran.printed.as_str(), ran.changes.len(), ran.killed), ("told", 0, None));
        assert_eq!(ran.unseen, BTreeSet::from([Unseen::Map("mapped".into())]));
        assert_eq!(ran.status.signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_process_without_progress_is_killed_and_one_that_panics_has_its_code() {
        let folder = folder();
        let hangs = || loop {
            std::thread::sleep(Duration::from_secs(60));
        };
        let Some(hung) = ran(folder.path(), None, Duration::from_millis(300), hangs) else { return };
        assert!(hung.is_stalled && hung.status.signal() == Some(libc::SIGKILL));
        let exits = || {
            // SAFETY: ends the process of the test.
            unsafe { libc::_exit(7) }
        };
        let plain = forked(None, STALL, &|| 0, exits).unwrap();
        assert_eq!((plain.status.code(), plain.is_stalled), (Some(7), false));
    }
}
