//! The rules of a workload beyond its syntax; each broken rule is an error of one line.

mod collections;
mod rounds;

use super::{Index, OpKind, Phase, Workload, WorkloadError};
use crate::generator::{Distribution, SizeSpec};
use std::collections::HashSet;
use std::fmt::Display;

/// Sizes of keys that engines and encodings support.
const KEY_SIZES: (f64, f64) = (4.0, 65536.0);
/// Sizes of values; an arena can hold several of the largest.
const VALUE_SIZES: (f64, f64) = (1.0, 1073741824.0);
/// The maximum number of threads of a phase; more are taken for a typing error.
const MOST_THREADS: u64 = 4096;
/// The maximum number of ops of a group: a group is part of one call to the driver, and its memory is allocated in
/// advance.
const MOST_GROUPED: u32 = 65536;
/// The maximum numbers of keyspaces of rows and of indexes of each: all of them have numbers of 16 bits.
const MOST_KEYSPACES: u32 = 4096;
const MOST_INDEXES: usize = 8;

/// The maximum number of keys, or of ops of a phase: at a million ops a second, this many take thirty years.
const MOST_COUNT: u64 = 1_000_000_000_000_000;
/// The maximum number of seconds of a phase: over three years.
const MOST_SECONDS: f64 = 1e8;

/// The minimum memory cap; below this the harness leaves nothing to the engine.
const LEAST_MEMORY: u64 = 16 << 20;

/// A broken rule and its place: the phase's position in the list, and the field as written in files (`scan.prefix`).
pub(super) struct Fault {
    pub phase: Option<usize>,
    pub field: &'static str,
    pub message: String,
}

type Checked = Result<(), Fault>;

/// The subject of a check: the workload, or one of its phases.
#[derive(Clone, Copy)]
struct Subject<'a> {
    phase: Option<(usize, &'a Phase)>,
}

impl Subject<'_> {
    fn expect(self, holds: bool, field: &'static str, expected: impl Display, got: impl Display) -> Checked {
        if holds { Ok(()) } else { self.fault(field, format!("expected {expected}, got {got}")) }
    }

    fn fault(self, field: &'static str, message: impl Display) -> Checked {
        let who = match self.phase {
            Some((_, phase)) if !phase.name.is_empty() => format!("phase `{}`: ", phase.name),
            Some((place, _)) => format!("phase {}: ", place + 1),
            None => String::new(),
        };
        let what = if field.is_empty() { String::new() } else { format!("`{field}`: ") };
        let message = format!("{who}{what}{message}");
        Err(Fault { phase: self.phase.map(|(place, _)| place), field, message })
    }

    fn share(self, value: f64, field: &'static str) -> Checked {
        self.expect((0.0..=1.0).contains(&value), field, "a share from 0 to 1", value)
    }

    fn time(self, value: f64, field: &'static str) -> Checked {
        let expected = format!("a time from 0 to {MOST_SECONDS} seconds");
        self.expect((0.0..=MOST_SECONDS).contains(&value), field, expected, value)
    }

    fn count(self, value: u64, field: &'static str) -> Checked {
        self.expect(value <= MOST_COUNT, field, format!("up to {MOST_COUNT}"), value)
    }

    fn size(self, size: &SizeSpec, field: &'static str, (least, most): (f64, f64)) -> Checked {
        if let Err(error) = size.clone().checked() {
            return self.fault(field, error);
        }
        let (low, high) = bounds(size);
        let got = match size {
            SizeSpec::Normal(..) => format!("{size}, which goes from {low} to {high}"),
            other => other.to_string(),
        };
        self.expect(low >= least && high <= most, field, format!("sizes from {least} to {most} bytes"), got)
    }

    fn grouped(self, value: u32, field: &'static str) -> Checked {
        self.expect((1..=MOST_GROUPED).contains(&value), field, format!("1 to {MOST_GROUPED}"), value)
    }
}

