//! A slow disk: the sync calls of a server that was started for a trial are delayed before the kernel does them.
//!
//! A server that is to be slowed installs a filter that stops nothing but syncs, just before it becomes the server, and hands it
//! over to the trial's process. A thread there lets each stopped call continue, at once or later. It never waits for one call:
//! those that are delayed are kept with the moment at which they continue, and all others go on meanwhile.

#![allow(unsafe_code, reason = "system calls")]

use super::CallKind;
use super::filter;
use super::supervisor::{answer, asked, channel, receive, send};
use crate::checked;
use crate::start;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is done to the syncs of a process.
#[derive(Clone, Copy, Default)]
struct Slowed {
    /// Zero: nothing.
    delay: Duration,
    /// The syncs that were delayed since it began.
    delayed: u64,
}

type All = Arc<Mutex<HashMap<u32, Slowed>>>;

/// The syncs of the processes that have handed them over.
pub struct SlowSyncs {
    all: All,
    /// The end at which they arrive; none: it has been started.
    ours: Option<OwnedFd>,
    /// The end that such processes inherit.
    theirs: OwnedFd,
}

/// A process that has handed over its syncs.
struct Source {
    process: u32,
    listener: OwnedFd,
}

/// A call that waits: when it continues, the place of its source, and its number.
type Held = (Instant, usize, u64);

fn lock(all: &All) -> MutexGuard<'_, HashMap<u32, Slowed>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SlowSyncs {
    /// Makes the channel.
    pub fn prepare() -> io::Result<SlowSyncs> {
        let (ours, theirs) = channel()?;
        // SAFETY: a plain system call on a descriptor of ours. Programs that this process starts inherit it.
        checked(unsafe { libc::fcntl(theirs.as_raw_fd(), libc::F_SETFD, 0) })?;
        Ok(SlowSyncs { all: All::default(), ours: Some(ours), theirs })
    }

    /// Starts the thread that lets syncs continue; it ends with this process.
    pub fn start(&mut self) -> io::Result<()> {
        let Some(ours) = self.ours.take() else { return Ok(()) };
        let own = Arc::clone(&self.all);
        start::thread_named("slow-syncs", move || {
            // Without it no sync of the servers would end.
            if let Err(error) = serve(&ours, &own) {
                eprintln!("cannot let the sync calls of servers continue: {error}");
                std::process::exit(1);
            }
        })?;
        Ok(())
    }

    /// The descriptor to which a process that was started by this one hands over its syncs.
    pub fn channel(&self) -> RawFd {
        self.theirs.as_raw_fd()
    }

    /// Whether a process has handed over its syncs.
    pub fn sees(&self, process: u32) -> bool {
        lock(&self.all).contains_key(&process)
    }

    /// Delays each sync of a process, and of those that it starts, from now on.
    pub fn begin(&self, process: u32, delay: Duration) {
        self.set(process, Slowed { delay, delayed: 0 });
    }

    /// Syncs are delayed no more; those that wait still wait to their end. Returns the number of all that were.
    pub fn end(&self, process: u32) -> u64 {
        self.set(process, Slowed::default()).delayed
    }

    /// What was done to it before.
    fn set(&self, process: u32, slowed: Slowed) -> Slowed {
        let mut all = lock(&self.all);
        all.get_mut(&process).map(|own| std::mem::replace(own, slowed)).unwrap_or_default()
    }

    /// The syncs of a process that were delayed so far.
    #[cfg(test)]
    pub fn delayed(&self, process: u32) -> u64 {
        lock(&self.all).get(&process).map_or(0, |slowed| slowed.delayed)
    }
}

/// Hands over the syncs of this process, of all its threads, and of the processes and programs that come from it. Before it has a
/// second thread; the descriptor is closed when it becomes another program.
pub fn hand_over_syncs(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call, which fails if there is no such descriptor.
    checked(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open and was inherited for this, so it has no other owner.
    let above = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let listener = filter::install(&mut filter::program_of_syncs(), true)?;
    send(&above, &listener, std::process::id())
}

/// Whether calls of this kind are delayed.
fn is_sync(kind: CallKind) -> bool {
    use CallKind::*;
    matches!(kind, Fsync | Fdatasync | Msync | Syncfs | Sync | RangeFlush)
}

fn polled(descriptor: &OwnedFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Lets calls continue as long as somebody makes any, or may hand over its own.
fn serve(ours: &OwnedFd, all: &All) -> io::Result<()> {
    // Those that have ended stay as `None`, so that the others keep their places.
    let mut sources: Vec<Option<Source>> = Vec::new();
    let mut held: BTreeSet<Held> = BTreeSet::new();
    let mut is_open = true;
    while is_open || sources.iter().any(Option::is_some) {
        let known: Vec<usize> = (0..sources.len()).filter(|place| sources[*place].is_some()).collect();
        let mut events = vec![polled(ours)];
        if !is_open {
            events[0].fd = -1;
        }
        events.extend(sources.iter().flatten().map(|source| polled(&source.listener)));
        wait(&mut events, held.first().map(|(due, ..)| *due))?;
        let now = Instant::now();
        while let Some((_, place, id)) = held.first().copied().filter(|(due, ..)| *due <= now) {
            held.pop_first();
            let Some(source) = &sources[place] else { continue };
            if !answer(&source.listener, id, None)? {
                // Its thread was killed, so the call was not done.
                lock(all).entry(source.process).and_modify(|own| own.delayed = own.delayed.saturating_sub(1));
            }
        }
        for (event, place) in events[1..].iter().zip(known) {
            let Some(source) = &sources[place] else { continue };
            if event.revents & libc::POLLIN != 0 {
                let Some(asked) = asked(&source.listener)? else { continue };
                let is_sync = filter::kind_of(&asked).is_some_and(is_sync);
                let delay = if is_sync { delay_of(all, source.process) } else { Duration::ZERO };
                if delay.is_zero() {
                    answer(&source.listener, asked.id, None)?;
                } else {
                    held.insert((Instant::now() + delay, place, asked.id));
                }
            } else if event.revents != 0 {
                // Nobody has this filter any more. What was delayed may still be asked for.
                sources[place] = None;
            }
        }
        if events[0].revents != 0 {
            match receive(ours)? {
                Some((process, listener)) => {
                    lock(all).insert(process, Slowed::default());
                    sources.push(Some(Source { process, listener }));
                }
                None => is_open = false,
            }
        }
    }
    Ok(())
}

/// How long a sync of a process is delayed now; one that is delayed is counted.
fn delay_of(all: &All, process: u32) -> Duration {
    let mut all = lock(all);
    let Some(own) = all.get_mut(&process) else { return Duration::ZERO };
    own.delayed += u64::from(!own.delay.is_zero());
    own.delay
}

/// Waits for an event, up to a moment.
fn wait(events: &mut [libc::pollfd], until: Option<Instant>) -> io::Result<()> {
    let left = until.map(|until| {
        let left = until.saturating_duration_since(Instant::now());
        libc::timespec { tv_sec: left.as_secs() as libc::time_t, tv_nsec: left.subsec_nanos().into() }
    });
    let limit = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the events are live and their number is given; the time is live, or there is none.
    let outcome =
        unsafe { libc::ppoll(events.as_mut_ptr(), events.len() as libc::nfds_t, limit, std::ptr::null()) };
    match checked(outcome) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            events.iter_mut().for_each(|event| event.revents = 0);
            Ok(())
        }
        outcome => outcome.map(drop),
    }
}
