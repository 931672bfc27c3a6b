//! `kvdyno choose`: asks what an application needs, runs a workload made of that on the engines that fit, and recommends the
//! fastest of them, or at a given rate those with the lowest response times.

mod needs;
mod rate;
mod size;

use super::args;
use super::error::CliError;
use super::plugins::registry;
use super::report::RESULTS;
use super::screen::of_stdout;
use kvdyno_core::engine::{ALL, Engine, Known, Processes, Properties, Registry, catalogue, is_date};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Cause, Choice, Outcome, Record, RuledOut, Run, Safety};
use kvdyno_core::workload::Durability;
use kvdyno_measure::text::{count_text, counted, listed, nearest, parse_bytes, parse_count, wrapped};
use kvdyno_measure::{Machine, MemoryCap};
use kvdyno_prove::proven::{Proven, proven, proven_here};
use kvdyno_report::recommendation;
use needs::{Accepted, Facts, Needs, alternatives};
use size::{Cap, Size, TooShort};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// If more engines fit, only those of the default set are measured, unless engines were named; and those that keep all data in
/// memory if writes need not survive anything.
const MEASURED: usize = 8;
const SELECTORS: &str = "Choose among these engines. By default, all are considered, and if more than 8 fit, those of the default \
     set are measured, and at durability level none also in-memory engines. A list of names, `all`, `default`, languages, \
     families, classes and patterns, as for `kvdyno run`.";
/// What `engine.toml` names as the upstream of engines of this project.
const OURS: &str = "this project";
/// The most characters of a rate in the name of a file.
const NAMED: usize = 40;
/// The maximum width of the text that it prints.
const WIDEST: usize = 100;

