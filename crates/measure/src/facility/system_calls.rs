//! The probes that need system calls missing in std. Each opens something and closes it at once.

#![allow(unsafe_code, reason = "system calls")]

use std::io;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::*;
#[cfg(target_os = "linux")]
pub(super) use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::io;
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;

    /// From linux/loop.h.
    const LOOP_CTL_GET_FREE: u32 = 0x4C82;

    /// The number of an unused loop device.
    pub(in super::super) fn free_loop_device(control: &str) -> io::Result<u32> {
        let control = OpenOptions::new().read(true).write(true).open(control)?;
        // SAFETY: the descriptor is open, and this request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
        u32::try_from(number).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::io;

    fn no_linux<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only on Linux"))
    }

    pub(in super::super) fn free_loop_device(_control: &str) -> io::Result<u32> {
        no_linux()
    }
}
