//! A disk of which one write fails. The database is in a file system over a device in user space, which returns EIO for one request. As
//! with a real disk, the next sync returns EIO, once, and the kernel then takes the page for clean and does not write it again. An engine
//! that repeats the sync until it succeeds, or ignores the error, loses what it has acknowledged.

use super::pass::{Run, Step};
use super::probe::{Probe, STDERR, Story, Target, chosen, empty, run_with};
use super::{FaultKind, Point, Row};
use crate::child::Ended;
use crate::crash::{FailingDevice, Subject};
use crate::machine::MachineError;
use kvdyno_core::results::Durability;
use kvdyno_measure::volume::Volume;
use kvdyno_measure::{copy_folder, signals};
use std::path::{Path, PathBuf};

/// The file system; blocks of a file are told from its own by what the kernel logs.
const FILE_SYSTEM: &str = "ext4";
/// The folder of the database in it.
const DATABASE: &str = "database";
/// Writes that are tried for each one of a file that is to fail: most are of the file system's journal.
const ATTEMPTS: usize = 8;

/// What became of one run on such a disk.
struct Ran {
    volume: Volume,
    story: Story,
    /// Writes of the disk while the process ran, without one that failed.
    writes: u64,
    /// Whether a write of a file has failed, and not one of the file system's own.
    has_failed: bool,
}

impl Probe<'_> {
    /// Makes writes of the disk fail, at level `power`: below it no commit waits for the disk.
    pub(super) fn disk_row(&self) -> Result<Row, MachineError> {
        let mut row = empty(self.target, FaultKind::DiskEio, None);
        (row.version, row.level) = (self.version.clone(), self.level);
        if self.level == Durability::Power
            && let Err(error) = self.disk_points(&mut row)
        {
            row.skipped = Some(error.to_string());
        }
        Ok(row)
    }

    fn disk_points(&self, row: &mut Row) -> Result<(), MachineError> {
        for (after_kill, share) in [(false, self.target.points.div_ceil(2)), (true, self.target.points / 2)] {
            let Some(prepared) = (if after_kill { self.killed.as_ref() } else { Some(&self.closed) }) else {
                continue;
            };
            let calm = self.on_disk(prepared, None, false)?;
            if let Some(fault) = calm.story.fault() {
                row.skipped = Some(format!("without a fault: {fault}"));
                return Ok(());
            }
            row.calls += calm.writes;
            let mut points = 0_usize;
            let writes = chosen([0, 0, calm.writes], ATTEMPTS * share, self.target.seed);
            // Those of a pass are in all parts of the run.
            let passes = (0..ATTEMPTS).flat_map(|first| writes.iter().skip(first).step_by(ATTEMPTS));
            for write in passes.copied() {
                if points == share {
                    break;
                }
                if signals::interrupts() > 0 {
                    row.skipped = Some("interrupted by the user".into());
                    return Ok(());
                }
                let Ran { mut volume, story, has_failed, .. } =
                    self.on_disk(prepared, Some(write), points.is_multiple_of(2))?;
                // The kernel writes when it likes: the chosen write may not come, or be one of the file system.
                if !has_failed {
                    continue;
                }
                let check = |step| {
                    volume.present().map_err(MachineError::from)?;
                    let story = run_with(self.target, &volume.folder().join(DATABASE), &self.words(), step);
                    let at_fault = unless_at_fault(&volume);
                    volume.withdraw().map_err(MachineError::from)?;
                    at_fault.and(story)
                };
                row.points.push(Point { after_kill, ..self.point(write, &story, check)? });
                points += 1;
                if matches!(story.ended, Some(Ended::Stalled(_))) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Runs a process on a copy of a database; the write of the disk with this number, from 1, fails.
    fn on_disk(&self, prepared: &Path, write: Option<u64>, is_killed: bool) -> Result<Ran, MachineError> {
        let Target { images, image_bytes, .. } = self.target;
        let mut volume = Volume::formatted(images, FILE_SYSTEM, *image_bytes).map_err(MachineError::from)?;
        let subject = Subject {
            engine: self.target.engine.clone(),
            plugin: self.target.plugin.clone(),
            level: self.target.level,
            options: self.target.options.clone(),
            threads: 1,
        };
        let device = FailingDevice::under(&mut volume, &subject)?;
        let ran = self.run_on(&device, &volume, prepared, write, is_killed);
        device.remove(&mut volume)?;
        let (story, writes, has_failed) = ran?;
        Ok(Ran { volume, story, writes, has_failed })
    }

    fn run_on(
        &self,
        device: &FailingDevice,
        volume: &Volume,
        prepared: &Path,
        write: Option<u64>,
        is_killed: bool,
    ) -> Result<(Story, u64, bool), MachineError> {
        let folder = volume.create_folder(DATABASE).map_err(MachineError::from)?;
        copy_folder(prepared, &folder).map_err(MachineError::from)?;
        volume.sync().map_err(MachineError::from)?;
        let before = device.writes()?;
        if let Some(write) = write {
            device.fail(before + write)?;
        }
        // The next commits may write the page again: one that is killed makes none.
        let until = write.filter(|_| is_killed).map(|_| device.file().to_path_buf());
        let step = Step::Run(Run { fault: None, is_killed, until });
        let story = run_with(self.target, &folder, &self.words(), step)?;
        let writes = device.writes()? - before;
        let is_of_file_system = volume.failure_of_its_own().map_err(MachineError::from)?.is_some();
        // After that, because what was made to fail is in the log of the kernel, too.
        unless_at_fault(volume)?;
        Ok((story, writes, write.is_some() && device.has_failed() && !is_of_file_system))
    }

    /// The file for what a process writes to stderr: not on the disk that fails.
    fn words(&self) -> PathBuf {
        self.closed.with_file_name(STDERR)
    }
}

/// An engine is not to blame for a folder of images that was full.
fn unless_at_fault(volume: &Volume) -> Result<(), MachineError> {
    volume.trouble().map_or(Ok(()), |trouble| Err(MachineError::Trouble(trouble)))
}
