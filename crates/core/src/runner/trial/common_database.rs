//! The database that several load generators use: load generator 0 creates it before the others open it. It is a running
//! server, or a cluster that the driver of load generator 0 has started on this machine, which the others join and leave before
//! it stops.

use super::errors::NotRun;
use super::{OnTick, TrialRun};
use crate::engine::nodes_option_of;
use crate::results::Cause;
use kvdyno_cluster::Lost;
use serde::{Deserialize, Serialize};

/// The gate at which the load generators wait for the database.
const OPEN: &str = "open";
/// The gate at which load generator 0 waits until the others have left its cluster.
const LEFT: &str = "left";
/// The file in a database's folder in which a driver tells by which options others open the cluster that it has started:
/// `name=value`, one per line.
const FILE: &str = "join";

/// A load generator's part in a cluster that the driver of load generator 0 has started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Joined {
    /// Whether this load generator has started it.
    pub is_host: bool,
    /// The options by which this load generator opens it; empty: it does not join one.
    options: Vec<(String, String)>,
}

impl Joined {
    /// The options by which to open the database.
    pub(super) fn options(&self, requested: &[(String, String)]) -> Vec<(String, String)> {
        let is_own = |name: &String| !self.options.iter().any(|(own, _)| own == name);
        let kept = requested.iter().filter(|(name, _)| is_own(name));
        kept.chain(&self.options).cloned().collect()
    }
}

impl TrialRun<'_> {
    /// Waits until load generator 0 has created the database that several load generators use.
    pub(super) fn before_open(&mut self, is_first: bool) -> Result<(), NotRun> {
        let Some(member) = self.member.as_ref().filter(|member| is_first && member.load_generator() > 0)
        else {
            return Ok(());
        };
        let met = member.meet_with(OPEN, "", &mut || self.board.wait());
        self.has_created = true;
        let note = met.map_err(|lost| self.lose(lost))?;
        let pairs = note.lines().filter_map(|line| line.split_once('='));
        self.joined.options = pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Ok(())
    }

    /// Lets the others open the database that load generator 0 has created; refuses one that they would not share.
    pub(super) fn after_open(&mut self, is_first: bool) -> Result<(), NotRun> {
        let Some(member) = self.member.as_ref().filter(|_| is_first) else { return Ok(()) };
        let is_shared = self.engine.stores_nothing() || self.record().is_of_client_alone();
        let note = match (is_shared, member.load_generator()) {
            (true, _) => Ok(String::new()),
            (false, 0) if nodes_option_of(self.engine.name()).is_some() => {
                self.joined.is_host = true;
                let file = self.data.join(FILE);
                std::fs::read_to_string(&file).map_err(|error| NotRun::NoWay { file, error })
            }
            (false, _) => Err(NotRun::NotShared),
        };
        let note = match note {
            Ok(note) => note,
            Err(reason) => {
                self.fail(Cause::Refused, reason.to_string());
                return Err(reason);
            }
        };
        if member.load_generator() > 0 {
            return Ok(());
        }
        let met = member.meet_with(OPEN, &note, &mut || self.board.wait());
        met.map(|_| ()).map_err(|lost| self.lose(lost))
    }

    /// The end of the trial; a cluster that load generator 0 has started stays until the others have ended theirs.
    pub(super) fn finish_together(&mut self, on_tick: OnTick<'_>) {
        let is_guest = !self.joined.options.is_empty();
        if self.joined.is_host && !self.meet_at_end() {
            self.close(None);
            return;
        }
        self.finish(on_tick);
        if is_guest && self.failure.is_none() {
            self.meet_at_end();
        }
    }

    fn meet_at_end(&mut self) -> bool {
        let met = self.member.as_ref().map_or(Ok(()), |member| member.meet(LEFT, &mut || self.board.wait()));
        met.map_err(|lost| self.lose(lost)).is_ok()
    }

    fn lose(&mut self, Lost(text): Lost) -> NotRun {
        self.fail(Cause::LoadGeneratorLost, text.clone());
        NotRun::LoadGeneratorLost(text)
    }
}
