//! The data of a workload: keys, values and indexes.

use super::quantity::{Count, Number, Size};
use super::table::table;
use crate::generator::{Encoding, SizeSpec};

table! {
    /// How a number becomes a key.
    KeySpec, KeyFile as "Key", "a table" {
        /// Bytes of a key, 4 to 65536: a size or a distribution of sizes. Default: 16.
        size: SizeSpec, Size = SizeSpec::Fixed(16);
        /// `binary`, `decimal`, `hex`, `hashed` or `random`. Default: binary.
        encoding: Encoding, Encoding = Encoding::Binary;
        /// Keys are scattered by a permutation instead of following the order of their numbers. Default: false.
        scattered: bool, bool = false;
        /// The distance between the numbers of neighbouring keys; misses use the numbers in the gap. Default: 2.
        spacing: u64, Count<u64> = 2;
        /// Keys are inserted in turns: this many in ascending order, then as many at random over the range of those so far,
        /// none twice. Needs fewer turns than `spacing`. Default: 0, they are inserted in order or scattered.
        alternate: u64, Count<u64> = 0;
        /// Keys share this many distinct prefixes. Default: 0, none.
        prefix_groups: u64, Count<u64> = 0;
        /// Bytes of such a prefix. Default: 4.
        prefix_size: u32, Count<u32> = 4;
        /// A file of key material: key i is its bytes [i * size, (i + 1) * size). Default: keys are generated.
        file: Option<String>, String = None;
    }
}

table! {
    /// Size and compressibility of values.
    ValueSpec, ValueFile as "Value", "a table" {
        /// Bytes of a value: a size or a distribution of sizes. Default: 100.
        size: SizeSpec, Size = SizeSpec::Fixed(100);
        /// The share of a value that remains after compression: 1 is noise, 0.5 compresses to half. Default: 0.5.
        compressed_share: f64, Number = 0.5;
    }
}

table! {
    /// A secondary index: each row is also entered under some bytes of its value, followed by its key.
    #[derive(Copy)]
    Index, IndexFile as "Index", "a table such as { from = 24, length = 8 }" {
        /// The first byte of the value that the index uses, from 0. Default: 24, after the value's header; all values differ
        /// in the bytes from there.
        from: u32, Count<u32> = 24;
        /// The number of bytes that it uses. Default: 8.
        length: u32, Count<u32> = 8;
        /// Index rows hold the complete value; otherwise they hold no value. Default: false.
        clustering: bool, bool = false;
    }
}
