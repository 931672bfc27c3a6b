//! Which states a power cut may leave of what a device has recorded, each image once. A device keeps all that was written before the
//! last flush. Of what was written after it, the states have: the first writes, from none to all; the same without one block; without
//! two; and some blocks, as a seed chooses.
//!
//! A state that is possible at several moments is judged at the last one, when the most was acknowledged.

use super::recording::Recording;
use kvdyno_core::generator::Random;
use kvdyno_measure::volume::BLOCK_BYTES;
use kvdyno_measure::volume::record::Act;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;
use strum::{Display, VariantArray};

/// The stream of random numbers that choose states.
const STATE_STREAM: u64 = 3;
/// More states without one block, or without two, are not listed but drawn.
const LISTED: u64 = 1 << 18;
/// Draws for one state that was not chosen before.
const DRAWS: u32 = 50;
/// Bytes of a sector, which is written completely or not at all if blocks may be torn.
pub(super) const SECTOR_BYTES: usize = 512;
/// A block where nothing was written.
pub(super) const ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];
/// Shares of the blocks after the last flush that are kept.
const SHARES: [f64; 4] = [0.1, 0.5, 0.5, 0.9];
/// The first states of a recording are all judged if not all are, up to this number: the database is created there.
const FIRST: usize = 100;

/// The blocks of a medium by their numbers.
pub(super) type Blocks = BTreeMap<u64, Rc<[u8]>>;

/// What is missing in a state of what was written after the last flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, VariantArray)]
pub enum StateKind {
    /// The last writes: the device has kept the first ones.
    #[strum(serialize = "positions")]
    Position,
    /// The last writes, and one block.
    #[strum(serialize = "with one block lost")]
    OneLost,
    /// The last writes, and two blocks.
    #[strum(serialize = "with two blocks lost")]
    TwoLost,
    /// The last writes, and some sectors of one block.
    #[strum(serialize = "with one block torn")]
    Torn,
    /// Any blocks.
    #[strum(serialize = "with any blocks lost")]
    Any,
    /// Of the recovery of another state: any blocks.
    #[strum(serialize = "in a recovery")]
    Recovery,
}

/// A block that an entry of a recording wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Written {
    /// The number of the entry.
    pub entry: usize,
    /// The number of the block in it.
    pub block: usize,
}

/// A state of a device: a position in the log, and the blocks after the last flush before it that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub position: usize,
    pub kept: Vec<Written>,
    /// Of this block only these sectors are kept: one bit for each, the lowest for the first.
    pub torn: Option<(Written, u8)>,
}

impl State {
    /// The sectors of a block that are kept.
    pub(super) fn sectors(&self, piece: Written) -> u8 {
        self.torn.filter(|(torn, _)| *torn == piece).map_or(u8::MAX, |(_, sectors)| sectors)
    }
}

/// The parts of a block that these sectors are, with their first bytes.
pub(super) fn parts(bytes: &[u8], sectors: u8) -> impl Iterator<Item = (usize, &[u8])> {
    let of =
        bytes.chunks_exact(SECTOR_BYTES).enumerate().filter(move |(sector, _)| sectors >> sector & 1 == 1);
    of.map(|(sector, part)| (sector * SECTOR_BYTES, part))
}

/// A block over which these sectors of another one were written.
pub(super) fn torn(under: &[u8], bytes: &[u8], sectors: u8) -> Vec<u8> {
    let mut torn = under.to_vec();
    for (at, part) in parts(bytes, sectors) {
        torn[at..at + SECTOR_BYTES].copy_from_slice(part);
    }
    torn
}

/// The ways in which a write of a block may be torn: of the sectors that it changes, some of the first ones are there, or of the last.
fn tears_of(under: &[u8], bytes: &[u8]) -> Vec<u8> {
    let both = under.chunks_exact(SECTOR_BYTES).zip(bytes.chunks_exact(SECTOR_BYTES)).enumerate();
    let changed: Vec<u8> =
        both.filter(|(_, (under, new))| under != new).map(|(sector, _)| 1 << sector).collect();
    let sum = |sectors: &[u8]| sectors.iter().fold(0, |sum, sector| sum | sector);
    let splits = 1..changed.len();
    splits.flat_map(|split| [sum(&changed[..split]), sum(&changed[split..])]).collect()
}

/// What is between two flushes.
struct Span<'r> {
    /// The entries. A crash is before the flush that follows, or before the end of the log.
    entries: Range<usize>,
    /// The blocks that were written, in order.
    pieces: Vec<Piece<'r>>,
    /// The mark of the image at its begin.
    mark: u128,
}

