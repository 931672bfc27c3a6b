//! Checks every call of `execute` against the rules of driver.h before anything uses its results: what the driver may
//! acknowledge, what it may answer, and that it did not change the core's data.

use super::Arena;
use super::abi::*;
use super::capability::status_name;
use kvdyno_driver::ticks;
use std::sync::atomic::Ordering;

/// Ticks by which two processors' counters may differ: far below a call that would be cut short without a reason.
pub(super) const SLACK_TICKS: u64 = 1 << 12;

/// A status as an enum, so that a match over it must name each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `KV_OK`.
    Ok,
    /// `KV_NOT_FOUND`.
    NotFound,
    /// `KV_EXISTS`.
    Exists,
    /// `KV_SHORT`.
    Short,
    /// `KV_CONFLICT`.
    Conflict,
    /// `KV_ABORTED`.
    Aborted,
    /// `KV_FULL`.
    Full,
    /// `KV_TOO_LARGE`.
    TooLarge,
    /// `KV_UNSUPPORTED`.
    Unsupported,
    /// `KV_NOT_RUN`.
    NotRun,
    /// `KV_ERROR`.
    Error,
    /// A number that is not in driver.h.
    Unknown(u32),
}

impl Status {
    /// The status for the number in an op.
    #[inline(always)]
    pub fn of(number: u32) -> Status {
        match number {
            KV_OK => Status::Ok,
            KV_NOT_FOUND => Status::NotFound,
            KV_EXISTS => Status::Exists,
            KV_SHORT => Status::Short,
            KV_CONFLICT => Status::Conflict,
            KV_ABORTED => Status::Aborted,
            KV_FULL => Status::Full,
            KV_TOO_LARGE => Status::TooLarge,
            KV_UNSUPPORTED => Status::Unsupported,
            KV_NOT_RUN => Status::NotRun,
            KV_ERROR => Status::Error,
            other => Status::Unknown(other),
        }
    }

    /// Whether a transaction with this op is complete: found or not, or already existing.
    #[inline(always)]
    pub fn is_answer(self) -> bool {
        matches!(self, Status::Ok | Status::NotFound | Status::Exists)
    }

    /// Whether an op can be answered with it. Every other status is a failure.
    fn answers(self, op: &kv_op, capabilities: u64) -> bool {
        match self {
            Status::Ok => true,
            Status::NotFound => match OpCode::of(op.kind) {
                OpCode::Get | OpCode::Pop => true,
                OpCode::Delete => capabilities & KV_DELETE_TELLS != 0,
                OpCode::Put | OpCode::Push | OpCode::Scan | OpCode::Merge => false,
                OpCode::Begin | OpCode::Commit | OpCode::Abort | OpCode::Drop => false,
                OpCode::Nothing | OpCode::Unknown(_) => false,
            },
            Status::Exists => op.kind == KV_PUT && op.flags & KV_NEW != 0,
            Status::Short => matches!(op.kind, KV_GET | KV_POP | KV_SCAN),
            Status::Conflict | Status::Aborted | Status::Full | Status::TooLarge => false,
            Status::Unsupported | Status::NotRun | Status::Error | Status::Unknown(_) => false,
        }
    }
}

