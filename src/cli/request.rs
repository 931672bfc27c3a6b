//! The arguments of `kvdyno run`, and the request that they become: workloads, engines and options resolved, so that it can
//! be planned on its own.

mod disturbable;

use super::args::{self, split_options};
use super::error::CliError;
use super::kept::KeepArgs;
use super::layouts;
use super::live::LiveArgs;
use super::load_generators::LoadGeneratorArgs;
use super::number::number;
use super::report::RESULTS;
use super::slice::ShardChoice;
use super::workloads::{ChangeArgs, Named, named};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use kvdyno_core::engine::abi::KV_OVERWRITE;
use kvdyno_core::engine::{ALL, Chosen, DEFAULT, Lookup, Registry};
use kvdyno_core::results::FOREIGN;
use kvdyno_core::runner::{Contestant, Entry, Seeds, TrialSettings};
use kvdyno_core::workload::{AGING, Member, with_cpus};
use kvdyno_measure::Placement;
use kvdyno_measure::placement::{PlacementError, parse_cpu_list};
use kvdyno_measure::text::parse_bytes;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Workloads and engines, as `kvdyno run` and `kvdyno plan` take them.
#[derive(Debug, Default, clap::Args)]
pub(super) struct SubjectArgs {
    /// Workloads and suites to run: names (see `kvdyno workloads`) or TOML files.
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    #[arg(short, long, value_delimiter = ',', value_name = "NAMES",
          help = format!("Engines to compare, separated by commas [default: the suite's engines, or one of each kind]. \
                          {}", args::SELECTORS))]
    pub engines: Vec<String>,
    /// Run the same ops on the same rows in every repetition. By default, each repetition has its own seed, derived from
    /// --seed.
    #[arg(long)]
    pub same_ops: bool,
    /// Set an option of an engine. Can be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    options: Vec<String>,
    /// Run each engine as a cluster of N nodes, started on this machine. With a list (`1,3,5`), run it once with each
    /// number (see docs/clusters.md).
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = number(1..=u32::MAX))]
    pub nodes: Vec<u32>,
    /// Also run ENGINE on every workload, to compare machines by it. `kvdyno plan` uses memory-btree by default; `none`
    /// disables it.
    #[arg(long, value_name = "ENGINE")]
    pub reference: Option<String>,
}

impl SubjectArgs {
    /// One workload on one engine, which may have options.
    pub(super) fn one(workload: &str, engine: &str) -> SubjectArgs {
        let (workloads, engines) = (vec![workload.to_string()], vec![engine.to_string()]);
        SubjectArgs { workloads, engines, ..SubjectArgs::default() }
    }
}

/// The name that disables the reference engine.
pub(super) const NO_REFERENCE: &str = "none";

