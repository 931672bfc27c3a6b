//! What is assumed about engines before they are measured: rates, and the time of a trial outside its phases. Plans are made with it.

/// Rates of engines, and their time outside phases. Each key takes time, and so do its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Keys loaded per second, many in a commit.
    pub loaded_keys: f64,
    /// Bytes of keys and values loaded per second, beside the time of the keys.
    pub loaded_bytes: f64,
    /// Keys read per second by the sweep at the end.
    pub swept_keys: f64,
    /// Bytes of keys and values read per second by the sweep, beside the time of the keys.
    pub swept_bytes: f64,
    /// Seconds of a trial for starting, opening, settling, closing and reopening.
    pub rest_seconds: f64,
}

impl Assumed {
    /// Means of the engines that a run compares by default, with rows of the usual size, so that plans are realistic. The time of the
    /// bytes is in that of the keys.
    pub const TYPICAL: Assumed = Assumed {
        loaded_keys: 100_000.0,
        loaded_bytes: f64::INFINITY,
        swept_keys: 300_000.0,
        swept_bytes: f64::INFINITY,
        rest_seconds: 0.3,
    };
    /// So that a plan keeps its time on a slow machine: the data are in memory, and 100 keys are in a commit.
    pub const IN_MEMORY: Assumed =
        Assumed { loaded_keys: 8e4, loaded_bytes: 5e7, swept_keys: 3e5, swept_bytes: 2e8, rest_seconds: 0.6 };
    /// The same where the data are larger than memory: loaded in key order, 1000 keys in a commit, and read from a disk.
    pub const FROM_DISK: Assumed =
        Assumed { loaded_keys: 1e5, loaded_bytes: 2e7, swept_keys: 8e3, swept_bytes: 1e8, rest_seconds: 0.6 };
}
