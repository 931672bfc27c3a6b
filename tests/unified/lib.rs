//! No code: this crate enables the features that the tests' dependencies enable, so that `make test` does not compile the
//! crates of the release build a second time. tests/layers.rs checks that none is missing.
