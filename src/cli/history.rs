//! `kvdyno history`: runs of many commits, and where a figure changed.

use super::compare::parse_figures;
use super::error::CliError;
use super::folders::check_creatable;
use super::number::share;
use super::report::open;
use kvdyno_change::series::{Change, Options, SeriesError, changes};
use kvdyno_core::results::comparison::Conditions;
use kvdyno_core::results::figures::compared;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::utc_rfc3339;
use kvdyno_measure::read_limited;
use kvdyno_measure::shortage::cure;
use kvdyno_measure::text::{counted, plain_text};
use kvdyno_report::{
    CommandLine, History, HistoryEntry, HistoryFile, Shift, history_csv, history_page, history_text,
    otava_config, otava_csv, repeated,
};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file of a history, in its folder.
const FILE: &str = "history.jsonl";
/// Its maximum size, bytes; a line has some ten kilobytes.
const LIMIT_BYTES: u64 = 1 << 30;
/// The maximum length of a commit's name and of a note, characters.
const LONGEST: usize = 200;
/// How many differences and cells are told.
const TOLD: usize = 3;

/// Keep the figures of many commits, and find the commits that changed them.
///
/// A history is a folder with a file to which each run adds a line. Changes are found by change points, as Apache Otava finds them; a
/// single spike is no change (see docs/changes.md).
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(super) struct HistoryArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Add a finished run of a commit.
    Add(AddArgs),
    /// Show what changed, and the commits that changed it.
    Show(Box<ShowArgs>),
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// The folder of the history; the first run creates it.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Folder of a run, or a folder of runs, of which the newest is used.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// The commit that was measured: its hash, or any other name. Several runs of a commit count together.
    #[arg(long, value_name = "ID", value_parser = words)]
    commit: String,
    /// The time of the commit, such as 2026-11-20T10:15:29+01:00 [default: when the run started]. It is only shown: the order is that
    /// of adding.
    #[arg(long, value_name = "RFC3339", value_parser = time)]
    time: Option<String>,
    /// A remark, shown beside the commit.
    #[arg(long, value_name = "TEXT", value_parser = words)]
    note: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The folder of the history.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Show only these figures: rate, p50, p99, p99.9, cpu, memory, disk, w-amp.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    figures: Vec<String>,
    /// List all series, not only the changes. CSV and the page have all of them.
    #[arg(long)]
    full: bool,
    /// Ignore changes of at most this.
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = part)]
    min_change: f64,
    /// How changes are found: kvdyno, or otava, which has single spikes as changes.
    #[arg(long, default_value = "kvdyno", value_name = "RULES", value_parser = ["kvdyno", "otava"])]
    rules: String,
    /// Show only the machine with this number, if the runs are from several.
    #[arg(long, value_name = "N")]
    machine: Option<usize>,
    /// Take runs of different machines, and of workloads with different settings, as one series.
    #[arg(long)]
    join: bool,
    /// Output format: text, csv (a row for each change), otava (a row for each commit), or otava-yaml (its configuration).
    #[arg(long, default_value = "text", value_name = "FORMAT", value_parser = ["text", "csv", "otava", "otava-yaml"])]
    format: String,
    /// Write a page with a chart of each series to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn words(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    match text.trim().is_empty() || length > LONGEST {
        true => Err(format!("expected 1 to {LONGEST} characters")),
        false => Ok(text.to_string()),
    }
}

fn time(text: &str) -> Result<String, String> {
    let example =
        "expected a time with its offset, as git prints it with --format=%cI: 2026-11-20T10:15:29+01:00";
    utc_rfc3339(text).ok_or_else(|| example.to_string())
}

/// `2%` or `0.02`.
fn part(text: &str) -> Result<f64, String> {
    share(text)
        .filter(|part| (0.0..=10.0).contains(part))
        .ok_or_else(|| "expected 0% to 1000%, such as 2%".to_string())
}

/// Adds a run, or shows the history.
pub(super) fn run(args: &HistoryArgs) -> Result<u8, CliError> {
    match &args.task {
        Task::Add(args) => add(args),
        Task::Show(args) => show(args),
    }
}

