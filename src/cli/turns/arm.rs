//! The arms of a comparison: what the user names, the engine of it, and its trials.

use super::{AbArgs, Figure, Metric};
use crate::cli::error::CliError;
use crate::cli::plugins;
use crate::cli::request::{Request, SubjectArgs};
use crate::cli::trials::{Kept, Trials};
use kvdyno_core::engine::Registry;
use kvdyno_core::results::Record;
use kvdyno_core::runner::Entry;
use kvdyno_measure::text::plain_text;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The option of an arm that is none of its engine: its durability level.
const LEVEL: &str = "durability";

/// An arm as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The engine, or the file of a plug-in.
    subject: String,
    /// Options of the engine.
    options: Vec<(String, String)>,
    /// Its level; none: the workload's.
    level: Option<String>,
}

impl FromStr for Given {
    type Err = String;

    /// Reads `ENGINE:NAME=VALUE,...`. A colon that no option follows is part of a path.
    fn from_str(text: &str) -> Result<Given, String> {
        let (subject, options) = match text.split_once(':') {
            Some((subject, rest)) if rest.contains('=') => (subject, rest),
            Some((subject, "")) => (subject, ""),
            Some((_, rest)) if !text.contains('/') => {
                return Err(format!("expected NAME=VALUE after the colon, got `{rest}`"));
            }
            _ => (text, ""),
        };
        if subject.trim().is_empty() {
            return Err("expected an engine or the file of a plug-in".into());
        }
        let mut given = Given { subject: subject.trim().to_string(), options: Vec::new(), level: None };
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| format!("expected NAME=VALUE, got `{option}`"))?;
            match name.trim() {
                LEVEL => given.level = Some(value.trim().to_string()),
                name => given.options.push((name.to_string(), value.to_string())),
            }
        }
        Ok(given)
    }
}

impl Given {
    fn file(&self) -> Option<&Path> {
        let is_path = self.subject.contains('/') || self.subject.ends_with(".so");
        is_path.then(|| Path::new(&self.subject))
    }

    /// Whether both would do the same: the same engine or a file with the same content, with the same options and level.
    fn is_equal(&self, other: &Given) -> bool {
        let content = |given: &Given| std::fs::read(given.file()?).ok();
        let sorted = |given: &Given| {
            let mut options = given.options.clone();
            options.sort();
            options
        };
        let is_same_engine = self.subject == other.subject
            || content(self).is_some_and(|bytes| content(other).is_some_and(|others| bytes == others));
        is_same_engine && sorted(self) == sorted(other) && self.level == other.level
    }
}

/// Refuses arms that are equal by mistake.
pub(super) fn check_different(all: &[&Given]) -> Result<(), CliError> {
    for (place, arm) in all.iter().enumerate() {
        if all[..place].iter().any(|before| before.is_equal(arm)) {
            return Err(CliError::usage(format!(
                "two arms are equal: `{}` with the same options",
                plain_text(&arm.subject)
            ))
            .hint("name two builds, settings or levels; --allow-equal compares equal arms"));
        }
    }
    Ok(())
}

/// The engines that an arm is chosen from: each has its own, so that two plug-ins may have one name.
pub(super) struct Engines {
    registry: Registry,
    engine: String,
}

impl Engines {
    /// Finds the engine of an arm.
    pub(super) fn of(given: &Given, folders: &[PathBuf]) -> Result<Engines, CliError> {
        let Some(file) = given.file() else {
            let names = [given.subject.clone()];
            let registry = plugins::registry(folders, &names)?;
            plugins::warn(&registry, &names);
            return Ok(Engines { registry, engine: given.subject.clone() });
        };
        let given_files = [file.to_path_buf()];
        if let Err(error) = file.metadata() {
            return Err(CliError::usage(format!("{}: {error}", plain_text(&given.subject)))
                .hint("name an engine, or the file of a plug-in (libkvdyno_NAME.so)"));
        }
        plugins::check(&given_files)?;
        let registry = plugins::registry(&given_files, &[])?;
        let same = |other: &Path| other.canonicalize().ok() == file.canonicalize().ok();
        if let Some(refused) = registry.refused().iter().find(|refused| same(&refused.file)) {
            return Err(CliError::usage(format!("plug-in {refused}")));
        }
        let files = registry.plugin_files();
        let engine = files.iter().find(|(_, own)| same(own)).map(|(name, _)| name.clone());
        let engine = engine.ok_or_else(|| {
            CliError::usage(format!("{}: this plug-in was not loaded", plain_text(&given.subject)))
        })?;
        Ok(Engines { registry, engine })
    }
}

