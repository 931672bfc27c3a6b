//! The faults of a phase: a thread that kills, pauses, restarts, cuts off and slows members at their moments, and undoes that; and
//! the record of what it did to the service.

mod errors;
mod outage;

pub(crate) use errors::OpError;
pub(crate) use outage::Acknowledged;

use super::{Companion, Stage};
use crate::engine::{Member, Members};
use crate::results::{Cause, Disturbed, FaultRecord, OpErrors, PhaseRecord};
use crate::runner::end_count::Finished;
use crate::runner::means::Means;
use crate::runner::phase_data::{Failure, Shared};
use crate::runner::worker::Outcome;
use crate::workload::{FaultKind, MemberFault, OpKind, Target, Workload};
use kvdyno_measure::processes::{continue_tree, kill_tree, stop_tree};
use kvdyno_measure::resources::descendants;
use kvdyno_measure::start::thread_in_or_exit;
use outage::{Service, Span};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// How long the threads of a member may take to stop: one that waits for a disk stops only when it has been answered.
const STOPPING: Duration = Duration::from_secs(10);
/// How long a store may take to elect a leader, and the interval between two questions for it.
const ELECTION: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);
/// The time after the end of a fault that is not "before" the next one.
const CALM_NS: u64 = 1_000_000_000;
/// The number of kinds of errors in a record.
const KINDS: usize = 20;

/// The members of the store in a phase.
pub(crate) struct MemberFaults<'s> {
    shared: &'s Shared<'s>,
    means: &'s Mutex<Means>,
    disturbing: Option<ScopedJoinHandle<'s, Vec<Happened>>>,
    happened: Vec<Happened>,
}

impl<'s> MemberFaults<'s> {
    /// Tells the driver whether members fail in the phase. Does nothing if the store has no members.
    pub(crate) fn new(shared: &'s Shared<'s>, means: &'s Mutex<Means>) -> Result<MemberFaults<'s>, Failure> {
        let mut locked = lock(means);
        if !locked.members.all().is_empty() {
            let told = locked.members.begin_phase(!shared.faults.is_empty());
            told.map_err(|error| Failure { cause: Cause::EngineError, text: error.to_string() })?;
        }
        Ok(MemberFaults { shared, means, disturbing: None, happened: Vec::new() })
    }
}

impl<'s> Companion<'s> for MemberFaults<'s> {
    fn start(&mut self, stage: &Stage<'s, '_>) {
        if !self.shared.faults.is_empty() {
            let (shared, means, finished) = (self.shared, self.means, Arc::clone(&stage.finished));
            let disturb = move || disturb(shared, means, &finished);
            self.disturbing = Some(thread_in_or_exit(stage.scope, disturb));
        }
    }

    fn end(&mut self, _outcomes: &[Outcome]) {
        if let Some(disturbing) = self.disturbing.take() {
            self.happened = disturbing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }

    fn record(self: Box<Self>, outcomes: &[Outcome], record: &mut PhaseRecord) {
        if !self.shared.faults.is_empty() {
            record.disturbed = Some(disturbed(self.shared, &self.happened, outcomes));
        }
    }
}

/// Why the members of a store cannot fail as a workload wants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// There are none.
    #[error(
        "the workload has faults ([[fault]]), and this engine has no members of its own that could fail: faults are for \
         replicated servers that kvdyno starts itself, not for embedded engines, and not for servers that are named by a URL"
    )]
    NoMembers,
    /// There are fewer than the workload names.
    #[error("a [[fault]] is for member {member}, but the store has only {count}")]
    NoMember {
        /// The number that it names.
        member: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver does not say which there are.
    #[error("{0}")]
    Unknown(String),
    /// A link or a disk that a fault needs cannot be had.
    #[error("{0}")]
    NoMeans(String),
}

/// Learns which members the store has, if the workload has faults, and whether they can fail as it wants.
pub(crate) fn meet(workload: &Workload, means: Option<&Mutex<Means>>) -> Result<(), Unfit> {
    if workload.faults.is_empty() {
        return Ok(());
    }
    let Some(means) = means else { return Err(Unfit::NoMembers) };
    let mut means = lock(means);
    means.members.take_announced().map_err(|error| Unfit::Unknown(error.to_string()))?;
    let count = means.members.all().len();
    let most = workload.faults.iter().filter_map(|fault| match fault.member {
        Target::Number(number) => Some(number as usize),
        Target::Leader | Target::Follower => None,
    });
    match most.max() {
        _ if count == 0 => Err(Unfit::NoMembers),
        Some(member) if member > count => Err(Unfit::NoMember { member, count }),
        _ => means.check().map_err(|error| Unfit::NoMeans(error.to_string())),
    }
}

