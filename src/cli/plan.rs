//! The plan of `kvdyno run`: workloads, engines and trials. Everything that can be refused is refused before the first
//! trial.

use super::args;
use super::error::CliError;
use super::limits;
use super::named::{Named, named};
use super::passwords;
use super::run::RunArgs;
use crate::audit::proven::proven_here;
use crate::engine::{Lookup, Registry};
use crate::measure::{Clock, Conditions, Machine, Warning, disk, warnings_of};
use crate::results::{Proof, Run, SCHEMA, Trial, now_rfc3339, random_suffix, run_id};
use crate::runner::{self, Contestant, Entry};
use crate::text::{bytes_text, count_text};
use crate::workload::{Member, Workload, with_cpus};
use std::collections::HashSet;
use std::path::Path;

/// Adds the null engine unless the names have a floor, and drops duplicates.
fn with_floor(names: &[String], registry: &Registry) -> Vec<String> {
    let is_floor =
        |name: &String| registry.engine(args::named(name).0).is_ok_and(|engine| engine.stores_nothing());
    let mut all = names.to_vec();
    if !all.iter().any(is_floor) {
        all.push("null".into());
    }
    let mut seen = HashSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all
}

/// Engines that are absent from a comparison of all engines, with their install command.
fn absent(registry: &Registry) -> Vec<(String, String)> {
    let compared = registry.absent().iter().filter(|absent| absent.is_compared());
    compared.map(|absent| (absent.known.name.clone(), absent.advice())).collect()
}

/// The engines of each workload, and the absent ones.
struct Engines {
    of: Vec<Vec<String>>,
    absent: Vec<(String, String)>,
}

/// Finds the engines of the run. An engine named on the command line must be available. An absent engine of a suite is
/// reported and skipped.
fn engines(args: &RunArgs, registry: &Registry, members: &[Member]) -> Result<Engines, CliError> {
    let kept = if args.engines.is_empty() { args.kept.engines()? } else { args.engines.clone() };
    if !kept.is_empty() {
        let names = with_floor(&kept, registry);
        return Ok(Engines { of: vec![names; members.len()], absent: Vec::new() });
    }
    let mut found = Engines { of: Vec::new(), absent: Vec::new() };
    for member in members {
        let mut names = member.engines.clone();
        if names.is_empty() {
            let compared = registry.engines().iter().filter(|engine| engine.is_compared());
            let compared = compared.filter(|engine| args.kept.includes(engine));
            names = compared.map(|engine| engine.name().to_string()).collect();
            found.absent.extend(absent(registry));
        }
        let mut available = Vec::new();
        for name in names {
            match registry.engine(args::named(&name).0) {
                Ok(_) => match served_and_absent(registry, &name) {
                    Some(absent) => found.absent.push(absent),
                    None => available.push(name),
                },
                Err(Lookup::Absent(advice)) => found.absent.push((name, advice)),
                Err(Lookup::Unknown(known)) => {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    return Err(args::unknown("engine in the suite", &name, &known, "kvdyno engines"));
                }
            }
        }
        found.of.push(available);
    }
    let mut seen = HashSet::new();
    found.absent.retain(|(name, _)| seen.insert(name.clone()));
    let of_suites = members.iter().flat_map(|member| &member.engines).collect::<HashSet<_>>();
    let skipped: Vec<String> = found
        .absent
        .iter()
        .filter(|(name, _)| of_suites.contains(name))
        .map(|(name, advice)| format!("{name}: {advice}"))
        .collect();
    if !skipped.is_empty() && found.of.iter().all(Vec::is_empty) {
        let text = format!("none of the suite's engines is available\n  {}", skipped.join("\n  "));
        return Err(CliError::absent(text).hint("choose other engines with --engines"));
    }
    skipped.iter().for_each(|line| eprintln!("skipped, not available: {line}"));
    for names in found.of.iter_mut().filter(|names| !names.is_empty()) {
        *names = with_floor(names, registry);
    }
    Ok(found)
}

/// The engine that `kvdyno serve` would serve (`redis (serve=bbolt)`), if it is absent.
fn served_and_absent(registry: &Registry, name: &str) -> Option<(String, String)> {
    let served = args::named(name).1.into_iter().find(|(option, _)| *option == "serve")?.1;
    match registry.engine(served) {
        Err(Lookup::Absent(advice)) => Some((name.to_string(), advice)),
        _ => None,
    }
}

