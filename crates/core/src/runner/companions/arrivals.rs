//! Judges the arrivals of a phase with a rate after its end: how many were due, sent and left, whether the backlog grew, and how
//! well the generator kept their moments.

use super::Companion;
use crate::results::{Arrivals, EndedBy, Gaps, PhaseRecord};
use crate::runner::pacer::{Arriver, Pacer, Released};
use crate::runner::phase_data::Shared;
use crate::runner::worker::Outcome;
use crate::workload::Arriving;
use kvdyno_load::search::backlog_grows;
use kvdyno_measure::Histogram;

/// The parts of the phase at whose ends the backlog is looked at.
const PARTS: u64 = 20;

/// The arrivals of a phase.
pub(crate) struct ArrivalsOf<'s> {
    /// The phase.
    pub shared: &'s Shared<'s>,
}

impl<'s> Companion<'s> for ArrivalsOf<'s> {
    fn record(self: Box<Self>, outcomes: &[Outcome], record: &mut PhaseRecord) {
        let Some(arriver) = &self.shared.arriver else { return };
        let pacers: Vec<&Pacer> = outcomes.iter().filter_map(|outcome| outcome.pacer.as_deref()).collect();
        let (Some(from), Some(begin)) = (arriver.from(), self.shared.counted_from.get()) else { return };
        let begin_ns = self.shared.clock.to_ns(begin.saturating_sub(from));
        let end = outcomes.iter().map(|outcome| outcome.end).max().unwrap_or(0);
        let end = self.shared.end_at().map_or(end, |at| at.min(end));
        record.arrivals = Some(arrivals(self.shared, arriver, &pacers, begin_ns, end, record));
    }
}

fn arrivals(
    shared: &Shared<'_>,
    arriver: &Arriver,
    pacers: &[&Pacer],
    begin_ns: u64,
    end: u64,
    record: &mut PhaseRecord,
) -> Arrivals {
    let clock = shared.clock;
    let mut late_ns = Histogram::new();
    pacers.iter().for_each(|pacer| late_ns.merge(&pacer.lateness));
    let sum = |of: fn(&Pacer) -> u64| pacers.iter().map(|pacer| of(pacer)).sum::<u64>();
    let (sent, dropped) = (sum(|pacer| pacer.sent), sum(|pacer| pacer.dropped));
    // Of a common queue the thread that took the last arrival has drawn the fewest after it.
    let queues: Vec<&&Pacer> = match shared.phase.arrivals {
        Arriving::Own => pacers.iter().collect(),
        Arriving::Shared => pacers.iter().max_by_key(|pacer| pacer.drawn()).into_iter().collect(),
    };
    let (mut waiting, mut ages) = (0, Histogram::new());
    let mut unaccounted = 0;
    // A phase that ends by a count leaves nothing behind.
    if matches!(record.ended_by, EndedBy::Time | EndedBy::Steady) {
        for pacer in &queues {
            let (count, own) = pacer.waiting(arriver.next(), end);
            waiting += count;
            ages.merge(&own);
        }
        for at in pacers.iter().filter_map(|pacer| pacer.not_run).filter(|at| *at < end) {
            waiting += 1;
            ages.record(clock.to_ns(end - at));
        }
        let due = queues.iter().map(|pacer| pacer.due(end, waiting)).sum::<Option<u64>>();
        let known = sent + dropped + waiting + sum(|pacer| pacer.of_warm_up);
        unaccounted = due.map_or(0, |due| due.abs_diff(known));
    }
    let gaps = |of: fn(&Released) -> u64| {
        let first = pacers.first().filter(|pacer| pacer.arrivals().are_poisson())?;
        let lists = pacers.iter().map(|pacer| &pacer.released[..]);
        match shared.phase.arrivals {
            Arriving::Shared => Gaps::of(gaps_of(first, lists.flatten().copied().collect(), of)),
            Arriving::Own => {
                Gaps::of(pacers.iter().flat_map(|pacer| gaps_of(pacer, pacer.released.clone(), of)).collect())
            }
        }
    };
    let (moments, gaps) = (gaps(|released| released.moment_ns), gaps(|released| released.at_ns));
    let elapsed = record.elapsed_ns as f64 / 1e9;
    let growth_per_second = growth(pacers, record, begin_ns, waiting, elapsed);
    // What still waits has waited at least so long; it belongs to no op, so it counts for the kind that has most.
    if let Some(kind) = record.kinds.iter_mut().max_by_key(|kind| kind.ops) {
        for times in [&mut kind.wait_ns, &mut kind.response_ns].into_iter().flatten() {
            times.merge(&ages);
            *times = std::mem::take(times).packed();
        }
    }
    Arrivals {
        due: sent + dropped + waiting,
        sent,
        dropped,
        waiting,
        unaccounted,
        growth_per_second,
        late_ns: late_ns.packed(),
        moments,
        gaps,
        spun_ns: clock.to_ns(sum(|pacer| pacer.spun_ticks)),
    }
}

/// The gaps between moments of arrivals that follow each other, as multiples of the mean gap there.
fn gaps_of(pacer: &Pacer, mut released: Vec<Released>, of: fn(&Released) -> u64) -> Vec<f64> {
    released.sort_unstable_by_key(|released| released.number);
    let follow = released.windows(2).filter(|pair| pair[0].number + 1 == pair[1].number);
    let expected = |ns| pacer.arrivals().expected(ns);
    // Moments are whole nanoseconds, so two equal ones are some half of one apart.
    let gap = |from: u64, to: u64| {
        if from == to { (expected(to + 1) - expected(to)) / 2.0 } else { expected(to) - expected(from) }
    };
    follow.map(|pair| gap(of(&pair[0]), of(&pair[1]))).collect()
}

/// How fast the backlog grows, requests per second; none: it does not. What waits at the end is known exactly; how it has come to that
/// is estimated from the rate and the ops of each second.
fn growth(pacers: &[&Pacer], record: &PhaseRecord, begin_ns: u64, waiting: u64, elapsed: f64) -> Option<f64> {
    let streams = match record.phase.arrivals {
        Arriving::Shared => 1,
        Arriving::Own => pacers.len(),
    };
    let arrivals = pacers.first()?.arrivals();
    let expected = |ns: u64| (arrivals.expected(ns) - arrivals.expected(begin_ns)) * streams as f64;
    let due = expected(begin_ns + record.elapsed_ns);
    let units: u64 = record.kinds.iter().map(|kind| kind.service_ns.count()).sum();
    // The rows count ops; requests have several if they are joined.
    let per_op = units as f64 / record.ops.max(1) as f64;
    let done_until = |ns: u64| {
        let mut done = 0.0;
        for row in &record.series {
            let row_begin = row.at_ns.saturating_sub(row.interval_ns);
            let part = ns.saturating_sub(row_begin) as f64 / row.interval_ns.max(1) as f64;
            done += row.ops as f64 * part.clamp(0.0, 1.0);
        }
        done * per_op
    };
    let backlog = |part: u64| {
        let ns = record.elapsed_ns / PARTS * part;
        (expected(begin_ns + ns) - done_until(ns)).max(0.0) as u64
    };
    let mut backlogs: Vec<u64> = (1..PARTS).map(backlog).collect();
    backlogs.push(waiting);
    let is_noticeable = waiting as f64 > due.sqrt();
    let first = *backlogs.first()?;
    let span = elapsed * (PARTS - 1) as f64 / PARTS as f64;
    (is_noticeable && backlog_grows(&backlogs, due as u64))
        .then(|| waiting.saturating_sub(first) as f64 / span)
}
