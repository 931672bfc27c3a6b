//! Parts that many records have alike, kept once: thousands of records of one run would else hold its workload each.

use super::{EngineFacts, Record, Trial};
use crate::workload::Workload;
use std::sync::Arc;

/// Of so many parts, the newest, a new one is looked for.
const LOOKED_AT: usize = 256;

/// The parts that were met.
#[derive(Debug, Default)]
pub struct Parts {
    workloads: Vec<Arc<Workload>>,
    engines: Vec<Arc<EngineFacts>>,
}

impl Parts {
    /// Lets a trial share what an earlier one has alike.
    pub fn share_trial(&mut self, trial: &mut Trial) {
        share(&mut self.workloads, &mut trial.workload);
    }

    /// Lets a record share what an earlier one, or a trial, has alike.
    pub fn share(&mut self, record: &mut Record) {
        self.share_trial(&mut record.trial);
        if let Some(engine) = &mut record.engine {
            share(&mut self.engines, engine);
        }
    }
}

fn share<Part: PartialEq>(known: &mut Vec<Arc<Part>>, own: &mut Arc<Part>) {
    match known.iter().rev().take(LOOKED_AT).find(|other| *other == own) {
        Some(other) => *own = Arc::clone(other),
        None => known.push(Arc::clone(own)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn what_is_alike_is_one_and_nothing_else_changes() {
        let (mut parts, mut records) = (Parts::default(), fixture::records());
        records.iter_mut().for_each(|record| parts.share(record));
        assert_eq!(records, fixture::records());
        let (first, later) = (&records[0], &records[1]);
        assert!(Arc::ptr_eq(&first.trial.workload, &later.trial.workload));
        let of = |repetition| {
            let own =
                |record: &&Record| record.trial.engine == "redb" && record.trial.repetition == repetition;
            records.iter().find(own).unwrap().engine.as_ref().unwrap()
        };
        assert!(Arc::ptr_eq(of(1), of(2)));
        assert!(!Arc::ptr_eq(first.engine.as_ref().unwrap(), later.engine.as_ref().unwrap()));
    }
}
