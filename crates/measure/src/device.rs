//! What a block device has read and written, where a database has a device of its own.
//!
//! The counters of a device are those of all its users. They are figures of the database only if nothing else uses the
//! device: its file system is mounted once and completely, and holds nothing but the folders that lead to the database.

#![allow(unsafe_code, reason = "system calls")]

use super::disk::existing_part;
use super::mounts::{self, Mount};
use super::resources::read;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The unit of sectors in `stat`, whatever the device's own is.
const SECTOR_BYTES: u64 = 512;
/// A folder that every ext file system has.
const LOST_AND_FOUND: &str = "lost+found";

/// The I/O of a device: since it began, or between two moments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// The kernel's name of the device, `loop0`.
    pub device: String,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that were written to it, journal and metadata of the file system included.
    pub written_bytes: u64,
    /// Flushes of its cache while ops ran; none: it does not count them (a partition, or a device without a request queue).
    pub flushes: Option<u64>,
}

impl DeviceUse {
    /// The sum of two spans; none if they are of different devices.
    pub fn and(&self, later: &Self) -> Option<Self> {
        (self.device == later.device).then(|| Self {
            device: self.device.clone(),
            read_bytes: self.read_bytes.saturating_add(later.read_bytes),
            written_bytes: self.written_bytes.saturating_add(later.written_bytes),
            flushes: self.flushes.zip(later.flushes).map(|(one, two)| one.saturating_add(two)),
        })
    }

    /// The I/O since `earlier`; none if a counter has been reset.
    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            device: self.device.clone(),
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            written_bytes: self.written_bytes.checked_sub(earlier.written_bytes)?,
            flushes: self.flushes.zip(earlier.flushes).and_then(|(now, then)| now.checked_sub(then)),
        })
    }
}

/// The device of a database that has one of its own, over a span of time.
#[derive(Debug)]
pub struct OwnDevice {
    name: String,
    folder: PathBuf,
    data: PathBuf,
    counts_flushes: bool,
    before: Option<DeviceUse>,
}

impl OwnDevice {
    /// The device below `data`; none if the folder shares its device with others, or has none. What is next to the folder,
    /// in its parent, belongs to the trial.
    pub fn of(data: &Path) -> Option<Self> {
        let data = existing_part(data)?;
        let all = mounts::all();
        let mount = mounts::of(&all, &data)?;
        let is_alone = || all.iter().filter(|other| other.device == mount.device).count() == 1;
        if mount.root != Path::new("/") || !is_alone() || !leads_only_to(mount, data.parent()?) {
            return None;
        }
        // Some file systems (btrfs) have their own device number and may have several devices: they have no such folder.
        let folder = std::fs::canonicalize(format!("/sys/dev/block/{}", mount.device)).ok()?;
        let name = folder.file_name()?.to_str()?.to_owned();
        // The kernel counts flushes of whole devices, in their request queues.
        let counts_flushes = !folder.join("partition").exists() && folder.join("mq").exists();
        let mut device = Self { name, folder, data, counts_flushes, before: None };
        device.begin();
        device.before.is_some().then_some(device)
    }

    /// Begins the span. Reads one small file.
    pub fn begin(&mut self) {
        self.before = self.now();
    }

    /// Ends the span, and writes what is dirty to the device, because it belongs to this span: that takes a while, and what it
    /// flushes is not counted.
    pub fn finish(&self) -> Option<DeviceUse> {
        let before = self.before.as_ref()?;
        let at_end = self.now()?.since(before)?;
        write_back(&self.data)?;
        let written = self.now()?.since(before)?;
        Some(DeviceUse { flushes: at_end.flushes, ..written })
    }

    fn now(&self) -> Option<DeviceUse> {
        let text = read(self.folder.join("stat").to_str()?)?;
        parse(&text, &self.name, self.counts_flushes)
    }
}

/// Whether the file system holds nothing but folders that lead to this one.
fn leads_only_to(mount: &Mount, folder: &Path) -> bool {
    let Ok(way) = folder.strip_prefix(&mount.point) else { return false };
    if way.as_os_str().is_empty() {
        // The top of a file system is not a trial's folder: what is there may be anyone's.
        return false;
    }
    let mut at = mount.point.clone();
    for step in way.components() {
        let Ok(entries) = std::fs::read_dir(&at) else { return false };
        let is_top = at == mount.point;
        let is_other = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.map(|entry| entry.file_name());
            name.map_or(true, |name| name != step.as_os_str() && !(is_top && name == LOST_AND_FOUND))
        };
        if entries.into_iter().any(is_other) {
            return false;
        }
        at.push(step);
    }
    true
}