/// Run workloads on engines and report the results.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub subject: SubjectArgs,
    /// Measure the trials of the plan in FILE, written by `kvdyno plan`, instead of workloads. Trials that already have records
    /// in --results are skipped.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "keep", "reuse"])]
    pub plan: Option<PathBuf>,
    /// Measure only a slice of the plan: `3/16` is the third of 16. `auto` takes both numbers from the scheduler (Slurm,
    /// Kubernetes, MPI, AWS Batch), and `auto/16` only the first (see docs/clusters.md).
    #[arg(long, value_name = "I/N", requires = "plan",
          conflicts_with_all = ["resume", "keep", "reuse", "race", "dry_run"])]
    pub shard: Option<ShardChoice>,
    /// Write the results of the run to a new folder in DIR.
    #[arg(long, value_name = "DIR", default_value = "kvdyno-results")]
    pub results: PathBuf,
    /// Create temporary databases in DIR [default: the run's folder].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Resume an interrupted run: the newest one, or the one in DIR.
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true)]
    pub resume: Option<Option<PathBuf>>,
    /// Kill a trial that makes no progress for N seconds, and skip the later runs of its engine and workload.
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = number(1..=u64::MAX))]
    pub stall_seconds: u64,
    /// Run a race, or refuse the run if it cannot be one. By default, a run of one workload with 4 or more engines and 5 or more
    /// runs is a race: it looks at its figures after run 3 and halfway, then runs each engine only up to the last phase that it may
    /// still win, and gives the time to those that may (docs/methodology.md, section 17).
    #[arg(long, conflicts_with_all = ["plan", "keep", "reuse", "reference", "fixed"])]
    pub race: bool,
    /// Run no race: every engine has all phases in all runs, each as long as planned.
    #[arg(long, conflicts_with = "plan")]
    pub fixed: bool,
    /// Start even if the disk has less free space than the run is estimated to need.
    #[arg(long)]
    pub ignore_space: bool,
    /// Print what would be run, with estimates of its time and space, and run nothing.
    #[arg(long, conflicts_with_all = ["plan", "resume"])]
    pub dry_run: bool,
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help = layouts::HELP)]
    pub layout: Vec<String>,
    /// Print all tables at the end instead of the overview on one screen.
    #[arg(long, conflicts_with = "layout")]
    pub full: bool,
    // The groups with a heading come last because a heading applies to all following flags.
    #[command(flatten)]
    pub changes: ChangeArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub kept: KeepArgs,
    #[command(flatten)]
    pub load_generators: LoadGeneratorArgs,
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Flags that limit the process of each trial.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits for each trial")]
pub(super) struct LimitArgs {
    /// Limit the memory of each trial, including page cache and harness, with a control group, such as `512MiB`.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Run each trial, including threads of the engine, only on these CPUs, such as `0-3,6`.
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<String>,
    /// Run each trial on the CPUs of NUMA node N (or on --cpus) and use only memory of that node.
    #[arg(long, value_name = "N", value_parser = number(0..=u32::MAX))]
    numa_node: Option<u32>,
    /// Put a guard page after each key, value and output buffer, so that a driver that reads or writes past the end crashes.
    /// This costs time: compare the results only with those of other runs with --paranoid.
    #[arg(long)]
    paranoid: bool,
    /// Count the cycles and instructions of each trial, harness included, with hardware counters. The kernel saves them at each
    /// context switch: compare the results only with those of other runs with --count-cycles.
    #[arg(long)]
    count_cycles: bool,
}

fn cpus(text: &str) -> Result<String, PlacementError> {
    parse_cpu_list(text).map(|_| text.to_string())
}

impl LimitArgs {
    pub(super) fn placement(&self) -> Placement {
        Placement { cpus: self.cpus.clone(), numa_node: self.numa_node }
    }
}

impl RunArgs {
    /// The settings of all trials of a new run.
    fn settings(&self) -> TrialSettings {
        TrialSettings {
            seeds: match (self.subject.same_ops, self.kept.outlives_trials()) {
                (true, _) => Seeds::Same,
                (false, true) => Seeds::OfOps,
                (false, false) => Seeds::OfAll,
            },
            placement: self.limits.placement(),
            paranoid: self.limits.paranoid,
            counts_cycles: self.limits.count_cycles,
            counts_calls: false,
            reused: self.kept.reuse.is_some(),
        }
    }

    /// Environment variables that trials get in addition to the user's: a password, and the folders of plug-ins for engines
    /// that start kvdyno themselves.
    pub(super) fn environment(&self, plugins: &[PathBuf]) -> Result<Vec<(String, String)>, CliError> {
        let mut all = Vec::from_iter(password_variable(&self.subject.options)?);
        if !plugins.is_empty() {
            let known = std::env::var("KVDYNO_PLUGINS").ok();
            let folders = plugins.iter().map(|folder| folder.to_string_lossy().into_owned());
            all.push(("KVDYNO_PLUGINS".into(), folders.chain(known).collect::<Vec<_>>().join(":")));
        }
        Ok(all)
    }

