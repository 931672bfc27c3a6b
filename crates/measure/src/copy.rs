//! Copies folders cheaply where the file system can share blocks. Copies keep holes and are not in the page cache.

#![allow(unsafe_code, reason = "system calls")]

use super::cannot::Cannot;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Size of the pieces that a copy examines: a hole is kept if it covers an aligned piece.
const PIECE_BYTES: usize = 64 << 10;

/// Why a folder could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The folder cannot be read, or the other one not written.
    #[error("cannot copy {} to {}: {error}", from.display(), to.display())]
    Folder {
        /// The folder.
        from: PathBuf,
        /// The other one.
        to: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file in it cannot be copied.
    #[error(transparent)]
    File(#[from] Cannot),
    /// A link or a device is in it.
    #[error("cannot copy {}: it is neither a file nor a folder", .0.display())]
    NeitherFileNorFolder(PathBuf),
}

/// Copies everything in `from` into `to`, an existing empty folder. Files share their blocks where possible (btrfs,
/// XFS); otherwise their bytes are copied and zeros are skipped. When this returns, the copy is on storage and not in
/// the page cache. Links and devices are refused, because a copy would not be independent of the original.
pub fn copy_folder(from: &Path, to: &Path) -> Result<(), CopyError> {
    let failed =
        |error: io::Error| CopyError::Folder { from: from.to_path_buf(), to: to.to_path_buf(), error };
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            fs::create_dir(&target).map_err(failed)?;
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() {
            copy_file(&entry.path(), &target).map_err(Cannot::on("copy", &entry.path()))?;
        } else {
            return Err(CopyError::NeitherFileNorFolder(entry.path()));
        }
    }
    Ok(())
}

/// Removes the files in a folder from the page cache, as far as the system does that; a hint.
pub fn drop_pages_of(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            drop_pages_of(&entry.path())?;
        } else if kind.is_file() {
            let file = File::open(entry.path())?;
            file.sync_all()?;
            drop_pages(&file);
        }
    }
    Ok(())
}

/// Copies a file in the same way; `to` must not exist.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = fs::OpenOptions::new().write(true).create_new(true).open(to)?;
    let mut permissions = source.metadata()?.permissions();
    // A copy of a file that is only for reading is for writing.
    permissions.set_mode(permissions.mode() | 0o600);
    target.set_permissions(permissions)?;
    if share_blocks(&source, &target).is_err() {
        copy_bytes(&mut source, &mut target)?;
    }
    target.sync_all()?;
    drop_pages(&target);
    Ok(())
}

fn copy_bytes(source: &mut File, target: &mut File) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut length = 0;
    loop {
        let count = read_piece(source, &mut piece)?;
        if count == 0 {
            return target.set_len(length);
        }
        if piece[..count].iter().any(|&byte| byte != 0) {
            target.seek(SeekFrom::Start(length))?;
            target.write_all(&piece[..count])?;
        }
        length += count as u64;
    }
}

/// Fills the piece as far as the file has data.
fn read_piece(source: &mut File, piece: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < piece.len() {
        match source.read(&mut piece[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(target_os = "linux")]
fn share_blocks(source: &File, target: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    /// From linux/fs.h.
    const FICLONE: u32 = 0x4004_9409;
    // SAFETY: both descriptors are open; the request takes the other descriptor as its argument and no pointer.
    let outcome = unsafe { libc::ioctl(target.as_raw_fd(), FICLONE as _, source.as_raw_fd()) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Removes the file's pages, which are on storage, from the page cache. Otherwise a trial under a memory cap would
/// get them for free, because it pays only for pages that it reads itself. This is a hint that some file systems
/// ignore.
#[cfg(target_os = "linux")]
fn drop_pages(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open; there are no pointers.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_source: &File, _target: &File) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_file: &File) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiskUse;

    #[test]
    fn a_copy_is_the_same_apart_and_keeps_its_holes() {
        let top = tempfile::tempdir().unwrap();
        let (from, to) = (top.path().join("from"), top.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::create_dir(&to).unwrap();
        let bytes: Vec<u8> = (0..200_000u32).map(|place| (place % 251) as u8).collect();
        fs::write(from.join("inner/plain"), &bytes).unwrap();
        let mut sparse = File::create(from.join("sparse")).unwrap();
        sparse.seek(SeekFrom::Start(40 << 20)).unwrap();
        sparse.write_all(b"end").unwrap();
        sparse.set_len(64 << 20).unwrap();
        copy_folder(&from, &to).unwrap();
        assert_eq!(fs::read(to.join("inner/plain")).unwrap(), bytes);
        let (first, second) = (fs::read(from.join("sparse")).unwrap(), fs::read(to.join("sparse")).unwrap());
        assert!(first == second);
        let used = DiskUse::of(&to).unwrap();
        assert!(used.allocated_bytes < 4 << 20, "{used:?}");
        fs::write(to.join("inner/plain"), b"other").unwrap();
        assert_eq!(fs::read(from.join("inner/plain")).unwrap(), bytes);
    }

    #[test]
    fn a_link_is_refused() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink("elsewhere", from.path().join("link")).unwrap();
        let error = copy_folder(from.path(), to.path()).unwrap_err();
        assert!(matches!(error, CopyError::NeitherFileNorFolder(_)), "{error}");
    }
}