/// Why a fault did not happen, or was not undone.
#[derive(Debug, thiserror::Error)]
enum FaultError {
    /// All members lead.
    #[error("no member follows another one")]
    NoFollower,
    /// There is no such member.
    #[error("there are only {0} members")]
    NoMember(usize),
    /// Its process is not one of ours.
    #[error("{name} (process {process}) does not run any more, or not below this trial")]
    Gone { name: String, process: u32 },
    /// The driver did not do its part.
    #[error("{0}")]
    Driver(String),
    /// This machine did not do what the fault needs.
    #[error("{0}")]
    Machine(String),
}

fn driver(error: impl Display) -> FaultError {
    FaultError::Driver(error.to_string())
}

fn machine(error: impl Display) -> FaultError {
    FaultError::Machine(error.to_string())
}

/// A fault that happened.
struct Happened {
    fault: MemberFault,
    member: String,
    /// Ticks.
    at: u64,
    until: Option<u64>,
    /// None: its disk was not slow.
    delayed_syncs: Option<u64>,
}

/// Lets members fail, from the start of the threads until they have ended; then no fault lasts.
fn disturb(shared: &Shared<'_>, means: &Mutex<Means>, finished: &Finished) -> Vec<Happened> {
    let mut all = Vec::new();
    for fault in &shared.faults {
        if sleep(shared, finished, fault.at_seconds) {
            break;
        }
        let begun = begin(shared, &mut lock(means), fault);
        let (member, at) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                fail(shared, fault, &error);
                break;
            }
        };
        let name = lock(means).members.all()[member].name.clone();
        let end = fault.at_seconds + fault.for_seconds.unwrap_or(f64::INFINITY);
        let has_ended = fault.kind != FaultKind::Restart && sleep(shared, finished, end);
        let undone = undo(&mut lock(means), fault, member);
        let until = (!has_ended).then(|| shared.clock.now());
        let delayed_syncs = undone.as_ref().ok().copied().flatten();
        all.push(Happened { fault: fault.clone(), member: name, at, until, delayed_syncs });
        if let Err(error) = undone {
            fail(shared, fault, &error);
            break;
        }
    }
    all
}

fn lock(means: &Mutex<Means>) -> MutexGuard<'_, Means> {
    means.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(shared: &Shared<'_>, fault: &MemberFault, error: &FaultError) {
    let (name, kind, target, at) = (&shared.phase.name, fault.kind.name(), fault.member, fault.at_seconds);
    shared.fail(Cause::EngineError, format!("phase {name}: {kind} of the {target} at {at} s: {error}"));
}

/// Waits until so many seconds of the phase have been counted; returns true if its threads end first.
fn sleep(shared: &Shared<'_>, finished: &Finished, seconds: f64) -> bool {
    /// Longer waits are divided.
    const MOST: f64 = 1e6;
    let from = shared.begin();
    let at = from.saturating_add(shared.clock.from_ns((seconds.min(MOST) * 1e9) as u64));
    let left = shared.clock.to_ns(at.saturating_sub(shared.clock.now()));
    finished.wait(shared.slots.len(), Instant::now() + Duration::from_nanos(left))
}

/// Begins a fault; returns the member's position and the tick.
fn begin(shared: &Shared<'_>, means: &mut Means, fault: &MemberFault) -> Result<(usize, u64), FaultError> {
    let members = &mut means.members;
    let count = members.all().len();
    let place = match fault.member {
        Target::Number(number) => number as usize - 1,
        Target::Leader => leaders(members)?[0],
        Target::Follower => {
            let leaders = leaders(members)?;
            (0..count).find(|place| !leaders.contains(place)).ok_or(FaultError::NoFollower)?
        }
    };
    let Member { name, process } = members.all().get(place).cloned().ok_or(FaultError::NoMember(count))?;
    if !descendants().contains(&process) {
        return Err(FaultError::Gone { name, process });
    }
    let at = shared.clock.now();
    match fault.kind {
        FaultKind::Kill => kill_tree(process),
        FaultKind::Pause => stop_tree(process, STOPPING).map_err(machine)?,
        FaultKind::Restart => members.restart(place).map_err(driver)?,
        FaultKind::Cut => means.cut(place).map_err(machine)?,
        FaultKind::Slow => means.slow(place, delay_of(fault)).map_err(machine)?,
    }
    Ok((place, at))
}

/// The members that lead; waits for the end of an election.
fn leaders(members: &mut Members) -> Result<Vec<usize>, FaultError> {
    let begun = Instant::now();
    loop {
        match members.leaders() {
            Err(_) if begun.elapsed() < ELECTION => std::thread::sleep(PAUSE),
            known => return known.map_err(driver),
        }
    }
}

fn delay_of(fault: &MemberFault) -> Duration {
    Duration::from_secs_f64(fault.delay_seconds.unwrap_or_default())
}

/// Ends a fault; returns the number of syncs that a slow disk has delayed.
fn undo(means: &mut Means, fault: &MemberFault, member: usize) -> Result<Option<u64>, FaultError> {
    match fault.kind {
        FaultKind::Kill => means.members.start(member).map_err(driver)?,
        FaultKind::Pause => continue_tree(means.members.all()[member].process),
        FaultKind::Restart => {}
        FaultKind::Cut => means.restore(member).map_err(machine)?,
        FaultKind::Slow => return Ok(means.hasten(member)),
    }
    Ok(None)
}