fn add(args: &AddArgs) -> Result<u8, CliError> {
    check_creatable("history add", &args.folder)?;
    let results = open(&args.run)?;
    results.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let run = results.run();
    let summary = Summary::new(run, results.finished()?);
    if summary.pending > 0 {
        let resume = CommandLine::of("run").with(format!("--resume={}", results.path().display()));
        let trials = counted(summary.pending.into(), "trial has", "trials have");
        return Err(CliError::usage(format!("the run {} is not finished: {trials} no record", run.id))
            .hint(format!("finish it: {resume}")));
    }
    let odd = HistoryEntry::odd_cells(&summary);
    let time =
        args.time.clone().or_else(|| utc_rfc3339(&run.started_at)).unwrap_or_else(|| run.started_at.clone());
    let entry = HistoryEntry::of(run, &summary, args.commit.clone(), time, args.note.clone());
    if entry.cells.is_empty() {
        let first = odd.first().map_or_else(String::new, |odd| format!(": {}", plain_text(&odd.text)));
        return Err(CliError::usage(format!("no engine of the run {} has figures{first}", run.id))
            .hint("measure the commit again; `kvdyno report` shows what failed"));
    }
    fs::create_dir_all(&args.folder).map_err(CliError::cannot("create", &args.folder))?;
    let path = args.folder.join(FILE);
    let mut file = OpenOptions::new()
        .append(true)
        .read(true)
        .create(true)
        .open(&path)
        .map_err(CliError::cannot("open", &path))?;
    // Held until the file is closed, so that lines of two processes do not mix. Some file systems have no locks.
    match file.lock() {
        Err(error) if error.kind() != ErrorKind::Unsupported => {
            return Err(CliError::cannot("lock", &path)(error));
        }
        _ => {}
    }
    let known = read(&path)?;
    check_new(&known, &entry)?;
    let added = append(&mut file, &known, &entry).and_then(|()| sync_folder(&args.folder));
    added.map_err(|error| {
        let hint =
            cure(&error).unwrap_or("check the free space and the permissions; the lines before are intact");
        CliError::cannot("write", &path)(error).hint(hint)
    })?;
    tell(&known, &entry, &odd.iter().map(|odd| odd.text.as_str()).collect::<Vec<_>>());
    let mut all = known.entries;
    all.push(entry);
    let history = History::new(&all, &compared(), false);
    println!(
        "{}: {} of {} added; {} in {}",
        plain_text(&args.commit),
        counted(all.last().map_or(0, |entry| entry.cells.len() as u64), "cell", "cells"),
        plain_text(&run.id),
        counted(history.commit_count() as u64, "commit", "commits"),
        path.display()
    );
    Ok(0)
}

/// Reads the file and tells what is wrong with it.
fn read(path: &Path) -> Result<HistoryFile, CliError> {
    let bytes = read_limited(path, LIMIT_BYTES).map_err(CliError::cannot("read", path))?;
    let file = HistoryFile::read(&bytes);
    for warning in &file.warnings {
        eprintln!("warning: {}: {}", path.display(), plain_text(warning));
    }
    Ok(file)
}

/// Refuses a run that the history has.
fn check_new(known: &HistoryFile, entry: &HistoryEntry) -> Result<(), CliError> {
    let Some(seen) = known.entries.iter().find(|seen| seen.run == entry.run) else { return Ok(()) };
    Err(CliError::usage(format!(
        "the history has the run {} already, of commit {}",
        seen.run,
        plain_text(&seen.commit)
    ))
    .hint("a run belongs to one commit and counts once; name another run"))
}

/// Adds the line; it is on disk when this returns. A torn end is removed first: it was never added.
fn append(file: &mut File, known: &HistoryFile, entry: &HistoryEntry) -> io::Result<()> {
    if file.metadata()?.len() != known.whole_bytes {
        file.set_len(known.whole_bytes)?;
    }
    let before = if known.is_open { "\n" } else { "" };
    file.write_all(format!("{before}{}", entry.line()).as_bytes())?;
    file.sync_all()
}