/// Recommend an engine for an application. Each need that is not given as a flag is asked for on the terminal.
#[derive(Debug, clap::Args)]
pub(super) struct ChooseArgs {
    /// The language of the application, which calls the engine, or `any`.
    #[arg(long, value_name = "NAME", help_heading = "Needs")]
    callable_from: Option<String>,
    /// What a confirmed write must survive: power (a power loss), process (a crash of the program) or none.
    #[arg(long, value_name = "LEVEL", help_heading = "Needs")]
    durability: Option<String>,
    /// Whether several writes must happen together or not at all: yes or no.
    #[arg(long, value_name = "YES|NO", help_heading = "Needs")]
    transactions: Option<String>,
    /// Whether the application reads keys in order: yes or no.
    #[arg(long, value_name = "YES|NO", help_heading = "Needs")]
    ordered: Option<String>,
    /// Whether entries must expire on their own after a time: yes or no.
    #[arg(long, value_name = "YES|NO", help_heading = "Needs")]
    expiry: Option<String>,
    /// The size of all keys and values.
    #[arg(long, value_name = "BYTES", help_heading = "Needs")]
    data: Option<String>,
    /// The memory for the engine and the page cache, or `all` of the machine.
    #[arg(long, value_name = "BYTES", help_heading = "Needs")]
    memory: Option<String>,
    /// The size of a value.
    #[arg(long, value_name = "BYTES", help_heading = "Needs")]
    value_size: Option<String>,
    /// The share of reads among all operations, in percent.
    #[arg(long, value_name = "PERCENT", help_heading = "Needs")]
    reads: Option<String>,
    /// The number of threads that use the engine at the same time.
    #[arg(long, value_name = "N", help_heading = "Needs")]
    threads: Option<String>,
    /// The licences that are accepted: SPDX names, `permissive` or `any`.
    #[arg(long, value_name = "NAMES", help_heading = "Needs")]
    licence: Option<String>,
    /// The languages that the engine may be written in, or `any`.
    #[arg(long, value_name = "NAMES", default_value = "any", help_heading = "Needs that are not asked for")]
    language: String,
    /// Whether the engine may drop entries when space is short: yes or no.
    #[arg(long, value_name = "YES|NO", default_value = "no", help_heading = "Needs that are not asked for")]
    cache: String,
    /// The size of a key.
    #[arg(long, value_name = "BYTES", default_value = "16", help_heading = "Needs that are not asked for")]
    key_size: String,
    /// The processes that open the database at the same time: one, readers (several that read) or several.
    #[arg(long, value_name = "WHICH", default_value = "one", help_heading = "Needs that are not asked for")]
    processes: String,
    /// The database must be one file.
    #[arg(long, help_heading = "Needs that are not asked for")]
    one_file: bool,
    /// Space of deleted data must be given back to the file system, at least when the application calls for it.
    #[arg(long, help_heading = "Needs that are not asked for")]
    gives_space_back: bool,
    /// The release that kvdyno measures must not be older, such as `2024-01-01`.
    #[arg(long, value_name = "DATE", help_heading = "Needs that are not asked for")]
    released_since: Option<String>,
    /// The requests per second of the application: the measured phases are sent at this rate, and response times decide instead of
    /// ops/s. `20k` are Poisson arrivals; `steps:1k,2k` and the other forms of `kvdyno run --rate` are as written.
    #[arg(
        long,
        value_name = "RATE",
        allow_negative_numbers = true,
        help_heading = "Needs that are not asked for"
    )]
    rate: Option<String>,
    /// The limits that an engine must keep at this rate, such as `p99<1ms,max<100ms`: p50, p90, p95, p99, p99.9, p99.99 or max of
    /// response times, or `backlog`. The others are not recommended.
    #[arg(long, value_name = "LIMITS", help_heading = "Needs that are not asked for")]
    slo: Option<String>,
    /// Choose among these engines [default: all, or the default set if more than 8 fit].
    #[arg(short, long, value_delimiter = ',', value_name = "NAMES", long_help = SELECTORS)]
    engines: Vec<String>,
    /// Also measure engines that lose data in kvdyno's crash tests at this level. They have no rank.
    #[arg(long)]
    any_safety: bool,
    /// The duration of the measurement, in minutes. Less data are measured to keep it; data larger than memory keep their ratio to
    /// it, up to 4. If that takes longer, the command says how long, and asks on a terminal whether to measure that long.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Print the workload file and the engines that fit, and measure nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write the results of the run to a new folder in DIR.
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    results: PathBuf,
}

/// A question: its flag, its text, the answer if the user only presses Enter, and the check of an answer.
struct Question<'a, Answer> {
    flag: &'static str,
    text: &'static str,
    default: String,
    given: &'a Option<String>,
    /// Whether it must be answered where nobody can be asked.
    is_required: bool,
    parse: &'a dyn Fn(&str) -> Result<Answer, CliError>,
}

/// Asks questions, or collects the flags that are missing where nobody can be asked.
struct Interview {
    can_ask: bool,
    missing: Vec<&'static str>,
}

impl Interview {
    fn new() -> Interview {
        let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        Interview { can_ask, missing: Vec::new() }
    }

    /// The answer: of the flag, or typed. Without a terminal, a missing flag has its default until `end`.
    fn ask<Answer>(&mut self, question: Question<'_, Answer>) -> Result<Answer, CliError> {
        let Question { flag, text, default, given, is_required, parse } = question;
        let wrong = |reason: CliError| CliError::usage(format!("{flag}: {reason}"));
        if let Some(given) = given {
            return parse(given.trim()).map_err(wrong);
        }
        if !self.can_ask {
            if is_required {
                self.missing.push(flag);
            }
            return parse(&default).map_err(wrong);
        }
        loop {
            eprint!("{text} [{default}] ");
            let _ = std::io::stderr().flush();
            let mut line = String::new();
            let count = std::io::stdin()
                .read_line(&mut line)
                .map_err(|error| CliError::failed(format!("cannot read the answer: {error}")))?;
            if count == 0 {
                return Err(CliError::usage(format!("the input ended before {flag} was answered")));
            }
            let answer = if line.trim().is_empty() { &default } else { line.trim() };
            match parse(answer) {
                Ok(answer) => return Ok(answer),
                Err(reason) => eprintln!("{reason}"),
            }
        }
    }

