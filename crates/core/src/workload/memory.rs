//! The size of the data as a multiple of the memory that a trial may use for them: of its cap, without the harness's own part.

use super::{Workload, WorkloadError};
use crate::generator::{Distribution, Encoding, SizeSpec, Sizes};
use kvdyno_measure::text::{bytes_text, count_text};

/// The bytes that the harness needs for itself before an engine is opened; the cap of a trial includes them.
pub const HARNESS_BYTES: u64 = 16 << 20;
/// Those that it needs to remember the state of each key; the cap includes them, too.
pub const STATE_BYTES: u64 = 16;
/// The part of a limited memory that an engine's own caches get. Other parts are for its buffers and the page cache.
pub const CACHE_DIVISOR: u64 = 4;
/// The least memory for an engine. Few engines work with less than ten times that.
const LEAST_BYTES: u64 = 16 << 20;
const FLAG: &str = "--data-to-memory";

impl Workload {
    /// The size of all keys and values that a fill writes, and of their index rows, in bytes: means, if sizes vary.
    pub fn data_bytes(&self) -> f64 {
        self.keys as f64 * self.row_bytes()
    }

    /// The data as a multiple of the memory that the engine and the page cache may use; none: there is no cap, or it leaves nothing.
    pub fn data_to_memory(&self) -> Option<f64> {
        let left = self.memory_bytes?.checked_sub(harness_bytes(self.keys))?;
        (left > 0 && self.keys > 0).then(|| self.data_bytes() / left as f64)
    }

    /// Whether its fill writes more data than the memory may hold, in an order that is random for the engine, because keys with
    /// neighbouring numbers are far apart.
    pub fn loads_beyond_memory_at_random(&self) -> bool {
        let is_random =
            self.key.scattered || matches!(self.key.encoding, Encoding::Hashed | Encoding::Random);
        self.data_to_memory().is_some_and(|ratio| ratio > 0.8) && is_random
    }

    fn row_bytes(&self) -> f64 {
        let mean = |size: &SizeSpec| Sizes::new(size).map_or(0.0, |sizes| sizes.mean());
        let (key, value) = (mean(&self.key.size), mean(&self.value.size));
        key + value + self.index_bytes(key, value)
    }

    /// Gives the data this ratio to memory: by the cap, or with a `memory` of all in bytes by the number of keys. The time budget no
    /// longer applies, because it would change the ratio, and caches get a part of the memory unless their size is given. Fills are in
    /// the order of the keys.
    ///
    /// Fails if the workload fills no keys, and if the engine would have less than 16 MiB.
    pub(super) fn set_data_to_memory(
        &mut self,
        ratio: f64,
        memory: Option<u64>,
        has_own_cache: bool,
    ) -> Result<(), WorkloadError> {
        let fail = |text: String| Err(WorkloadError::new(FLAG, text));
        let row = self.row_bytes();
        if self.keys == 0 || row <= 0.0 {
            return fail(format!("{} has no fill, so the size of its data is unknown", self.name));
        }
        let left = match memory {
            None => (self.data_bytes() / ratio) as u64,
            Some(memory) => {
                let left = memory.saturating_sub(HARNESS_BYTES) as f64;
                self.keys = ((left * ratio / (row + STATE_BYTES as f64 * ratio)) as u64).max(1);
                memory.saturating_sub(harness_bytes(self.keys))
            }
        };
        if left < LEAST_BYTES {
            let which = match memory {
                Some(_) => "raise --memory".to_string(),
                None => {
                    let keys = (LEAST_BYTES as f64 * 10.0 * ratio / row).ceil();
                    format!("use more keys; 160 MiB are left with --keys {}", round_up(keys as u64))
                }
            };
            return fail(format!(
                "{}: data of {} at a ratio of {ratio} leave {} for the engine, and few work with less than 160 MiB; {which}",
                self.name,
                bytes_text(self.data_bytes() as u64),
                bytes_text(left)
            ));
        }
        self.memory_bytes = Some(memory.unwrap_or(left.saturating_add(harness_bytes(self.keys))));
        if !has_own_cache {
            self.cache_bytes = Some(left / CACHE_DIVISOR);
        }
        self.budget_seconds = None;
        // In random order, a load of more than the memory can take hours.
        let fills = self.phases.iter_mut().filter(|phase| phase.is_fill());
        fills.for_each(|phase| phase.distribution = Distribution::Sequential);
        Ok(())
    }
}