/// A block that was written.
struct Piece<'r> {
    entry: usize,
    block: usize,
    number: u64,
    bytes: &'r [u8],
    /// What was there at the begin of the span.
    under: &'r [u8],
    /// Their marks.
    mark: u128,
    below: u128,
    /// The write of the same block in this span before this one and after it.
    before: Option<usize>,
    after: Option<usize>,
    /// The ways in which it may be torn.
    tears: Vec<u8>,
}

impl Piece<'_> {
    /// Where it is in the recording.
    fn place(&self) -> Written {
        Written { entry: self.entry, block: self.block }
    }
}

/// A state that may be judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub kind: StateKind,
    span: usize,
    /// The pieces before this one are kept.
    until: usize,
    /// But for these.
    lost: [Option<usize>; 2],
    /// But for those that this seed loses.
    seed: Option<u64>,
    /// Of this piece only these sectors are kept.
    torn: Option<(usize, u8)>,
}

/// The states of a recording.
pub(super) struct States<'r>(Vec<Span<'r>>);

/// Which states of a recording are judged.
pub(super) struct Chosen {
    /// No two of them have the same image.
    pub choices: Vec<Choice>,
    /// How many there are of each kind that can be listed, with equal ones if there are too many.
    pub numbers: Vec<(StateKind, u64)>,
}

impl Choice {
    /// Whether each piece before its end is lost.
    fn losses(&self, span: &Span<'_>) -> Vec<bool> {
        let pieces = &span.pieces[..self.until];
        let Some(seed) = self.seed else {
            return (0..self.until).map(|piece| self.lost.contains(&Some(piece))).collect();
        };
        let mut random = Random::seeded(seed);
        let share = SHARES[random.below(SHARES.len() as u64) as usize];
        let by_write = random.below(2) == 0;
        let mut is_lost = false;
        let lost = |piece: &Piece<'_>| {
            if piece.block == 0 || !by_write {
                is_lost = random.unit() >= share;
            }
            is_lost
        };
        pieces.iter().map(lost).collect()
    }
}

/// What a piece is written over.
fn under_of<'r>(pieces: &[Piece<'r>], piece: usize) -> &'r [u8] {
    pieces[piece].before.map_or(pieces[piece].under, |before| pieces[before].bytes)
}

/// The choices with different images, in order.
#[derive(Clone, Default)]
struct Distinct {
    choices: Vec<Choice>,
    by_mark: HashMap<u128, usize>,
}

impl Distinct {
    /// Adds a choice if its image is new. Of one that is there, only the last moment counts.
    fn add(&mut self, mark: u128, choice: Choice) -> bool {
        let next = self.choices.len();
        let place = *self.by_mark.entry(mark).or_insert(next);
        if place == next {
            self.choices.push(choice);
            return true;
        }
        let known = &mut self.choices[place];
        if known.span < choice.span {
            *known = Choice { kind: known.kind, ..choice };
        }
        false
    }
}

