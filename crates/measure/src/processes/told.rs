//! The lines that a process of a task writes to its stdout for the one that started it. All others are an engine's.

use super::{Blocked, Left};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The prefix of each of these lines; JSON follows.
const TOLD: &str = "kvdyno-told ";

/// What begins the line about an access to a guard page on stderr, which is for people.
pub const GUARD: &str = "kvdyno-guard: ";

/// What precedes and follows the text of an access to a guard page, which has no quotes, in the line about it. The handler of a
/// signal writes it.
pub const TRESPASS: [&str; 2] = ["kvdyno-told {\"trespass\":\"", "\"}"];

/// One of these lines.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Told<M> {
    /// From the task.
    Message(M),
    /// From the handler of a signal: the access to a guard page that ends the process.
    Trespass(String),
    /// From the guard, at the end.
    Left(Left),
}

/// Writes a message of a task.
pub fn write_message(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    write(out, "", &Told::Message(message))
}

/// Writes the guard's last line. What an engine has printed may have no line end.
pub(super) fn write_left(out: &mut impl Write, left: Vec<String>, blocked: Vec<Blocked>) -> io::Result<()> {
    write(out, "\n", &Told::<()>::Left(Left { left, blocked }))
}

fn write(out: &mut impl Write, before: &str, told: &Told<impl Serialize>) -> io::Result<()> {
    // In one piece: threads of an engine may print at the same time.
    out.write_all(format!("{before}{TOLD}{}\n", serde_json::to_string(told)?).as_bytes())?;
    out.flush()
}

/// What a line tells, and what precedes that: output of an engine without a line end. `None`: all of it is output.
pub(super) fn told<M: DeserializeOwned>(line: &str) -> Option<(&str, Told<M>)> {
    line.match_indices(TOLD).find_map(|(at, _)| {
        let told = serde_json::from_str(&line[at + TOLD.len()..]).ok()?;
        Some((&line[..at], told))
    })
}

/// The messages of a task, and the other lines that its process has printed.
pub fn messages_of<M: DeserializeOwned>(stdout: &str) -> (Vec<M>, Vec<String>) {
    let (mut messages, mut printed) = (Vec::new(), Vec::new());
    for line in stdout.lines() {
        let before = match told(line) {
            Some((before, Told::Message(message))) => {
                messages.push(message);
                before
            }
            Some((before, Told::Trespass(_) | Told::Left(_))) => before,
            None => line,
        };
        if !before.is_empty() {
            printed.push(before.to_string());
        }
    }
    (messages, printed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_an_engine_is_no_message() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, &"kvdyno-told {").unwrap();
        let line = String::from_utf8(bytes).unwrap();
        let message = || Told::Message("kvdyno-told {".to_string());
        assert_eq!(told(line.trim_end()), Some(("", message())));
        for before in ["opened /tmp/kvdyno-0001/db", "kvdyno-told {\"message\":", "kvdyno-told "] {
            assert_eq!(told::<String>(before), None);
            let line = format!("{before}{}", line.trim_end());
            assert_eq!(told(&line), Some((before, message())), "{line}");
        }
        // A message of another task.
        assert_eq!(told::<u64>(line.trim_end()), None);
        assert_eq!(told::<String>("{\"message\":\"kvdyno\"}"), None);
    }

    #[test]
    fn the_guard_begins_a_new_line() {
        let mut bytes = b"no line end".to_vec();
        write_left(&mut bytes, vec!["sleep".into()], Vec::new()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (first, last) = text.split_once('\n').unwrap();
        assert_eq!(first, "no line end");
        let left = Left { left: vec!["sleep".into()], blocked: Vec::new() };
        assert_eq!(told::<String>(last.trim_end()), Some(("", Told::Left(left))));
    }

    #[test]
    fn a_handler_of_a_signal_writes_a_line() {
        let line = TRESPASS.join("rule 5");
        assert_eq!(told::<String>(&line), Some(("", Told::Trespass("rule 5".into()))));
    }

    #[test]
    fn messages_and_output_are_told_apart() {
        let stdout = "a\nkvdyno-told {\"message\":7}\n\nb kvdyno-told {\"message\":8}\nkvdyno-told {\"trespass\":\"c\"}\nd";
        assert_eq!(messages_of(stdout), (vec![7, 8], ["a", "b ", "d"].map(String::from).to_vec()));
    }
}
