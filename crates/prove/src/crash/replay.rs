//! Replay: from one recording of what a device was asked to do, states are rebuilt that a power cut could have left, and each is
//! checked like any other crash. The device has a volatile cache: what was written before the last flush is there, and of what came
//! after it any part may be.

use super::board::Snapshot;
use super::course::Course;
use super::evidence::{Case, Keeper};
use super::forks::Readers;
use super::medium::trouble_on;
use super::no_result::Stopped;
use super::oracle::{Judgement, Verdict};
use super::recording::{DATABASE, Recording, record_recovery, record_work};
use super::round::{Read, Reader};
use super::script::Script;
use super::worker::Subject;
use super::{Cell, Mode, Replayed, Round, Smallest, is_interrupted};
use crate::machine::MachineError;
use kvdyno_core::generator::Random;
use kvdyno_measure::volume::record::Act;
use kvdyno_measure::volume::{BLOCK_BYTES, Volume};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// The stream of random numbers that choose states.
const STATE_STREAM: u64 = 3;
/// States that are rebuilt from one recording at most.
const STATES: u32 = 500;
/// The first positions of a log that are all tested: the database is created there.
const FIRST: u32 = 100;
/// Of the states of a recording, one in so many is a crash during the recovery of another one.
const RECOVERIES: u32 = 10;
/// States that are rebuilt from the recording of one recovery at most.
const OF_RECOVERY: u32 = 10;
/// States that are checked at most to make a failure small.
const CHECKS: u32 = 40;
/// Shares of the blocks after the last flush that are kept.
const SHARES: [f64; 4] = [0.1, 0.5, 0.5, 0.9];

/// What `--mode replay` does at a crash.
pub(super) const DEVICE: &str = "a block device in user space that records every write and flush, with a volatile cache, in blocks of \
    4 KiB that are never torn: what was written before the last flush is there; of what was written after it, nothing, the first \
    writes, some writes, or some blocks of some writes";

/// What is to be replayed.
pub(super) struct Replay<'r> {
    pub subject: &'r Subject,
    /// Commits, without their seed.
    pub script: Script,
    /// The states to be numbered.
    pub states: u32,
    /// Only this one is rebuilt.
    pub only: Option<u32>,
    pub seed: u64,
    pub stall: Duration,
}

impl Replay<'_> {
    fn reader<'r>(&'r self, script: Script, folder: &'r Path, may_create: bool) -> Reader<'r> {
        Reader { subject: self.subject, script, folder, may_create, stall: self.stall }
    }
}

/// A state of a device: a position in the log, and the blocks after the last flush before it that are kept. They are numbers of
/// entries and of blocks in them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    position: usize,
    kept: Vec<(usize, usize)>,
}

/// How a state is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The n-th position of the log.
    First(u32),
    /// Any position.
    Any,
    /// Any position of the recovery of the state of this group.
    Recovery(u32),
}

/// How the states of a recording are chosen, by number.
fn choice(number: u32, states: u32) -> Choice {
    let first = FIRST.min(states.div_ceil(2));
    let recoveries = states / RECOVERIES;
    if number < first {
        Choice::First(number)
    } else if number < states - recoveries {
        Choice::Any
    } else {
        Choice::Recovery((number - (states - recoveries)) / OF_RECOVERY)
    }
}

