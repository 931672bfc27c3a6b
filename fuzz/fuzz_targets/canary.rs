//! A planted defect that the fuzzer must find within seconds, which shows that it works.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert!(!bytes.starts_with(b"kv"), "the canary was found");
});
