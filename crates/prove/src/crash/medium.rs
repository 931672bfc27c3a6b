//! Where a database lies while it is tested, and how it crashes there.

use super::Round;
use super::board::Board;
use super::evidence::Keeper;
use super::no_result::Stopped;
use super::oracle::{Bounds, Verdict};
use super::worker::Message;
use crate::machine::MachineError;
use kvdyno_core::generator::Random;
use kvdyno_core::runner::DataFolder;
use kvdyno_measure::disk::space;
use kvdyno_measure::file_system::file_system;
use kvdyno_measure::processes::stop_tree;
use kvdyno_measure::shortage::{Scene, Short, Shortage};
use kvdyno_measure::volume::Volume;
use kvdyno_measure::{End, Event, Fate, TaskProcess};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a killed process may take to end.
const ENDING: Duration = Duration::from_secs(20);
/// How long a process may take to stop: a thread may wait for a sync.
const STOPPING: Duration = Duration::from_secs(20);
/// How long commits may take to end when no further ones are made.
const PAUSING: Duration = Duration::from_secs(2);
/// Shares of the pages that are written back before a cut.
const SHARES: [f64; 4] = [0.0, 0.5, 0.5, 0.9];
/// Interval between two checks of a process that is ending.
const PAUSE: Duration = Duration::from_millis(2);

/// What is known of a process after its crash.
pub(super) struct Crashed {
    /// What was acknowledged before the crash, and what was started until it.
    pub bounds: Vec<Bounds>,
    /// How it had ended by itself before, where that can be told.
    pub end: Option<End>,
}

/// A place for databases that can be crashed. An error is a failure of this machine, not of the engine.
pub(super) trait Medium {
    /// What it does at a crash, for readers of the results.
    fn device(&self) -> String;

    /// Where there are two places: chooses the one for the next database, and returns its file system.
    fn choose(&mut self, _in_memory: bool) -> Option<String> {
        None
    }

    /// An empty folder for the database of the next round, which survives each crash.
    fn prepare(&mut self) -> Result<PathBuf, MachineError>;

    /// Called once while the process runs, when about half of its commits are acknowledged.
    fn write_back(&mut self) -> Result<(), MachineError> {
        Ok(())
    }

    /// Crashes the process.
    fn crash(
        &mut self,
        process: &mut TaskProcess<Message>,
        board: &Board,
        random: &mut Random,
    ) -> Result<Crashed, MachineError>;

    /// Makes the folder accessible again; nanoseconds of mounting, if anything was mounted.
    fn recover(&mut self) -> Result<Option<u64>, MachineError>;

    /// Why an engine may have failed on it that is not to blame: the device, or space. `said` is what the engine said. Must be called
    /// before the database is removed, which frees space.
    fn trouble(&self, said: &str) -> Option<MachineError>;

    /// Removes the database.
    fn discard(&mut self) -> Result<(), MachineError>;
}

/// What a round shows, unless this machine was at fault: an engine is not to blame for a device that has failed or has no space.
/// `trouble` is asked with what the engine said; the keeper removes what it has kept of the round.
pub(super) fn unless_at_fault(
    outcome: Result<Round, Stopped>,
    trouble: impl FnOnce(&str) -> Option<MachineError>,
    keeper: Option<&mut Keeper>,
) -> Result<Round, Stopped> {
    let said = match &outcome {
        Ok(round) if round.verdict == Verdict::Ok => return outcome,
        Ok(round) => round.detail.clone().unwrap_or_default(),
        Err(Stopped::Failed(failure)) => failure.to_string(),
        // What the device or the lack of space has made impossible has a reason that says less.
        Err(Stopped::Machine(error)) => error.to_string(),
        Err(Stopped::Interrupted | Stopped::Unsuitable(_)) => return outcome,
    };
    let Some(trouble) = trouble(&said) else { return outcome };
    // It shows nothing about the engine.
    keeper.map_or(Ok(()), Keeper::take_back)?;
    Err(trouble.into())
}

/// Why an engine with its database in a folder may have failed that is not to blame: there is no space, or it said so and there is
/// little.
pub(super) fn shortage(folder: &Path, said: &str) -> Option<MachineError> {
    let scene = Scene::of_database(folder);
    let found = scene.full().or_else(|| shortage_by_words(folder, said))?;
    Some(MachineError::Short(found.text))
}

