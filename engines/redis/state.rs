//! The state of a server: its statistics, its background work, and its end.

use super::Redis;
use super::facts::info;
use super::wire::Reply;
use kvdyno_driver::{Error, Status};
use std::thread::sleep;
use std::time::Duration;

/// The pause between two checks of background work.
const LOOK: Duration = Duration::from_millis(10);
/// The fields of INFO that are recorded, with their names in a record.
const STATS: [(&str, &str); 9] = [
    ("used_memory", "used_memory_bytes"),
    ("used_memory_rss", "used_memory_rss_bytes"),
    ("used_memory_peak", "used_memory_peak_bytes"),
    ("mem_fragmentation_ratio", "mem_fragmentation_ratio"),
    ("used_cpu_user", "used_cpu_user_seconds"),
    ("used_cpu_sys", "used_cpu_sys_seconds"),
    ("aof_current_size", "aof_current_size_bytes"),
    ("evicted_keys", "evicted_keys"),
    ("total_commands_processed", "total_commands"),
];

impl Redis {
    /// Lines about the server for the record.
    pub(super) fn tell(&self, out: &mut String) {
        let mut wire = self.control();
        if let Some(server) = &self.server {
            *out += &format!("address={}\n", server.address.host_and_port());
        }
        if let Ok(Reply::Integer(keys)) = wire.ask(&[b"DBSIZE"]) {
            *out += &format!("keys={keys}\n");
        }
        for (name, value) in info(&mut wire).unwrap_or_default() {
            if let Some((_, known)) = STATS.iter().find(|(line, _)| *line == name) {
                *out += &format!("{known}={value}\n");
            }
        }
    }

    /// An error, with the exit of the server if we started it and it has ended.
    pub(super) fn explained(&self, error: Error) -> Error {
        let Some(server) = self.server.as_ref().filter(|_| error.text.contains("connect")) else {
            return error;
        };
        // The socket is closed a moment before the process has ended.
        for _ in 0..200 {
            if server.end_of().is_some() {
                return Error::with(
                    error.status,
                    format!("{}: {}", error.text, server.failed("has ended").text),
                );
            }
            sleep(LOOK);
        }
        error
    }

    /// Waits until no snapshot and no log rewrite runs.
    pub(super) fn settle(&self) -> Result<Status, Error> {
        loop {
            let lines = info(&mut self.control())?;
            let of =
                |name: &str| lines.iter().find(|(line, _)| line == name).map(|(_, value)| value.as_str());
            let (Some(snapshot), Some(log)) = (of("rdb_bgsave_in_progress"), of("aof_rewrite_in_progress"))
            else {
                return Ok(Status::Unsupported);
            };
            if (snapshot, log) == ("0", "0") && of("aof_rewrite_scheduled") != Some("1") {
                return Ok(Status::Ok);
            }
            sleep(LOOK);
        }
    }
}
