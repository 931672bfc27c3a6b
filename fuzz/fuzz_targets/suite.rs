//! Any text either is a suite whose workloads can be listed, or an error with a text; never a panic.
#![no_main]

use kvdyno::{Changes, builtin, is_suite, parse_suite};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let is_meant = is_suite(text);
    match parse_suite(text, "fuzz.toml").and_then(|suite| {
        let members = suite.members(&builtin, &Changes::default())?;
        Ok((suite, members))
    }) {
        Ok((suite, members)) => {
            assert!(is_meant && !members.is_empty());
            assert!(members.iter().all(|member| member.workload.check().is_ok()));
            assert!(suite.explain(&members).contains(&suite.name));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
