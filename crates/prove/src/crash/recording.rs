//! Recording what a process writes: its database lies on a device in user space, which logs every write and flush with the
//! counters of that instant.

use super::board::{Board, Snapshot, Stage};
use super::medium::{await_end, trouble_on};
use super::no_result::Stopped;
use super::oracle::Left;
use super::round::{Due, Moment, Reader, start, until_moment};
use super::script::Script;
use super::worker::{Message, Subject, WorkerTask};
use super::{Cell, is_interrupted};
use crate::machine::MachineError;
use kvdyno_core::generator::Random;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::volume::Volume;
use kvdyno_measure::volume::record::{Act, Entry, entries, log_bytes, serve};
use kvdyno_measure::{Event, Patience, Task, TaskProcess};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder of the database in the file system.
pub(super) const DATABASE: &str = "database";
/// The stream of random numbers for what is recorded.
const RECORDING_STREAM: u64 = 2;
/// How long the device may take to be there.
const STARTING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);
/// Parts of a recording, after each of which pages are written back.
const PARTS: u64 = 6;

/// What the process that serves the device does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceTask {
    /// The folder of the volume.
    pub home: PathBuf,
    /// The descriptor of the board of the process that writes.
    pub board: i32,
    /// A file with the number of the write that fails, once there is one. It is removed when that write has failed.
    #[serde(default)]
    pub fails: Option<PathBuf>,
}

impl Task for DeviceTask {
    const KIND: Kind = Kind::CrashDevice;
    type Message = Message;
    type Prepared = ();

    fn prepare(&self) {}

    fn run(self, (): ()) -> Result<u8, String> {
        let board = Board::observed(self.board).map_err(|error| error.to_string())?;
        let ready = || DeviceTask::tell(&Message::Ready);
        let DeviceTask { home, fails, .. } = self;
        let fails = move |number: u64| {
            let Some(file) = &fails else { return false };
            let wanted = std::fs::read_to_string(file).ok().and_then(|text| text.parse().ok());
            wanted == Some(number) && std::fs::remove_file(file).is_ok()
        };
        let served = serve(&home, move || board.snapshot().words(), fails, ready);
        served.map(|()| 0).map_err(|error| {
            let text = format!(
                "no device in user space: {error}; run it as root, outside containers, with /dev/fuse"
            );
            DeviceTask::tell(&Message::Failed(text.clone()));
            text
        })
    }
}

/// All that a device was asked to do.
pub(super) struct Recording {
    /// In order.
    pub entries: Vec<Entry>,
    /// The entry before which the first crash can be.
    pub first: usize,
    /// What was acknowledged when the last entry was made, and no more.
    pub end: Snapshot,
}

impl Recording {
    /// What the process did when it had made the entries before this one, and no more.
    pub(super) fn at(&self, position: usize) -> Snapshot {
        self.entries.get(position).map_or_else(|| self.end.clone(), |entry| Snapshot::of(&entry.stamp))
    }

    /// Names a commit of one thread that is missing although it was acknowledged before a commit of another thread was started that is
    /// there: what is left is then no state that the database ever had. `None`: there is none, as far as the log tells.
    pub(super) fn hole_across_threads(&self, position: usize, left: &[Left]) -> Option<String> {
        let acked = |at: &Snapshot, thread: usize| at.bounds.get(thread).map_or(0, |bounds| bounds.acked);
        let started = |at: &Snapshot, thread: usize| at.bounds.get(thread).map_or(0, |bounds| bounds.started);
        let crash = self.at(position);
        for (lacking, missing) in left.iter().map(|left| left.nearest + 1).enumerate() {
            if missing > acked(&crash, lacking) {
                continue;
            }
            let Some(known) = (0..=position).find(|entry| acked(&self.at(*entry), lacking) >= missing) else {
                continue;
            };
            for (thread, there) in left.iter().map(|left| left.newest).enumerate() {
                // The counters of an entry are read thread by thread.
                let after = if thread > lacking { known } else { known + 1 };
                let is_later = after <= position && started(&self.at(after), thread) < there;
                if thread != lacking && is_later {
                    return Some(format!(
                        "commit {missing} of thread {lacking} was acknowledged before commit {there} of thread {thread} was \
                         started, and only the latter is there"
                    ));
                }
            }
        }
        None
    }

