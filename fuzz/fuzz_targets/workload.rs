//! Any text either is a workload that prints and parses back to itself, or an error with a text; never a panic.
#![no_main]

use kvdyno::parse;

libfuzzer_sys::fuzz_target!(|text: &str| {
    match parse(text, "fuzz.toml") {
        Ok(workload) => {
            let again = parse(&workload.to_toml(), "again.toml").expect("what was printed parses");
            assert_eq!(again, workload);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
