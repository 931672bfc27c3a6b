//! The hub in the process of load generator 0: it counts who is at a gate, gives the time, and tells every load generator when
//! one is gone.

use super::PlanParts;
use super::connection::{NoSuchPlace, resolved};
use super::secret::{Secret, SecretError, nonce};
use super::wire::{
    Answer, Ask, BEAT, Broken, Frames, Greeting, Hello, Line, MOST_RUN, MOST_STRANGER, MOST_TRIAL, NAME,
    PATIENCE, Tell, VERSION,
};
use kvdyno_measure::start;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time from the moment at which all load generators are ready to the start of the phase.
const LEAD: Duration = Duration::from_millis(100);
/// A peer must have proven the secret within this time.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// Connections that have not proven the secret yet; more are closed at once.
const MOST_STRANGERS: usize = 64;
/// The pause between two looks at what a caller waits for.
const LOOK: Duration = Duration::from_millis(200);

/// The place where the load generators of a run meet.
pub struct Hub {
    inner: Arc<Inner>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

struct Inner {
    load_generators: u32,
    secret: Secret,
    plan: PlanParts,
    state: Mutex<State>,
    changed: Condvar,
    is_over: AtomicBool,
    strangers: AtomicUsize,
    started: Instant,
    /// The time at `started`, nanoseconds since 1970. The hub's time advances without the steps of the system's clock.
    started_ns: u64,
}

#[derive(Default)]
struct State {
    /// The load generators of the run that are connected.
    runs: BTreeMap<u32, Arc<Line>>,
    /// The load generators of the run that have gone, and why.
    gone: BTreeMap<u32, String>,
    trials: HashMap<String, Meeting>,
    /// Records that were handed in, by trial and load generator.
    records: HashMap<(String, u32), String>,
    /// Why connections were refused, for the one who waits for them.
    refused: Vec<String>,
}

/// A trial.
#[derive(Default)]
struct Meeting {
    load_generators: u32,
    lines: BTreeMap<u32, Arc<Line>>,
    left: BTreeSet<u32>,
    lost: Option<(u32, String)>,
    /// The gate at which each load generator waits.
    at: BTreeMap<u32, Gate>,
    /// What load generator 0 has said at its gate.
    note: String,
    /// The phases that a load generator has ended already.
    stopped: BTreeSet<String>,
}

#[derive(Clone, PartialEq)]
enum Gate {
    Meet(String),
    Start(String),
    Ended(String),
}

/// The connections that have queued messages. Messages are queued while the state is locked, so that every load generator hears
/// them in the order of the changes that they report, and sent when it is not.
type Post = Vec<Arc<Line>>;

fn queued<'l>(lines: impl IntoIterator<Item = &'l Arc<Line>>, tell: &Tell) -> Post {
    let post: Post = lines.into_iter().map(Arc::clone).collect();
    for line in &post {
        // Only a message of more than 4 GiB cannot be queued.
        let _ = line.queue(tell);
    }
    post
}

impl Meeting {
    /// Ends the trial in all load generators, unless it has ended in all of them.
    fn lose(&mut self, load_generator: u32, reason: &str) -> Post {
        if self.lost.is_some() || self.left.len() as u32 >= self.load_generators.max(1) {
            return Post::new();
        }
        self.lost = Some((load_generator, reason.to_string()));
        queued(self.lines.values(), &Tell::Lost { load_generator, reason: reason.to_string() })
    }

    /// A load generator has come to a gate. If it is the last one, the gate opens.
    fn arrive(&mut self, load_generator: u32, gate: Gate, go_ns: u64) -> Post {
        if let Some((lost, reason)) = &self.lost {
            let tell = Tell::Lost { load_generator: *lost, reason: reason.clone() };
            return queued(self.lines.get(&load_generator), &tell);
        }
        if let Some(&left) = self.left.first() {
            return self.lose(left, "it has ended the trial before the others");
        }
        let mut post = Post::new();
        if let Gate::Ended(name) = &gate
            && self.stopped.insert(name.clone())
        {
            let others =
                self.lines.iter().filter(|(other, _)| **other != load_generator).map(|(_, line)| line);
            post.extend(queued(others, &Tell::Stop { gate: name.clone() }));
        }
        self.at.insert(load_generator, gate.clone());
        if self.at.len() as u32 == self.load_generators {
            if self.at.values().all(|other| *other == gate) {
                self.at.clear();
                let note = std::mem::take(&mut self.note);
                let tell = match gate {
                    Gate::Meet(gate) => Tell::Met { gate, note },
                    Gate::Start(gate) => Tell::Go { gate, at_ns: go_ns },
                    Gate::Ended(gate) => Tell::Over { gate },
                };
                post.extend(queued(self.lines.values(), &tell));
            } else {
                // Each would wait for another one without end.
                post.extend(self.lose(
                    load_generator,
                    "it is in another phase than the others, which the engine or the workload refused there",
                ));
            }
        }
        post
    }
}

