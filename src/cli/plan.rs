//! `kvdyno plan`: freezes the trials of a run, so that several machines measure them in slices.

use super::error::CliError;
use super::number::number;
use super::plugins::{registry, warn};
use super::redis_benchmark;
use super::request::{LimitArgs, Request, SubjectArgs};
use super::run::level_hint;
use super::workloads::ChangeArgs;
use kvdyno_core::engine::Registry;
use kvdyno_core::results::campaign::{Block, blocks};
use kvdyno_core::results::{Campaign, Run, Trial, TrialEstimate, now_rfc3339};
use kvdyno_core::runner::{self, disk_estimate_bytes, time_estimate_seconds};
use kvdyno_measure::text::{Align, Table, bytes_text, counted, listed, time_text};
use kvdyno_report::CommandLine;
use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The reference engine if none is named: it needs no disk, is always available, and depends on processor and memory.
const REFERENCE: &str = "memory-btree";

/// The numbers of slices for which the time is printed.
const SLICES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Plan a run that several machines measure in slices.
#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Write the plan to the new file FILE. Without it, the plan is only shown.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// List all trials.
    #[arg(long)]
    list: bool,
    /// Plan for machines with N CPUs: `cpus` in a workload means this number, and smaller machines are refused [default: the CPUs
    /// of this machine].
    #[arg(long, value_name = "N", value_parser = number(1..=u32::MAX))]
    machine_cpus: Option<u32>,
    // The groups with a heading come last because a heading applies to all following flags.
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Plans, writes the plan and prints it.
pub(super) fn run(args: PlanArgs, plugins: &[PathBuf], mut command: Vec<String>) -> Result<u8, CliError> {
    let none = ["kvdyno".to_string(), "run".to_string()];
    let mut run = super::run_args(&none).expect("these are words of `kvdyno run`");
    (run.subject, run.changes, run.limits) = (args.subject, args.changes, args.limits);
    let registry = registry(plugins, &run.subject.engines)?;
    warn(&registry, &run.subject.engines);
    if run.subject.reference.is_none() {
        run.subject.reference = Some(REFERENCE.to_string());
        command.extend(["--reference".to_string(), REFERENCE.to_string()]);
    }
    let cpus = args.machine_cpus.or(run.limits.placement().cpu_count()).unwrap_or_else(own_cpus);
    let Request { name, entries, settings, absent, notes } = Request::new(&run, &registry, Some(cpus))?;
    if let Some(entry) = entries.iter().find(|entry| redis_benchmark::is_of_servers(&entry.workload)) {
        return Err(CliError::usage(format!(
            "workload {} also runs redis-benchmark, which a plan cannot include",
            entry.workload.name
        ))
        .hint("run it on one machine with `kvdyno run`"));
    }
    let (mut plan, warnings) = runner::plan(name, command, entries, &settings)?;
    let named = run.subject.reference.as_ref();
    plan.reference = named.filter(|name| plan.trials.iter().any(|trial| trial.engine == **name)).cloned();
    let keeps_nothing = |trial: &Trial| {
        registry.engine(&trial.engine).is_ok_and(|engine| engine.keeps_nothing())
            || runner::has_url(&trial.options)
    };
    let estimate = |trial: &Trial| TrialEstimate {
        trial: trial.id.clone(),
        seconds: time_estimate_seconds(&trial.workload),
        disk_bytes: if keeps_nothing(trial) { 0 } else { disk_estimate_bytes(&trial.workload) },
    };
    let trial_estimates = plan.trials.iter().map(estimate).collect();
    let planned_at = now_rfc3339();
    let tool_version = env!("CARGO_PKG_VERSION").to_string();
    let campaign = Campaign { tool_version, planned_at, plan, cpus, absent, warnings, trial_estimates };
    notes.iter().for_each(|note| eprintln!("{note}"));
    campaign.warnings.iter().for_each(|warning| eprintln!("warning: {} {}", warning.text, warning.advice));
    show(&campaign, args.list);
    let Some(file) = &args.output else { return Ok(0) };
    write(file, &campaign.text()?)?;
    println!("plan: {}", file.display());
    println!("next: {}", next(file, plugins));
    Ok(0)
}

