//! The command as people use it: exit codes, messages, runs that are stopped, crash or fail, and what is left behind.

#[path = "cli/command.rs"]
mod command;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/faults.rs"]
mod faults;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/kept.rs"]
mod kept;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/limits.rs"]
mod limits;
#[path = "cli/live.rs"]
mod live;
#[path = "cli/loading.rs"]
mod loading;
#[path = "cli/messages.rs"]
mod messages;
#[path = "cli/new_engine.rs"]
mod new_engine;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/plots.rs"]
mod plots;
#[path = "cli/readme.rs"]
mod readme;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/servers.rs"]
mod servers;
#[path = "cli/sites.rs"]
mod sites;
#[path = "cli/suites.rs"]
mod suites;
#[path = "cli/transactions.rs"]
mod transactions;
