//! `kvdyno run`: plans a new run or resumes one, measures it and prints the report.

use super::accounting;
use super::args::split_options;
use super::error::{CliError, FAILED, WRONG};
use super::folders;
use super::kept;
use super::layouts;
use super::load_generators::{LoadGenerators, Started};
use super::plan;
use super::plugins::{executable, registry, warn};
use super::race;
use super::redis_benchmark;
use super::request::{Request, RunArgs};
use super::sender;
use super::slice::{self, Begun};
use crate::live::{Live, Show};
use kvdyno_core::engine::abi::KV_POWER;
use kvdyno_core::engine::{Engine, Registry, level_name};
use kvdyno_core::results::store::{RunFolder, newest};
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{
    Cause, Choice, Estimate, Outcome, Plan, Proof, Record, Run, SCHEMA, StepKind, now_rfc3339, random_suffix,
    run_id,
};
use kvdyno_core::runner::{self, Ending, Runner, level_number, memory_estimate_bytes};
use kvdyno_core::workload::{Durability, Phase, Workload};
use kvdyno_measure::text::{bytes_text, count_text, listed};
use kvdyno_measure::{Clock, Conditions, Machine, MemoryCap, Placement, cycles, disk, signals, warnings_of};
use kvdyno_prove::proven::{Proven, proven_here};
use kvdyno_report::{CommandLine, Layout};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the command, which `command` repeats.
pub(super) fn run(args: &RunArgs, plugins: &[PathBuf], command: Vec<String>) -> Result<u8, CliError> {
    measured(args, plugins, command, None).map(|(code, _)| code)
}

/// Runs the command and returns its exit code and the folder of its results. Everything that can be refused is refused before
/// the first trial. `choice` becomes part of a new run.
pub(super) fn measured(
    args: &RunArgs,
    plugins: &[PathBuf],
    command: Vec<String>,
    choice: Option<Choice>,
) -> Result<(u8, PathBuf), CliError> {
    args.check()?;
    let load_generators = args.load_generators.requested()?;
    if load_generators.is_some()
        && (args.resume.is_some() || args.plan.is_some() || args.kept.outlives_trials())
    {
        let text =
            "--resume, --plan, --keep and --reuse are for one load generator: they use files of this machine";
        return Err(CliError::usage(text).hint("omit them, or omit --load-generators and --load-generator"));
    }
    // Progress needs no reader, and the results are also saved in files.
    signals::outlive_the_reader();
    let mut environment = args.environment(plugins)?;
    let registry = registry(plugins, &args.subject.engines)?;
    warn(&registry, &args.subject.engines);
    // The processes that are started here end before this one does.
    let mut started = Started::default();
    let mut company = None;
    let (results, (layouts, reuse), notes) = match (&args.plan, &args.resume) {
        (Some(plan), _) => match slice::begin(args, &registry, plan)? {
            Begun::Folder(results, notes) => {
                let checked = check(args, &registry, results.run())?;
                (*results, checked, notes)
            }
            Begun::Nothing(text) => {
                eprintln!("{text}");
                return Ok((0, args.results.clone()));
            }
        },
        (None, Some(folder)) => {
            let results = resumed(args, folder.as_deref())?;
            check_same(&results, &command, args)?;
            check_resumed(&results, &registry)?;
            let checked = check(args, &registry, results.run())?;
            (results, checked, Vec::new())
        }
        (None, None) => {
            let (mut run, notes) = planned(args, &registry, command, load_generators.as_ref())?;
            run.choice = choice;
            let checked = check(args, &registry, &run)?;
            if args.dry_run {
                notes.iter().for_each(|note| eprintln!("{note}"));
                plan::outline(&run, &registry);
                return Ok((0, args.results.clone()));
            }
            let mut folder = args.results.clone();
            if let Some(load_generators) = &load_generators {
                let (met, others) = load_generators.meet(&run.plan)?;
                (company, started) = (Some(met), others);
                environment.extend(started.environment());
                folder = load_generators.results(&args.results);
            }
            // Runs that start in the same second have one suffix in 65,536 in common.
            let others = std::iter::repeat_with(random_suffix).take(100);
            (RunFolder::create_distinct(&folder, run, others)?, checked, notes)
        }
    };
    let runner = Runner {
        executable: executable()?,
        plugins: registry.plugin_files(),
        keep: args.kept.keep.clone(),
        reuse,
        stall: Duration::from_secs(args.stall_seconds),
        environment,
        audits: Vec::new(),
        company,
    };
    let folder = results.path().to_path_buf();
    let code = match &load_generators {
        Some(load_generators) if load_generators.is_guest() => follow(args, &runner, results)?,
        _ => execute(args, &registry, &runner, results, &layouts, &notes, plugins)?,
    };
    // The hub ends first, and the others with it.
    drop((runner, started));
    Ok((code, folder))
}