    fn end(self) -> Result<(), CliError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(CliError::usage(format!("missing {}", listed(&self.missing, "and")))
            .hint("without a terminal to ask on, `kvdyno choose` needs a flag for each of these questions"))
    }
}

fn yes_or_no(text: &str) -> Result<bool, CliError> {
    match text.to_lowercase().as_str() {
        "yes" | "y" => Ok(true),
        "no" | "n" => Ok(false),
        _ => Err(CliError::usage(format!("`{text}` is not yes or no"))),
    }
}

fn level(text: &str) -> Result<Durability, CliError> {
    match text {
        "none" => Ok(Durability::None),
        "process" => Ok(Durability::Process),
        "power" => Ok(Durability::Power),
        _ => Err(CliError::usage(format!("`{text}` is not power, process or none"))),
    }
}

/// `95` or `95%`, as a share.
fn percent(text: &str) -> Result<f64, CliError> {
    let value = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let share = value.filter(|value| (0.0..=100.0).contains(value)).map(|value| value / 100.0);
    share.ok_or_else(|| CliError::usage(format!("`{text}` is not a percentage from 0 to 100")))
}

/// A number in a range, if it is one.
fn within(value: Result<u64, impl Display>, low: u64, high: u64, text: &str) -> Result<u64, CliError> {
    let value = value.map_err(|error| CliError::usage(error.to_string()))?;
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(CliError::usage(format!("`{text}` is not from {low} to {high}")))
}

fn memory(text: &str) -> Result<Option<u64>, CliError> {
    if text == "all" {
        return Ok(None);
    }
    within(parse_bytes(text), 32 << 20, u64::MAX, text).map(Some)
}