/// Runs a cell.
pub(super) fn replay(
    replay: &Replay<'_>,
    volume: &mut Volume,
    (cell, keeper): (&mut Cell, Option<Keeper>),
    progress: &mut dyn FnMut(u32),
) -> Result<(), Stopped> {
    let base = blocks_of(&volume.image()).map_err(MachineError::file("read", volume.image()))?;
    let keeper = keeper.map(|keeper| (keeper, cell.file_system.clone()));
    let folder = volume.folder().join(DATABASE);
    let readers = Some(Readers::start(replay.subject, folder, replay.stall)?);
    let mut bench =
        Bench { replay, volume, bytes: base.bytes, readers, small: BTreeSet::new(), keeper, version: None };
    for recording in 0..replay.states.div_ceil(STATES) {
        let numbers = recording * STATES..((recording + 1) * STATES).min(replay.states);
        if replay.only.is_some_and(|only| !numbers.contains(&only)) {
            continue;
        }
        let script = Script { seed: replay.seed.wrapping_add(u64::from(recording)), ..replay.script };
        bench.write(&base.blocks, &[])?;
        let recorded = record_work(replay.subject, script, bench.volume, replay.stall, cell)?;
        bench.version = cell.version.clone();
        let mut disk = Disk { recording: &recorded, blocks: base.blocks.clone(), applied: 0 };
        let count = numbers.end - numbers.start;
        let mut plans: Vec<Planned> = Vec::new();
        for number in numbers.filter(|number| replay.only.is_none_or(|only| only == *number)) {
            let choice = choice(number % STATES, count);
            // All states of a group share the state whose recovery is recorded.
            let stream = match choice {
                Choice::Recovery(group) => u64::from(STATES + group),
                _ => u64::from(number % STATES),
            };
            let mut random = Random::stream(script.seed ^ stream << 32, STATE_STREAM);
            let state = recorded.state(choice, &mut random);
            plans.push(Planned { number, choice, state });
        }
        // The blocks on the medium only change forwards.
        plans.sort_by_key(|planned| (planned.state.position, planned.number));
        let mut rounds = Vec::new();
        let outcome = bench.rebuild(script, &mut disk, &plans, &mut rounds, progress);
        rounds.sort_by_key(|round: &Round| round.replayed.as_ref().map(|replayed| replayed.state));
        cell.rounds.extend(rounds);
        outcome?;
    }
    Ok(())
}

/// A state with its number.
struct Planned {
    number: u32,
    choice: Choice,
    state: State,
}

impl Recording {
    /// The blocks that were written after the last flush before a position.
    fn pending(&self, position: usize) -> Vec<(usize, usize)> {
        let first = self.flushed(position);
        let blocks = |entry: usize| match &self.entries[entry].act {
            Act::Write(_, data) => data.len() / BLOCK_BYTES as usize,
            Act::Flush => 0,
        };
        (first..position).flat_map(|entry| (0..blocks(entry)).map(move |block| (entry, block))).collect()
    }

    /// Draws a state.
    fn state(&self, choice: Choice, random: &mut Random) -> State {
        let positions = self.entries.len() - self.first + 1;
        let number = match choice {
            // The log may have fewer entries.
            Choice::First(number) if (number as usize) < positions => number as usize,
            _ => random.below(positions as u64) as usize,
        };
        let position = self.first + number;
        let mut kept = self.pending(position);
        let share = SHARES[random.below(SHARES.len() as u64) as usize];
        match random.below(4) {
            0 => kept.clear(),
            1 => {
                let first = self.flushed(position);
                let end = first + random.below((position - first) as u64 + 1) as usize;
                kept.retain(|(entry, _)| *entry < end);
            }
            2 => {
                let chosen: Vec<bool> = (0..position).map(|_| random.unit() < share).collect();
                kept.retain(|(entry, _)| chosen[*entry]);
            }
            _ => kept.retain(|_| random.unit() < share),
        }
        State { position, kept }
    }

    /// A block that an entry wrote, and its number on the device.
    fn block(&self, (entry, block): (usize, usize)) -> Option<(u64, &[u8])> {
        match &self.entries.get(entry)?.act {
            Act::Write(first, data) => {
                let bytes = data.chunks_exact(BLOCK_BYTES as usize).nth(block)?;
                Some((first + block as u64, bytes))
            }
            Act::Flush => None,
        }
    }
}

type Blocks = BTreeMap<u64, Rc<[u8]>>;

/// The blocks of a medium, which changes forwards.
struct Disk<'r> {
    recording: &'r Recording,
    blocks: Blocks,
    /// Entries that are on it.
    applied: usize,
}

impl Disk<'_> {
    /// Puts everything before the last flush before a position on the medium.
    fn advance(&mut self, position: usize) {
        let end = self.recording.flushed(position);
        for entry in self.applied..end {
            if let Act::Write(first, data) = &self.recording.entries[entry].act {
                for (number, block) in data.chunks_exact(BLOCK_BYTES as usize).enumerate() {
                    self.blocks.insert(first + number as u64, block.into());
                }
            }
        }
        self.applied = self.applied.max(end);
    }

    /// The blocks that are kept, in the order in which they were written.
    fn kept(&self, state: &State) -> Vec<(u64, &[u8])> {
        state.kept.iter().filter_map(|piece| self.recording.block(*piece)).collect()
    }

    /// The medium of a state.
    fn with(&self, state: &State) -> Blocks {
        let mut blocks = self.blocks.clone();
        blocks.extend(self.kept(state).into_iter().map(|(number, bytes)| (number, bytes.into())));
        blocks
    }
}

