//! Any bytes either load as a record (or a run) and are written back equal, or are an error with a text; never a panic.
#![no_main]

use kvdyno::{parse_record, parse_run, sane_record};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = parse_record(bytes) {
        let json = serde_json::to_vec(&record).expect("a record that was read can be written");
        assert_eq!(parse_record(&json).expect("what was written loads"), record);
        let _ = sane_record(&record);
    }
    let _ = parse_run(bytes);
});
