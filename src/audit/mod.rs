//! What kvdyno proves instead of believing: drivers against the rules of driver.h, itself, and the machine.

pub mod doctor;
pub mod proven;
pub mod selftest;
pub mod verify;
