//! The memory of a thread's session: how many ops a batch may have, and how large their keys, values and out buffers are. No larger
//! than its ops need, because each page is touched before ops are timed.

use super::draw::{Draw, mix_of};
use super::phase::roles;
use super::phase_data::Shared;
use super::worker::BATCH_OPS;
use crate::engine::Shape;
use crate::generator::{SizeSpec, Sizes};
use crate::results::Role;
use crate::workload::{Phase, Workload};
use kvdyno_measure::Change;

/// The maximum bytes of a session's arena, unless one unit needs more.
pub(super) const ARENA_BYTES: usize = 4 << 20;
/// The maximum bytes of the keys and values of a group of joined writes, unless one write needs more.
const GROUP_BYTES: u64 = 16 << 20;
/// Bytes for the rows of one scan; a longer one is resumed.
const SCAN_OUT_BYTES: usize = 256 << 10;
/// The least bytes of a value slot and of an out buffer: those of a counter.
const LEAST_BYTES: usize = 8;

/// The largest keys and values of a phase, and how its rows are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// Bytes of a key, with what keyspaces and indexes add.
    pub key_bytes: usize,
    /// Bytes of a value that is written.
    pub value_bytes: usize,
    /// Bytes of a value that is read; another phase may have written it.
    pub read_bytes: usize,
    /// Ops that write one row with its index rows.
    pub row_ops: usize,
    /// Whether keys are fields of hashes, which are scanned as a whole.
    pub are_hashes: bool,
}

/// The memory that a thread needs with so many ops to do; none: no limit.
pub(super) fn shape_of(shared: &Shared<'_>, thread: usize, quota: Option<u64>) -> Shape {
    let lengths = Lengths {
        key_bytes: shared.keys.max_len() + shared.spaces.extra_len(),
        value_bytes: shared.values.max_len(),
        read_bytes: shared.values.max_read_len(),
        row_ops: shared.row_ops,
        are_hashes: shared.spaces.are_hashes(),
    };
    shape(shared.phase, shared.slots[thread].role, lengths, quota)
}

fn shape(phase: &Phase, role: Role, lengths: Lengths, quota: Option<u64>) -> Shape {
    // A warm-up has any number of ops.
    let quota = quota.filter(|_| phase.warmup_seconds == 0.0).map(|quota| quota.max(1));
    let largest = Draw::largest_unit(phase, role, lengths.row_ops, quota);
    let most = quota.map_or(usize::MAX, |quota| (quota as usize).saturating_mul(largest));
    let ops = BATCH_OPS.max(largest).min(most);
    slots(phase, role, lengths, ops).within(ARENA_BYTES, largest)
}

/// The slots of so many ops: value slots only for writes, and out buffers only for reads.
fn slots(phase: &Phase, role: Role, lengths: Lengths, ops: usize) -> Shape {
    let mix = mix_of(phase, role);
    let Lengths { key_bytes, value_bytes, read_bytes, are_hashes, .. } = lengths;
    let row_bytes = 8 + key_bytes + read_bytes;
    let if_any = |is: bool, bytes: usize| if is { bytes } else { 0 };
    let read_bytes = if_any(mix.has(|kind| kind.gets() || kind.returns_rows()), read_bytes).max(LEAST_BYTES);
    let rows = if phase.scan.rows == 0 || are_hashes { usize::MAX } else { phase.scan.rows as usize };
    let rows = match phase.scan.rows_per_call {
        0 => rows,
        limit => rows.min(limit as usize),
    };
    let scan_bytes = row_bytes.saturating_mul(rows).clamp(row_bytes, SCAN_OUT_BYTES.max(row_bytes));
    let out_bytes = if mix.scan > 0.0 { scan_bytes.max(read_bytes) } else { read_bytes };
    // The bounds and prefixes of scans are in value slots too.
    let value_bytes =
        if_any(mix.has(|kind| kind.writes_values()), value_bytes).max(key_bytes).max(LEAST_BYTES);
    Shape { ops, key_bytes, value_bytes, out_bytes }
}

