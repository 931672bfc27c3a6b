//! A file system that can be cut off like by a power failure: an image file, a loop device over it, and the kernel's own call to
//! shut a file system down. Root and Linux only.
//!
//! Everything is in a folder with a marker, `kvdyno-volume-...`, whose lock the process holds that made it. Mounts are in a mount
//! namespace of that process, and the loop device detaches itself with its last user, so that both end with the process, however
//! it ends. What is left otherwise is removed by [`reap`].

mod kernel_log;
pub mod record;
mod system;

use super::cannot::Cannot;
use super::disk::{Space, free_bytes, space};
use super::mounts;
use super::start;
use crate::text::bytes_text;
use kernel_log::KernelLog;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub use system::own_namespace as enter_own_namespace;

/// Prefix of the names of our folders; nothing else is ever removed.
const PREFIX: &str = "kvdyno-volume-";
const MARKER: &str = "KVDYNO-VOLUME";
const IMAGE: &str = "image";
const MOUNT: &str = "mount";
/// Where the device that records is mounted, and its log.
const DEVICE: &str = "device";
const LOG: &str = "log";
/// A file of ours in the file system; a sync of it writes the journal.
const SENTINEL: &str = "kvdyno-sentinel";
/// Dirty pages are written back in pieces of this size, bytes.
const PIECE: u64 = 16 << 10;
/// More pieces of a file are not looked at: a sparse file may be huge.
const MOST_PIECES: u64 = 1 << 16;
/// Bytes of a block of the device, which is written completely or not at all.
pub const BLOCK_BYTES: u64 = 4096;
/// XFS refuses smaller images, bytes.
const LEAST_XFS: u64 = 300 << 20;
const LEAST: u64 = 32 << 20;
/// A file system with less free space has none for what an engine or a journal writes at once, bytes.
const FULL: u64 = 1 << 20;
/// How long the kernel may take for a step.
const STEP: Duration = Duration::from_secs(60);
/// How long a file system may be busy after its last process has ended.
const BUSY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// Why a file system of our own cannot be made, used or removed.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// A name cannot be that of a file system.
    #[error("`{0}` is not the name of a file system")]
    Name(String),
    /// The image is too small for the file system.
    #[error(
        "{kind} needs an image of at least {}, and --image-size is {}",
        bytes_text(*least),
        bytes_text(*bytes)
    )]
    Small {
        /// The file system.
        kind: String,
        /// What it needs, bytes.
        least: u64,
        /// The size of the image.
        bytes: u64,
    },
    /// The user is not root.
    #[error("only root can mount file systems; run it as root")]
    NotRoot,
    /// The kernel does not have the file system.
    #[error("this kernel has no {0}, or has not loaded it (modprobe {0})")]
    NotInKernel(String),
    /// The folder has no space for the image.
    #[error(
        "{} has less than {} of free space; choose another folder with --images",
        folder.display(),
        bytes_text(*bytes)
    )]
    NoSpace {
        /// The folder.
        folder: PathBuf,
        /// The size of the image.
        bytes: u64,
    },
    /// The system refused something on a file or folder.
    #[error(transparent)]
    Refused(#[from] Cannot),
    /// A loop device cannot be attached.
    #[error("no loop device: {0}; run it as root, outside containers")]
    NoLoopDevice(io::Error),
    /// No loop device is attached.
    #[error("no loop device is attached")]
    NotAttached,
    /// The loop device does not detach itself.
    #[error("{} is still attached after {} s", .0.display(), BUSY.as_secs())]
    StillAttached(PathBuf),
    /// The program that makes the file system is not installed.
    #[error("{program} is not installed{}", package_of(kind))]
    NotInstalled {
        /// The program.
        program: String,
        /// The file system.
        kind: String,
    },
    /// The program that makes the file system cannot be started.
    #[error("cannot start {program}: {error}")]
    NotStarted {
        /// The program.
        program: String,
        /// The reason.
        error: io::Error,
    },
    /// The program that makes the file system fails.
    #[error("{program} fails: {said}")]
    ProgramFails {
        /// The program.
        program: String,
        /// What it says last.
        said: String,
    },
    /// The file system cannot be mounted.
    #[error("cannot mount {kind}: {error}")]
    Mount {
        /// The file system.
        kind: String,
        /// The reason.
        error: io::Error,
    },
    /// The file system cannot be cut off.
    #[error("{kind} has no shutdown call here: {error}")]
    NoShutdown {
        /// The file system.
        kind: String,
        /// The reason.
        error: io::Error,
    },
    /// The folder of the image is full, so that its device cannot store what is written to it.
    #[error(
        "{} is full ({} of {} are free), and the device of the tested file system stores its blocks there; choose \
         another folder with --images",
        folder.display(),
        bytes_text(*free),
        bytes_text(*bytes)
    )]
    ImagesFull {
        /// The folder.
        folder: PathBuf,
        /// Its free space, bytes.
        free: u64,
        /// The size of its file system, bytes.
        bytes: u64,
    },
    /// The file system itself is full.
    #[error(
        "the tested file system is full ({} of {} are free); choose a larger --image-size",
        bytes_text(*free),
        bytes_text(*bytes)
    )]
    Full {
        /// Its free space, bytes.
        free: u64,
        /// Its size, bytes.
        bytes: u64,
    },
    /// The kernel has logged an error of its device.
    #[error("the device of the tested file system fails, says the kernel: {0}")]
    DeviceFails(String),
    /// The thread of a step cannot be started.
    #[error("{0}")]
    Thread(io::Error),
    /// What the kernel logs is not known.
    #[error("the log of the kernel (/dev/kmsg) cannot be read")]
    NoKernelLog,
    /// The kernel blocks a step.
    #[error("{0} takes longer than {seconds} s", seconds = STEP.as_secs())]
    Blocked(String),
    /// A step panicked.
    #[error("{0} failed")]
    Panicked(String),
}