/// Why there is no hub.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The place where the load generators meet cannot be found.
    #[error(transparent)]
    NoSuchPlace(#[from] NoSuchPlace),
    /// The system refuses it.
    #[error(
        "cannot listen at {rendezvous}: {error}; name an address of this machine and a free port with --rendezvous"
    )]
    Refused {
        /// The place.
        rendezvous: String,
        /// The reason.
        error: io::Error,
    },
    /// The thread of the hub cannot be started.
    #[error("{0}")]
    Thread(io::Error),
}

/// Why not all load generators are there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AwaitError {
    /// One has come and gone.
    #[error("load generator {load_generator} of {load_generators}: {reason}")]
    Gone {
        /// The load generator.
        load_generator: u32,
        /// The number of load generators.
        load_generators: u32,
        /// Why.
        reason: String,
    },
    /// Some have not come.
    #[error(
        "these load generators of {load_generators} did not come: {}{}",
        missing.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
        refused.as_ref().map_or_else(String::new, |why| format!("; refused: {why}"))
    )]
    Missing {
        /// Them.
        missing: Vec<u32>,
        /// The number of load generators.
        load_generators: u32,
        /// Why the last connection was refused that was.
        refused: Option<String>,
    },
}

/// Why a run ends with a trial.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunEnd {
    /// A load generator is gone.
    #[error("load generator {load_generator}: {reason}")]
    Gone {
        /// The load generator.
        load_generator: u32,
        /// Why.
        reason: String,
    },
    /// The caller ends it, for this reason.
    #[error("{0}")]
    Stopped(String),
}

/// Why a connection is refused.
#[derive(Debug, thiserror::Error)]
enum Unwelcome {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Nonce(#[from] SecretError),
    /// The system has no other descriptor for it.
    #[error("{0}")]
    Descriptor(io::Error),
    #[error("it said nothing in time")]
    Silent,
    #[error("it does not know the secret")]
    NoProof,
    #[error("it expects {its} load generators, and load generator 0 {own}")]
    LoadGenerators { its: u32, own: u32 },
    #[error("there is no load generator {load_generator} of {load_generators}")]
    NoLoadGenerator { load_generator: u32, load_generators: u32 },
    #[error(
        "its plan differs from that of load generator 0 ({0}); start all load generators with the same arguments and version"
    )]
    Plan(String),
    #[error("load generator {0} is here already; each load generator must have its own number")]
    Twice(u32),
    #[error("load generator {0} was here and has gone; start all load generators again")]
    Again(u32),
    #[error("the trial has {0} load generators")]
    TrialLoadGenerators(u32),
}

/// The record of a load generator, or why there is none.
pub(crate) type Handed = Result<String, String>;

