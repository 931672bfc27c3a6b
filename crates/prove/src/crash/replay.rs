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
use super::states::{Blocks, Choice, State, StateKind, States, Written, ZEROS, parts, torn};
use super::worker::Subject;
use super::{Cell, Mode, Replayed, Round, Smallest, Torn, is_interrupted};
use crate::machine::MachineError;
use kvdyno_core::generator::Random;
use kvdyno_core::results::certificate::States as CountedStates;
use kvdyno_measure::volume::{BLOCK_BYTES, Volume};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use strum::VariantArray;

/// The stream of random numbers that choose states whose recovery is crashed.
const RECOVERY_STREAM: u64 = 4;
/// Of the states of a recording, one in so many is a crash during the recovery of another one.
const RECOVERIES: u32 = 10;
/// States that are rebuilt from the recording of one recovery at most.
const OF_RECOVERY: u32 = 10;
/// States that are checked at most to make a failure small.
const CHECKS: u32 = 40;

/// What `--mode replay` does at a crash.
pub(super) const DEVICE: &str = "a block device in user space that records every write and flush, with a volatile cache, in blocks of \
    4 KiB that are never torn: what was written before the last flush is there; of what was written after it, nothing, the first \
    writes, these without one block or two, or any blocks";

/// The same with `--tears`.
pub(super) const TEARING_DEVICE: &str = "a block device in user space that records every write and flush, with a volatile cache, in \
    sectors of 512 bytes: what was written before the last flush is there; of what was written after it, nothing, the first writes, \
    these without one block or two, or with some sectors of one, or any blocks";

/// What is to be replayed.
pub(super) struct Replay<'r> {
    pub subject: &'r Subject,
    /// Commits, without their seed.
    pub script: Script,
    /// The most states.
    pub states: u32,
    /// Whether blocks may be torn.
    pub tears: bool,
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

/// Runs a cell.
pub(super) fn replay(
    replay: &Replay<'_>,
    volume: &mut Volume,
    cell: &mut Cell,
    keeper: Option<Keeper>,
    progress: &mut dyn FnMut(u32),
) -> Result<(), Stopped> {
    let base = blocks_of(&volume.image()).map_err(MachineError::file("read", volume.image()))?;
    let keeper = keeper.map(|keeper| (keeper, cell.file_system.clone()));
    let folder = volume.folder().join(DATABASE);
    let readers = Some(Readers::start(replay.subject, folder, replay.stall)?);
    let mut bench =
        Bench { replay, volume, bytes: base.bytes, readers, small: BTreeSet::new(), keeper, version: None };
    let script = Script { seed: replay.seed, ..replay.script };
    let recorded = record_work(replay.subject, script, bench.volume, replay.stall, cell)?;
    bench.version = cell.version.clone();
    let states = States::of(&recorded, &base.blocks);
    let chosen = states.chosen(replay.states - replay.states / RECOVERIES, script.seed, replay.tears);
    let count_of_chosen = chosen.choices.len() as u32;
    // A tenth of all.
    let recoveries = (replay.states / RECOVERIES).min(count_of_chosen.div_ceil(RECOVERIES - 1));
    let mut plans = planned(&states, &chosen.choices, recoveries, script.seed);
    plans.retain(|plan| replay.only.is_none_or(|only| only == plan.number));
    let mut disk = Disk { recording: &recorded, blocks: base.blocks.clone(), applied: 0 };
    let mut rounds = Vec::new();
    let outcome = bench.rebuild(script, &states, &mut disk, &plans, &mut rounds, progress);
    rounds.sort_by_key(|round: &Round| round.replayed.as_ref().map(|replayed| replayed.state));
    cell.states = counted(&chosen.numbers, &rounds);
    cell.rounds = rounds;
    outcome
}

/// The states of a recording, by kind, and how many of them were judged.
fn counted(numbers: &[(StateKind, u64)], rounds: &[Round]) -> Vec<CountedStates> {
    let of = |kind: &StateKind| {
        let is_own = |round: &&Round| round.replayed.as_ref().is_some_and(|replayed| replayed.kind == *kind);
        let judged = rounds.iter().filter(is_own).count() as u64;
        let all = numbers.iter().find(|(of, _)| of == kind).map(|(_, all)| *all);
        CountedStates { kind: kind.to_string(), judged, all }
    };
    StateKind::VARIANTS.iter().map(of).collect()
}

/// The states of a recording in the order in which they are rebuilt. The last numbers are those of crashes during recoveries, in groups
/// that share the state whose recovery is recorded.
fn planned(states: &States<'_>, choices: &[Choice], recoveries: u32, seed: u64) -> Vec<Planned> {
    let mut plans: Vec<Planned> = choices
        .iter()
        .zip(0..)
        .map(|(choice, number)| Planned { number, choice: *choice, recovery: None })
        .collect();
    let first = choices.len() as u32;
    let mut random = Random::stream(seed, RECOVERY_STREAM);
    for group in 0..recoveries.div_ceil(OF_RECOVERY) {
        let choice = choices[random.below(choices.len() as u64) as usize];
        let numbers = group * OF_RECOVERY..((group + 1) * OF_RECOVERY).min(recoveries);
        plans.extend(numbers.map(|number| Planned { number: first + number, choice, recovery: Some(group) }));
    }
    // The blocks on the medium only change forwards.
    plans.sort_by_key(|planned| (states.position(&planned.choice), planned.number));
    plans
}

