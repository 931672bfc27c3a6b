//! What the kernel logs about a device.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes of a record, at most.
const RECORD: usize = 8192;
/// Records that are read at once, at most: others may log without end.
const MOST_RECORDS: u32 = 1 << 16;

/// The kernel's log since it was opened. Root can read it; elsewhere, or in a container, it says nothing.
#[derive(Debug)]
pub(super) struct KernelLog(File);

impl KernelLog {
    /// What is logged from now on; `None` where it cannot be read.
    pub(super) fn from_now() -> Option<KernelLog> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(KernelLog(file))
    }

    /// The first error of a block device in what was logged since the last call.
    pub(super) fn error_of(&self, device: &Path) -> Option<String> {
        self.first(device, is_error)
    }

    /// The first message that `is_it` takes, which gets the message and the device's name, in what was logged since the last call.
    pub(super) fn first(&self, device: &Path, is_it: fn(&str, &str) -> bool) -> Option<String> {
        let name = device.file_name()?.to_str()?;
        let mut record = vec![0; RECORD];
        let mut found = None;
        for _ in 0..MOST_RECORDS {
            match (&self.0).read(&mut record) {
                Ok(count) if count > 0 => {
                    let text = String::from_utf8_lossy(&record[..count]).into_owned();
                    let message = message_of(&text).filter(|message| is_it(message, name));
                    found = found.or_else(|| message.map(String::from));
                }
                // Records were overwritten before they were read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                _ => break,
            }
        }
        found
    }
}

/// The message of a record: `6,339,5140900,-;I/O error, dev loop0, sector 9`.
fn message_of(record: &str) -> Option<&str> {
    Some(record.lines().next()?.split_once(';')?.1.trim())
}

/// Whether a message says that a request of a block device failed.
fn is_error(message: &str, device: &str) -> bool {
    // A device may refuse these, and the kernel writes zeroes then, or does without.
    let is_refusal = ["operation not supported", "(WRITE_ZEROES)", "(DISCARD)", "(SECURE_ERASE)"];
    message.contains(&format!(" error, dev {device}, "))
        && !is_refusal.iter().any(|words| message.contains(words))
}

/// Whether a message says that a block of the ext4 file system itself on a device has failed, not one of a file.
pub(super) fn is_of_file_system(message: &str, device: &str) -> bool {
    const OWN: [&str; 4] =
        ["EXT4-fs error", "Aborting journal", "lost async page write", "lost sync page write"];
    // loop1 is no part of loop11.
    let mut rests = message.match_indices(device).map(|(at, _)| &message[at + device.len()..]);
    let is_its = rests.any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()));
    is_its && OWN.iter().any(|own| message.contains(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_in<'t>(record: &'t str, device: &str) -> Option<&'t str> {
        message_of(record).filter(|message| is_error(message, device))
    }

    #[test]
    fn failed_blocks_of_a_file_system_are_told_from_those_of_its_files() {
        for own in [
            "Aborting journal on device loop1-8.",
            "EXT4-fs error (device loop1): ext4_journal_check_start:87: comm kvdyno: Detected aborted journal",
            "Buffer I/O error on dev loop1, logical block 66, lost async page write",
            "Buffer I/O error on dev loop1, logical block 0, lost sync page write",
        ] {
            assert!(is_of_file_system(own, "loop1"), "{own}");
            assert!(!is_of_file_system(&own.replace("loop1", "loop11"), "loop1"), "{own}");
            assert!(!is_of_file_system(own, "loop2"), "{own}");
        }
        for other in [
            "EXT4-fs warning (device loop1): ext4_end_bio:368: I/O error 10 writing to inode 13 starting block 32947)",
            "Buffer I/O error on device loop1, logical block 32947",
            "I/O error, dev loop1, sector 263576 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
            "EXT4-fs (loop1): mounted filesystem without journal",
        ] {
            assert!(!is_of_file_system(other, "loop1"), "{other}");
        }
    }

    #[test]
    fn failed_requests_of_the_device_are_errors_and_other_messages_are_not() {
        let failed =
            "3,1,2,-;I/O error, dev loop1, sector 2056 op 0x1:(WRITE) flags 0x800\n SUBSYSTEM=block\n";
        assert_eq!(
            error_in(failed, "loop1"),
            Some("I/O error, dev loop1, sector 2056 op 0x1:(WRITE) flags 0x800")
        );
        let full = "3,1,2,-;critical space allocation error, dev loop1, sector 8\n";
        assert!(error_in(full, "loop1").is_some());
        let old = "3,1,2,-;blk_update_request: I/O error, dev loop1, sector 8\n";
        assert!(error_in(old, "loop1").is_some());
        for (record, device) in [
            (failed, "loop11"),
            (failed, "loop"),
            ("6,1,2,-;EXT4-fs (loop1): shut down requested (2)\n", "loop1"),
            ("6,1,2,-;XFS (loop1): User initiated shutdown received.\n", "loop1"),
            (
                "3,1,2,-;operation not supported error, dev loop1, sector 592 op 0x9:(WRITE_ZEROES) flags 0x800\n",
                "loop1",
            ),
            ("3,1,2,-;I/O error, dev loop1, sector 8 op 0x3:(DISCARD) flags 0x800\n", "loop1"),
            ("", "loop1"),
        ] {
            assert_eq!(error_in(record, device), None, "{record}");
        }
    }
}