macro_rules! op_codes {
    ($($(#[$doc:meta])* $code:ident, $number:ident, $name:literal;)*) => {
        /// The kind of an op at the boundary as an enum, so that a match over it must name each one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OpCode {
            $($(#[$doc])* $code,)*
            /// A number that is not in driver.h.
            Unknown(u8),
        }

        impl OpCode {
            /// The kind for the number in an op.
            #[inline(always)]
            pub fn of(number: u8) -> OpCode {
                match number {
                    $($number => OpCode::$code,)*
                    other => OpCode::Unknown(other),
                }
            }

            /// Its name in messages.
            pub fn name(self) -> &'static str {
                match self {
                    $(OpCode::$code => $name,)*
                    OpCode::Unknown(_) => "op",
                }
            }
        }
    };
}

op_codes! {
    /// `KV_NOTHING`.
    Nothing, KV_NOTHING, "op";
    /// `KV_GET`.
    Get, KV_GET, "get";
    /// `KV_PUT`.
    Put, KV_PUT, "put";
    /// `KV_DELETE`.
    Delete, KV_DELETE, "delete";
    /// `KV_SCAN`.
    Scan, KV_SCAN, "scan";
    /// `KV_MERGE`.
    Merge, KV_MERGE, "merge";
    /// `KV_BEGIN`.
    Begin, KV_BEGIN, "begin";
    /// `KV_COMMIT`.
    Commit, KV_COMMIT, "commit";
    /// `KV_ABORT`.
    Abort, KV_ABORT, "abort";
    /// `KV_DROP`.
    Drop, KV_DROP, "drop";
    /// `KV_PUSH`.
    Push, KV_PUSH, "push";
    /// `KV_POP`.
    Pop, KV_POP, "pop";
}

/// The name of an op in messages.
pub fn kind_name(kind: u8) -> &'static str {
    OpCode::of(kind).name()
}

/// The result of ops [`first`, `first + count`) of an arena.
#[derive(Clone, Copy)]
pub(super) struct CallOutcome {
    pub first: usize,
    pub count: usize,
    /// As reported by the driver, unvalidated.
    pub done: usize,
    /// The driver reported a failure, so it may have stopped anywhere.
    pub has_failed: bool,
}

impl Arena {
    /// Whether a call needs no closer check: all ops were done with KV_OK, none delivered more than fits, none is a
    /// scan, and the core's part of them is unchanged.
    #[inline(always)]
    pub(super) fn is_plain(&self, first: usize, count: usize) -> bool {
        let batch = self.batch();
        let done = batch.done.load(Ordering::Acquire) as usize;
        if done != count || !self.is_batch_as_sent(first, count) || self.trespass().is_some() {
            return false;
        }
        let seen = self.seen(first, count);
        let may_scan = seen.kinds & KV_SCAN != 0;
        seen.odd == 0
            && seen.over == 0
            && !(may_scan && (first..first + count).any(|at| self.op(at).kind == KV_SCAN))
    }

    /// The first rule that a call broke, with the op where it did.
    #[cold]
    pub(super) fn breach(&self, ran: CallOutcome) -> Option<(usize, String)> {
        let CallOutcome { first, count, done, .. } = ran;
        if !self.is_batch_as_sent(first, count) {
            return Some((first, "rule 3: the driver changed the core's part of the batch".into()));
        }
        if let Some(trespass) = self.trespass() {
            return Some(trespass.clone());
        }
        let changed = (first..first + count).find(|&at| self.has_changed(at));
        if let Some(at) = changed {
            let sent = kind_name(self.sent_kind(at));
            let what = self.changed_field(at);
            return Some((
                at,
                format!("rule 3: the driver changed {what} of a {sent}, which belongs to the core"),
            ));
        }
        if done > count {
            return Some((first, format!("rule 3: `done` is {done} after a call of {count} ops")));
        }
        let of_op = (first..first + done).find_map(|at| op_breach(self.op(at)).map(|text| (at, text)));
        if of_op.is_some() || done == count || ran.has_failed {
            return of_op;
        }
        let at = first + done;
        let kind = kind_name(self.op(at).kind);
        if done > 0 && self.op(at - 1).flags & KV_JOIN != 0 {
            return Some((
                at,
                format!("rule 6: `done` is {done}, which is inside a group of joined ops (at a {kind})"),
            ));
        }
        if !self.is_over() {
            let text = format!(
                "rule 3: `done` is {done} after a call of {count} ops, at a {kind}, without stop, deadline or error"
            );
            return Some((at, text));
        }
        let ran = (at..first + count).find(|&at| self.op(at).status != KV_NOT_RUN)?;
        let (kind, status) = (kind_name(self.op(ran).kind), status_text(self.op(ran).status));
        Some((ran, format!("rule 3: a {kind} past `done` ({done}) has {status}")))
    }

    /// Whether the driver had a reason to stop early.
    fn is_over(&self) -> bool {
        let batch = self.batch();
        let now = || ticks(batch.clock).saturating_add(SLACK_TICKS);
        self.is_stopped() || (batch.deadline != 0 && now() >= batch.deadline)
    }

    /// The first done op whose answer is not valid for its kind. An op is aborted because of another op, which is
    /// reported instead if there is one.
    pub(super) fn refused(&self, ran: CallOutcome, capabilities: u64) -> Option<(usize, String)> {
        let is_refused = |&at: &usize| {
            let op = self.op(at);
            !Status::of(op.status).answers(op, capabilities)
        };
        let refused = || (ran.first..ran.first + ran.done).filter(is_refused);
        let at = refused().find(|&at| self.op(at).status != KV_ABORTED).or_else(|| refused().next())?;
        let op = self.op(at);
        let (kind, status) = (kind_name(op.kind), status_text(op.status));
        let why =
            if op.status == KV_UNSUPPORTED { ", although it declares that it supports this" } else { "" };
        Some((at, format!("the driver returned {status} for a {kind}{why}")))
    }
}

/// A status as it appears in messages.
fn status_text(status: u32) -> String {
    match Status::of(status) {
        Status::Unknown(number) => format!("the unknown status {number}"),
        _ => format!("status {status} ({})", status_name(status)),
    }
}

/// What is wrong with a done op, whatever its request.
fn op_breach(op: &kv_op) -> Option<String> {
    let kind = kind_name(op.kind);
    let (length, needed, room) = (op.length, op.needed, u64::from(op.out_size));
    let brings_value = matches!(op.kind, KV_GET | KV_POP);
    match (Status::of(op.status), op.kind) {
        (Status::Unknown(number), _) => {
            Some(format!("rule 4: the driver returned the unknown status {number} for a {kind}"))
        }
        (Status::NotRun, _) => Some(format!("rule 3: a {kind} counts as done but has no status")),
        (Status::Ok, _) if brings_value && op.flags & KV_TOUCH == 0 && length > room => {
            Some(format!("rule 5: a {kind} reports length {length} for an out buffer of {room} bytes"))
        }
        (Status::Short, _) if brings_value && needed <= room => Some(format!(
            "rule 4: a {kind} is short although it needs only {needed} bytes of an out buffer of {room}"
        )),
        (Status::Ok | Status::Short, KV_SCAN) if length > room => {
            Some(format!("rule 8: a scan reports length {length} for an out buffer of {room} bytes"))
        }
        (Status::Ok | Status::Short, KV_SCAN) if op.rows > op.limit => {
            Some(format!("rule 8: a scan reports {} rows, but {} were requested", op.rows, op.limit))
        }
        (Status::Short, KV_SCAN) if op.rows == op.limit => {
            Some(format!("rule 8: a scan is short although it returned all {} requested rows", op.rows))
        }
        (Status::Short, KV_SCAN) if needed <= room - length => Some(format!(
            "rule 8: a scan is short although it needs only {needed} of the {} remaining bytes",
            room - length
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_op_of_the_header_has_a_code_and_a_name() {
        let header = include_str!("../../../../driver/include/driver.h");
        let (_, list) = header.split_once("enum kv_kind {").unwrap();
        let (list, _) = list.split_once("};").unwrap();
        let kinds: Vec<(&str, u8)> = list
            .lines()
            .filter_map(|line| line.trim().strip_prefix("KV_")?.split_once(" = "))
            .map(|(name, rest)| (name, rest.split([',', ' ']).next().unwrap().parse().unwrap()))
            .collect();
        assert_eq!(kinds.len(), 12, "{kinds:?}");
        for (name, number) in kinds {
            let code = OpCode::of(number);
            assert_eq!(format!("{code:?}").to_uppercase(), name);
            let expected = if code == OpCode::Nothing { "op" } else { &name.to_lowercase() };
            assert_eq!(code.name(), expected);
        }
        assert_eq!(OpCode::of(12), OpCode::Unknown(12));
    }
}
