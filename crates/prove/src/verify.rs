//! Conformance: checks an engine's driver against the rules of driver.h. Declared capabilities are tested with random
//! ops against an oracle; undeclared ones must be refused. The checks run in this process; the command starts it as a
//! child, so that a crash or a hang is a result too.

pub(crate) mod act;
pub(crate) mod caller;
mod check_cache;
mod check_contended;
mod check_groups;
mod check_indexes;
mod check_kinds;
mod check_levels;
mod check_lists;
mod check_model;
mod check_open;
mod check_refusals;
mod check_scans;
mod check_threads;
mod check_time;
mod check_values;
pub(crate) mod draw;
mod failure;
mod fresh;
mod model;
mod shrink;
pub(crate) mod subject;
#[cfg(test)]
mod tests;

use kvdyno_core::engine::abi::*;
use kvdyno_core::engine::{Engine, capability_names};
use kvdyno_measure::{Clock, Printed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use subject::Context;

pub use failure::{CallError, Failure};
pub use fresh::{Fresh, reopened};

/// How much is tested.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effort {
    /// The same seed draws the same ops.
    pub seed: u64,
    /// Random ops of the model check; the other checks draw a share of it.
    pub ops: u64,
    /// A check stops drawing ops after this time, seconds. The ops drawn until then are the first ones that the seed
    /// produces.
    pub seconds: f64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { seed: 1, ops: 20_000, seconds: 5.0 }
    }
}

/// Which checks run and with which options; by default all checks and no options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Names of checks; empty: all.
    pub checks: Vec<String>,
    /// `name=value` pairs of the driver's options, set in every database.
    pub settings: Vec<(String, String)>,
}

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The claim holds.
    Passed,
    /// What was seen, and which rule it breaks.
    Failed(String),
    /// Why the check does not apply to this engine.
    Skipped(String),
}

/// One check of one engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// One of [`check_names`].
    pub name: String,
    /// Its result.
    pub outcome: Outcome,
}

/// The result of requesting one durability level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LevelRow {
    /// `none`, `process`, `power` or `default`.
    pub asked: String,
    /// The effective level; `None` if open refused.
    #[serde(rename = "in_force")]
    pub effective: Option<String>,
    /// The error text of open when it refused.
    pub refusal: Option<String>,
    /// Whether the written data was there after close and reopen; `None` if the engine is in memory or open refused.
    pub is_kept: Option<bool>,
}

/// All checks of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Its name.
    pub engine: String,
    /// The version of the engine's library, as reported by the driver.
    pub version: Option<String>,
    /// Declared capabilities, by name.
    pub capabilities: Vec<String>,
    /// How much was tested.
    pub effort: Effort,
    /// The durability levels.
    pub levels: Vec<LevelRow>,
    /// In the order in which they ran.
    pub checks: Vec<CheckResult>,
    /// Observations that are not faults but worth knowing.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds the check that no process is left after the engine's own process has ended; `names`: the processes that
    /// were.
    pub fn add_left(&mut self, names: &[String]) {
        let outcome = match names {
            [] => Outcome::Passed,
            names => Outcome::Failed(format!(
                "{} started by the driver still ran after the engine's process had ended: {}; close must end everything \
                 that the driver has started (rule 9 of driver.h: nothing runs after close)",
                if names.len() == 1 { "1 process".into() } else { format!("{} processes", names.len()) },
                names.join(", ")
            )),
        };
        self.checks.push(CheckResult { name: "processes".into(), outcome });
    }

    /// Adds the check that the driver and its engine printed nothing; `printed`: what was printed in each check.
    pub fn add_printed(&mut self, printed: &[(String, Printed)]) {
        let mut printed = printed.iter().filter(|(_, printed)| !printed.is_empty());
        let may_be = |(check, printed): &(String, Printed)| {
            let is_provoked = PROVOKES_ERRORS.contains(&check.as_str());
            is_provoked.then(|| format!("{check}: the engine {}", printed.text()))
        };
        let outcome = printed.clone().find(|printed| may_be(printed).is_none()).map_or(
            Outcome::Passed,
            |(check, printed)| {
                Outcome::Failed(format!(
                    "in check {check}, the driver or its engine {} (rule 9 of driver.h: drivers never print; turn the \
                     engine's messages off, or let it call the driver with them)",
                    printed.text()
                ))
            },
        );
        self.notes.extend(printed.by_ref().filter_map(may_be));
        self.checks.push(CheckResult { name: "output".into(), outcome });
    }

    /// Whether no check failed.
    pub fn is_green(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The names and texts of the checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.checks.iter().filter_map(|check| match &check.outcome {
            Outcome::Failed(text) => Some((&check.name[..], &text[..])),
            _ => None,
        })
    }
}

