//! Disk use of a folder, and free space on its disk.

#![allow(unsafe_code, reason = "system calls")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Disk use of a folder and everything in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskUse {
    /// Allocated blocks, bytes; includes folders, excludes holes of sparse files.
    pub allocated_bytes: u64,
    /// Sum of the files' lengths, bytes.
    pub apparent_bytes: u64,
    /// Number of files; a file with several names counts once.
    pub files: u64,
}

impl DiskUse {
    /// Measures a folder. Symbolic links are not followed; files that vanish during the scan are not counted. `None`
    /// if the folder does not exist, if part of it cannot be read, or where block counts are not available (not
    /// Unix).
    pub fn of(folder: &Path) -> Option<Self> {
        let top = std::fs::symlink_metadata(folder).ok().filter(std::fs::Metadata::is_dir)?;
        walk(folder, &top)
    }
}

#[cfg(unix)]
fn walk(folder: &Path, top: &std::fs::Metadata) -> Option<DiskUse> {
    use std::collections::HashSet;
    use std::os::unix::fs::MetadataExt;

    // The unit of st_blocks, regardless of the file system's block size.
    const BLOCK_BYTES: u64 = 512;
    let mut total = DiskUse { allocated_bytes: top.blocks() * BLOCK_BYTES, ..DiskUse::default() };
    let mut several_names = HashSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Some(entries) = unless_gone(std::fs::read_dir(&folder))? else { continue };
        for entry in entries {
            let entry = entry.ok()?;
            let Some(facts) = unless_gone(entry.metadata())? else { continue };
            if facts.nlink() > 1 && !facts.is_dir() && !several_names.insert((facts.dev(), facts.ino())) {
                continue;
            }
            total.allocated_bytes += facts.blocks() * BLOCK_BYTES;
            if facts.is_dir() {
                folders.push(entry.path());
            } else {
                total.files += 1;
                total.apparent_bytes += facts.len();
            }
        }
    }
    Some(total)
}

#[cfg(not(unix))]
fn walk(_folder: &Path, _top: &std::fs::Metadata) -> Option<DiskUse> {
    None
}