/// What was short as an engine said, if that may be so.
fn shortage_by_words(folder: &Path, said: &str) -> Option<Shortage> {
    /// A single write of an engine, such as a file of a fixed size, may need more than this.
    const LITTLE: u64 = 64 << 20;
    // With space an engine may say so as well: it may ask for any amount if what it has read is wrong.
    let is_little = || space(folder).is_some_and(|space| space.free_bytes < LITTLE);
    let found = Scene::of_database(folder).of_error(said)?;
    match found.of {
        Short::Space => is_little().then_some(found),
        Short::Inodes => Some(found),
        _ => None,
    }
}

/// Why an engine may have failed on a file system of its own that is not to blame.
pub(super) fn trouble_on(volume: &Volume, said: &str) -> Option<MachineError> {
    let by_words = || Some(MachineError::Short(shortage_by_words(&volume.folder(), said)?.text));
    volume.trouble().map(MachineError::Trouble).or_else(by_words)
}

/// A folder of any file system. A crash kills the process; the kernel lives on.
pub(super) struct Killed {
    parent: PathBuf,
    name: String,
    folder: Option<DataFolder>,
    /// A folder on a disk and one in memory, with the file systems.
    places: Option<[(PathBuf, String); 2]>,
}

impl Killed {
    /// Databases in `parent`; `name` distinguishes them from those of other cells.
    pub(super) fn in_folder(parent: &Path, name: &str) -> Killed {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric();
        let name = name.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
        Killed { parent: parent.to_path_buf(), name, folder: None, places: None }
    }

    /// The same, with some databases in a folder in memory: an engine that syncs is rarely killed anywhere else on a disk.
    pub(super) fn also_in(self, memory: &Path) -> Killed {
        let place = |folder: &Path| (folder.to_path_buf(), kind_of(folder));
        let places = [place(&self.parent), place(memory)];
        Killed { places: Some(places), ..self }
    }
}

/// The name of the file system that holds a folder.
pub(super) fn kind_of(folder: &Path) -> String {
    file_system(folder).map_or("unknown".to_string(), |facts| facts.kind)
}

impl Medium for Killed {
    fn device(&self) -> String {
        "the kernel lives on, and what was written to files stays".into()
    }

    fn choose(&mut self, in_memory: bool) -> Option<String> {
        let (folder, kind) = self.places.as_ref()?.get(usize::from(in_memory))?;
        self.parent = folder.clone();
        Some(kind.clone())
    }

    fn prepare(&mut self) -> Result<PathBuf, MachineError> {
        let folder = DataFolder::create(&self.parent, "crash", &self.name).map_err(MachineError::from)?;
        let database = folder.database();
        self.folder = Some(folder);
        // An engine may change the working folder.
        std::path::absolute(&database).map_err(|error| MachineError::Path { path: database, error })
    }

    fn crash(
        &mut self,
        process: &mut TaskProcess<Message>,
        board: &Board,
        _random: &mut Random,
    ) -> Result<Crashed, MachineError> {
        process.kill();
        let end = await_end(process)?;
        let is_killed = end.fate() == Fate::Died("SIGKILL".into());
        // Nobody counts any more.
        Ok(Crashed { bounds: board.bounds(), end: (!is_killed).then_some(end) })
    }

    fn recover(&mut self) -> Result<Option<u64>, MachineError> {
        Ok(None)
    }

    fn trouble(&self, said: &str) -> Option<MachineError> {
        shortage(&self.parent, said)
    }

    fn discard(&mut self) -> Result<(), MachineError> {
        self.folder.take().map_or(Ok(()), |folder| folder.remove().map_err(MachineError::from))
    }
}

/// A file system of its own. A crash cuts it off from its device and kills the process. In a third of the crashes the process is
/// stopped before, so that the pages that are written back are those of one moment; a sync that it waits for ends first. In
/// another third it makes no further commits, so that no later one syncs what the last ones should have. In the rest a sync may be
/// interrupted.
pub(super) struct Cut {
    volume: Volume,
    device: String,
    database: Option<PathBuf>,
    rounds: u32,
}

impl Cut {
    /// Databases on a volume whose image is in the folder `images`.
    pub(super) fn on(volume: Volume, images: &Path) -> Cut {
        let below = file_system(images).map_or("unknown file system".to_string(), |facts| facts.kind);
        let device = format!(
            "a loop device over an image in {below}, in blocks of 4 KiB, without a volatile cache: what was written to it stays, \
             and the rest is gone; before the cut, random pages of the database are written to it"
        );
        Cut { volume, device, database: None, rounds: 0 }
    }
}

impl Medium for Cut {
    fn device(&self) -> String {
        self.device.clone()
    }

    fn prepare(&mut self) -> Result<PathBuf, MachineError> {
        self.rounds += 1;
        let folder = self.volume.folder().join(format!("database-{}", self.rounds));
        std::fs::create_dir(&folder).map_err(MachineError::file("create", &folder))?;
        self.volume.sync().map_err(MachineError::from)?;
        self.database = Some(folder.clone());
        Ok(folder)
    }