impl Workload {
    /// Checks whether the workload can be run; the first broken rule is the error.
    /// The generator checks whether keys are large enough for their number.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.sound().map_err(|fault| WorkloadError::new(&format!("workload {}", self.name), fault.message))
    }

    /// The first fault, with its place.
    pub(super) fn sound(&self) -> Checked {
        let this = Subject { phase: None };
        this.expect(
            is_name(&self.name, "-_."),
            "name",
            "letters, digits, `-`, `_` and `.`",
            quoted(&self.name),
        )?;
        this.expect(self.runs >= 1, "runs", "1 or more", self.runs)?;
        if let Some(budget) = self.budget_seconds {
            this.expect(
                budget > 0.0 && budget <= MOST_SECONDS,
                "budget_seconds",
                format!("a time over 0 and up to {MOST_SECONDS} seconds"),
                budget,
            )?;
        }
        if let Some(bytes) = self.memory_bytes {
            this.expect(
                bytes >= LEAST_MEMORY,
                "memory_bytes",
                "16MiB or more, because the harness counts too",
                bytes,
            )?;
        }
        let share = self.value.compressed_share;
        this.expect(share > 0.0 && share <= 1.0, "value.compressed_share", "over 0 and up to 1", share)?;
        this.size(&self.value.size, "value.size", VALUE_SIZES)?;
        self.sound_keys(this)?;
        self.sound_indexes(this)?;
        self.sound_rounds(this)?;
        self.sound_collections(this)?;
        this.expect(!self.phases.is_empty(), "phase", "at least one [[phase]]", "none")?;
        let mut names = HashSet::new();
        for (place, phase) in self.phases.iter().enumerate() {
            let subject = Subject { phase: Some((place, phase)) };
            self.sound_phase_name(subject, phase)?;
            subject.expect(
                names.insert(&phase.name),
                "name",
                "a unique name",
                "the name of an earlier phase",
            )?;
            sound_mix(subject, phase)?;
            sound_end(subject, phase)?;
            self.sound_draws(subject, phase)?;
            self.sound_indexed(subject, phase)?;
            self.sound_in_collections(subject, phase)?;
            sound_groups(subject, phase)?;
            self.sound_fill(this, phase)?;
            self.sound_turns(subject, phase)?;
        }
        self.sound_start()
    }

    fn sound_keys(&self, this: Subject) -> Checked {
        let key = &self.key;
        this.size(&key.size, "key.size", KEY_SIZES)?;
        this.expect(key.spacing >= 1, "key.spacing", "1 or more", key.spacing)?;
        this.count(self.keys, "keys")?;
        let fits = self.keys.checked_mul(key.spacing).is_some();
        this.expect(
            fits,
            "key.spacing",
            "keys times spacing below 2^64",
            format!("{} * {}", self.keys, key.spacing),
        )?;
        if key.alternate > 0 {
            let plain = !key.scattered && key.file.is_none() && key.prefix_groups == 0;
            let expected = "0 for keys that are scattered, hashed, random, grouped or from a file";
            this.expect(plain && key.encoding.is_ordered(), "key.alternate", expected, key.alternate)?;
        }
        if key.prefix_groups > 0 {
            let (least, _) = bounds(&key.size);
            let holds = key.prefix_size >= 1 && f64::from(key.prefix_size) < least;
            this.expect(
                holds,
                "key.prefix_size",
                format!("1 or more and below key.size, {least}"),
                key.prefix_size,
            )?;
        }
        if let Some(file) = &key.file {
            this.expect(!file.is_empty(), "key.file", "a path", "an empty text")?;
            let fixed = matches!(key.size, SizeSpec::Fixed(_));
            this.expect(fixed, "key.size", "one size for the keys of a file", &key.size)?;
            this.expect(key.prefix_groups == 0, "key.prefix_groups", "0 with a key file", key.prefix_groups)?;
        }
        Ok(())
    }

    /// The rules of keyspaces and indexes.
    fn sound_indexes(&self, this: Subject) -> Checked {
        let (count, keys) = (self.keyspaces, self.keys);
        let expected = format!("1 to {MOST_KEYSPACES}");
        this.expect((1..=MOST_KEYSPACES).contains(&count), "keyspaces", expected, count)?;
        this.expect(
            u64::from(count) <= keys || keys == 0,
            "keyspaces",
            format!("no more than {keys} keys"),
            count,
        )?;
        let (indexes, file) = (&self.indexes, self.key.file.is_some());
        this.expect(
            indexes.len() <= MOST_INDEXES,
            "indexes",
            format!("up to {MOST_INDEXES}"),
            indexes.len(),
        )?;
        this.expect(indexes.is_empty() || !file, "indexes", "none with a key file", indexes.len())?;
        let (least, _) = bounds(&self.value.size);
        for Index { from, length, .. } in indexes {
            this.expect(*length >= 1, "indexes", "a length of 1 or more", length)?;
            let end = f64::from(*from) + f64::from(*length);
            let expected = format!("bytes that every value has (the smallest value has {least})");
            this.expect(end <= least, "indexes", expected, format!("{length} from byte {from} on"))?;
        }
        Ok(())
    }

    /// Indexed rows are written once, by `insert_indexed`, so that the contents of an index are known without reading.
    fn sound_indexed(&self, subject: Subject, phase: &Phase) -> Checked {
        let (mix, indexes) = (&phase.mix, self.indexes.len());
        let has = indexes > 0;
        let expected = "indexes = [{ from = 24, length = 8 }] at the top of the file for insert_indexed";
        subject.expect(has || mix.insert_indexed == 0.0, "mix", expected, "none")?;
        let index = phase.scan.index;
        let known = u32::try_from(indexes).is_ok_and(|indexes| index <= indexes);
        subject.expect(known, "scan.index", format!("0 to {indexes}, the number of indexes"), index)?;
        let both = index > 0 && phase.scan.prefix;
        subject.expect(!both, "scan.prefix", "false with an index", phase.scan.prefix)?;
        if !has {
            return Ok(());
        }
        let expected = "insert_indexed and reads only, because rows with indexes are written once";
        for kind in mix.kinds() {
            let fits = !kind.writes() || kind == OpKind::InsertIndexed;
            subject.expect(fits, "mix", expected, kind.field())?;
        }
        subject.expect(
            phase.writers == 0,
            "writers",
            "0 with indexes, because their rows are written once",
            phase.writers,
        )?;
        let size = phase.value_size.as_ref().map_or_else(String::new, ToString::to_string);
        subject.expect(
            phase.value_size.is_none(),
            "value_size",
            "the workload's value.size with indexes",
            size,
        )
    }

    fn sound_phase_name(&self, subject: Subject, phase: &Phase) -> Checked {
        let expected = "letters, digits, `-` and `_`";
        subject.expect(is_name(&phase.name, "-_"), "name", expected, quoted(&phase.name))?;
        // `--set key.size=8` must not be ambiguous.
        let taken = ["key", "value", "collections", "phase"].contains(&phase.name.as_str());
        subject.expect(!taken, "name", "a name that is not a table of the file format", quoted(&phase.name))
    }

    fn sound_draws(&self, subject: Subject, phase: &Phase) -> Checked {
        // Files are checked when they are parsed, but a workload may also come from code.
        if let Err(error) = phase.distribution.clone().checked() {
            return subject.fault("distribution", error);
        }
        subject.share(phase.miss, "miss")?;
        if phase.miss > 0.0 {
            let reads = phase.mix.get > 0.0 || phase.mix.multi_get > 0.0 || phase.readers > 0;
            subject.expect(
                reads,
                "miss",
                "get or multi_get in the mix, or readers, if miss is over 0",
                "none",
            )?;
            let file = self.key.file.is_some();
            subject.expect(!file, "miss", "0 with a key file, which has no unused keys", phase.miss)?;
            let gap = self.key.spacing >= 2;
            subject.expect(
                gap,
                "miss",
                "key.spacing of 2 or more, because misses use the numbers in the gaps",
                self.key.spacing,
            )?;
        }
        if let Some(existing) = phase.existing {
            subject.share(existing, "existing")?;
            let puts = phase.mix.put > 0.0 || phase.mix.insert > 0.0 || phase.writers > 0;
            subject.expect(
                puts,
                "existing",
                "put or insert in the mix, or writers, if existing is set",
                "none",
            )?;
        }
        if phase.scan.prefix {
            let groups = self.key.prefix_groups;
            subject.expect(
                groups > 0,
                "scan.prefix",
                "key.prefix_groups over 0 for scans of a prefix",
                groups,
            )?;
        }
        match &phase.value_size {
            Some(size) => subject.size(size, "value_size", VALUE_SIZES),
            None => Ok(()),
        }
    }

    /// The first phase cannot read an empty database.
    fn sound_start(&self) -> Checked {
        let Some(phase) = self.phases.first() else { return Ok(()) };
        let mix = &phase.mix;
        let writes = mix.has(OpKind::needs_no_rows) || phase.writers > 0;
        let may_miss = |kind: OpKind| matches!(kind, OpKind::Get | OpKind::MultiGet);
        let gets = (mix.has(may_miss) || phase.readers > 0) && phase.miss < 1.0;
        let starts_empty = !writes && (gets || mix.has(|kind| !may_miss(kind)));
        let subject = Subject { phase: Some((0, phase)) };
        subject.expect(
            !starts_empty,
            "mix",
            "a phase that fills the database before this one",
            "an empty database",
        )
    }
}

