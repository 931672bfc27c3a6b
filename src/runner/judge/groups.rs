//! Transactions: all of their ops are done, or none.

use super::Judge;
use crate::engine::Arena;
use crate::engine::abi::*;
use crate::runner::draw::Item;

impl Judge {
    /// Looks at the transaction of ops [`first`, `end`) after the batch was acknowledged up to `done`. Answers (found or
    /// not, there already) are ops that were done.
    pub fn transaction(&mut self, arena: &Arena, unit: Item, (first, end): (usize, usize), done: usize) {
        let is_done = |at: &usize| *at < done && arena.op(*at).status <= KV_EXISTS;
        let count = (first..end).filter(is_done).count();
        if count != 0 && count != end - first {
            self.split(arena, unit, (first, end), count);
        }
    }

    #[cold]
    fn split(&mut self, arena: &Arena, unit: Item, (first, end): (usize, usize), count: usize) {
        let failed = (first..end).map(|at| arena.op(at).status).find(|status| *status > KV_EXISTS);
        let status = failed.map_or_else(String::new, |status| format!(", another has status {status}"));
        let (kind, index) = (unit.kind.name(), unit.index);
        let all = end - first;
        self.faults.add(|| {
            format!(
                "transaction of {all} ops that begins with {kind} of key {index}: {count} were done{status}"
            )
        });
    }
}