/// The value, or that the file is gone; `None` for any other error, because the sum would be too small.
#[cfg(unix)]
fn unless_gone<T>(outcome: io::Result<T>) -> Option<Option<T>> {
    match outcome {
        Ok(value) => Some(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

/// What a file system can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// Its size, bytes.
    pub bytes: u64,
    /// Files that this user may still create; none: the file system has no limit.
    pub free_files: Option<u64>,
}

/// The space of the file system that holds `path` (or would hold it); `None` if unknown.
#[cfg(unix)]
#[allow(clippy::unnecessary_cast, reason = "the fields' widths differ between systems")]
pub fn space(path: &Path) -> Option<Space> {
    use std::os::unix::ffi::OsStrExt;

    let existing = existing_part(path)?;
    let name = std::ffi::CString::new(existing.as_os_str().as_bytes()).ok()?;
    // SAFETY: all zeroes is a valid statvfs.
    let mut facts: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends with a zero byte and both pointers are live.
    let outcome = unsafe { libc::statvfs(name.as_ptr(), &mut facts) };
    let bytes = |blocks: u64| blocks.saturating_mul(facts.f_frsize as u64);
    (outcome == 0).then(|| Space {
        free_bytes: bytes(facts.f_bavail as u64),
        bytes: bytes(facts.f_blocks as u64),
        // btrfs, for example, counts no inodes.
        free_files: (facts.f_files > 0).then_some(facts.f_favail as u64),
    })
}

/// The space of the file system that holds `path`; `None` if unknown.
#[cfg(not(unix))]
pub fn space(_path: &Path) -> Option<Space> {
    None
}

/// Bytes that this user may still write on the file system that holds `path` (or would hold it); `None` if unknown.
pub fn free_bytes(path: &Path) -> Option<u64> {
    // A file system without a size, such as /proc, holds no files of users.
    space(path).filter(|space| space.bytes > 0).map(|space| space.free_bytes)
}

/// The reason why this user can create nothing at `path`, or where it would be: no permission, or a read-only file system.
#[cfg(unix)]
pub fn check_writable(path: &Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;

    let Some(existing) = existing_part(path) else { return Ok(()) };
    let name = std::ffi::CString::new(existing.as_os_str().as_bytes())?;
    // SAFETY: a plain system call; the name ends with a zero byte.
    match unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Unknown here.
#[cfg(not(unix))]
pub fn check_writable(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Reserves disk space for a file without writing to it.
#[cfg(target_os = "linux")]
pub fn allocate(file: &std::fs::File, bytes: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: a plain system call on an open descriptor.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Not possible on this system.
#[cfg(not(target_os = "linux"))]
pub fn allocate(_file: &std::fs::File, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes all that was written to the file system of an existing folder durable, which takes much less time than a sync of each of
/// many files.
#[cfg(target_os = "linux")]
pub fn sync_file_system(folder: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let opened = std::fs::File::open(folder)?;
    // SAFETY: a plain system call on an open descriptor.
    match unsafe { libc::syncfs(opened.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes everything durable that was written on this machine.
#[cfg(all(unix, not(target_os = "linux")))]
pub fn sync_file_system(_folder: &Path) -> io::Result<()> {
    // SAFETY: sync has no arguments and cannot fail.
    unsafe { libc::sync() };
    Ok(())
}

/// Not possible on this system, which makes files durable without a call.
#[cfg(not(unix))]
pub fn sync_file_system(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// The path itself if it exists, otherwise its nearest existing parent, without symbolic links; `None` if the current
/// folder is gone.
pub fn existing_part(path: &Path) -> Option<std::path::PathBuf> {
    let whole = std::path::absolute(path).ok()?;
    whole.ancestors().find_map(|part| part.canonicalize().ok())
}

/// The page cache cannot be dropped: it requires root, or the system does not support it.
#[derive(Debug, thiserror::Error)]
#[error("not permitted: {0}")]
pub struct NotDropped(io::Error);

/// Writes back and drops the kernel's page cache, dentries and inodes for the whole machine.
pub fn drop_caches() -> Result<(), NotDropped> {
    #[cfg(unix)]
    // SAFETY: sync has no arguments and cannot fail.
    unsafe {
        libc::sync();
    }
    std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(NotDropped)
}

#[cfg(all(test, unix))]
mod tests {
    use super::{DiskUse, existing_part, free_bytes};
    use std::path::Path;

    #[test]
    fn adds_up_files_in_folders_and_counts_no_file_twice() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("one"), vec![1; 10_000]).unwrap();
        std::fs::write(folder.path().join("two"), vec![2; 5]).unwrap();
        std::fs::hard_link(inner.join("one"), folder.path().join("again")).unwrap();
        let used = DiskUse::of(folder.path()).unwrap();
        assert_eq!((used.files, used.apparent_bytes), (2, 10_005));
    }

    #[test]
    fn holes_are_apparent_but_not_allocated() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::File::create(folder.path().join("sparse")).unwrap().set_len(64 << 20).unwrap();
        let used = DiskUse::of(folder.path()).unwrap();
        assert_eq!(used.apparent_bytes, 64 << 20);
        assert!(used.allocated_bytes < 1 << 20, "{used:?}");
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("large"), vec![0; 100_000]).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("folder")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("itself")).unwrap();
        let used = DiskUse::of(folder.path()).unwrap();
        assert_eq!(used.files, 2);
        assert!(used.apparent_bytes < 10_000, "{used:?}");
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_size() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(DiskUse::of(&folder.path().join("missing")), None);
        std::fs::write(folder.path().join("file"), "x").unwrap();
        assert_eq!(DiskUse::of(&folder.path().join("file")), None);
    }

    #[test]
    fn space_is_known_for_paths_that_are_yet_to_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let future = folder.path().join("not/yet/there");
        assert!(free_bytes(&future).is_some());
        assert_eq!(existing_part(&future), folder.path().canonicalize().ok());
        assert!(existing_part(Path::new("neither-this/nor-that")).is_some());
    }
}
