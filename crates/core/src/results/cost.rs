//! What an op of a phase costs: CPU time by who used it, system calls, bytes, switches and page faults.

use super::{PhaseRecord, ThreadRecord};
use kvdyno_measure::Usage;
use serde::Serialize;

/// The costs of an op: those of a phase divided by its ops, or the median of this over runs. A cost is none if it is unknown or
/// cannot be told from that of the harness (docs/methodology.md, section 14).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// CPU time of the threads that ran the ops, without the harness's, nanoseconds.
    pub calling_cpu_ns: Option<f64>,
    /// CPU time of all other threads of the trial's process and of the processes that it started, nanoseconds.
    pub background_cpu_ns: Option<f64>,
    /// CPU time of the harness, in the threads that ran the ops and in the one that samples, nanoseconds.
    pub harness_cpu_ns: Option<f64>,
    /// Cycles of the processor, those of the harness included.
    pub cycles: Option<f64>,
    /// Instructions, those of the harness included.
    pub instructions: Option<f64>,
    /// How many times a thread gave up its CPU to wait.
    pub voluntary_switches: Option<f64>,
    /// How many times a thread was preempted.
    pub involuntary_switches: Option<f64>,
    /// Page faults served without reading from storage.
    pub minor_faults: Option<f64>,
    /// Page faults that had to read from storage.
    pub major_faults: Option<f64>,
    /// Calls of read and its variants.
    pub read_calls: Option<f64>,
    /// Calls of write and its variants.
    pub write_calls: Option<f64>,
    /// Bytes requested in read calls.
    pub read_call_bytes: Option<f64>,
    /// Bytes passed to write calls.
    pub written_call_bytes: Option<f64>,
    /// Bytes read from storage.
    pub read_storage_bytes: Option<f64>,
    /// Bytes written to storage.
    pub written_storage_bytes: Option<f64>,
    /// Flushes of the device's cache.
    pub flushes: Option<f64>,
    /// Bytes read from storage per byte that reads returned.
    pub read_amplification: Option<f64>,
    /// The device that the bytes of storage were counted at; none: the kernel counted them for the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_device: Option<String>,
}

impl Cost {
    /// The costs of several runs, each combined by `middle`.
    pub fn over(runs: &[&Cost], middle: impl Fn(&[f64]) -> Option<f64>) -> Cost {
        let of = |figure: fn(&Cost) -> Option<f64>| {
            middle(&runs.iter().filter_map(|run| figure(run)).collect::<Vec<f64>>())
        };
        Cost {
            calling_cpu_ns: of(|cost| cost.calling_cpu_ns),
            background_cpu_ns: of(|cost| cost.background_cpu_ns),
            harness_cpu_ns: of(|cost| cost.harness_cpu_ns),
            cycles: of(|cost| cost.cycles),
            instructions: of(|cost| cost.instructions),
            voluntary_switches: of(|cost| cost.voluntary_switches),
            involuntary_switches: of(|cost| cost.involuntary_switches),
            minor_faults: of(|cost| cost.minor_faults),
            major_faults: of(|cost| cost.major_faults),
            read_calls: of(|cost| cost.read_calls),
            write_calls: of(|cost| cost.write_calls),
            read_call_bytes: of(|cost| cost.read_call_bytes),
            written_call_bytes: of(|cost| cost.written_call_bytes),
            read_storage_bytes: of(|cost| cost.read_storage_bytes),
            written_storage_bytes: of(|cost| cost.written_storage_bytes),
            flushes: of(|cost| cost.flushes),
            read_amplification: of(|cost| cost.read_amplification),
            storage_device: runs.iter().find_map(|run| run.storage_device.clone()),
        }
    }
}

impl PhaseRecord {
    /// What an op of the phase costs.
    pub fn cost(&self) -> Cost {
        let per_op = |amount: Option<u64>| {
            amount.filter(|_| self.ops > 0).map(|amount| amount as f64 / self.ops as f64)
        };
        let net = |of: fn(&Usage) -> Option<u64>| {
            let watcher = of(self.watcher.as_ref()?)?;
            per_op(Some(of(&self.usage)?.saturating_sub(watcher)))
        };
        let (read, written) = (self.read_storage_bytes(), self.written_storage_bytes());
        let returned = self.logical_bytes_read;
        Cost {
            calling_cpu_ns: per_op(self.calling_cpu_ns()),
            background_cpu_ns: per_op(self.background_cpu_ns()),
            harness_cpu_ns: per_op(self.harness_cpu_ns().filter(|_| self.watcher.is_some())),
            cycles: per_op(self.usage.cycles),
            instructions: per_op(self.usage.instructions),
            voluntary_switches: net(|usage| usage.voluntary_switches),
            involuntary_switches: net(|usage| usage.involuntary_switches),
            minor_faults: net(|usage| usage.minor_faults),
            major_faults: net(|usage| usage.major_faults),
            read_calls: net(|usage| usage.read_calls),
            write_calls: net(|usage| usage.write_calls),
            read_call_bytes: net(|usage| usage.read_call_bytes),
            written_call_bytes: net(|usage| usage.written_call_bytes),
            read_storage_bytes: per_op(read),
            written_storage_bytes: per_op(written),
            flushes: per_op(self.device.as_ref().and_then(|device| device.flushes)),
            read_amplification: read.filter(|_| returned > 0).map(|read| read as f64 / returned as f64),
            storage_device: self.device.as_ref().map(|device| device.device.clone()),
        }
    }

