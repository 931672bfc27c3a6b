//! A device in user space that records what it is asked to do: a FUSE file system with one file, the image, over which a loop
//! device lies. Every write and every flush becomes an entry of a log, together with numbers that the caller gives for that instant.
//!
//! A process of its own serves it, so that killing that process answers whoever waits for the device.

use super::BLOCK_BYTES;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

/// What the device did, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The caller's numbers of the instant before.
    pub stamp: Vec<u64>,
    /// What it did.
    pub act: Act,
}

/// What a device is asked to do, apart from reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Blocks were written, the first of which has this number.
    Write(u64, Vec<u8>),
    /// All that was written before is to be on the medium.
    Flush,
}

const WRITE: u64 = 1;
const FLUSH: u64 = 2;
/// More words of a stamp are none of ours.
const MOST_WORDS: u64 = 1 << 10;
/// More bytes of a write are none of ours.
const MOST_BYTES: u64 = 64 << 20;

/// The bytes of the log so far.
pub fn log_bytes(path: &Path) -> io::Result<u64> {
    Ok(path.metadata()?.len())
}

/// The entries in the first bytes of a log; a torn entry at their end does not count.
pub fn entries(path: &Path, bytes: u64) -> io::Result<Vec<Entry>> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?).take(bytes);
    let mut entries = Vec::new();
    loop {
        match entry(&mut reader) {
            Ok(entry) => entries.push(entry),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(entries),
            Err(error) => return Err(error),
        }
    }
}

fn entry(reader: &mut impl Read) -> io::Result<Entry> {
    let mut word = || {
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    };
    let (kind, offset, length, words) = (word()?, word()?, word()?, word()?);
    let is_whole = offset.is_multiple_of(BLOCK_BYTES) && length.is_multiple_of(BLOCK_BYTES);
    if words > MOST_WORDS || length > MOST_BYTES || !is_whole {
        return Err(io::Error::new(ErrorKind::InvalidData, "the log of the device is broken"));
    }
    let stamp = (0..words).map(|_| word()).collect::<io::Result<Vec<u64>>>()?;
    let act = match kind {
        WRITE => {
            let mut data = vec![0; length as usize];
            reader.read_exact(&mut data)?;
            Act::Write(offset / BLOCK_BYTES, data)
        }
        FLUSH => Act::Flush,
        _ => {
            return Err(io::Error::new(ErrorKind::InvalidData, "the log of the device has an unknown entry"));
        }
    };
    Ok(Entry { stamp, act })
}

/// Serves the device of a volume's folder until it is unmounted or this process is killed. `ready` is called once it is mounted.
/// `stamp` is called before each entry. `fails` says whether the write with this number, from 1, returns EIO instead.
#[cfg(target_os = "linux")]
pub fn serve(
    home: &Path,
    stamp: impl Fn() -> Vec<u64> + Send + Sync + 'static,
    fails: impl Fn(u64) -> bool + Send + Sync + 'static,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let image = std::fs::OpenOptions::new().read(true).write(true).open(home.join(super::IMAGE))?;
    let bytes = image.metadata()?.len();
    let log = std::sync::Mutex::new(device::Log::create(&home.join(super::LOG))?);
    let device = device::Device { image, bytes, log, stamp, fails, writes: Default::default() };
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        fuser::MountOption::FSName("kvdyno".into()),
        fuser::MountOption::NoSuid,
        fuser::MountOption::NoDev,
        fuser::MountOption::NoExec,
    ];
    let session = fuser::Session::new(device, home.join(super::DEVICE), &config)?;
    ready();
    session.run()
}

/// Not available on other systems than Linux.
#[cfg(not(target_os = "linux"))]
pub fn serve(
    _home: &Path,
    _stamp: impl Fn() -> Vec<u64> + Send + Sync + 'static,
    _fails: impl Fn(u64) -> bool + Send + Sync + 'static,
    _ready: impl FnOnce(),
) -> io::Result<()> {
    Err(io::Error::new(ErrorKind::Unsupported, "only on Linux"))
}