/// The blocks of an image that are not all zero.
struct Image {
    blocks: Blocks,
    bytes: u64,
}

fn blocks_of(path: &Path) -> io::Result<Image> {
    const PIECE: usize = 256 * BLOCK_BYTES as usize;
    let mut file = File::open(path)?;
    let (mut blocks, mut bytes, mut piece) = (Blocks::new(), 0, vec![0; PIECE]);
    let zeros = vec![0; PIECE];
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match file.read(&mut piece[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if filled == 0 {
            return Ok(Image { blocks, bytes });
        }
        if piece[..filled] != zeros[..filled] {
            for (number, block) in piece[..filled].chunks(BLOCK_BYTES as usize).enumerate() {
                if block != &zeros[..block.len()] {
                    blocks.insert(bytes / BLOCK_BYTES + number as u64, block.into());
                }
            }
        }
        bytes += filled as u64;
    }
}

/// Where states are rebuilt.
struct Bench<'b> {
    replay: &'b Replay<'b>,
    volume: &'b mut Volume,
    bytes: u64,
    /// `None` if each database is read by a process that loads the engine.
    readers: Option<Readers>,
    /// Verdicts of which a failure was made small.
    small: BTreeSet<Verdict>,
    /// Keeps the database of a failure that was made small; with the name of the file system.
    keeper: Option<(Keeper, String)>,
    /// The engine's version.
    version: Option<String>,
}

/// What else is done with a state that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    /// Nothing.
    Nothing,
    /// A process reads it that was not forked from another one that has loaded the engine.
    Fresh,
    /// The same, and the database is kept if it is wrong.
    Keep,
}

/// What was found in a state.
struct Found {
    judgement: Judgement,
    read: Read,
    mount_ns: u64,
    /// The folder in which the database is kept.
    kept: Option<PathBuf>,
}

