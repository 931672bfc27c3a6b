//! The options and the credentials: passwords come from a file, from the URL, or from the command line.

use super::address::{self, Address};
use super::members;
use kvdyno_driver::abi::kv_option;
use kvdyno_driver::{Error, option};
use std::time::Duration;

/// The password of a URL, which the command line has removed from it, because the record would show it.
const PASSWORD: &str = "KVDYNO_URL_PASSWORD";

pub(super) const OPTIONS: [kv_option; 9] = [
    option(
        c"url",
        c"text",
        c"",
        c"a running server: redis://HOST:PORT/DATABASE, rediss://, unix://; without it one is started",
    ),
    option(
        c"server",
        c"text",
        c"redis-server",
        c"the program to start; it must accept the configuration of redis-server",
    ),
    option(c"serve", c"text", c"", c"an engine; starts `kvdyno serve ENGINE`"),
    option(c"password-file", c"text", c"", c"a file whose first line is the password"),
    option(
        c"database",
        c"choice:empty|flush|keep",
        c"empty",
        c"the database must be empty, is emptied, or is used unchanged",
    ),
    option(
        c"multi-get",
        c"choice:mget|pipeline",
        c"mget",
        c"joined gets are one command, or a pipeline with one command each",
    ),
    option(c"ca-file", c"text", c"", c"trusted certificates for rediss (PEM); default: the system's"),
    option(c"cert-file", c"text", c"", c"the client's certificate (PEM), for servers that require one"),
    option(c"key-file", c"text", c"", c"the key of the client's certificate (PEM)"),
];

/// The first line of a file; without a file name there is no password.
pub(super) fn password_in(file: &str) -> Result<Option<String>, Error> {
    if file.is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Error::new(format!("option password-file: {file}: {error}")))?;
    Ok(text.lines().next().map(String::from))
}

/// A server of the user; the password comes from a file, from its URL, or from the command line that removed it.
pub(super) fn user_address(url: &str, password: Option<String>) -> Result<Address, Error> {
    let mut address = Address::parse(url)?;
    let known = std::env::var(PASSWORD).ok().and_then(|text| address::decoded(&text).ok().flatten());
    address.password = password.or(address.password).or(known);
    Ok(address)
}

/// The options of a cluster.
pub(super) const CLUSTER_OPTIONS: [kv_option; 12] = [
    option(
        c"url",
        c"text",
        c"",
        c"a node of a running cluster: redis://HOST:PORT, rediss://; without it a cluster is started",
    ),
    option(
        c"server",
        c"text",
        c"redis-server",
        c"the program to start; it must accept the configuration of redis-server",
    ),
    option(c"masters", c"count", c"3", c"masters of the cluster that is started, 1 to 16"),
    option(c"replicas", c"count", c"1", c"replicas of each master, 0 to 4"),
    option(
        c"node-timeout",
        c"count",
        c"15000",
        c"milliseconds after which the cluster that is started takes a node for failed",
    ),
    option(
        c"reads",
        c"choice:masters|replicas",
        c"masters",
        c"who is asked for a get; replicas may return older values",
    ),
    option(
        c"timeout",
        c"text",
        c"auto",
        c"seconds after which an op without an answer fails; auto: 30, and 0.25 in a phase with faults; in the other phases of such a \
          workload at least 30",
    ),
    OPTIONS[3],
    OPTIONS[4],
    OPTIONS[6],
    OPTIONS[7],
    OPTIONS[8],
];

/// How long an op waits for an answer, and for a master that accepts it. In a workload with faults this is the least in phases
/// in which no member fails: an op that fails there ends the trial.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// The same in a phase with faults, in which members are away on purpose.
const DISTURBED_LIMIT: Duration = Duration::from_millis(250);

/// The value of the option `timeout`.
pub(super) fn timeout(text: &str) -> Result<Duration, Error> {
    if text == "auto" {
        return Ok(if members::are_disturbed() { DISTURBED_LIMIT } else { LIMIT });
    }
    let seconds = text.parse().ok().filter(|seconds| (0.001..=1e6).contains(seconds));
    let wrong = || {
        Error::new(format!("option timeout: expected auto, or seconds from 0.001 to 1000000, got `{text}`"))
    };
    seconds.map(Duration::from_secs_f64).ok_or_else(wrong)
}