    /// The words of a command of this run that repeat it on this machine: with the paths that records leave out.
    pub(super) fn here(&self, plugins: &[PathBuf], command: &[String]) -> Vec<String> {
        let mut words = command.to_vec();
        for file in self.subject.workloads.iter().filter(|name| name.ends_with(".toml")) {
            let name = Path::new(file).file_name().map(OsStr::to_string_lossy);
            if let Some(word) = words.iter_mut().find(|word| Some(word.as_str()) == name.as_deref()) {
                word.clone_from(file);
            }
        }
        if let Some(reuse) = &self.kept.reuse {
            let at = words.iter().position(|word| word == "--reuse" || word.starts_with("--reuse="));
            if let Some(at) = at {
                let is_apart = words[at] == "--reuse";
                words.splice(at..at + 1 + usize::from(is_apart), [format!("--reuse={}", reuse.display())]);
            }
        }
        let results = (self.results != Path::new(RESULTS)).then_some(&self.results);
        let folders = plugins.iter().map(|folder| ("--plugins", folder));
        let folders = folders.chain(results.map(|folder| ("--results", folder)));
        for (flag, folder) in folders.chain(self.data.as_ref().map(|folder| ("--data", folder))) {
            let folder = folder.display().to_string();
            match folder.starts_with('-') {
                true => words.push(format!("{flag}={folder}")),
                false => words.extend([flag.to_string(), folder]),
            }
        }
        words
    }