/// The largest key of a workload, without what keyspaces and indexes add, and the largest values that a phase writes and reads.
fn lengths(workload: &Workload, phase: &Phase) -> Lengths {
    let most = |size: &SizeSpec| Sizes::new(size).map_or(0, |sizes| sizes.max() as usize);
    let of = |phase: &Phase| most(phase.value_size.as_ref().unwrap_or(&workload.value.size));
    Lengths {
        key_bytes: most(&workload.key.size),
        value_bytes: of(phase),
        read_bytes: workload.phases.iter().map(of).max().unwrap_or(0),
        row_ops: 1 + workload.indexes.len(),
        are_hashes: workload.collections.are_hashes(),
    }
}

/// The memory that the threads of a trial of this workload need at the same time with any engine, in bytes.
pub fn memory_estimate_bytes(workload: &Workload) -> u64 {
    let of = |phase: &Phase| {
        let (roles, lengths) = (roles(phase), lengths(workload, phase));
        let all = if phase.each_key { Some(workload.keys) } else { phase.ops_limit() };
        let quota = all.map(|all| all.div_ceil(roles.len().max(1) as u64));
        let bytes = |role| shape(phase, role, lengths, quota).bytes() as u64;
        roles.into_iter().fold(0, |sum: u64, role| sum.saturating_add(bytes(role)))
    };
    workload.phases.iter().map(of).max().unwrap_or(0)
}