/// Names out of those that the catalogue has, spelled as there.
fn accepted(text: &str, known: &[&str], what: &str) -> Result<Accepted, CliError> {
    let spelled = |name: &str| {
        if name.is_empty() {
            return Err(CliError::usage(format!("an empty {what}; known: {}, any", known.join(", "))));
        }
        if name == "any" {
            return Err(CliError::usage(format!("`any` accepts every {what}; leave out the others")));
        }
        let found = known.iter().find(|known| known.eq_ignore_ascii_case(name));
        found.map(|known| known.to_string()).ok_or_else(|| {
            let hint = nearest(name, known).map_or_else(
                || format!("known: {}", known.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            CliError::usage(format!("unknown {what} `{name}`; {hint}"))
        })
    };
    match text {
        "any" => Ok(Accepted::Any),
        "permissive" if what == "licence" => Ok(Accepted::Permissive),
        _ => text.split(',').map(|name| spelled(name.trim())).collect::<Result<_, _>>().map(Accepted::Only),
    }
}

/// The needs, from flags and answers.
fn needs(args: &ChooseArgs) -> Result<Needs, CliError> {
    // Before anything is asked.
    let (rate, limits) = rate::asked(args.rate.as_deref(), args.slo.as_deref())?;
    let sorted = |mut names: Vec<&'static str>| {
        names.sort_unstable();
        names.dedup();
        names
    };
    let known = || catalogue().iter();
    let languages = sorted(known().map(|known| known.language.as_str()).collect());
    let callers =
        sorted(known().flat_map(|known| known.properties.callable_from.iter().map(String::as_str)).collect());
    let licences = sorted(known().flat_map(|known| alternatives(&known.licence)).collect());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut interview = Interview::new();
    macro_rules! ask {
        ($flag:literal, $given:ident, $is_required:literal, $text:literal, $default:expr, $parse:expr) => {
            interview.ask(Question {
                flag: $flag,
                text: $text,
                default: $default.to_string(),
                given: &args.$given,
                is_required: $is_required,
                parse: &$parse,
            })?
        };
    }
    let wrong = |flag: &'static str| move |reason: CliError| CliError::usage(format!("{flag}: {reason}"));
    let size = |low: u64, high: u64| move |text: &str| within(parse_bytes(text), low, high, text);
    // The most deciding first.
    let caller = ask!(
        "--callable-from",
        callable_from,
        false,
        "Which language is your program written in? (Rust, Go, C, C++, Java, Python, or any)",
        "any",
        |text: &str| accepted(text, &callers, "language")
    );
    let durability = ask!(
        "--durability",
        durability,
        true,
        "What must a confirmed write survive: power (a power loss), process (a crash of your program) or none?",
        "process",
        level
    );
    let transactions = ask!(
        "--transactions",
        transactions,
        true,
        "Do you need transactions: several writes that happen together or not at all?",
        "no",
        yes_or_no
    );
    let ordered = ask!(
        "--ordered",
        ordered,
        true,
        "Do you read keys in order, such as a range or all keys with a prefix?",
        "no",
        yes_or_no
    );
    let expiry =
        ask!("--expiry", expiry, false, "Must entries expire on their own after a time?", "no", yes_or_no);
    let data_bytes = ask!(
        "--data",
        data,
        true,
        "How much data will you store, keys and values together?",
        "1GB",
        size(1, 1 << 50)
    );
    let memory_bytes = ask!(
        "--memory",
        memory,
        true,
        "How much memory may the engine use, including the page cache?",
        "all",
        memory
    );
    // `all` rules out what this machine cannot hold.
    let memory_bytes = memory_bytes.or_else(|| Machine::observe(&args.results).memory_bytes);
    let value_bytes =
        ask!("--value-size", value_size, true, "How large is a typical value?", "100", size(0, 1 << 20));
    let reads = ask!("--reads", reads, true, "What percentage of your operations are reads?", "80", percent);
    let threads = ask!(
        "--threads",
        threads,
        true,
        "How many threads will use the engine at once?",
        cpus,
        |text: &str| { within(parse_count(text), 1, 1024, text) }
    );
    let licences = ask!(
        "--licence",
        licence,
        false,
        "Which licences do you accept: SPDX names such as MIT, permissive, or any?",
        "any",
        |text: &str| accepted(text, &licences, "licence")
    );
    interview.end()?;
    let processes = match args.processes.as_str() {
        "one" => Processes::One,
        "readers" => Processes::Readers,
        "several" => Processes::Several,
        other => {
            return Err(CliError::usage(format!("--processes: `{other}` is not one, readers or several")));
        }
    };
    if let Some(date) = args.released_since.as_ref().filter(|date| !is_date(date)) {
        return Err(CliError::usage(format!("--released-since: `{date}` is not a date such as 2024-01-01")));
    }
    Ok(Needs {
        caller: match caller {
            Accepted::Only(names) if names.len() == 1 => names.into_iter().next(),
            Accepted::Any => None,
            _ => return Err(CliError::usage("--callable-from: name one language, or `any`")),
        },
        ordered,
        transactions,
        cache: yes_or_no(&args.cache).map_err(wrong("--cache"))?,
        expiry,
        durability,
        any_safety: args.any_safety,
        reads,
        key_bytes: size(8, 1 << 16)(&args.key_size).map_err(wrong("--key-size"))?,
        value_bytes,
        data_bytes,
        memory_bytes,
        threads: threads as u32,
        one_file: args.one_file,
        processes,
        gives_space_back: args.gives_space_back,
        released_since: args.released_since.clone(),
        languages: accepted(&args.language, &languages, "language").map_err(wrong("--language"))?,
        licences,
        rate,
        limits,
    })
}

/// An engine to choose from.
struct Candidate {
    name: String,
    family: String,
    language: String,
    licence: String,
    proven: Option<Proven>,
    /// Whether it is a reference of this project and no library.
    is_reference: bool,
    /// What cannot be measured.
    properties: Properties,
    /// An option that is set because a need depends on it, and its value.
    option: Option<(String, String)>,
    /// The capabilities that it gives.
    given: Vec<String>,
    /// How to install it, if it is not available.
    install: Option<String>,
}

impl Candidate {
    fn available(engine: &Engine) -> Candidate {
        match catalogue().iter().find(|known| known.name == engine.name()) {
            Some(known) => {
                Candidate { proven: proven_here(engine), install: None, ..Candidate::absent(known) }
            }
            None => Candidate {
                name: engine.name().to_string(),
                family: engine.family(),
                language: engine.language(),
                licence: String::new(),
                proven: proven_here(engine),
                is_reference: false,
                properties: Properties::default(),
                option: None,
                given: Vec::new(),
                install: None,
            },
        }
    }

    fn absent(known: &Known) -> Candidate {
        Candidate {
            name: known.name.clone(),
            family: known.family.clone(),
            language: known.language.clone(),
            licence: known.licence.clone(),
            proven: proven(&known.name).cloned(),
            is_reference: known.upstream == OURS,
            properties: known.properties.clone(),
            option: None,
            given: Vec::new(),
            install: Some(known.get.clone()),
        }
    }

    /// The engine with the first option that gives it a needed capability which it does not have without.
    fn with_option(self, needed: &[&str]) -> Candidate {
        let known = catalogue().iter().find(|known| known.name == self.name);
        let lacks = |capability: &&&str| !self.facts().can(capability);
        let lacking: Vec<&str> = needed.iter().filter(lacks).copied().collect();
        let gives = known.into_iter().flat_map(|known| &known.gives);
        let useful = gives
            .into_iter()
            .find(|gives| gives.capabilities.iter().any(|capability| lacking.contains(&capability.as_str())));
        match useful {
            Some(gives) => Candidate {
                option: Some((gives.option.clone(), gives.value.clone())),
                given: gives.capabilities.clone(),
                ..self
            },
            None => self,
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            name: &self.name,
            is_reference: self.is_reference,
            proven: self.proven.as_ref(),
            family: &self.family,
            language: &self.language,
            licence: &self.licence,
            properties: &self.properties,
            given: &self.given,
        }
    }
}

/// The engines to choose from: the selected ones that are available, and with `all` also the others.
fn candidates(args: &ChooseArgs, needs: &Needs, registry: &Registry) -> Result<Vec<Candidate>, CliError> {
    let all = [ALL.to_string()];
    let words = if args.engines.is_empty() { &all[..] } else { &args.engines };
    let selection = args::selected(registry, words, ALL)?;
    let names = selection.names();
    let engines = args::engines(registry, &names)?;
    let mut all: Vec<Candidate> = engines.iter().map(Candidate::available).collect();
    let missing = |name: &String| registry.absent().iter().find(|absent| absent.known.name == *name);
    let absent = selection.missing.iter().filter_map(|(name, _)| missing(name));
    all.extend(absent.map(|absent| Candidate::absent(absent.known)));
    Ok(all.into_iter().map(|candidate| candidate.with_option(&needs.capabilities())).collect())
}

/// The engines that needs leave, and why the others were ruled out.
struct Fitting {
    fit: Vec<Candidate>,
    ruled_out: Vec<RuledOut>,
}

/// Applies the rules in turn. If no engine is left, the error names the need that ruled out the last ones.
fn choice(needs: &Needs, mut fit: Vec<Candidate>) -> Result<Fitting, CliError> {
    let mut ruled_out: Vec<RuledOut> = Vec::new();
    for rule in needs.rules() {
        let (kept, out): (Vec<Candidate>, Vec<Candidate>) =
            fit.into_iter().partition(|candidate| rule.is_met(&candidate.facts()));
        let engines = out.iter().map(|candidate| rule.named(&candidate.facts())).collect();
        let out = RuledOut { reason: rule.reason, flag: rule.flag.to_string(), engines };
        if kept.is_empty() {
            let others: Vec<String> = ruled_out.iter().map(line).collect();
            let last = line(&out);
            let before = if others.is_empty() {
                String::new()
            } else {
                format!("\n  before: {}", others.join("\n  before: "))
            };
            let error = CliError::usage(format!(
                "no engine meets all needs; the last were ruled out because of\n  {last}{before}"
            ));
            return Err(match rule.flag {
                "" => error,
                flag => error.hint(format!("relax {flag}, or one of the needs before it")),
            });
        }
        fit = kept;
        if !out.engines.is_empty() {
            ruled_out.push(out);
        }
    }
    Ok(Fitting { fit, ruled_out })
}

/// A note on the engines that only `--any-safety` has left.
fn unsafe_ones(needs: &Needs, fit: &[Candidate]) -> Option<String> {
    let of = |candidate: &Candidate| match candidate.facts().safety(needs.durability) {
        Safety::Contradicted { reason, .. } => Some(format!("{} ({reason})", candidate.name)),
        _ => None,
    };
    let found: Vec<String> = fit.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| {
        format!(
            "these lose data in kvdyno's crash tests, and have no rank (--any-safety): {}",
            found.join(", ")
        )
    })
}