fn sound_mix(subject: Subject, phase: &Phase) -> Checked {
    for kind in OpKind::ALL {
        let share = phase.mix.share(kind);
        subject.expect(share.is_finite() && share >= 0.0, kind.field(), "a share of 0 or more", share)?;
    }
    let (threads, readers, writers) = (phase.threads, phase.readers, phase.writers);
    let all = u64::from(threads) + u64::from(readers) + u64::from(writers);
    let threads_expected = format!("1 to {MOST_THREADS} threads, readers and writers together");
    subject.expect((1..=MOST_THREADS).contains(&all), "threads", threads_expected, all)?;
    let mixed = phase.mix.has(|_| true);
    if threads > 0 {
        let expected = "a share over 0 such as mix = { get = 1 } (or threads = 0 with readers and writers)";
        return subject.expect(mixed, "mix", expected, "none");
    }
    subject.expect(!mixed, "threads", "1 or more for the mix", threads)
}

fn sound_end(subject: Subject, phase: &Phase) -> Checked {
    subject.time(phase.seconds, "seconds")?;
    subject.time(phase.warmup_seconds, "warmup_seconds")?;
    subject.count(phase.ops, "ops")?;
    let ends = phase.ops > 0 || phase.each_key || phase.seconds > 0.0;
    subject.expect(ends, "", "an end (ops, seconds or each_key = true)", "none")?;
    if phase.each_key {
        let once = matches!(phase.distribution, Distribution::Sequential | Distribution::Permutation);
        let expected = "`sequential` or `permutation` with each_key";
        subject.expect(once, "distribution", expected, format!("`{}`", phase.distribution))?;
    }
    let (warmup, seconds) = (phase.warmup_seconds, phase.seconds);
    let expected = format!("less than the phase's {seconds} seconds");
    subject.expect(seconds == 0.0 || warmup < seconds, "warmup_seconds", expected, warmup)
}

