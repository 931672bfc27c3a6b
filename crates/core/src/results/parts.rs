//! Equal parts of many records, kept once: otherwise each of thousands of records of a run would hold its workload.

use super::{EngineFacts, Record, Trial};
use crate::workload::Workload;
use std::sync::Arc;

/// The number of newest parts that are compared with a new one.
const COMPARED: usize = 256;

/// The parts found so far.
#[derive(Debug, Default)]
pub struct Parts {
    workloads: Vec<Arc<Workload>>,
    engines: Vec<Arc<EngineFacts>>,
}

impl Parts {
    /// Replaces parts of a trial by equal parts of earlier ones.
    pub fn share_trial(&mut self, trial: &mut Trial) {
        share(&mut self.workloads, &mut trial.workload);
    }

    /// Replaces parts of a record by equal parts of earlier records or trials.
    pub fn share(&mut self, record: &mut Record) {
        self.share_trial(&mut record.trial);
        if let Some(engine) = &mut record.engine {
            share(&mut self.engines, engine);
        }
    }
}

fn share<Part: PartialEq>(known: &mut Vec<Arc<Part>>, own: &mut Arc<Part>) {
    match known.iter().rev().take(COMPARED).find(|other| *other == own) {
        Some(other) => *own = Arc::clone(other),
        None => known.push(Arc::clone(own)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn equal_parts_are_shared_and_nothing_else_changes() {
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
