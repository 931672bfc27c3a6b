//! Checks of drivers against the rules of driver.h, of what engines keep after a crash, of the harness itself, and of the machine.

mod child;
pub mod crash;
pub mod doctor;
pub mod faults;
pub mod proven;
pub mod selftest;
pub mod syncs;
pub mod verify;