/// A mounted file system of our own. On drop it is unmounted and removed.
#[derive(Debug)]
pub struct Volume {
    home: PathBuf,
    kind: String,
    /// Open, so that the loop device stays attached.
    device: Option<(PathBuf, File)>,
    /// What the kernel has said since the device was attached.
    log: Option<KernelLog>,
    is_mounted: bool,
    /// Locked as long as this process lives.
    _marker: File,
}

/// Where images are best: a file system in memory on most systems.
pub const IMAGES: &str = "/dev/shm";

/// Makes a file system of a kind, cuts it off and removes it, where no other process sees it.
pub(super) fn probe(kind: &str) -> io::Result<String> {
    if !system::is_root() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let kind = kind.to_string();
    let probed = start::thread(move || {
        enter_own_namespace()?;
        let bytes = if kind == "xfs" { LEAST_XFS } else { 2 * LEAST };
        Volume::create(&probe_parent(), &kind, bytes).map_err(io::Error::other)?;
        Ok("a file system on a loop device was made, cut off, and mounted again".to_string())
    })?;
    probed.join().unwrap_or_else(|_| Err(io::Error::other("the test panicked")))
}

/// Makes a device in user space that records, writes to it by way of a loop device, and removes it, where no other process sees it.
pub(super) fn probe_record() -> io::Result<String> {
    if !system::is_root() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let probed = start::thread(|| {
        enter_own_namespace()?;
        let mut volume = Volume::in_new_folder(&probe_parent(), "none").map_err(io::Error::other)?;
        File::create_new(volume.image())?.set_len(16 * BLOCK_BYTES)?;
        volume.prepare_device().map_err(io::Error::other)?;
        let (send, receive) = channel();
        let home = volume.home.clone();
        let serves = move || {
            // If this process is killed, the device ends with this thread, and nobody waits for it.
            let ready = send.clone();
            let served = system::own_descriptors()
                .and_then(|()| record::serve(&home, Vec::new, |_| false, move || drop(ready.send(Ok(())))));
            drop(send.send(served));
        };
        start::thread(serves)?;
        let outcome = receive
            .recv_timeout(STEP)
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .and_then(|()| {
                volume.attach(&volume.home.join(DEVICE).join(IMAGE)).map_err(io::Error::other)?;
                let path = volume.device().map_err(io::Error::other)?;
                let write = move || {
                    let mut file = OpenOptions::new().write(true).open(path)?;
                    file.write_all(&[1; BLOCK_BYTES as usize])?;
                    file.sync_all()
                };
                within("writing to the device", write).map_err(io::Error::other)??;
                volume.detach().map_err(io::Error::other)?;
                let log = volume.log();
                record::entries(&log, record::log_bytes(&log)?)
            });
        // On an error the device is still in use, and this ends it.
        let _ = system::abort(&volume.home.join(DEVICE));
        let _ = volume.detach();
        volume.remove_device().map_err(io::Error::other)?;
        let entries = outcome?;
        let count = |is: fn(&record::Act) -> bool| entries.iter().filter(|entry| is(&entry.act)).count();
        let writes = count(|act| matches!(act, record::Act::Write(..)));
        match (writes, count(|act| *act == record::Act::Flush)) {
            (1.., 1..) => {
                Ok("a device in user space recorded a write and a flush of a loop device".to_string())
            }
            (writes, flushes) => Err(io::Error::other(format!(
                "a device in user space recorded {writes} of 1 writes and {flushes} of 1 flushes"
            ))),
        }
    })?;
    probed.join().unwrap_or_else(|_| Err(io::Error::other("the test panicked")))
}

