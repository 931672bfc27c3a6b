//! A transaction that spans a phase: it begins before the first op and ends after the last, within the phase's time.

use super::Worker;
use crate::engine::abi::*;
use crate::results::Cause;
use crate::workload::Transaction;

impl Worker<'_, '_> {
    /// Begins the transaction, if the phase is one.
    pub(super) fn begin_transaction(&mut self) {
        if self.shared.phase.transaction.is_some() {
            self.control(KV_BEGIN, "begin");
        }
    }

    /// Commits or aborts the transaction; returns whether there was one. After a failure, the end of the session does that.
    pub(super) fn end_transaction(&mut self) -> bool {
        // The transaction must end even if the phase is late.
        self.session.arena().set_deadline(0);
        match self.shared.phase.transaction {
            Some(Transaction::Whole) => self.control(KV_COMMIT, "commit"),
            Some(Transaction::Aborted) => self.control(KV_ABORT, "abort"),
            None => return false,
        }
        true
    }

    fn control(&mut self, kind: u8, what: &str) {
        let op = self.session.arena().op_mut(0);
        (op.kind, op.flags, op.keyspace) = (kind, 0, 0);
        (op.key_length, op.value_length, op.limit) = (0, 0, 0);
        let executed = self.session.execute(0, 1);
        let op = self.session.arena().op(0);
        let (ticks, status) = (op.end.saturating_sub(op.start), op.status);
        // It was not run because the phase was stopped.
        if executed.done == 0 && executed.error.is_none() {
            return;
        }
        let waited = self.session.arena().batch().waited;
        self.judge.control(ticks, waited, &executed);
        let phase = &self.shared.phase.name;
        match executed.error {
            Some((_, text)) => {
                self.shared
                    .fail(Cause::EngineError, format!("phase {phase}: {what} of its transaction: {text}"));
            }
            None if status == KV_OK => {}
            None => self.shared.fail(
                Cause::EngineError,
                format!("phase {phase}: {what} of its transaction: status {status}"),
            ),
        }
    }
}
