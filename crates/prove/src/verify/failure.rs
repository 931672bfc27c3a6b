//! Why a step of a check failed.

use crate::machine::MachineError;
use kvdyno_core::engine::EngineError;
use std::borrow::Cow;

/// An engine returned an error from a call that is not an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {error}")]
pub struct CallError {
    /// The call, such as `open`.
    pub call: Cow<'static, str>,
    /// What it returned.
    pub error: EngineError,
}

impl CallError {
    /// Turns the error of such a call into one that names it.
    pub fn of(call: impl Into<Cow<'static, str>>) -> impl FnOnce(EngineError) -> CallError {
        move |error| CallError { call: call.into(), error }
    }
}

/// Why a step of a check failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The driver broke a rule, or its answer is not that of the oracle: what was seen.
    #[error("{0}")]
    Broken(String),
    /// The engine returned an error.
    #[error(transparent)]
    Engine(#[from] CallError),
    /// The machine refused something.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The head of the file of rows is not JSON.
    #[error(transparent)]
    Head(#[from] serde_json::Error),
    /// The check itself could not go on.
    #[error("{0}")]
    Check(&'static str),
    /// The check panicked.
    #[error("panic in the check: {0}")]
    Panic(String),
    /// Another failure, and where or how it was found.
    #[error("{before}{failure}{after}")]
    Told {
        /// Words before its text.
        before: String,
        /// What failed.
        failure: Box<Failure>,
        /// Words after its text.
        after: String,
    },
}

impl Failure {
    /// The same, with the place where it was found.
    pub(super) fn at(self, place: impl std::fmt::Display) -> Failure {
        Failure::Told { before: format!("{place}: "), failure: self.into(), after: String::new() }
    }

    /// The same, with more words at the end.
    pub(super) fn with(self, after: impl Into<String>) -> Failure {
        Failure::Told { before: String::new(), failure: self.into(), after: after.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_words_around_a_failure_say_where_it_was_found() {
        let error = EngineError { status: 10, text: "no space".into() };
        let failure =
            Failure::from(CallError::of("open")(error)).with(" (a hint)").at("round 1").at("thread 2");
        assert_eq!(failure.to_string(), "thread 2: round 1: open: no space (a hint)");
        let refused = MachineError::file("write", Path::new("/a/b"))(std::io::ErrorKind::NotFound.into());
        assert_eq!(Failure::from(refused).to_string(), "cannot write /a/b: entity not found");
    }
}