/// Where tests make their images.
fn probe_parent() -> PathBuf {
    let shared = Path::new(IMAGES);
    if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() }
}

/// The file systems that can be tested: they keep what is synced through a power cut. Of others, such as ext2, which has no journal,
/// a power cut may leave anything, whatever an engine does.
pub const FILE_SYSTEMS: [&str; 4] = ["ext4", WRITEBACK, "xfs", "btrfs"];

/// ext4 mounted with `data=writeback`: a file may have its new size before its new blocks are written.
const WRITEBACK: &str = "ext4-writeback";

/// The name by which the kernel and `mkfs` know a kind, and the options of the mount.
fn kernel_name(kind: &str) -> (&str, &str) {
    if kind == WRITEBACK { ("ext4", "data=writeback") } else { (kind, "") }
}

/// Whether a name can be that of a file system.
fn is_file_system_name(name: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let name = kernel_name(name).0;
    !name.is_empty() && name.len() <= 16 && name.bytes().all(is_letter)
}

impl Volume {
    /// Makes and mounts an empty file system in `parent` and tests that it can be cut off. The error is the reason why that is not
    /// possible here.
    pub fn create(parent: &Path, kind: &str, bytes: u64) -> Result<Volume, VolumeError> {
        let mut volume = Volume::formatted(parent, kind, bytes)?;
        volume.attach(&volume.image())?;
        volume.mount()?;
        // A file system without the call must be found before anything is tested on it.
        volume.cut()?;
        volume.remount()?;
        Ok(volume)
    }

    /// Makes an image with an empty file system in `parent`; it is not mounted.
    pub fn formatted(parent: &Path, kind: &str, bytes: u64) -> Result<Volume, VolumeError> {
        if !is_file_system_name(kind) {
            return Err(VolumeError::Name(kind.into()));
        }
        let least = if kind == "xfs" { LEAST_XFS } else { LEAST };
        if bytes < least {
            return Err(VolumeError::Small { kind: kind.into(), least, bytes });
        }
        if !system::is_root() {
            return Err(VolumeError::NotRoot);
        }
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.lines().any(|line| line.trim_start_matches("nodev").trim() == kernel_name(kind).0) {
            return Err(VolumeError::NotInKernel(kind.into()));
        }
        if free_bytes(parent).is_some_and(|free| free < bytes) {
            return Err(VolumeError::NoSpace { folder: parent.to_path_buf(), bytes });
        }
        let mut volume = Volume::in_new_folder(parent, kind)?;
        volume.fill(bytes)?;
        Ok(volume)
    }