impl Bench<'_> {
    /// Writes an image in place of the last one: the medium, and what is kept of the cache.
    fn write(&self, blocks: &Blocks, kept: &[(u64, &[u8])]) -> Result<(), MachineError> {
        /// Neighbouring blocks are written by one call.
        const RUN: usize = 256 * BLOCK_BYTES as usize;
        let path = self.volume.image();
        let write = || -> io::Result<()> {
            // The last one may still be open.
            std::fs::remove_file(&path)?;
            let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.set_len(self.bytes)?;
            let (mut first, mut run) = (0, Vec::with_capacity(RUN));
            for (number, block) in blocks {
                if run.len() >= RUN || *number * BLOCK_BYTES != first + run.len() as u64 {
                    file.write_all_at(&run, first)?;
                    (first, run) = (*number * BLOCK_BYTES, Vec::with_capacity(RUN));
                }
                run.extend_from_slice(block);
            }
            file.write_all_at(&run, first)?;
            kept.iter().try_for_each(|(number, block)| file.write_all_at(block, number * BLOCK_BYTES))
        };
        write().map_err(MachineError::file("write", path.clone()))
    }

    /// Rebuilds a state and reads the database in it.
    fn check(
        &mut self,
        script: Script,
        disk: &Disk<'_>,
        state: &State,
        at: &Snapshot,
        may_create: bool,
    ) -> Result<Found, Stopped> {
        self.check_and(script, disk, state, at, may_create, Extra::Nothing)
    }

    /// Rebuilds a state, reads the database in it, and does what else is asked for.
    fn check_and(
        &mut self,
        script: Script,
        disk: &Disk<'_>,
        state: &State,
        at: &Snapshot,
        may_create: bool,
        extra: Extra,
    ) -> Result<Found, Stopped> {
        if is_interrupted() {
            return Err(Stopped::Interrupted);
        }
        self.write(&disk.blocks, &disk.kept(state))?;
        let mount_ns = self.volume.present().map_err(|error| MachineError::State(error.to_string()))?;
        let folder = self.volume.folder().join(DATABASE);
        let keeper = self.keeper.as_ref().filter(|_| extra == Extra::Keep);
        let copied = keeper.map(|(keeper, _)| keeper.copy(&folder)).transpose();
        let read = match &mut self.readers {
            Some(readers) if extra == Extra::Nothing => readers.read(script, may_create),
            _ => self.replay.reader(script, &folder, may_create).read(),
        };
        let judged = read.as_ref().map(|read| read.judgement(&script, &at.bounds)).ok();
        let said = judged.and_then(|judgement| judgement.detail).unwrap_or_default();
        let trouble = trouble_on(self.volume, &said);
        // Without this, unmounting would write what nobody needs; not all file systems have it.
        let _ = self.volume.cut();
        self.volume.withdraw().map_err(MachineError::from)?;
        let (read, copied) = (read?, copied?);
        let mut judgement = read.judgement(&script, &at.bounds);
        let hole = || disk.recording.hole_across_threads(state.position, &judgement.left);
        if let Some(text) = (judgement.verdict == Verdict::Lost).then(hole).flatten() {
            let detail = judgement.detail.take().unwrap_or_default();
            (judgement.verdict, judgement.detail) = (Verdict::Holes, Some(format!("{detail}; {text}")));
        }
        if let Some(trouble) = trouble.filter(|_| judgement.verdict != Verdict::Ok) {
            return Err(trouble.into());
        }
        let mut kept = None;
        if let (Some((keeper, file_system)), Some(copied)) = (self.keeper.as_mut(), copied) {
            let case = Case {
                subject: self.replay.subject,
                version: self.version.as_ref(),
                mode: Mode::Replay,
                file_system,
                script,
                bounds: &at.bounds,
                may_create,
            };
            kept = keeper.keep(copied, &case, &judgement)?;
        }
        Ok(Found { judgement, read, mount_ns, kept })
    }

    /// Checks a state, and one that fails a second time: the state is the same, so that what differs is due to this machine, or the
    /// engine does not always do the same.
    fn judged(
        &mut self,
        script: Script,
        disk: &Disk<'_>,
        state: &State,
        at: &Snapshot,
        may_create: bool,
    ) -> Result<Found, Stopped> {
        let found = self.check(script, disk, state, at, may_create)?;
        let is_claimed = self.replay.subject.level >= Mode::Replay.promised_at();
        // Where nothing else is promised, most states may lack the last commits.
        let is_expected = found.judgement.verdict == Verdict::Lost && !is_claimed;
        if found.judgement.verdict == Verdict::Ok || is_expected {
            return Ok(found);
        }
        let again = self.check_and(script, disk, state, at, may_create, Extra::Fresh)?;
        if self.readers.is_some() && again.judgement.verdict != found.judgement.verdict {
            let third = self.check(script, disk, state, at, may_create)?;
            if third.judgement.verdict == found.judgement.verdict {
                // An engine that does not work in a fork is not to blame for that.
                self.readers = None;
                return self.judged(script, disk, state, at, may_create);
            }
        }
        Ok(confirmed(found, again))
    }

    /// Rebuilds states of a recording, in the order of their positions.
    fn rebuild(
        &mut self,
        script: Script,
        disk: &mut Disk<'_>,
        plans: &[Planned],
        rounds: &mut Vec<Round>,
        progress: &mut dyn FnMut(u32),
    ) -> Result<(), Stopped> {
        let mut next = 0;
        while let Some(planned) = plans.get(next) {
            disk.advance(planned.state.position);
            let Choice::Recovery(_) = planned.choice else {
                progress(rounds.len() as u32);
                rounds.push(self.round(script, disk, planned, None)?);
                next += 1;
                continue;
            };
            // The recovery of this state is recorded once, and crashed at several positions.
            let group: Vec<&Planned> =
                plans[next..].iter().take_while(|other| other.choice == planned.choice).collect();
            next += group.len();
            let at = disk.recording.at(planned.state.position);
            let may_create = may_create(&at);
            let blocks = disk.with(&planned.state);
            self.write(&blocks, &[])?;
            let folder = self.volume.folder().join(DATABASE);
            let reader = self.replay.reader(script, &folder, may_create);
            let recorded = record_recovery(&reader, self.volume, &at)?;
            let mut states: Vec<Planned> = Vec::new();
            for one in group {
                let mut random = Random::stream(script.seed ^ u64::from(one.number) << 32, STATE_STREAM);
                let state = recorded.state(Choice::Any, &mut random);
                states.push(Planned { number: one.number, choice: one.choice, state });
            }
            states.sort_by_key(|one| (one.state.position, one.number));
            let mut disk = Disk { recording: &recorded, blocks, applied: 0 };
            for one in &states {
                disk.advance(one.state.position);
                progress(rounds.len() as u32);
                rounds.push(self.round(script, &disk, one, Some(may_create))?);
            }
        }
        Ok(())
    }

    /// Checks a state and makes a failure as small as possible. `of_recovery` says whether the database may be created again if the
    /// crash is one of its recovery.
    fn round(
        &mut self,
        script: Script,
        disk: &Disk<'_>,
        planned: &Planned,
        of_recovery: Option<bool>,
    ) -> Result<Round, Stopped> {
        let (recording, state) = (disk.recording, &planned.state);
        let at = recording.at(state.position);
        let may = |at: &Snapshot| of_recovery.unwrap_or_else(|| may_create(at));
        let found = self.judged(script, disk, state, &at, may(&at))?;
        let verdict = found.judgement.verdict;
        let (mut smallest, mut kept) = (None, None);
        if verdict != Verdict::Ok && self.small.insert(verdict) {
            let (best, checks) = self.smallest(script, disk, state, verdict, &may)?;
            let at = recording.at(best.position);
            if self.keeper.is_some() {
                kept = self.check_and(script, disk, &best, &at, may(&at), Extra::Keep)?.kept;
            }
            let blocks = best.kept.iter().filter_map(|piece| recording.block(*piece));
            smallest = Some(Smallest {
                position: (best.position - recording.first) as u64,
                blocks: blocks.map(|(number, _)| number).collect(),
                acked: at.acked(),
                checks,
            });
        }
        let replayed = Replayed {
            state: planned.number,
            position: (state.position - recording.first) as u64,
            entries: (recording.entries.len() - recording.first) as u64,
            pending: recording.pending(state.position).len() as u64,
            kept: state.kept.len() as u64,
            smallest,
        };
        Ok(Round {
            seed: script.seed,
            verdict,
            detail: found.judgement.detail,
            stage: at.stage,
            in_recovery: of_recovery.is_some(),
            acked: at.acked(),
            started: at.bounds.iter().map(|bounds| bounds.started).sum(),
            lost: found.judgement.lost,
            is_empty: found.judgement.is_empty,
            mount_ns: Some(found.mount_ns),
            recovery_ns: found.read.recovery_ns,
            reopen_ns: found.read.reopen_ns,
            replayed: Some(replayed),
            called: None,
            kept,
            course: Course::default(),
        })
    }

    /// Looks for the state with the fewest blocks, and then the earliest position, that still fails in this way. Returns it with the
    /// number of states that were checked.
    fn smallest(
        &mut self,
        script: Script,
        disk: &Disk<'_>,
        state: &State,
        verdict: Verdict,
        may: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<(State, u32), Stopped> {
        let mut checks = 0;
        let mut fails = |bench: &mut Self, state: &State| -> Result<bool, Stopped> {
            if checks >= CHECKS {
                return Ok(false);
            }
            checks += 1;
            let at = disk.recording.at(state.position);
            let found = bench.check(script, disk, state, &at, may(&at))?;
            let found = found.judgement.verdict;
            Ok(found == verdict || verdict.is_loss() && found.is_loss())
        };
        let mut best = state.clone();
        // Without any, then without each half, quarter and so on.
        let mut piece = best.kept.len();
        while piece > 0 {
            let mut from = 0;
            while from < best.kept.len() {
                let mut tried = best.clone();
                tried.kept.drain(from..(from + piece).min(best.kept.len()));
                if fails(self, &tried)? {
                    best = tried;
                } else {
                    from += piece;
                }
            }
            piece = if piece == 1 { 0 } else { piece.min(best.kept.len()).div_ceil(2) };
        }
        let recording = disk.recording;
        let mut least = recording.flushed(best.position).max(recording.first);
        least = best.kept.last().map_or(least, |(entry, _)| least.max(entry + 1));
        while least < best.position {
            let middle = State { position: least + (best.position - least) / 2, kept: best.kept.clone() };
            if fails(self, &middle)? {
                best = middle;
            } else {
                least = middle.position + 1;
            }
        }
        Ok((best, checks))
    }
}