/// A state with its number.
struct Planned {
    number: u32,
    choice: Choice,
    /// The group of those that are crashes during the recovery of this state.
    recovery: Option<u32>,
}

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
            self.blocks.extend(self.recording.blocks(entry).map(|(number, block)| (number, block.into())));
        }
        self.applied = self.applied.max(end);
    }

    /// What is kept, in the order in which it was written, each with its first byte on the device.
    fn kept(&self, state: &State) -> Vec<(u64, &[u8])> {
        let parts_of = |piece: &Written| {
            let sectors = state.sectors(*piece);
            let (number, bytes) = self.recording.block(*piece)?;
            let at = number * BLOCK_BYTES;
            Some(match sectors {
                u8::MAX => vec![(at, bytes)],
                _ => parts(bytes, sectors).map(|(first, part)| (at + first as u64, part)).collect(),
            })
        };
        state.kept.iter().filter_map(parts_of).flatten().collect()
    }

    /// The medium of a state.
    fn with(&self, state: &State) -> Blocks {
        let mut blocks = self.blocks.clone();
        for piece in &state.kept {
            let Some((number, bytes)) = self.recording.block(*piece) else { continue };
            let under = blocks.get(&number).map_or(&ZEROS[..], |under| under);
            let written = torn(under, bytes, state.sectors(*piece));
            blocks.insert(number, written.into());
        }
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
    /// Writes an image in place of the last one: the medium, and what is kept of the cache, with its first bytes.
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
            kept.iter().try_for_each(|(at, bytes)| file.write_all_at(bytes, *at))
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
        let mount_ns = self.volume.present().map_err(|error| {
            // Its device may be attached.
            let _ = self.volume.withdraw();
            MachineError::State(error.to_string())
        })?;
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
        states: &States<'_>,
        disk: &mut Disk<'_>,
        plans: &[Planned],
        rounds: &mut Vec<Round>,
        progress: &mut dyn FnMut(u32),
    ) -> Result<(), Stopped> {
        let mut next = 0;
        while let Some(planned) = plans.get(next) {
            let state = states.state(&planned.choice);
            disk.advance(state.position);
            let Some(recovery) = planned.recovery else {
                progress(rounds.len() as u32);
                let kind = planned.choice.kind;
                match self.round(script, disk, planned.number, kind, &state, None) {
                    // A file system may not survive that its own block is torn, and the engine has no part in that.
                    Err(Stopped::Machine(MachineError::State(_))) if kind == StateKind::Torn => {}
                    round => rounds.push(round?),
                }
                next += 1;
                continue;
            };
            // The recovery of this state is recorded once, and crashed at several positions.
            let group: Vec<&Planned> =
                plans[next..].iter().take_while(|other| other.recovery == Some(recovery)).collect();
            next += group.len();
            let at = disk.recording.at(state.position);
            let may_create = may_create(&at);
            let blocks = disk.with(&state);
            self.write(&blocks, &[])?;
            let folder = self.volume.folder().join(DATABASE);
            let recorded =
                record_recovery(&self.replay.reader(script, &folder, may_create), self.volume, &at)?;
            let recovered = States::of(&recorded, &blocks);
            let seed = script.seed ^ u64::from(recovery + 1) << 32;
            let choices = recovered.any(StateKind::Recovery, group.len() as u32, seed);
            let mut crashes: Vec<(u32, State)> = group
                .iter()
                .zip(&choices)
                .map(|(one, choice)| (one.number, recovered.state(choice)))
                .collect();
            crashes.sort_by_key(|(number, state)| (state.position, *number));
            let mut disk = Disk { recording: &recorded, blocks, applied: 0 };
            for (number, state) in &crashes {
                disk.advance(state.position);
                progress(rounds.len() as u32);
                let kind = StateKind::Recovery;
                rounds.push(self.round(script, &disk, *number, kind, state, Some(may_create))?);
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
        number: u32,
        kind: StateKind,
        state: &State,
        of_recovery: Option<bool>,
    ) -> Result<Round, Stopped> {
        let recording = disk.recording;
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
            state: number,
            kind,
            position: (state.position - recording.first) as u64,
            entries: (recording.entries.len() - recording.first) as u64,
            pending: recording.pending(state.position) as u64,
            kept: state.kept.len() as u64,
            torn: state.torn.and_then(|(piece, sectors)| {
                let (block, _) = recording.block(piece)?;
                Some(Torn {
                    block,
                    sectors: (0..u8::BITS).filter(|sector| sectors >> sector & 1 == 1).collect(),
                })
            }),
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
        least = best.kept.last().map_or(least, |piece| least.max(piece.entry + 1));
        while least < best.position {
            let middle = State { position: least + (best.position - least) / 2, ..best.clone() };
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
    use kvdyno_measure::volume::record::{Act, Entry};

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
