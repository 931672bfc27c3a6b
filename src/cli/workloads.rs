//! Workloads on the command line: the names and files of workloads and suites, the flags that change them, and
//! `kvdyno workloads [NAME]`, which lists them, or describes or prints one.

use super::args::{level, unknown};
use super::error::CliError;
use super::explain;
use super::number::{NumberError, counts, number};
use super::screen::of_stdout;
use kvdyno_core::engine::catalogue;
use kvdyno_core::generator::Rate;
use kvdyno_core::workload::{
    Arriving, Axes, Changes, Member, Overrides, Suite, Until, WhenLate, Workload, WorkloadError, builtin,
    builtin_names, builtin_scenarios, builtin_suite, builtin_suites, builtin_text, is_suite, parse,
    parse_size, parse_suite, parse_threads,
};
use kvdyno_measure::text::{QuantityError, facts, parse_bytes, parse_count, parse_seconds};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// List the workloads and suites, or describe one in plain English.
#[derive(Debug, clap::Args)]
#[command(mut_group("ChangeArgs", |group| group.requires("name")))]
pub(super) struct WorkloadsArgs {
    /// Describe this workload or suite: a name or a TOML file.
    name: Option<String>,
    /// Print its TOML file instead, as a starting point for your own.
    #[arg(long, requires = "name", conflicts_with = "ChangeArgs")]
    toml: bool,
    #[command(flatten)]
    changes: ChangeArgs,
}

/// Prints the list, a description or a file.
pub(super) fn run(args: &WorkloadsArgs) -> Result<u8, CliError> {
    let Some(name) = &args.name else {
        let (scenarios, width) = (builtin_scenarios(), of_stdout().width);
        let others: Vec<_> =
            builtin_names().iter().filter(|named| !scenarios.contains(named)).copied().collect();
        println!("{}", facts(&others[..1], width));
        println!("What does your program do most?\n{}", facts(scenarios, width));
        println!(
            "Single loads, YCSB and other published mixes, and the experiments of older tools:\n{}",
            facts(&others[1..], width)
        );
        print!(
            "Suites (several workloads, with the engines to compare):\n{}",
            facts(builtin_suites(), width)
        );
        return Ok(0);
    };
    if !args.toml {
        return explain::run(name, &args.changes);
    }
    match builtin_text(name) {
        Some(text) => {
            print!("{text}");
            Ok(0)
        }
        None => Err(unknown("workload", name, &known(), "kvdyno workloads")),
    }
}

/// A workload or a suite.
pub(super) enum Named {
    /// A workload.
    One(Box<Workload>),
    /// A suite, and the folder that its paths are relative to.
    Suite(Suite, PathBuf),
}

/// The names of all built-in workloads and suites, workloads first.
pub(super) fn known() -> Vec<&'static str> {
    builtin_names().iter().chain(builtin_suites()).map(|(name, _)| *name).collect()
}

/// Finds a workload or suite by name, or reads it from a file (its name ends in `.toml` or contains a `/`).
pub(super) fn named(name: &str) -> Result<Named, CliError> {
    if is_path(name) {
        let text = read(Path::new(name)).map_err(|error| unread(name, error))?;
        if is_suite(&text) {
            let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_path_buf();
            return Ok(Named::Suite(parse_suite(&text, name)?, folder));
        }
        return Ok(Named::One(Box::new(parse(&text, name)?)));
    }
    if let Some(suite) = builtin_suite(name) {
        return Ok(Named::Suite(suite, PathBuf::new()));
    }
    if !known().contains(&name) && catalogue().iter().any(|known| known.name == name) {
        return Err(CliError::usage(format!("unknown workload `{name}`"))
            .hint(format!("it is an engine: --engines {name}; commas without spaces separate several")));
    }
    if !known().contains(&name) {
        return Err(unknown("workload", name, &known(), "kvdyno workloads"));
    }
    Ok(Named::One(Box::new(builtin(name)?)))
}

/// The error of a file that cannot be read, which may be meant for a workload of that name.
fn unread(name: &str, error: WorkloadError) -> CliError {
    let stem = Path::new(name).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let error = CliError::from(error);
    match known().contains(&stem) && !Path::new(name).exists() {
        true => error.hint(format!(
            "`{stem}` is a built-in workload; `kvdyno workloads {stem} --toml` prints its file"
        )),
        false => error,
    }
}

impl Named {
    /// The name without the path.
    pub(super) fn name(&self) -> &str {
        match self {
            Named::One(workload) => &workload.name,
            Named::Suite(suite, _) => &suite.name,
        }
    }

