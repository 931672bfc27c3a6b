//! The size at which engines are measured for an application: as much of its data as the time allows, or data and memory made
//! smaller alike.

use super::needs::Needs;
use kvdyno_core::generator::{Arrivals, Course, Rate};
use kvdyno_core::runner::{SWEEP_GET_SECONDS, SWEEP_GETS};
use kvdyno_core::workload::Assumed;
use kvdyno_measure::text::{bytes_text, grouped};

/// The runs of each engine: the fewest that can show an order.
pub(super) const RUNS: u32 = 5;
/// The share of the time that trials are planned to take. The rest is for starting, the report, and engines that are slower than
/// assumed.
const PLANNED: f64 = 0.9;
/// The largest amount of data that is loaded if the application's data fit into memory, in bytes and in keys.
const LOADED_BYTES: u64 = 64 << 20;
const LOADED_KEYS: u64 = 500_000;
/// The least, unless the application has less: with fewer, a processor's cache holds all, and nothing of interest is measured.
const LEAST_BYTES: u64 = 1 << 20;
const LEAST_KEYS: u64 = 10_000;
/// The fewest keys that popular keys can be drawn from.
const FEWEST_KEYS: u64 = 100;
/// The memory of an engine in a trial if the data are larger than memory, the largest first; bytes. With 64 MiB, RocksDB, fjall,
/// badger, canopydb and Pebble run out of memory: their buffers have a fixed size.
const MEMORY_LIMITS: [u64; 2] = [256 << 20, MEMORY_LIMIT_MIN];
pub(super) const MEMORY_LIMIT_MIN: u64 = 160 << 20;
/// The largest ratio of data to memory that is measured, and the one if the time is too short for that.
const RATIO_MAX: f64 = 4.0;
const RATIO_SHORT: f64 = 2.0;
/// The largest share of a trial that its measured phases have.
const PHASES_SHARE: f64 = 0.4;
/// A shorter phase has no meaningful percentiles; seconds.
const PHASE_SECONDS_MIN: f64 = 0.1;
/// The same of phases at a rate, whose seconds are compared with each other; and their length if there is time.
const RATE_SECONDS_MIN: f64 = 1.0;
pub(super) const RATE_SECONDS: f64 = 5.0;
/// The time of a phase at a rate that is not counted, seconds: users do not see the first requests after a load.
pub(super) const WARM_UP_SECONDS: f64 = 0.5;
/// The requests of a phase in a run, so that a p99 is known: 1000, and five deviations of a Poisson process more.
const RANKED_REQUESTS: u64 = 1_200;
/// What is added to the assumed time of a load, for the mean of the engines; and when an engine is too slow.
const LOAD_RESERVE: f64 = 1.2;
const LOAD_LIMIT: f64 = 1.6;
const LOAD_SLACK: f64 = 0.15;

/// Whether the memory of a trial can be limited on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cap {
    /// It can.
    Possible,
    /// Why it cannot.
    Impossible(String),
}

/// The size of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Size {
    /// Keys that are loaded.
    pub keys: u64,
    /// The memory of the engine and the page cache in each trial, in bytes; `None`: as much as the machine has.
    pub memory_bytes: Option<u64>,
    /// What the durations of the measured phases are multiplied with, at most 1.
    pub pace: f64,
    /// When an engine is too slow to be compared at this size, in seconds of loading.
    pub load_seconds: f64,
    /// How the measured data differ from the application's, a sentence each; empty: they do not.
    pub notes: Vec<String>,
}

/// The time is too short for any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooShort {
    /// The minutes that would do, for these engines.
    pub minutes: u64,
    /// Whether it is because the data are larger than memory.
    pub exceeds_memory: bool,
}

/// Seconds that a trial of this many keys takes to load, and apart from its measured phases.
fn seconds_of(keys: u64, row: u64, from_disk: bool) -> (f64, f64) {
    let rates = if from_disk { Assumed::FROM_DISK } else { Assumed::IN_MEMORY };
    let (keys_, bytes) = (keys as f64, (keys * row) as f64);
    let load = keys_ / rates.loaded_keys + bytes / rates.loaded_bytes;
    let swept = if from_disk {
        let gets = keys.min(SWEEP_GETS) as f64 / rates.swept_keys;
        gets.min(SWEEP_GET_SECONDS) + bytes / rates.swept_bytes
    } else {
        keys_ / rates.swept_keys + bytes / rates.swept_bytes
    };
    // Settling merges what was loaded.
    let settled = if from_disk { bytes / rates.loaded_bytes / 2.0 } else { 0.0 };
    (load, rates.rest_seconds + LOAD_RESERVE * load + swept + settled)
}

