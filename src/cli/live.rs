//! Flags of `kvdyno run` that control how the progress of a run is shown.

use super::error::CliError;
use crate::live::{HAS_DASHBOARD, Live, Server, Show, address};
use kvdyno_core::results::{Record, Run};
use std::net::SocketAddr;

/// The form of progress for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A bar on a terminal, a line per trial elsewhere.
    Auto,
    /// A line per second.
    Plain,
}

/// Flags for the progress of a run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Progress")]
pub(super) struct LiveArgs {
    /// Do not print progress to stderr.
    #[arg(short, long)]
    quiet: bool,
    /// Form of progress on stderr: `auto` shows a bar on a terminal and a line per trial elsewhere; `plain` prints a line
    /// per second.
    #[arg(long, value_name = "FORM", default_value = "auto", conflicts_with_all = ["quiet", "json_progress", "tui"])]
    progress: Form,
    /// Print progress to stderr as JSON, one object per line (see docs/live.md).
    #[arg(long, conflicts_with = "quiet")]
    json_progress: bool,
    /// Show a dashboard in the terminal.
    #[arg(long, conflicts_with_all = ["quiet", "json_progress"])]
    tui: bool,
    /// Serve metrics to Prometheus at http://ADDR/metrics. ADDR is a port, reachable only from this machine, or an address
    /// with a port.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,
    /// Allow --metrics to listen on an address that other machines can reach.
    #[arg(long, requires = "metrics")]
    metrics_public: bool,
}

impl LiveArgs {
    /// Refuses impossible combinations before anything is created.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.tui && !HAS_DASHBOARD {
            return Err(CliError::usage("this build has no dashboard")
                .hint("build it with the feature `tui`, or omit --tui"));
        }
        if self.tui && !std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            return Err(CliError::usage("--tui draws on stderr, which is not a terminal").hint(
                "omit --tui for a line of progress per trial, or use --progress plain, --json-progress or --metrics",
            ));
        }
        self.address().map(|_| ())
    }

    fn address(&self) -> Result<Option<SocketAddr>, CliError> {
        let Some(text) = &self.metrics else { return Ok(None) };
        let Some(found) = address(text) else {
            return Err(CliError::usage(format!("--metrics {text}: not an address"))
                .hint("use a port (`9187`), or an address with a port (`127.0.0.1:9187`, `[::1]:9187`)"));
        };
        if !found.ip().is_loopback() && !self.metrics_public {
            return Err(CliError::usage(format!("{} is reachable from other machines", found.ip()))
                .hint("to allow this, add --metrics-public; anyone who can connect can read the metrics"));
        }
        Ok(Some(found))
    }

    /// Whether plain progress lines are disabled on stderr.
    pub(super) fn is_silent(&self) -> bool {
        self.quiet || self.json_progress
    }

    /// Whether stderr carries only JSON events.
    pub(super) fn is_json(&self) -> bool {
        self.json_progress
    }

    /// Starts to show the progress of a run, with the records from before it was resumed.
    pub(super) fn begin(&self, run: &Run, earlier: &[Record]) -> Result<(Live, Option<Server>), CliError> {
        let show = match self {
            LiveArgs { quiet: true, .. } => Show::Nothing,
            LiveArgs { json_progress: true, .. } => Show::Json,
            LiveArgs { tui: true, .. } => Show::Dashboard,
            LiveArgs { progress: Form::Plain, .. } => Show::Plain,
            _ => Show::Progress,
        };
        let mut live = Live::new(show, run, earlier);
        let Some(address) = self.address()? else { return Ok((live, None)) };
        let server = live.serve(address).map_err(|error| {
            CliError::failed(format!("cannot listen on {address}: {error}"))
                .hint("use another port: --metrics PORT; 0 chooses a free one and prints it")
        })?;
        live.message(&format!("Prometheus metrics: http://{}/metrics", server.address()));
        Ok((live, Some(server)))
    }

    /// Shows the dashboard if requested. Everything that must be visible before it has been printed already.
    pub(super) fn take_terminal(&self, live: &mut Live) -> Result<(), CliError> {
        if self.tui {
            live.take_terminal().map_err(|error| CliError::failed(error.to_string()))
        } else {
            Ok(())
        }
    }
}