/// The line of a `stat` file: requests, merges and sectors read; the same written; further on, flushes (Linux 5.5).
fn parse(text: &str, device: &str, counts_flushes: bool) -> Option<DeviceUse> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    Some(DeviceUse {
        device: device.to_owned(),
        read_bytes: fields.get(2)?.checked_mul(SECTOR_BYTES)?,
        written_bytes: fields.get(6)?.checked_mul(SECTOR_BYTES)?,
        flushes: fields.get(15).copied().filter(|_| counts_flushes),
    })
}

/// Writes all dirty pages of the file system that holds the folder.
#[cfg(target_os = "linux")]
fn write_back(folder: &Path) -> Option<()> {
    use std::os::fd::AsRawFd;

    let folder = std::fs::File::open(folder).ok()?;
    // SAFETY: a plain system call on an open descriptor.
    (unsafe { libc::syncfs(folder.as_raw_fd()) } == 0).then_some(())
}

#[cfg(not(target_os = "linux"))]
fn write_back(_folder: &Path) -> Option<()> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        " 125400 94 1716302 3401 151749 41762 6994388 11100 0 5000 15095 2 0 131074 0 65268 593\n";

    #[test]
    fn reads_what_kernels_print_and_flushes_only_where_they_are_counted() {
        let found = parse(STAT, "loop0", true).unwrap();
        assert_eq!((found.read_bytes, found.written_bytes), (1_716_302 * 512, 6_994_388 * 512));
        assert_eq!(found.flushes, Some(65_268));
        assert_eq!(parse(STAT, "sda1", false).unwrap().flushes, None);
        let older = STAT.split_ascii_whitespace().take(15).collect::<Vec<_>>().join(" ");
        assert_eq!(parse(&older, "loop0", true).unwrap().flushes, None);
        for text in ["", "1 2 3", "1 2 3 4 5 6 x"] {
            assert_eq!(parse(text, "loop0", true), None, "{text}");
        }
    }

    #[test]
    fn spans_add_up_and_a_reset_counter_makes_them_unknown() {
        let of =
            |read_bytes, flushes| DeviceUse { device: "loop0".into(), read_bytes, written_bytes: 9, flushes };
        let span = of(10, Some(7)).since(&of(4, Some(2))).unwrap();
        assert_eq!((span.read_bytes, span.written_bytes, span.flushes), (6, 0, Some(5)));
        assert_eq!(of(3, None).since(&of(4, None)), None);
        assert_eq!(span.and(&of(1, None)).unwrap().flushes, None);
        assert_eq!(span.and(&DeviceUse { device: "loop1".into(), ..span.clone() }), None);
    }

    #[test]
    fn a_file_system_with_anything_else_on_it_is_shared() {
        let top = tempfile::tempdir().unwrap();
        let mount = Mount {
            device: "7:0".into(),
            root: "/".into(),
            point: top.path().to_path_buf(),
            kind: "ext4".into(),
            source: "/dev/loop0".into(),
            options: Vec::new(),
        };
        let trial = top.path().join("data/trial");
        std::fs::create_dir_all(trial.join("db")).unwrap();
        std::fs::create_dir(top.path().join(LOST_AND_FOUND)).unwrap();
        std::fs::write(trial.join("marker"), "").unwrap();
        assert!(leads_only_to(&mount, &trial));
        assert!(!leads_only_to(&mount, Path::new("/elsewhere")));
        assert!(!leads_only_to(&mount, top.path()), "a trial's folder is never the top");
        std::fs::write(top.path().join("data/other"), "").unwrap();
        assert!(!leads_only_to(&mount, &trial), "another file is beside the trial's folder");
        std::fs::remove_file(top.path().join("data/other")).unwrap();
        std::fs::create_dir(top.path().join("results")).unwrap();
        assert!(!leads_only_to(&mount, &trial), "another folder is at the top");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_root_file_system_is_nobodys_own() {
        assert!(OwnDevice::of(&std::env::current_dir().unwrap()).is_none());
        assert!(OwnDevice::of(Path::new("/proc/self")).is_none());
    }
}