/// An arm that can be measured.
pub(super) struct Arm<'a> {
    /// Its name in tables: the letter is added there.
    pub name: String,
    entry: Entry,
    kept: Kept,
    trials: Trials<'a>,
    has_own_level: bool,
}

impl<'a> Arm<'a> {
    /// The arm with this place, in the folder of the comparison, which is made later.
    pub(super) fn new(
        args: &AbArgs,
        given: &Given,
        engines: &'a Engines,
        place: usize,
        folder: &Path,
        plugins: &'a [PathBuf],
        command: &[String],
    ) -> Result<Arm<'a>, CliError> {
        let options: Vec<String> =
            given.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let word = match options.is_empty() {
            true => engines.engine.clone(),
            false => format!("{} ({})", engines.engine, options.join(", ")),
        };
        let subject = SubjectArgs::one(&args.workload, &word);
        let changes = args.trials.changes.of_trials(args.trial, given.level.as_deref());
        let base = args.trials.of_run(subject, changes)?;
        let Request { mut entries, settings, .. } = Request::new(&base, &engines.registry, None)?;
        entries.iter_mut().for_each(|entry| {
            // The null engine is no arm, unless it is named.
            if entry.contestants.len() > 1 {
                entry.contestants.retain(|one| !one.is_floor);
            }
            entry.workload.runs = 1;
        });
        let Ok([entry]) = <[Entry; 1]>::try_from(entries) else {
            return Err(CliError::usage("ab compares with one workload at a time")
                .hint("name one workload, without lists of sizes, levels or threads"));
        };
        if entry.contestants.len() != 1 {
            return Err(CliError::usage(format!("`{word}` is not one engine")).hint("name a single engine"));
        }
        let file = given.file().map(|file| format!(", {}", file.display())).unwrap_or_default();
        Ok(Arm {
            name: plain_text(&format!("{word}{file}")),
            kept: Kept::of(&entry, folder, place),
            entry,
            trials: Trials {
                name: "ab",
                base: *base,
                registry: &engines.registry,
                settings,
                folder: folder.to_path_buf(),
                command: command.to_vec(),
                plugins,
                tells_warnings: place == 0,
            },
            has_own_level: given.level.is_some(),
        })
    }

    /// Runs the trial that loads the database.
    pub(super) fn load(&self) -> Result<Record, CliError> {
        self.trials.run(self.entry.clone(), self.kept.first(), 1)
    }

    /// Runs a trial with the ops of this number.
    pub(super) fn trial(&self, number: u64) -> Result<Record, CliError> {
        self.trials.run(self.entry.clone(), self.kept.later(), number)
    }

    /// The figures that are compared: ops/s and p99 of each phase that is not a load.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let measured = self.entry.workload.phases.iter().filter(|phase| !phase.is_fill());
        let both = measured.flat_map(|phase| {
            // At a rate that all keep, ops/s say nothing.
            let figures: &[Figure] =
                if phase.rate.is_some() { &[Figure::P99] } else { &[Figure::Rate, Figure::P99] };
            figures.iter().map(|figure| Metric { phase: phase.name.clone(), figure: *figure })
        });
        both.collect()
    }

    pub(super) fn workload(&self) -> &str {
        &self.entry.workload.name
    }

    pub(super) fn seed(&self) -> u64 {
        self.entry.workload.seed
    }

    pub(super) fn has_own_level(&self) -> bool {
        self.has_own_level
    }
}

/// The name of a workload without the path and the ending of a file.
pub(super) fn short_name(workload: &str) -> String {
    let stem = Path::new(workload).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    plain_text(&stem.unwrap_or_else(|| workload.to_string()))
}
