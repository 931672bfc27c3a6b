//! The command as people use it: exit codes, messages, runs that are stopped, crash or fail, and what is left behind.

#![allow(clippy::unwrap_used, reason = "clippy takes only functions with #[test] for tests")]

#[path = "cli/ab.rs"]
mod ab;
#[path = "cli/arguments.rs"]
mod arguments;
#[path = "cli/bisect.rs"]
mod bisect;
#[path = "cli/campaign.rs"]
mod campaign;
#[path = "cli/cluster_members.rs"]
mod cluster_members;
#[path = "cli/clusters.rs"]
mod clusters;
#[path = "cli/command.rs"]
mod command;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/costs.rs"]
mod costs;
#[path = "cli/disks.rs"]
mod disks;
#[path = "cli/escapes.rs"]
mod escapes;
#[path = "cli/faults.rs"]
mod faults;
#[path = "cli/foreign.rs"]
mod foreign;
#[path = "cli/frozen.rs"]
mod frozen;
#[path = "cli/guard.rs"]
mod guard;
#[path = "cli/history.rs"]
mod history;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/install.rs"]
mod install;
#[path = "cli/keeps.rs"]
mod keeps;
#[path = "cli/kept.rs"]
mod kept;
#[path = "cli/kills.rs"]
mod kills;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/liars.rs"]
mod liars;
#[path = "cli/limits.rs"]
mod limits;
#[path = "cli/links.rs"]
mod links;
#[path = "cli/live.rs"]
mod live;
#[path = "cli/loading.rs"]
mod loading;
#[path = "cli/members.rs"]
mod members;
#[path = "cli/messages.rs"]
mod messages;
#[path = "cli/new_engine.rs"]
mod new_engine;
#[path = "cli/pages.rs"]
mod pages;
#[path = "cli/plots.rs"]
mod plots;
#[path = "cli/races.rs"]
mod races;
#[path = "cli/rates.rs"]
mod rates;
#[path = "cli/readme.rs"]
mod readme;
#[path = "cli/reopen.rs"]
mod reopen;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/servers.rs"]
mod servers;
#[path = "cli/shortages.rs"]
mod shortages;
#[path = "cli/sites.rs"]
mod sites;
#[path = "cli/slow.rs"]
mod slow;
#[path = "cli/stale.rs"]
mod stale;
#[path = "cli/stalls.rs"]
mod stalls;
#[path = "cli/suites.rs"]
mod suites;
#[path = "cli/tikv.rs"]
mod tikv;
#[path = "cli/transactions.rs"]
mod transactions;
#[path = "cli/values.rs"]
mod values;
