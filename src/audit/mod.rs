//! Checks of drivers against the rules of driver.h, of the harness itself, and of the machine.

pub mod doctor;
pub mod proven;
pub mod selftest;
pub mod verify;