    fn in_new_folder(parent: &Path, kind: &str) -> Result<Volume, VolumeError> {
        let failed = Cannot::on("create the folder of an image in", parent);
        let parent_path = fs::create_dir_all(parent).and_then(|()| parent.canonicalize()).map_err(&failed)?;
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let home = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent_path).map_err(&failed)?.keep();
        let marked =
            OpenOptions::new().write(true).create_new(true).open(home.join(MARKER)).and_then(|marker| {
                marker.lock()?;
                Ok(marker)
            });
        match marked {
            Ok(marker) => {
                let kind = kind.into();
                Ok(Volume { home, kind, device: None, log: None, is_mounted: false, _marker: marker })
            }
            Err(error) => {
                // Without its marker it could not be removed later.
                let _ = fs::remove_file(home.join(MARKER));
                let _ = fs::remove_dir(&home);
                Err(failed(error).into())
            }
        }
    }

    fn fill(&mut self, bytes: u64) -> Result<(), VolumeError> {
        let (image, mount) = (self.image(), self.folder());
        let failed = Cannot::on("create", &image);
        let file = OpenOptions::new().write(true).create_new(true).open(&image).map_err(&failed)?;
        file.set_len(bytes).map_err(failed)?;
        fs::create_dir(&mount).map_err(Cannot::on("create", &mount))?;
        self.attach(&image)?;
        self.make_file_system()?;
        self.detach()
    }

    /// Attaches a loop device to an image, or to the file of a device that records.
    fn attach(&mut self, image: &Path) -> Result<(), VolumeError> {
        let file = image.to_path_buf();
        let attach = move || {
            OpenOptions::new().read(true).write(true).open(file).and_then(|file| system::attach(&file))
        };
        let attached = within("attaching a loop device", attach)?;
        self.device = Some(attached.map_err(VolumeError::NoLoopDevice)?);
        // Whoever had the device before may have had errors of its own.
        self.log = KernelLog::from_now();
        Ok(())
    }

    /// Why something may have failed on it whoever wrote to it: its device, or space. Must be called before it is unmounted or its
    /// device is detached. `None`: nothing is known to be wrong.
    pub fn trouble(&self) -> Option<VolumeError> {
        let full = |folder: &Path| {
            let is_full = |space: &Space| space.bytes > 0 && space.free_bytes < FULL;
            space(folder).filter(is_full).map(|space| (space.free_bytes, space.bytes))
        };
        if let Some((free, bytes)) = full(&self.home) {
            let folder = self.home.parent().unwrap_or(&self.home).to_path_buf();
            return Some(VolumeError::ImagesFull { folder, free, bytes });
        }
        if let Some((device, _)) = &self.device
            && let Some(said) = self.log.as_ref().and_then(|log| log.error_of(device))
        {
            return Some(VolumeError::DeviceFails(said));
        }
        let (free, bytes) = full(&self.folder()).filter(|_| self.is_mounted)?;
        Some(VolumeError::Full { free, bytes })
    }

    /// The first message of the kernel that a block of the file system itself has failed, such as one of its journal; `None` if only
    /// blocks of files have. Like `trouble`, it must be called while the volume is mounted, and it reads what is logged only once.
    pub fn failure_of_its_own(&self) -> Result<Option<String>, VolumeError> {
        let (Some(log), Some((device, _))) = (&self.log, &self.device) else {
            return Err(VolumeError::NoKernelLog);
        };
        Ok(log.first(device, kernel_log::is_of_file_system))
    }

    /// The loop device detaches itself; waits until it has.
    fn detach(&mut self) -> Result<(), VolumeError> {
        let Some((path, file)) = self.device.take() else { return Ok(()) };
        let detached = move || {
            let _ = system::detach(&file);
        };
        within("detaching a loop device", detached)?;
        let begun = Instant::now();
        while loops().iter().any(|(device, of)| *device == path && of.starts_with(&self.home)) {
            if begun.elapsed() > BUSY {
                return Err(VolumeError::StillAttached(path));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Its image.
    pub fn image(&self) -> PathBuf {
        self.home.join(IMAGE)
    }

    /// The folder that has all its files.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The log of the device that records.
    pub fn log(&self) -> PathBuf {
        self.home.join(LOG)
    }

    /// Mounts its image, whatever it contains now; nanoseconds.
    pub fn present(&mut self) -> Result<u64, VolumeError> {
        self.attach(&self.image())?;
        self.mount()
    }

    /// Prepares the folder where a device that records is mounted.
    pub fn prepare_device(&self) -> Result<(), VolumeError> {
        let folder = self.home.join(DEVICE);
        Ok(fs::create_dir(&folder).map_err(Cannot::on("create", &folder))?)
    }

    /// Mounts its image by way of the device that records; nanoseconds.
    pub fn present_recorded(&mut self) -> Result<u64, VolumeError> {
        self.attach(&self.home.join(DEVICE).join(IMAGE))?;
        self.mount()
    }

    /// Unmounts it and detaches the device.
    pub fn withdraw(&mut self) -> Result<(), VolumeError> {
        self.unmount()?;
        self.detach()
    }

    /// Removes the device that records, whose process has ended, with its log.
    pub fn remove_device(&self) -> Result<(), VolumeError> {
        remove_device(&self.home)
    }

    /// Makes a folder in it.
    pub fn create_folder(&self, name: &str) -> Result<PathBuf, VolumeError> {
        let (folder, created) = (self.folder().join(name), self.folder().join(name));
        within("creating a folder", move || fs::create_dir(created))?
            .map_err(Cannot::on("create", &folder))?;
        Ok(folder)
    }

    fn make_file_system(&self) -> Result<(), VolumeError> {
        let (kind, _) = kernel_name(&self.kind);
        let program = format!("mkfs.{kind}");
        let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"];
        let found = folders.iter().map(|folder| Path::new(folder).join(&program)).find(|path| path.exists());
        let Some(path) = found else {
            return Err(VolumeError::NotInstalled { program, kind: kind.into() });
        };
        let mut command = Command::new(path);
        match kind {
            // Blocks as large as the device's, or small images would get smaller ones.
            "ext4" => command.args(["-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=1"]),
            "xfs" => command.args(["-q", "-f", "-K", "-b", "size=4096"]),
            _ => &mut command,
        };
        command.arg(self.device()?).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let output = within(&program, move || start::output(&mut command))?;
        let output = match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => output,
            Err(error) => return Err(VolumeError::NotStarted { program, error }),
        };
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        Err(VolumeError::ProgramFails { program, said: line.trim().to_string() })
    }

    fn device(&self) -> Result<PathBuf, VolumeError> {
        self.device.as_ref().map(|(path, _)| path.clone()).ok_or(VolumeError::NotAttached)
    }

    /// Where it is mounted.
    pub fn folder(&self) -> PathBuf {
        self.home.join(MOUNT)
    }

    /// Mounts it; nanoseconds, most of which is the replay of the journal.
    fn mount(&mut self) -> Result<u64, VolumeError> {
        let (device, folder, kind) = (self.device()?, self.folder(), self.kind.clone());
        let begun = Instant::now();
        within("mounting", move || {
            let (kind, options) = kernel_name(&kind);
            system::mount(&device, &folder, kind, options)
        })?
        .map_err(|error| VolumeError::Mount { kind: self.kind.clone(), error })?;
        self.is_mounted = true;
        Ok(begun.elapsed().as_nanos() as u64)
    }

    fn unmount(&mut self) -> Result<(), VolumeError> {
        let begun = Instant::now();
        while self.is_mounted {
            let folder = self.folder();
            match within("unmounting", move || system::unmount(&folder))? {
                Ok(()) => self.is_mounted = false,
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && begun.elapsed() < BUSY => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(Cannot::on("unmount", &self.folder())(error).into()),
            }
        }
        Ok(())
    }

    /// Writes everything to the image.
    pub fn sync(&self) -> Result<(), VolumeError> {
        let folder = self.folder();
        let synced = within("writing back", move || system::sync_file_system(&folder))?;
        Ok(synced.map_err(Cannot::on("sync", &self.folder()))?)
    }

    /// Writes some dirty pages of the files in a folder to the image: those pieces that `choose` returns true for, and then the
    /// journal if `journal` says so. The kernel may do the same at any time.
    pub fn write_back(
        &self,
        folder: &Path,
        journal: bool,
        mut choose: impl FnMut() -> bool + Send + 'static,
    ) -> Result<(), VolumeError> {
        let (of, sentinel) = (folder.to_path_buf(), self.folder().join(SENTINEL));
        let write_back = move || -> io::Result<()> {
            for path in files_of(&of) {
                // It may have been removed meanwhile, or be a socket.
                let Ok(file) = File::open(&path) else { continue };
                let length = file.metadata()?.len();
                for piece in 0..length.div_ceil(PIECE).min(MOST_PIECES) {
                    if choose() {
                        system::write_back(&file, piece * PIECE, PIECE)?;
                    }
                }
            }
            if journal {
                let mut file = OpenOptions::new().create(true).append(true).open(&sentinel)?;
                file.write_all(b".")?;
                file.sync_all()?;
            }
            Ok(())
        };
        Ok(within("writing back pages", write_back)?.map_err(Cannot::on("write back pages in", folder))?)
    }

    /// Cuts it off from its device: nothing that is only in memory is written any more, not even the journal.
    pub fn cut(&self) -> Result<(), VolumeError> {
        let folder = self.folder();
        within("the shutdown call", move || system::shut_down(&folder))?
            .map_err(|error| VolumeError::NoShutdown { kind: self.kind.clone(), error })
    }

    /// Mounts it again after a cut, when no process uses it any more; nanoseconds.
    pub fn remount(&mut self) -> Result<u64, VolumeError> {
        self.unmount()?;
        self.mount()
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.unmount().is_ok() {
            // What is still attached then is found at the next start.
            let _ = self.detach();
            remove_home(&self.home);
        }
    }
}

/// Where the program is that makes a file system of a kind, in parentheses.
fn package_of(kind: &str) -> &'static str {
    match kind {
        "ext4" => " (Debian: e2fsprogs)",
        "xfs" => " (Debian: xfsprogs)",
        "btrfs" => " (Debian: btrfs-progs)",
        _ => "",
    }
}

