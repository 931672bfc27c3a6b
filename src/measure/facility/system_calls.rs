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
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    const PERF_TYPE_HARDWARE: u32 = 0;
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_TYPE_TRACEPOINT: u32 = 2;
    const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
    const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
    /// Bits of `flags`: begin disabled, exclude the kernel, exclude the hypervisor.
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    /// From linux/loop.h.
    const LOOP_CTL_GET_FREE: u32 = 0x4C82;
    /// From linux/seccomp.h.
    const SECCOMP_GET_ACTION_AVAIL: libc::c_long = 2;
    const SECCOMP_RET_USER_NOTIF: u32 = 0x7fc0_0000;

    /// The first published size of `struct perf_event_attr`, which every kernel accepts.
    #[repr(C)]
    struct EventAttributes {
        kind: u32,
        size: u32,
        config: u64,
        sample_period: u64,
        sample_type: u64,
        read_format: u64,
        flags: u64,
        wakeup_events: u32,
        breakpoint_kind: u32,
        config1: u64,
    }

    /// A counter of this thread's CPU time.
    pub(in super::super) fn open_software_counter() -> io::Result<()> {
        open_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, EXCLUDE_KERNEL)
    }

    /// A counter of this thread's cycles.
    pub(in super::super) fn open_cycle_counter() -> io::Result<()> {
        open_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR)
    }

    /// A counter of a tracepoint, by its id in tracefs.
    pub(in super::super) fn open_tracepoint(number: u64) -> io::Result<()> {
        open_event(PERF_TYPE_TRACEPOINT, number, 0)
    }

    fn open_event(kind: u32, config: u64, flags: u64) -> io::Result<()> {
        let attributes = EventAttributes {
            kind,
            size: size_of::<EventAttributes>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: flags | DISABLED,
            wakeup_events: 0,
            breakpoint_kind: 0,
            config1: 0,
        };
        let (this_thread, any_cpu, no_group, no_flags): (i32, i32, i32, libc::c_ulong) = (0, -1, -1, 0);
        // SAFETY: the attributes are live and contain their own size; the kernel only reads them.
        let file = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                this_thread,
                any_cpu,
                no_group,
                no_flags,
            )
        };
        let file = i32::try_from(file).ok().filter(|&file| file >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the descriptor was just opened and has no other owner; dropping it closes it.
        drop(unsafe { OwnedFd::from_raw_fd(file) });
        Ok(())
    }

    /// Whether filters may delegate system calls to another process.
    pub(in super::super) fn has_user_notification() -> io::Result<()> {
        let action = SECCOMP_RET_USER_NOTIF;
        let no_flags: libc::c_ulong = 0;
        // SAFETY: this operation only reads the action that the pointer refers to; it installs nothing.
        let outcome = unsafe {
            libc::syscall(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, no_flags, &raw const action)
        };
        if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

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

    pub(in super::super) fn open_software_counter() -> io::Result<()> {
        no_linux()
    }

    pub(in super::super) fn open_cycle_counter() -> io::Result<()> {
        no_linux()
    }

    pub(in super::super) fn open_tracepoint(_number: u64) -> io::Result<()> {
        no_linux()
    }

    pub(in super::super) fn has_user_notification() -> io::Result<()> {
        no_linux()
    }

    pub(in super::super) fn free_loop_device(_control: &str) -> io::Result<u32> {
        no_linux()
    }
}