/// The time after which a rate repeats itself, seconds; at least that of a phase with a rate.
fn period(rate: &Rate) -> f64 {
    match rate.course {
        Course::Bursts { period, .. } | Course::Sine { period, .. } => period.max(RATE_SECONDS_MIN),
        _ => RATE_SECONDS_MIN,
    }
}

/// The minutes for trials of this many seconds each.
fn minutes_of(trial_seconds: f64, engines: usize) -> u64 {
    (trial_seconds * f64::from(RUNS) * engines.max(1) as f64 / PLANNED / 60.0).ceil().max(1.0) as u64
}

impl Needs {
    fn row_bytes(&self) -> u64 {
        self.key_bytes + self.value_bytes
    }

    /// The requests that each phase must have in a run: for a p99, and all runs together twice as many as the limits need if none
    /// is over them, as in a search.
    fn requests(&self) -> u64 {
        let limits = self.limits.as_ref().map_or(0, |limits| (2 * limits.needed()).div_ceil(u64::from(RUNS)));
        RANKED_REQUESTS.max(limits)
    }

    /// The shortest phase that is worth measuring, seconds: at a rate a whole period of it, with the requests that it must have.
    pub(super) fn shortest_phase(&self) -> f64 {
        self.rate.as_ref().map_or(PHASE_SECONDS_MIN, |rate| self.seconds_of_requests(rate).max(period(rate)))
    }

    fn seconds_of_requests(&self, rate: &Rate) -> f64 {
        let period = period(rate);
        let of_period = Arrivals::new(rate, 0.0, Some(period), 0).expected((period * 1e9) as u64);
        self.requests() as f64 / of_period * period
    }

    /// Why phases at a rate take long; none: they do not.
    pub(super) fn why_long(&self) -> Option<String> {
        let rate = self.rate.as_ref()?;
        let (seconds, period) = (self.seconds_of_requests(rate), period(rate));
        if seconds.max(period) <= RATE_SECONDS_MIN {
            return None;
        }
        if seconds <= period {
            return Some(format!(
                "a phase at {rate} lasts a whole period of {} s",
                grouped(period.ceil() as u64)
            ));
        }
        let requests = self.requests();
        let (what, verb) = match &self.limits {
            Some(limits) if requests > RANKED_REQUESTS => (limits.to_string(), "needs"),
            _ => ("response times".to_string(), "need"),
        };
        Some(format!(
            "{what} {verb} {} requests in each phase of a run, which take {} s at {rate}",
            grouped(requests),
            grouped(seconds.ceil() as u64)
        ))
    }

    fn warm_up_seconds(&self, phases: usize) -> f64 {
        if self.rate.is_some() { WARM_UP_SECONDS * phases as f64 } else { 0.0 }
    }

    /// The size that fits into this many minutes with this many engines.
    pub(super) fn size(&self, minutes: u64, engines: usize, cap: &Cap) -> Result<Size, TooShort> {
        let phases = self.phase_seconds();
        let nominal = phases.iter().sum();
        // At a rate, the null engine takes as long as the others.
        let engines = engines.max(1) + usize::from(self.rate.is_some());
        let share = minutes as f64 * 60.0 * PLANNED / (f64::from(RUNS) * engines as f64);
        match (self.exceeds_memory(), cap) {
            (true, Cap::Possible) => self.capped(share, engines, nominal, phases.len()),
            (exceeds_memory, _) => {
                let mut size = self.in_memory(share, engines, nominal, phases.len())?;
                if let (true, Cap::Impossible(reason)) = (exceeds_memory, cap) {
                    size.notes.push(format!(
                        "the data do not fit into the memory, but memory cannot be limited here ({reason}): measured with data \
                         in the page cache, where reads need no disk; run as root, or with `systemd-run --user --scope -p \
                         Delegate=yes kvdyno choose ...`, to limit it"
                    ));
                }
                Ok(size)
            }
        }
    }