/// All files in a folder and those below it, in an order that does not depend on the file system.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files.extend(files_of(&entry.path())),
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    files
}

/// Removes the files of a folder of ours, and nothing else. The marker is removed last, so that an interrupted removal can be
/// repeated.
fn remove_home(home: &Path) {
    let is_mounted = mounts::all().iter().any(|mount| mount.point == home.join(MOUNT));
    if is_mounted {
        return;
    }
    if remove_device(home).is_err() {
        return;
    }
    let _ = fs::remove_dir(home.join(MOUNT));
    let _ = fs::remove_file(home.join(IMAGE));
    let _ = fs::remove_file(home.join(MARKER));
    let _ = fs::remove_dir(home);
}

/// Unmounts the device that records, which answers whoever still waits for it with an error, and removes its log.
fn remove_device(home: &Path) -> Result<(), VolumeError> {
    let folder = home.join(DEVICE);
    let begun = Instant::now();
    while mounts::all().iter().any(|mount| mount.point == folder) {
        let point = folder.clone();
        let removed = within("unmounting the device", move || system::abort(&point))?;
        if let Err(error) = removed
            && begun.elapsed() > BUSY
        {
            return Err(Cannot::on("unmount", &folder)(error).into());
        }
    }
    let _ = fs::remove_dir(&folder);
    let _ = fs::remove_file(home.join(LOG));
    Ok(())
}

