//! Names in the outcome of a failed trial what it was short of, as far as that is known: space, inodes, open files, processes,
//! memory.

use super::phase_data::Failure;
use crate::results::{Cause, Outcome};
use kvdyno_measure::shortage::{Scene, Short, Shortage, felt, telling_line};
use kvdyno_measure::text::middle_text;
use std::path::Path;

/// Characters of a line of stderr that an outcome has.
const LINE: usize = 300;

/// A failure of this process, with what it is short of. The database in `data` is still open, if it was.
pub(super) fn failure(failure: Failure, data: &Path) -> Failure {
    let scene = Scene::of_database(data);
    let found = match failure.cause {
        Cause::EngineError | Cause::Io => scene
            .of_error(&failure.text)
            .or_else(|| scene.full())
            .or_else(|| felt().map(|of| scene.named(of))),
        // A configured limit of the engine may be meant.
        Cause::NoSpace => scene.of_error(&failure.text).or_else(|| scene.full()),
        // As it was felt when the op failed.
        Cause::TooManyFiles => Some(scene.named(Short::OpenFiles)),
        Cause::TooManyProcesses => Some(scene.named(Short::Processes)),
        Cause::AddressSpace => Some(scene.named(Short::AddressSpace)),
        _ => None,
    };
    match found {
        Some(shortage) => of_error(&shortage, &failure.text),
        None => failure,
    }
}

/// The failure of an open, if it is due to a shortage; otherwise the engine refuses what it is asked for.
pub(super) fn of_open(text: &str, data: &Path) -> Option<Failure> {
    let scene = Scene::of_database(data);
    let shortage =
        scene.of_error(text).or_else(|| scene.full()).or_else(|| felt().map(|of| scene.named(of)))?;
    Some(of_error(&shortage, text))
}

fn of_error(shortage: &Shortage, text: &str) -> Failure {
    Failure { cause: shortage.of.into(), text: named(shortage, text) }
}

/// A text that begins with the shortage, unless another process has put it there.
fn named(shortage: &Shortage, text: &str) -> String {
    let phrase = shortage.text.split(" (").next().unwrap_or_default();
    if text.contains(phrase) { text.to_string() } else { format!("{}: {text}", shortage.text) }
}

/// The outcome of a trial whose processes have ended.
pub(super) fn outcome(outcome: Outcome, scene: &Scene<'_>) -> Outcome {
    match outcome {
        Outcome::Crashed { signal, stderr, .. } => {
            let Some(shortage) = scene.of_death(&signal, stderr.iter().map(String::as_str)) else {
                return Outcome::Crashed { signal, stderr, suspects: scene.suspects() };
            };
            let line = telling_line(stderr.iter().map(String::as_str));
            let line = line.map_or_else(String::new, |line| format!(": {}", middle_text(line, LINE)));
            // The kernel kills a process with this signal when memory runs out, so it tells nothing more.
            let is_plain = shortage.of == Short::Memory && signal == "SIGKILL";
            let died = if is_plain { String::new() } else { format!("; it died of {signal}{line}") };
            Outcome::Failed { cause: shortage.of.into(), text: format!("{}{died}", shortage.text) }
        }
        Outcome::Failed { cause: Cause::Crashed, text } => {
            match scene.of_death(&text, std::iter::once(text.as_str())) {
                Some(shortage) => {
                    Outcome::Failed { cause: shortage.of.into(), text: named(&shortage, &text) }
                }
                None => Outcome::Failed { cause: Cause::Crashed, text: with(text, low(scene)) },
            }
        }
        // Its process could not be started, or a file of ours not be written.
        Outcome::Failed { cause: Cause::Io, text } => match scene.of_error(&text) {
            Some(shortage) => Outcome::Failed { cause: shortage.of.into(), text: named(&shortage, &text) },
            None => Outcome::Failed { cause: Cause::Io, text },
        },
        // It is not known why it hangs, but this may be the reason.
        Outcome::Failed { cause: Cause::Timeout, text } => {
            let reason = scene.full().map(|shortage| shortage.text).or_else(|| low(scene));
            Outcome::Failed { cause: Cause::Timeout, text: with(text, reason) }
        }
        // An engine must keep what it has acknowledged, or report that it cannot.
        Outcome::WrongAnswers { mut faults } => {
            let reason = scene.full().map(|shortage| shortage.text).or_else(|| low(scene));
            if let Some(first) = faults.first_mut() {
                *first = with(std::mem::take(first), reason);
            }
            Outcome::WrongAnswers { faults }
        }
        // A process that the engine started was killed, so that an op failed, or it could not be opened.
        Outcome::Failed { cause: Cause::EngineError | Cause::Refused, text }
            if has_lost_a_process(&text, scene) =>
        {
            let shortage = scene.named(Short::Memory);
            Outcome::Failed { cause: shortage.of.into(), text: named(&shortage, &text) }
        }
        // An engine may stop without reporting what it lacked, and free it before it has stopped.
        Outcome::Failed { cause: Cause::EngineError, text } => {
            Outcome::Failed { cause: Cause::EngineError, text: with(text, low(scene)) }
        }
        outcome => outcome,
    }
}

/// Whether the kernel has killed a process of the trial because memory ran out. Without a counter of the cap it may have been one of
/// another program, unless the text says that one was killed.
fn has_lost_a_process(text: &str, scene: &Scene<'_>) -> bool {
    let is_killed = || ["SIGKILL", "signal: killed"].iter().any(|words| text.contains(words));
    scene.cap.is_some_and(|cap| cap.kills > Some(0)) || (scene.out_of_memory && is_killed())
}

/// What is unusually low and may be the reason; none: nothing is.
fn low(scene: &Scene<'_>) -> Option<String> {
    scene.suspects().map(|low| format!("these are low: {low}"))
}

/// A text with a possible reason at its end.
fn with(text: String, reason: Option<String>) -> String {
    match reason {
        Some(reason) => format!("{text}; {reason}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvdyno_measure::CapRecord;

    #[test]
    fn what_cannot_be_opened_because_a_process_of_it_was_killed_lacks_memory() {
        let folder = tempfile::tempdir().unwrap();
        let cap = |kills| CapRecord {
            version: "v2".into(),
            limit_bytes: Some(16 << 20),
            peak_bytes: None,
            limit_hits: Some(1),
            kills,
        };
        let cause = |kills: Option<u64>, out_of_memory, cause, text: &str| {
            let cap = cap(kills);
            let scene = Scene { data: folder.path(), cap: Some(&cap), out_of_memory };
            match outcome(Outcome::Failed { cause, text: text.into() }, &scene) {
                Outcome::Failed { cause, .. } => cause,
                other => panic!("{other:?}"),
            }
        };
        for failed in [Cause::Refused, Cause::EngineError] {
            assert_eq!(cause(Some(1), true, failed, "cannot connect"), Cause::OutOfMemory);
            assert_eq!(cause(Some(0), false, failed, "cannot connect"), failed);
            // The machine's counter may have counted another program.
            assert_eq!(cause(None, true, failed, "cannot connect"), failed);
            assert_eq!(cause(None, true, failed, "it has ended (signal: 9 (SIGKILL))"), Cause::OutOfMemory);
            assert_eq!(cause(None, false, failed, "it has ended (signal: killed)"), failed);
        }
    }
}