    /// Bytes read from storage: by the database's own device, or else because of the process.
    pub fn read_storage_bytes(&self) -> Option<u64> {
        self.device.as_ref().map(|device| device.read_bytes).or(self.usage.read_storage_bytes)
    }

    /// Bytes written to storage: to the database's own device, or else because of the process.
    pub fn written_storage_bytes(&self) -> Option<u64> {
        self.device.as_ref().map(|device| device.written_bytes).or(self.usage.written_storage_bytes)
    }

    /// CPU time of the process, user and system, without that of the harness; nanoseconds. None: unknown.
    pub fn engine_cpu_ns(&self) -> Option<u64> {
        let engine_ns = self.usage.cpu_ns()?.saturating_sub(self.harness_cpu_ns()?);
        // No engine takes no time, so then the harness's was estimated too high.
        (engine_ns > 0).then_some(engine_ns)
    }

    /// CPU time of the threads that ran the ops, while they did, with the harness's; none: threads of the driver's runtime ran
    /// them, or an older version measured it, with an error of some milliseconds.
    fn threads_cpu_ns(&self) -> Option<u64> {
        let times = self.threads.iter().map(|thread| thread.cpu_ns);
        times.sum::<Option<u64>>().filter(|_| self.watcher.is_some() && !self.threads.is_empty())
    }

    fn calling_cpu_ns(&self) -> Option<u64> {
        let engine_ns = self.threads_cpu_ns()?.saturating_sub(self.harness_of_threads_ns()?);
        (engine_ns > 0).then_some(engine_ns)
    }

    /// What neither the threads that ran the ops nor the watcher used. It may be 0: many engines have no other threads.
    fn background_cpu_ns(&self) -> Option<u64> {
        let watcher_ns = self.watcher.as_ref()?.cpu_ns()?;
        Some(self.usage.cpu_ns()?.saturating_sub(self.threads_cpu_ns()?).saturating_sub(watcher_ns))
    }

    /// CPU time of the harness. Older versions did not measure that of the watcher.
    fn harness_cpu_ns(&self) -> Option<u64> {
        let watcher_ns = self.watcher.as_ref().map_or(Some(0), Usage::cpu_ns)?;
        Some(self.harness_of_threads_ns()?.saturating_add(watcher_ns))
    }

    fn harness_of_threads_ns(&self) -> Option<u64> {
        let on_cpu = on_cpu(self.usage.cpu_ns(), self.usage.run_delay_ns).unwrap_or(1.0);
        let of_threads = self.threads.iter().map(|thread| thread.harness_cpu_ns(on_cpu));
        (!self.threads.is_empty()).then(|| of_threads.fold(0, u64::saturating_add))
    }
}

impl ThreadRecord {
    /// CPU time outside the driver; nanoseconds. The harness sleeps only until a request is due, so it waits for a CPU as often as the thread does
    /// on average, or the process (`of_process`) if the thread's own times are unknown.
    fn harness_cpu_ns(&self, of_process: f64) -> u64 {
        let outside_ns = self.elapsed_ns.saturating_sub(self.inside_ns).saturating_sub(self.slept_ns) as f64;
        (outside_ns * on_cpu(self.cpu_ns, self.run_delay_ns).unwrap_or(of_process)) as u64
    }
}