/// Opens the folder of the run to resume: the given one, or the newest.
fn resumed(args: &RunArgs, folder: Option<&Path>) -> Result<RunFolder, CliError> {
    if let Some(word) = folders::folder_among(&args.subject.workloads).filter(|_| folder.is_none()) {
        return Err(folders::without_equals(word));
    }
    let path = match folder {
        Some(path) => {
            folders::check_run(path)?;
            path.to_path_buf()
        }
        None => {
            let found = if args.results.is_dir() { newest(&args.results)? } else { None };
            found.ok_or_else(|| {
                CliError::usage(format!("no run to resume in {}", args.results.display()))
                    .hint("name the folder of the run: --resume=DIR")
            })?
        }
    };
    let results = RunFolder::open(&path)?;
    if let Some(part) = &results.run().campaign {
        let text = format!(
            "{} belongs to the plan {} and cannot be resumed on its own",
            path.display(),
            part.campaign
        );
        return Err(CliError::usage(text).hint(
            "repeat `kvdyno run --plan FILE --shard I/N`, which measures the trials without a record",
        ));
    }
    drop(results);
    Ok(RunFolder::resume(&path)?)
}

/// Refuses a command with --resume that differs from the command of the run: the run has its plan already. What the command
/// does not repeat is no difference.
fn check_same(results: &RunFolder, command: &[String], args: &RunArgs) -> Result<(), CliError> {
    let Plan { command: recorded, race, .. } = &results.run().plan;
    let of = |words: &[String]| super::run_args(words).map(|args| args.parts());
    let (Some(given), Some(planned), Some(none)) =
        (of(command), of(recorded), of(&["kvdyno".to_string(), "run".to_string()]))
    else {
        return Ok(());
    };
    let all = given.iter().zip(&planned).zip(&none);
    let differ = all.filter(|((given, planned), none)| given != planned && given != none);
    let mut names: Vec<&str> = differ.map(|((given, _), _)| given.0).collect();
    if (args.race && race.is_none()) || (args.fixed && race.is_some()) {
        names.push("rules (--race, --fixed)");
    }
    if names.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "--resume continues {}, a run of `{}`, which has other {}",
        results.path().display(),
        recorded.join(" "),
        listed(&names, "and")
    ))
    .hint("omit the flags that differ, or omit --resume to start a new run"))
}