    /// What determines the plan, with the text of each part for a comparison.
    pub(super) fn parts(&self) -> [(&'static str, String); 6] {
        [
            ("workloads", format!("{:?}", self.subject.workloads)),
            (
                "engines",
                format!("{:?} {:?} {:?}", self.subject.engines, self.subject.reference, self.subject.nodes),
            ),
            ("options", format!("{:?}", self.subject.options)),
            ("seeds", format!("{:?}", self.subject.same_ops)),
            ("workload fields", format!("{:?}", self.changes)),
            ("limits", format!("{:?}", self.limits)),
        ]
    }

    /// Refuses arguments that are wrong for every run.
    pub(super) fn check(&self) -> Result<(), CliError> {
        self.live.check()?;
        for (flag, folder) in [("--results", Some(&self.results)), ("--data", self.data.as_ref())] {
            if folder.is_some_and(|folder| folder.to_str().is_none()) {
                return Err(CliError::usage(format!("{flag}: the folder's name is not valid UTF-8"))
                    .hint("use another folder: records and engines require UTF-8 names"));
            }
        }
        Ok(())
    }
}

/// What to measure.
#[derive(Debug)]
pub(super) struct Request {
    /// The names of the workloads and suites, for the name of the run.
    pub name: String,
    /// The workloads, with all changes applied, and their engines. A workload without available engines is skipped.
    pub entries: Vec<Entry>,
    /// The settings of all trials.
    pub settings: TrialSettings,
    /// Engines that are not available and were skipped, with their install commands.
    pub absent: Vec<(String, String)>,
    /// Lines for the user about engines that the run does not include.
    pub notes: Vec<String>,
}

impl Request {
    /// Resolves the arguments of a new run. `cpus`: the CPUs of the machine that will run it, if it is another one.
    pub(super) fn new(args: &RunArgs, registry: &Registry, cpus: Option<u32>) -> Result<Request, CliError> {
        let (members, name) = with_cpus(args.limits.placement().cpu_count().or(cpus), || members(args))?;
        let Engines { mut of, absent, mut notes } = engines(args, registry, &members)?;
        let subject = &args.subject;
        if !subject.nodes.is_empty() {
            let mut seen = HashSet::new();
            let nodes: Vec<u32> = subject.nodes.iter().copied().filter(|count| seen.insert(*count)).collect();
            let is_floor = |name: &str| registry.engine(name).is_ok_and(|engine| engine.stores_nothing());
            for names in &mut of {
                *names = args::with_nodes(names, &nodes, &subject.options, is_floor)?;
            }
        }
        if let Some(reference) = args.subject.reference.as_ref().filter(|name| *name != NO_REFERENCE) {
            let lists = of.iter_mut().filter(|names| !names.is_empty() && !names.contains(reference));
            lists.for_each(|names| names.push(reference.clone()));
        }
        let entries = entries(args, registry, members, &of)?;
        let entries = disturbable::entries(entries, &subject.engines, registry, &mut notes)?;
        let entries = overwriting(entries, &subject.engines, registry, &mut notes)?;
        notes.extend(slow_load(args, &entries));
        Ok(Request { name, entries, settings: args.settings(), absent, notes })
    }
}

/// The workloads with the changes of the command line, and the name of the run.
pub(super) fn members(args: &RunArgs) -> Result<(Vec<Member>, String), CliError> {
    if args.subject.workloads.is_empty() {
        return Err(CliError::usage("no workload given")
            .hint("use a name from `kvdyno workloads`, such as `kvdyno run quick`, or a TOML file"));
    }
    let changes = args.changes.changes(args.limits.memory)?;
    let all = args.subject.workloads.iter().map(|name| named(name)).collect::<Result<Vec<Named>, _>>()?;
    let mut members = Vec::new();
    for named in &all {
        members.extend(named.members(&changes)?);
    }
    let mut seen = HashSet::new();
    if let Some(twice) = members.iter().find(|member| !seen.insert(&member.workload.name)) {
        let name = &twice.workload.name;
        return Err(CliError::usage(format!("this run has two workloads named `{name}`")).hint(
            "each table needs a unique name: omit one of them, or copy it to a file with another name",
        ));
    }
    report_missed(&members)?;
    let names: Vec<&str> = all.iter().map(Named::name).collect();
    let name =
        if names.len() > 3 { format!("{}-and-{}", names[0], names.len() - 1) } else { names.join("-") };
    Ok((members, name))
}

/// A line on workloads whose load may take hours, because their data are larger than memory and their keys are in random order.
fn slow_load(args: &RunArgs, entries: &[Entry]) -> Option<String> {
    let is_slow = |entry: &&Entry| entry.workload.loads_beyond_memory_at_random();
    let names: Vec<&str> = entries.iter().filter(is_slow).map(|entry| entry.workload.name.as_str()).collect();
    (args.changes.has_ratios() && !names.is_empty()).then(|| {
        format!(
            "{}: keys of neighbouring numbers are far apart, so data that do not fit into memory are loaded at random, which can take \
             hours; --set key.encoding=binary --set key.scattered=false loads them in order, and --load-seconds limits the time",
            names.join(", ")
        )
    })
}

/// The entries without engines that cannot overwrite keys, if their workload does so to age the database: their figures would be those
/// of a new one. One that the command line names is a usage error.
fn overwriting(
    mut all: Vec<Entry>,
    named: &[String],
    registry: &Registry,
    notes: &mut Vec<String>,
) -> Result<Vec<Entry>, CliError> {
    let is_aged = |entry: &&mut Entry| entry.workload.phases.iter().any(|phase| phase.name == AGING);
    for entry in all.iter_mut().filter(is_aged) {
        let overwrites = |own: &Contestant| {
            own.is_floor
                || registry.engine(&own.engine).is_ok_and(|engine| engine.capabilities() & KV_OVERWRITE != 0)
        };
        let (kept, others): (Vec<Contestant>, Vec<Contestant>) =
            std::mem::take(&mut entry.contestants).into_iter().partition(overwrites);
        entry.contestants = kept;
        let is_named = |own: &&Contestant| named.iter().any(|word| args::split_options(word).0 == own.engine);
        if let Some(own) = others.iter().find(is_named) {
            return Err(
                CliError::usage(format!("--age: {} cannot overwrite keys", own.engine)).hint("omit it")
            );
        }
        let names: Vec<&str> = others.iter().map(|own| own.engine.as_str()).collect();
        if !names.is_empty() {
            notes.push(format!("skipped for --age, cannot overwrite keys: {}", names.join(", ")));
        }
    }
    Ok(all)
}

/// Reports the workloads of a suite that a flag does not affect. A flag that affects none is a usage error.
fn report_missed(members: &[Member]) -> Result<(), CliError> {
    for flag in ["--keys", "--seconds"] {
        let missed = members.iter().filter(|member| member.missed.contains(&flag));
        let names: Vec<&str> = missed.map(|member| member.workload.name.as_str()).collect();
        let what = "insert a fixed number of keys in each round and have no fill";
        if names.is_empty() {
        } else if names.len() == members.len() {
            return Err(CliError::usage(format!("{flag} affects no workload of the suite: they {what}"))
                .hint(
                    "--scale 0.1 reduces every size to a tenth; --ops N sets the number of keys in a round",
                ));
        } else {
            eprintln!(
                "{flag} does not affect these workloads, which {what}: {}. Use --scale.",
                names.join(", ")
            );
        }
    }
    Ok(())
}

/// The engines of a run.
#[derive(Default)]
struct Engines {
    /// Their names, for each workload.
    of: Vec<Vec<String>>,
    /// The names of engines that are not available, and why.
    absent: Vec<(String, String)>,
    /// Lines for the user about engines that the run does not include.
    notes: Vec<String>,
}

/// The engines of each workload: those of the command line, of the suite, or the default set. An engine that is named on
/// the command line must be available. Other absent engines are reported and skipped.
fn engines(args: &RunArgs, registry: &Registry, members: &[Member]) -> Result<Engines, CliError> {
    let with_floors = |names: &[String]| {
        // A floor would draw other keys.
        let all = if args.kept.foreign { names.to_vec() } else { with_floor(names, registry) };
        vec![all; members.len()]
    };
    if !args.subject.engines.is_empty() {
        let selection = args::selected(registry, &args.subject.engines, DEFAULT)?;
        let names = kept(args, registry, selection.chosen);
        let notes = Vec::from_iter(skipped_line(&selection.missing));
        return Ok(Engines { of: with_floors(&names), absent: selection.missing, notes });
    }
    let reused = args.kept.engines()?;
    if !reused.is_empty() {
        return Ok(Engines { of: with_floors(&reused), ..Engines::default() });
    }
    let mut all = Engines::default();
    for member in members.iter() {
        all.of.push(if member.engines.is_empty() {
            let selection = registry.default_set();
            all.absent.extend(selection.missing);
            kept(args, registry, selection.chosen)
        } else {
            of_suite(registry, member, &mut all.absent)?
        });
    }
    let mut seen = HashSet::new();
    all.absent.retain(|(name, _)| seen.insert(name.clone()));
    let line = |(name, advice): &(String, String)| format!("{name}: {advice}");
    let skipped: Vec<String> = all.absent.iter().map(line).collect();
    if !skipped.is_empty() && all.of.iter().all(Vec::is_empty) {
        let text = format!("none of the suite's engines is available\n  {}", skipped.join("\n  "));
        return Err(CliError::absent(text).hint("choose other engines with --engines"));
    }
    if members.iter().any(|member| member.engines.is_empty()) {
        all.notes.extend(left_out_line(registry));
    }
    all.notes.extend(skipped.into_iter().map(|line| format!("skipped, not available: {line}")));
    for names in all.of.iter_mut().filter(|names| !names.is_empty()) {
        *names = with_floor(names, registry);
    }
    Ok(all)
}

/// The names of chosen engines, without those of groups that have nothing to keep if databases are kept.
fn kept(args: &RunArgs, registry: &Registry, chosen: Vec<Chosen>) -> Vec<String> {
    let keeps = |one: &Chosen| {
        one.is_named || registry.engine(&one.name).is_ok_and(|engine| args.kept.includes(&engine))
    };
    chosen.into_iter().filter(keeps).map(|one| one.name).collect()
}

/// The available engines of a workload of a suite; the others are added to `absent`.
fn of_suite(
    registry: &Registry,
    member: &Member,
    absent: &mut Vec<(String, String)>,
) -> Result<Vec<String>, CliError> {
    let selection = args::any_selected(registry, &member.engines, DEFAULT, "engine in the suite")?;
    absent.extend(selection.missing);
    let mut available = Vec::new();
    for Chosen { name, .. } in selection.chosen {
        match registry.engine(split_options(&name).0) {
            Ok(_) => match absent_served(registry, &name) {
                Some(advice) => absent.push((name, advice)),
                None => available.push(name),
            },
            Err(Lookup::Absent(advice)) => absent.push((name, advice)),
            Err(Lookup::Unknown(_)) => {}
        }
    }
    Ok(available)
}

/// The engines of groups that are not available, in a line.
fn skipped_line(missing: &[(String, String)]) -> Option<String> {
    let names: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!("skipped, not available: {} (`kvdyno engines` shows how to install them)", names.join(", "))
    })
}

