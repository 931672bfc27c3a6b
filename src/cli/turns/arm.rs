//! The arms of a comparison: what the user names, the engine of it, and its trials.

use crate::cli::error::CliError;
use crate::cli::plugins;
use crate::cli::request::{Request, SubjectArgs, members};
use crate::cli::trials::{Kept, TrialArgs, Trials, only, several};
use kvdyno_core::engine::Registry;
use kvdyno_core::results::Record;
use kvdyno_core::runner::Entry;
use kvdyno_measure::start;
use kvdyno_measure::text::plain_text;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

/// The option of an arm that is none of its engine: its durability level.
const LEVEL: &str = "durability";

/// An arm as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Given {
    /// The engine, or the file of a plug-in.
    subject: String,
    /// The kvdyno that runs it; none: this one.
    kvdyno: Option<PathBuf>,
    /// Options of the engine.
    options: Vec<(String, String)>,
    /// Its level; none: the workload's.
    level: Option<String>,
}

impl FromStr for Given {
    type Err = String;

    /// Reads `ENGINE[@KVDYNO]:NAME=VALUE,...`. A colon that no option follows is part of a path, and so is what follows an `@` in the
    /// name of a plug-in.
    fn from_str(text: &str) -> Result<Given, String> {
        let (subject, options) = match text.split_once(':') {
            Some((subject, rest)) if rest.contains('=') => (subject, rest),
            Some((subject, "")) => (subject, ""),
            Some((_, rest)) if !text.contains('/') => {
                return Err(format!("expected NAME=VALUE after the colon, got `{rest}`"));
            }
            _ => (text, ""),
        };
        let is_plugin = subject.trim().ends_with(".so");
        let (subject, kvdyno) = match subject.split_once('@').filter(|_| !is_plugin) {
            Some((_, kvdyno)) if kvdyno.trim().is_empty() => {
                return Err("expected the path of a kvdyno after the @".into());
            }
            Some((subject, kvdyno)) => (subject, Some(PathBuf::from(kvdyno.trim()))),
            None => (subject, None),
        };
        let subject = subject.trim().to_string();
        if subject.is_empty() {
            return Err("expected an engine or the file of a plug-in".into());
        }
        let mut given = Given { subject, kvdyno, options: Vec::new(), level: None };
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

impl fmt::Display for Given {
    /// As it is read.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.subject)?;
        if let Some(kvdyno) = &self.kvdyno {
            write!(out, "@{}", kvdyno.display())?;
        }
        let level = self.level.iter().map(|level| (LEVEL, level.as_str()));
        let options = self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (place, (name, value)) in options.chain(level).enumerate() {
            write!(out, "{}{name}={value}", if place == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl Given {
    /// The plug-in in this file.
    pub(in crate::cli) fn of_file(file: &Path) -> Given {
        let subject = file.to_string_lossy().into_owned();
        Given { subject, kvdyno: None, options: Vec::new(), level: None }
    }

    /// The engine or the file.
    pub(in crate::cli) fn subject(&self) -> String {
        plain_text(&self.subject)
    }

    fn file(&self) -> Option<&Path> {
        let is_path = self.subject.contains('/') || self.subject.ends_with(".so");
        is_path.then(|| Path::new(&self.subject))
    }

    /// Its engine with its options, as a run names it.
    pub(in crate::cli) fn word(&self, engines: &Engines) -> String {
        let options: Vec<String> =
            self.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match options.is_empty() {
            true => engines.engine.clone(),
            false => format!("{} ({})", engines.engine, options.join(", ")),
        }
    }

    /// Its level; none: the workload's.
    pub(in crate::cli) fn level(&self) -> Option<&str> {
        self.level.as_deref()
    }

    /// The kvdyno that runs it. Refuses a file that is none.
    pub(in crate::cli) fn executable(&self) -> Result<PathBuf, CliError> {
        let Some(kvdyno) = &self.kvdyno else { return plugins::executable() };
        let path = plain_text(&kvdyno.to_string_lossy());
        let wrong = |why: String| {
            CliError::usage(format!("{path}: {why}"))
                .hint("after the @ is the path of another build of kvdyno that runs the arm")
        };
        let kvdyno = kvdyno.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let mut command = Command::new(&kvdyno);
        let printed = start::output(command.arg("--version").stdin(Stdio::null()));
        let printed = printed.map_err(|error| wrong(error.to_string()))?;
        match String::from_utf8_lossy(&printed.stdout).starts_with("kvdyno ") {
            true => Ok(kvdyno),
            false => Err(wrong("this is not kvdyno".into())),
        }
    }

    /// Whether both would do the same: the same engine or a file with the same content, by the same kvdyno, with the same options and
    /// level.
    fn is_equal(&self, other: &Given) -> bool {
        let is_same_kvdyno = self.kvdyno == other.kvdyno || {
            let both = [self, other].map(|given| given.kvdyno.clone().or_else(|| plugins::executable().ok()));
            let [Some(one), Some(two)] = &both else { return false };
            has_same_content(one, two)
        };
        let sorted = |given: &Given| {
            let mut options = given.options.clone();
            options.sort();
            options
        };
        let files = self.file().zip(other.file());
        let is_same_engine =
            self.subject == other.subject || files.is_some_and(|(one, two)| has_same_content(one, two));
        is_same_engine && sorted(self) == sorted(other) && self.level == other.level && is_same_kvdyno
    }
}

fn has_same_content(one: &Path, two: &Path) -> bool {
    let length = |file: &Path| file.metadata().ok().map(|found| found.len());
    let content = |file: &Path| std::fs::read(file).ok();
    length(one).is_some() && length(one) == length(two) && content(one) == content(two)
}

/// The first two arms that are equal, by their places.
pub(in crate::cli) fn equal(all: &[&Given]) -> Option<(usize, usize)> {
    let before = |place: usize| all[..place].iter().position(|before| before.is_equal(all[place]));
    (0..all.len()).find_map(|place| before(place).map(|before| (before, place)))
}

/// The engines that an arm is chosen from: each has its own, so that two plug-ins may have one name.
pub(in crate::cli) struct Engines {
    registry: Registry,
    engine: String,
}

impl Engines {
    /// Finds the engine of an arm.
    pub(in crate::cli) fn of(given: &Given, folders: &[PathBuf]) -> Result<Engines, CliError> {
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

    /// The engines.
    pub(in crate::cli) fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// What all arms of a command have in common.
pub(in crate::cli) struct Setup<'a> {
    /// The command: what the names of runs begin with.
    pub name: &'static str,
    /// The workload as the user named it.
    pub workload: &'a str,
    /// The length of each measured phase, seconds.
    pub seconds: f64,
    /// The other flags for trials.
    pub trials: &'a TrialArgs,
    /// The new folder of the command, which is made later.
    pub folder: &'a Path,
    /// The folders of plug-ins that the user named.
    pub plugins: &'a [PathBuf],
    /// The command line.
    pub command: &'a [String],
}

impl Setup<'_> {
    /// The phases that are compared: those that are no load, and whether each is at a rate.
    pub(in crate::cli) fn phases(&self) -> Result<Vec<(String, bool)>, CliError> {
        let changes = self.trials.changes.of_trials(self.seconds, None);
        let base = self.trials.of_run(SubjectArgs::one(self.workload, ""), changes)?;
        let (members, _) = members(&base)?;
        let [member] = &members[..] else { return Err(several(self.name)) };
        let measured = member.workload.phases.iter().filter(|phase| !phase.is_fill());
        Ok(measured.map(|phase| (phase.name.clone(), phase.rate.is_some())).collect())
    }
}

/// An arm that can be measured.
pub(in crate::cli) struct Arm<'a> {
    /// Its name in tables: the letter is added there.
    pub name: String,
    entry: Entry,
    kept: Kept,
    trials: Trials<'a>,
    has_own_level: bool,
}

impl<'a> Arm<'a> {
    /// The arm with this place.
    pub(in crate::cli) fn new(
        setup: &Setup<'a>,
        given: &Given,
        engines: &'a Engines,
        place: usize,
    ) -> Result<Arm<'a>, CliError> {
        let word = given.word(engines);
        let subject = SubjectArgs::one(setup.workload, &word);
        let changes = setup.trials.changes.of_trials(setup.seconds, given.level.as_deref());
        let base = setup.trials.of_run(subject, changes)?;
        let Request { entries, settings, .. } = Request::new(&base, &engines.registry, None)?;
        let entry = only(entries, setup.name)?;
        let file = given.file().or(given.kvdyno.as_deref());
        let file = file.map(|file| format!(", {}", file.display())).unwrap_or_default();
        Ok(Arm {
            name: plain_text(&format!("{word}{file}")),
            kept: Kept::of(&entry, setup.folder, place),
            entry,
            trials: Trials {
                name: setup.name,
                base: *base,
                executable: given.executable()?,
                registry: &engines.registry,
                settings,
                folder: setup.folder.to_path_buf(),
                command: setup.command.to_vec(),
                plugins: setup.plugins,
                tells_warnings: place == 0,
            },
            has_own_level: given.level.is_some(),
        })
    }

    /// Runs the trial that loads the database.
    pub(in crate::cli) fn load(&self) -> Result<Record, CliError> {
        self.trials.run(self.entry.clone(), self.kept.first(), 1)
    }

    /// Runs a trial with the ops of this number.
    pub(in crate::cli) fn trial(&self, number: u64) -> Result<Record, CliError> {
        self.trials.run(self.entry.clone(), self.kept.later(), number)
    }

    pub(in crate::cli) fn workload(&self) -> &str {
        &self.entry.workload.name
    }

    pub(in crate::cli) fn seed(&self) -> u64 {
        self.entry.workload.seed
    }

    /// Whether its database is in files.
    pub(in crate::cli) fn has_files(&self) -> bool {
        matches!(self.kept, Kept::Copied(_))
    }

    pub(in crate::cli) fn has_own_level(&self) -> bool {
        self.has_own_level
    }
}

/// The name of a workload without the path and the ending of a file.
pub(in crate::cli) fn short_name(workload: &str) -> String {
    let stem = Path::new(workload).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    plain_text(&stem.unwrap_or_else(|| workload.to_string()))
}