/// The command that measures a slice of the plan.
pub(super) fn next(file: &Path, plugins: &[PathBuf]) -> CommandLine {
    let plugins = plugins.iter().map(|folder| folder.display().to_string());
    CommandLine::of("run --plan")
        .with_path(file)
        .with_flags("--plugins", plugins)
        .with("--shard")
        .with("auto")
}

fn own_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// Writes a new file. A plan is never replaced, because slices of it may have been measured.
fn write(file: &Path, text: &str) -> Result<(), CliError> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    let written = opened.and_then(|mut opened| {
        opened.write_all(text.as_bytes())?;
        opened.sync_all()
    });
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(CliError::usage(format!("{} already exists", file.display()))
                .hint("slices of it may have been measured; write the new plan to another file"))
        }
        written => written.map_err(CliError::cannot("write", file)),
    }
}

/// Prints the workloads and the times of slices, or all trials.
fn show(campaign: &Campaign, all_trials: bool) {
    let plan = &campaign.plan;
    let blocks = blocks(&plan.trials);
    let disk = match plan.estimate.map_or(0, |estimate| estimate.disk_bytes) {
        0 => String::new(),
        bytes => format!(" and {} of free disk space", bytes_text(bytes)),
    };
    println!(
        "{} in {}, {}; for machines with {}{disk}",
        counted(plan.trials.len() as u64, "trial", "trials"),
        counted(blocks.len() as u64, "block", "blocks"),
        duration(seconds(campaign, &blocks)),
        counted(campaign.cpus.into(), "CPU", "CPUs")
    );
    match &plan.reference {
        Some(reference) => println!("reference in each block: {reference}\n"),
        None => println!("reference in each block: only engines that store nothing\n"),
    }
    print!("{}", if all_trials { trials(campaign, &blocks) } else { workloads(campaign, &blocks) }.text());
    println!();
    print!("{}", slices(campaign, &blocks).text());
    println!("(times are estimates of the phases alone: opening, checking and closing come on top)");
}

/// Prints what a run would do: its trials, their time and space, and what would be refused.
pub(super) fn outline(run: &Run, registry: &Registry) {
    let trials = &run.plan.trials;
    let left = [("workload", Align::Left), ("engines", Align::Right), ("trials", Align::Right)];
    let right = [("time", Align::Right), ("disk of a trial", Align::Right)];
    let mut table = Table::with_titles(&[&left[..], &right].concat());
    let mut names: Vec<&str> = trials.iter().map(|trial| trial.workload.name.as_str()).collect();
    names.dedup();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    let time = |own: &[&Trial]| own.iter().map(|trial| time_estimate_seconds(&trial.workload)).sum::<f64>();
    for name in names {
        let own: Vec<&Trial> = trials.iter().filter(|trial| trial.workload.name == name).collect();
        let engines: HashSet<_> = own.iter().map(|trial| (&trial.engine, &trial.options)).collect();
        let disk = own.iter().map(|trial| disk_estimate_bytes(&trial.workload)).max().unwrap_or(0);
        let counts = [engines.len(), own.len()].map(|count| count.to_string());
        table.push(
            [vec![name.to_string()], counts.to_vec(), vec![duration(time(&own)), bytes_text(disk)]].concat(),
        );
    }
    print!("{}", table.text());
    let all: Vec<&Trial> = trials.iter().collect();
    println!(
        "{}, about {} in their phases; opening, checking and closing come on top",
        counted(trials.len() as u64, "trial", "trials"),
        duration(time(&all))
    );
    if let Some(race) = &run.plan.race {
        let looks: Vec<String> =
            race.looks_after[..race.looks_after.len() - 1].iter().map(u32::to_string).collect();
        println!(
            "after {} {}, engines leave the phases that they can no longer win to the others (--fixed: they do not)",
            if looks.len() == 1 { "run" } else { "runs" },
            listed(&looks, "and")
        );
    }
    let mut told = HashSet::new();
    for trial in trials.iter().filter(|trial| told.insert((&trial.engine, &trial.workload.name))) {
        let refused =
            registry.engine(&trial.engine).ok().and_then(|engine| level_hint(&engine, &trial.workload));
        if let Some(hint) = refused {
            println!(
                "refused: {} with {}: its durability level is too weak; {hint}",
                trial.engine, trial.workload.name
            );
        }
    }
    run.warnings.iter().for_each(|warning| eprintln!("warning: {} {}", warning.text, warning.advice));
    println!("dry run: nothing was run");
}