/// The mark of a block with this content in an image; 0 if it has only zeros, as where nothing was written. The mark of an image is the
/// sum of those of its blocks (exclusive or), so that a block is replaced in it without the others.
fn mark_of(number: u64, bytes: &[u8]) -> u128 {
    if bytes.iter().all(|byte| *byte == 0) {
        return 0;
    }
    let half = |of: u64| {
        // Its keys are always the same.
        let mut hasher = DefaultHasher::new();
        (of, number, bytes).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

impl Recording {
    /// The blocks that an entry wrote, with their numbers on the device.
    pub(super) fn blocks(&self, entry: usize) -> impl Iterator<Item = (u64, &[u8])> {
        let (first, data) = match &self.entries[entry].act {
            Act::Write(first, data) => (*first, &data[..]),
            Act::Flush => (0, &[][..]),
        };
        (first..).zip(data.chunks_exact(BLOCK_BYTES as usize))
    }

    /// A block that an entry wrote, and its number on the device.
    pub(super) fn block(&self, piece: Written) -> Option<(u64, &[u8])> {
        self.blocks(piece.entry).nth(piece.block)
    }

    /// The blocks that were written after the last flush before a position.
    pub(super) fn pending(&self, position: usize) -> usize {
        (self.flushed(position)..position).map(|entry| self.blocks(entry).count()).sum()
    }
}

impl<'r> States<'r> {
    /// The states of a recording on a medium with these blocks.
    pub(super) fn of(recording: &'r Recording, medium: &'r Blocks) -> States<'r> {
        let mut blocks: HashMap<u64, (&[u8], u128)> =
            medium.iter().map(|(number, bytes)| (*number, (&bytes[..], mark_of(*number, bytes)))).collect();
        let mut mark = blocks.values().fold(0, |sum, (_, mark)| sum ^ mark);
        let (mut spans, mut begin) = (Vec::new(), 0);
        let flushes = recording.entries.iter().enumerate().filter(|(_, entry)| entry.act == Act::Flush);
        for end in flushes.map(|(number, _)| number).chain([recording.entries.len()]) {
            let (mut pieces, mut last): (Vec<Piece<'_>>, HashMap<u64, usize>) = (Vec::new(), HashMap::new());
            for entry in begin..end {
                for (block, (number, bytes)) in recording.blocks(entry).enumerate() {
                    let (under, below) = blocks.get(&number).copied().unwrap_or((&ZEROS, 0));
                    let before = last.insert(number, pieces.len());
                    if let Some(before) = before {
                        pieces[before].after = Some(pieces.len());
                    }
                    let mark = mark_of(number, bytes);
                    let (after, tears) = (None, Vec::new());
                    pieces.push(Piece {
                        entry,
                        block,
                        number,
                        bytes,
                        under,
                        mark,
                        below,
                        before,
                        after,
                        tears,
                    });
                    let last = pieces.len() - 1;
                    pieces[last].tears = tears_of(under_of(&pieces, last), bytes);
                }
            }
            let begun = mark;
            for piece in last.into_values().map(|last| &pieces[last]) {
                blocks.insert(piece.number, (piece.bytes, piece.mark));
                mark ^= piece.mark ^ piece.below;
            }
            spans.push(Span { entries: begin..end, pieces, mark: begun });
            begin = end + 1;
        }
        // No crash is before the first position.
        spans.retain(|span| span.entries.end >= recording.first);
        States(spans)
    }

    /// The position of a state.
    pub(super) fn position(&self, choice: &Choice) -> usize {
        self.0[choice.span].entries.end
    }

    /// A state.
    pub(super) fn state(&self, choice: &Choice) -> State {
        let span = &self.0[choice.span];
        let kept = span.pieces.iter().zip(choice.losses(span)).filter(|(_, is_lost)| !is_lost);
        let kept = kept.map(|(piece, _)| piece.place()).collect();
        let torn = choice.torn.map(|(piece, sectors)| (span.pieces[piece].place(), sectors));
        State { position: span.entries.end, kept, torn }
    }

    /// The mark of its image.
    fn mark(&self, choice: &Choice) -> u128 {
        let span = &self.0[choice.span];
        let lost = choice.losses(span);
        let is_kept = |piece: usize| piece < choice.until && !lost[piece];
        let pieces = &span.pieces[..choice.until];
        // What is there of each block is its last write that is kept.
        let is_there = |piece: usize| {
            let mut later = std::iter::successors(pieces[piece].after, |later| pieces.get(*later)?.after);
            is_kept(piece) && !later.any(is_kept)
        };
        let there = pieces.iter().enumerate().filter(|(number, _)| is_there(*number));
        let whole = there.fold(span.mark, |sum, (_, piece)| sum ^ piece.mark ^ piece.below);
        whole ^ self.mark_torn(choice)
    }

    /// What a torn block changes in the mark of an image.
    fn mark_torn(&self, choice: &Choice) -> u128 {
        let Some((piece, sectors)) = choice.torn else { return 0 };
        let pieces = &self.0[choice.span].pieces;
        let Piece { number, bytes, mark, .. } = pieces[piece];
        mark ^ mark_of(number, &torn(under_of(pieces, piece), bytes, sectors))
    }

    /// The mark of an image if that of the image without losses is known.
    fn mark_without(&self, whole: u128, choice: &Choice) -> u128 {
        let pieces = &self.0[choice.span].pieces;
        let mut mark = whole ^ self.mark_torn(choice);
        let mut replaced = None;
        for lost in choice.lost.iter().flatten() {
            let next = |piece: &usize| pieces[*piece].after.filter(|after| *after < choice.until);
            let last = std::iter::successors(Some(*lost), next).last();
            // Two writes of the same block are looked at once.
            if last == replaced {
                continue;
            }
            replaced = last;
            let there = std::iter::successors(last, |piece| pieces[*piece].before)
                .find(|piece| !choice.lost.contains(&Some(*piece)));
            let of = |piece: Option<usize>| piece.map_or(pieces[*lost].below, |piece| pieces[piece].mark);
            mark ^= of(last) ^ of(there);
        }
        mark
    }

    /// The positions of a span: how many of its pieces are kept.
    fn untils(&self, span: usize) -> impl Iterator<Item = usize> {
        let pieces = &self.0[span].pieces;
        let is_end = |until: usize| until == pieces.len() || pieces[until].block == 0;
        (0..=pieces.len()).filter(move |until| is_end(*until))
    }

    fn wholes(&self) -> impl Iterator<Item = Choice> {
        let of = |span| {
            self.untils(span).map(move |until| Choice {
                kind: StateKind::Position,
                span,
                until,
                lost: [None; 2],
                seed: None,
                torn: None,
            })
        };
        (0..self.0.len()).flat_map(of)
    }

    /// How many choices of a kind there are, equal images included.
    fn count(&self, kind: StateKind) -> u64 {
        let of = |whole: Choice| match (whole.until as u64, kind) {
            (until, StateKind::OneLost) => until,
            (until, StateKind::TwoLost) => until * until.saturating_sub(1) / 2,
            (until, _) => {
                let tears = |piece| self.tears(&whole, piece).len() as u64;
                (0..until as usize).map(tears).sum()
            }
        };
        self.wholes().map(of).sum()
    }

    /// The ways in which a piece may be torn. One that is overwritten leaves no trace.
    fn tears(&self, whole: &Choice, piece: usize) -> &[u8] {
        let piece = &self.0[whole.span].pieces[piece];
        if piece.after.is_some_and(|after| after < whole.until) { &[] } else { &piece.tears }
    }

    /// All choices of a kind with the same writes.
    fn each(&self, whole: Choice, kind: StateKind, mut with: impl FnMut(Choice)) {
        let of_kind = Choice { kind, ..whole };
        for first in 0..whole.until {
            match kind {
                StateKind::OneLost => with(Choice { lost: [Some(first), None], ..of_kind }),
                StateKind::TwoLost => {
                    for second in first + 1..whole.until {
                        with(Choice { lost: [Some(first), Some(second)], ..of_kind });
                    }
                }
                _ => {
                    for sectors in self.tears(&whole, first) {
                        with(Choice { torn: Some((first, *sectors)), ..of_kind });
                    }
                }
            }
        }
    }

    /// Chooses at most so many states, by a seed; with torn blocks, or without.
    pub(super) fn chosen(&self, most: u32, seed: u64, tears: bool) -> Chosen {
        let most = most as usize;
        let wholes: Vec<(Choice, u128)> = self.wholes().map(|whole| (whole, self.mark(&whole))).collect();
        let mut all = Distinct::default();
        for (whole, mark) in &wholes {
            all.add(*mark, *whole);
        }
        let mut numbers = vec![(StateKind::Position, all.choices.len() as u64)];
        // The listed choices of each kind are behind those of the one before it.
        let mut is_listed = true;
        let kinds = [StateKind::OneLost, StateKind::TwoLost, StateKind::Torn];
        for kind in kinds.into_iter().take(if tears { 3 } else { 2 }) {
            let (count, before) = (self.count(kind), all.choices.len());
            is_listed &= count <= LISTED;
            if is_listed {
                for (whole, mark) in &wholes {
                    self.each(*whole, kind, |choice| {
                        all.add(self.mark_without(*mark, &choice), choice);
                    });
                }
            }
            let new = (all.choices.len() - before) as u64;
            numbers.push((kind, if is_listed { new } else { count }));
        }
        if is_listed && all.choices.len() <= most {
            return Chosen { choices: all.choices, numbers };
        }
        let choices = self.sampled(&all, tears, &wholes, most, seed);
        Chosen { choices, numbers }
    }

    /// All positions if they are at most three quarters of the states, otherwise the first ones and others, half of the states. If that
    /// leaves enough, all that have lost one block follow. Otherwise a quarter of the rest each has lost one block and two, or has a
    /// torn one if that is asked for; what is left has any blocks.
    fn sampled(
        &self,
        listed: &Distinct,
        tears: bool,
        wholes: &[(Choice, u128)],
        most: usize,
        seed: u64,
    ) -> Vec<Choice> {
        let mut random = Random::stream(seed, STATE_STREAM);
        let of = |kind: StateKind| listed.choices.iter().copied().filter(move |choice| choice.kind == kind);
        let mut positions: Vec<Choice> = of(StateKind::Position).collect();
        let (count, half) = (positions.len(), most.div_ceil(2));
        if count > most * 3 / 4 {
            let first = FIRST.min(half.div_ceil(2));
            for place in first..half {
                positions.swap(place, place + random.below((count - place) as u64) as usize);
            }
            positions.truncate(half);
        }
        let mut chosen = Distinct::default();
        for choice in positions {
            chosen.add(self.mark(&choice), choice);
        }
        let rest = most - chosen.choices.len();
        if of(StateKind::OneLost).count() <= rest / 2 {
            for choice in of(StateKind::OneLost) {
                chosen.add(self.mark(&choice), choice);
            }
        }
        let quarter = rest / 4;
        for (kind, share) in [
            (StateKind::OneLost, quarter),
            (StateKind::TwoLost, quarter),
            (StateKind::Torn, if tears { quarter } else { 0 }),
            (StateKind::Any, rest),
        ] {
            let known = chosen.choices.iter().filter(|choice| choice.kind == kind).count();
            let room = most - chosen.choices.len();
            for _ in 0..share.saturating_sub(known).min(room) {
                self.draw(kind, wholes, listed, &mut chosen, &mut random);
            }
        }
        chosen.choices
    }

    /// A choice of a kind with the same writes or fewer blocks of them; `None` if there is none.
    fn drawn(&self, whole: Choice, kind: StateKind, random: &mut Random) -> Option<Choice> {
        let until = whole.until as u64;
        let choice = Choice { kind, ..whole };
        match kind {
            StateKind::Position => Some(choice),
            StateKind::OneLost if until > 0 => {
                Some(Choice { lost: [Some(random.below(until) as usize), None], ..choice })
            }
            StateKind::TwoLost if until > 1 => {
                let first = random.below(until) as usize;
                let second = (first + 1 + random.below(until - 1) as usize) % whole.until;
                Some(Choice { lost: [Some(first.min(second)), Some(first.max(second))], ..choice })
            }
            StateKind::Torn if until > 0 => {
                let piece = random.below(until) as usize;
                let tears = self.tears(&whole, piece);
                let way = (!tears.is_empty()).then(|| tears[random.below(tears.len() as u64) as usize])?;
                Some(Choice { torn: Some((piece, way)), ..choice })
            }
            StateKind::Any | StateKind::Recovery => Some(Choice { seed: Some(random.next_u64()), ..choice }),
            StateKind::OneLost | StateKind::TwoLost | StateKind::Torn => None,
        }
    }

    /// Draws a state that was not chosen before and is not listed as another kind; of a short log there may be no other one.
    fn draw(
        &self,
        kind: StateKind,
        wholes: &[(Choice, u128)],
        listed: &Distinct,
        chosen: &mut Distinct,
        random: &mut Random,
    ) {
        for _ in 0..DRAWS {
            let (whole, mark) = wholes[random.below(wholes.len() as u64) as usize];
            let Some(choice) = self.drawn(whole, kind, random) else { continue };
            let mark =
                if choice.seed.is_some() { self.mark(&choice) } else { self.mark_without(mark, &choice) };
            let choice = listed.by_mark.get(&mark).map_or(choice, |place| listed.choices[*place]);
            if choice.kind == kind && chosen.add(mark, choice) {
                return;
            }
        }
    }

    /// At most so many states with any blocks.
    pub(super) fn any(&self, kind: StateKind, most: u32, seed: u64) -> Vec<Choice> {
        let mut random = Random::stream(seed, STATE_STREAM);
        let wholes: Vec<(Choice, u128)> = self.wholes().map(|whole| (whole, self.mark(&whole))).collect();
        let mut chosen = Distinct::default();
        for _ in 0..most {
            self.draw(kind, &wholes, &Distinct::default(), &mut chosen, &mut random);
        }
        chosen.choices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::board::{Snapshot, Stage};
    use crate::crash::oracle::Bounds;
    use kvdyno_measure::volume::record::Entry;
    use std::collections::{BTreeSet, HashSet};

    /// The first byte of each block that is not zero, by its number.
    type Image = BTreeMap<u64, u8>;

    /// A log of so many writes and flushes to few blocks, of which a content may be that of before.
    fn recording(seed: u64, entries: u64, flush_every: u64) -> Recording {
        let mut random = Random::seeded(seed);
        let mut entry = |number: u64| {
            let act = match random.below(flush_every) {
                0 => Act::Flush,
                _ => {
                    let first = random.below(4);
                    let blocks = 1 + random.below(2);
                    let content = (0..blocks).flat_map(|_| [random.below(3) as u8; BLOCK_BYTES as usize]);
                    Act::Write(first, content.collect())
                }
            };
            let bounds = vec![Bounds { acked: number, started: number + 1 }];
            Entry { stamp: Snapshot { stage: Stage::Run, bounds }.words(), act }
        };
        let entries: Vec<Entry> = (0..entries).map(&mut entry).collect();
        let first = (seed % 3).min(entries.len() as u64) as usize;
        let bounds = vec![Bounds { acked: entries.len() as u64, started: entries.len() as u64 }];
        Recording { entries, first, end: Snapshot { stage: Stage::Run, bounds } }
    }

    fn medium() -> Blocks {
        BTreeMap::from([(1, [2; BLOCK_BYTES as usize].into()), (9, [7; BLOCK_BYTES as usize].into())])
    }

    /// What a device has that keeps the entries before a flush, and these pieces.
    fn image(recording: &Recording, flushed: usize, kept: &[Written]) -> Image {
        let mut image: Image = medium().iter().map(|(number, bytes)| (*number, bytes[0])).collect();
        let before = (0..flushed).flat_map(|entry| recording.blocks(entry));
        let after = kept.iter().filter_map(|piece| recording.block(*piece));
        image.extend(before.chain(after).map(|(number, bytes)| (number, bytes[0])));
        image.retain(|_, byte| *byte != 0);
        image
    }

    /// Whether all that are listed are chosen, and no other one.
    fn is_complete(chosen: &Chosen) -> bool {
        let all: u64 = chosen.numbers.iter().map(|(_, all)| all).sum();
        all == chosen.choices.len() as u64
    }

    fn image_of(recording: &Recording, states: &States<'_>, choice: &Choice) -> Image {
        let state = states.state(choice);
        image(recording, recording.flushed(state.position), &state.kept)
    }

    /// Every image that a crash may leave at any position if at most so many of the blocks before a later one are lost, with the last
    /// position at which it may.
    fn brute_force(recording: &Recording, losses: u32) -> BTreeMap<Image, usize> {
        let mut found = BTreeMap::new();
        for position in recording.first..=recording.entries.len() {
            let flushed = recording.flushed(position);
            for end in flushed..=position {
                let pieces: Vec<Written> = (flushed..end)
                    .flat_map(|entry| {
                        (0..recording.blocks(entry).count()).map(move |block| Written { entry, block })
                    })
                    .collect();
                for lost in (0_u32..1 << pieces.len()).filter(|lost| lost.count_ones() <= losses) {
                    let is_kept = |piece: &usize| lost >> piece & 1 == 0;
                    let kept: Vec<_> = (0..pieces.len()).filter(is_kept).map(|piece| pieces[piece]).collect();
                    found.insert(image(recording, flushed, &kept), position);
                }
            }
        }
        found
    }

    #[test]
    fn all_states_of_a_short_log_are_those_that_brute_force_finds_each_once_at_its_last_position() {
        let mut most = 0;
        for seed in 0..400 {
            let recording = recording(seed, seed % 9, 2 + seed % 5);
            let medium = medium();
            let states = States::of(&recording, &medium);
            let chosen = states.chosen(u32::MAX, seed, false);
            assert!(is_complete(&chosen));
            let found: BTreeMap<Image, usize> = chosen
                .choices
                .iter()
                .map(|choice| (image_of(&recording, &states, choice), states.position(choice)))
                .collect();
            assert_eq!(found.len(), chosen.choices.len(), "seed {seed}: a state is judged twice");
            assert_eq!(found, brute_force(&recording, 2), "seed {seed}");
            for (kind, losses) in [(StateKind::Position, 0), (StateKind::OneLost, 1), (StateKind::TwoLost, 2)]
            {
                let count = chosen.choices.iter().filter(|choice| choice.kind <= kind).count();
                assert_eq!(count, brute_force(&recording, losses).len(), "seed {seed}: {kind}");
            }
            let sum: u64 = chosen.numbers.iter().map(|(_, all)| all).sum();
            assert_eq!(sum, chosen.choices.len() as u64);
            most = most.max(found.len());
        }
        assert!(most > 40, "the logs are too short to show anything: {most}");
    }

    #[test]
    fn two_images_have_the_same_mark_if_and_only_if_they_are_equal() {
        for seed in 0..100 {
            let recording = recording(seed, 9, 6);
            let medium = medium();
            let states = States::of(&recording, &medium);
            let mut known: HashMap<u128, Image> = HashMap::new();
            let mut images = HashSet::new();
            let mut random = Random::seeded(seed);
            for whole in states.wholes() {
                let mark = states.mark(&whole);
                let mut with = |choice: Choice, mark: u128| {
                    assert_eq!(mark, states.mark(&choice), "seed {seed}: {choice:?}");
                    let image = image_of(&recording, &states, &choice);
                    images.insert(image.clone());
                    assert_eq!(*known.entry(mark).or_insert_with(|| image.clone()), image, "seed {seed}");
                };
                with(whole, mark);
                states.each(whole, StateKind::OneLost, |choice| {
                    with(choice, states.mark_without(mark, &choice))
                });
                states.each(whole, StateKind::TwoLost, |choice| {
                    with(choice, states.mark_without(mark, &choice))
                });
                for _ in 0..20 {
                    let any = states.drawn(whole, StateKind::Any, &mut random).unwrap();
                    with(any, states.mark(&any));
                }
            }
            assert_eq!(known.len(), images.len(), "seed {seed}");
        }
    }

    /// A log of which not all states can be judged: 300 blocks without a flush, each of its own, after some with flushes.
    fn long() -> Recording {
        let mut recording = recording(5, 60, 4);
        let stamp = recording.end.words();
        for number in 0..300 {
            let data = (number as u32 + 1).to_le_bytes().repeat(BLOCK_BYTES as usize / 4);
            recording.entries.push(Entry { stamp: stamp.clone(), act: Act::Write(100 + number, data) });
        }
        recording
    }

    #[test]
    fn a_sample_is_a_function_of_the_seed_has_every_kind_and_no_state_twice() {
        let (recording, medium) = (long(), medium());
        let states = States::of(&recording, &medium);
        let sample = |most, seed| {
            let chosen = states.chosen(most, seed, false);
            assert!(!is_complete(&chosen));
            let Chosen { choices, numbers } = chosen;
            let positions = numbers.iter().find(|(kind, _)| *kind == StateKind::Position).unwrap().1;
            assert!((300..360).contains(&positions), "{positions}");
            assert_eq!(numbers.len(), 3);
            (choices, positions)
        };
        for most in [1, 2, 7, 90, 180, 1000] {
            let (choices, positions) = sample(most, 1);
            assert_eq!(choices.len() as u32, most);
            let marks: BTreeSet<u128> = choices.iter().map(|choice| states.mark(choice)).collect();
            assert_eq!(marks.len() as u32, most, "a state is judged twice");
            let text = |choices: &[Choice]| format!("{choices:?}");
            assert_eq!(text(&choices), text(&sample(most, 1).0));
            assert!(most < 90 || text(&choices) != text(&sample(most, 2).0));
            let count = |kind| choices.iter().filter(|choice| choice.kind == kind).count() as u64;
            let half = u64::from(most).div_ceil(2);
            let all = if positions <= u64::from(most) * 3 / 4 { positions } else { half };
            assert_eq!(count(StateKind::Position), all, "{most}");
            if most >= 90 {
                for kind in [StateKind::OneLost, StateKind::TwoLost] {
                    assert!(count(kind) >= u64::from(most) / 9, "{most}: {kind}: {}", count(kind));
                }
                assert!(count(StateKind::Any) >= u64::from(most) / 5, "{most}");
            }
        }
        // The first positions, where the database is created, are among them.
        let first = |choices: &[Choice]| -> Vec<usize> {
            choices.iter().take(45).map(|choice| states.position(choice)).collect()
        };
        assert_eq!(first(&sample(180, 1).0), first(&sample(180, 2).0));
    }

    /// The bytes of each block that are not all zero, by its number.
    type Bytes = BTreeMap<u64, Vec<u8>>;

    #[test]
    fn the_tears_of_each_block_are_the_first_and_the_last_of_the_sectors_that_it_changes() {
        for seed in 0..40 {
            let mut random = Random::seeded(seed);
            let mut block =
                || -> Vec<u8> { (0..8).flat_map(|_| [random.below(2) as u8; SECTOR_BYTES]).collect() };
            let end = Snapshot { stage: Stage::Run, bounds: Vec::new() };
            let stamp = end.words();
            let entries: Vec<Entry> = (0..4)
                .map(|number| Entry { stamp: stamp.clone(), act: Act::Write(number % 3, block()) })
                .collect();
            let medium: Blocks = BTreeMap::from([(1, block().into())]);
            let recording = Recording { entries, first: 0, end };
            let states = States::of(&recording, &medium);
            // By hand: what is there of each block before the last write, and then some sectors of one of the others.
            let mut expected: BTreeSet<Bytes> = BTreeSet::new();
            let zeros = vec![0; BLOCK_BYTES as usize];
            let written = |kept: usize| -> Bytes {
                let mut bytes: Bytes =
                    medium.iter().map(|(number, bytes)| (*number, bytes.to_vec())).collect();
                bytes.extend(
                    (0..kept).flat_map(|entry| recording.blocks(entry)).map(|(n, b)| (n, b.to_vec())),
                );
                bytes
            };
            for kept in 0..=4 {
                for entry in 0..kept {
                    let (number, new) = recording.block(Written { entry, block: 0 }).unwrap();
                    let is_last = (entry + 1..kept).all(|later| {
                        recording.block(Written { entry: later, block: 0 }).unwrap().0 != number
                    });
                    let old = written(entry).get(&number).unwrap_or(&zeros).clone();
                    let differs = |sector: &usize| {
                        let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                        old[range.clone()] != new[range]
                    };
                    let changed: Vec<usize> = (0..8).filter(differs).collect();
                    for split in 1..changed.len() {
                        for part in [&changed[..split], &changed[split..]] {
                            let mut image = written(kept);
                            let mut torn = old.clone();
                            for sector in part {
                                let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                                torn[range.clone()].copy_from_slice(&new[range]);
                            }
                            image.insert(number, torn);
                            image.retain(|_, bytes| *bytes != zeros);
                            if is_last {
                                expected.insert(image);
                            }
                        }
                    }
                }
            }
            let without = states.chosen(u32::MAX, seed, false).choices.len();
            let chosen = states.chosen(u32::MAX, seed, true);
            assert!(is_complete(&chosen));
            let images: BTreeSet<Bytes> = chosen
                .choices
                .iter()
                .map(|choice| {
                    assert_eq!(
                        states.mark(choice),
                        states.mark_without(
                            states.mark(&Choice { lost: [None; 2], torn: None, ..*choice }),
                            choice
                        )
                    );
                    let state = states.state(choice);
                    let mut image = written(0);
                    for piece in &state.kept {
                        let (number, bytes) = recording.block(*piece).unwrap();
                        let under = image.get(&number).unwrap_or(&zeros).clone();
                        image.insert(number, torn(&under, bytes, state.sectors(*piece)));
                    }
                    image.retain(|_, bytes| *bytes != zeros);
                    image
                })
                .collect();
            assert_eq!(images.len(), chosen.choices.len(), "seed {seed}: a state is judged twice");
            let whole = |kind: StateKind| kind != StateKind::Torn;
            assert_eq!(chosen.choices.iter().filter(|choice| whole(choice.kind)).count(), without);
            // Some tears are images that a loss leaves, too.
            assert!(expected.is_subset(&images), "seed {seed}");
            assert!(images.len() <= without + expected.len() && images.len() > without, "seed {seed}");
        }
    }

    #[test]
    fn no_kind_has_more_states_in_a_sample_than_there_are() {
        let medium = medium();
        let (mut samples, mut is_full) = (0, false);
        for seed in 0..300 {
            let recording = recording(seed, 5 + seed % 25, 2 + seed % 5);
            let states = States::of(&recording, &medium);
            for most in [3, 10, 30, 60] {
                let chosen = states.chosen(most, seed, seed % 2 == 0);
                let is_complete = is_complete(&chosen);
                samples += u32::from(!is_complete);
                let Chosen { choices, numbers } = chosen;
                assert!(choices.len() <= most as usize);
                for (kind, all) in numbers {
                    let count = choices.iter().filter(|choice| choice.kind == kind).count() as u64;
                    assert!(count <= all, "seed {seed}, {most}: {count} of {all} {kind}");
                    is_full |= !is_complete && count == all && all > 3;
                }
                // Each at the last position at which it is possible.
                let all: HashMap<u128, usize> = states
                    .chosen(u32::MAX, seed, true)
                    .choices
                    .iter()
                    .map(|choice| (states.mark(choice), states.position(choice)))
                    .collect();
                for choice in &choices {
                    let position = states.position(choice);
                    let last = all.get(&states.mark(choice)).copied().unwrap_or(position);
                    assert_eq!(position, last, "seed {seed}, {most}: {choice:?}");
                }
            }
        }
        assert!(samples > 300 && is_full, "{samples}");
    }

    #[test]
    fn what_was_flushed_is_in_every_state_and_nothing_that_was_not_yet_written() {
        for seed in 0..200 {
            let recording = recording(seed, 40, 5);
            let medium = medium();
            let states = States::of(&recording, &medium);
            let drawn = states.any(StateKind::Any, 20, seed);
            for choice in states.chosen(20, seed, false).choices.iter().chain(&drawn) {
                let state = states.state(choice);
                assert!(state.position >= recording.first);
                let range = recording.flushed(state.position)..state.position;
                assert!(
                    state.kept.iter().all(|piece| range.contains(&piece.entry)),
                    "seed {seed}: {state:?}"
                );
            }
        }
    }

    #[test]
    fn an_empty_log_has_one_state_at_its_end() {
        let end = Snapshot { stage: Stage::Close, bounds: vec![Bounds { acked: 7, started: 7 }] };
        let recording = Recording { entries: Vec::new(), first: 0, end };
        let medium = medium();
        let states = States::of(&recording, &medium);
        let chosen = states.chosen(20, 1, false);
        assert!(is_complete(&chosen) && chosen.choices.len() == 1);
        assert_eq!(states.state(&chosen.choices[0]), State { position: 0, kept: Vec::new(), torn: None });
        assert_eq!(states.any(StateKind::Recovery, 10, 1).len(), 1);
    }
}
