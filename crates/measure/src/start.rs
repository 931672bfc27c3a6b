//! Starts threads and processes. Where the system refuses one, the error names the limit, in one line.

#![allow(unsafe_code, reason = "a system call")]

use super::cgroup::Limit;
use super::machine::OwnLimit;
use super::shortage::explained;
use crate::text::bytes_text;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread.
pub fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    thread_named("kvdyno", work)
}

/// Starts a thread with a name.
pub fn thread_named<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(work).map_err(not_a_thread)
}

/// Starts a thread of a scope.
pub fn thread_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(not_a_thread)
}

/// Starts a thread of a scope. If the system refuses, this process ends, with the reason on stderr: the threads that were started
/// before would wait for all threads without end. Only for a process that another one of ours has started.
pub fn thread_in_or_exit<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    thread_in(scope, work).unwrap_or_else(|error| {
        eprintln!("{error}");
        // SAFETY: ends the process without exit handlers, which may not run while other threads use an engine.
        unsafe { libc::_exit(1) }
    })
}

/// The stack that this program needs, and the usual one, bytes.
const LEAST_STACK: u64 = 1 << 20;
const USUAL_STACK: u64 = 8 << 20;

/// The stack of this process may have only so many bytes, which are too few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit on the stack is {}, and kvdyno needs {}; raise it (ulimit -s)",
    bytes_text(*.0),
    bytes_text(LEAST_STACK)
)]
pub struct LowStack(pub u64);

/// Makes sure that the stack of this process, and of each thread of an engine, may have the usual size: with a lower limit the
/// program starts itself again under one that is raised, because the C library reads it only at the start. An `Err` says that the
/// hard limit is too low.
pub fn require_stack() -> Result<(), LowStack> {
    let Some((Limit::At(soft), hard)) = OwnLimit::Stack.read() else { return Ok(()) };
    if soft >= LEAST_STACK {
        return Ok(());
    }
    let most = if let Limit::At(hard) = hard { hard.min(USUAL_STACK) } else { USUAL_STACK };
    if most < LEAST_STACK || !OwnLimit::Stack.set_soft(most, hard) {
        return Err(LowStack(soft));
    }
    if let Ok(program) = std::env::current_exe() {
        // Returns only with an error: then this process continues, with the raised limit.
        let _ = Command::new(program).args(std::env::args_os().skip(1)).exec();
    }
    Ok(())
}

/// Starts a process.
pub fn process(command: &mut Command) -> io::Result<Child> {
    command.spawn().map_err(explained)
}

/// Runs a process to its end, with what it prints: stdout and stderr, unless they are set.
pub fn output(command: &mut Command) -> io::Result<Output> {
    command.output().map_err(explained)
}

/// Runs a process to its end.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    command.status().map_err(explained)
}

fn not_a_thread(error: io::Error) -> io::Error {
    let error = explained(error);
    io::Error::new(error.kind(), format!("cannot start a thread: {error}"))
}
