//! Loads plug-ins in a separate process first, which reports their engines: a plug-in that exits, crashes or hangs while
//! being loaded makes only its own engines unavailable.

use crate::engine::{Engine, PluginError, PluginsTask, Reported, harmless};
use kvdyno_measure::shortage::{Scene, telling_line};
use kvdyno_measure::text::middle_text;
use kvdyno_measure::{Event, Fate, Task, memory_file};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of the names of plug-ins that are loaded by one process: an argument of a process has at most 128 KiB.
const NAMES: usize = 32 << 10;
/// A process that has not finished after this time is killed.
const LIMIT: Duration = Duration::from_secs(10);
/// Characters of a message that are shown.
const MESSAGE: usize = 200;
/// The time between two checks of a process.
const PAUSE: Duration = Duration::from_millis(2);

/// Why no process can examine plug-ins, which is no plug-in's fault.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It cannot be started.
    #[error("cannot start a process to load plug-ins: {0}")]
    Start(io::Error),
    /// It has ended before the first plug-in: its message.
    #[error("cannot load plug-ins: {}", .0.as_deref().unwrap_or("their process has ended early"))]
    Early(Option<String>),
}

/// What is in a plug-in, or the reason why it cannot be loaded.
type Examined = Result<Vec<Engine>, PluginError>;

/// The result for each plug-in.
type Found = Vec<Option<Examined>>;

/// The engines of each plug-in, or the reason why it cannot be loaded. `executable` runs the task. All are loaded in one process, or in
/// a few if there are very many; if it ends early, the others are loaded in another one.
pub fn described(executable: &Path, files: &[PathBuf]) -> Result<Vec<Examined>, ProbeError> {
    // A task is text.
    let refused = |file: &PathBuf| file.to_str().is_none().then_some(Err(PluginError::Path));
    let mut found: Found = files.iter().map(refused).collect();
    loop {
        let mut bytes = 0;
        let fits = |place: &usize| {
            bytes += files[*place].as_os_str().len();
            bytes <= NAMES
        };
        let mut left = (0..files.len()).filter(|place| found[*place].is_none());
        let first = left.next();
        let open: Vec<usize> = first.into_iter().chain(left.take_while(fits)).collect();
        let Some(&first) = open.first() else { break };
        let mut ended = load(executable, files, &open, &mut found)?;
        if let Some((place, _)) = ended
            && place != first
        {
            // A plug-in that was loaded before may have caused this.
            ended = load(executable, files, &[place], &mut found)?;
        }
        if let Some((place, why)) = ended {
            found[place] = Some(Err(PluginError::Died(why)));
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// Loads the plug-ins at `places` in a process and stores the results. Returns the plug-in at which the process ended
/// early, and how.
fn load(
    executable: &Path,
    files: &[PathBuf],
    places: &[usize],
    found: &mut Found,
) -> Result<Option<(usize, String)>, ProbeError> {
    let task = PluginsTask { files: places.iter().map(|place| files[*place].clone()).collect() };
    let mut at = places[0];
    let (reports, why) = run(executable, &task)?;
    for line in reports {
        match line {
            Reported::Begun(index) => at = places.get(index).copied().unwrap_or(at),
            Reported::Ended(index, engines) => {
                let Some(&place) = places.get(index) else { continue };
                let engine = |description| Ok(Engine::described(description, &files[place])?);
                let engines = engines.map_err(PluginError::Told);
                found[place] = Some(engines.and_then(|all| all.into_iter().map(engine).collect()));
            }
        }
    }
    Ok(found[at].is_none().then_some((at, why)))
}

/// Runs a process; returns its reports and how it ended.
fn run(executable: &Path, task: &PluginsTask) -> Result<(Vec<Reported>, String), ProbeError> {
    let mut err = memory_file().map_err(ProbeError::Start)?;
    let stderr = err.try_clone().map_err(ProbeError::Start)?;
    let started = task.start(executable, |command| {
        // Some engines create a folder for temporary files as soon as they are loaded, which stays if this process is killed. There
        // is no place for one below a device.
        command.stderr(stderr).env("TMPDIR", "/dev/null");
    });
    let mut process = started.map_err(ProbeError::Start)?;
    let until = Instant::now() + LIMIT;
    let mut reports = Vec::new();
    let mut is_late = false;
    let end = loop {
        match process.next(PAUSE) {
            Event::Told(reported) => reports.push(reported),
            Event::Quiet if !is_late && Instant::now() >= until => {
                is_late = true;
                process.kill();
            }
            Event::Quiet => {}
            Event::Ended(end) => break end,
        }
    };
    let stderr = content(&mut err);
    if reports.is_empty() && !is_late {
        // It has ended before the first plug-in.
        return Err(ProbeError::Early(message(&stderr).map(String::from)));
    }
    let fate = (!is_late).then(|| end.fate());
    Ok((reports, why(fate, &stderr)))
}

/// How a process ended before it was done; `None`: it was killed because it was late.
fn why(fate: Option<Fate>, stderr: &str) -> String {
    let how = match fate {
        None | Some(Fate::Unkillable) => format!("did not load within {} s", LIMIT.as_secs()),
        Some(Fate::Died(signal)) => format!("crashed while being loaded ({signal})"),
        Some(Fate::Exited(code)) => format!("ended the process while being loaded (exit code {code})"),
    };
    let Some(message) = message(stderr) else { return how };
    let message = middle_text(&harmless(message), MESSAGE);
    let place = std::env::temp_dir();
    let scene = Scene::of_database(&place);
    match (scene.of_death(&how, stderr.lines()), scene.suspects()) {
        (Some(shortage), _) => format!("{how}: {}; last message: {message}", shortage.text),
        (None, Some(low)) => format!("{how}; these are low: {low}; last message: {message}"),
        (None, None) => format!("{how}; last message: {message}"),
    }
}

/// The line that says why it ended.
fn message(stderr: &str) -> Option<&str> {
    telling_line(stderr.lines())
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // Ignore errors: the message is optional.
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
