//! The accounting pass: commits of several shapes at one durability level, with the sync calls that each of them causes. It
//! runs in a process of its own, whose calls another process counts, and is never timed.

mod observe;

pub use observe::{Pass, observe};

use super::engine_process::DriveError;
use super::verify::Effort;
use super::verify::act::{Act, group};
use super::verify::caller::Caller;
use super::verify::draw::bytes;
use super::verify::subject::{Context, Setup, open_caller, open_database};
use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Database, Engine};
use kvdyno_core::results::Durability;
use kvdyno_core::results::audit::{Section, Shape};
use kvdyno_core::runner::{level_number, level_of};
use kvdyno_measure::Clock;
use kvdyno_measure::resources::descendants;
use kvdyno_measure::start::thread_in_or_exit;
use kvdyno_measure::sync_calls::{CallCounts, SyncCalls};
use std::path::Path;
use std::thread;

/// Puts of a group or transaction.
pub const GROUP: u32 = 8;
/// Threads of [`Shape::Threads`].
const THREADS: u32 = 2;
const VALUE_BYTES: usize = 100;
/// How often a put that lost against another thread is repeated.
const RETRIES: u32 = 100;

/// What the pass reports while it runs.
pub enum Report {
    /// The database is open: the version of the engine, the effective level, and the calls until then.
    Opened(String, Durability, CallCounts),
    /// The section of a shape begins.
    Begun(Shape),
    /// It has ended.
    Ended(Section),
    /// Nothing can be observed, for this reason.
    Unseen(String),
}

/// How much is written, and with which settings.
pub struct Order<'o> {
    /// The requested level.
    pub level: Durability,
    /// `name=value` pairs of the driver's options.
    pub settings: &'o [(String, String)],
    /// The seed of the values.
    pub seed: u64,
    /// Commits of each section.
    pub commits: u64,
    /// Which sections are run, of those that the engine supports.
    pub shapes: &'o [Shape],
}

/// Runs the pass in this process, in the empty folder `data`. An error is what the engine reports, and where.
pub fn account(
    engine: &Engine,
    data: &Path,
    order: &Order<'_>,
    calls: &SyncCalls,
    mut report: impl FnMut(Report),
) -> Result<(), DriveError> {
    let effort = Effort { seed: order.seed, ops: order.commits, ..Effort::default() };
    let mut context = Context::new(engine, data, effort, Clock::monotonic(), None);
    context.settings = order.settings.to_vec();
    let can_share = !context.has(KV_SINGLE_THREAD);
    let threads = if can_share { THREADS } else { 1 };
    let setup = context.setup().map_err(|error| DriveError::Folder(error.to_string()))?;
    let setup = Setup { level: level_number(order.level), threads, ..setup };
    let database = open_database(engine, &setup).map_err(DriveError::driver)?;
    let effective = level_of(database.effective().level);
    report(Report::Opened(database.effective().version.clone(), effective, calls.counts()));
    let capabilities = database.effective().capabilities;
    let is_elsewhere = engine.family() == "server" && descendants().is_empty();
    let pass = Counted { context: &context, database: &database, setup: &setup, calls };
    for shape in order.shapes.iter().copied() {
        let is_supported = match shape {
            Shape::Put | Shape::Group => true,
            Shape::Transaction => capabilities & KV_TRANSACTION != 0,
            Shape::Threads => can_share,
        };
        if !is_supported || is_elsewhere {
            continue;
        }
        report(Report::Begun(shape));
        let section = pass.section(shape).map_err(|error| error.at(format!("in {}", shape.plural())))?;
        report(Report::Ended(section));
    }
    if is_elsewhere {
        report(Report::Unseen("the server runs elsewhere; let the driver start one of its own".into()));
    }
    database.close().map_err(DriveError::engine("close"))
}

/// An open database whose calls are counted.
struct Counted<'p> {
    context: &'p Context<'p>,
    database: &'p Database,
    setup: &'p Setup,
    calls: &'p SyncCalls,
}

/// The acknowledged commits of a thread.
#[derive(Default)]
struct Acknowledged {
    commits: u64,
    without_sync: u64,
    without_write: u64,
}

impl Counted<'_> {
    fn section(&self, shape: Shape) -> Result<Section, DriveError> {
        let threads = if shape == Shape::Threads { THREADS } else { 1 };
        let mut workers = Vec::new();
        for thread in 0..threads {
            let caller =
                open_caller(self.database, self.setup).map_err(DriveError::driver)?.counting(*self.calls);
            workers.push((caller, self.commits(shape, thread, threads)));
        }
        let calls = self.calls;
        let before = calls.counts();
        let of_threads: Vec<Result<(Acknowledged, Caller), DriveError>> = thread::scope(|scope| {
            let spawn = |(caller, commits)| thread_in_or_exit(scope, move || run(caller, commits));
            let running: Vec<_> = workers.into_iter().map(spawn).collect();
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or(Err(DriveError::Panicked));
            running.into_iter().map(join).collect()
        });
        let during = calls.counts().since(&before);
        let mut section = Section {
            shape,
            commits: 0,
            syncs: during.syncs(),
            without_sync: 0,
            without_write: 0,
            calls: during.by_name(),
        };
        for of_thread in of_threads {
            let (acknowledged, caller) = of_thread?;
            section.commits += acknowledged.commits;
            section.without_sync += acknowledged.without_sync;
            section.without_write += acknowledged.without_write;
            caller.end().map_err(DriveError::driver)?;
        }
        Ok(section)
    }

    /// The commits of one thread: new keys, each written once.
    fn commits(&self, shape: Shape, thread: u32, threads: u32) -> Vec<Vec<Act>> {
        let mut random = self.context.random(shape as u64 * 16 + u64::from(thread));
        let (puts, flags) = match shape {
            Shape::Put | Shape::Threads => (1, 0),
            Shape::Group => (GROUP, 0),
            Shape::Transaction => (GROUP, KV_ATOMIC),
        };
        let mut commit = |commit: u64| {
            let put = |number| {
                // A fixed key has 16 bytes.
                let key = self.context.key(&format!("{}{thread}{commit:07}{number:02}", shape as u8));
                Act::put(&key, &bytes(&mut random, VALUE_BYTES))
            };
            group((0..puts).map(put).collect(), flags)
        };
        (0..self.context.effort.ops / u64::from(threads)).map(&mut commit).collect()
    }
}

/// Makes the commits through one session.
fn run(mut caller: Caller, commits: Vec<Vec<Act>>) -> Result<(Acknowledged, Caller), DriveError> {
    let mut acknowledged = Acknowledged::default();
    for acts in commits {
        let counted = until_acknowledged(&mut caller, &acts)?;
        acknowledged.commits += 1;
        acknowledged.without_sync += u64::from(counted.syncs() == 0);
        acknowledged.without_write += u64::from(counted.writes() == 0);
    }
    Ok((acknowledged, caller))
}

/// Repeats a commit until it is acknowledged; returns what the acknowledged call has called.
fn until_acknowledged(caller: &mut Caller, acts: &[Act]) -> Result<CallCounts, DriveError> {
    for _ in 0..RETRIES {
        let call = caller.call_whole(acts).map_err(DriveError::driver)?;
        let failed = call.answers.iter().find(|answer| answer.status != KV_OK);
        let Some(failed) = failed else { return Ok(call.counted) };
        if failed.status != KV_CONFLICT {
            return Err(DriveError::status("a put", failed));
        }
    }
    Err(DriveError::Conflicts { op: "a put", times: RETRIES })
}