/// `no ordered scans: go-map, pogreb`.
fn line(out: &RuledOut) -> String {
    format!("{}: {}", out.reason, out.engines.join(", "))
}

fn print_list(title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let width = of_stdout().width.min(WIDEST);
    println!("{title}:");
    lines.iter().for_each(|line| print!("{}", wrapped("  ", "    ", line, width)));
}

/// The name of the workload: the same needs have the same name.
fn file_name(needs: &Needs, size: &Size) -> String {
    let flags = [(needs.ordered, "-ordered"), (needs.transactions, "-transactions"), (needs.cache, "-cache")];
    let flags: String = flags.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
    let level = match needs.durability {
        Durability::Power => "power",
        Durability::Process => "process",
        Durability::None | Durability::Default => "none",
    };
    let memory =
        size.memory_bytes.map_or_else(String::new, |limit| format!("-{}of{limit}", needs.data_bytes));
    let rate = needs.rate.as_ref().map_or_else(String::new, |rate| {
        let text = rate.to_string().replace([':', ',', '.'], "_");
        format!("-{}", text.chars().take(NAMED).collect::<String>())
    });
    format!(
        "choose{flags}-{level}-{:.0}reads-{}b-{}{memory}-{}t{rate}.toml",
        needs.reads * 100.0,
        needs.value_bytes,
        count_text(needs.data_bytes).replace(['.', ','], "_"),
        needs.threads
    )
}

