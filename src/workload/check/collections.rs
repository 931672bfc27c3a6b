//! The rules of collections: what goes with hashes and sorted ones, and what with lists.

use super::{Checked, Subject, quoted};
use crate::generator::SizeSpec;
use crate::workload::{Collections, Phase, Workload};

/// Collections, at most: so many that each has a name of two bytes, and the last one another behind it.
const MOST_COLLECTIONS: u32 = 65535;
/// Bytes of the number that an element of a list is found by.
const SEQUENCE_BYTES: u32 = 8;

impl Workload {
    /// The collections themselves.
    pub(super) fn sound_collections(&self, this: Subject) -> Checked {
        let Collections { count, r#type } = self.collections;
        if self.collections == Collections::default() {
            return Ok(());
        }
        let has = self.collections.has_fields() || self.collections.are_lists();
        this.expect(
            has,
            "collections.type",
            "`hash`, `sorted` or `list` with a count",
            quoted(r#type.name()),
        )?;
        let expected = format!("1 to {MOST_COLLECTIONS}");
        this.expect((1..=MOST_COLLECTIONS).contains(&count), "collections.count", expected, count)?;
        let expected = format!("no more than {} keys", self.keys);
        this.expect(u64::from(count) <= self.keys, "collections.count", expected, count)?;
        this.expect(self.keyspaces == 1, "keyspaces", "1 with collections", self.keyspaces)?;
        this.expect(self.indexes.is_empty(), "indexes", "none with collections", self.indexes.len())?;
        if !self.collections.are_lists() {
            return Ok(());
        }
        let key = &self.key;
        let expected = "8 with lists, whose elements are found by a number of 8 bytes";
        this.expect(key.size == SizeSpec::Fixed(SEQUENCE_BYTES), "key.size", expected, &key.size)
    }

    /// What a phase may do to them.
    pub(super) fn sound_in_collections(&self, subject: Subject, phase: &Phase) -> Checked {
        let lists = self.collections.are_lists();
        for (name, share) in phase.mix.shares() {
            let of_lists = ["push", "pop"].contains(&name);
            let expected = if lists {
                "push and pop only, for lists have nothing else"
            } else {
                "collections.type = \"list\" at the top of the file for push and pop"
            };
            subject.expect(share == 0.0 || of_lists == lists, "mix", expected, name)?;
        }
        if lists {
            return self.sound_lists(subject, phase);
        }
        if !self.collections.has_fields() {
            return Ok(());
        }
        let scan = &phase.scan;
        subject.expect(!scan.prefix, "scan.prefix", "false with collections", scan.prefix)?;
        let both = scan.reverse && self.collections.are_hashes();
        subject.expect(!both, "scan.reverse", "false with hashes, which have no order", scan.reverse)
    }

    fn sound_lists(&self, subject: Subject, phase: &Phase) -> Checked {
        let count = self.collections.count;
        subject.expect(phase.readers == 0, "readers", "0 with lists, which have no gets", phase.readers)?;
        subject.expect(phase.writers == 0, "writers", "0 with lists, which have no puts", phase.writers)?;
        let expected = format!("up to {count}, the number of lists, for each belongs to one thread");
        subject.expect(phase.threads <= count, "threads", expected, phase.threads)?;
        let size = phase.value_size.as_ref().map_or_else(String::new, ToString::to_string);
        let expected = "the workload's value.size with lists, whose elements are of many phases";
        subject.expect(phase.value_size.is_none(), "value_size", expected, size)
    }
}