/// Why a check ends early.
enum Halt {
    Failed(Failure),
    Skipped(String),
}

impl<F: Into<Failure>> From<F> for Halt {
    fn from(failure: F) -> Halt {
        Halt::Failed(failure.into())
    }
}

/// A text of a check is what it has found.
impl From<String> for Halt {
    fn from(text: String) -> Halt {
        Halt::Failed(Failure::Broken(text))
    }
}

impl From<&str> for Halt {
    fn from(text: &str) -> Halt {
        Halt::from(text.to_string())
    }
}

/// Ends a check that does not apply to this engine.
fn skip<T>(reason: &str) -> Result<T, Halt> {
    Err(Halt::Skipped(reason.to_string()))
}

/// The result of a check.
type Found = Result<(), Halt>;

/// A check.
struct Check {
    name: &'static str,
    /// Whether it applies to an engine that stores nothing.
    of_floors: bool,
    run: fn(&Context<'_>) -> Found,
}

const fn check(name: &'static str, run: fn(&Context<'_>) -> Found) -> Check {
    Check { name, of_floors: false, run }
}

const fn check_of_all(name: &'static str, run: fn(&Context<'_>) -> Found) -> Check {
    Check { name, of_floors: true, run }
}

/// All checks, in the order in which they run: those that others rely on come first.
static CHECKS: &[Check] = &[
    check_of_all("open", check_open::effective),
    check_of_all("options", check_open::options),
    check_of_all("open-errors", check_open::errors),
    check_of_all("sessions", check_open::sessions),
    check("basics", check_values::basics),
    check("empty-values", check_values::empty),
    check("short-get", check_values::short_get),
    check("independent-values", check_values::independent),
    check("touch", check_values::touch),
    check("large", check_values::large),
    check("largest-value", check_values::largest_value),
    check("too-large-key", check_values::too_large_key),
    check("volume", check_values::volume),
    check("overwrite", check_kinds::overwrite),
    check("new", check_kinds::new),
    check("delete", check_kinds::delete),
    check("merge-add", check_kinds::merge_add),
    check("merge-append", check_kinds::merge_append),
    check("keyspaces", check_kinds::keyspaces),
    check("indexes", check_indexes::indexes),
    check("indexes-atomic", check_indexes::atomic),
    check("collections", check_kinds::collections),
    check("lists", check_lists::in_order),
    check("lists-reopen", check_lists::with_reopen),
    check("time-to-live", check_kinds::time_to_live),
    check("scan-forward", check_scans::forward),
    check("scan-reverse", check_scans::reverse),
    check("scan-prefix", check_scans::prefix),
    check("scan-pieces", check_scans::pieces),
    check("scan-hold", check_scans::hold),
    check("cache", check_cache::keeps_some_and_never_a_wrong_value),
    check("groups", check_groups::joined),
    check("multi-get", check_groups::multi_get),
    check("transaction", check_groups::transaction),
    check("transaction-keyspaces", check_groups::transaction_keyspaces),
    check("transaction-merge", check_groups::transaction_merge),
    check("transaction-reads", check_groups::transaction_reads),
    check("transaction-failure", check_groups::failure),
    check("long-transaction", check_groups::long_transaction),
    check("refusals", check_refusals::undeclared),
    check("honest-time", check_time::honest),
    check_of_all("stop-word", check_time::stop_word),
    check_of_all("deadline", check_time::deadline),
    check_of_all("due", check_time::due),
    check("model", check_model::random),
    check("model-reopen", check_model::with_reopen),
    check("threads", check_threads::disjoint),
    check("threads-driven", check_threads::driven),
    check("threads-atomic", check_threads::atomic),
    check("threads-contended", check_contended::contended),
    check("levels", check_levels::levels),
    check("creation", check_levels::creation),
    check("campaigns", check_levels::campaigns),
    check("maintain", check_levels::maintain),
    // Last, because it also reports what the calls of all other checks showed.
    check_of_all("stamps", check_time::stamps),
];