/// The time in the phases of some blocks, seconds.
fn seconds(campaign: &Campaign, blocks: &[Block]) -> f64 {
    let of = |at: &usize| campaign.trial_estimates.get(*at).map_or(0.0, |estimate| estimate.seconds);
    blocks.iter().flat_map(|block| &block.trials).map(of).sum()
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60) {
        (0, 0) => time_text(seconds * 1e9),
        (0, minutes) => format!("{minutes} min {} s", whole % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// A row for each workload.
fn workloads(campaign: &Campaign, blocks: &[Block]) -> Table {
    let titles = ["workload", "engines", "blocks", "trials", "time of a block", "time", "disk of a trial"];
    let mut table = Table::with_titles(
        &titles.map(|title| (title, if title == "workload" { Align::Left } else { Align::Right })),
    );
    let mut names: Vec<&str> = Vec::new();
    let mut of: HashMap<&str, Vec<Block>> = HashMap::new();
    for block in blocks {
        let Some(trial) = block.trials.first().and_then(|at| campaign.plan.trials.get(*at)) else { continue };
        if !names.contains(&trial.workload.name.as_str()) {
            names.push(&trial.workload.name);
        }
        of.entry(&trial.workload.name).or_default().push(block.clone());
    }
    for name in names {
        let own = &of[name];
        let trials: usize = own.iter().map(|block| block.trials.len()).sum();
        let first = own.first().and_then(|block| block.trials.first());
        let disk =
            first.and_then(|at| campaign.trial_estimates.get(*at)).map_or(0, |estimate| estimate.disk_bytes);
        let seconds = seconds(campaign, own);
        table.push(vec![
            name.to_string(),
            (trials / own.len()).to_string(),
            own.len().to_string(),
            trials.to_string(),
            duration(seconds / own.len() as f64),
            duration(seconds),
            bytes_text(disk),
        ]);
    }
    table
}

/// A row for each trial.
fn trials(campaign: &Campaign, blocks: &[Block]) -> Table {
    let mut table = Table::with_titles(&[
        ("block", Align::Right),
        ("trial", Align::Left),
        ("seed", Align::Right),
        ("time", Align::Right),
        ("disk", Align::Right),
    ]);
    for (number, block) in (1..).zip(blocks) {
        for at in &block.trials {
            let (Some(trial), Some(estimate)) =
                (campaign.plan.trials.get(*at), campaign.trial_estimates.get(*at))
            else {
                continue;
            };
            table.push(vec![
                number.to_string(),
                trial.id.clone(),
                trial.ops_seed().to_string(),
                duration(estimate.seconds),
                bytes_text(estimate.disk_bytes),
            ]);
        }
    }
    table
}

/// A row for each number of slices.
fn slices(campaign: &Campaign, blocks: &[Block]) -> Table {
    let mut table = Table::with_titles(&[
        ("slices", Align::Right),
        ("blocks of a slice", Align::Right),
        ("time of the longest", Align::Right),
    ]);
    for of in SLICES.into_iter().filter(|of| *of as usize <= blocks.len()) {
        let all: Vec<Vec<Block>> = (1..=of)
            .map(|index| kvdyno_core::results::Shard { index, of }.blocks(&campaign.plan.trials))
            .collect();
        let counts = || all.iter().map(Vec::len);
        let longest = all.iter().map(|own| seconds(campaign, own)).fold(0.0, f64::max);
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let text = if least == most { most.to_string() } else { format!("{least} to {most}") };
        table.push(vec![of.to_string(), text, duration(longest)]);
    }
    table
}