/// Refuses to resume a run whose plan cannot be measured, or that has trials of engines that are not available: each of them
/// would be recorded as a failure of its engine.
pub(super) fn check_resumed(results: &RunFolder, registry: &Registry) -> Result<(), CliError> {
    let plan = &results.run().plan;
    let path = results.path().display();
    if plan.has_several_load_generators() {
        return Err(CliError::usage(format!("cannot resume {path}: it is a run of several load generators"))
            .hint("start all of them again; `kvdyno report` shows what the run has measured"));
    }
    runner::check_plan(plan).map_err(|error| {
        CliError::failed(format!("cannot resume {path}: {error}"))
            .hint("restore its run.json as it was, or start a new run")
    })?;
    let left = plan.trials.iter().filter(|trial| !results.is_done(&trial.id));
    let missing: BTreeSet<&str> =
        left.map(|trial| &*trial.engine).filter(|name| registry.engine(name).is_err()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = Vec::from_iter(missing).join(", ");
    Err(CliError::absent(format!("cannot resume {path}: some of its engines are not available: {names}"))
        .hint("repeat the --plugins of the run; `kvdyno engines` shows which engines are available"))
}

/// Plans a new run and adds this machine to the plan. Also returns lines for the user about engines that it does not include.
fn planned(
    args: &RunArgs,
    registry: &Registry,
    command: Vec<String>,
    load_generators: Option<&LoadGenerators>,
) -> Result<(Run, Vec<String>), CliError> {
    let Request { name, entries, settings, absent, notes } = Request::new(args, registry, None)?;
    let entries = match load_generators {
        Some(load_generators) => load_generators.entries(entries)?,
        None => entries,
    };
    if settings.counts_cycles {
        try_cycles()?;
    }
    let race = race::of_run(args, &entries, load_generators.is_some())?;
    let (plan, shrunk) = runner::plan(name, command, entries, &settings)?;
    let plan = Plan { race, ..plan };
    let mut run = observed_run(args, registry, plan, absent)?;
    run.warnings.extend(shrunk);
    Ok((run, notes))
}

/// Refuses --count-cycles on a machine that does not count them.
pub(super) fn try_cycles() -> Result<(), CliError> {
    cycles::try_out().map_err(|error| {
        CliError::usage(format!(
            "--count-cycles: this machine does not count cycles and instructions: {error}"
        ))
        .hint("omit it; `kvdyno doctor` shows what the machine has (hardware counters)")
    })
}

/// A run of a plan on this machine. Refuses a plan that needs more than the machine has.
pub(super) fn observed_run(
    args: &RunArgs,
    registry: &Registry,
    plan: Plan,
    absent: Vec<(String, String)>,
) -> Result<Run, CliError> {
    if let Some(data) = &args.data {
        folders::check_creatable("--data", data)?;
        runner::check_parent(data).map_err(CliError::usage)?;
    }
    if let Some(keep) = &args.kept.keep {
        folders::check_creatable("--keep", keep)?;
    }
    folders::check_writable("--results", &args.results)?;
    let data = args.data.as_deref().unwrap_or(&args.results);
    let machine = Machine::observe(data);
    let free = if args.ignore_space { None } else { disk::free_bytes(data) };
    check_estimate(&plan, &machine, free, args.changes.has_ratios())?;
    let started_at = now_rfc3339();
    let clock = Clock::calibrate().facts();
    let warnings = warnings_of(&machine, &Conditions::observe(data), Some(&clock));
    let (proofs, unverified) = proofs(&plan, registry);
    Ok(Run {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        id: run_id(&started_at, &plan.name, &parameters(&plan), random_suffix()),
        started_at,
        plan,
        absent,
        proofs,
        unverified,
        machine,
        clock,
        warnings,
        campaign: None,
        choice: None,
    })
}

/// Refuses a plan that needs more memory than the machine has, with any engine, or more disk space than is free.
fn check_estimate(
    plan: &Plan,
    machine: &Machine,
    free: Option<u64>,
    has_ratios: bool,
) -> Result<(), CliError> {
    let Some(Estimate { disk_bytes, memory_bytes, .. }) = plan.estimate else { return Ok(()) };
    if let Some(available) = machine.memory_bytes.filter(|available| memory_bytes > *available) {
        let mut workloads = plan.trials.iter().map(|trial| &*trial.workload);
        let largest = workloads.find(|workload| memory_estimate_bytes(workload) == memory_bytes);
        return Err(CliError::usage(format!(
            "workload {}: the threads of a trial need {} of memory for their keys and values; this machine has {}",
            largest.map_or("", |workload| &workload.name),
            bytes_text(memory_bytes),
            bytes_text(available)
        ))
        .hint(largest.map_or_else(String::new, smaller)));
    }
    check_caps(plan)?;
    let Some(free) = free.filter(|free| *free < disk_bytes) else { return Ok(()) };
    let text = format!(
        "a trial of this plan may need {} of disk space; {} are free",
        bytes_text(disk_bytes),
        bytes_text(free)
    );
    let (error, less) = match has_ratios {
        true => (CliError::usage(format!("--data-to-memory: {text}")), "use smaller ratios or fewer keys"),
        false => (CliError::failed(text), "reduce --keys"),
    };
    Err(error.hint(format!(
        "free some space, name a larger disk with --data DIR, or {less}; --ignore-space starts anyway"
    )))
}

/// What reduces the memory that the threads of a workload need for their keys and values.
fn smaller(workload: &Workload) -> String {
    let most = |of: fn(&Phase) -> u32| workload.phases.iter().map(of).max().unwrap_or(0);
    let ways = [
        ("smaller values (--value-size)", true),
        ("fewer threads (--threads)", most(|phase| phase.threads) > 1),
        ("smaller groups (`join`)", most(|phase| phase.join) > 1),
    ];
    let ways: Vec<&str> = ways.into_iter().filter(|(_, helps)| *helps).map(|(way, _)| way).collect();
    format!("use {}", listed(&ways, "or"))
}

/// Refuses a workload whose cap on memory is smaller than what the harness needs with any engine.
fn check_caps(plan: &Plan) -> Result<(), CliError> {
    let mut last: Option<&Workload> = None;
    for workload in plan.trials.iter().map(|trial| &*trial.workload) {
        if last.replace(workload).is_some_and(|last| std::ptr::eq(last, workload)) {
            continue;
        }
        let (cap, needed) = (workload.memory_bytes, memory_estimate_bytes(workload));
        if let Some(cap) = cap.filter(|cap| *cap < needed) {
            return Err(CliError::usage(format!(
                "workload {}: the threads of a trial need {} of memory for their keys and values, and the cap of a trial is {}",
                workload.name,
                bytes_text(needed),
                bytes_text(cap)
            ))
            .hint(format!("raise the cap (--memory), or {}", smaller(workload))));
        }
    }
    Ok(())
}

/// Number of keys and sizes, for the name of the run's folder. Empty if the workloads differ.
fn parameters(plan: &Plan) -> String {
    let of = |workload: &Workload| {
        let text = format!("{}-{}-{}", count_text(workload.keys), workload.key.size, workload.value.size);
        text.replace([':', ',', '*', '.'], "_")
    };
    let mut all = plan.trials.iter().map(|trial| of(&trial.workload));
    let first = all.next().unwrap_or_default();
    if all.all(|other| other == first) { first } else { String::new() }
}

/// What `kvdyno prove --only rules` has proven about the engines of a plan, and the engines of plug-ins that were never
/// verified.
fn proofs(plan: &Plan, registry: &Registry) -> (Vec<Proof>, Vec<String>) {
    let (mut proofs, mut unverified): (Vec<Proof>, Vec<String>) = (Vec::new(), Vec::new());
    for engine in plan.trials.iter().filter_map(|trial| registry.engine(&trial.engine).ok()) {
        let is_known = |name: &str, proofs: &[Proof]| proofs.iter().any(|proof| proof.engine == name);
        match proven_here(&engine) {
            Some(Proven { name, version, levels, capabilities, traits, .. }) if !is_known(&name, &proofs) => {
                let capabilities = capabilities.into_iter().chain(traits).collect();
                proofs.push(Proof { engine: name, version, levels, capabilities });
            }
            None if engine.plugin_file().is_some()
                && !unverified.iter().any(|name| name == engine.name()) =>
            {
                unverified.push(engine.name().to_string());
            }
            _ => {}
        }
    }
    (proofs, unverified)
}

/// Refuses a new or resumed run that this machine, this user or the folders do not support. Returns its layouts, and the
/// kept database of each trial by the ID of the trial.
fn check(
    args: &RunArgs,
    registry: &Registry,
    run: &Run,
) -> Result<(Vec<&'static Layout>, BTreeMap<String, PathBuf>), CliError> {
    check_limits(&run.plan)?;
    for (flag, folder) in [("--results", Some(&args.results)), ("--data", args.data.as_ref())] {
        folder.map_or(Ok(()), |folder| kept::check_outside(&args.kept, flag, folder))?;
    }
    let layouts = layouts::of_run(&args.layout, &run.plan)?;
    let reuse = args.kept.check(registry, run)?;
    // These are the last checks because they create the folders.
    if args.dry_run {
        return Ok((layouts, reuse));
    }
    sender::check(&run.plan, registry)?;
    for (flag, folder) in [("--data", &args.data), ("--keep", &args.kept.keep)] {
        let Some(folder) = folder else { continue };
        runner::check_place(folder)
            .map_err(|text| CliError::usage(format!("{flag}: {text}")).hint("name a writable folder"))?;
    }
    Ok((layouts, reuse))
}

/// Refuses limits that this machine does not support or that this user may not set.
fn check_limits(plan: &Plan) -> Result<(), CliError> {
    if let Some(bytes) = plan.trials.iter().filter_map(|trial| trial.workload.memory_bytes).max() {
        MemoryCap::create(bytes).map_err(|reason| {
            CliError::failed(format!("memory cannot be capped: {reason}")).hint(
                "run as root, or in your own control group: `systemd-run --user --scope -p Delegate=yes kvdyno ...`; \
                 `kvdyno doctor` shows whether it works",
            )
        })?;
    }
    let mut tried: Vec<&Placement> = Vec::new();
    for placement in plan.trials.iter().map(|trial| &trial.placement) {
        if !tried.contains(&placement) {
            placement.probe().map_err(CliError::usage)?;
            tried.push(placement);
        }
    }
    Ok(())
}

/// Runs a plan, new or resumed: measures the trials that have no record yet, then repeats those of servers with
/// redis-benchmark, and reports the results. Returns the exit code.
fn execute(
    args: &RunArgs,
    registry: &Registry,
    runner: &Runner,
    mut results: RunFolder,
    layouts: &[&Layout],
    notes: &[String],
    plugins: &[PathBuf],
) -> Result<u8, CliError> {
    let run = results.run().clone();
    let (mut live, server) = args.live.begin(&run, &results.finished()?)?;
    notes.iter().for_each(|note| live.message(note));
    results.warnings().iter().for_each(|warning| live.message(&format!("warning: {warning}")));
    for warning in &run.warnings {
        live.message(&format!("warning: {} {}", warning.text, warning.advice));
    }
    let data = args.data.clone().unwrap_or_else(|| results.path().join("data"));
    signals::count_interrupts();
    args.live.take_terminal(&mut live)?;
    let own = runner::DataFolder::leftovers(&data, &run.id);
    for folder in runner::reap(&args.results, args.data.as_deref()).into_iter().chain(own) {
        live.message(&format!("removed {}, left behind by a kvdyno that was killed", folder.display()));
    }
    let audits = accounting::passes(&run, &results, registry, &data, runner.stall)
        .inspect_err(|_| remove_data(args, &data))?;
    let runner = &Runner { audits, ..runner.clone() };
    let ending = race::run(runner, &mut results, &data, &mut live).map_err(|text| {
        remove_data(args, &data);
        let hint = match &runner.company {
            Some(_) => {
                format!(
                    "completed trials are saved in {}; start all load generators again",
                    results.path().display()
                )
            }
            None => {
                let resume = resume_command(args, results.run(), results.path(), plugins);
                format!("completed trials are saved; resume with: {resume}")
            }
        };
        CliError::failed(text).hint(hint)
    })?;
    live.finish(ending == Ending::Complete, &results.path().to_string_lossy());
    drop(server);
    let run = results.run().clone();
    let has_failed = ending == Ending::Complete
        && redis_benchmark::measure(&run, results.path(), &data, runner, args.live.is_silent())?;
    remove_data(args, &data);
    let records = results.finished()?;
    let refusals = refusals(&run, &records, registry);
    let has_failed = has_failed || !refusals.is_empty();
    let code = exit_code(&records, ending).max(u8::from(has_failed) * FAILED);
    let summary = Summary::new(&run, records);
    let mut here = run.clone();
    if run.campaign.is_none() {
        here.plan.command = args.here(plugins, &run.plan.command);
    }
    show(args, &here, &summary, layouts, results.path())?;
    println!("results: {}", results.path().display());
    if run.campaign.is_some() {
        println!("when all slices have ended: {}", merge_command(&args.results));
    }
    args.kept.report(&run.plan);
    if ending == Ending::Interrupted && !args.live.is_json() {
        if run.plan.has_several_load_generators() {
            eprintln!(
                "interrupted; completed trials are saved. To measure the others, start all load generators again"
            );
        } else {
            let resume = resume_command(args, &run, results.path(), plugins);
            eprintln!("interrupted; completed trials are saved. Resume with: {resume}");
        }
    }
    write_page(&results, &summary, &run);
    refusals.iter().for_each(|refusal| eprintln!("error: {refusal}"));
    Ok(code)
}

/// The command that resumes a run.
pub(super) fn resume_command(args: &RunArgs, run: &Run, folder: &Path, plugins: &[PathBuf]) -> CommandLine {
    let text = |path: &PathBuf| path.display().to_string();
    let slice = run.campaign.as_ref().and_then(|part| part.slice.as_ref());
    let command = match (slice, &args.plan) {
        (Some(slice), Some(plan)) => {
            let slice = ["--shard".to_string(), slice.to_string()];
            let command =
                slice.into_iter().fold(CommandLine::of("run --plan").with_path(plan), CommandLine::with);
            command.with("--results").with_path(&args.results)
        }
        _ => CommandLine::of("run").with(format!("--resume={}", folder.display())),
    };
    let kept = &args.kept;
    let command = command
        .with_flags("--plugins", plugins.iter().map(text))
        .with_flags("--data", args.data.iter().map(text))
        .with_flags("--keep", kept.keep.iter().map(text))
        .with_flags("--reuse", kept.reuse.iter().map(text));
    if kept.foreign { command.with("--foreign") } else { command }
}

/// The command that merges all slices of a plan.
pub(super) fn merge_command(results: &Path) -> CommandLine {
    CommandLine::of("merge").with_path(results).with("-o").with("OUT")
}

/// Runs the part of a load generator other than the first, which reports the results.
fn follow(args: &RunArgs, runner: &Runner, mut results: RunFolder) -> Result<u8, CliError> {
    let run = results.run().clone();
    let data = args.data.clone().unwrap_or_else(|| results.path().join("data"));
    signals::count_interrupts();
    let mut live = Live::new(Show::Nothing, &run, &[]);
    let ending = runner::run(&run.plan, runner, &mut results, &data, &mut live);
    remove_data(args, &data);
    let ending =
        ending.map_err(|text| CliError::failed(text).hint("load generator 0 reports what was measured"))?;
    if let Some(company) = &runner.company {
        company.await_end();
    }
    Ok(exit_code(&results.finished()?, ending))
}

/// Removes the folder for databases if it is empty and in the run's own folder.
fn remove_data(args: &RunArgs, data: &Path) {
    if args.data.is_none() {
        let _ = std::fs::remove_dir(data);
    }
}

/// Prints the results at the end of a run: all tables, the table of servers, the layouts, or the overview.
fn show(
    args: &RunArgs,
    run: &Run,
    summary: &Summary,
    layouts: &[&Layout],
    folder: &Path,
) -> Result<(), CliError> {
    let table = redis_benchmark::table(run, summary, folder);
    if let Some(table) = &table {
        table.keep(folder)?;
    }
    if args.full {
        print!("{}\n", (kvdyno_report::FORMATS[0].render)(summary, run));
    }
    match table {
        Some(table) if args.full => print!("{}\n", table.text),
        Some(table) => {
            print!("{}", table.text);
            layouts::print_rest(summary, folder);
        }
        None if args.full => {}
        None => layouts::print_ending(layouts, summary, run, folder),
    }
    Ok(())
}

/// Writes the HTML report into the run's folder and prints its path. A failure is only a warning because the results are
/// saved.
fn write_page(results: &RunFolder, summary: &Summary, run: &Run) {
    let Some(html) = kvdyno_report::format("html") else { return };
    match results.write_report("report.html", (html.render)(summary, run).as_bytes()) {
        Ok(path) => println!("report: {}", path.display()),
        Err(error) => eprintln!(
            "warning: cannot write report.html: {error}; `{}` prints it",
            CommandLine::of("report").with_path(results.path()).with_flags("--format", ["html"])
        ),
    }
}

/// The exit code: wrong answers and contradicted levels outrank failures. A trial that was refused or too slow is a failure
/// only if all were.
pub(super) fn exit_code(records: &[Record], ending: Ending) -> u8 {
    let any = |test: &dyn Fn(&Record) -> bool| records.iter().any(test);
    let is_unfit =
        |record: &Record| matches!(&record.outcome, Outcome::Failed { cause, .. } if cause.is_unfitness());
    let is_contradicted = |record: &Record| {
        record
            .phases
            .iter()
            .filter_map(|phase| phase.observed.as_ref())
            .any(|it| it.contradiction().is_some())
    };
    if any(&|record| matches!(record.outcome, Outcome::WrongAnswers { .. }) || is_contradicted(record)) {
        return WRONG;
    }
    if any(&|record| {
        matches!(record.outcome, Outcome::Failed { .. } | Outcome::Crashed { .. }) && !is_unfit(record)
    }) {
        return FAILED;
    }
    if ending == Ending::Interrupted {
        return signals::stopped_code();
    }
    let compared: Vec<&Record> = records.iter().filter(|record| !record.trial.is_floor).collect();
    if !compared.is_empty() && compared.iter().all(|record| is_unfit(record)) { FAILED } else { 0 }
}

/// A message for each engine that the command line names and that was refused in every phase except fills: the reason and
/// a hint.
fn refusals(run: &Run, records: &[Record], registry: &Registry) -> Vec<String> {
    let mut names: Vec<String> = super::named_engines(&run.plan.command);
    names.iter_mut().for_each(|name| *name = split_options(name).0.to_string());
    names.sort();
    names.dedup();
    let of = |name: &String| {
        let own: Vec<&Record> = records.iter().filter(|record| record.trial.engine == *name).collect();
        let reasons: Option<Vec<String>> = own.iter().map(|record| refusal_reason(record)).collect();
        let reason = reasons?.into_iter().next()?;
        let hint = refusal_hint(name, &own, registry);
        Some(format!("{name} was refused in every phase: {reason}\nhint: {hint}"))
    };
    names.iter().filter_map(of).collect()
}

/// Why a trial measured nothing. `None` if it measured something or failed for another reason.
fn refusal_reason(record: &Record) -> Option<String> {
    match &record.outcome {
        Outcome::Failed { cause, text } if *cause == Cause::Refused => Some(text.clone()),
        Outcome::Ok => {
            let measured = record.phases.iter().filter(|phase| !phase.phase.is_fill());
            let reasons: Option<Vec<&String>> = measured.map(|phase| phase.not_run.as_ref()).collect();
            reasons?.first().map(|reason| reason.to_string())
        }
        _ => None,
    }
}

/// What an error of an open says that is not about reaching the server.
const OF_OTHER_REASONS: [&str; 3] = ["option ", "durability level", "kvdyno did not write"];

/// What to do if a running server, which an option names, could not be opened; `None`: that is not the reason.
fn server_hint(name: &str, own: &[&Record]) -> Option<String> {
    let is_named = |record: &Record| runner::has_url(&record.trial.options);
    let is_reached = |record: &Record| match &record.outcome {
        Outcome::Failed { text, .. } => OF_OTHER_REASONS.iter().any(|reason| text.contains(reason)),
        _ => false,
    };
    own.iter().any(|record| is_named(record) && is_open_error(record) && !is_reached(record)).then(|| {
        format!(
            "check that the server of --option {name}.url runs, can be reached from here, speaks this protocol, and accepts the user \
             and password of the URL or of --option {name}.password-file; then run the same command again"
        )
    })
}

/// Whether the engine was asked for nothing that it lacks, but could not open its database: a password is missing, or a server.
fn is_open_error(record: &Record) -> bool {
    let Outcome::Failed { text, .. } = &record.outcome else { return false };
    record.steps.iter().any(|step| step.name == StepKind::Open && step.note.as_ref() == Some(text))
}

/// What to do about an engine that was refused in every phase.
fn refusal_hint(name: &str, own: &[&Record], registry: &Registry) -> String {
    let engine = registry.engine(name).ok();
    let mut workloads = own.iter().map(|record| &*record.trial.workload);
    let mut by_level = || workloads.find_map(|workload| level_hint(engine.as_ref()?, workload));
    by_level().or_else(|| server_hint(name, own)).unwrap_or_else(|| {
        match own.iter().any(|one| is_open_error(one)) {
            true => format!("`kvdyno engines {name}` shows its options; --option {name}.NAME=VALUE sets one"),
            false => format!(
                "`kvdyno engines {name}` shows its capabilities; choose other engines or another workload"
            ),
        }
    })
}

/// Which level to request if an engine cannot reach the requested one.
pub(super) fn level_hint(engine: &Engine, workload: &Workload) -> Option<String> {
    let strongest = (0..=KV_POWER).rev().find(|level| engine.levels() & (1 << level) != 0)?;
    let requested = |phase: &Phase| phase.durability.unwrap_or(workload.durability);
    let is_too_strong = |level: Durability| level != Durability::Default && level_number(level) > strongest;
    let phase = workload.phases.iter().find(|phase| is_too_strong(requested(phase)))?;
    let level = level_name(strongest);
    Some(match phase.durability {
        Some(_) => format!("try --set {}.durability={level}, the strongest level of this engine", phase.name),
        None => format!("try --durability {level}, the strongest level of this engine"),
    })
}