/// Checks that provoke errors, which many libraries print: that is noted, and no fault.
const PROVOKES_ERRORS: &[&str] = &["open-errors"];

/// The names of all checks, in the order in which they run.
pub fn check_names() -> Vec<&'static str> {
    CHECKS.iter().map(|check| check.name).collect()
}

/// Runs every check on an engine. `data` is an empty folder; databases are created below it, and the caller deletes
/// them. `fresh` reopens databases that must survive in a new process; if it is `None`, they are reopened in this
/// process only. `begun` receives each check's name before it runs. An engine that cannot be checked at all and
/// everything that it does wrong are in the report.
pub fn verify(
    engine: &Engine,
    data: &Path,
    effort: Effort,
    choice: &Choice,
    fresh: Option<Fresh<'_>>,
    mut begun: impl FnMut(&str),
) -> Report {
    let mut context = Context::new(engine, data, effort, Clock::calibrate(), fresh);
    context.settings.clone_from(&choice.settings);
    let mut report = Report {
        engine: engine.name().to_string(),
        version: None,
        capabilities: capability_names(engine.capabilities()).into_iter().map(str::to_string).collect(),
        effort,
        levels: Vec::new(),
        checks: Vec::new(),
        notes: Vec::new(),
    };
    let probed = guarded(|| Ok(check_open::probe(&mut context)?));
    let lack = match probed {
        Ok(version) => {
            report.version = Some(version).filter(|version| !version.is_empty());
            None
        }
        Err(Halt::Failed(failure)) => Some(failure.to_string()),
        Err(Halt::Skipped(text)) => Some(text),
    };
    let is_chosen =
        |check: &&Check| choice.checks.is_empty() || choice.checks.iter().any(|name| name == check.name);
    for check in CHECKS.iter().filter(is_chosen) {
        begun(check.name);
        let outcome = match &lack {
            Some(text) if check.name == "open" || !choice.checks.is_empty() => Outcome::Failed(text.clone()),
            Some(_) => Outcome::Skipped("the engine cannot be used".into()),
            None if engine.capabilities() & KV_STORES_NOTHING != 0 && !check.of_floors => {
                Outcome::Skipped("the engine stores nothing".into())
            }
            None => match guarded(|| (check.run)(&context)) {
                Ok(()) => Outcome::Passed,
                Err(Halt::Failed(failure)) => Outcome::Failed(failure.to_string()),
                Err(Halt::Skipped(text)) => Outcome::Skipped(text),
            },
        };
        report.checks.push(CheckResult { name: check.name.to_string(), outcome });
    }
    report.levels = context.levels.take();
    report.notes = context.notes.take();
    report
}

/// Runs a check; a panic in it fails the check.
fn guarded<T>(work: impl FnOnce() -> Result<T, Halt>) -> Result<T, Halt> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Halt::Failed(Failure::Panic(text.unwrap_or_default())))
    })
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("-");
        writeln!(out, "{} {version}, seed {}", self.engine, self.effort.seed)?;
        for check in &self.checks {
            let (word, text) = match &check.outcome {
                Outcome::Passed => ("ok", ""),
                Outcome::Failed(text) => ("FAILED", &text[..]),
                Outcome::Skipped(text) => ("-", &text[..]),
            };
            writeln!(out, "{}", format!("  {:<22} {word:<7} {text}", check.name).trim_end())?;
        }
        for row in &self.levels {
            let effective = row.effective.as_deref().unwrap_or("refused");
            let kept = match row.is_kept {
                Some(true) => "kept after close and reopen",
                Some(false) => "NOT kept after close and reopen",
                None => row.refusal.as_deref().unwrap_or("in memory"),
            };
            writeln!(out, "  level {:<16} {effective:<7} {kept}", row.asked)?;
        }
        for note in &self.notes {
            writeln!(out, "  note: {note}")?;
        }
        let count =
            |wanted: fn(&Outcome) -> bool| self.checks.iter().filter(|check| wanted(&check.outcome)).count();
        let passed = count(|outcome| *outcome == Outcome::Passed);
        let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        write!(out, "  {passed} passed, {failed} failed, {skipped} skipped")
    }
}
