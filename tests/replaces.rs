//! docs/replaces/README.md and the pages next to it: each command that they show runs, each test that they name is there, and
//! the faults of the older tools that no other test holds are held here.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "replaces/commands.rs"]
mod commands;
#[path = "replaces/experiments.rs"]
mod experiments;
#[path = "replaces/flaws.rs"]
mod flaws;
#[path = "replaces/page.rs"]
mod page;
#[path = "replaces/pages.rs"]
mod pages;
#[path = "replaces/samples.rs"]
mod samples;
#[path = "replaces/trial.rs"]
mod trial;

#[allow(dead_code, reason = "shared with tests that look at more of it")]
#[path = "resp/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with tests that look at more of it")]
#[path = "cli/command.rs"]
mod command;
#[allow(dead_code, reason = "shared with tests that look at more of it")]
#[path = "layers/source.rs"]
mod source;
