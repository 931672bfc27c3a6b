//! Checks of drivers against the rules of driver.h, of what engines keep after a crash, of the harness itself, and of the machine.

#![warn(unreachable_pub)]

mod child;
pub mod crash;
pub mod doctor;
mod engine_process;
pub mod faults;
mod machine;
pub mod proven;
pub mod selftest;
pub mod syncs;
pub mod verify;

pub use engine_process::DriveError;
pub use machine::MachineError;
