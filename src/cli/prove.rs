//! `kvdyno prove ENGINE...`: tests what engines claim: the rules of drivers, syncs, and what is left after crashes and faults.

mod certificate;
mod claim;
mod crash;
mod faults;
mod rules;
mod syncs;

use super::error::{CliError, FAILED, WRONG};
use super::number::number;
use claim::{Claim, Standing, not_here, text};
use kvdyno_core::engine::{ALL, Engine, Registry, mutant_names};
use kvdyno_core::results::Durability;
use kvdyno_core::runner::{Contestant, DataFolder, level_number};
use kvdyno_measure::signals;
use kvdyno_measure::text::listed;
use kvdyno_prove::faults::FaultKind;
use serde::Serialize;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) use rules::{ReopenedTask, VerifyTask};

/// Prove what engines claim: verify them against a model, count their sync calls, crash them, and make their system calls fail.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ProveArgs {
    #[arg(value_name = "ENGINE", value_delimiter = ',',
          help = format!("Engines to test [default, except for crash: all available engines]. `mutants` means all engines with a \
                          planted bug. {}", super::args::SELECTORS))]
    engines: Vec<String>,
    /// Parts to run [default: all]. One part alone prints its own tables.
    #[arg(long, value_enum, ignore_case = true, value_name = "PARTS", value_delimiter = ',')]
    only: Vec<Part>,
    /// Durability levels to test: none, process or power [default: all levels of each engine; the strongest with faults].
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    durability: Vec<String>,
    /// Seed of keys, values, random ops and crashes.
    #[arg(long, default_value_t = 1, value_parser = number(0..=u64::MAX))]
    seed: u64,
    /// Number of random ops in the model check of rules [default: 20000], or of commits of each shape for syncs [default: 100].
    #[arg(long, value_name = "N", value_parser = number(1..=u64::MAX))]
    ops: Option<u64>,
    /// Set an option of an engine. Can be given more than once.
    #[arg(long = "option", value_name = "ENGINE.NAME=VALUE")]
    options: Vec<String>,
    /// Create temporary databases in DIR [default: a folder of each part in kvdyno-results].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Stop an engine that makes no progress for N seconds [default: 120 with rules and syncs, 30 with crash, 90 with faults].
    #[arg(long, value_name = "N", value_parser = number(1..=u64::MAX))]
    stall_seconds: Option<u64>,
    /// Show all findings, not only broken claims.
    #[arg(short, long)]
    all: bool,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    rules: rules::Own,
    #[command(flatten)]
    crash: crash::Own,
    #[command(flatten)]
    faults: faults::Own,
    #[command(flatten)]
    certificate: certificate::Own,
}

const EXAMPLES: &str = "Examples:
  kvdyno prove redb                                       Everything that can be tested here for one engine
  kvdyno prove redb,sled --only rules                     Does the driver follow the rules for drivers?
  kvdyno prove all --only syncs --durability power        Does each commit reach the disk?
  kvdyno prove redb --only crash --mode kill --rounds 50  Does acknowledged data survive a crash?
  kvdyno prove redb --only crash --mode calls             Does it survive a kill at each call?
  kvdyno prove redb --only faults --faults enospc         What happens on a full disk?
  kvdyno prove redb --certificate                         Write the results as certificates

Exit codes: 0 if all tested claims hold, 1 if something failed on this machine, 2 for a usage error, 3 if a claim is broken.";

/// A part of `prove`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// Verify engines against a model and test each declared capability.
    Rules,
    /// Compare the durability level that each driver claims with the sync calls that its engine makes.
    Syncs,
    /// Crash engines and compare what is left with what was acknowledged.
    Crash,
    /// Make system calls of engines fail as on a broken or full disk, and show what the engines do and what is left.
    Faults,
}

impl Part {
    /// Those that run if none is named.
    const ALL: [Part; 4] = [Part::Rules, Part::Syncs, Part::Crash, Part::Faults];