/// Makes groups of joined writes smaller until the keys and values of a group take at most 16 MiB. Returns the phases, with the
/// writes of a group before and after. A group that is a transaction stays as it is.
pub(super) fn fit_groups(workload: &mut Workload) -> Vec<(String, Change<u32>)> {
    let mut changed = Vec::new();
    for place in 0..workload.phases.len() {
        let phase = &workload.phases[place];
        let lengths = lengths(workload, phase);
        let is_joined = |role: &Role| mix_of(phase, *role).has(|kind| kind.is_joined());
        let write_bytes = |role: Role| {
            let Shape { key_bytes, value_bytes, out_bytes, .. } = slots(phase, role, lengths, 1);
            (lengths.row_ops * (key_bytes + value_bytes + out_bytes)) as u64
        };
        let largest = roles(phase).into_iter().filter(is_joined).map(write_bytes).max();
        let Some(write_bytes) = largest.filter(|_| !phase.atomic) else { continue };
        let (before, most) = (phase.join, (GROUP_BYTES / write_bytes).max(1));
        if u64::from(before) > most {
            let phase = &mut workload.phases[place];
            phase.join = most as u32;
            changed.push((phase.name.clone(), Change { before, after: phase.join }));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Mix, builtin};

    const LENGTHS: Lengths =
        Lengths { key_bytes: 16, value_bytes: 1 << 20, read_bytes: 1 << 20, row_ops: 1, are_hashes: false };

    fn of(mix: Mix, phase: Phase, quota: Option<u64>) -> Shape {
        shape(&Phase { mix, threads: 1, ..phase }, Role::Mix, LENGTHS, quota)
    }

    #[test]
    fn memory_is_bounded_by_the_ops_to_do() {
        let put = Mix { put: 1.0, ..Mix::default() };
        let joined = Phase { join: 100, ..Phase::default() };
        assert_eq!(of(put, joined.clone(), None).ops, 100);
        assert_eq!(of(put, joined.clone(), Some(2)).ops, 2);
        assert_eq!(of(put, joined.clone(), Some(0)).ops, 1, "a thread without ops has a session too");
        let warm = Phase { warmup_seconds: 1.0, ..joined };
        assert_eq!(of(put, warm, Some(2)).ops, 100, "a warm-up has any number of ops");
        let pair = Mix { read_modify_write: 1.0, ..Mix::default() };
        assert_eq!(of(pair, Phase::default(), Some(1)).ops, 2);
        let transaction = Mix { transaction: 1.0, ..Mix::default() };
        assert_eq!(of(transaction, Phase { transaction_ops: 7, ..Phase::default() }, Some(1)).ops, 7);
        let small = Lengths { value_bytes: 100, ..LENGTHS };
        let phase = Phase { mix: put, threads: 1, ..Phase::default() };
        assert_eq!(shape(&phase, Role::Mix, small, Some(5)).ops, 5);
        assert_eq!(shape(&phase, Role::Mix, small, Some(1_000)).ops, BATCH_OPS);
    }

    #[test]
    fn only_writes_have_value_slots_and_only_reads_have_out_buffers() {
        let slots = |set: fn(&mut Mix)| {
            let mut mix = Mix::default();
            set(&mut mix);
            let Shape { value_bytes, out_bytes, .. } = of(mix, Phase::default(), None);
            (value_bytes >= 1 << 20, out_bytes >= 1 << 20)
        };
        assert_eq!(slots(|mix| mix.put = 1.0), (true, false));
        assert_eq!(slots(|mix| mix.insert = 1.0), (true, false));
        assert_eq!(slots(|mix| mix.update = 1.0), (true, false));
        assert_eq!(slots(|mix| mix.push = 1.0), (true, false));
        assert_eq!(slots(|mix| mix.insert_indexed = 1.0), (true, false));
        assert_eq!(slots(|mix| mix.transaction = 1.0), (true, false));
        assert_eq!(slots(|mix| mix.get = 1.0), (false, true));
        assert_eq!(slots(|mix| mix.multi_get = 1.0), (false, true));
        assert_eq!(slots(|mix| mix.scan = 1.0), (false, true));
        assert_eq!(slots(|mix| mix.pop = 1.0), (false, true));
        assert_eq!(slots(|mix| mix.delete = 1.0), (false, false));
        assert_eq!(slots(|mix| mix.merge = 1.0), (false, false));
        assert_eq!(slots(|mix| mix.read_modify_write = 1.0), (true, true));
        assert_eq!(slots(|mix| (mix.get, mix.update) = (0.5, 0.5)), (true, true));
    }

    #[test]
    fn groups_of_large_values_become_smaller_and_are_in_the_estimate() {
        let with_values = |bytes: u32| {
            let mut workload = builtin("overwrite").unwrap();
            workload.value.size = SizeSpec::Fixed(bytes);
            workload
        };
        let mut workload = with_values(1 << 20);
        let before = memory_estimate_bytes(&workload);
        assert!((100 << 20..110 << 20).contains(&before), "{before}");
        assert_eq!(fit_groups(&mut workload), [("load".to_string(), Change { before: 100, after: 15 })]);
        assert_eq!(workload.phases[0].join, 15);
        let after = memory_estimate_bytes(&workload);
        assert!((15 << 20..17 << 20).contains(&after), "{after}");
        assert_eq!(fit_groups(&mut workload), []);
        // A write that is larger than a group stands alone.
        let mut largest = with_values(64 << 20);
        assert_eq!(fit_groups(&mut largest), [("load".to_string(), Change { before: 100, after: 1 })]);
        // A transaction has the size that was asked for.
        let mut atomic = with_values(1 << 20);
        atomic.phases[0].atomic = true;
        assert_eq!(fit_groups(&mut atomic), []);
        for (name, _) in crate::workload::builtin_names() {
            assert_eq!(fit_groups(&mut builtin(name).unwrap()), [], "{name}");
        }
    }

    #[test]
    fn the_estimate_has_no_more_ops_than_there_are() {
        let mut workload = builtin("overwrite").unwrap();
        (workload.keys, workload.value.size) = (2, SizeSpec::Fixed(16 << 20));
        let bytes = memory_estimate_bytes(&workload);
        assert!((32 << 20..33 << 20).contains(&bytes), "{bytes}");
    }
}