/// Asks, measures and recommends.
pub(super) fn run(args: &ChooseArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let needs = needs(args)?;
    let registry = registry(plugins, &[])?;
    let Fitting { fit, ruled_out } = choice(&needs, candidates(args, &needs, &registry)?)?;
    let (absent, fit): (Vec<Candidate>, Vec<Candidate>) =
        fit.into_iter().partition(|candidate| candidate.install.is_some());
    let names_of = |all: &[Candidate]| all.iter().map(|candidate| candidate.name.clone()).collect::<Vec<_>>();
    let mut preferred = registry.default_set().names();
    if needs.durability == Durability::None {
        let in_memory = fit.iter().filter(|candidate| candidate.facts().can("in-memory"));
        preferred.extend(in_memory.map(|candidate| candidate.name.clone()));
    }
    let (names, others) = measured_of(args, names_of(&fit), &preferred);
    let (minutes, size) = sized(args, &needs, names.len())?;
    let text = needs.workload(&size);
    let options: Vec<(String, String)> = fit
        .iter()
        .filter(|candidate| names.contains(&candidate.name))
        .filter_map(|candidate| {
            let (option, value) = candidate.option.as_ref()?;
            Some((candidate.name.clone(), format!("{option}={value}")))
        })
        .collect();
    // As reports show them: `fjall (transactions=true)`.
    let shown: Vec<String> = names
        .iter()
        .map(|name| match options.iter().find(|(engine, _)| engine == name) {
            Some((_, option)) => format!("{name} ({option})"),
            None => name.clone(),
        })
        .collect();
    let mut notes = Vec::new();
    notes.extend(unsafe_ones(&needs, &fit));
    if !others.is_empty() {
        notes.push(format!("these fit as well; --engines all measures them, too: {}", others.join(", ")));
    }
    if !absent.is_empty() {
        let names = names_of(&absent).join(", ");
        notes.push(format!(
            "these fit as well, but are not available; `kvdyno engines` shows how to install them: {names}"
        ));
    }
    let ruled_out_lines: Vec<String> = ruled_out.iter().map(line).collect();
    let choice = Choice {
        needs: needs.answers(),
        rate: needs.rate.as_ref().map(ToString::to_string),
        limits: needs.limits.as_ref().map(ToString::to_string),
        ruled_out,
        size: size.notes.clone(),
        not_shown: needs.not_shown(&size, &options),
        others: notes,
    };
    let end = || {
        print_list("Ruled out", &ruled_out_lines);
        print_list("Measured instead of your data", &choice.size);
        print_list("Not shown by the measurement", &choice.not_shown);
        print_list("Note", &choice.others);
    };
    if args.dry_run {
        print!("{text}");
        println!("\n# engines that fit: {}", shown.join(", "));
        let lines = [&ruled_out_lines, &choice.size, &choice.not_shown, &choice.others].into_iter().flatten();
        lines.for_each(|line| println!("# {line}"));
        return Ok(0);
    }
    if names.is_empty() {
        end();
        return Err(
            CliError::absent("no engine that fits is available").hint("install one of those in the notes")
        );
    }
    if needs.rate.is_some() {
        rate::check(&text, &registry)?;
    }
    let file = args.results.join(file_name(&needs, &size));
    std::fs::create_dir_all(&args.results).map_err(CliError::cannot("create", &args.results))?;
    std::fs::write(&file, &text).map_err(CliError::cannot("write", &file))?;
    let count = counted(names.len() as u64, "engine", "engines");
    let time = counted(minutes, "minute", "minutes");
    print_list(
        &format!("Measuring {count}, at most {time}"),
        &[shown.join(", "), format!("workload: {}", file.display())],
    );
    println!();
    let (code, folder) = measured(args, plugins, &file, &names, &options, choice.clone())?;
    let results = RunFolder::open(&folder)?;
    let summary = Summary::new(results.run(), results.finished()?);
    println!();
    print_list("Recommendation", &recommendation(&summary, &here(results.run(), &file)));
    print_list("Too slow at this size", &too_slow(&summary.records));
    end();
    Ok(code)
}