/// The workloads with the changes of the command line, and the name of the run.
pub(super) fn members(args: &RunArgs) -> Result<(Vec<Member>, String), CliError> {
    if args.workloads.is_empty() {
        return Err(CliError::usage("no workload given")
            .hint("use a name from `kvdyno workloads`, such as `kvdyno run quick`, or a TOML file"));
    }
    let changes = args.sizes.changes(args.limits.memory)?;
    let all = args.workloads.iter().map(|name| named(name)).collect::<Result<Vec<Named>, _>>()?;
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

/// Each workload with its engines, shrunk to its time budget and checked. A workload without available engines is skipped.
fn entries(
    args: &RunArgs,
    registry: &Registry,
    members: Vec<Member>,
    of: &[Vec<String>],
) -> Result<(Vec<Entry>, Vec<Warning>), CliError> {
    let mut names_of: Vec<String> = Vec::new();
    for name in of.iter().flatten() {
        if !names_of.contains(name) {
            names_of.push(name.clone());
        }
    }
    let found = args::engines(registry, &names_of)?;
    let mut all = args::options(&found, &names_of, &args.options)?;
    for (_, value) in all.iter_mut().flat_map(|contestant| &mut contestant.options) {
        *value = passwords::split_password(value).0;
    }
    let (mut entries, mut warnings) = (Vec::new(), Vec::new());
    for (Member { mut workload, .. }, names) in members.into_iter().zip(of).filter(|(_, of)| !of.is_empty()) {
        let of =
            |name: &String| names_of.iter().position(|known| known == name).map(|place| all[place].clone());
        let contestants: Vec<Contestant> = names.iter().filter_map(of).collect();
        if let Some(share) = workload.seconds_per_trial(contestants.len() * workload.runs.max(1) as usize) {
            let before = (workload.keys, workload.phase_seconds());
            workload.shrink_to(share);
            let (keys, seconds) = ((before.0, workload.keys), (before.1, workload.phase_seconds()));
            warnings.extend(Warning::of_shrinking(&workload.name, keys, seconds));
        }
        runner::check_workload(&workload)
            .map_err(|text| CliError::usage(format!("workload {}: {text}", workload.name)))?;
        entries.push(Entry { workload, contestants });
    }
    Ok((entries, warnings))
}

/// The command that repeats the run, without paths on this machine.
fn command_line() -> Vec<String> {
    let mut words = vec!["kvdyno".to_string()];
    let mut arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = arguments.next() {
        const PATHS: [&str; 6] = ["--results", "--data", "--plugins", "--resume", "--keep", "--metrics"];
        let is_path = |flag: &str| PATHS.contains(&flag);
        let last =
            |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_path(&word) {
            arguments.next();
        } else if word == "--reuse" {
            // Without --reuse the command would do something else, so only the path of its folder is removed.
            words.extend([word, arguments.next().map(|path| last(&path)).unwrap_or_default()]);
        } else if let Some(path) = word.strip_prefix("--reuse=") {
            words.push(format!("--reuse={}", last(path)));
        } else if !word.split_once('=').is_some_and(|(flag, _)| is_path(flag)) {
            let is_file = word.ends_with(".toml");
            let name = Path::new(&word).file_name().map(|name| name.to_string_lossy().into_owned());
            words.push(passwords::split_password(&if is_file { name.unwrap_or(word) } else { word }).0);
        }
    }
    words
}

/// Number of keys and sizes, for the name of the run's folder. Empty if the workloads differ.
fn parameters(entries: &[Entry]) -> String {
    let of = |workload: &Workload| {
        let text = format!("{}-{}-{}", count_text(workload.keys), workload.key.size, workload.value.size);
        text.replace([':', ',', '*', '.'], "_")
    };
    let mut all = entries.iter().map(|entry| of(&entry.workload));
    let first = all.next().unwrap_or_default();
    if all.all(|other| other == first) { first } else { String::new() }
}

/// Refuses a plan that needs more disk space than is free.
fn check_space(args: &RunArgs, data: &Path, entries: &[Entry]) -> Result<(), CliError> {
    let estimates = entries.iter().map(|entry| runner::disk_estimate_bytes(&entry.workload));
    let estimate = estimates.max().unwrap_or(0);
    match disk::free_bytes(data) {
        Some(free) if free < estimate && !args.ignore_space => Err(CliError::failed(format!(
            "a trial of this plan may need {} of disk space; {} are free",
            bytes_text(estimate),
            bytes_text(free)
        ))
        .hint("free some space, name a larger disk with --data DIR, or reduce --keys; --ignore-space starts anyway")),
        _ => Ok(()),
    }
}

/// Refuses a plan that needs more memory than the machine has, regardless of the engines.
fn check_memory(entries: &[Entry], machine: &Machine) -> Result<(), CliError> {
    let Some(available) = machine.memory_bytes else { return Ok(()) };
    for Entry { workload, .. } in entries {
        let needed = runner::memory_estimate_bytes(workload);
        if needed > available {
            return Err(CliError::usage(format!(
                "workload {}: the threads of a trial need {} of memory for their keys and values; this machine has {}",
                workload.name,
                bytes_text(needed),
                bytes_text(available)
            ))
            .hint("use smaller values (--value-size), fewer threads (--threads) or smaller groups (`join`)"));
        }
    }
    Ok(())
}

/// The maximum number of trials of a run. All of them are in its plan, which each start reads.
const MOST_TRIALS: u64 = 100_000;

/// Refuses a plan with too many trials.
fn check_trials(entries: &[Entry]) -> Result<(), CliError> {
    let of = |entry: &Entry| u64::from(entry.workload.runs.max(1)) * entry.contestants.len() as u64;
    let trials: u64 = entries.iter().map(of).sum();
    if trials <= MOST_TRIALS {
        return Ok(());
    }
    Err(CliError::usage(format!("this plan has {trials} trials; the maximum is {MOST_TRIALS}"))
        .hint("use fewer repetitions (--runs), engines (--engines) or workloads"))
}

/// Plans a new run. Everything that can be refused is refused before the first trial.
pub fn plan(args: &RunArgs, registry: &Registry) -> Result<Run, CliError> {
    let (members, name) = with_cpus(args.limits.cpu_count(), || members(args))?;
    let engines = engines(args, registry, &members)?;
    let (entries, shrunk) = entries(args, registry, members, &engines.of)?;
    let data = args.data.as_deref().unwrap_or(&args.results);
    if let Some(data) = &args.data {
        runner::check_parent(data).map_err(CliError::usage)?;
    }
    check_trials(&entries)?;
    let machine = Machine::observe(data);
    check_memory(&entries, &machine)?;
    check_space(args, data, &entries)?;
    let mut trials =
        runner::trials(&entries, entries.first().map_or(1, |entry| entry.workload.seed), args.seeds());
    args.limits.hold(&mut trials);
    args.kept.hold(&mut trials);
    limits::check(&trials)?;
    if let Some(data) = &args.data {
        runner::check_place(data)
            .map_err(|text| CliError::usage(format!("--data: {text}")).hint("name a writable folder"))?;
    }
    let started_at = now_rfc3339();
    let clock = Clock::calibrate().facts();
    let mut warnings = warnings_of(&machine, &Conditions::observe(data), Some(&clock));
    warnings.extend(shrunk);
    Ok(Run {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        id: run_id(&started_at, &name, &parameters(&entries), random_suffix()),
        started_at,
        command: command_line(),
        proofs: proofs(&trials, registry),
        unverified: unverified(&trials, registry),
        absent: engines.absent,
        trials,
        warnings,
        machine,
        clock,
    })
}

/// Engines of plug-ins that were never verified.
fn unverified(trials: &[Trial], registry: &Registry) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for engine in trials.iter().filter_map(|trial| registry.engine(&trial.engine).ok()) {
        let is_of_plugin = engine.plugin_file().is_some();
        if is_of_plugin && proven_here(&engine).is_none() && !found.iter().any(|name| name == engine.name()) {
            found.push(engine.name().to_string());
        }
    }
    found
}