fn sound_groups(subject: Subject, phase: &Phase) -> Checked {
    subject.grouped(phase.join, "join")?;
    rounds::sound_group_kinds(subject, phase)?;
    rounds::sound_transaction(subject, phase)?;
    subject.grouped(phase.multi_get_keys, "multi_get_keys")?;
    subject.grouped(phase.transaction_ops, "transaction_ops")?;
    let endless = phase.scan.uniform_rows && phase.scan.rows == 0;
    subject.expect(!endless, "scan.rows", "1 or more with uniform_rows", phase.scan.rows)
}

/// The smallest and the largest size of a valid spec.
fn bounds(size: &SizeSpec) -> (f64, f64) {
    match size {
        SizeSpec::Fixed(size) => (f64::from(*size), f64::from(*size)),
        SizeSpec::Uniform(least, most) | SizeSpec::Zipf(least, most) => (f64::from(*least), f64::from(*most)),
        SizeSpec::Normal(mean, deviation) => ((mean - 4.0 * deviation).max(1.0), mean + 4.0 * deviation),
        SizeSpec::Histogram(bars) => {
            let sizes = || bars.iter().map(|(size, _)| f64::from(*size));
            (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max))
        }
    }
}

/// Whether the text can be the name of a folder and, without dots, the first part of `--set`.
pub(super) fn is_name(text: &str, marks: &str) -> bool {
    let starts = text.starts_with(|sign: char| sign.is_ascii_alphanumeric());
    starts && text.chars().all(|sign| sign.is_ascii_alphanumeric() || marks.contains(sign))
}

fn quoted(text: &str) -> String {
    if text.is_empty() { "none".to_string() } else { format!("{text:?}") }
}