/// The run with a command that names the file of its workload with the folder, which records do not have.
fn here(run: &Run, file: &Path) -> Run {
    let mut here = run.clone();
    let name = file.file_name().map(OsStr::to_string_lossy);
    if let Some(word) = here.plan.command.iter_mut().find(|word| Some(word.as_str()) == name.as_deref()) {
        *word = file.display().to_string();
    }
    here
}

/// The minutes that the measurement takes, and its size. If the time is too short for any size, asks for more; where nobody can be
/// asked, the error says what would do.
fn sized(args: &ChooseArgs, needs: &Needs, engines: usize) -> Result<(u64, Size), CliError> {
    let cap = if needs.exceeds_memory() { cap() } else { Cap::Possible };
    let TooShort { minutes, exceeds_memory } = match needs.size(args.minutes, engines, &cap) {
        Ok(size) => return Ok((args.minutes, size)),
        Err(short) => short,
    };
    let reason = match needs.why_long() {
        Some(reason) => reason,
        None if exceeds_memory => {
            "data larger than memory must be loaded from a disk and read from it".into()
        }
        None => "even the smallest measurement takes that long".into(),
    };
    let text = format!(
        "--minutes {} is too short to measure {}, {minutes} would do: {reason}",
        args.minutes,
        counted(engines as u64, "engine", "engines"),
    );
    let or_in_memory = if exceeds_memory {
        ", or measure as if the data fit into memory, with --memory as large as --data"
    } else {
        ""
    };
    let refusal = || {
        CliError::usage(&text)
            .hint(format!("use --minutes {minutes}, or name fewer engines with --engines{or_in_memory}"))
    };
    let mut interview = Interview::new();
    if !interview.can_ask || args.dry_run {
        return Err(refusal());
    }
    eprintln!("{text}.");
    let is_accepted = interview.ask(Question {
        flag: "--minutes",
        text: "Measure that long?",
        default: "no".into(),
        given: &None,
        is_required: true,
        parse: &yes_or_no,
    })?;
    if !is_accepted {
        return Err(refusal());
    }
    let size = needs.size(minutes, engines, &cap).map_err(|_| refusal())?;
    Ok((minutes, size))
}

