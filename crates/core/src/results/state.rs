//! The words of a record: why a trial failed, what ended a phase, what a step did. The file keeps the names in kebab case.

use kvdyno_measure::shortage::Short;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

/// Why a trial failed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display, IntoStaticStr,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Cause {
    /// The engine reported an error.
    EngineError,
    /// The disk, or a configured limit, is full.
    NoSpace,
    /// The file system can hold no more files, whatever their size.
    NoInodes,
    /// No file can be opened any more.
    TooManyFiles,
    /// No process or thread can be started any more.
    TooManyProcesses,
    /// No memory is left, on the machine or under the trial's cap.
    OutOfMemory,
    /// A limit on the addresses or the data of a process was reached.
    AddressSpace,
    /// A limit on the size of a file was reached.
    FileTooLarge,
    /// No progress for `--stall-seconds`.
    Timeout,
    /// The user stopped it.
    Interrupted,
    /// A file of ours could not be read or written.
    Io,
    /// The engine cannot do what the workload asks, or not with these options.
    Refused,
    /// The fresh process that opens the database at the end died, for a reason that is not known.
    Crashed,
    /// The engine did not load all keys within the workload's `load_seconds`.
    TooSlow,
    /// The trial was not run, because an earlier one of the same engine and workload was too slow or hung.
    Skipped,
    /// Another load generator of the trial failed or ended.
    #[serde(alias = "rank-lost")]
    LoadGeneratorLost,
}

/// What ended a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndedBy {
    /// All of its ops were done.
    Count,
    /// Its time was over.
    Time,
    /// It was steady.
    Steady,
    /// No key was left to insert.
    Keys,
    /// The trial failed.
    Failure,
}

/// What a step outside the phases does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display, IntoStaticStr,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StepKind {
    /// Opens the database for the first time in the trial.
    Open,
    /// Closes it.
    Close,
    /// Opens it again.
    Reopen,
    /// Reads the keys and sizes of a database that another program made.
    Survey,
    /// Waits for the engine's background work.
    Settle,
    /// Drops the page cache.
    DropCaches,
    /// Reads everything once more at the end.
    Sweep,
}

/// The role of a thread in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Runs the phase's mix.
    Mix,
    /// Only gets.
    Reader,
    /// Only puts.
    Writer,
}

impl Cause {
    /// Whether the later runs of the same engine and workload are skipped: each would take as long, and with one run missing
    /// the engine has no rank anyway.
    pub fn skips_other_runs(self) -> bool {
        matches!(self, Cause::TooSlow | Cause::Timeout)
    }

    /// Whether the engine does not suit the workload, which is not an error: it was refused or is too slow.
    pub fn is_unfitness(self) -> bool {
        matches!(self, Cause::Refused | Cause::TooSlow | Cause::Skipped)
    }

    /// Whether something outside the engine was short: a limit, the disk or memory.
    pub fn is_shortage(self) -> bool {
        use Cause::*;
        matches!(
            self,
            NoSpace | NoInodes | TooManyFiles | TooManyProcesses | OutOfMemory | AddressSpace | FileTooLarge
        )
    }

    /// As records have it: `engine-error`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl From<Short> for Cause {
    fn from(short: Short) -> Cause {
        match short {
            Short::Space => Cause::NoSpace,
            Short::Inodes => Cause::NoInodes,
            Short::OpenFiles => Cause::TooManyFiles,
            Short::Processes => Cause::TooManyProcesses,
            Short::AddressSpace => Cause::AddressSpace,
            Short::Memory => Cause::OutOfMemory,
            Short::FileSize => Cause::FileTooLarge,
        }
    }
}

impl StepKind {
    /// As records have it: `drop-caches`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn names_are_those_in_the_file() {
        for cause in Cause::VARIANTS {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
        }
        for step in StepKind::VARIANTS {
            assert_eq!(serde_json::to_value(step).unwrap(), step.name());
        }
    }
}
