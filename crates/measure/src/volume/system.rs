//! The system calls of volumes: loop devices, mounts, and the call that shuts a file system down.

#![allow(unsafe_code, reason = "system calls")]

#[cfg(not(target_os = "linux"))]
pub use elsewhere::*;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use crate::checked;
    use std::ffi::CString;
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    // From linux/loop.h.
    const LOOP_CTL_GET_FREE: u32 = 0x4C82;
    const LOOP_CONFIGURE: u32 = 0x4C0A;
    const LOOP_CLR_FD: u32 = 0x4C01;
    const LO_FLAGS_AUTOCLEAR: u32 = 4;
    /// `EXT4_IOC_SHUTDOWN` and `XFS_IOC_GOINGDOWN`: `_IOR('X', 125, __u32)`.
    const SHUTDOWN: u32 = 0x8004_587D;
    /// Do not write the journal before.
    const WITHOUT_LOG_FLUSH: u32 = 2;
    /// Bytes of a block of the loop device.
    const BLOCK: u32 = 4096;
    /// Another process may take the free loop device first.
    const ATTEMPTS: u32 = 50;

    /// `struct loop_info64`.
    #[repr(C)]
    struct LoopInfo {
        numbers: [u64; 5],
        number: u32,
        encryption: [u32; 2],
        flags: u32,
        file_name: [u8; 64],
        cipher_name: [u8; 64],
        key: [u8; 32],
        init: [u64; 2],
    }

    /// `struct loop_config`.
    #[repr(C)]
    struct LoopConfig {
        file: u32,
        block_size: u32,
        info: LoopInfo,
        reserved: [u64; 8],
    }

    fn text(path: &Path) -> io::Result<CString> {
        CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
    }

    /// The user whose rights this process has.
    pub(crate) fn user() -> u32 {
        // SAFETY: a plain system call without pointers.
        unsafe { libc::geteuid() }
    }

    /// Whether this process may do everything.
    pub(crate) fn is_root() -> bool {
        user() == 0
    }

    /// From now on this thread, and those that it starts, mount where no other process sees it; the mounts end with them.
    pub fn own_namespace() -> io::Result<()> {
        // SAFETY: plain system calls; the pointers refer to constants or are null, which is allowed for these flags.
        unsafe {
            checked(libc::unshare(libc::CLONE_NEWNS))?;
            let flags = libc::MS_REC | libc::MS_SLAVE;
            checked(libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null()))?;
        }
        Ok(())
    }

    /// Attaches a file to a free loop device, which detaches itself with its last user.
    pub(crate) fn attach(image: &File) -> io::Result<(PathBuf, File)> {
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        let mut failure = io::Error::from(io::ErrorKind::ResourceBusy);
        for _ in 0..ATTEMPTS {
            // SAFETY: the descriptor is open, and this request takes no argument.
            let number = checked(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) })?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = OpenOptions::new().read(true).write(true).open(&path)?;
            // SAFETY: all zeroes is a valid configuration.
            let mut config: LoopConfig = unsafe { std::mem::zeroed() };
            config.file = image.as_raw_fd() as u32;
            config.block_size = BLOCK;
            config.info.flags = LO_FLAGS_AUTOCLEAR;
            // SAFETY: the descriptors are open and the configuration is live; the kernel only reads it.
            match checked(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })
            {
                Ok(_) => return Ok((path, device)),
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Detaches a loop device, now or with its last user.
    pub(crate) fn detach(device: &File) -> io::Result<()> {
        // SAFETY: the descriptor is open, and this request takes no argument.
        checked(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as _) }).map(drop)
    }

    pub(crate) fn mount(device: &Path, folder: &Path, kind: &str, options: &str) -> io::Result<()> {
        let (device, folder) = (text(device)?, text(folder)?);
        let word = |text| CString::new(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let (kind, options) = (word(kind)?, word(options)?);
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        // SAFETY: all texts end in 0 and are live; the data of these file systems is text.
        checked(unsafe {
            libc::mount(device.as_ptr(), folder.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
        })
        .map(drop)
    }

    pub(crate) fn unmount(folder: &Path) -> io::Result<()> {
        let folder = text(folder)?;
        // SAFETY: the text ends in 0 and is live.
        checked(unsafe { libc::umount2(folder.as_ptr(), libc::UMOUNT_NOFOLLOW) }).map(drop)
    }

    /// Unmounts a file system in user space. What waits for its process is answered with an error, also if it cannot be unmounted
    /// because it is in use.
    pub(crate) fn abort(folder: &Path) -> io::Result<()> {
        let folder = text(folder)?;
        let flags = libc::MNT_FORCE | libc::UMOUNT_NOFOLLOW;
        // SAFETY: the text ends in 0 and is live.
        checked(unsafe { libc::umount2(folder.as_ptr(), flags) }).map(drop)
    }

    /// From now on this thread has its own descriptors: those that it opens are closed when it ends.
    pub(crate) fn own_descriptors() -> io::Result<()> {
        // SAFETY: a plain system call without pointers.
        checked(unsafe { libc::unshare(libc::CLONE_FILES) }).map(drop)
    }

    /// Writes all of a file system to its device.
    pub(crate) fn sync_file_system(folder: &Path) -> io::Result<()> {
        let folder = File::open(folder)?;
        // SAFETY: the descriptor is open.
        checked(unsafe { libc::syncfs(folder.as_raw_fd()) }).map(drop)
    }

    /// Writes the dirty pages of part of a file to the device, without metadata.
    pub(crate) fn write_back(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let range = (offset as libc::off64_t, bytes as libc::off64_t);
        // SAFETY: the descriptor is open.
        checked(unsafe { libc::sync_file_range(file.as_raw_fd(), range.0, range.1, flags) }).map(drop)
    }

    /// Cuts a file system off from its device.
    pub(crate) fn shut_down(folder: &Path) -> io::Result<()> {
        let folder = File::open(folder)?;
        let how = WITHOUT_LOG_FLUSH;
        // SAFETY: the descriptor is open; the request reads a number that is live.
        let outcome = unsafe { libc::ioctl(folder.as_raw_fd(), SHUTDOWN as _, &raw const how) };
        checked(outcome).map(drop)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::fs::File;
    use std::io;
    use std::path::{Path, PathBuf};

    fn no_linux<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only on Linux"))
    }

    /// Nobody may do this here.
    pub(crate) fn is_root() -> bool {
        false
    }

    /// Not available here.
    pub fn own_namespace() -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn attach(_image: &File) -> io::Result<(PathBuf, File)> {
        no_linux()
    }

    pub(crate) fn detach(_device: &File) -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn mount(_device: &Path, _folder: &Path, _kind: &str, _options: &str) -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn unmount(_folder: &Path) -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn abort(_folder: &Path) -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn own_descriptors() -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn sync_file_system(_folder: &Path) -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn write_back(_file: &File, _offset: u64, _bytes: u64) -> io::Result<()> {
        no_linux()
    }

    pub(crate) fn shut_down(_folder: &Path) -> io::Result<()> {
        no_linux()
    }
}