    /// The workloads with the changes applied.
    pub(super) fn members(&self, changes: &Changes) -> Result<Vec<Member>, WorkloadError> {
        match self {
            Named::One(workload) => {
                let variants = changes.variants(workload, &Default::default());
                let member = |workload| Member { workload, engines: Vec::new(), missed: Vec::new() };
                variants.map(|variants| variants.into_iter().map(member).collect())
            }
            Named::Suite(suite, folder) => suite.members(&|name| find(name, folder), changes),
        }
    }
}

/// Finds a workload that a suite names.
fn find(name: &str, folder: &Path) -> Result<Workload, WorkloadError> {
    if !is_path(name) {
        return builtin(name);
    }
    let path = folder.join(name);
    parse(&read(&path)?, &path.to_string_lossy()).map_err(WorkloadError::with_place)
}

/// Whether a word names a workload or a suite, or looks like the path of one.
pub(super) fn is_workload(name: &str) -> bool {
    name.ends_with(".toml") || known().contains(&name)
}

fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains('/')
}

fn read(path: &Path) -> Result<String, WorkloadError> {
    kvdyno_measure::read_text(path).map_err(|error| {
        WorkloadError::new("", format!("cannot read the workload {}: {error}", path.display()))
    })
}

/// Flags that change a workload.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Workload fields")]
pub(super) struct ChangeArgs {
    /// Number of keys, such as `200k`. With a list (`1M,5M,10M`), run the workload once for each number.
    #[arg(long, value_parser = keys, value_name = "N")]
    keys: Vec<Counts>,
    /// Size of a key in bytes, such as `16` or `uniform:8-64`.
    #[arg(long, value_name = "SIZE")]
    key_size: Option<String>,
    /// Size of a value in bytes, such as `100`, `1KiB` or `uniform:250-2500`.
    #[arg(long, value_name = "SIZE")]
    value_size: Option<String>,
    /// Number of threads, such as `4`, `cpus` or `cpus-1`. With a list (`1,2,4,8`), run the workload once with each number;
    /// the report then shows how throughput scales.
    #[arg(short, long, value_delimiter = ',', value_name = "N")]
    threads: Vec<String>,
    /// Duration of each measured phase, such as `10` (seconds) or `500ms`.
    #[arg(long, value_parser = parse_seconds, value_name = "TIME")]
    seconds: Option<f64>,
    /// End each measured phase when its ops per second, p99 and bytes written per op no longer change, after 40 seconds or more.
    /// --seconds is the limit.
    #[arg(long)]
    until_steady: bool,
    /// Number of ops in each measured phase, such as `1M`.
    #[arg(long, value_parser = parse_count, value_name = "N")]
    ops: Option<u64>,
    /// Requests per second that arrive in each measured phase, whether or not earlier ones have ended: `20k`, `poisson:20k`,
    /// `steps:1k,2k,4k`, `ramp:1k-100k`, `bursts:1k,20k,10s,0.2` or `sine:10k,5k,60s`. Wait and response times are then measured,
    /// too.
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    rate: Option<Rate>,
    /// Whether requests of --rate wait in one queue for all threads, or in one for each [default: shared].
    #[arg(long, value_name = "shared|own")]
    arrivals: Option<Arriving>,
    /// Whether requests of --rate that are late are sent, or dropped and counted if they are later than LIMIT [default: queue].
    #[arg(long, value_name = "queue|drop:LIMIT")]
    when_late: Option<WhenLate>,
    /// Overwrite each key N times, in random order, before the measured phases, as in a database that has been used for some time.
    /// With a list (`0,3`), run the workload once at each age.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = number(0..=1000_u32))]
    age: Vec<u32>,
    /// Size of the data as a multiple of the memory that each trial may use for them, such as `2`. It limits the memory, or with
    /// --memory it sets the number of keys. With a list (`0.5,1,2,4`), run the workload once at each ratio; the report then shows
    /// what each engine reads from the disk.
    #[arg(long, value_delimiter = ',', value_parser = ratio, value_name = "RATIO", allow_negative_numbers = true)]
    data_to_memory: Vec<f64>,
    /// Maximum time to load the keys, such as `30`. An engine that is slower is reported as too slow, and its later runs
    /// are skipped.
    #[arg(long, value_parser = parse_seconds, value_name = "TIME")]
    load_seconds: Option<f64>,
    /// Multiply all key counts, op counts and durations of the workload by FACTOR, such as `0.1`, before other flags apply.
    #[arg(long, value_parser = factor, value_name = "FACTOR")]
    scale: Option<f64>,
    /// Minimum durability level: none, process, power or default. With a list, run the workload once at each level.
    #[arg(long, value_delimiter = ',', value_name = "LEVELS")]
    durability: Vec<String>,
    /// Cache budget of each engine, such as `64MiB`.
    #[arg(long, value_parser = parse_bytes, value_name = "BYTES")]
    cache: Option<u64>,
    /// Seed of all random streams. Repetitions after the first derive their own seeds from it.
    #[arg(long, value_parser = number(0..=u64::MAX))]
    seed: Option<u64>,
    /// Number of repetitions of each cell.
    #[arg(short, long, value_name = "N", value_parser = number(1..=u32::MAX))]
    runs: Option<u32>,
    /// Set any field of the workload, such as `read.seconds=3` or `key.encoding=hex`. Can be given more than once.
    #[arg(long, value_name = "PHASE.FIELD=VALUE")]
    set: Vec<String>,
}

