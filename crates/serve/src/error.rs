//! Errors: of the store, of a command, and of the server.

use kvdyno_core::engine::EngineError;
use std::borrow::Cow;
use std::io;

/// Why the store cannot do what a command needs. Its text is that of an error reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The engine has failed.
    #[error("ERR engine: {0}")]
    Engine(#[from] EngineError),
    /// The engine lacks a capability.
    #[error("ERR {what} needs the capability `{capability}`, which this engine lacks")]
    Lacks {
        /// What needs it.
        what: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// The engine cannot delete.
    #[error("ERR this engine cannot delete")]
    CannotDelete,
    /// The row is longer than the engine allows.
    #[error("ERR the key needs {bytes} bytes in the engine; the maximum is {most}")]
    LongKey {
        /// Its length.
        bytes: usize,
        /// The greatest length.
        most: usize,
    },
    /// The values and keys of a transaction, or one value, need too much memory.
    #[error("ERR the transaction needs {bytes} bytes; the maximum is {most}")]
    LargeTransaction {
        /// What it needs.
        bytes: usize,
        /// The most that it gets.
        most: usize,
    },
    /// The reply is too large.
    #[error("ERR the reply needs more than {most} bytes")]
    LargeReply {
        /// The most that it may have.
        most: usize,
    },
    /// A value changed while it was read.
    #[error("ERR a value changed while it was read")]
    Changed,
}

/// Why a command failed. Its text is that of the error reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// The request is wrong: a code and a text, as Redis writes them.
    #[error("{0}")]
    Request(Cow<'static, str>),
    /// The database contains what this server did not write.
    #[error("{0}")]
    Foreign(&'static str),
    /// The store cannot do what the command needs.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<&'static str> for Refusal {
    fn from(text: &'static str) -> Refusal {
        Refusal::Request(text.into())
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Request(text.into())
    }
}

/// Why the server has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The engine did not open a session.
    #[error("cannot open a session: {0}")]
    Open(EngineError),
    /// The engine did not end a session.
    #[error("cannot end a session: {0}")]
    End(EngineError),
    /// The engine did not flush the writes at the end.
    #[error("flush: {0}")]
    Flush(EngineError),
    /// The rows of the server itself cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine has refused a thread.
    #[error(transparent)]
    Thread(io::Error),
    /// The machine has refused what is needed to wait.
    #[error("cannot wait for {what}: {error}")]
    Wait {
        /// What is waited for.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// A bug of the server.
    #[error("a thread of the server has panicked")]
    Panicked,
}
