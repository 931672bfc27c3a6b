//! How a process ended, in words.

use crate::signals::signal_name;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It exited with this code.
    Exited(i32),
    /// The signal with this name ended it.
    Died(String),
    /// It could not be killed.
    Unkillable,
}

impl Fate {
    /// By the status of a process; `None` if it could not be killed.
    pub fn of(status: Option<ExitStatus>) -> Fate {
        match status.map(|status| (status.signal(), status.code())) {
            Some((Some(signal), _)) => Fate::Died(signal_name(signal)),
            Some((None, Some(code))) => Fate::Exited(code),
            Some((None, None)) | None => Fate::Unkillable,
        }
    }

    /// `its process died of SIGSEGV`, of one that ended before it was done; `who` is `its process`.
    pub fn text(&self, who: &str) -> String {
        match self {
            Fate::Exited(code) => format!("{who} ended early, with exit code {code}"),
            Fate::Died(signal) => format!("{who} died of {signal}"),
            Fate::Unkillable => format!("{who} could not be killed"),
        }
    }

    /// `SIGSEGV` or `exit 1`, as records have it.
    pub fn word(&self) -> String {
        match self {
            Fate::Exited(code) => format!("exit {code}"),
            Fate::Died(signal) => signal.clone(),
            Fate::Unkillable => "unknown".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fate_is_put_into_words() {
        let of = |raw| Fate::of(Some(ExitStatus::from_raw(raw)));
        for (fate, text, word) in [
            (of(3 << 8), "its process ended early, with exit code 3", "exit 3"),
            (of(libc::SIGSEGV), "its process died of SIGSEGV", "SIGSEGV"),
            (Fate::of(None), "its process could not be killed", "unknown"),
        ] {
            assert_eq!((fate.text("its process").as_str(), fate.word().as_str()), (text, word));
        }
    }
}