/// What the harness needs of a cap.
fn harness_bytes(keys: u64) -> u64 {
    keys.saturating_mul(STATE_BYTES).saturating_add(HARNESS_BYTES)
}

/// A count in a form that can be typed, rounded up to two digits.
fn round_up(count: u64) -> String {
    let unit = 10_u64.pow(count.checked_ilog10().unwrap_or(0).saturating_sub(1));
    count_text(count.div_ceil(unit) * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn workload(keys: u64) -> Workload {
        let mut workload = builtin("read-random").unwrap();
        (workload.keys, workload.value.size) = (keys, SizeSpec::Fixed(984));
        workload.budget_seconds = Some(90.0);
        workload
    }

    #[test]
    fn the_cap_leaves_the_engine_the_data_divided_by_the_ratio() {
        for ratio in [0.5, 1.0, 3.0] {
            let mut workload = workload(600_000);
            workload.set_data_to_memory(ratio, None, false).unwrap();
            let left = 600_000_000.0 / ratio;
            assert_eq!(workload.keys, 600_000);
            assert_eq!(workload.memory_bytes, Some(left as u64 + (16 << 20) + 600_000 * 16));
            assert_eq!(workload.cache_bytes, Some(left as u64 / 4));
            assert_eq!(workload.budget_seconds, None);
            assert_eq!(workload.phases[0].distribution, Distribution::Sequential);
            assert!((workload.data_to_memory().unwrap() - ratio).abs() < 1e-6 * ratio);
        }
    }

    #[test]
    fn with_a_memory_of_all_the_number_of_keys_follows_and_the_cap_does_not() {
        let mut workload = workload(1);
        workload.cache_bytes = Some(7);
        workload.set_data_to_memory(4.0, Some(256 << 20), true).unwrap();
        assert_eq!((workload.memory_bytes, workload.cache_bytes), (Some(256 << 20), Some(7)));
        let ratio = workload.data_to_memory().unwrap();
        assert!((ratio - 4.0).abs() < 1e-4, "{ratio}");
        // 1,000 bytes of data for each 250 of memory, and 16 of the harness.
        let exact = (240_u64 << 20) as f64 / (250.0 + 16.0);
        assert!((workload.keys as f64 - exact).abs() < 2.0, "{}", workload.keys);
    }

    #[test]
    fn too_little_memory_names_a_number_of_keys_that_works() {
        let mut small = workload(57_000);
        let error = small.set_data_to_memory(4.0, None, false).unwrap_err().to_string();
        assert!(error.contains("--keys 680k"), "{error}");
        let mut larger = workload(680_000);
        larger.set_data_to_memory(4.0, None, false).unwrap();
        assert!(larger.memory_bytes.unwrap() >= (160 << 20) + (16 << 20));
        let error = workload(1).set_data_to_memory(1.0, Some(20 << 20), false).unwrap_err().to_string();
        assert!(error.contains("raise --memory"), "{error}");
        let mut empty = workload(0);
        let error = empty.set_data_to_memory(1.0, None, false).unwrap_err().to_string();
        assert!(error.contains("has no fill"), "{error}");
    }

    #[test]
    fn hashed_keys_are_loaded_at_random_whatever_the_order_of_their_numbers() {
        let mut ordered = workload(600_000);
        ordered.set_data_to_memory(4.0, None, false).unwrap();
        assert!(!ordered.loads_beyond_memory_at_random());
        let mut hashed = workload(600_000);
        hashed.key.encoding = Encoding::Hashed;
        assert!(!hashed.loads_beyond_memory_at_random(), "there is no cap");
        hashed.set_data_to_memory(4.0, None, false).unwrap();
        assert!(hashed.loads_beyond_memory_at_random());
    }

    #[test]
    fn without_a_cap_or_with_one_that_leaves_nothing_there_is_no_ratio() {
        let mut workload = workload(1_000);
        assert_eq!(workload.data_to_memory(), None);
        workload.memory_bytes = Some(16 << 20);
        assert_eq!(workload.data_to_memory(), None);
    }
}
