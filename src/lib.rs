//! kvdyno, a benchmark for key-value engines. Each module is a room of the code map in ARCHITECTURE.md.

// These replace std's macros, which panic if stdout or stderr cannot be written (full disk, closed pipe).
macro_rules! print {
    ($($text:tt)*) => { $crate::measure::output::print(format_args!($($text)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}
macro_rules! eprint {
    ($($text:tt)*) => { $crate::measure::output::talk(format_args!($($text)*)) };
}
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($text:tt)*) => { eprint!("{}\n", format_args!($($text)*)) };
}

pub mod audit;
pub mod cli;
pub mod engine;
pub mod generator;
pub mod live;
pub mod measure;
pub mod report;
pub mod resp;
pub mod results;
pub mod runner;
pub mod text;
pub mod workload;