    fn name(self) -> &'static str {
        match self {
            Part::Rules => "rules",
            Part::Syncs => "syncs",
            Part::Crash => "crash",
            Part::Faults => "faults",
        }
    }

    /// Runs the part.
    fn find(self, job: &Job<'_>) -> Result<Box<dyn Found>, CliError> {
        Ok(match self {
            Part::Rules => Box::new(rules::find(job)?),
            Part::Syncs => Box::new(syncs::find(job)?),
            Part::Crash => Box::new(crash::find(job)?),
            Part::Faults => Box::new(faults::find(job)?),
        })
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// What a part has found.
trait Found {
    /// Why it has found nothing, if none of the engines is one for it.
    fn nothing(&self) -> Option<CliError>;
    /// Its own tables; empty if they were printed while it ran.
    fn text(&self) -> String;
    fn json(&self) -> Result<serde_json::Value, CliError>;
    fn claims(&self) -> Vec<Claim>;
    /// What an interrupt means for it.
    fn interrupted(&self) -> &'static str;
    /// What failed although this machine can test it.
    fn failure(&self) -> Option<CliError> {
        None
    }
    /// The exit code of the part alone.
    fn code(&self) -> Result<u8, CliError>;
}

/// The engines that are tested, with what all parts need.
struct Job<'j> {
    args: &'j ProveArgs,
    plugins: &'j [PathBuf],
    names: Vec<String>,
    engines: Vec<Engine>,
    contestants: Vec<Contestant>,
    /// Levels to test.
    asked: Vec<Durability>,
    /// Whether parts print their own tables.
    is_shown: bool,
}

/// Runs the command.
pub(super) fn run(args: &ProveArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let parts = args.parts();
    args.check(&parts)?;
    if !args.certificate.files.is_empty() {
        return certificate::check(&args.certificate.files, plugins);
    }
    if !args.crash.kept.is_empty() {
        return crash::read_kept(args, plugins);
    }
    let is_alone = parts.len() == 1;
    let job = Job::new(args, plugins, !args.json && (is_alone || args.all))?;
    match parts[..] {
        _ if args.certificate.is_wanted => certificate::run(&job),
        [part] => alone(&job, part),
        _ => together(&job, &parts),
    }
}

/// Runs the part that a former command was.
pub(super) fn run_part(mut args: ProveArgs, name: &str, plugins: &[PathBuf]) -> Result<u8, CliError> {
    match Part::ALL.into_iter().find(|part| part.name() == name) {
        Some(part) => args.only = vec![part],
        None => args.certificate.is_wanted = true,
    }
    run(&args, plugins)
}

/// Runs one part, which prints its own tables.
fn alone(job: &Job<'_>, part: Part) -> Result<u8, CliError> {
    let found = part.find(job)?;
    if let Some(error) = found.nothing().filter(|_| signals::interrupts() == 0) {
        return Err(error);
    }
    match job.args.json {
        true => println!("{}", found.json()?),
        false => print!("{}", found.text()),
    }
    if signals::interrupts() > 0 {
        eprintln!("interrupted; {}", found.interrupted());
        return Ok(signals::stopped_code());
    }
    found.code()
}

/// Runs several parts and prints one table of what they have found.
fn together(job: &Job<'_>, parts: &[Part]) -> Result<u8, CliError> {
    let mut claims = Vec::new();
    let mut json = serde_json::Map::new();
    let (mut failure, mut is_short) = (None, false);
    for part in parts {
        let found = match part.find(job) {
            Ok(found) => found,
            // This machine, and not the engines: other parts can be proven.
            Err(error) if error.code == FAILED => {
                claims.extend(job.names.iter().map(|name| not_here(name, *part, None, error.message())));
                failure = failure.or(Some(error));
                continue;
            }
            Err(error) => return Err(error),
        };
        if signals::interrupts() > 0 {
            claims.extend(found.claims());
            break;
        }
        if let Some(error) = found.nothing() {
            claims.extend(job.names.iter().map(|name| not_here(name, *part, None, error.message())));
            continue;
        }
        if job.is_shown {
            println!("{}", found.text());
        }
        json.insert(part.name().into(), found.json()?);
        claims.extend(found.claims());
        failure = failure.or_else(|| found.failure());
        is_short |= matches!(found.code(), Ok(FAILED));
    }
    let is_broken = claims.iter().any(|claim| claim.result == Standing::Broken);
    let is_empty = claims.iter().all(|claim| claim.result == Standing::NotHere);
    if job.args.json {
        json.insert("claims".into(), serde_json::to_value(&claims)?);
        println!("{}", serde_json::Value::Object(json));
    } else {
        print!("{}", text(&claims));
    }
    if signals::interrupts() > 0 {
        eprintln!("interrupted; the table lists only what was tested until then");
        return Ok(signals::stopped_code());
    }
    match failure {
        _ if is_broken => Ok(WRONG),
        Some(error) => Err(error),
        None if is_empty => Err(CliError::failed("nothing was proven").hint("the reasons are above")),
        None if is_short => Ok(FAILED),
        None => Ok(0),
    }
}