    /// The entry after the last flush before a position: all before it is on the medium.
    pub(super) fn flushed(&self, position: usize) -> usize {
        let flush = self.entries[..position].iter().rposition(|entry| entry.act == Act::Flush);
        flush.map_or(0, |flush| flush + 1)
    }
}

/// The process that serves the device.
struct Device(TaskProcess<Message>);

impl Device {
    fn start(
        volume: &Volume,
        board: &Board,
        subject: &Subject,
        fails: Option<PathBuf>,
    ) -> Result<Device, MachineError> {
        volume.prepare_device().map_err(MachineError::from)?;
        let task = DeviceTask { home: volume.home().to_path_buf(), board: board.descriptor()?, fails };
        let mut process = start(&task, subject)?;
        let begun = Instant::now();
        loop {
            match process.next(PAUSE) {
                Event::Told(Message::Ready) => return Ok(Device(process)),
                Event::Told(Message::Failed(reason)) => return Err(MachineError::Device(reason)),
                Event::Told(_) => {}
                Event::Ended(_) => return Err(MachineError::DeviceEnded),
                Event::Quiet if begun.elapsed() > STARTING => {
                    return Err(MachineError::DeviceLate(STARTING.as_secs()));
                }
                Event::Quiet => {}
            }
        }
    }

    fn end(mut self) -> Result<(), MachineError> {
        self.0.kill();
        await_end(&mut self.0).map(drop)
    }
}

/// A device of which one write fails, over which a volume is mounted.
pub(crate) struct FailingDevice {
    device: Device,
    /// The file with the number of the write that fails.
    file: PathBuf,
    log: PathBuf,
}

impl FailingDevice {
    /// Mounts a volume by way of a new one.
    pub(crate) fn under(volume: &mut Volume, subject: &Subject) -> Result<FailingDevice, MachineError> {
        let file = volume.home().join("fails");
        let board = Board::shared(subject.threads)?;
        let started = Device::start(volume, &board, subject, Some(file.clone()));
        let device = started.inspect_err(|_| drop(volume.remove_device()))?;
        let own = FailingDevice { device, file, log: volume.log() };
        match volume.present_recorded() {
            Ok(_) => Ok(own),
            Err(error) => {
                own.remove(volume)?;
                Err(error.into())
            }
        }
    }

    /// Writes so far, without those that failed.
    pub(crate) fn writes(&self) -> Result<u64, MachineError> {
        let bytes = log_bytes(&self.log).map_err(MachineError::Log)?;
        let entries = entries(&self.log, bytes).map_err(MachineError::Log)?;
        Ok(entries.iter().filter(|entry| matches!(entry.act, Act::Write(..))).count() as u64)
    }

    /// Makes the write with this number, from 1, fail.
    pub(crate) fn fail(&self, number: u64) -> Result<(), MachineError> {
        let part = self.file.with_extension("part");
        let written =
            std::fs::write(&part, number.to_string()).and_then(|()| std::fs::rename(&part, &self.file));
        written.map_err(MachineError::file("write", &self.file))
    }

    /// The file that is removed when it fails.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether that write has failed.
    pub(crate) fn has_failed(&self) -> bool {
        !self.file.exists()
    }

    /// Unmounts the volume and ends the device. What the volume has on its medium stays.
    pub(crate) fn remove(self, volume: &mut Volume) -> Result<(), MachineError> {
        let is_withdrawn = volume.withdraw().is_ok();
        self.device.end()?;
        if !is_withdrawn {
            volume.withdraw().map_err(MachineError::from)?;
        }
        let _ = std::fs::remove_file(&self.file);
        volume.remove_device().map_err(MachineError::from)
    }
}

/// Records what a process does that `run` starts and crashes. It returns the bytes of the log until the crash; what the file system
/// writes when it is unmounted comes after it.
fn recorded(
    volume: &mut Volume,
    board: &Board,
    subject: &Subject,
    run: impl FnOnce(&mut Volume, &mut Option<TaskProcess<Message>>) -> Result<u64, Stopped>,
) -> Result<Vec<Entry>, Stopped> {
    let device = match Device::start(volume, board, subject, None) {
        Ok(device) => device,
        Err(reason) => {
            volume.remove_device().map_err(MachineError::from)?;
            return Err(reason.into());
        }
    };
    let mut process = None;
    let presented = volume.present_recorded().map_err(|error| Stopped::from(MachineError::from(error)));
    let outcome = presented.and_then(|_| run(volume, &mut process));
    // Before the device is gone. What is recorded on one that fails is not what the process wrote.
    let said = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let outcome = match (outcome, trouble_on(volume, &said)) {
        (Ok(_) | Err(Stopped::Failed(_) | Stopped::Machine(_)), Some(trouble)) => Err(trouble.into()),
        (outcome, _) => outcome,
    };
    // If the device hangs, whoever waits for it gets an error when its process ends, and can then be ended.
    let is_withdrawn = outcome.is_ok() && volume.withdraw().is_ok();
    device.end()?;
    drop(process);
    if !is_withdrawn {
        volume.withdraw().map_err(MachineError::from)?;
    }
    let read = outcome.and_then(|bytes| Ok(entries(&volume.log(), bytes).map_err(MachineError::Log)?));
    volume.remove_device().map_err(MachineError::from)?;
    read
}