/// Whether the memory of a trial can be limited.
fn cap() -> Cap {
    match MemoryCap::create(size::MEMORY_LIMIT_MIN) {
        Ok(_) => Cap::Possible,
        Err(error) => Cap::Impossible(error.to_string()),
    }
}

/// A line for each engine that did not load the data within its share of the time.
fn too_slow(records: &[Record]) -> Vec<String> {
    let of = |record: &Record| match &record.outcome {
        Outcome::Failed { cause: Cause::TooSlow, text } => Some(format!("{}: {text}", record.trial.engine)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// Of the names of engines that fit: those to measure, and the others. If many fit, only the preferred ones are measured.
fn measured_of(args: &ChooseArgs, fit: Vec<String>, preferred: &[String]) -> (Vec<String>, Vec<String>) {
    if fit.len() <= MEASURED || !args.engines.is_empty() {
        return (fit, Vec::new());
    }
    let (known, others): (Vec<String>, Vec<String>) =
        fit.into_iter().partition(|name| preferred.contains(name));
    // A single engine would be compared with none.
    if known.len() < 2 { ([known, others].concat(), Vec::new()) } else { (known, others) }
}

/// Runs the workload on the engines, as `kvdyno run` does. Returns its exit code and the folder of the results.
fn measured(
    args: &ChooseArgs,
    plugins: &[PathBuf],
    file: &Path,
    names: &[String],
    options: &[(String, String)],
    choice: Choice,
) -> Result<(u8, PathBuf), CliError> {
    let names = names.join(",");
    let settings: Vec<String> = options.iter().map(|(name, option)| format!("{name}.{option}")).collect();
    // Names that begin with a dash are no flags.
    let file = if file.as_os_str().as_encoded_bytes().starts_with(b"-") {
        Path::new(".").join(file)
    } else {
        file.to_path_buf()
    };
    let mut results = OsString::from("--results=");
    results.push(&args.results);
    let mut words: Vec<&OsStr> = vec![
        "kvdyno".as_ref(),
        "run".as_ref(),
        file.as_os_str(),
        "--engines".as_ref(),
        names.as_ref(),
        results.as_os_str(),
        // The figures of each engine are told, and their time is planned.
        "--fixed".as_ref(),
    ];
    words.extend(settings.iter().flat_map(|setting| [OsStr::new("--option"), OsStr::new(setting)]));
    let (run, command) = super::run_command(&words).expect("these are words of `kvdyno run`");
    super::run::measured(&run, plugins, command, Some(choice))
}

#[cfg(test)]
mod tests;
