//! Runs whose counts are taken: each is a trial of its own that loads the database anew, with the same ops.

use super::Busy;
use crate::cli::error::CliError;
use crate::cli::kept::KeepArgs;
use crate::cli::request::{Request, RunArgs, SubjectArgs};
use crate::cli::trials::{TrialArgs, Trials, only, phase};
use crate::cli::turns::{Engines, Given};
use crate::cli::workloads::ChangeArgs;
use kvdyno_core::results::{PhaseRecord, Record};
use kvdyno_core::runner::{Entry, TrialSettings};
use kvdyno_core::workload::Workload;
use kvdyno_measure::text::plain_text;
use kvdyno_measure::{Placement, Usage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys of a workload that has more, and ops of a phase that ends by time.
const USUAL: u64 = 10_000;

/// System calls by which threads start, end, and wait for each other or for time, and what the runtimes of languages do meanwhile. How
/// many there are depends on which thread is faster, so they are not guarded.
const OF_THREADS: [&str; 30] = [
    "clock_nanosleep",
    "clone",
    "clone3",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "exit",
    "exit_group",
    "futex",
    "getpid",
    "gettid",
    "madvise",
    "mprotect",
    "nanosleep",
    "poll",
    "ppoll",
    "prctl",
    "pselect6",
    "restart_syscall",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigtimedwait",
    "sched_getaffinity",
    "sched_yield",
    "select",
    "set_robust_list",
    "sigaltstack",
    "tgkill",
];

/// The counts of a phase in a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PhaseCounts {
    /// Its name.
    pub phase: String,
    /// Its ops.
    pub ops: u64,
    /// Counts by their names; absent: unknown.
    pub counts: BTreeMap<String, u64>,
}

/// Whether a count is one of system calls.
pub(super) fn is_call(name: &str) -> bool {
    name.ends_with(CALLS)
}

/// Whether a count does not depend on which thread is faster.
pub(super) fn is_guarded(name: &str) -> bool {
    name.strip_suffix(CALLS).is_none_or(|call| !OF_THREADS.contains(&call))
}

/// What the names of counts of system calls end with.
const CALLS: &str = " calls";

/// What is wanted to be counted.
pub(super) struct Wanted<'a> {
    /// Whether its keys and ops stay as they are.
    pub is_fixed: bool,
    /// Its name or file.
    pub workload: &'a str,
    /// The engine that the user named.
    pub given: &'a Given,
    /// Where it is found.
    pub engines: &'a Engines,
    /// The new folder of the runs.
    pub folder: &'a Path,
    /// The folders of plug-ins that the user named.
    pub plugins: &'a [PathBuf],
    /// The command.
    pub command: &'a [String],
}

/// What is run: a workload on an engine.
pub(super) struct Counted<'a> {
    entry: Entry,
    trials: Trials<'a>,
}

impl<'a> Counted<'a> {
    /// Of a workload, by its name or file, on the engine that is given. One that is not fixed gets a number of ops, because only
    /// then do counts not depend on time.
    pub(super) fn new(args: &TrialArgs, wanted: Wanted<'a>) -> Result<Counted<'a>, CliError> {
        let Wanted { is_fixed, workload, given, engines, folder, plugins, command } = wanted;
        let request = |changes: ChangeArgs| -> Result<(Box<RunArgs>, Entry, TrialSettings), CliError> {
            let base = args.of_run(SubjectArgs::one(workload, &given.word(engines)), changes)?;
            let Request { entries, settings, .. } = Request::new(&base, engines.registry(), None)?;
            Ok((base, only(entries, "guard")?, settings))
        };
        let changes = args.changes.of_counted((!is_fixed).then_some(USUAL), given.level());
        let (mut base, mut entry, mut settings) = request(changes.clone())?;
        let fewer = changes.of_usual_keys(&entry.workload, USUAL).filter(|_| !is_fixed);
        if let Some(changes) = fewer {
            (base, entry, settings) = request(changes)?;
        }
        if settings.counts_cycles || settings.paranoid || settings.placement != Placement::default() {
            return Err(CliError::usage("guard counts without CPUs or NUMA nodes, guard pages and cycles")
                .hint("omit --cpus, --numa-node, --paranoid and --count-cycles"));
        }
        for phase in &entry.workload.phases {
            let fault = match phase {
                phase if phase.rate.is_some() => "has a rate",
                phase if phase.warmup_seconds > 0.0 => "has a warm-up",
                phase if phase.seconds_limit().is_some() => "ends by time",
                _ => continue,
            };
            return Err(CliError::usage(format!(
                "phase {} {fault}, so that its counts depend on time",
                phase.name
            ))
            .hint("omit it, or set it to 0 (--set PHASE.FIELD=VALUE)"));
        }
        settings.counts_calls = true;
        Ok(Counted {
            entry,
            trials: Trials {
                name: "guard",
                base: *base,
                executable: given.executable()?,
                registry: engines.registry(),
                settings,
                folder: folder.to_path_buf(),
                command: command.to_vec(),
                plugins,
                tells_warnings: false,
            },
        })
    }

    pub(super) fn workload(&self) -> &Workload {
        &self.entry.workload
    }

    /// Runs it once, beside busy loops if it is one of every second run.
    pub(super) fn run(&self, number: usize) -> Result<(Record, Vec<PhaseCounts>), CliError> {
        let busy = (number % 2 == 1).then(Busy::start);
        let record = self.trials.run(self.entry.clone(), KeepArgs::default(), 1)?;
        drop(busy);
        let mut all = Vec::new();
        for place in 0..self.entry.workload.phases.len() {
            let name = &self.entry.workload.phases[place].name;
            let found = phase(&record, name).map_err(|failure| {
                let mut error = CliError::failed(format!("a run failed: {}", plain_text(&failure.text)));
                error.code = failure.code;
                error
            })?;
            all.push(counts_of(found).ok_or_else(|| {
                CliError::failed(format!("phase {name}: its system calls were not counted"))
                    .hint("the kvdyno after the @ is too old for guard")
            })?);
        }
        Ok((record, all))
    }
}

/// A figure of what was used.
type OfUsage = fn(&Usage) -> Option<u64>;

/// The counts of a phase; none: its calls were not counted.
fn counts_of(phase: &PhaseRecord) -> Option<PhaseCounts> {
    let mut counts = BTreeMap::new();
    for (call, count) in phase.system_calls.as_ref()? {
        counts.insert(format!("{}{CALLS}", plain_text(call)), *count);
    }
    let others: [(&str, OfUsage); 7] = [
        ("bytes in writes", |usage| usage.written_call_bytes),
        ("bytes in reads", |usage| usage.read_call_bytes),
        ("bytes to storage", |usage| usage.written_storage_bytes),
        ("bytes from storage", |usage| usage.read_storage_bytes),
        ("minor page faults", |usage| usage.minor_faults),
        ("major page faults", |usage| usage.major_faults),
        ("instructions in user mode", |usage| usage.instructions),
    ];
    for (name, of) in others {
        // The thread that watches the others is not the engine's. Its instructions are not known, and few.
        let watcher = phase.watcher.as_ref().and_then(of).unwrap_or(0);
        if let Some(count) = of(&phase.usage) {
            counts.insert(name.to_string(), count.saturating_sub(watcher));
        }
    }
    Some(PhaseCounts { phase: phase.phase.name.clone(), ops: phase.ops, counts })
}
