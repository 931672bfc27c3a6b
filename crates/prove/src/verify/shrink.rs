//! Shrinks a sequence of ops that made an engine differ from the oracle: steps are removed, first half of them at a
//! time and finally one by one, as long as the engine still differs on a new database.

use super::act::{Act, group_end};
use super::failure::Failure;
use super::subject::Subject;
use kvdyno_core::engine::abi::*;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Maximum number of sequences to try.
const TRIALS: usize = 400;
/// No more sequences are tried after this time.
const LIMIT: Duration = Duration::from_secs(8);
/// Maximum number of ops to show.
const LINES: usize = 20;

/// One step of a check.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Ops of one call.
    Call(Vec<Act>),
    /// Close and open.
    Reopen,
    /// All rows are read, and keys that may be absent.
    Compare(Vec<Vec<u8>>),
}

impl Step {
    /// Executes it and checks the answers against the oracle.
    pub(super) fn run(&self, subject: &mut Subject<'_>) -> Result<(), Failure> {
        match self {
            Step::Call(acts) => subject.run(acts).map(drop),
            Step::Reopen => subject.reopen(),
            Step::Compare(keys) => subject.compare(keys),
        }
    }

    /// The ops in it.
    pub(super) fn ops(&self) -> usize {
        if let Step::Call(acts) = self { acts.len() } else { 0 }
    }

    /// One step per group of its ops.
    fn split(step: &Rc<Step>) -> Vec<Rc<Step>> {
        let Step::Call(acts) = &**step else { return vec![Rc::clone(step)] };
        let mut parts = Vec::new();
        let mut first = 0;
        while first < acts.len() {
            let end = group_end(acts, first);
            parts.push(Rc::new(Step::Call(acts[first..end].to_vec())));
            first = end;
        }
        parts
    }

    /// One step per op, without groups.
    fn loosen(step: &Rc<Step>) -> Vec<Rc<Step>> {
        let Step::Call(acts) = &**step else { return vec![Rc::clone(step)] };
        let alone = |act: &Act| Act { flags: act.flags & !(KV_JOIN | KV_ATOMIC), ..act.clone() };
        acts.iter().map(|act| Rc::new(Step::Call(vec![alone(act)]))).collect()
    }
}

/// Tries sequences until one of the limits is reached.
struct Trials<'a, 'e> {
    open: &'a dyn Fn() -> Result<Subject<'e>, Failure>,
    left: usize,
    until: Instant,
}

impl Trials<'_, '_> {
    /// What is wrong after these steps on a new database; `None` if nothing is, or if it was not tried.
    fn fault(&mut self, steps: &[Rc<Step>]) -> Option<Failure> {
        if self.left == 0 || Instant::now() > self.until {
            return None;
        }
        self.left -= 1;
        let mut subject = (self.open)().ok()?;
        let fault = steps.iter().find_map(|step| step.run(&mut subject).err());
        // The database is suspect, and no longer needed.
        let _ = subject.close();
        let _ = std::fs::remove_dir_all(&subject.setup.folder);
        fault
    }

    /// Removes steps, this many at a time, then half as many, as long as the rest still fails.
    fn thin(&mut self, steps: &mut Vec<Rc<Step>>, fault: &mut Failure) {
        let mut size = steps.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < steps.len() {
                let mut rest = steps.clone();
                rest.drain(at..(at + size).min(steps.len()));
                match self.fault(&rest) {
                    Some(failure) => (*steps, *fault) = (rest, failure),
                    None => at += size,
                }
            }
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }
}

/// The shortest sequence found, as text; `None` if the steps do not fail when they are repeated.
pub(super) fn shortest<'e>(
    open: &dyn Fn() -> Result<Subject<'e>, Failure>,
    steps: Vec<Step>,
) -> Option<String> {
    let all: usize = steps.iter().map(Step::ops).sum();
    let mut steps: Vec<Rc<Step>> = steps.into_iter().map(Rc::new).collect();
    let mut trials = Trials { open, left: TRIALS, until: Instant::now() + LIMIT };
    let mut fault = trials.fault(&steps)?;
    trials.thin(&mut steps, &mut fault);
    // Then group by group, and finally op by op, each in a separate call, as long as the fault persists.
    for split in [Step::split, Step::loosen] {
        let parts: Vec<Rc<Step>> = steps.iter().flat_map(split).collect();
        if let Some(failure) = trials.fault(&parts) {
            (steps, fault) = (parts, failure);
            trials.thin(&mut steps, &mut fault);
        }
    }
    let count: usize = steps.iter().map(|step| step.ops()).sum();
    let lines = lines(&steps);
    // The last ops are those that show the fault.
    let hidden = lines.len().saturating_sub(LINES);
    let mut out = format!("{count} of these {all} ops reproduce it:");
    if hidden > 0 {
        out += &format!("\n      ({hidden} earlier lines hidden)");
    }
    for line in &lines[hidden..] {
        out += &format!("\n      {line}");
    }
    Some(format!("{out}\n      then: {fault}"))
}

/// One line per op; equal values have one name.
fn lines(steps: &[Rc<Step>]) -> Vec<String> {
    let mut values: Vec<&[u8]> = Vec::new();
    let mut lines = Vec::new();
    for step in steps {
        match &**step {
            Step::Call(acts) => lines.extend(acts.iter().map(|act| line(act, &mut values))),
            Step::Reopen => lines.push("close and reopen".into()),
            Step::Compare(_) => lines.push("read all rows".into()),
        }
    }
    lines
}

fn line<'a>(act: &'a Act, values: &mut Vec<&'a [u8]>) -> String {
    if !matches!(act.kind, KV_PUT | KV_MERGE | KV_PUSH) {
        return act.to_string();
    }
    let place = values.iter().position(|value| *value == act.value).unwrap_or_else(|| {
        values.push(&act.value);
        values.len() - 1
    });
    let text = act.to_string();
    let head = text.split(" (").next().unwrap_or(&text);
    let space = if act.keyspace > 0 { format!(" in keyspace {}", act.keyspace) } else { String::new() };
    let head = head.strip_suffix(&space).unwrap_or(head);
    format!("{head} = v{} ({} bytes){space}", place + 1, act.value.len())
}

#[cfg(test)]
mod tests {
    use super::super::act::shown;
    use super::*;

    #[test]
    fn ops_are_shown_with_readable_keys_and_one_name_for_equal_values() {
        let steps = [
            Step::Call(vec![Act::put(b"a", b"one"), Act::put(b"b", b"two").within(1)]),
            Step::Reopen,
            Step::Call(vec![Act::put(&[0, 255], b"one").with(KV_NEW), Act::get(b"a")]),
        ];
        let wanted = [
            "put `a` = v1 (3 bytes)",
            "put `b` = v2 (3 bytes) in keyspace 1",
            "close and reopen",
            "put new 0x00ff = v1 (3 bytes)",
            "get `a`",
        ];
        assert_eq!(lines(&steps.map(Rc::new)), wanted);
        assert_eq!(shown(&[b'k'; 50]), format!("`{}..(50 bytes)`", "k".repeat(40)));
    }
}
