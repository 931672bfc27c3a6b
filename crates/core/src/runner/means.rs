//! What the faults of a trial need: the members of the store, their links and their disks; and how a member is started that has
//! them.

use crate::engine::{Launch, Members};
use crate::workload::{FaultKind, Workload};
use kvdyno_measure::links::{self, Links, NETWORK};
use kvdyno_measure::sync_calls::{SlowSyncs, hand_over_syncs};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a member that has just been started may take until its syncs are known here.
const HANDING_OVER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// Variables that lead a client through a proxy, which a member behind a link cannot reach.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Why a fault of a trial cannot happen.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MeansError {
    /// There is no way to ask the driver about its members.
    #[error("cannot make a socket for the members of the store: {0}")]
    NoChannel(Arc<io::Error>),
    /// This process gets no network of its own.
    #[error(
        "links cannot be cut here: {0}; run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN (`kvdyno doctor`, network links)"
    )]
    NoLinks(Arc<io::Error>),
    /// The kernel hands over no syncs.
    #[error("syncs cannot be delayed here: {0} (`kvdyno doctor`, seccomp notification)")]
    NoSyncs(Arc<io::Error>),
    /// The driver does not let its members be cut off: a member.
    #[error(
        "the driver of this engine does not start {0} with a link of its own, so that it cannot be cut off"
    )]
    Unlinked(String),
    /// The driver does not let syncs of its members be seen: the process of a member.
    #[error(
        "the driver of this engine does not start its members such that their syncs are seen (process {0}), so that their \
         disks cannot be slow"
    )]
    Unseen(u32),
    /// A member has no link in this workload.
    #[error("it has none")]
    NoLink,
    /// A link does not change.
    #[error("{0}")]
    Link(Arc<io::Error>),
    /// A link stays as it is.
    #[error("its link cannot be cut: {0}")]
    NotCut(Box<MeansError>),
    /// A link stays cut.
    #[error("its link cannot be restored: {0}")]
    NotRestored(Box<MeansError>),
    /// The workload has no such fault.
    #[error("no disk is slow in this workload")]
    NeverSlow,
}

/// The means of a trial with faults.
pub(super) struct Means {
    /// The members of the store.
    pub members: Members,
    /// None: no link is cut. An error: this process has no network of its own.
    links: Option<Result<Links, MeansError>>,
    /// None: no disk is slow.
    syncs: Option<Result<SlowSyncs, MeansError>>,
}

impl Means {
    /// Prepares them for a workload; none: it has no faults. To be called before the plug-in is loaded, and before this process has
    /// a second thread.
    pub(super) fn prepare(workload: &Workload, executable: &Path) -> Result<Option<Means>, MeansError> {
        if workload.faults.is_empty() {
            return Ok(None);
        }
        let no_links = |error| MeansError::NoLinks(Arc::new(error));
        let no_syncs = |error| MeansError::NoSyncs(Arc::new(error));
        let links = workload.has_fault(FaultKind::Cut).then(|| Links::enter().map_err(no_links));
        let syncs = workload.has_fault(FaultKind::Slow).then(SlowSyncs::prepare);
        let mut syncs = syncs.map(|made| made.map_err(no_syncs));
        let is_cut = matches!(links, Some(Ok(_)));
        let channel = syncs.as_ref().and_then(|made| made.as_ref().ok()).map(SlowSyncs::channel);
        Launch::of(is_cut.then_some(NETWORK), channel).tell(executable);
        let members = Members::prepare().map_err(|error| MeansError::NoChannel(Arc::new(error)))?;
        if let Some(Ok(made)) = &mut syncs
            && let Err(error) = made.start()
        {
            syncs = Some(Err(no_syncs(error)));
        }
        Ok(Some(Means { members, links, syncs }))
    }

    /// Prepares the fresh process at the end of a trial, in which nothing fails: its members have the addresses that they had.
    pub(super) fn prepare_end(workload: &Workload, executable: &Path) {
        // Where there can be no links, the trial was refused, or its engine has no members.
        let is_cut = workload.has_fault(FaultKind::Cut) && Links::enter().is_ok();
        Launch::of(is_cut.then_some(NETWORK), None).tell(executable);
    }

    /// Whether the members are such that the workload's faults can happen.
    pub(super) fn check(&self) -> Result<(), MeansError> {
        for (place, member) in self.members.all().iter().enumerate() {
            if let Some(links) = &self.links {
                let links = links.as_ref().map_err(MeansError::clone)?;
                if !link_of(place).is_some_and(|link| links.has(link)) {
                    return Err(MeansError::Unlinked(member.name.clone()));
                }
            }
            if self.syncs.is_some() {
                self.wait_for_syncs(member.process)?;
            }
        }
        Ok(())
    }

    /// Cuts the link of a member.
    pub(super) fn cut(&self, place: usize) -> Result<(), MeansError> {
        self.on_link(place, Links::cut).map_err(|error| MeansError::NotCut(Box::new(error)))
    }

    /// Ends the cut.
    pub(super) fn restore(&self, place: usize) -> Result<(), MeansError> {
        self.on_link(place, Links::restore).map_err(|error| MeansError::NotRestored(Box::new(error)))
    }

    fn on_link(&self, place: usize, change: fn(&Links, u8) -> io::Result<()>) -> Result<(), MeansError> {
        match (&self.links, link_of(place)) {
            (Some(Ok(links)), Some(link)) => {
                change(links, link).map_err(|error| MeansError::Link(Arc::new(error)))
            }
            (Some(Err(error)), _) => Err(error.clone()),
            _ => Err(MeansError::NoLink),
        }
    }

    /// Delays the syncs of a member.
    pub(super) fn slow(&self, place: usize, delay: Duration) -> Result<(), MeansError> {
        let process = self.members.all()[place].process;
        self.wait_for_syncs(process)?.begin(process, delay);
        Ok(())
    }

    /// Ends the delay; returns the number of syncs that were delayed.
    pub(super) fn hasten(&self, place: usize) -> Option<u64> {
        let syncs = self.syncs.as_ref()?.as_ref().ok()?;
        Some(syncs.end(self.members.all()[place].process))
    }

    fn wait_for_syncs(&self, process: u32) -> Result<&SlowSyncs, MeansError> {
        let syncs = match &self.syncs {
            Some(Ok(syncs)) => syncs,
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(MeansError::NeverSlow),
        };
        let begun = Instant::now();
        while !syncs.sees(process) {
            if begun.elapsed() > HANDING_OVER {
                return Err(MeansError::Unseen(process));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(syncs)
    }
}

/// The number of a member's link: members are announced in the order of their numbers.
fn link_of(place: usize) -> Option<u8> {
    u8::try_from(place + 1).ok()
}

/// Makes this process, which has one thread, the member with this number: gives it its link and hands over its syncs, if the trial
/// wants that, and becomes its program. Returns only with an error.
pub fn become_member(number: u8, program: &OsString, arguments: &[OsString]) -> String {
    let launch = Launch::found();
    let mut command = Command::new(program);
    command.args(arguments);
    if launch.network().is_some() {
        if let Err(error) = links::join(number) {
            return format!("member {number} gets no link of its own: {error}");
        }
        for name in PROXIES {
            command.env_remove(name);
        }
    }
    if let Some(channel) = launch.syncs()
        && let Err(error) = hand_over_syncs(channel)
    {
        return MeansError::NoSyncs(Arc::new(error)).to_string();
    }
    format!("cannot start `{}`: {}", program.to_string_lossy(), command.exec())
}