impl ProveArgs {
    /// The parts to run, in order.
    fn parts(&self) -> Vec<Part> {
        if !self.crash.kept.is_empty() {
            return vec![Part::Crash];
        }
        let mut parts = if self.only.is_empty() { Part::ALL.to_vec() } else { self.only.clone() };
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// An option that no part would use is refused, and what a part cannot do, before any part runs.
    fn check(&self, parts: &[Part]) -> Result<(), CliError> {
        if let Some(data) = &self.data {
            super::folders::check_creatable("--data", data)?;
        }
        use Part::{Crash, Faults, Rules, Syncs};
        let (rules, crash, faults) = (&self.rules, &self.crash, &self.faults);
        let is_certificate = self.certificate.is_wanted || !self.certificate.files.is_empty();
        let is_on_disk = faults.kinds.is_empty() || faults.kinds.contains(&FaultKind::DiskEio);
        let with_images: &[Part] = if is_on_disk { &[Crash, Faults] } else { &[Crash] };
        // The parts that use an option, and whether certificates do.
        let given: [(&str, bool, &[Part], bool); 21] = [
            ("--only", !self.only.is_empty(), &Part::ALL, false),
            ("--durability", !self.durability.is_empty(), &[Syncs, Crash, Faults], true),
            ("--ops", self.ops.is_some(), &[Rules, Syncs], false),
            ("--all", self.all && (parts.len() == 1 || is_certificate), &[Rules], false),
            ("--json", self.json, &Part::ALL, false),
            ("--seconds", rules.seconds.is_some(), &[Rules], false),
            ("--check", !rules.checks.is_empty(), &[Rules], false),
            ("--proven", rules.proven.is_some(), &[Rules], false),
            ("--mode", !crash.modes.is_empty(), &[Crash], true),
            ("--rounds", crash.rounds.is_some(), &[Crash], true),
            ("--call", crash.call.is_some(), &[Crash], false),
            ("--states", crash.states.is_some(), &[Crash], true),
            ("--tears", crash.tears, &[Crash], false),
            ("--state", crash.state.is_some(), &[Crash], true),
            ("--file-system", !crash.file_systems.is_empty(), &[Crash], true),
            ("--images", crash.images.is_some(), with_images, true),
            ("--image-size", crash.image_size.is_some(), with_images, true),
            ("--keep", crash.keep.is_some(), &[Crash], false),
            ("--faults", !faults.kinds.is_empty(), &[Faults], false),
            ("--points", faults.points.is_some(), &[Faults], false),
            ("--out", self.certificate.out.is_some(), &[], true),
        ];
        for (option, is_given, users, is_for_certificates) in given {
            let is_used = match is_certificate {
                true => is_for_certificates,
                false => users.iter().any(|part| parts.contains(part)),
            };
            if is_given && !is_used {
                let mut names: Vec<&str> = users.iter().map(|part| part.name()).collect();
                names.extend(is_for_certificates.then_some("--certificate"));
                return Err(CliError::usage(format!("{option}: no selected part uses it"))
                    .hint(format!("it is for {}", listed(&names, "and"))));
            }
        }
        let is_read = !crash.kept.is_empty() || !self.certificate.files.is_empty();
        if self.engines.is_empty() && !is_read && (is_certificate || parts.contains(&Crash)) {
            return Err(CliError::usage(
                "an ENGINE is required, because crash tests take minutes for each engine",
            )
            .hint("name engines, or `all`; `kvdyno engines` lists them"));
        }
        if parts.contains(&Syncs) && self.ops.is_some_and(|ops| !(2..=1_000_000).contains(&ops)) {
            return Err(CliError::usage("--ops: expected 2 to 1000000 commits for syncs"));
        }
        self.rules.check()?;
        self.crash.check(self.certificate.is_wanted)
    }

    /// The levels of --durability: all three if none are named.
    fn levels(&self) -> Result<Vec<Durability>, CliError> {
        let mut levels = Vec::new();
        for word in &self.durability {
            let level = super::args::level(word)?;
            if level == Durability::Default {
                return Err(CliError::usage("--durability: no engine claims the level `default`")
                    .hint("name none, process or power, or omit --durability"));
            }
            levels.push(level);
        }
        if levels.is_empty() {
            levels = vec![Durability::None, Durability::Process, Durability::Power];
        }
        levels.sort_unstable();
        levels.dedup();
        Ok(levels)
    }

    /// The folder for databases.
    fn data(&self, usual: &str) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from(usual))
    }

    fn stall(&self, usual: u64) -> Duration {
        Duration::from_secs(self.stall_seconds.unwrap_or(usual))
    }
}