impl Hub {
    /// Listens at this address, `HOST:PORT`; port 0 chooses a free one.
    pub fn listen(
        rendezvous: &str,
        load_generators: u32,
        secret: Secret,
        plan: PlanParts,
    ) -> Result<Hub, ListenError> {
        let addresses = resolved(rendezvous)?;
        let failed = |error| ListenError::Refused { rendezvous: rendezvous.to_string(), error };
        let listener = TcpListener::bind(&addresses[..]).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let started_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let inner = Arc::new(Inner {
            load_generators,
            secret,
            plan,
            state: Mutex::default(),
            changed: Condvar::new(),
            is_over: AtomicBool::new(false),
            strangers: AtomicUsize::new(0),
            started: Instant::now(),
            started_ns,
        });
        let own = Arc::clone(&inner);
        let acceptor = start::thread_named("rendezvous", move || accept(&own, &listener));
        let acceptor = Some(acceptor.map_err(ListenError::Thread)?);
        Ok(Hub { inner, address, acceptor })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all other load generators have joined the run. An error names those that have not come after `patience`, or
    /// have gone again; `is_stopped` ends the wait.
    pub fn await_all(&self, patience: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), AwaitError> {
        let until = Instant::now() + patience;
        let load_generators = self.inner.load_generators;
        let mut state = self.inner.state();
        loop {
            let missing: Vec<u32> = (1..load_generators)
                .filter(|load_generator| !state.runs.contains_key(load_generator))
                .collect();
            if let Some((&load_generator, reason)) = state.gone.first_key_value() {
                return Err(AwaitError::Gone { load_generator, load_generators, reason: reason.clone() });
            }
            if missing.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until || is_stopped() {
                return Err(AwaitError::Missing {
                    missing,
                    load_generators,
                    refused: state.refused.last().cloned(),
                });
            }
            state = self.inner.wait(state);
        }
    }

    /// Waits for the records of a trial of `load_generators` load generators, after load generator 0 has ended it; the first is
    /// of load generator 1. A load generator that is gone has an error instead. None: `is_stopped` has ended the wait.
    pub fn gather(
        &self,
        trial: &str,
        load_generators: u32,
        is_stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Handed>> {
        let post = self.inner.end_unless_left(trial, 0, load_generators, "its trial has ended");
        deliver(post);
        let mut state = self.inner.state();
        loop {
            let key = |load_generator: u32| (trial.to_string(), load_generator);
            let is_known = |state: &State, load_generator: u32| {
                state.records.contains_key(&key(load_generator)) || state.gone.contains_key(&load_generator)
            };
            if (1..load_generators).all(|load_generator| is_known(&state, load_generator)) {
                let found = (1..load_generators).map(|load_generator| {
                    match state.records.remove(&key(load_generator)) {
                        Some(record) => Ok(record),
                        None => Err(state.gone.get(&load_generator).cloned().unwrap_or_default()),
                    }
                });
                let found = found.collect();
                state.trials.remove(trial);
                return Some(found);
            }
            if is_stopped() {
                return None;
            }
            state = self.inner.wait(state);
        }
    }

    /// Tells all load generators how a trial ended, as JSON. An error: the run ends with this trial, because a load generator
    /// is gone or for the reason that `stopped` has.
    pub fn announce(&self, trial: &str, outcome: &str, stopped: Option<&str>) -> Result<(), RunEnd> {
        let state = self.inner.state();
        let gone = state.gone.first_key_value();
        let gone =
            gone.map(|(&load_generator, reason)| RunEnd::Gone { load_generator, reason: reason.clone() });
        let end = gone.or(stopped.map(|reason| RunEnd::Stopped(reason.to_string())));
        let tell = Tell::Outcome {
            trial: trial.to_string(),
            outcome: outcome.to_string(),
            broken: end.as_ref().map(RunEnd::to_string),
        };
        let post = queued(state.runs.values(), &tell);
        drop(state);
        deliver(post);
        end.map_or(Ok(()), Err)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.inner.is_over.store(true, Ordering::Release);
        let state = self.inner.state();
        let post = queued(
            state.runs.values(),
            &Tell::Lost { load_generator: 0, reason: "its run has ended".into() },
        );
        let trials = state.trials.values().flat_map(|trial| trial.lines.values());
        let lines: Vec<Arc<Line>> = state.runs.values().chain(trials).map(Arc::clone).collect();
        // A load generator that does not read makes this wait.
        drop(state);
        deliver(post);
        lines.iter().for_each(|line| line.close());
        // Wakes the acceptor, which then ends. It may listen on all addresses, which cannot be connected to everywhere.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(if own.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        let is_woken = TcpStream::connect_timeout(&own, BEAT).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| is_woken) {
            let _ = acceptor.join();
        }
    }
}

fn deliver(post: Post) {
    for line in post {
        // A load generator that cannot be reached is noticed by the thread that reads from it.
        let _ = line.flush();
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
    }

    fn now_ns(&self) -> u64 {
        self.started_ns.saturating_add(self.started.elapsed().as_nanos() as u64)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends a trial in all load generators because its process in this load generator has ended, unless the load generator had
    /// left it.
    fn end_unless_left(&self, trial: &str, load_generator: u32, load_generators: u32, reason: &str) -> Post {
        let mut state = self.state();
        let meeting = state.trials.entry(trial.to_string()).or_default();
        meeting.load_generators = meeting.load_generators.max(load_generators);
        if meeting.left.contains(&load_generator) {
            Post::new()
        } else {
            meeting.lose(load_generator, reason)
        }
    }

    /// What differs between the plan of a load generator and that of load generator 0.
    fn difference(&self, plan: &PlanParts) -> Option<String> {
        let names =
            self.plan.iter().zip(plan).filter(|(own, other)| own != other).map(|(own, _)| own.0.as_str());
        let names: Vec<&str> = names.collect();
        match (names.is_empty(), self.plan.len() == plan.len()) {
            (true, true) => None,
            (true, false) => Some("version of kvdyno".to_string()),
            _ => Some(names.join(", ")),
        }
    }
}

fn accept(inner: &Arc<Inner>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if inner.is_over() {
            return;
        }
        let Ok(stream) = stream else {
            // Too many open files, for example.
            std::thread::sleep(LOOK);
            continue;
        };
        if inner.strangers.fetch_add(1, Ordering::AcqRel) >= MOST_STRANGERS {
            inner.strangers.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let own = Arc::clone(inner);
        let serve = move || serve(&own, stream);
        if start::thread_named("rendezvous", serve).is_err() {
            inner.strangers.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Serves a connection until it ends.
fn serve(inner: &Arc<Inner>, stream: TcpStream) {
    let met = introduced(inner, &stream);
    inner.strangers.fetch_sub(1, Ordering::AcqRel);
    match met {
        Ok((hello, line, frames)) => {
            let reason = serve_known(inner, &hello, &line, frames);
            let post = leave(inner, &hello, &line, &reason);
            inner.changed.notify_all();
            deliver(post);
            line.close();
        }
        Err(reason) => {
            const KEPT: usize = 16;
            let mut state = inner.state();
            if state.refused.len() < KEPT {
                state.refused.push(reason.to_string());
            }
        }
    }
}

/// Greets a peer and checks its proof.
fn introduced(inner: &Inner, stream: &TcpStream) -> Result<(Hello, Arc<Line>, Frames), Unwelcome> {
    let until = Instant::now() + INTRODUCTION;
    let line = Arc::new(Line::new(stream)?);
    let own = nonce()?;
    line.send(&Greeting { name: NAME.into(), version: VERSION, nonce: own.clone() })?;
    let mut frames = Frames::new(stream.try_clone().map_err(Unwelcome::Descriptor)?, MOST_STRANGER);
    let refuse = |reason: Unwelcome| {
        // It may have gone already.
        let _ = line.send(&Answer::Refused { reason: reason.to_string() });
        reason
    };
    let hello: Hello = match frames.next(until) {
        Ok(Some(hello)) => hello,
        Ok(None) => return Err(refuse(Unwelcome::Silent)),
        Err(broken) => return Err(refuse(broken.into())),
    };
    let proven = hello.proven(&own);
    let parts: Vec<&str> = proven.iter().map(String::as_str).collect();
    if !inner.secret.proves(&parts, &hello.proof) {
        return Err(refuse(Unwelcome::NoProof));
    }
    if hello.trial.is_none() && hello.load_generators != inner.load_generators {
        return Err(refuse(Unwelcome::LoadGenerators {
            its: hello.load_generators,
            own: inner.load_generators,
        }));
    }
    if hello.load_generator >= hello.load_generators || hello.load_generators > inner.load_generators {
        return Err(refuse(Unwelcome::NoLoadGenerator {
            load_generator: hello.load_generator,
            load_generators: hello.load_generators,
        }));
    }
    if hello.trial.is_none()
        && let Some(difference) = inner.difference(&hello.plan)
    {
        return Err(refuse(Unwelcome::Plan(difference)));
    }
    let proof = inner.secret.proof(&["hub", &hello.nonce, &own]);
    join(inner, &hello, &line, &Answer::Welcome { proof }).map_err(refuse)?;
    let most = if hello.trial.is_none() { MOST_RUN } else { MOST_TRIAL };
    frames.allow(most);
    if let Err(broken) = line.flush() {
        deliver(leave(inner, &hello, &line, &broken.to_string()));
        return Err(broken.into());
    }
    inner.changed.notify_all();
    Ok((hello, line, frames))
}

/// Adds a connection, whose first message is the welcome.
fn join(inner: &Inner, hello: &Hello, line: &Arc<Line>, welcome: &Answer) -> Result<(), Unwelcome> {
    let mut state = inner.state();
    let load_generator = hello.load_generator;
    let Some(trial) = &hello.trial else {
        if load_generator == 0 || state.runs.contains_key(&load_generator) {
            return Err(Unwelcome::Twice(load_generator));
        }
        if state.gone.contains_key(&load_generator) {
            return Err(Unwelcome::Again(load_generator));
        }
        line.queue(welcome)?;
        state.runs.insert(load_generator, Arc::clone(line));
        return Ok(());
    };
    let gone = state
        .gone
        .range(..hello.load_generators)
        .next()
        .map(|(load_generator, reason)| (*load_generator, reason.clone()));
    let meeting = state.trials.entry(trial.clone()).or_default();
    // Whoever has gone before the trial began does not come to its gates.
    if let Some((gone, reason)) = gone.filter(|(gone, _)| !meeting.left.contains(gone)) {
        meeting.lost.get_or_insert((gone, reason));
    }
    if meeting.load_generators == 0 {
        meeting.load_generators = hello.load_generators;
    }
    if meeting.load_generators != hello.load_generators {
        return Err(Unwelcome::TrialLoadGenerators(meeting.load_generators));
    }
    if meeting.lines.contains_key(&load_generator) || meeting.left.contains(&load_generator) {
        return Err(Unwelcome::Twice(load_generator));
    }
    line.queue(welcome)?;
    meeting.lines.insert(load_generator, Arc::clone(line));
    Ok(())
}

/// Handles the messages of a connection until it ends; returns why.
fn serve_known(inner: &Inner, hello: &Hello, line: &Line, mut frames: Frames) -> String {
    let mut beaten = Instant::now();
    loop {
        let ask = match frames.next::<Ask>(Instant::now() + BEAT) {
            Ok(ask) => ask,
            Err(broken) => return broken.to_string(),
        };
        if inner.is_over() {
            return "the run is over".to_string();
        }
        match ask {
            Some(ask) => {
                if let Err(broken) = handle(inner, hello, line, ask) {
                    return broken.to_string();
                }
            }
            // Only here is all read that has arrived: what an earlier message caused may have taken long.
            None if frames.heard.elapsed() > PATIENCE => {
                return format!("it has said nothing for {} s", PATIENCE.as_secs());
            }
            None => {}
        }
        if beaten.elapsed() >= BEAT {
            beaten = Instant::now();
            if let Err(broken) = line.send(&Tell::Alive) {
                return broken.to_string();
            }
        }
    }
}

fn handle(inner: &Inner, hello: &Hello, line: &Line, ask: Ask) -> Result<(), Broken> {
    let gate = match ask {
        Ask::Alive => return Ok(()),
        // At once, because the time until the answer is the error of the clock.
        Ask::Time { number } => return line.send(&Tell::Time { number, at_ns: inner.now_ns() }),
        Ask::Record { trial, record } => {
            let post = inner.end_unless_left(&trial, hello.load_generator, 0, "its trial has ended");
            inner.state().records.insert((trial, hello.load_generator), record);
            inner.changed.notify_all();
            deliver(post);
            return Ok(());
        }
        Ask::Meet { gate, note } => {
            if hello.load_generator == 0 {
                in_trial(inner, hello, |meeting| {
                    meeting.note = note;
                    Post::new()
                });
            }
            Gate::Meet(gate)
        }
        Ask::Start { gate } => Gate::Start(gate),
        Ask::Ended { gate } => Gate::Ended(gate),
        Ask::Failed { reason } => {
            deliver(in_trial(inner, hello, |meeting| meeting.lose(hello.load_generator, &reason)));
            return Ok(());
        }
        Ask::Leave => {
            let post = in_trial(inner, hello, |meeting| {
                meeting.left.insert(hello.load_generator);
                // Nobody may wait for a load generator that has left.
                if meeting.at.is_empty() {
                    Post::new()
                } else {
                    meeting.lose(hello.load_generator, "it has ended the trial before the others")
                }
            });
            deliver(post);
            return Ok(());
        }
    };
    let go_ns = inner.now_ns().saturating_add(LEAD.as_nanos() as u64);
    deliver(in_trial(inner, hello, |meeting| meeting.arrive(hello.load_generator, gate, go_ns)));
    Ok(())
}

fn in_trial(inner: &Inner, hello: &Hello, act: impl FnOnce(&mut Meeting) -> Post) -> Post {
    let Some(trial) = &hello.trial else { return Post::new() };
    inner.state().trials.get_mut(trial).map_or_else(Post::new, act)
}

/// Removes a connection that has ended.
fn leave(inner: &Inner, hello: &Hello, line: &Arc<Line>, reason: &str) -> Post {
    let mut state = inner.state();
    let load_generator = hello.load_generator;
    let Some(trial) = &hello.trial else {
        state.runs.remove(&load_generator);
        state.gone.insert(load_generator, format!("its run has ended ({reason})"));
        // No trial can go on without it.
        let trials = state.trials.values_mut().filter(|meeting| {
            load_generator < meeting.load_generators && !meeting.left.contains(&load_generator)
        });
        return trials.flat_map(|meeting| meeting.lose(load_generator, "its run has ended")).collect();
    };
    let Some(meeting) = state.trials.get_mut(trial) else { return Post::new() };
    if meeting.lines.get(&load_generator).is_some_and(|own| Arc::ptr_eq(own, line)) {
        meeting.lines.remove(&load_generator);
    }
    let text = format!("its trial's process has ended ({reason})");
    if meeting.left.contains(&load_generator) { Post::new() } else { meeting.lose(load_generator, &text) }
}

#[cfg(test)]
mod tests;
