//! An engine in a process of a check: how it gets there, and how driving it can fail.

use crate::verify::act::{Reply, status_name};
use kvdyno_core::engine::{Engine, EngineError, Registry};
use std::fmt::Display;
use std::io;
use std::path::Path;
use thiserror::Error;

/// Why a process could not drive an engine to the end.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Its calls cannot be observed on this machine.
    #[error("no seccomp notification ({0}); `kvdyno doctor` says what this machine allows")]
    Unobserved(io::Error),
    /// The plug-in cannot be loaded.
    #[error("{0}")]
    Plugin(String),
    /// The plug-in has no such engine.
    #[error("the engine is no longer available")]
    Gone,
    /// There is no folder for its database.
    #[error("{0}")]
    Folder(String),
    /// The engine cannot be opened, or its driver broke a rule.
    #[error("{0}")]
    Driver(String),
    /// The engine returned an error for something that is no op.
    #[error("{call}: {error}")]
    Engine {
        /// What it was asked to do.
        call: &'static str,
        /// What it returned.
        error: EngineError,
    },
    /// An op failed.
    #[error("{op} has the status {}{}", status_name(*status), after_colon(said.as_deref()))]
    Status {
        /// The kind of op, with its article.
        op: &'static str,
        /// Its status.
        status: u32,
        /// What the engine says about it.
        said: Option<String>,
    },
    /// An op lost against other threads each time.
    #[error("{op} had a conflict {times} times")]
    Conflicts {
        /// The kind of op, with its article.
        op: &'static str,
        /// How often it was tried.
        times: u32,
    },
    /// A thread ended by a panic.
    #[error("a thread panicked")]
    Panicked,
    /// One of these errors, and where.
    #[error("{place}: {error}")]
    At {
        /// What was being done.
        place: String,
        /// The error.
        error: Box<DriveError>,
    },
}

impl DriveError {
    pub(crate) fn driver(error: impl Display) -> DriveError {
        DriveError::Driver(error.to_string())
    }

    /// What to do with an error of the engine: `call` says what it was asked to do.
    pub(crate) fn engine(call: &'static str) -> impl FnOnce(EngineError) -> DriveError {
        move |error| DriveError::Engine { call, error }
    }

    pub(crate) fn status(op: &'static str, answer: &Reply) -> DriveError {
        DriveError::Status { op, status: answer.status, said: answer.said.clone() }
    }

    pub(crate) fn at(self, place: impl Into<String>) -> DriveError {
        DriveError::At { place: place.into(), error: Box::new(self) }
    }
}

fn after_colon(text: Option<&str>) -> String {
    text.map_or(String::new(), |text| format!(": {text}"))
}

/// The engine with this name, whose plug-in is the only one that is loaded.
pub(crate) fn engine(name: &str, plugin: Option<&Path>) -> Result<Engine, DriveError> {
    let registry = Registry::alone(plugin).map_err(|error| DriveError::Plugin(error.to_string()))?;
    registry.engine(name).map_err(|_| DriveError::Gone)
}
