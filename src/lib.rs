//! kvdyno: a dynamometer for key-value engines. The rooms, in the order of the map in ARCHITECTURE.md.

// In place of std's, which panic where stdout or stderr takes no more (a full disk, a reader that is gone).
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
pub mod workload;
