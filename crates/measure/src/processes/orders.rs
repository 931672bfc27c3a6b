//! The orders that the process of a task gets while it runs: lines on its stdin. What it starts, and its engine, must not read
//! them, so its stdin is empty from then on.

#![allow(unsafe_code, reason = "system calls")]

use crate::checked;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};

/// Gives an order. An error says that nobody is there to take it.
pub fn order(to: &mut impl Write, order: &impl Serialize) -> io::Result<()> {
    to.write_all(format!("{}\n", serde_json::to_string(order)?).as_bytes())
}

/// The orders, until the process that gives them closes its end or ends. Can be called once.
pub fn orders<O: DeserializeOwned>() -> io::Result<impl Iterator<Item = io::Result<O>>> {
    let orders = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let nothing = File::open("/dev/null")?;
    // SAFETY: a plain system call on descriptors that are open.
    checked(unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) })?;
    let lines = BufReader::new(orders).lines();
    Ok(lines.map(|line| Ok(serde_json::from_str(&line?)?)))
}