/// How many available engines a run of the default set does not include, and how to see and include them.
fn left_out_line(registry: &Registry) -> Option<String> {
    let set = registry.default_set().names();
    let all = registry.select(&[ALL.to_string()], ALL).ok()?.names();
    let others = all.iter().filter(|name| !set.contains(name)).count();
    (others > 0).then(|| {
        format!(
            "comparing {} of {} available engines; --engines all includes the other {others}, which \
             `kvdyno engines {ALL},-{DEFAULT}` lists",
            set.len(),
            all.len()
        )
    })
}

/// Adds the null engine unless the names have a floor, and drops duplicates.
fn with_floor(names: &[String], registry: &Registry) -> Vec<String> {
    let is_floor =
        |name: &String| registry.engine(split_options(name).0).is_ok_and(|engine| engine.stores_nothing());
    let mut all = names.to_vec();
    if !all.iter().any(is_floor) {
        all.push("null".into());
    }
    let mut seen = HashSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all
}

/// How to install the engine that `kvdyno serve` would serve (`redis (serve=bbolt)`), if it is absent.
fn absent_served(registry: &Registry, name: &str) -> Option<String> {
    let served = split_options(name).1.into_iter().find(|(option, _)| *option == "serve")?.1;
    match registry.engine(served) {
        Err(Lookup::Absent(advice)) => Some(advice),
        _ => None,
    }
}