/// The share of its time that something ran on a CPU, of the time in which it needed one; none: unknown.
fn on_cpu(cpu_ns: Option<u64>, run_delay_ns: Option<u64>) -> Option<f64> {
    let (cpu, delay) = (cpu_ns? as f64, run_delay_ns? as f64);
    (cpu > 0.0).then_some(cpu / (cpu + delay))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Role, fixture};
    use kvdyno_measure::DeviceUse;

    fn thread(role: Role, inside_ns: u64, like: &ThreadRecord) -> ThreadRecord {
        ThreadRecord {
            role: role.into(),
            ops: 1_000,
            inside_ns,
            elapsed_ns: 1_000_000_000,
            cpu_ns: None,
            run_delay_ns: None,
            ..like.clone()
        }
    }

    /// Two threads, each a quarter of its time outside the driver; half of their time they wait for a CPU.
    fn phase() -> PhaseRecord {
        let mut phase = fixture::records().remove(0).phases.remove(0);
        let like = phase.threads[0].clone();
        phase.threads = vec![thread(Role::Mix, 750_000_000, &like), thread(Role::Mix, 750_000_000, &like)];
        phase.ops = 2_000;
        (phase.usage.user_cpu_ns, phase.usage.system_cpu_ns) = (Some(900_000_000), Some(100_000_000));
        phase.usage.run_delay_ns = Some(1_000_000_000);
        phase
    }

    #[test]
    fn the_harness_is_not_in_the_cpu_time_of_the_engine() {
        let mut phase = phase();
        assert_eq!(phase.engine_cpu_ns(), Some(750_000_000));
        // The thread's own times are better than those of the process.
        (phase.threads[0].cpu_ns, phase.threads[0].run_delay_ns) = (Some(400), Some(0));
        assert_eq!(phase.engine_cpu_ns(), Some(625_000_000));
        phase.watcher =
            Some(Usage { user_cpu_ns: Some(5_000_000), system_cpu_ns: Some(0), ..Usage::default() });
        assert_eq!(phase.engine_cpu_ns(), Some(620_000_000), "the watcher is not the engine");
        phase.usage.user_cpu_ns = Some(0);
        assert_eq!(phase.engine_cpu_ns(), None, "never 0");
    }

    #[test]
    fn cpu_time_is_split_into_three_parts_that_add_up() {
        let mut phase = phase();
        for thread in &mut phase.threads {
            (thread.cpu_ns, thread.run_delay_ns) = (Some(300_000_000), Some(300_000_000));
        }
        assert_eq!(phase.cost().background_cpu_ns, None, "an older version did not measure the watcher");
        assert_eq!(phase.cost().harness_cpu_ns, None);
        phase.watcher =
            Some(Usage { user_cpu_ns: Some(4_000_000), system_cpu_ns: Some(6_000_000), ..Usage::default() });
        let cost = phase.cost();
        // Of 600 ms in the threads, half of a quarter of two seconds is the harness's.
        assert_eq!(cost.calling_cpu_ns, Some(350_000_000.0 / 2_000.0));
        assert_eq!(cost.harness_cpu_ns, Some(260_000_000.0 / 2_000.0));
        assert_eq!(cost.background_cpu_ns, Some(390_000_000.0 / 2_000.0));
        let engine_ns = cost.calling_cpu_ns.unwrap() + cost.background_cpu_ns.unwrap();
        assert_eq!(engine_ns * 2_000.0, phase.engine_cpu_ns().unwrap() as f64);
        // Threads of the driver's runtime ran the ops: which of them did is unknown.
        phase.threads[1].cpu_ns = None;
        let cost = phase.cost();
        assert_eq!((cost.calling_cpu_ns, cost.background_cpu_ns), (None, None));
        assert!(cost.harness_cpu_ns.is_some());
    }

    #[test]
    fn the_watcher_is_in_no_count_and_what_it_cannot_tell_is_unknown() {
        let mut phase = phase();
        phase.usage.read_calls = Some(2_100);
        phase.usage.minor_faults = Some(50);
        assert_eq!(phase.cost().read_calls, None);
        phase.watcher = Some(Usage { read_calls: Some(100), minor_faults: Some(50), ..Usage::default() });
        let cost = phase.cost();
        assert_eq!((cost.read_calls, cost.minor_faults), (Some(1.0), Some(0.0)));
        assert_eq!((cost.write_calls, cost.major_faults, cost.background_cpu_ns), (None, None, None));
    }

    #[test]
    fn the_databases_own_device_is_better_than_the_process() {
        let mut phase = phase();
        (phase.usage.read_storage_bytes, phase.usage.written_storage_bytes) = (Some(4_000), Some(8_000));
        phase.logical_bytes_read = 1_000;
        let cost = phase.cost();
        assert_eq!((cost.read_storage_bytes, cost.written_storage_bytes), (Some(2.0), Some(4.0)));
        assert_eq!((cost.flushes, cost.storage_device, cost.read_amplification), (None, None, Some(4.0)));
        phase.device = Some(DeviceUse {
            device: "loop7".into(),
            read_bytes: 0,
            written_bytes: 16_000,
            flushes: Some(500),
        });
        let cost = phase.cost();
        assert_eq!((cost.read_storage_bytes, cost.written_storage_bytes), (Some(0.0), Some(8.0)));
        assert_eq!((cost.flushes, cost.storage_device.as_deref()), (Some(0.25), Some("loop7")));
        phase.logical_bytes_read = 0;
        assert_eq!(phase.cost().read_amplification, None, "nothing was read");
    }

    #[test]
    fn each_cost_has_a_median() {
        // None is left out, and none is mixed up with another.
        let of =
            |value: f64| Cost { flushes: Some(value), minor_faults: Some(value * 2.0), ..Cost::default() };
        let (low, high) = (of(1.0), of(3.0));
        let middle = Cost::over(&[&low, &high, &Cost::default()], crate::results::statistics::median);
        assert_eq!(middle, of(2.0));
    }
}