/// The attached loop devices, with the files that they are over.
fn loops() -> Vec<(PathBuf, PathBuf)> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let over = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let file = text.trim_end_matches('\n').trim_end_matches(" (deleted)");
        Some((Path::new("/dev").join(entry.file_name()), PathBuf::from(file)))
    };
    devices.filter_map(over).collect()
}

/// Removes what kvdyno processes have left that were killed: mounts, loop devices and folders that have our names, the marker, and
/// no living owner. Returns the folders that were removed.
pub fn reap(parent: &Path) -> Vec<PathBuf> {
    // As in the tables of mounts and loop devices.
    let Ok(parent) = parent.canonicalize() else { return Vec::new() };
    let is_ours = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX))
            && path.symlink_metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == system::user())
    };
    let mut homes: Vec<PathBuf> =
        fs::read_dir(&parent).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let of_loop = |(_, image): (PathBuf, PathBuf)| {
        let folder = image.parent().filter(|_| image.file_name().is_some_and(|name| name == IMAGE))?;
        let is_device = folder.file_name().is_some_and(|name| name == DEVICE);
        (if is_device { folder.parent() } else { Some(folder) }).map(Path::to_path_buf)
    };
    homes.extend(loops().into_iter().filter_map(of_loop));
    homes.retain(|home| is_ours(home));
    homes.sort();
    homes.dedup();
    homes.into_iter().filter(|home| reap_one(home)).collect()
}