/// The numbers of one --keys.
#[derive(Clone, Debug)]
struct Counts(Vec<u64>);

fn keys(text: &str) -> Result<Counts, NumberError> {
    counts("--keys", text).map(Counts)
}

fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse::<f64>().ok().filter(|ratio| (0.01..=1e3).contains(ratio));
    ratio.ok_or_else(|| "expected a ratio from 0.01 to 1000, such as 0.5 or 4".to_string())
}

fn factor(text: &str) -> Result<f64, String> {
    if let Err(error @ QuantityError::Comma { .. }) = parse_seconds(text) {
        return Err(error.to_string());
    }
    let factor = text.parse::<f64>().ok().filter(|factor| (1e-6..=1e6).contains(factor));
    factor.ok_or_else(|| "expected a factor from 0.000001 to 1000000, such as 0.1".to_string())
}

impl ChangeArgs {
    /// The given flags that set how long and how often a workload is measured.
    pub(super) fn lengths(&self) -> Vec<&'static str> {
        let flags = [
            ("--seconds", self.seconds.is_some()),
            ("--ops", self.ops.is_some()),
            ("--until-steady", self.until_steady),
            ("--runs", self.runs.is_some()),
        ];
        flags.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }

    /// The same, with phases of this length, and with this level if there is one.
    pub(super) fn of_trials(&self, seconds: f64, level: Option<&str>) -> ChangeArgs {
        let durability = level.map_or_else(|| self.durability.clone(), |level| vec![level.to_string()]);
        ChangeArgs { seconds: Some(seconds), durability, ..self.clone() }
    }

    /// The same, with this number of ops instead of a time, unless one is given, and with this level if there is one.
    pub(super) fn of_counted(&self, ops: Option<u64>, level: Option<&str>) -> ChangeArgs {
        let durability = level.map_or_else(|| self.durability.clone(), |level| vec![level.to_string()]);
        ChangeArgs { ops: self.ops.or(ops), durability, ..self.clone() }
    }

    /// The same, with at most this number of keys; none: the workload, to which these were applied, has no more, or the number is
    /// given.
    pub(super) fn of_usual_keys(&self, workload: &Workload, most: u64) -> Option<ChangeArgs> {
        let is_larger = self.keys.is_empty() && workload.keys > most;
        is_larger.then(|| ChangeArgs { keys: vec![Counts(vec![most])], ..self.clone() })
    }

    /// Whether keys are overwritten before they are measured.
    pub(super) fn ages(&self) -> bool {
        self.age.iter().any(|age| *age > 0)
    }

    /// Whether the size of the data is given as a multiple of memory.
    pub(super) fn has_ratios(&self) -> bool {
        !self.data_to_memory.is_empty()
    }

    /// Whether a rate is given.
    pub(super) fn has_rate(&self) -> bool {
        self.rate.is_some()
    }

    /// The changes to each workload of a run, including a memory limit.
    pub(super) fn changes(&self, memory: Option<u64>) -> Result<Changes, CliError> {
        let size = |flag: &str, text: &Option<String>| match text {
            Some(text) => {
                parse_size(text).map(Some).map_err(|error| CliError::usage(format!("{flag} {text}: {error}")))
            }
            None => Ok(None),
        };
        let threads = |text: &String| {
            parse_threads(text).map_err(|error| CliError::usage(format!("--threads {text}: {error}")))
        };
        let levels = self.durability.iter().map(|text| level(text)).collect::<Result<_, _>>()?;
        Ok(Changes {
            scale: self.scale,
            axes: Axes {
                keys: self.keys.iter().flat_map(|list| list.0.iter().copied()).collect(),
                durability: levels,
                threads: self.threads.iter().map(threads).collect::<Result<_, _>>()?,
                ages: self.age.clone(),
                data_to_memory: self.data_to_memory.clone(),
            },
            overrides: Overrides {
                keys: None,
                key_size: size("--key-size", &self.key_size)?,
                value_size: size("--value-size", &self.value_size)?,
                threads: None,
                seconds: self.seconds,
                until: self.until_steady.then_some(Until::Steady),
                ops: self.ops,
                rate: self.rate.clone(),
                arrivals: self.arrivals,
                when_late: self.when_late,
                durability: None,
                cache: self.cache,
                load_seconds: self.load_seconds,
                memory,
                seed: self.seed,
                runs: self.runs,
                set: self.set.clone(),
            },
        })
    }
}