#[cfg(target_os = "linux")]
mod device {
    use super::super::{BLOCK_BYTES, IMAGE};
    use super::{FLUSH, WRITE};
    use fuser::{
        Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner, OpenFlags,
        ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyStatfs, ReplyWrite, Request, WriteFlags,
    };
    use std::ffi::OsStr;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::os::unix::fs::FileExt;
    use std::path::Path;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, UNIX_EPOCH};

    /// The log of a device that is served.
    pub(super) struct Log {
        file: File,
    }

    impl Log {
        pub(super) fn create(path: &Path) -> io::Result<Log> {
            Ok(Log { file: OpenOptions::new().append(true).create_new(true).open(path)? })
        }

        /// Appends an entry by one call, so that the log of a killed process ends with at most one torn entry.
        pub(super) fn append(
            &mut self,
            kind: u64,
            offset: u64,
            data: &[u8],
            stamp: &[u64],
        ) -> io::Result<()> {
            let head = [kind, offset, data.len() as u64, stamp.len() as u64];
            let mut bytes = Vec::with_capacity((head.len() + stamp.len()) * 8 + data.len());
            for word in head.iter().chain(stamp) {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(data);
            self.file.write_all(&bytes)
        }
    }

    /// The number of the image; the folder has that of the root.
    const FILE: INodeNo = INodeNo(2);
    /// The kernel may remember the attributes: they do not change.
    const FOREVER: Duration = Duration::from_secs(1 << 30);

    pub(super) struct Device<S, F> {
        pub image: File,
        pub bytes: u64,
        pub log: Mutex<Log>,
        pub stamp: S,
        pub fails: F,
        /// Writes so far.
        pub writes: AtomicU64,
    }

    impl<S, F> Device<S, F>
    where
        S: Fn() -> Vec<u64> + Send + Sync + 'static,
        F: Fn(u64) -> bool + Send + Sync + 'static,
    {
        fn attributes(&self, number: INodeNo) -> Option<FileAttr> {
            let (kind, perm, size) = match number {
                INodeNo::ROOT => (FileType::Directory, 0o700, 0),
                FILE => (FileType::RegularFile, 0o600, self.bytes),
                _ => return None,
            };
            Some(FileAttr {
                ino: number,
                size,
                blocks: size.div_ceil(512),
                atime: UNIX_EPOCH,
                mtime: UNIX_EPOCH,
                ctime: UNIX_EPOCH,
                crtime: UNIX_EPOCH,
                kind,
                perm,
                nlink: 1,
                uid: 0,
                gid: 0,
                rdev: 0,
                blksize: BLOCK_BYTES as u32,
                flags: 0,
            })
        }

        /// The stamp is that of the instant before: what is counted in it was acknowledged without this entry.
        fn record(&self, kind: u64, offset: u64, data: &[u8]) -> io::Result<()> {
            let stamp = (self.stamp)();
            let mut log = self.log.lock().map_err(|_| io::Error::other("a thread panicked"))?;
            log.append(kind, offset, data, &stamp)
        }

        fn write_blocks(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let end = offset.checked_add(data.len() as u64);
            let is_whole =
                offset.is_multiple_of(BLOCK_BYTES) && (data.len() as u64).is_multiple_of(BLOCK_BYTES);
            if !is_whole || end.is_none_or(|end| end > self.bytes) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            if (self.fails)(self.writes.fetch_add(1, Ordering::SeqCst) + 1) {
                return Err(io::Error::from_raw_os_error(libc::EIO));
            }
            self.record(WRITE, offset, data)?;
            self.image.write_all_at(data, offset)
        }
    }

    impl<S, F> Filesystem for Device<S, F>
    where
        S: Fn() -> Vec<u64> + Send + Sync + 'static,
        F: Fn(u64) -> bool + Send + Sync + 'static,
    {
        fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
            match self.attributes(FILE).filter(|_| parent == INodeNo::ROOT && name == IMAGE) {
                Some(found) => reply.entry(&FOREVER, &found, Generation(0)),
                None => reply.error(Errno::ENOENT),
            }
        }

        fn getattr(&self, _request: &Request, number: INodeNo, _file: Option<FileHandle>, reply: ReplyAttr) {
            match self.attributes(number) {
                Some(found) => reply.attr(&FOREVER, &found),
                None => reply.error(Errno::ENOENT),
            }
        }

        fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
            let blocks = self.bytes / BLOCK_BYTES;
            reply.statfs(blocks, 0, 0, 1, 0, BLOCK_BYTES as u32, 255, BLOCK_BYTES as u32);
        }

        fn read(
            &self,
            _request: &Request,
            _number: INodeNo,
            _file: FileHandle,
            offset: u64,
            size: u32,
            _flags: OpenFlags,
            _owner: Option<LockOwner>,
            reply: ReplyData,
        ) {
            let mut data = vec![0; u64::from(size).min(self.bytes.saturating_sub(offset)) as usize];
            match self.image.read_exact_at(&mut data, offset) {
                Ok(()) => reply.data(&data),
                Err(_) => reply.error(Errno::EIO),
            }
        }

        fn write(
            &self,
            _request: &Request,
            _number: INodeNo,
            _file: FileHandle,
            offset: u64,
            data: &[u8],
            _kind: WriteFlags,
            _flags: OpenFlags,
            _owner: Option<LockOwner>,
            reply: ReplyWrite,
        ) {
            match self.write_blocks(offset, data) {
                Ok(()) => reply.written(data.len() as u32),
                Err(_) => reply.error(Errno::EIO),
            }
        }

        /// Called when a file is closed; it is no flush of the device.
        fn flush(
            &self,
            _request: &Request,
            _number: INodeNo,
            _file: FileHandle,
            _owner: LockOwner,
            reply: ReplyEmpty,
        ) {
            reply.ok();
        }

        fn fsync(
            &self,
            _request: &Request,
            _number: INodeNo,
            _file: FileHandle,
            _datasync: bool,
            reply: ReplyEmpty,
        ) {
            match self.record(FLUSH, 0, &[]) {
                Ok(()) => reply.ok(),
                Err(_) => reply.error(Errno::EIO),
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::device::Log;
    use super::*;

    #[test]
    fn a_log_is_read_as_it_was_written_and_a_torn_end_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::create(&path).unwrap();
        log.append(WRITE, 3 * BLOCK_BYTES, &[7; 2 * BLOCK_BYTES as usize], &[1, 2, 3]).unwrap();
        log.append(FLUSH, 0, &[], &[4]).unwrap();
        let all = log_bytes(&path).unwrap();
        let written = Entry { stamp: vec![1, 2, 3], act: Act::Write(3, vec![7; 2 * BLOCK_BYTES as usize]) };
        let both = vec![written.clone(), Entry { stamp: vec![4], act: Act::Flush }];
        assert_eq!(entries(&path, all).unwrap(), both);
        assert_eq!(entries(&path, all - 1).unwrap(), [written]);
        assert_eq!(entries(&path, 100).unwrap(), []);
        assert_eq!(entries(&path, 0).unwrap(), []);
    }

    #[test]
    fn a_log_that_is_broken_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (number, words) in [[9u64, 0, 0, 0], [WRITE, 1, 0, 0], [WRITE, 0, 100, 0], [WRITE, 0, 0, 1 << 40]]
            .into_iter()
            .enumerate()
        {
            let path = folder.path().join(number.to_string());
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert!(entries(&path, 1 << 20).is_err(), "{words:?}");
        }
    }
}