/// Records the creation of a database, commits, maintenance, close and reopen.
pub(super) fn record_work(
    subject: &Subject,
    script: Script,
    volume: &mut Volume,
    stall: Duration,
    cell: &mut Cell,
) -> Result<Recording, Stopped> {
    let mut random = Random::stream(script.seed, RECORDING_STREAM);
    let session = 8 + random.below(40);
    // The second session ends with a flush and a compaction, the fourth with a flush.
    let closings = [6, 7, 7, 8, 9, 9][random.below(6) as usize];
    let delay = Duration::from_micros(random.below(5000));
    let board = Board::shared(subject.threads)?;
    let mut end = Snapshot::default();
    let entries = recorded(volume, &board, subject, |volume, process| {
        let folder = volume.create_folder(DATABASE).map_err(MachineError::from)?;
        volume.sync().map_err(MachineError::from)?;
        let task = WorkerTask {
            subject: subject.clone(),
            folder: folder.clone(),
            script,
            session,
            board: board.descriptor()?,
        };
        let process = process.insert(start(&task, subject)?);
        // Commits of all threads in the sessions that are recorded.
        let commits = 3 * session * u64::from(subject.threads);
        let mut part = 1;
        // Only what is written back reaches the device, and the kernel may do that at any time.
        let mut on_commits = |acked| {
            if acked >= part * commits / PARTS {
                part += 1;
                let share = [0.3, 0.6, 1.0][random.below(3) as usize];
                let journal = random.below(2) == 0;
                let mut random = Random::seeded(random.next_u64());
                volume
                    .write_back(&folder, journal, move || random.unit() < share)
                    .map_err(MachineError::from)?;
            }
            Ok(())
        };
        let moment = Moment::Closing(closings, delay);
        until_moment(Due::at(moment), &board, process, stall, cell, &mut on_commits)?;
        process.kill();
        await_end(process)?;
        end = board.snapshot();
        Ok(log_bytes(&volume.log()).map_err(MachineError::Log)?)
    })?;
    let is_work = |entry: &Entry| Snapshot::of(&entry.stamp).stage != Stage::Start;
    let first = entries.iter().position(is_work).unwrap_or(entries.len());
    Ok(Recording { entries, first, end })
}

/// Records how a file system and the database on it are opened after a crash. `at` is what was acknowledged before it.
pub(super) fn record_recovery(
    reader: &Reader<'_>,
    volume: &mut Volume,
    at: &Snapshot,
) -> Result<Recording, Stopped> {
    let board = Board::shared(reader.subject.threads)?;
    let entries = recorded(volume, &board, reader.subject, |volume, process| {
        let (opener, opens) = reader.start(true)?;
        let opener = process.insert(opener);
        let (mut last, mut patience) = (0, Patience::new(reader.stall));
        loop {
            match opener.next(PAUSE) {
                Event::Told(Message::Opened { .. } | Message::Failed(_)) | Event::Ended(_) => break,
                Event::Told(_) | Event::Quiet => {}
            }
            if is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            // An engine that hangs while it opens its database is found by the process that reads.
            let stages = opens.stages();
            if stages != last {
                last = stages;
                patience.renew();
            } else if patience.is_over() {
                break;
            }
        }
        opener.kill();
        await_end(opener)?;
        Ok(log_bytes(&volume.log()).map_err(MachineError::Log)?)
    })?;
    let snapshot = Snapshot { stage: Stage::Recover, bounds: at.bounds.clone() };
    let stamp = snapshot.words();
    let entries = entries.into_iter().map(|entry| Entry { stamp: stamp.clone(), ..entry }).collect();
    Ok(Recording { entries, first: 0, end: snapshot })
}