/// What a state is that was judged twice.
fn confirmed(found: Found, again: Found) -> Found {
    let (first, second) = (found.judgement.verdict, again.judgement.verdict);
    if first == second {
        return found;
    }
    if first == Verdict::OpenHung && second == Verdict::Ok {
        // A busy machine may stop a process for as long.
        return again;
    }
    let seen = found.judgement.detail.unwrap_or_default();
    let detail = Some(format!("{seen}; the same state, judged a second time: {second}"));
    Found { judgement: Judgement { detail, ..found.judgement }, ..found }
}

/// Whether a database was crashed before its creation had ended: then it may also be created again.
fn may_create(at: &Snapshot) -> bool {
    at.stage.is_creating()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::board::Stage;
    use crate::crash::oracle::{Bounds, Left};
    use kvdyno_measure::volume::record::Entry;

    /// A log of writes of 1 to 3 blocks and flushes; each block is filled with the number of its entry.
    fn recording(seed: u64) -> Recording {
        let mut random = Random::seeded(seed);
        let count = random.below(60) as usize;
        let entry = |number: usize| {
            let blocks = 1 + random.below(3) as usize;
            let act = match random.below(4) {
                0 => Act::Flush,
                _ => Act::Write(random.below(20), vec![number as u8 + 1; blocks * BLOCK_BYTES as usize]),
            };
            let snapshot = Snapshot {
                stage: if number < 5 { Stage::Create } else { Stage::Run },
                bounds: vec![Bounds { acked: number as u64, started: number as u64 + 1 }],
            };
            Entry { stamp: snapshot.words(), act }
        };
        let entries: Vec<Entry> = (0..count).map(entry).collect();
        let bounds = vec![Bounds { acked: count as u64, started: count as u64 }];
        Recording { entries, first: 0, end: Snapshot { stage: Stage::Run, bounds } }
    }

    #[test]
    fn the_first_positions_are_all_tested_and_every_kind_of_state_has_its_share() {
        for (states, first, recoveries) in [(1, 1, 0), (2, 1, 0), (50, 25, 5), (200, 100, 20), (500, 100, 50)]
        {
            let all: Vec<Choice> = (0..states).map(|number| choice(number, states)).collect();
            let expected: Vec<Choice> = (0..first).map(Choice::First).collect();
            let count = |is: fn(&Choice) -> bool| all.iter().filter(|choice| is(choice)).count();
            assert_eq!(all[..first as usize], expected);
            assert_eq!(count(|choice| matches!(choice, Choice::First(_))), first as usize);
            assert_eq!(count(|choice| matches!(choice, Choice::Recovery(_))), recoveries);
        }
    }

    #[test]
    fn what_was_flushed_is_in_every_state_and_nothing_that_was_not_yet_written() {
        for seed in 0..300 {
            let recorded = recording(seed);
            let state = recorded.state(Choice::Any, &mut Random::seeded(seed + 1000));
            let flushed = recorded.flushed(state.position);
            assert!(flushed == 0 || recorded.entries[flushed - 1].act == Act::Flush);
            assert!(recorded.entries[flushed..state.position].iter().all(|entry| entry.act != Act::Flush));
            let pending = recorded.pending(state.position);
            assert!(state.kept.iter().all(|piece| pending.contains(piece)), "seed {seed}");
            let mut disk = Disk { recording: &recorded, blocks: Blocks::new(), applied: 0 };
            // In several steps, as states are rebuilt.
            disk.advance(state.position / 2);
            disk.advance(state.position);
            let blocks = disk.with(&state);
            // The same by hand: entry by entry.
            let mut expected: BTreeMap<u64, u8> = BTreeMap::new();
            for (number, entry) in recorded.entries[..state.position].iter().enumerate() {
                let Act::Write(first, data) = &entry.act else { continue };
                for block in 0..data.len() / BLOCK_BYTES as usize {
                    if number < flushed || state.kept.contains(&(number, block)) {
                        expected.insert(first + block as u64, number as u8 + 1);
                    }
                }
            }
            let found: BTreeMap<u64, u8> = blocks.iter().map(|(number, block)| (*number, block[0])).collect();
            assert_eq!(found, expected, "seed {seed}");
        }
    }

    fn found(verdict: Verdict) -> Found {
        let detail = (verdict != Verdict::Ok).then(|| "bad magic".to_string());
        let judgement = Judgement { verdict, detail, lost: 0, left: Vec::new(), is_empty: false };
        Found { judgement, read: Read::default(), mount_ns: 1, kept: None }
    }

    #[test]
    fn a_state_that_fails_once_and_not_again_says_so_and_one_that_hangs_once_is_no_failure() {
        let judged = |first, second| {
            let Judgement { verdict, detail, .. } = confirmed(found(first), found(second)).judgement;
            (verdict, detail)
        };
        let failed = Verdict::OpenFailed;
        assert_eq!(judged(failed, failed), (failed, Some("bad magic".into())));
        let detail = "bad magic; the same state, judged a second time: OK".to_string();
        assert_eq!(judged(failed, Verdict::Ok), (failed, Some(detail)));
        assert_eq!(judged(Verdict::OpenHung, Verdict::Ok), (Verdict::Ok, None));
        assert_eq!(judged(Verdict::OpenHung, Verdict::OpenHung).0, Verdict::OpenHung);
    }

    #[test]
    fn an_empty_log_has_one_position_with_what_was_acknowledged_at_the_end() {
        let end = Snapshot { stage: Stage::Close, bounds: vec![Bounds { acked: 7, started: 7 }] };
        let recorded = Recording { entries: Vec::new(), first: 0, end };
        for number in 0..20 {
            let state = recorded.state(choice(number, 20), &mut Random::seeded(u64::from(number)));
            assert_eq!(state, State { position: 0, kept: Vec::new() });
            assert_eq!(recorded.at(state.position).acked(), 7);
        }
    }

    #[test]
    fn a_position_has_the_counters_of_the_instant_before_its_entry() {
        let recorded = recording(3);
        for position in 0..recorded.entries.len() {
            let at = recorded.at(position);
            assert_eq!((at.acked(), may_create(&at)), (position as u64, position < 5));
        }
        assert_eq!(recorded.at(recorded.entries.len()), recorded.end);
    }

    #[test]
    fn a_commit_that_is_missing_before_a_later_one_of_another_thread_is_a_hole() {
        let bounds = |acked, started| Bounds { acked, started };
        // Thread 0 has acknowledged commit 3 before thread 1 starts commit 2.
        let stamps = [
            vec![bounds(2, 3), bounds(1, 1)],
            vec![bounds(3, 3), bounds(1, 1)],
            vec![bounds(3, 4), bounds(1, 2)],
            vec![bounds(4, 4), bounds(2, 2)],
        ];
        let snapshot = |bounds: Vec<Bounds>| Snapshot { stage: Stage::Run, bounds };
        let entry = |bounds| Entry { stamp: snapshot(bounds).words(), act: Act::Flush };
        let end = snapshot(stamps[3].clone());
        let recorded = Recording { entries: stamps.into_iter().map(entry).collect(), first: 0, end };
        let left = |first, second| {
            [(first, first), (second, second)].map(|(nearest, newest)| Left { nearest, newest })
        };
        let found = recorded.hole_across_threads(4, &left(2, 2)).unwrap();
        let expected = "commit 3 of thread 0 was acknowledged before commit 2 of thread 1 was started, and only the latter is there";
        assert_eq!(found, expected);
        // Commit 4 of thread 0 and commit 2 of thread 1 were made at the same time, and one more may be missing of each.
        for (first, second) in [(3, 2), (2, 1), (4, 2), (4, 1), (0, 1), (0, 0)] {
            assert_eq!(recorded.hole_across_threads(4, &left(first, second)), None, "{first} {second}");
        }
        // Before the entry that tells.
        assert_eq!(recorded.hole_across_threads(0, &left(2, 2)), None);
    }

    #[test]
    fn an_image_is_read_as_its_blocks_that_are_not_zero() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let file = File::create_new(&path).unwrap();
        file.set_len(1000 * BLOCK_BYTES).unwrap();
        for number in [0u64, 7, 300, 999] {
            file.write_all_at(&[number as u8 | 1; BLOCK_BYTES as usize], number * BLOCK_BYTES).unwrap();
        }
        let image = blocks_of(&path).unwrap();
        assert_eq!(image.bytes, 1000 * BLOCK_BYTES);
        assert_eq!(image.blocks.keys().copied().collect::<Vec<_>>(), [0, 7, 300, 999]);
        assert!(image.blocks.values().all(|block| block.iter().all(|byte| *byte == block[0] && *byte != 0)));
    }
}