/// Each workload with its engines and their options.
fn entries(
    args: &RunArgs,
    registry: &Registry,
    members: Vec<Member>,
    of: &[Vec<String>],
) -> Result<Vec<Entry>, CliError> {
    let mut names: Vec<String> = Vec::new();
    for name in of.iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let engines = args::engines(registry, &names)?;
    let mut all = args::options(&engines, &names, &args.subject.options)?;
    for (_, value) in all.iter_mut().flat_map(|contestant| &mut contestant.options) {
        *value = split_password(value).0;
    }
    if args.kept.foreign {
        // First, so that it is visible where names are cut.
        let (name, value) = FOREIGN;
        all.iter_mut().for_each(|contestant| contestant.options.insert(0, (name.into(), value.into())));
    }
    let entry = |(member, own): (Member, &Vec<String>)| {
        let of = |name: &String| names.iter().position(|known| known == name).map(|place| all[place].clone());
        let contestants: Vec<Contestant> = own.iter().filter_map(of).collect();
        Entry { workload: member.workload, contestants, load_generators: 1 }
    };
    Ok(members.into_iter().zip(of).filter(|(_, of)| !of.is_empty()).map(entry).collect())
}

/// The environment variable from which a driver reads the password of its URL.
const PASSWORD: &str = "KVDYNO_URL_PASSWORD";

