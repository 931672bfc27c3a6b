//! The rules of collections: hashes, sorted collections and lists.

use super::{Checked, Subject, quoted};
use crate::generator::SizeSpec;
use crate::workload::{Collections, Phase, Workload};

/// The maximum number of collections: each has a name of two bytes, and one more name exists after the last.
const MOST_COLLECTIONS: u32 = 65535;
/// Bytes of the number in the key of a list element.
const SEQUENCE_BYTES: u32 = 8;

impl Workload {
    /// The rules of the collections themselves.
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
        let expected = "8 with lists, whose elements have a number of 8 bytes as key";
        this.expect(key.size == SizeSpec::Fixed(SEQUENCE_BYTES), "key.size", expected, &key.size)
    }

    /// The rules of phases that use collections.
    pub(super) fn sound_in_collections(&self, subject: Subject, phase: &Phase) -> Checked {
        let lists = self.collections.are_lists();
        for kind in phase.mix.kinds() {
            let expected = if lists {
                "push and pop only, the ops of lists"
            } else {
                "collections.type = \"list\" at the top of the file for push and pop"
            };
            subject.expect(kind.is_of_lists() == lists, "mix", expected, kind.field())?;
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
        let expected = format!("up to {count}, the number of lists, because each belongs to one thread");
        subject.expect(phase.threads <= count, "threads", expected, phase.threads)?;
        let size = phase.value_size.as_ref().map_or_else(String::new, ToString::to_string);
        let expected = "the workload's value.size with lists, whose elements come from several phases";
        subject.expect(phase.value_size.is_none(), "value_size", expected, size)
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::parse;

    /// The collections at the top of the file, the lines of the phase, and the error.
    const BROKEN: &[(&str, &str, &str)] = &[
        (
            "{ count = 3 }",
            "",
            "w.toml:2: `collections.type`: expected `hash`, `sorted` or `list` with a count",
        ),
        ("{ type = 'hash', count = 0 }", "", "w.toml:2: `collections.count`: expected 1 to 65535, got 0"),
        ("{ type = 'hash', count = 70000 }", "", "expected 1 to 65535, got 70000"),
        ("{ type = 'hash', count = 200 }", "", "expected no more than 100 keys, got 200"),
        ("{ type = 'hasch' }", "", "got `hasch`; did you mean `hash`?"),
        ("{ type = 'hash', size = 1 }", "", "unknown field `size`"),
        ("{ type = 'hash' }\nkeyspaces = 2", "", "w.toml:3: `keyspaces`: expected 1 with collections, got 2"),
        ("{ type = 'hash' }\nindexes = [{}]", "", "`indexes`: expected none with collections, got 1"),
        (
            "{ type = 'sorted' }\nkey.prefix_groups = 10",
            "scan = { reverse = true, prefix = true }",
            "`scan.prefix`: expected false",
        ),
        ("{ type = 'hash' }", "scan = { reverse = true }", "`scan.reverse`: expected false with hashes"),
        ("{ type = 'hash' }", "mix.push = 1", "`mix`: expected collections.type = \"list\""),
        ("{ type = 'list' }", "", "`mix`: expected push and pop only, the ops of lists, got put"),
        ("{ type = 'list' }\nkey = { size = 16 }", "", "`key.size`: expected 8 with lists"),
    ];

    #[test]
    fn errors_are_one_line_with_place_and_reason() {
        for (top, phase, expected) in BROKEN {
            let key = if top.contains("list") && !top.contains("size") { "key.size = 8\n" } else { "" };
            let text = format!(
                "keys = 100\ncollections = {top}\n{key}[[phase]]\nname = 'a'\nops = 5\nmix.put = 1\n{phase}\n"
            );
            let got = parse(&text, "w.toml").map_or_else(|error| error.to_string(), |_| "no error".into());
            assert!(
                got.contains(expected) && got.starts_with("w.toml:"),
                "{text}\nexpected {expected}\ngot {got}"
            );
        }
    }

    #[test]
    fn each_list_belongs_to_one_thread_that_pushes_and_pops() {
        let list = |phase: &str| {
            let top = "keys = 100\ncollections = { type = 'list', count = 3 }\nkey.size = 8\n";
            let text = format!("{top}[[phase]]\nname = 'a'\nops = 5\nmix = {{ push = 1, pop = 1 }}\n{phase}");
            parse(&text, "w.toml").map_or_else(|error| error.to_string(), |_| String::new())
        };
        assert_eq!(list("threads = 3"), "");
        assert!(list("threads = 4").contains("expected up to 3, the number of lists"));
        assert!(list("readers = 1").contains("`readers`: expected 0 with lists"));
        assert!(list("writers = 1").contains("`writers`: expected 0 with lists"));
        assert!(list("value_size = 5").contains("`value_size`: expected the workload's"));
        assert!(list("").is_empty());
    }
}
