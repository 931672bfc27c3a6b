//! The file system of the data path: its type, its device, and whether a sync there can be meaningful.

use super::disk::existing_part;
use super::mounts::{self, Mount};
use super::resources::read;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// File systems in memory, where a sync stores nothing.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Block devices in memory.
const IN_MEMORY_DEVICES: [&str; 2] = ["zram", "ram"];
/// Options whose value describes how the file system works. All others may name folders, hosts or people.
const OPTIONS_TOLD: [&str; 27] = [
    "acl",
    "allocsize",
    "atime",
    "barrier",
    "cache",
    "checksum",
    "commit",
    "compress",
    "compression",
    "copies",
    "data",
    "discard",
    "errors",
    "huge",
    "logbsize",
    "logbufs",
    "max_batch_time",
    "recordsize",
    "rsize",
    "size",
    "ssd",
    "stripe",
    "sunit",
    "swidth",
    "vers",
    "volatile",
    "wsize",
];

/// The file system that holds a path. Contains no paths, host names or names of people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileSystemFacts {
    /// `ext4`, `xfs`, `tmpfs` ...
    pub kind: String,
    /// The kernel's name of the block device, `vda1`; absent if there is none.
    pub device: Option<String>,
    /// Effective mount options, without those that could name folders or hosts.
    pub options: Vec<String>,
    /// Whether it is in memory, so that a sync there stores nothing.
    pub is_memory: bool,
    /// Whether its device reports that it is rotational; virtual disks often report this wrongly.
    pub rotational: Option<bool>,
    /// `write back`: the device has a cache that a sync must flush; `write through`: it has no cache, or none that
    /// needs a flush.
    pub write_cache: Option<String>,
    /// The kernel's I/O scheduler of the device.
    pub scheduler: Option<String>,
}

/// The file system that holds `path`, or would hold it; `None` if unknown.
pub fn file_system(path: &Path) -> Option<FileSystemFacts> {
    let mounts = mounts::all();
    let mount = mounts::of(&mounts, &existing_part(path)?)?;
    let device = Device::of(mount);
    let lives_in_memory = |name: &str| IN_MEMORY_DEVICES.iter().any(|kind| is_numbered(name, kind));
    let is_memory = IN_MEMORY.contains(&mount.kind.as_str())
        || device.as_ref().is_some_and(|device| lives_in_memory(&device.name));
    let queue = |file: &str| device.as_ref().and_then(|device| device.queue(file));
    Some(FileSystemFacts {
        kind: mount.kind.clone(),
        options: publishable(&mount.options),
        is_memory,
        rotational: queue("rotational").map(|text| text == "1"),
        write_cache: queue("write_cache"),
        scheduler: queue("scheduler").map(|text| chosen(&text)),
        device: device.map(|device| device.name),
    })
}

/// Whether files in `path` are never written to storage, so that the kernel counts no bytes for them.
pub fn has_no_storage(path: &Path) -> bool {
    let mounts = mounts::all();
    let mount = existing_part(path).and_then(|path| Some(mounts::of(&mounts, &path)?.kind.clone()));
    mount.is_some_and(|kind| IN_MEMORY.contains(&kind.as_str()))
}

/// A block device in `/sys`.
struct Device {
    name: String,
    folder: std::path::PathBuf,
}

impl Device {
    fn of(mount: &Mount) -> Option<Self> {
        // Some file systems (btrfs) have their own device number; then the mount source names the device.
        let numbers = [Some(mount.device.clone()), numbers_of(Path::new(&mount.source))];
        let folder = numbers
            .into_iter()
            .flatten()
            .find_map(|numbers| std::fs::canonicalize(format!("/sys/dev/block/{numbers}")).ok())?;
        let name = folder.file_name()?.to_str()?.to_owned();
        Some(Self { name, folder })
    }

    /// A file of its queue; a partition uses the queue of its disk.
    fn queue(&self, file: &str) -> Option<String> {
        let folders = [Some(self.folder.as_path()), self.folder.parent()];
        let text = folders
            .into_iter()
            .flatten()
            .find_map(|folder| read(folder.join("queue").join(file).to_str()?))?;
        Some(text.trim().to_owned())
    }
}

#[cfg(target_os = "linux")]
fn numbers_of(source: &Path) -> Option<String> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    let facts = std::fs::metadata(source).ok()?;
    let number = facts.rdev();
    facts.file_type().is_block_device().then(|| format!("{}:{}", libc::major(number), libc::minor(number)))
}

#[cfg(not(target_os = "linux"))]
fn numbers_of(_source: &Path) -> Option<String> {
    None
}

/// The options that are safe to publish: flags, and values of known names.
fn publishable(options: &[String]) -> Vec<String> {
    let is_publishable = |option: &&String| match option.split_once('=') {
        Some((name, value)) => {
            let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c));
            OPTIONS_TOLD.contains(&name) && is_plain
        }
        None => option.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)),
    };
    options.iter().filter(is_publishable).cloned().collect()
}

/// The word in brackets of `none [mq-deadline] kyber`; the complete text if it has no brackets.
pub(super) fn chosen(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(word, _)| word).trim().to_owned()
}

/// Whether a name is `kind` followed by digits.
fn is_numbered(name: &str, kind: &str) -> bool {
    let digits = name.strip_prefix(kind).unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{chosen, file_system, is_numbered, publishable};

    #[test]
    fn options_that_could_name_someone_are_left_out() {
        let options =
            ["rw", "data=ordered", "lowerdir=/home/x", "addr=10.0.0.1", "username=x", "size=4k", "odd/flag"];
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        assert_eq!(publishable(&options), ["rw", "data=ordered", "size=4k"]);
    }

    #[test]
    fn finds_the_scheduler_in_force() {
        assert_eq!(chosen("none [mq-deadline] kyber\n"), "mq-deadline");
        assert_eq!(chosen("none\n"), "none");
        assert_eq!(chosen("broken [x"), "broken [x");
    }

    #[test]
    fn memory_devices_are_told_by_their_names() {
        assert!(is_numbered("zram0", "zram") && is_numbered("ram12", "ram"));
        assert!(!is_numbered("ramdisk", "ram") && !is_numbered("ram", "ram") && !is_numbered("sda1", "ram"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_table_is_no_block_device_and_tmpfs_is_memory() {
        let facts = file_system(std::path::Path::new("/proc/self")).unwrap();
        assert_eq!((facts.kind.as_str(), facts.device), ("proc", None));
        if let Some(shared) =
            file_system(std::path::Path::new("/dev/shm")).filter(|facts| facts.kind == "tmpfs")
        {
            assert!(shared.is_memory);
        }
    }
}
