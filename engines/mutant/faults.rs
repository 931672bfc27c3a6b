//! The list of faults: what each mutant does wrong, and how often.

use crate::{Mutant, execute};
use kvdyno_driver::abi::kv_driver;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// When a fault strikes: at an occasion for it (a get of a key that is there, a scan of two rows or more), counted
/// over all databases of the process, so that a run of short tests is struck too.
pub(crate) struct Rhythm {
    first: u64,
    period: u64,
}

/// One line per fault: its variant, its name, the first occasion and the period, and what it does.
macro_rules! faults {
    ($($fault:ident $name:literal $first:literal $period:literal $text:literal)+) => {
        /// What a mutant does wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Fault {
            $(#[doc = $text] $fault,)+
        }

        const COUNT: usize = [$($name),+].len();

        impl Fault {
            const ALL: [Fault; COUNT] = [$(Fault::$fault),+];
            const NAMES: [&'static str; COUNT] = [$(concat!("mutant-", $name, "\0")),+];
            const TEXTS: [&'static str; COUNT] = [$(concat!("memory-btree with a fault: ", $text, "\0")),+];
            const RHYTHMS: [Rhythm; COUNT] = [$(Rhythm { first: $first, period: $period }),+];
        }

        /// The mutants, in the order of reliability's list: the fault's name (`mutant:NAME` for the user) and the table,
        /// whose `engine` text says what is wrong with it.
        pub static MUTANTS: &[(&str, &kv_driver)] = &[$((
            $name,
            {
                static TABLE: kv_driver = execute::table::<{ Fault::$fault as u8 }>();
                &TABLE
            },
        )),+];
    };
}

faults! {
    StaleRead "stale-read" 3 8 "a get answers with the value before the last overwrite"
    LostUpdate "lost-update" 3 16 "an overwrite or a merge is acknowledged and not made"
    LostRace "lost-race" 3 8 "an overwrite of what a session wrote that lived at the same time is acknowledged and not made"
    GhostAfterDelete "ghost-after-delete" 1 4 "a deleted row is there again sixteen ops later"
    BitFlip "bit-flip" 100 10000 "one bit of a value read is wrong, at a place drawn from a seed"
    CacheSwaps "cache-swaps" 7 64 "a cache that has let a row go answers with the value of the next key"
    SwappedValues "swapped-values" 7 64 "a get answers with the value of the next key"
    TruncatedValue "truncated-value" 7 64 "a get delivers the first half of a value"
    ZeroPage "zero-page" 7 64 "the first 4 KiB of a value read are zeros"
    WrongKey "wrong-key" 7 64 "a put goes to the key whose last bit is the other one"
    ScanOutOfOrder "scan-out-of-order" 1 4 "a scan delivers its second row before its first"
    ScanDuplicate "scan-duplicate" 1 4 "a scan delivers its first row twice"
    ScanMissing "scan-missing" 1 4 "a scan leaves out its second row"
    ScanPastBound "scan-past-bound" 1 4 "a scan delivers a row beyond its bound, its prefix or its limit"
    ScanEarlyEnd "scan-early-end" 1 4 "a scan ends after half of its rows and calls that the end"
    PhantomPut "phantom-put" 7 32 "a put of a new key is acknowledged and not made"
    AbortCommits "abort-commits" 0 1 "a transaction over several calls that is aborted stays"
    NonAtomicTransaction "non-atomic-transaction" 7 16 "a transaction that fails leaves its first half"
    LosesTailOnReopen "loses-tail-on-reopen" 0 1 "the last sixteenth of the log is gone after a reopen"
    LosesCreation "loses-creation" 0 1 "a reopen finds an empty database"
    PreviousCampaign "previous-campaign" 7 64 "a value read has the right key, length and version, but other tag and body"
    ErrorSwallowed "error-swallowed" 7 64 "a write that fails, or whose key is over 1024 bytes, says ok"
    TimingLiar "timing-liar" 0 1 "ops are stamped as taking no time"
    WaitingLiar "waiting-liar" 0 1 "a call says that it waited for minutes"
    DanglingBuffer "dangling-buffer" 0 1 "all gets of a batch deliver from one buffer, the last one's bytes"
    DeclaresTooMuch "declares-too-much" 0 1 "declares reverse scans and scans forward"
    WrongMiss "wrong-miss" 3 16 "an absent key is found, with an empty value"
    MissForPresent "miss-for-present" 50 1000 "a key that is there is not found"
    NewOverwrites "new-overwrites" 0 1 "a put of new keys only overwrites"
    DeleteNoop "delete-noop" 1 4 "a delete is acknowledged and not made"
    MergeWrong "merge-wrong" 3 8 "a merge is made twice"
    KeyspaceMixed "keyspace-mixed" 3 16 "a put in another keyspace is made in the first one too"
    IndexRowLost "index-row-lost" 7 64 "a put leaves out the row of one index"
    CollectionMixed "collection-mixed" 3 4 "a put of a field is made in another collection too"
    PopTwice "pop-twice" 3 16 "a pop brings its value and leaves it in the list"
    PushLost "push-lost" 3 16 "a push is acknowledged and not made"
    GetFails "get-fails" 7 64 "a get of a key that is there fails"
}

/// Occasions seen so far, per fault.
static OCCASIONS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

impl Fault {
    /// The fault of a number.
    pub(crate) const fn of(number: u8) -> Fault {
        Fault::ALL[number as usize]
    }

    /// The driver's name.
    pub(crate) const fn name(self) -> &'static CStr {
        text(Fault::NAMES[self as usize])
    }

    /// What it does wrong, in a line.
    pub(crate) const fn text(self) -> &'static CStr {
        text(Fault::TEXTS[self as usize])
    }

    /// Counts an occasion: whether the fault strikes now.
    pub(crate) fn strikes(self) -> bool {
        let rhythm = &Fault::RHYTHMS[self as usize];
        let count = OCCASIONS[self as usize].fetch_add(1, Ordering::Relaxed);
        count >= rhythm.first && (count - rhythm.first).is_multiple_of(rhythm.period)
    }
}

const fn text(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a fault's text has a NUL in it"),
    }
}

/// The fault of a mutant.
impl<const FAULT: u8> Mutant<FAULT> {
    pub(crate) const FAULT: Fault = Fault::of(FAULT);
}
