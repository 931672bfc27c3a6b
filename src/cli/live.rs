//! How a run is shown while it runs: the flags of `kvdyno run` for that.

use super::error::CliError;
use crate::live::{HAS_DASHBOARD, Live, Server, Show, address};
use crate::results::{Record, Run};
use std::net::SocketAddr;

/// Flags for following a run.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LiveArgs {
    /// No progress on stderr.
    #[arg(short, long)]
    quiet: bool,
    /// Progress as JSON on stderr, one object a line (docs/live.md).
    #[arg(long, conflicts_with = "quiet")]
    json_progress: bool,
    /// A dashboard on the terminal.
    #[arg(long, conflicts_with_all = ["quiet", "json_progress"])]
    tui: bool,
    /// Serve figures to Prometheus at http://ADDR/metrics: a port of this machine alone, or an address with a port.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Let other machines read the figures.
    #[arg(long, requires = "metrics")]
    metrics_public: bool,
}

impl LiveArgs {
    /// Refuses what cannot be, before anything is made.
    pub fn check(&self) -> Result<(), CliError> {
        if self.tui && !HAS_DASHBOARD {
            return Err(CliError::usage("this build has no dashboard")
                .hint("build it with the feature `tui`, or leave --tui out"));
        }
        if self.tui && !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Err(CliError::usage("--tui draws on stderr, and that is no terminal").hint(
                "leave it out for a line a second, or follow the run with --json-progress or --metrics",
            ));
        }
        self.address().map(|_| ())
    }

    fn address(&self) -> Result<Option<SocketAddr>, CliError> {
        let Some(text) = &self.metrics else { return Ok(None) };
        let Some(found) = address(text) else {
            return Err(CliError::usage(format!("--metrics {text}: no address"))
                .hint("a port (`9187`), or an address with a port (`127.0.0.1:9187`, `[::1]:9187`)"));
        };
        if !found.ip().is_loopback() && !self.metrics_public {
            return Err(CliError::usage(format!("{} can be reached from other machines", found.ip())).hint(
                "if that is meant, give --metrics-public; anybody who reaches it can read the figures",
            ));
        }
        Ok(Some(found))
    }

    /// Whether no plain line may stand on stderr.
    pub fn is_silent(&self) -> bool {
        self.quiet || self.json_progress
    }

    /// Whether only events may stand on stderr.
    pub fn is_json(&self) -> bool {
        self.json_progress
    }

    /// Begins to follow a run, of which there are records from before.
    pub fn begin(&self, run: &Run, earlier: &[Record]) -> Result<(Live, Option<Server>), CliError> {
        let show = match self {
            LiveArgs { quiet: true, .. } => Show::Nothing,
            LiveArgs { json_progress: true, .. } => Show::Json,
            LiveArgs { tui: true, .. } => Show::Dashboard,
            _ => Show::Progress,
        };
        let mut live = Live::new(show, run, earlier);
        let Some(address) = self.address()? else { return Ok((live, None)) };
        let server = live.serve(address).map_err(|error| {
            CliError::failed(format!("cannot listen on {address}: {error}"))
                .hint("another port: --metrics PORT; 0 takes a free one and prints it")
        })?;
        live.tell(&format!("figures for Prometheus: http://{}/metrics", server.address()));
        Ok((live, Some(server)))
    }

    /// Shows the dashboard, if it is asked for, when all that is to be read before has been printed.
    pub fn take_terminal(&self, live: &mut Live) -> Result<(), CliError> {
        if self.tui { live.take_terminal().map_err(CliError::failed) } else { Ok(()) }
    }
}
