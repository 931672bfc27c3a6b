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
use std::time::{Duration, Instant};

/// How long a member that has just been started may take until its syncs are known here.
const HANDING_OVER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// Variables that lead a client through a proxy, which a member behind a link cannot reach.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// The means of a trial with faults.
pub struct Means {
    /// The members of the store.
    pub members: Members,
    /// None: no link is cut. An error: this process has no network of its own.
    links: Option<Result<Links, String>>,
    /// None: no disk is slow.
    syncs: Option<Result<SlowSyncs, String>>,
}

impl Means {
    /// Prepares them for a workload; none: it has no faults. To be called before the plug-in is loaded, and before this process has
    /// a second thread.
    pub fn prepare(workload: &Workload, executable: &Path) -> Result<Option<Means>, String> {
        if workload.faults.is_empty() {
            return Ok(None);
        }
        let failed = |error: io::Error| format!("cannot make a socket for the members of the store: {error}");
        let links =
            workload.has_fault(FaultKind::Cut).then(|| Links::enter().map_err(|error| no_links(&error)));
        let syncs = workload.has_fault(FaultKind::Slow).then(SlowSyncs::prepare);
        let mut syncs = syncs.map(|made| made.map_err(|error| no_syncs(&error.to_string())));
        let is_cut = matches!(links, Some(Ok(_)));
        let channel = syncs.as_ref().and_then(|made| made.as_ref().ok()).map(SlowSyncs::channel);
        Launch::of(is_cut.then_some(NETWORK), channel).tell(executable);
        let members = Members::prepare().map_err(failed)?;
        if let Some(Ok(made)) = &mut syncs
            && let Err(error) = made.start()
        {
            syncs = Some(Err(no_syncs(&error.to_string())));
        }
        Ok(Some(Means { members, links, syncs }))
    }

    /// Prepares the fresh process at the end of a trial, in which nothing fails: its members have the addresses that they had.
    pub fn prepare_end(workload: &Workload, executable: &Path) {
        // Where there can be no links, the trial was refused, or its engine has no members.
        let is_cut = workload.has_fault(FaultKind::Cut) && Links::enter().is_ok();
        Launch::of(is_cut.then_some(NETWORK), None).tell(executable);
    }

    /// Whether the members are such that the workload's faults can happen; an `Err` says why not.
    pub fn check(&self) -> Result<(), String> {
        for (place, member) in self.members.all().iter().enumerate() {
            if let Some(links) = &self.links {
                let links = links.as_ref().map_err(String::clone)?;
                if !link_of(place).is_some_and(|link| links.has(link)) {
                    return Err(format!(
                        "the driver of this engine does not start {} with a link of its own, so that it cannot be cut off",
                        member.name
                    ));
                }
            }
            if self.syncs.is_some() {
                self.wait_for_syncs(member.process)?;
            }
        }
        Ok(())
    }

    /// Cuts the link of a member.
    pub fn cut(&self, place: usize) -> Result<(), String> {
        self.on_link(place, Links::cut).map_err(|text| format!("its link cannot be cut: {text}"))
    }

    /// Ends the cut.
    pub fn restore(&self, place: usize) -> Result<(), String> {
        self.on_link(place, Links::restore).map_err(|text| format!("its link cannot be restored: {text}"))
    }

    fn on_link(&self, place: usize, change: fn(&Links, u8) -> io::Result<()>) -> Result<(), String> {
        match (&self.links, link_of(place)) {
            (Some(Ok(links)), Some(link)) => change(links, link).map_err(|error| error.to_string()),
            (Some(Err(text)), _) => Err(text.clone()),
            _ => Err("it has none".to_string()),
        }
    }

    /// Delays the syncs of a member.
    pub fn slow(&self, place: usize, delay: Duration) -> Result<(), String> {
        let process = self.members.all()[place].process;
        self.wait_for_syncs(process)?.begin(process, delay);
        Ok(())
    }

    /// Ends the delay; returns the number of syncs that were delayed.
    pub fn hasten(&self, place: usize) -> Option<u64> {
        let syncs = self.syncs.as_ref()?.as_ref().ok()?;
        Some(syncs.end(self.members.all()[place].process))
    }

    fn wait_for_syncs(&self, process: u32) -> Result<&SlowSyncs, String> {
        let syncs = match &self.syncs {
            Some(Ok(syncs)) => syncs,
            Some(Err(text)) => return Err(text.clone()),
            None => return Err("no disk is slow in this workload".to_string()),
        };
        let begun = Instant::now();
        while !syncs.sees(process) {
            if begun.elapsed() > HANDING_OVER {
                return Err(format!(
                    "the driver of this engine does not start its members such that their syncs are seen (process {process}), so \
                     that their disks cannot be slow"
                ));
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

fn no_links(error: &io::Error) -> String {
    format!(
        "links cannot be cut here: {error}; run as root with CAP_SYS_ADMIN and CAP_NET_ADMIN (`kvdyno doctor`, network links)"
    )
}

fn no_syncs(error: &str) -> String {
    format!("syncs cannot be delayed here: {error} (`kvdyno doctor`, seccomp notification)")
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
        return no_syncs(&error.to_string());
    }
    format!("cannot start `{}`: {}", program.to_string_lossy(), command.exec())
}
