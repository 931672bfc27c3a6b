//! The rules of a workload beyond its syntax; each broken rule is an error of one line.

use super::fault::{MOST_DELAY_SECONDS, MOST_FAULT_SECONDS, MOST_FAULTS};
use super::{
    Access, Arriving, Collections, Emulate, FaultKind, Index, MemberFault, OpKind, Phase, Scan, Until,
    Workload, WorkloadError,
};
use crate::generator::{Distribution, Hot, Places, SizeSpec};
use kvdyno_measure::text::{bytes_text, grouped, listed};
use std::collections::HashSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Bytes of the number in the key of a list element.
const SEQUENCE_BYTES: u32 = 8;
/// The maximum number of collections: each has a name of two bytes, and one more name exists after the last.
const MOST_COLLECTIONS: u32 = 65535;
/// The maximum number of rounds of a workload; each leaves a record of each of its phases.
const MOST_ROUNDS: u32 = 10_000;
/// Sizes of keys that engines and encodings support.
const KEY_SIZES: RangeInclusive<f64> = 4.0..=65536.0;
/// Sizes of values; an arena can hold several of the largest.
const VALUE_SIZES: RangeInclusive<f64> = 0.0..=1073741824.0;
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
/// A shorter phase is never known to be steady.
const LEAST_STEADY_SECONDS: f64 = 40.0;

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
            Some((_, phase)) if !phase.name.is_empty() => format!("phase `{}`: ", phase.name.escape_debug()),
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
        self.expect(value <= MOST_COUNT, field, format!("up to {}", grouped(MOST_COUNT)), grouped(value))
    }

    fn size(self, size: &SizeSpec, field: &'static str, range: RangeInclusive<f64>) -> Checked {
        if let Err(error) = size.clone().checked() {
            return self.fault(field, error);
        }
        let (low, high) = bounds(size);
        let got = match size {
            SizeSpec::Normal(..) => format!("{size}, which goes from {low} to {high}"),
            SizeSpec::Fixed(bytes) => bytes_text(u64::from(*bytes)),
            other => other.to_string(),
        };
        let (least, most) = range.into_inner();
        let expected = format!("sizes from {} to {}", bytes_text(least as u64), bytes_text(most as u64));
        self.expect(low >= least && high <= most, field, expected, got)
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
        for (field, seconds) in [("budget_seconds", self.budget_seconds), ("load_seconds", self.load_seconds)]
        {
            let seconds = seconds.unwrap_or(1.0);
            this.expect(
                seconds > 0.0 && seconds <= MOST_SECONDS,
                field,
                format!("a time over 0 and up to {MOST_SECONDS} seconds"),
                seconds,
            )?;
        }
        if let Some(bytes) = self.memory_bytes {
            this.expect(
                bytes >= LEAST_MEMORY,
                "memory_bytes",
                format!("{} or more, because the harness counts too", bytes_text(LEAST_MEMORY)),
                bytes_text(bytes),
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
        self.sound_faults(this)?;
        self.sound_start()
    }

    /// The fields of phases that are set but have no effect, because the mix lacks the ops that use them: what a user expects of them
    /// would not be measured. Such a workload can still run, and a field may lose its effect when the mix is changed.
    pub(super) fn idle(&self) -> Vec<Fault> {
        let all = self.phases.iter().enumerate();
        all.flat_map(|(place, phase)| idle(Subject { phase: Some((place, phase)) }, phase)).collect()
    }

    /// Faults are at moments of phases that end by time, whose keys exist and are written one by one, so that what a failed write
    /// may have done is known.
    fn sound_faults(&self, this: Subject) -> Checked {
        if self.faults.is_empty() {
            return Ok(());
        }
        let (field, count) = ("fault", self.faults.len());
        this.expect(count <= MOST_FAULTS, field, format!("up to {MOST_FAULTS}"), count)?;
        let expected = "none with [[fault]], because phases that shrink have other moments";
        let budget = self.budget_seconds;
        this.expect(budget.is_none(), "budget_seconds", expected, budget.unwrap_or(0.0))?;
        for fault in &self.faults {
            let found = self.phases.iter().enumerate().find(|(_, phase)| phase.name == fault.phase);
            let Some(subject) = found.map(|found| Subject { phase: Some(found) }) else {
                let names: Vec<&str> = self.phases.iter().map(|phase| phase.name.as_str()).collect();
                let expected = format!("a phase of the workload ({})", names.join(", "));
                return this.expect(false, field, expected, quoted(&fault.phase));
            };
            self.sound_fault(this, subject, fault)?;
        }
        for phase in &self.phases {
            let own = self.faults_of(phase);
            for (before, fault) in own.iter().zip(own.iter().skip(1)) {
                let end = before.for_seconds.map(|seconds| before.at_seconds + seconds);
                let is_over =
                    before.kind == FaultKind::Restart || end.is_some_and(|end| end <= fault.at_seconds);
                let expected = "one fault at a time in a phase";
                let got =
                    format!("one at {} s while that of {} s lasts", fault.at_seconds, before.at_seconds);
                this.expect(is_over, field, expected, got)?;
            }
        }
        Ok(())
    }

    fn sound_fault(&self, this: Subject, subject: Subject, fault: &MemberFault) -> Checked {
        let Some((_, phase)) = subject.phase else { return Ok(()) };
        let timed = phase.seconds > 0.0 && phase.seconds <= MOST_FAULT_SECONDS;
        let expected = format!("a time up to {MOST_FAULT_SECONDS} seconds for a phase with a [[fault]]");
        subject.expect(timed, "seconds", expected, phase.seconds)?;
        let expected = "0 for a phase with a [[fault]], which ends by time";
        subject.expect(phase.ops == 0, "ops", expected, phase.ops)?;
        let once = !phase.each_key && !phase.each_round;
        let expected = "a phase that ends by time and runs once";
        subject.expect(once, if phase.each_round { "each_round" } else { "each_key" }, expected, "true")?;
        let (at, end) = (fault.at_seconds, phase.seconds);
        let expected = format!("at_seconds from 0 and below {end}, the seconds of phase `{}`", phase.name);
        this.expect((0.0..end).contains(&at), "fault", expected, at)?;
        if let Some(lasts) = fault.for_seconds {
            let expected = "no for_seconds for a restart, which ends when the member has started";
            this.expect(fault.kind != FaultKind::Restart, "fault", expected, lasts)?;
            let expected = format!("for_seconds above 0, up to the end of phase `{}` at {end} s", phase.name);
            this.expect(lasts > 0.0 && at + lasts <= end, "fault", expected, lasts)?;
        }
        match (fault.kind, fault.delay_seconds) {
            (FaultKind::Slow, delay) => {
                let fits = delay.is_some_and(|delay| delay > 0.0 && delay <= MOST_DELAY_SECONDS);
                let expected =
                    format!("delay_seconds above 0 and up to {MOST_DELAY_SECONDS} for a slow disk");
                let got = delay.map_or_else(|| "none".to_string(), |delay| delay.to_string());
                this.expect(fits, "fault", expected, got)?;
            }
            (kind, Some(delay)) => {
                let expected = format!("no delay_seconds, which only a slow disk has, for a {}", kind.name());
                this.expect(false, "fault", expected, delay)?;
            }
            (_, None) => {}
        }
        for kind in phase.mix.kinds() {
            let fits = matches!(
                kind,
                OpKind::Get | OpKind::MultiGet | OpKind::Put | OpKind::Update | OpKind::ReadModifyWrite
            );
            let expected =
                "get, multi_get, put, update and read_modify_write only in a phase with a [[fault]]";
            subject.expect(fits, "mix", expected, kind.field())?;
        }
        let expected = "1 in a phase with a [[fault]]";
        subject.expect(phase.join == 1, "join", expected, phase.join)?;
        let expected = "none in a phase with a [[fault]]";
        subject.expect(phase.transaction.is_none(), "transaction", expected, "one")?;
        subject.expect(phase.existing.is_none(), "existing", expected, phase.existing.unwrap_or(0.0))?;
        let expected = "none in a workload with a [[fault]]";
        subject.expect(!phase.grows, "grows", "false in a phase with a [[fault]]", phase.grows)?;
        this.expect(self.indexes.is_empty(), "indexes", expected, self.indexes.len())
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
        let taken = ["key", "value", "collections", "phase", "fault"].contains(&phase.name.as_str());
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

    /// The phases of a round are consecutive, and more than one round needs such a phase.
    fn sound_rounds(&self, this: Subject) -> Checked {
        let expected = format!("1 to {MOST_ROUNDS}");
        this.expect((1..=MOST_ROUNDS).contains(&self.rounds), "rounds", expected, self.rounds)?;
        let is_of_round = |phase: &Phase| phase.each_round;
        let Some(first) = self.phases.iter().position(is_of_round) else {
            let expected = "1, or each_round = true in the phases that repeat";
            return this.expect(self.rounds == 1, "rounds", expected, self.rounds);
        };
        let side_by_side = self.phases[first..].iter().take_while(|phase| phase.each_round).count();
        let strays = self.phases.iter().enumerate().skip(first + side_by_side);
        for (place, phase) in strays.filter(|(_, phase)| phase.each_round) {
            let subject = Subject { phase: Some((place, phase)) };
            let before = &self.phases[place - 1].name;
            let got = format!("`{before}` between them");
            subject.expect(false, "each_round", "consecutive phases in a round", got)?;
        }
        Ok(())
    }

    /// Without keys to fill, no phase can process each key, and the first writes must be inserts.
    fn sound_fill(&self, this: Subject, phase: &Phase) -> Checked {
        let puts = (phase.mix.put > 0.0 || phase.writers > 0) && phase.existing.is_none();
        let fills = phase.each_key || puts || phase.mix.merge > 0.0;
        let name = &phase.name;
        let expected = format!("1 or more for phase `{name}`, which puts, merges or processes each key");
        this.expect(self.keys > 0 || !fills, "keys", expected, self.keys)
    }

    /// Whether rounds insert keys in turns; if so, each phase inserts one half of a turn.
    pub(super) fn turns_are_phases(&self) -> bool {
        self.key.alternate > 0 && self.phases.iter().any(|phase| phase.each_round && inserts(phase))
    }

    /// A phase of a round inserts either the serial or the random half of a turn.
    fn sound_turns(&self, subject: Subject, phase: &Phase) -> Checked {
        let turn = self.key.alternate;
        if turn == 0 || !phase.each_round || !inserts(phase) {
            return Ok(());
        }
        let expected =
            format!("{turn}, the value of key.alternate, so that each phase inserts one half of a turn");
        subject.expect(phase.ops == turn && !phase.each_key, "ops", expected, phase.ops)?;
        let expected = "0 with key.alternate, where a phase inserts one half of a turn";
        subject.expect(phase.seconds == 0.0, "seconds", expected, phase.seconds)
    }

    /// The rules of the collections themselves.
    fn sound_collections(&self, this: Subject) -> Checked {
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
    fn sound_in_collections(&self, subject: Subject, phase: &Phase) -> Checked {
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
    sound_rate(subject, phase)?;
    subject.time(phase.warmup_seconds, "warmup_seconds")?;
    subject.count(phase.ops, "ops")?;
    let ends = phase.each_key || phase.ops_limit().is_some() || phase.seconds_limit().is_some();
    subject.expect(ends, "", "an end (ops, seconds or each_key = true)", "none")?;
    if phase.each_key {
        let once = Distribution::names(|row| row.places == Places::OwnPart).join("` or `");
        let expected = format!("`{once}` with each_key");
        subject.expect(
            phase.distribution.is_pass(),
            "distribution",
            expected,
            format!("`{}`", phase.distribution),
        )?;
    }
    sound_until(subject, phase)?;
    let Some(seconds) = phase.seconds_limit() else { return Ok(()) };
    let (warmup, expected) = (phase.warmup_seconds, format!("less than the phase's {seconds} seconds"));
    subject.expect(warmup < seconds, "warmup_seconds", expected, warmup)
}

/// A phase that ends when it is steady has a limit, in case it never is.
fn sound_until(subject: Subject, phase: &Phase) -> Checked {
    if phase.until == Until::Limit {
        return Ok(());
    }
    let has_limit = phase.seconds_limit().is_some_and(|seconds| seconds > LEAST_STEADY_SECONDS);
    let expected = format!("a limit of more than {LEAST_STEADY_SECONDS} s with until = \"steady\"");
    subject.expect(has_limit, "seconds", expected, phase.seconds)?;
    let is_once = !phase.each_round && !phase.each_key;
    subject.expect(is_once, "until", "limit in a phase of rounds or with each_key", "steady")
}

fn sound_groups(subject: Subject, phase: &Phase) -> Checked {
    subject.grouped(phase.join, "join")?;
    sound_group_kinds(subject, phase)?;
    sound_transaction(subject, phase)?;
    subject.grouped(phase.multi_get_keys, "multi_get_keys")?;
    subject.grouped(phase.transaction_ops, "transaction_ops")?;
    let Scan { rows, uniform_rows, pareto_rows, .. } = phase.scan;
    subject.expect(!uniform_rows || rows > 0, "scan.rows", "1 or more with uniform_rows", rows)?;
    let Some(shape) = pareto_rows else { return Ok(()) };
    // Files are checked when they are parsed, but a workload may also come from code.
    if let Err(error) = shape.checked() {
        return subject.fault("scan.pareto_rows", error);
    }
    subject.expect(rows > 0, "scan.rows", "1 or more with pareto_rows", rows)?;
    subject.expect(!uniform_rows, "scan.uniform_rows", "false with pareto_rows", uniform_rows)
}

/// A rate that depends on the length of its phase has one.
fn sound_rate(subject: Subject, phase: &Phase) -> Checked {
    let Some(rate) = &phase.rate else { return Ok(()) };
    let fits = !rate.needs_length() || phase.seconds_limit().is_some();
    let expected = "a time for a phase with steps or a ramp, which go over all of it";
    subject.expect(fits, "seconds", expected, phase.seconds)?;
    let has_roles = phase.readers + phase.writers > 0;
    let expected = "own in a phase with readers or writers, because the thread decides what a request does";
    subject.expect(!has_roles || phase.arrivals == Arriving::Own, "arrivals", expected, phase.arrivals)
}

/// The fields of a phase that are set although none of its ops uses them.
fn idle(subject: Subject, phase: &Phase) -> Vec<Fault> {
    let (usual, scan) = (Phase::default(), &phase.scan);
    let of_mix = |is: &dyn Fn(OpKind) -> bool| phase.mix.has(is);
    let writes = |is: &dyn Fn(OpKind) -> bool| of_mix(is) || phase.writers > 0 && is(OpKind::Put);
    let has_values = |kind: OpKind| {
        let access = kind.access();
        matches!(access, Access::Put | Access::Insert | Access::Change | Access::Push)
    };
    // Puts and inserts of new keys only, pushes and pops take keys in turn.
    let draws = |kind: OpKind| match kind.access() {
        Access::Insert => phase.existing.is_some_and(|share| share > 0.0),
        Access::Put => phase.existing != Some(0.0),
        Access::Push | Access::Pop => false,
        Access::Read | Access::Change | Access::Delete | Access::Count => true,
    };
    let has_draws = phase.readers > 0 || phase.each_key || writes(&draws);
    let has_hot_keys = phase.distribution.row().hot == Hot::Chosen;
    let with_hot_keys = Distribution::names(|row| row.hot == Hot::Chosen);
    let with_hot_keys = format!("a distribution with hot keys, {}", listed(&with_hot_keys, "or"));
    let scans = of_mix(&|kind| kind == OpKind::Scan);
    let rules = [
        (
            phase.multi_get_keys == usual.multi_get_keys || of_mix(&|kind| kind == OpKind::MultiGet),
            "multi_get_keys",
            "multi_get in the mix",
        ),
        (
            phase.transaction_ops == usual.transaction_ops || of_mix(&|kind| kind == OpKind::Transaction),
            "transaction_ops",
            "transaction in the mix",
        ),
        (scan.rows == usual.scan.rows || scans, "scan.rows", "scan in the mix"),
        (!scan.uniform_rows || scans, "scan.uniform_rows", "scan in the mix"),
        (scan.pareto_rows.is_none() || scans, "scan.pareto_rows", "scan in the mix"),
        (!scan.reverse || scans, "scan.reverse", "scan in the mix"),
        (!scan.prefix || scans, "scan.prefix", "scan in the mix"),
        (scan.index == 0 || scans, "scan.index", "scan in the mix"),
        (
            phase.join == 1 || writes(&OpKind::is_joined),
            "join",
            "put, insert, update, delete, merge, insert_indexed or push in the mix, or writers, to join their writes",
        ),
        (
            phase.value_size.is_none() || writes(&has_values),
            "value_size",
            "an op that writes values in the mix",
        ),
        (
            !phase.grows || writes(&|kind| kind.inserts(phase)),
            "grows",
            "insert in the mix, or put with existing below 1, so that the range can grow",
        ),
        (!phase.clustered || has_hot_keys, "clustered", with_hot_keys.as_str()),
        (phase.arrivals == usual.arrivals || phase.rate.is_some(), "arrivals", "rate"),
        (phase.when_late == usual.when_late || phase.rate.is_some(), "when_late", "rate"),
        (
            phase.distribution == usual.distribution || has_draws,
            "distribution",
            "an op that draws keys in the mix; inserts, pushes and pops take them in turn",
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, ..)| !holds);
    broken.filter_map(|(_, field, expected)| subject.expect(false, field, expected, "none").err()).collect()
}

/// The smallest and the largest size of a valid spec.
fn bounds(size: &SizeSpec) -> (f64, f64) {
    match size {
        SizeSpec::Fixed(size) => (f64::from(*size), f64::from(*size)),
        SizeSpec::Uniform(least, most) | SizeSpec::Zipf(least, most) | SizeSpec::Pareto(_, least, most) => {
            (f64::from(*least), f64::from(*most))
        }
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

/// Whether the phase writes new keys.
fn inserts(phase: &Phase) -> bool {
    phase.mix.has(|kind| kind.inserts(phase))
}

/// A phase that is one transaction has one session. Transactions do not support lists.
fn sound_transaction(subject: Subject, phase: &Phase) -> Checked {
    if phase.transaction.is_none() {
        return Ok(());
    }
    let threads = phase.threads.saturating_add(phase.readers).saturating_add(phase.writers);
    subject.expect(threads == 1, "transaction", "1 thread for a transaction that spans a phase", threads)?;
    let has_lists = phase.mix.has(OpKind::is_of_lists);
    subject.expect(!has_lists, "transaction", "no lists in a transaction", "push or pop in the mix")
}

/// The ops of atomic groups, and the ops that can be emulated.
fn sound_group_kinds(subject: Subject, phase: &Phase) -> Checked {
    let mix = &phase.mix;
    let is_joined = mix.has(|kind| kind.is_joined() && !kind.is_of_lists());
    let expected =
        "put, insert, update, delete, merge or insert_indexed in the mix, or writers, for atomic groups";
    subject.expect(!phase.atomic || is_joined || phase.writers > 0, "atomic", expected, "none")?;
    let emulates = phase.emulate.contains(&Emulate::Merge);
    subject.expect(!emulates || mix.merge > 0.0, "emulate", "merge in the mix to emulate it", "none")?;
    let (rows, least) = (phase.scan.rows_per_call, mix.scan);
    subject.expect(rows == 0 || least > 0.0, "scan.rows_per_call", "scan in the mix", "none")
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
    fn a_field_without_effect_in_its_mix_is_an_error() {
        let told = |lines: &str| {
            let text = format!(
                "keys = 100\nkey.prefix_groups = 5\n[[phase]]\nname = 'load'\nmix.put = 1\ndistribution = 'permutation'\n\
                 each_key = true\n[[phase]]\nname = 'a'\nops = 5\n{lines}\n"
            );
            parse(&text, "w.toml").map_or_else(|error| error.to_string(), |_| String::new())
        };
        // The field, a mix in which it has no effect, and one in which it has.
        for (field, without, with) in [
            ("multi_get_keys = 16", "mix.get = 1", "mix.multi_get = 1"),
            ("transaction_ops = 4", "mix.update = 1", "mix.transaction = 1"),
            ("scan.rows = 10", "mix.get = 1", "mix = { get = 1, scan = 0.1 }"),
            ("scan.uniform_rows = true", "mix.get = 1", "mix.scan = 1"),
            ("scan.pareto_rows = '2,5'", "mix.get = 1", "mix.scan = 1"),
            ("scan.reverse = true", "mix.get = 1", "mix.scan = 1"),
            ("scan.prefix = true", "mix.get = 1", "mix.scan = 1"),
            ("join = 10", "mix.get = 1", "mix.delete = 1"),
            ("join = 10", "mix.read_modify_write = 1", "mix.get = 1\nwriters = 1"),
            ("value_size = 50", "mix = { get = 1, delete = 1 }", "mix.update = 1"),
            ("value_size = 50", "mix.merge = 1", "mix.get = 1\nwriters = 1"),
            ("grows = true", "mix = { get = 1, update = 1 }", "mix = { get = 1, insert = 1 }"),
            ("clustered = true", "mix.get = 1", "mix.get = 1\ndistribution = 'zipf:0.9'"),
            ("distribution = 'zipf:0.9'", "mix.insert = 1", "mix = { get = 1, insert = 1 }"),
            ("distribution = 'zipf:0.9'", "mix.put = 1\nexisting = 0", "mix.put = 1\nexisting = 0.5"),
            ("miss = 0.5", "mix.update = 1", "mix.get = 1"),
            ("emulate = 'merge'", "mix.get = 1", "mix.merge = 1"),
            ("atomic = true", "mix.get = 1", "mix.update = 1"),
        ] {
            let name = field.split(' ').next().unwrap();
            let error = told(&format!("{field}\n{without}"));
            assert!(
                error.starts_with("w.toml:1") && error.contains(&format!("phase `a`: `{name}`: expected ")),
                "{field}: {error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
            assert_eq!(told(&format!("{field}\n{with}")), "", "{field} with {with}");
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