    fn write_back(&mut self) -> Result<(), MachineError> {
        self.volume.sync().map_err(MachineError::from)
    }

    fn crash(
        &mut self,
        process: &mut TaskProcess<Message>,
        board: &Board,
        random: &mut Random,
    ) -> Result<Crashed, MachineError> {
        let way = random.below(3);
        match (way, board.process()) {
            (0, Some(number)) => {
                stop_tree(number, STOPPING).map_err(|error| MachineError::Stop(error.to_string()))?;
            }
            (1, _) => {
                board.pause();
                let begun = Instant::now();
                while !board.is_idle() && begun.elapsed() < PAUSING {
                    std::thread::sleep(PAUSE);
                }
            }
            _ => {}
        }
        if let Some(folder) = &self.database {
            let share = SHARES[random.below(SHARES.len() as u64) as usize];
            // The journal would sync what a process that runs has not synced yet.
            let journal = way < 2 && random.below(2) == 0;
            let mut random = random.clone();
            self.volume
                .write_back(folder, journal, move || random.unit() < share)
                .map_err(MachineError::from)?;
        }
        // What is acknowledged now must be there. A process that runs may start more until the cut, and some engines do not
        // notice it.
        let acked = board.bounds();
        self.volume.cut().map_err(MachineError::from)?;
        process.kill();
        await_end(process)?;
        let started = board.bounds();
        let both =
            |(before, after): (&Bounds, &Bounds)| Bounds { acked: before.acked, started: after.started };
        // If it ended by itself, that may be because its device was gone.
        Ok(Crashed { bounds: acked.iter().zip(&started).map(both).collect(), end: None })
    }

    fn recover(&mut self) -> Result<Option<u64>, MachineError> {
        self.volume.remount().map(Some).map_err(MachineError::from)
    }

    fn trouble(&self, said: &str) -> Option<MachineError> {
        trouble_on(&self.volume, said)
    }

    fn discard(&mut self) -> Result<(), MachineError> {
        let Some(folder) = self.database.take() else { return Ok(()) };
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(MachineError::file("remove", folder)(error))
            }
            _ => Ok(()),
        }
    }
}

/// Waits until a killed process and all that it has started have ended; how it ended.
pub(super) fn await_end(process: &mut TaskProcess<Message>) -> Result<End, MachineError> {
    let begun = Instant::now();
    loop {
        match process.next(PAUSE) {
            Event::Ended(end) if end.status.is_some() => return Ok(end),
            Event::Ended(_) => break,
            Event::Told(_) | Event::Quiet if begun.elapsed() > ENDING => break,
            Event::Told(_) | Event::Quiet => {}
        }
    }
    Err(MachineError::StillThere(ENDING.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs a script until it has written its number and, if `has_ended`, until it has ended; and crashes it.
    fn crashed(script: &str, has_ended: bool) -> Crashed {
        let mut process = TaskProcess::start(Command::new("sh").args(["-c", script])).unwrap();
        let number = loop {
            match process.next(PAUSE) {
                Event::Told(Message::Reopened(number)) => break number,
                Event::Quiet => {}
                other => panic!("{other:?}"),
            }
        };
        // One that ended before its line was read has been waited for, and has no such file.
        let runs = || {
            std::fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
        };
        while has_ended && runs() {
            std::thread::yield_now();
        }
        let mut medium = Killed::in_folder(Path::new("."), "test");
        medium.crash(&mut process, &Board::shared(1).unwrap(), &mut Random::seeded(1)).unwrap()
    }

    /// Regression: an engine on a file system of its own was blamed if it said that there is no space and a little was left.
    #[test]
    fn words_about_space_are_believed_only_where_little_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let free = space(folder.path()).map_or(0, |space| space.free_bytes);
        let is_believed = shortage_by_words(folder.path(), "write: No space left on device").is_some();
        assert_eq!(is_believed, free < (64 << 20), "{free} bytes are free");
        assert!(shortage_by_words(folder.path(), "bad magic").is_none());
    }

    #[test]
    fn a_process_that_has_ended_by_itself_was_not_crashed() {
        let tell = r#"echo 'kvdyno-told {"message":{"Reopened":'$$'}}'"#;
        let end = crashed(&format!("{tell}; exit 7"), true).end.unwrap();
        assert_eq!(end.status.unwrap().code(), Some(7));
        let killed = format!("trap 'kill -9 $$' TERM; {tell}; while :; do sleep 0.01; done");
        assert!(crashed(&killed, false).end.is_none());
    }
}