    /// The size if the data stay in memory.
    fn in_memory(&self, share: f64, engines: usize, nominal: f64, phases: usize) -> Result<Size, TooShort> {
        let row = self.row_bytes();
        let all = (self.data_bytes / row).max(FEWEST_KEYS);
        let least = LEAST_KEYS.min(LEAST_BYTES / row).max(FEWEST_KEYS).min(all);
        let most = all.min(LOADED_BYTES / row).min(LOADED_KEYS).max(least);
        let shortest = nominal.min(self.shortest_phase() * phases as f64);
        let warm_up = self.warm_up_seconds(phases);
        let rest_of = |keys: u64| seconds_of(keys, row, false).1 + warm_up;
        let smallest = rest_of(least);
        let left = share - smallest;
        if left < shortest {
            return Err(TooShort {
                minutes: minutes_of(smallest + shortest, engines),
                exceeds_memory: false,
            });
        }
        let phases_seconds = nominal.min((share * PHASES_SHARE).max(shortest)).min(left);
        let fits = |keys: u64| rest_of(keys) + phases_seconds <= share;
        let keys = largest(least, most, fits);
        // What loading leaves is for the phases.
        let (load, _) = seconds_of(keys, row, false);
        let pace = ((share - rest_of(keys)) / nominal).min(1.0);
        let mut notes = Vec::new();
        if keys * row < self.data_bytes / 2 {
            notes.push(format!(
                "{} of data are measured instead of {}: an engine may behave differently at full size",
                bytes_text(keys * row),
                bytes_text(self.data_bytes)
            ));
        }
        Ok(Size { keys, memory_bytes: None, pace, load_seconds: limit_of(load, share), notes })
    }

    /// The size if the data are larger than memory: the largest limit of memory that the time allows, and the ratio of data to it.
    fn capped(&self, share: f64, engines: usize, nominal: f64, phases: usize) -> Result<Size, TooShort> {
        let row = self.row_bytes();
        // Phases at a rate are shortened as long as they have their requests.
        let shortest = match self.rate {
            Some(_) => self.shortest_phase() * phases as f64,
            None => nominal,
        };
        let warm_up = self.warm_up_seconds(phases);
        let memory = self.memory_bytes.unwrap_or(u64::MAX);
        let true_ratio = self.data_bytes as f64 / memory.max(1) as f64;
        let keys_of = |limit: u64, ratio: f64| ((limit as f64 * ratio / row as f64) as u64).max(FEWEST_KEYS);
        let limits = MEMORY_LIMITS.map(|limit| limit.min(memory));
        let ratios = [true_ratio.min(RATIO_MAX), true_ratio.min(RATIO_SHORT)];
        let sizes = ratios.iter().flat_map(|ratio| limits.iter().map(|limit| (*limit, *ratio)));
        let time = |limit, ratio| {
            let (load, rest) = seconds_of(keys_of(limit, ratio), row, true);
            (load, rest + warm_up + shortest)
        };
        let Some((limit, ratio)) = sizes.into_iter().find(|(limit, ratio)| time(*limit, *ratio).1 <= share)
        else {
            let (_, seconds) = time(MEMORY_LIMIT_MIN.min(memory), ratios[1]);
            return Err(TooShort { minutes: minutes_of(seconds, engines), exceeds_memory: true });
        };
        let keys = keys_of(limit, ratio);
        let mut notes = vec![format!(
            "{} of data are measured with {} of memory, instead of {} with {}: an engine may behave differently at full size",
            bytes_text(keys * row),
            bytes_text(limit),
            bytes_text(self.data_bytes),
            bytes_text(memory)
        )];
        if keys * row >= self.data_bytes / 2 {
            notes.clear();
        }
        if ratio < true_ratio {
            let why = if ratio < RATIO_MAX {
                "the largest ratio that the time allows"
            } else {
                "the largest ratio that is measured"
            };
            notes.push(format!(
                "the measured data are {ratio:.1} times the memory, {why}; those of the application are {true_ratio:.1} times \
                 as large as its memory, so more of its reads need the disk"
            ));
        }
        let (load, all) = time(limit, ratio);
        let pace = ((share - all + shortest) / nominal).min(1.0);
        Ok(Size { keys, memory_bytes: Some(limit), pace, load_seconds: limit_of(load, share), notes })
    }
}

/// When a load is too slow that is assumed to take this long, in seconds; a short one gets a part of its trial's time.
fn limit_of(load: f64, share: f64) -> f64 {
    let limit = (load * LOAD_LIMIT).max(load + share * LOAD_SLACK);
    (limit * 10.0).ceil() / 10.0
}

/// The largest number from `least` to `most` that fits; `least` does.
fn largest(least: u64, most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    if fits(most) {
        return most;
    }
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    // Rounded down to full thousands, for readability.
    if low > 10_000 { (low / 1000 * 1000).max(least) } else { low }
}

#[cfg(test)]
mod tests;
