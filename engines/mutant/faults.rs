//! The list of faults: what each mutant does wrong, and how often.

use crate::{Mutant, execute};
use kvdyno_driver::abi::kv_driver;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// When a fault occurs: at a suitable op (a get of an existing key, a scan of two rows or more), counted
/// over all databases of the process, so that it also occurs in a series of short tests.
pub(crate) struct Rhythm {
    first: u64,
    period: u64,
}

/// One line per fault: its variant, its name, the first occurrence and the period, and what it does.
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

        /// The mutants, in the order in which they are listed: the fault's name (`mutant:NAME` for the user) and the
        /// table, whose `engine` text describes the fault.
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
    StaleRead "stale-read" 3 8 "a get returns the value before the last overwrite"
    StaleStrong "stale-strong" 3 8 "declares that its reads may be stale; one that must be the newest returns the value before the last overwrite"
    LostUpdate "lost-update" 3 16 "an overwrite or a merge is acknowledged but not done"
    LostRace "lost-race" 3 8 "an overwrite of a value written by a concurrent session is acknowledged but not done"
    GhostAfterDelete "ghost-after-delete" 1 4 "a deleted row reappears sixteen ops later"
    BitFlip "bit-flip" 100 10000 "one bit of a value read is flipped, at a position drawn from a seed"
    CacheSwaps "cache-swaps" 7 64 "a cache that has evicted a row returns the value of the next key"
    SwappedValues "swapped-values" 7 64 "a get returns the value of the next key"
    TruncatedValue "truncated-value" 7 64 "a get delivers the first half of a value"
    ZeroPage "zero-page" 7 64 "the first 4 KiB of a value read are zeros"
    WrongKey "wrong-key" 7 64 "a put goes to the key with the last bit flipped"
    ScanOutOfOrder "scan-out-of-order" 1 4 "a scan delivers its second row before its first"
    ScanDuplicate "scan-duplicate" 1 4 "a scan delivers its first row twice"
    ScanMissing "scan-missing" 1 4 "a scan skips its second row"
    ScanPastBound "scan-past-bound" 1 4 "a scan delivers a row past its bound, its prefix or its limit"
    ScanEarlyEnd "scan-early-end" 1 4 "a scan stops after half of its rows and reports the end"
    PhantomPut "phantom-put" 7 32 "a put of a new key is acknowledged but not done"
    AbortCommits "abort-commits" 0 1 "an aborted transaction over several calls is kept"
    NonAtomicTransaction "non-atomic-transaction" 7 16 "a transaction that fails leaves its first half"
    LosesTailOnReopen "loses-tail-on-reopen" 0 1 "the last sixteenth of the log is missing after a reopen"
    LosesCreation "loses-creation" 0 1 "a reopen finds an empty database"
    PreviousCampaign "previous-campaign" 7 64 "a value read has the right key, length and version, but a wrong tag and body"
    ErrorSwallowed "error-swallowed" 7 64 "a write that fails, or whose key is over 1024 bytes, returns ok"
    TimingLiar "timing-liar" 0 1 "ops are stamped with zero duration"
    WaitingLiar "waiting-liar" 0 1 "a call reports that it waited for minutes"
    DanglingBuffer "dangling-buffer" 0 1 "all gets of a batch deliver the bytes of the last one, from one shared buffer"
    DeclaresTooMuch "declares-too-much" 0 1 "declares reverse scans but scans forward"
    WrongMiss "wrong-miss" 3 16 "an absent key is found, with an empty value"
    MissForPresent "miss-for-present" 50 1000 "an existing key is not found"
    NewOverwrites "new-overwrites" 0 1 "an insert-only put overwrites"
    DeleteNoop "delete-noop" 1 4 "a delete is acknowledged but not done"
    MergeWrong "merge-wrong" 3 8 "a merge is applied twice"
    KeyspaceMixed "keyspace-mixed" 3 16 "a put in another keyspace is also applied to the first one"
    IndexRowLost "index-row-lost" 7 64 "a put skips the row of one index"
    CollectionMixed "collection-mixed" 3 4 "a put of a field is also applied to another collection"
    PopTwice "pop-twice" 3 16 "a pop returns its value but leaves it in the list"
    PushLost "push-lost" 3 16 "a push is acknowledged but not done"
    EmptyAbsent "empty-absent" 0 1 "a row with a value of 0 bytes is reported as absent"
    GetFails "get-fails" 7 64 "a get of an existing key fails"
    AcknowledgesBeforeWrite "acknowledges-before-write" 0 1 "at level process, a put is acknowledged before it is written to the file"
    AcknowledgesBeforeSync "acknowledges-before-sync" 7 8 "at level power, only every eighth put is synced before it is acknowledged"
    LiesAboutLevel "lies-about-level" 0 1 "at level power, nothing is synced"
    CrashLosesTail "crash-loses-tail" 0 1 "after a crash the last sixteenth of the commits is missing"
    CrashLosesCreation "crash-loses-creation" 0 1 "after a crash before its first close the database is empty"
    CrashLeavesHoles "crash-leaves-holes" 0 1 "after a crash the fourth last commit is missing"
    CrashHalvesTransaction "crash-halves-transaction" 0 1 "after a crash the last transaction is there by half"
    CrashWritesBehindTorn "crash-writes-behind-torn" 0 1 "after a second crash the commits since the first are missing"
    CrashForgetsRepair "crash-forgets-repair" 0 1 "after a second crash the last commit before the first is missing"
}

/// Suitable ops seen so far, per fault.
static OCCASIONS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

impl Fault {
    /// The fault with a number.
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

    /// Counts a suitable op: whether the fault occurs now.
    pub(crate) fn strikes(self) -> bool {
        let rhythm = &Fault::RHYTHMS[self as usize];
        let count = OCCASIONS[self as usize].fetch_add(1, Ordering::Relaxed);
        count >= rhythm.first && (count - rhythm.first).is_multiple_of(rhythm.period)
    }
}

const fn text(with_nul: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a fault's text contains a NUL"),
    }
}

/// The fault of a mutant.
impl<const FAULT: u8> Mutant<FAULT> {
    pub(crate) const FAULT: Fault = Fault::of(FAULT);
}