/// What `kvdyno verify` has proven about the engines of these trials.
fn proofs(trials: &[Trial], registry: &Registry) -> Vec<Proof> {
    let mut proofs: Vec<Proof> = Vec::new();
    let engines = trials.iter().filter_map(|trial| registry.engine(&trial.engine).ok());
    for row in engines.filter_map(|engine| proven_here(&engine)) {
        if proofs.iter().all(|proof| proof.engine != row.name) {
            proofs.push(Proof {
                engine: row.name,
                version: row.version,
                levels: row.levels,
                capabilities: row.capabilities.into_iter().chain(row.traits).collect(),
            });
        }
    }
    proofs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Changes, builtin, builtin_suite, builtin_suites};

    #[test]
    fn every_engine_of_a_built_in_suite_is_known() {
        let registry = Registry::load(&[]);
        for (name, _) in builtin_suites() {
            let suite = builtin_suite(name).expect("it is in the list of suites");
            let members =
                suite.members(&builtin, &Changes::default()).unwrap_or_else(|error| panic!("{error}"));
            for engine in members.iter().flat_map(|member| &member.engines) {
                let is_known = !matches!(registry.engine(args::named(engine).0), Err(Lookup::Unknown(_)));
                assert!(is_known, "{name}: no engine is called `{engine}`");
            }
        }
    }
}