/// The environment variable that trials need for the password in the URLs of the options. Records and the process list show
/// options, so passwords are passed in the environment.
fn password_variable(options: &[String]) -> Result<Option<(String, String)>, CliError> {
    let mut found: Vec<String> = options.iter().filter_map(|option| split_password(option).1).collect();
    found.dedup();
    if found.len() > 1 {
        return Err(CliError::usage("the URLs of this run contain several passwords; only one is supported")
            .hint("remove them from the URLs and use files: --option redis.password-file=FILE"));
    }
    Ok(found.pop().map(|password| (PASSWORD.to_string(), password)))
}

/// Removes the password from the URL in a text. Returns the text and the password.
fn split_password(text: &str) -> (String, Option<String>) {
    let unchanged = || (text.to_string(), None);
    let Some((scheme, rest)) = text.split_once("://") else { return unchanged() };
    let Some((login, server)) = rest.rsplit_once('@') else { return unchanged() };
    let Some((user, password)) = login.split_once(':').filter(|(_, password)| !password.is_empty()) else {
        return unchanged();
    };
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    (format!("{scheme}://{user}{server}"), Some(password.to_string()))
}

/// The command that repeats what was parsed, with long flags, without passwords and without paths on this machine.
pub(super) fn command(definition: &Command, matches: &ArgMatches) -> Vec<String> {
    /// Flags that depend on the machine.
    const OMITTED: [&str; 15] = [
        "results",
        "data",
        "plugins",
        "resume",
        "keep",
        "metrics",
        "metrics_public",
        "plan",
        "shard",
        "output",
        "list",
        "machine_cpus",
        "load_generator",
        "rendezvous",
        "secret_file",
    ];
    let mut words = vec!["kvdyno".to_string()];
    let Some((name, matches)) = matches.subcommand() else { return words };
    // The trials of a plan are those of a run.
    words.push(if name == "plan" { "run" } else { name }.to_string());
    let last = |path: &str| {
        let name = Path::new(path).file_name().unwrap_or(OsStr::new(path));
        name.to_string_lossy().into_owned()
    };
    let is_own = |path: &str| Path::new(path).parent() == Some(Path::new(RESULTS));
    let mut found: Vec<(usize, Vec<String>)> = Vec::new();
    for arg in definition.find_subcommand(name).into_iter().flat_map(Command::get_arguments) {
        let id = arg.get_id().as_str();
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        let (Some(occurrences), true) = (matches.get_raw_occurrences(id), is_given) else { continue };
        let mut places = matches.indices_of(id).into_iter().flatten();
        for values in occurrences {
            let values: Vec<String> = values.map(|value| value.to_string_lossy().into_owned()).collect();
            let place = places.by_ref().take(values.len().max(1)).min().unwrap_or(0);
            let value = split_password(&values.join(",")).0;
            found.push((
                place,
                match arg.get_long() {
                    _ if OMITTED.contains(&id) => Vec::new(),
                    // The file's folder is a path on this machine, apart from the one in which `choose` writes.
                    None => values
                        .iter()
                        .map(|v| if v.ends_with(".toml") && !is_own(v) { last(v) } else { v.clone() })
                        .collect(),
                    Some(flag) if !arg.get_action().takes_values() => vec![format!("--{flag}")],
                    // Without --reuse the command would do something else, so only the path of its folder is removed.
                    Some(flag) if id == "reuse" && last(&value).starts_with('-') => {
                        vec![format!("--{flag}={}", last(&value))]
                    }
                    Some(flag) if id == "reuse" => vec![format!("--{flag}"), last(&value)],
                    Some(flag) if value.starts_with('-') => vec![format!("--{flag}={value}")],
                    Some(flag) => vec![format!("--{flag}"), value],
                },
            ));
        }
    }
    found.sort_by_key(|(place, _)| *place);
    words.extend(found.into_iter().flat_map(|(_, words)| words));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_core::workload::{Changes, builtin, builtin_suite, builtin_suites};

    #[test]
    fn every_engine_of_a_built_in_suite_is_known() {
        let registry = Registry::load(&[]);
        for (name, _) in builtin_suites() {
            let suite = builtin_suite(name).expect("it is in the list of suites");
            let members =
                suite.members(&builtin, &Changes::default()).unwrap_or_else(|error| panic!("{error}"));
            for engine in members.iter().flat_map(|member| &member.engines) {
                let selected = registry.select(std::slice::from_ref(engine), ALL);
                assert!(selected.is_ok(), "{name}: `{engine}`: {selected:?}");
            }
        }
    }

    #[test]
    fn only_the_password_is_removed() {
        for (text, without, password) in [
            ("redis.url=redis://:secret@host:1/2", "redis.url=redis://host:1/2", Some("secret")),
            ("redis://user:se:cr@et@host", "redis://user@host", Some("se:cr@et")),
            ("redis.url=rediss://user@host/1", "redis.url=rediss://user@host/1", None),
            ("unix://:p@/tmp/s?db=1", "unix:///tmp/s?db=1", Some("p")),
            ("redb.page=4k", "redb.page=4k", None),
        ] {
            assert_eq!(split_password(text), (without.to_string(), password.map(String::from)), "{text}");
        }
        let several = ["a=redis://:x@h", "a=redis://:y@h"].map(String::from);
        assert!(password_variable(&several).is_err());
        let one = password_variable(&several[..1]).unwrap();
        assert_eq!(one, Some((PASSWORD.to_string(), "x".to_string())));
    }

    #[test]
    fn a_recorded_command_has_long_flags_and_neither_paths_nor_passwords() {
        for (typed, recorded) in [
            ("kvdyno", "kvdyno"),
            (
                "kvdyno --plugins / run quick -e a,b --keys=1k,2k -r3 --data /d",
                "kvdyno run quick --engines a,b --keys 1k,2k --runs 3",
            ),
            (
                "kvdyno run -qe a /x/y.toml --results=/r ycsb-a --resume",
                "kvdyno run --quiet --engines a y.toml ycsb-a",
            ),
            (
                "kvdyno run quick --reuse=/a/kept --keep /k --metrics 1 --metrics-public",
                "kvdyno run quick --reuse kept",
            ),
            ("kvdyno run quick --reuse=/a/-kept", "kvdyno run quick --reuse=-kept"),
            (
                "kvdyno run --option redis.url=redis://u:p@h/1 --set=a.b=1",
                "kvdyno run --option redis.url=redis://u@h/1 --set a.b=1",
            ),
        ] {
            let parsed = crate::cli::parsed(typed.split(' ')).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parsed.words.join(" "), recorded, "{typed}");
        }
    }

    #[test]
    fn a_printed_command_has_the_paths_of_this_machine() {
        for (typed, here) in [
            ("kvdyno run quick -r3", "kvdyno run quick --runs 3"),
            (
                "kvdyno run a/b.toml --plugins /p --results /r --data d -e x",
                "kvdyno run a/b.toml --engines x --plugins /p --results /r --data d",
            ),
            ("kvdyno run read-seq --reuse a/kept", "kvdyno run read-seq --reuse=a/kept"),
            (
                "kvdyno run read-seq --reuse=a/-kept --plugins=-p",
                "kvdyno run read-seq --reuse=a/-kept --plugins=-p",
            ),
            ("kvdyno run quick --keep k --quiet", "kvdyno run quick --quiet"),
        ] {
            let parsed = crate::cli::parsed(typed.split(' ')).unwrap_or_else(|error| panic!("{error}"));
            let crate::cli::Command::Run(args) = parsed.command else { panic!("{typed}") };
            assert_eq!(args.here(&parsed.plugins, &parsed.words).join(" "), here, "{typed}");
        }
    }
}
