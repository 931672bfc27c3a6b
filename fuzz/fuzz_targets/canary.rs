//! Must fail within seconds: it shows that the fuzzer finds what is there.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert!(!bytes.starts_with(b"kv"), "the canary was found");
});