/// What is known of a phase with faults when its threads have ended; what was read back is added later (rereads.rs).
fn disturbed(shared: &Shared<'_>, happened: &[Happened], outcomes: &[Outcome]) -> Disturbed {
    let from = shared.begin();
    let since = |tick: u64| shared.clock.to_ns(tick.saturating_sub(from));
    let service = service(outcomes, since);
    let of = |(place, fault): (usize, &Happened)| {
        let at = since(fault.at);
        let until = happened.get(place + 1).map_or(service.end, |next| since(next.at));
        let before = place.checked_sub(1).and_then(|before| happened[before].until);
        let calm = if place == 0 { 0 } else { before.map_or(at, |tick| since(tick) + CALM_NS) };
        let effect = service.effect(calm.min(at), at, until);
        let length = |span: Option<Span>| span.map(|(from, to)| to - from);
        FaultRecord {
            kind: fault.fault.kind,
            target: fault.fault.member.to_string(),
            member: fault.member.clone(),
            at_ns: at,
            until_ns: fault.until.map(since),
            without_service_ns: length(effect.without_service),
            without_service_at_ns: effect.without_service.map(|(from, _)| from),
            without_service_times: Some(effect.times),
            without_service_sum_ns: Some(effect.sum),
            without_service_at_end_ns: length(effect.cut_off),
            thread_waited_ns: length(effect.thread_waited),
            thread_waited_at_end: Some(effect.thread_is_cut_off),
            rate_before: effect.rate_before,
            recovered_after_ns: effect.recovered_at.map(|back| back.saturating_sub(at)),
            sync_delay_ns: fault.delayed_syncs.map(|_| delay_of(&fault.fault).as_nanos() as u64),
            delayed_syncs: fault.delayed_syncs,
        }
    };
    let is_write = |kind: &OpKind| kind.writes();
    let writes = |outcome: &Outcome| -> u64 {
        let kinds = OpKind::ALL.into_iter().filter(is_write);
        kinds.filter_map(|kind| outcome.total[kind as usize].as_ref()).map(|tally| tally.ops).sum()
    };
    Disturbed {
        faults: happened.iter().enumerate().map(of).collect(),
        errors: errors(outcomes, since),
        acknowledged_writes: outcomes.iter().map(writes).sum(),
        doubtful_writes: outcomes.iter().map(|outcome| outcome.judge.doubtful_writes).sum(),
        read_back: None,
        lost: None,
        stale_reads: outcomes.iter().map(|outcome| outcome.judge.stale_reads).sum(),
    }
}

/// The service of all threads, in nanoseconds from the start of the phase.
fn service(outcomes: &[Outcome], since: impl Fn(u64) -> u64) -> Service {
    let of_threads = || outcomes.iter().filter_map(|outcome| outcome.acknowledged.as_ref());
    let gaps = |own: &Acknowledged| own.gaps().iter().map(|(from, to)| (since(*from), since(*to))).collect();
    let mut steps = Vec::new();
    for own in of_threads() {
        steps.resize(own.steps().len(), 0_u64);
        steps.iter_mut().zip(own.steps()).for_each(|(sum, ops)| *sum += u64::from(*ops));
    }
    let end = outcomes.iter().map(|outcome| since(outcome.end)).max().unwrap_or(0);
    let open = of_threads().map(|own| own.open_until().map(&since)).collect();
    Service { threads: of_threads().map(gaps).collect(), open, steps, end }
}

fn errors(outcomes: &[Outcome], since: impl Fn(u64) -> u64) -> Vec<OpErrors> {
    let mut all: Vec<OpErrors> = Vec::new();
    for OpError { op, text, count, first, last } in outcomes.iter().flat_map(|outcome| &outcome.judge.errors)
    {
        let own = OpErrors {
            op: (*op).to_string(),
            text: text.clone(),
            count: *count,
            first_ns: since(*first),
            last_ns: since(*last),
        };
        match all.iter_mut().find(|known| known.op == own.op && known.text == own.text) {
            Some(known) => add(known, &own),
            None => all.push(own),
        }
    }
    all.sort_by(|one, other| (other.count, &one.op, &one.text).cmp(&(one.count, &other.op, &other.text)));
    if all.len() > KINDS {
        let mut rest =
            OpErrors { op: "any".into(), text: "other errors".into(), first_ns: u64::MAX, ..all[0].clone() };
        rest.count = 0;
        all.drain(KINDS - 1..).for_each(|own| add(&mut rest, &own));
        all.push(rest);
    }
    all
}

fn add(sum: &mut OpErrors, own: &OpErrors) {
    sum.count += own.count;
    (sum.first_ns, sum.last_ns) = (sum.first_ns.min(own.first_ns), sum.last_ns.max(own.last_ns));
}
