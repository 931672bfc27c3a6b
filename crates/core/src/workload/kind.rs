//! The op kinds of workloads, in one table: their names in files and records, their accesses, their units, and words for them.

use super::Phase;
use super::quantity::Number;
use super::table::table_form;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an op kind does to keys, counters or lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads rows.
    Read,
    /// Writes a row whose key is drawn, or is new (see `Phase::existing`).
    Put,
    /// Writes a row with a new key.
    Insert,
    /// Overwrites an existing row.
    Change,
    /// Deletes an existing row.
    Delete,
    /// Adds to a counter.
    Count,
    /// Adds an element to a list.
    Push,
    /// Removes an element from a list.
    Pop,
}

/// The ops that are timed as one, and what they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// One op.
    Op,
    /// `Phase::multi_get_keys` ops; each counts.
    Keys,
    /// `Phase::join` ops; each counts.
    Joined,
    /// `Phase::join` rows with their index rows; each row counts as one op.
    Rows,
    /// Two ops that count as one.
    Pair,
    /// `Phase::transaction_ops` ops that count as one.
    Transaction,
}

macro_rules! op_kinds {
    ($($(#[$doc:meta])* $kind:ident, $field:ident, $name:literal, $access:ident, $unit:ident, $words:literal;)*) => {
        /// The op kinds of a workload; each is a row of a phase's record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
        #[repr(u8)]
        pub enum OpKind {
            $($(#[$doc])* #[strum(serialize = $name)] $kind,)*
        }

        impl OpKind {
            /// The number of kinds.
            pub const COUNT: usize = [$(OpKind::$kind),*].len();
            /// All kinds, in the order of the table.
            pub const ALL: [OpKind; OpKind::COUNT] = [$(OpKind::$kind),*];

            /// The name in records and reports.
            pub fn name(self) -> &'static str {
                self.into()
            }

            /// The name in workload files.
            pub fn field(self) -> &'static str {
                match self {
                    $(OpKind::$kind => stringify!($field),)*
                }
            }

            /// What it does to keys, counters or lists.
            pub fn access(self) -> Access {
                match self {
                    $(OpKind::$kind => Access::$access,)*
                }
            }

            #[inline(always)]
            fn unit(self) -> Unit {
                match self {
                    $(OpKind::$kind => Unit::$unit,)*
                }
            }

            /// Plural words for it, which may need the settings of a phase after them.
            pub(super) fn words(self) -> &'static str {
                match self {
                    $(OpKind::$kind => $words,)*
                }
            }
        }

        /// The shares of op kinds in a phase; they need not add up to one.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Mix {
            $($(#[$doc])* pub $field: f64,)*
        }

        impl Mix {
            /// The share of a kind.
            pub fn share(&self, kind: OpKind) -> f64 {
                match kind {
                    $(OpKind::$kind => self.$field,)*
                }
            }
        }

        /// The shares of op kinds in a phase; they need not add up to one. Default of each: 0.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = "a table of shares such as { get = 0.9, put = 0.1 }")]
        #[schemars(rename = "Mix")]
        pub(super) struct MixFile {
            $($(#[$doc])* $field: Option<Number>,)*
        }

        table_form!(MixFile => Mix { $($field),* });
    };
}

// Kind, name in workload files, name in records, access, unit, words.
op_kinds! {
    /// Read a key.
    Get, get, "get", Read, Op, "gets, with the value copied out";
    /// Read `multi_get_keys` keys in one group.
    MultiGet, multi_get, "multi-get", Read, Keys, "multi-gets";
    /// Write a key drawn from the distribution; see `existing`.
    Put, put, "put", Put, Joined, "puts";
    /// Write the next new key, never overwriting.
    Insert, insert, "insert", Insert, Joined, "inserts";
    /// Overwrite an existing key.
    Update, update, "update", Change, Joined, "updates, which overwrite the complete value";
    /// Delete a key.
    Delete, delete, "delete", Delete, Joined, "deletes";
    /// Scan; see `[phase.scan]`.
    Scan, scan, "scan", Read, Op, "scans";
    /// Add 1 to a counter: native, or emulated by get and put, and labelled as emulated.
    Merge, merge, "merge", Count, Joined, "merges, which add 1 to a counter";
    /// Get a key and put it back with a new value; timed as one op.
    ReadModifyWrite, read_modify_write, "read-modify-write", Change, Pair,
        "gets, each followed by a put of a new value to the same key";
    /// `transaction_ops` updates, atomically.
    Transaction, transaction, "transaction", Change, Transaction, "transactions";
    /// Write the next new key with a row in each of `indexes`, atomically if the engine supports it; timed as one op.
    InsertIndexed, insert_indexed, "insert-indexed", Insert, Rows, "inserts of new rows with their index rows";
    /// Push a new value at the right end of a list.
    Push, push, "push", Push, Joined, "pushes of new values at the right end of a list";
    /// Pop the value at the left end of a list: native, or emulated by get and delete, and labelled as emulated.
    Pop, pop, "pop", Pop, Pair,
        "pops of the value at the left end of a list, by get and delete if the engine has no lists";
}

impl OpKind {
    /// Whether it changes keys, counters or lists.
    pub fn writes(self) -> bool {
        self.access() != Access::Read
    }

    /// Whether it sends complete values to the engine.
    pub fn writes_values(self) -> bool {
        matches!(self.access(), Access::Put | Access::Insert | Access::Change | Access::Push)
    }

    /// Whether it writes or deletes rows.
    pub fn writes_rows(self) -> bool {
        matches!(self.access(), Access::Put | Access::Insert | Access::Change | Access::Delete)
    }

    /// Whether it only adds rows or, as a put may, overwrites them.
    pub fn loads_rows(self) -> bool {
        matches!(self.access(), Access::Put | Access::Insert)
    }

    /// Whether it returns rows or elements and does nothing else with keys.
    pub fn returns_rows(self) -> bool {
        matches!(self.access(), Access::Read | Access::Pop)
    }

    /// Whether it gets single keys, so that it can miss.
    pub fn gets(self) -> bool {
        matches!(self, OpKind::Get | OpKind::MultiGet | OpKind::ReadModifyWrite)
    }

    /// Whether it deletes rows.
    pub fn deletes(self) -> bool {
        self.access() == Access::Delete
    }

    /// Whether it is an op of lists.
    pub fn is_of_lists(self) -> bool {
        matches!(self.access(), Access::Push | Access::Pop)
    }

    /// Whether it runs on an empty database.
    pub fn needs_no_rows(self) -> bool {
        matches!(self.access(), Access::Put | Access::Insert | Access::Count | Access::Push)
    }

    /// Whether it writes new keys in this phase.
    pub fn inserts(self, phase: &Phase) -> bool {
        match self.access() {
            Access::Insert => true,
            Access::Put => phase.existing.is_some_and(|share| share < 1.0),
            _ => false,
        }
    }

    /// Whether it writes or deletes keys that the distribution draws in this phase.
    pub fn changes_drawn_keys(self, phase: &Phase) -> bool {
        match self.access() {
            Access::Change | Access::Delete => true,
            Access::Put => phase.existing != Some(0.0),
            _ => false,
        }
    }

    /// Whether a unit is a group of `Phase::join` writes.
    pub fn is_joined(self) -> bool {
        matches!(self.unit(), Unit::Joined | Unit::Rows)
    }

    /// Ops of one unit; `row_ops`: those that write one row with its index rows.
    pub fn ops(self, phase: &Phase, row_ops: usize) -> usize {
        let ops = match self.unit() {
            Unit::Op => 1,
            Unit::Keys => phase.multi_get_keys,
            Unit::Joined => phase.join,
            Unit::Rows => return phase.join.max(1) as usize * row_ops,
            Unit::Pair => 2,
            Unit::Transaction => phase.transaction_ops,
        };
        ops.max(1) as usize
    }

    /// The count of a unit of `ops` ops. A read-modify-write, a transaction, a pop and a row with its index rows are one op
    /// to their user; joined ones are many.
    #[inline(always)]
    pub fn counted_ops(self, ops: usize, row_ops: usize) -> u64 {
        match self.unit() {
            Unit::Pair | Unit::Transaction => 1,
            Unit::Rows => (ops / row_ops) as u64,
            Unit::Op | Unit::Keys | Unit::Joined => ops as u64,
        }
    }

    /// The ops of a unit cut so that it counts at most `left`, which is over 0.
    pub fn cut(self, ops: usize, row_ops: usize, left: u64) -> usize {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        match self.unit() {
            Unit::Pair | Unit::Transaction => ops,
            Unit::Rows => ops.min(left.saturating_mul(row_ops)),
            Unit::Op | Unit::Keys | Unit::Joined => ops.min(left),
        }
    }
}

impl Mix {
    /// The kinds with a share above 0, with their shares, in the order of the table.
    pub fn shares(&self) -> impl Iterator<Item = (OpKind, f64)> + '_ {
        self.kinds().map(|kind| (kind, self.share(kind)))
    }

    /// The kinds with a share above 0.
    pub fn kinds(&self) -> impl Iterator<Item = OpKind> + '_ {
        OpKind::ALL.into_iter().filter(|kind| self.share(*kind) > 0.0)
    }

    /// Whether the mix contains a kind with this property.
    pub fn has(&self, is: impl Fn(OpKind) -> bool) -> bool {
        self.kinds().any(is)
    }
}
