//! Busy loops, one for each CPU: with them beside half of the runs, the range of a count has what a busy machine does to it.

use kvdyno_measure::start;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Loops that run until this is dropped.
pub(super) struct Busy {
    is_over: Arc<AtomicBool>,
    loops: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts them. If the system refuses a thread, there are fewer.
    pub(super) fn start() -> Busy {
        let is_over = Arc::new(AtomicBool::new(false));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let start = |_| {
            let is_over = Arc::clone(&is_over);
            let work = move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            start::thread_named("busy", work).ok()
        };
        let loops = (0..cpus).filter_map(start).collect();
        Busy { is_over, loops }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for each in self.loops.drain(..) {
            // A loop cannot panic.
            let _ = each.join();
        }
    }
}
