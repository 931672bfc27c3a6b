//! Judges transactions: either all of their ops take effect, or none.

use super::Judge;
use crate::engine::{Arena, Status};
use crate::runner::draw::Item;

impl Judge {
    /// Checks the transaction of ops [`first`, `end`) after the batch was acknowledged up to `done`. Answers (found, not
    /// found, exists) count as done.
    pub fn transaction(&mut self, arena: &Arena, unit: Item, (first, end): (usize, usize), done: usize) {
        let is_done = |at: &usize| *at < done && Status::of(arena.op(*at).status).is_answer();
        let count = (first..end).filter(is_done).count();
        if count != 0 && count != end - first {
            self.split(arena, unit, (first, end), count);
        }
    }

    #[cold]
    fn split(&mut self, arena: &Arena, unit: Item, (first, end): (usize, usize), count: usize) {
        let failed =
            (first..end).map(|at| arena.op(at).status).find(|status| !Status::of(*status).is_answer());
        let status = failed.map_or_else(String::new, |status| format!(", another has status {status}"));
        let (kind, index) = (unit.kind.name(), unit.index);
        let all = end - first;
        self.faults.add(|| {
            format!(
                "transaction of {all} ops that begins with {kind} of key {index}: only {count} took effect{status}"
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Shape;
    use crate::engine::abi::*;
    use crate::measure::Clock;
    use crate::runner::judge::Bound;
    use crate::runner::shared::tallies_for;
    use crate::workload::OpKind;
    use std::sync::atomic::AtomicU32;

    static NEVER: AtomicU32 = AtomicU32::new(0);

    #[test]
    fn a_transaction_takes_effect_completely_or_not_at_all() {
        let clock = Clock::calibrate();
        let faults = |statuses: [u32; 4], done: usize| {
            let shape = Shape { ops: 4, key_bytes: 8, value_bytes: 8, out_bytes: 8 };
            let mut arena = Arena::new(shape, clock.kind(), &NEVER);
            for (at, status) in statuses.into_iter().enumerate() {
                arena.op_mut(at).status = status;
            }
            let bound = Bound::of(0, clock, 20.0);
            let mut judge = Judge::new(tallies_for([OpKind::Put].into_iter()), clock, bound);
            judge.transaction(&arena, Item::new(OpKind::Put, 7), (0, 4), done);
            judge.faults.first
        };
        for whole in [[KV_OK; 4], [KV_OK, KV_EXISTS, KV_NOT_FOUND, KV_OK]] {
            assert!(faults(whole, 4).is_empty());
            assert!(faults(whole, 0).is_empty(), "not run at all");
            assert_eq!(faults(whole, 3).len(), 1, "acknowledged up to its middle");
        }
        assert!(faults([KV_ABORTED, KV_CONFLICT, KV_ABORTED, KV_ABORTED], 4).is_empty());
        assert_eq!(
            faults([KV_OK, KV_OK, KV_CONFLICT, KV_OK], 4),
            ["transaction of 4 ops that begins with put of key 7: only 3 took effect, another has status 4"]
        );
    }
}