/// Makes the name of a new file durable. Some file systems cannot sync a folder.
fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder).and_then(|opened| opened.sync_all()) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Tells which cells are missing, and why the run begins series of its own.
fn tell(known: &HistoryFile, entry: &HistoryEntry, odd: &[&str]) {
    let few = |lines: &[String], what: &str| {
        lines.iter().take(TOLD).for_each(|line| eprintln!("note: {}", plain_text(line)));
        if lines.len() > TOLD {
            eprintln!("note: {} more {what}", lines.len() - TOLD);
        }
    };
    few(&odd.iter().map(ToString::to_string).collect::<Vec<_>>(), "cells without all figures");
    let all = |differences: fn(&Conditions, &Conditions) -> Vec<String>| -> Vec<String> {
        let others: Vec<Vec<String>> =
            known.entries.iter().map(|seen| differences(&seen.conditions, &entry.conditions)).collect();
        match others.iter().any(Vec::is_empty) {
            true => Vec::new(),
            false => others.into_iter().next_back().unwrap_or_default(),
        }
    };
    let machines = all(Conditions::of_machines);
    if !machines.is_empty() {
        eprintln!(
            "note: no other run of the history is of this machine, so its figures are series of their own:"
        );
        few(&machines, "differences");
    }
    let settings = all(Conditions::of_settings);
    if !settings.is_empty() {
        eprintln!(
            "note: no other run of the history has these settings, so its figures are series of their own:"
        );
        few(&settings, "differences");
    }
}

fn show(args: &ShowArgs) -> Result<u8, CliError> {
    let figures = parse_figures(&args.figures, "kvdyno history show --help")?;
    let path = args.folder.join(FILE);
    if !path.is_file() {
        let add = CommandLine::of("history add").with_path(&args.folder);
        return Err(CliError::usage(format!("{} has no {FILE}: it is no history", args.folder.display()))
            .hint(format!("`{add} RUN --commit ID` adds the first run")));
    }
    let file = read(&path)?;
    if file.entries.is_empty() {
        return Err(CliError::usage(format!("{} has no line that can be read", path.display()))
            .hint("restore the file, or add the runs again"));
    }
    let mut history = History::new(&file.entries, &figures, args.join);
    if let Some(number) = args.machine {
        if number == 0 || number > history.machine_count() {
            let machines = counted(history.machine_count() as u64, "machine", "machines");
            return Err(CliError::usage(format!("--machine {number}: the history has {machines}")));
        }
        history.keep_machine(number);
    }
    let options = options(args);
    history.find(|values| found(values, &options));
    if let Some(file) = &args.html {
        fs::write(file, history_page(&history)).map_err(CliError::cannot("write", file))?;
        eprintln!("page: {}", file.display());
    }
    match args.format.as_str() {
        "csv" => print!("{}", history_csv(&history)),
        "otava" => {
            check_one_machine(args, &history)?;
            let gaps = repeated(&history);
            if gaps > 0 {
                let series = counted(gaps as u64, "series lacks", "series lack");
                eprintln!("note: {series} some commits; their cells repeat the value before, as Otava does");
            }
            print!("{}", otava_csv(&history));
        }
        "otava-yaml" => {
            check_one_machine(args, &history)?;
            print!("{}", otava_config(&history));
        }
        _ => print!("{}", history_text(&history, args.full)),
    }
    Ok(0)
}

/// The history in a folder with its changes, for a site; none if there is none that can be read.
pub(super) fn of_folder(folder: &Path) -> Result<Option<History>, CliError> {
    let path = folder.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let file = read(&path)?;
    let mut history = History::new(&file.entries, &compared(), false);
    history.find(|values| found(values, &Options::default()));
    Ok((!file.entries.is_empty()).then_some(history))
}

/// Refuses several machines in a file for Otava, whose rows are of one.
fn check_one_machine(args: &ShowArgs, history: &History) -> Result<(), CliError> {
    if history.machine_count() < 2 || args.machine.is_some() {
        return Ok(());
    }
    let machines = counted(history.machine_count() as u64, "machine", "machines");
    Err(CliError::usage(format!("the history has {machines}, and a file for Otava has one"))
        .hint("choose one with --machine N, or take them as one with --join"))
}

fn options(args: &ShowArgs) -> Options {
    let options = if args.rules == "otava" { Options::otava() } else { Options::default() };
    Options { magnitude: args.min_change, ..options }
}

/// The changes of a series.
fn found(values: &[f64], options: &Options) -> Result<Vec<Shift>, String> {
    let shift = |change: &Change| Shift {
        index: change.index,
        before: change.before,
        after: change.after,
        p: change.p,
    };
    let found = changes(values, options).map_err(|error| match error {
        SeriesError::TooShort { wanted, actual } => {
            let commits = counted(actual as u64, "commit", "commits");
            format!("they have {commits}, and change points need at least {wanted}")
        }
        other => other.to_string(),
    })?;
    Ok(found.iter().map(shift).collect())
}

#[cfg(test)]
mod tests;