/// Removes one folder if its owner is gone.
fn reap_one(home: &Path) -> bool {
    // A pipe would block the open, and a link could lead anywhere.
    let is_file = home.join(MARKER).symlink_metadata().is_ok_and(|facts| facts.is_file());
    let Some(marker) = is_file.then(|| File::open(home.join(MARKER)).ok()).flatten() else { return false };
    if let Err(TryLockError::WouldBlock) = marker.try_lock() {
        return false;
    }
    let images = [home.join(IMAGE), home.join(DEVICE).join(IMAGE)];
    let own: Vec<PathBuf> =
        loops().into_iter().filter(|(_, of)| images.contains(of)).map(|(device, _)| device).collect();
    let is_own = |mount: &&mounts::Mount| {
        mount.point == home.join(MOUNT) && own.contains(&PathBuf::from(&mount.source))
    };
    for mount in mounts::all().iter().filter(is_own) {
        let point = mount.point.clone();
        // If it is busy, the folder stays and is tried again at the next start.
        let _ = within("unmounting", move || system::unmount(&point));
    }
    for device in own {
        let _ = within("detaching", move || File::open(device).and_then(|file| system::detach(&file)));
    }
    remove_home(home);
    !home.exists()
}

/// Runs a step that the kernel may block without end, in a thread that is then abandoned.
fn within<T: Send + 'static>(
    what: &str,
    step: impl FnOnce() -> T + Send + 'static,
) -> Result<T, VolumeError> {
    let (send, receive) = channel();
    let started = start::thread(move || {
        // If nobody waits any more, the result does not matter.
        let _ = send.send(step());
    });
    started.map_err(VolumeError::Thread)?;
    receive.recv_timeout(STEP).map_err(|error| match error {
        RecvTimeoutError::Timeout => VolumeError::Blocked(what.into()),
        RecvTimeoutError::Disconnected => VolumeError::Panicked(what.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_file_systems_are_plain_words() {
        assert!(is_file_system_name("ext4") && is_file_system_name(WRITEBACK) && is_file_system_name("xfs"));
        for name in ["", "../ext4", "ext4 -F", "EXT4", "averyveryverylongname"] {
            assert!(!is_file_system_name(name), "{name}");
        }
    }

    #[test]
    fn a_folder_without_the_marker_or_with_an_owner_is_not_reaped() {
        let parent = tempfile::tempdir().unwrap();
        let foreign = parent.path().join(format!("{PREFIX}1-0"));
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join(IMAGE), "mine").unwrap();
        let other = parent.path().join("image-of-mine");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(MARKER), "").unwrap();
        let owned = Volume::in_new_folder(parent.path(), "ext4").unwrap();
        assert_eq!(reap(parent.path()), Vec::<PathBuf>::new());
        assert!(foreign.join(IMAGE).exists() && other.join(MARKER).exists() && owned.home.exists());
        let home = owned.home.clone();
        drop(owned);
        assert!(!home.exists());
    }

    #[test]
    fn a_folder_whose_owner_is_gone_is_reaped_but_not_what_is_foreign_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let home = parent.path().join(format!("{PREFIX}1-0"));
        for has_foreign in [false, true] {
            fs::create_dir_all(home.join(MOUNT)).unwrap();
            fs::write(home.join(MARKER), "").unwrap();
            fs::write(home.join(IMAGE), "").unwrap();
            if has_foreign {
                fs::write(home.join("precious"), "mine").unwrap();
            }
            let reaped = reap(parent.path());
            assert_eq!(reaped.len(), usize::from(!has_foreign), "{reaped:?}");
            assert_eq!(home.join("precious").exists(), has_foreign);
            assert!(!home.join(IMAGE).exists());
        }
    }

    #[test]
    fn a_marker_that_is_a_pipe_or_a_link_is_none() {
        let parent = tempfile::tempdir().unwrap();
        let piped = parent.path().join(format!("{PREFIX}1-0"));
        let linked = parent.path().join(format!("{PREFIX}1-1"));
        for home in [&piped, &linked] {
            fs::create_dir(home).unwrap();
            fs::write(home.join(IMAGE), "mine").unwrap();
        }
        let made = Command::new("mkfifo").arg(piped.join(MARKER)).status();
        assert!(made.unwrap().success());
        std::os::unix::fs::symlink(linked.join(IMAGE), linked.join(MARKER)).unwrap();
        assert_eq!(reap(parent.path()), Vec::<PathBuf>::new());
        assert!(piped.join(IMAGE).exists() && linked.join(IMAGE).exists());
    }

    #[test]
    fn an_image_that_is_too_small_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let error = Volume::create(parent.path(), "xfs", 256 << 20).unwrap_err();
        assert_eq!(error.to_string(), "xfs needs an image of at least 300 MiB, and --image-size is 256 MiB");
        assert!(Volume::create(parent.path(), "ext4", 1 << 20).is_err());
        assert!(Volume::create(parent.path(), "../etc", 1 << 30).is_err());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn ext4_writeback_is_mounted_with_that_option_before_and_after_a_cut() {
        let parent = tempfile::tempdir().unwrap();
        let volume = match Volume::create(parent.path(), WRITEBACK, 2 * LEAST) {
            Ok(volume) => volume,
            Err(error) => return println!("SKIPPED: {error}"),
        };
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let folder = volume.folder().canonicalize().unwrap();
        let line = mounts.lines().find(|line| line.contains(folder.to_str().unwrap())).unwrap();
        assert!(line.contains(" ext4 ") && line.contains("data=writeback"), "{line}");
    }

    #[test]
    fn a_file_system_that_this_kernel_does_not_have_is_a_reason() {
        let parent = tempfile::tempdir().unwrap();
        let error = Volume::create(parent.path(), "nosuchfs", 400 << 20).unwrap_err();
        assert!(matches!(error, VolumeError::NotInKernel(_) | VolumeError::NotRoot), "{error}");
    }
}