impl<'j> Job<'j> {
    fn new(args: &'j ProveArgs, plugins: &'j [PathBuf], is_shown: bool) -> Result<Job<'j>, CliError> {
        let asked = args.levels()?;
        let registry = super::plugins::registry(plugins, &args.engines)?;
        super::plugins::warn(&registry, &args.engines);
        let names = names(&registry, &args.engines)?;
        let engines = super::args::engines(&registry, &names)?;
        let contestants = super::args::options(&engines, &names, &args.options)?;
        Ok(Job { args, plugins, names, engines, contestants, asked, is_shown })
    }

    /// The engines, with their names as given and their options.
    fn each(&self) -> impl Iterator<Item = (&str, &Engine, &[(String, String)])> {
        let options = self.contestants.iter().map(|contestant| &contestant.options[..]);
        let both = self.names.iter().zip(&self.engines).zip(options);
        both.map(|((name, engine), options)| (name.as_str(), engine, options))
    }

    /// The levels to test that an engine has.
    fn levels(&self, engine: &Engine) -> impl Iterator<Item = Durability> {
        self.asked.iter().copied().filter(|level| has_level(engine, *level))
    }

    /// Does something with databases in a folder, which it locks.
    fn in_folder<T>(
        &self,
        folder: &Path,
        runs: &[&str],
        work: impl FnOnce() -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let _lock = lock_folder(folder, runs)?;
        signals::count_interrupts();
        let done = work();
        progress("");
        // This removes the folder only if it is empty.
        let _ = fs::remove_dir(folder);
        done
    }

    /// Names the engines that have none of the levels: they are in no table.
    fn tell_without_level(&self) {
        let without = self.each().filter(|(_, engine, _)| self.levels(engine).next().is_none());
        let without: Vec<&str> = without.map(|(name, ..)| name).collect();
        if !without.is_empty() {
            eprintln!(
                "skipped, because they have none of the levels in --durability: {}",
                listed(&without, "and")
            );
        }
    }
}

/// Whether an engine has a level.
fn has_level(engine: &Engine, level: Durability) -> bool {
    engine.levels() & 1 << level_number(level) != 0
}

/// Shows on a terminal what is being done; an empty text removes it.
fn progress(text: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// The names that words select; all available engines, also those that are in no group, if no words are given.
fn names(registry: &Registry, words: &[String]) -> Result<Vec<String>, CliError> {
    if words.is_empty() {
        return Ok(registry.engines().iter().map(|engine| engine.name().to_string()).collect());
    }
    let of = |word: &String| if word == "mutants" { mutant_names() } else { vec![word.clone()] };
    let words: Vec<String> = words.iter().flat_map(of).collect();
    Ok(super::args::selected(registry, &words, ALL)?.names())
}

/// Whether a folder that is open has this path, and was not removed since.
fn is_at(opened: &File, folder: &Path) -> bool {
    let (own, named) = (opened.metadata(), fs::metadata(folder));
    own.is_ok_and(|own| named.is_ok_and(|named| (own.dev(), own.ino()) == (named.dev(), named.ino())))
}

/// Creates and locks the folder for databases of these runs, and removes those that a killed process has left in it. Without the
/// lock, another process would remove the databases of this one.
fn lock_folder(folder: &Path, runs: &[&str]) -> Result<File, CliError> {
    // The one that had it before may remove it at any time between these calls, and another one make a new one.
    let (opened, locked) = loop {
        fs::create_dir_all(folder).map_err(CliError::cannot("create", folder))?;
        let opened = match File::open(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(CliError::cannot("open", folder))?,
        };
        let locked = opened.try_lock();
        if locked.is_err() || is_at(&opened, folder) {
            break (opened, locked);
        }
    };
    match locked {
        Err(TryLockError::WouldBlock) => {
            Err(CliError::failed(format!("another kvdyno is using {}", folder.display()))
                .hint("wait until it has finished, or name another folder with --data"))
        }
        Ok(()) => {
            for left in runs.iter().flat_map(|run| DataFolder::leftovers(folder, run)) {
                eprintln!("removed {}, left behind by a kvdyno that was killed", left.display());
            }
            Ok(opened)
        }
        // Some file systems do not support locks.
        Err(TryLockError::Error(_)) => Ok(opened),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the lock of a folder that another process had just removed was taken, so that a third one had the folder, too.
    #[test]
    fn a_folder_that_was_removed_and_made_again_is_another_one() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("databases");
        fs::create_dir(&folder).unwrap();
        let opened = File::open(&folder).unwrap();
        assert!(is_at(&opened, &folder));
        fs::remove_dir(&folder).unwrap();
        assert!(!is_at(&opened, &folder));
        fs::create_dir(&folder).unwrap();
        assert!(!is_at(&opened, &folder));
    }
}
