//! `kvdyno prove --only crash`: crashes databases and compares what is left with what was acknowledged.

use super::certificate::file_hash;
use super::claim::{Claim, Standing, not_here};
use super::{Found, Job, Part, ProveArgs, lock_folder, progress};
use crate::cli::args::split_options;
use crate::cli::error::{CliError, WRONG};
use crate::cli::number::number;
use kvdyno_core::engine::Engine;
use kvdyno_core::results::Durability;
use kvdyno_core::results::certificate::{self, states_text};
use kvdyno_measure::disk::free_bytes;
use kvdyno_measure::file_system::has_no_storage;
use kvdyno_measure::signals;
use kvdyno_measure::text::{Align, Table, counted, listed, parse_bytes, share_text, time_text, wrapped};
use kvdyno_measure::volume::{FILE_SYSTEMS, IMAGES, enter_own_namespace, reap};
use kvdyno_prove::crash::{
    At, Cell, Mode, Order, Outcome, Place, Repeat, Round, Torn, Verdict, crash, kept, outcome, read_again,
    report,
};
use kvdyno_report::CommandLine;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;
use strum::VariantArray;

/// The options of this part and of certificates alone.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Crash")]
#[group(skip)]
pub(super) struct Own {
    /// Kinds of crashes: kill (the process, at a random moment), calls (the process, at each of its calls that change its folder),
    /// cut (the power), or replay (states that a power cut may leave, rebuilt from a recording of what was written) [default: all but
    /// calls; with --certificate, all].
    #[arg(long = "mode", value_name = "MODES", value_delimiter = ',')]
    pub modes: Vec<Mode>,
    /// Number of kills and of power cuts for each engine and level [default: 20; with --certificate, 600 kills and 100 cuts]. With
    /// calls, --rounds limits both the kills at calls and the second kills [default: all calls, and 200 second kills].
    #[arg(long, value_name = "N", value_parser = number(1..=1_000_000_u32))]
    pub rounds: Option<u32>,
    /// Kill only at this call: 57 = before call 57; 57+1 = at the first page boundary within it; 57,12 = then kill the recovering
    /// process before its call 12.
    #[arg(long, value_name = "CALL")]
    pub call: Option<At>,
    /// The most states that replay rebuilds for each engine, level and file system; all of them if its
    /// recording has fewer. A tenth are crashes during a recovery [default: 200; with --certificate, 2000].
    #[arg(long, value_name = "N", value_parser = number(1..=1_000_000_u32))]
    pub states: Option<u32>,
    /// Let replay also tear blocks of 4 KiB: of one that was not flushed, only the first or the last sectors of 512 bytes are there.
    #[arg(long)]
    pub tears: bool,
    /// Rebuild only the state with this number, from 0 to one less than --states.
    #[arg(long, value_name = "NUMBER", value_parser = number(0..=u32::MAX))]
    pub state: Option<u32>,
    /// File systems for power cuts and replay: ext4, ext4-writeback, xfs, btrfs (replay only) [default: ext4,xfs].
    #[arg(long = "file-system", value_name = "NAMES", value_delimiter = ',', value_parser = file_system_name)]
    pub file_systems: Vec<String>,
    #[arg(long, value_name = "DIR",
          help = format!("Create images for power cuts, replay and disk-eio in DIR; in memory, syncs are ten times as fast as on most disks \
                          [default: {IMAGES}]"))]
    pub images: Option<PathBuf>,
    /// Size of an image; XFS needs 300M [default: 512M].
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub image_size: Option<u64>,
    /// Copy the first database of each verdict other than OK to DIR, in the state right after the crash, with a report to the engine's
    /// author: what was done, acknowledged and found, and a program that shows it without kvdyno. DIR must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Check databases again that --keep has saved. Each is copied first.
    #[arg(long, value_name = "FOLDER", num_args = 1.., conflicts_with_all = ["engines", "keep", "json", "modes", "durability", "rounds",
          "call", "states", "tears", "state", "seed", "options", "file_systems", "images", "image_size"])]
    pub kept: Vec<PathBuf>,
}

/// Which crashes, and how many.
pub(super) struct How {
    modes: Vec<Mode>,
    /// Kills at random moments.
    kills: u32,
    /// `None`: at all calls, and the usual number of second kills.
    calls: Option<u32>,
    cuts: u32,
    call: Option<At>,
    states: u32,
    tears: bool,
    state: Option<u32>,
    seed: u64,
    file_systems: Vec<String>,
    images: PathBuf,
    image_size: u64,
    stall: Duration,
    memory: Option<Memory>,
}

/// A folder in memory for databases of processes that are killed, beside the one on a disk. It is removed on drop.
struct Memory {
    folder: PathBuf,
    /// Locks it.
    _lock: File,
}

impl Memory {
    /// A folder that no other kvdyno uses; `None` if the databases are in memory anyway, or if there is no room. Removes what
    /// killed processes have left in others.
    fn beside(data: &Path) -> Option<Memory> {
        let images = Path::new(IMAGES);
        let has_room = || free_bytes(images).is_some_and(|free| free >= MEMORY_BYTES);
        if has_no_storage(data) || !has_no_storage(images) || !has_room() {
            return None;
        }
        let mut own = None;
        for number in 0..MOST_MEMORIES {
            let folder = images.join(format!("kvdyno-crash-{number}"));
            if own.is_some() && !folder.exists() {
                continue;
            }
            // It may be another user's, or another process may use it.
            let Ok(lock) = lock_folder(&folder, &["crash"]) else { continue };
            let memory = Memory { folder, _lock: lock };
            // The others are removed here.
            own = own.or(Some(memory));
        }
        own
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // This removes it only if it is empty.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn file_system_name(text: &str) -> Result<String, String> {
    if FILE_SYSTEMS.contains(&text) {
        return Ok(text.to_string());
    }
    Err(format!(
        "expected {}; on others a power cut may leave anything, whatever an engine does (ext2 has no journal)",
        listed(&FILE_SYSTEMS, "or")
    ))
}

/// Where databases are created if nothing else is said.
const DATA: &str = "kvdyno-results/crash";
const IMAGE_SIZE: u64 = 512 << 20;
/// Free bytes in memory without which no databases are there.
const MEMORY_BYTES: u64 = 1 << 30;
/// Processes that crash databases in memory at the same time, at most.
const MOST_MEMORIES: u32 = 16;
const ROUNDS: u32 = 20;
const STATES: u32 = 200;
/// Seconds without progress.
pub(super) const STALL: u64 = 30;
/// Failures that are shown in full, of a cell whose claim they contradict, and of another one.
const SHOWN: usize = 3;
const SHOWN_OF_OTHERS: usize = 1;
const LINE: usize = 110;
/// The page of a report, in the folder of a kept database.
const PAGE: &str = "README.md";
/// The head of the table of what was crashed.
const COURSES: &str = "What each process had done before the crash: acknowledged commits and rows (median and most), rounds that\n\
                       continued and crashed again, and the stage of the first crash:";
/// The bound of states that are chosen is not that of crashes at random moments.
const REPLAYED: &str = "loss per crash of replay: its states are chosen, and many are of one recording, so the bound is weaker than \
    that of as many crashes at random moments";

/// What was left of each engine and level.
pub(super) struct Crashes {
    outcomes: Vec<Outcome>,
    groups: Vec<Vec<Cell>>,
    /// What repeats a crash.
    how: How,
    data: PathBuf,
    plugins: Vec<PathBuf>,
}

/// Crashes the engines.
pub(super) fn find(job: &Job<'_>) -> Result<Crashes, CliError> {
    let (how, data) = (How::of(job.args), job.args.data(DATA));
    let mut crashes = Crashes {
        outcomes: Vec::new(),
        groups: Vec::new(),
        how,
        data: data.clone(),
        plugins: job.plugins.to_vec(),
    };
    job.in_folder(&data, &["crash", "crash-kept"], || {
        job.tell_without_level();
        let _images = crashes.how.prepared();
        let mut groups = Vec::new();
        for (name, engine, options) in job.each() {
            for level in job.levels(engine) {
                let keep = job.args.crash.keep.as_deref();
                let cells = crashes.how.crashed(engine, name, options, level, &data, keep);
                crashes.report(engine, &cells);
                groups.push(cells);
            }
        }
        Ok(groups)
    })
    .map(|mut groups| {
        groups.retain(|cells: &Vec<Cell>| !cells.is_empty());
        crashes.outcomes = groups.iter().map(|cells| outcome(&cells.iter().collect::<Vec<_>>())).collect();
        crashes.groups = groups;
        crashes
    })
}

impl Found for Crashes {
    fn nothing(&self) -> Option<CliError> {
        self.groups.is_empty().then(|| {
            CliError::usage("none of these engines has a level of --durability")
                .hint("`kvdyno engines NAME` shows the levels of an engine")
        })
    }

    fn text(&self) -> String {
        self.tables()
    }

    fn json(&self) -> Result<serde_json::Value, CliError> {
        let all = self.outcomes.iter().zip(&self.groups).map(|(outcome, cells)| json_of(outcome, cells));
        Ok(serde_json::Value::Array(all.collect()))
    }

    fn claims(&self) -> Vec<Claim> {
        self.outcomes.iter().zip(&self.groups).map(|(outcome, cells)| claim(outcome, cells)).collect()
    }

    fn interrupted(&self) -> &'static str {
        "only the rounds listed above were run"
    }

    fn failure(&self) -> Option<CliError> {
        let cell = self.groups.iter().flatten().find(|cell| cell.is_cut_short())?;
        let text = format!("{}, level {}: not all rounds were run", cell.engine, cell.level);
        Some(CliError::failed(text).hint("the reason is below the table"))
    }

    fn code(&self) -> Result<u8, CliError> {
        if self.outcomes.iter().any(|outcome| outcome.contradicted.is_some()) {
            return Ok(WRONG);
        }
        if let Some(error) = self.failure() {
            return Err(error);
        }
        if self.groups.iter().flatten().all(|cell| cell.rounds.is_empty()) {
            return Err(CliError::failed("nothing was crashed").hint("the table says why"));
        }
        Ok(0)
    }
}

/// Whether what was left is what the level promises.
fn claim(outcome: &Outcome, cells: &[Cell]) -> Claim {
    let (engine, level) = (&outcome.engine, outcome.level);
    let unknown = |reason: &str| not_here(engine, Part::Crash, Some(level), reason);
    let skipped: Vec<String> = cells
        .iter()
        .filter_map(|cell| Some((cell, cell.skipped.as_ref()?)))
        .map(|(cell, reason)| format!("{} on {}: {reason}", cell.mode, cell.file_system))
        .collect();
    let (result, found) = match (&outcome.contradicted, outcome.class_text()) {
        (Some(reason), _) => (Standing::Broken, reason.clone()),
        _ if cells.iter().all(|cell| cell.rounds.is_empty()) || cells.iter().any(Cell::is_cut_short) => {
            return unknown(&skipped.join("; "));
        }
        (None, class) => match untested(level, cells) {
            Some(reason) => return unknown(&[vec![reason.to_string()], skipped].concat().join("; ")),
            None => (Standing::Kept, class.unwrap_or_else(|| "not contradicted".into())),
        },
    };
    Claim { engine: engine.clone(), part: Part::Crash, level: Some(level), result, found }
}

/// Why no crash of these shows that a level is kept: none of them, before which something was acknowledged, is one that the level
/// alone promises to survive.
fn untested(level: Durability, cells: &[Cell]) -> Option<&'static str> {
    let has = |is: fn(Mode) -> bool| cells.iter().any(|cell| is(cell.mode) && cell.loaded() > 0);
    match level {
        Durability::Power if !has(|mode| mode.promised_at() == Durability::Power) => {
            Some("no power cut after an acknowledged commit")
        }
        Durability::Process if !has(|mode| mode.promised_at() == Durability::Process) => {
            Some("no kill after an acknowledged commit")
        }
        _ if !has(|_| true) => Some("no crash after an acknowledged commit"),
        _ => None,
    }
}

/// Reads kept databases again: a line for each.
pub(super) fn read_kept(args: &ProveArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let mut all = Vec::new();
    for folder in &args.crash.kept {
        all.push((folder, kept(folder).map_err(CliError::usage)?));
    }
    let names: Vec<String> = all.iter().map(|(_, kept)| kept.engine.clone()).collect();
    let registry = crate::cli::plugins::registry(plugins, &names)?;
    let data = args.data(DATA);
    let lock = lock_folder(&data, &["crash", "crash-kept"])?;
    signals::count_interrupts();
    let mut is_wrong = false;
    for (folder, kept) in &all {
        let engine = registry.engine(&kept.engine).map_err(|_| {
            CliError::usage(format!("{}: the engine {} is not available", folder.display(), kept.engine))
        })?;
        let stall = args.stall(STALL);
        let Some(again) = read_again(&engine, folder, &data, stall).map_err(CliError::failed)? else {
            break;
        };
        is_wrong |= again.verdict != Verdict::Ok;
        let detail = again.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
        println!("{}: {}{detail}", folder.display(), again.verdict);
        if again.verdict != again.kept.verdict {
            println!("  it was {} when it was kept", again.kept.verdict);
        }
    }
    let _ = fs::remove_dir(&data);
    drop(lock);
    if signals::interrupts() > 0 {
        return Ok(signals::stopped_code());
    }
    Ok(if is_wrong { WRONG } else { 0 })
}

/// The folder for images, which is removed on drop if it was created for them and is empty.
pub(super) struct Images<'h> {
    folder: &'h Path,
    was_there: bool,
}

impl Images<'_> {
    /// Removes what killed processes have left in the folder. If file systems are mounted, hides the mounts of this process from others.
    pub(super) fn in_folder(folder: &Path, are_mounted: bool) -> Images<'_> {
        let images = Images { folder, was_there: folder.exists() };
        for folder in reap(folder) {
            eprintln!("removed {}, left behind by a kvdyno that was killed", folder.display());
        }
        if are_mounted {
            // Without this right, mounting fails too, and the reason is in the report.
            let _ = enter_own_namespace();
        }
        images
    }
}

impl Drop for Images<'_> {
    fn drop(&mut self) {
        if !self.was_there {
            let _ = fs::remove_dir(self.folder);
        }
    }
}

impl Own {
    /// The folder for images.
    pub(super) fn images(&self) -> PathBuf {
        self.images.clone().unwrap_or_else(|| PathBuf::from(IMAGES))
    }

    /// Bytes of an image.
    pub(super) fn image_size(&self) -> u64 {
        self.image_size.unwrap_or(IMAGE_SIZE)
    }

    /// An option that would be ignored is refused, and a folder that is taken.
    pub(super) fn check(&self, is_certificate: bool) -> Result<(), CliError> {
        let states = self.states.unwrap_or(if is_certificate { certificate::STATES } else { STATES });
        match (self.state, &self.keep) {
            _ if self.call.is_some() && self.modes != [Mode::Calls] => {
                Err(CliError::usage("--call needs --mode calls").hint("add --mode calls"))
            }
            _ if self.tears && !self.modes.is_empty() && !self.modes.contains(&Mode::Replay) => {
                Err(CliError::usage("--tears needs --mode replay").hint("add replay to --mode"))
            }
            (Some(_), _) if self.modes != [Mode::Replay] => {
                Err(CliError::usage("--state is the number of a rebuilt state").hint("add --mode replay"))
            }
            (Some(state), _) if state >= states => {
                Err(CliError::usage(format!("there is no state {state} of {states}"))
                    .hint("--state is less than --states"))
            }
            (_, Some(folder))
                if fs::read_dir(folder).map_or(folder.exists(), |mut entries| entries.next().is_some()) =>
            {
                Err(CliError::usage(format!("--keep {}: it is not an empty folder", folder.display()))
                    .hint("name a new folder"))
            }
            _ => Ok(()),
        }
    }
}

impl How {
    /// What the command line asks for.
    pub(super) fn of(args: &ProveArgs) -> How {
        let own = &args.crash;
        let file_systems = match &own.file_systems[..] {
            [] => vec!["ext4".to_string(), "xfs".to_string()],
            named => named.to_vec(),
        };
        let is_certificate = args.certificate.is_wanted;
        let modes = match &own.modes[..] {
            [] => {
                Mode::VARIANTS.iter().copied().filter(|mode| is_certificate || *mode != Mode::Calls).collect()
            }
            named => named.to_vec(),
        };
        let default = |certified, usual| if is_certificate { certified } else { usual };
        let is_kill = modes.contains(&Mode::Kill);
        // Who names a folder wants the databases there.
        let memory = (is_kill && args.data.is_none()).then(|| Memory::beside(Path::new(DATA))).flatten();
        How {
            modes,
            kills: own.rounds.unwrap_or(default(certificate::KILLS, ROUNDS)),
            calls: own.rounds,
            cuts: own.rounds.unwrap_or(default(certificate::CUTS, ROUNDS)),
            call: own.call,
            states: own.states.unwrap_or(default(certificate::STATES, STATES)),
            tears: own.tears,
            state: own.state,
            seed: args.seed,
            file_systems,
            images: own.images(),
            image_size: own.image_size(),
            stall: args.stall(STALL),
            memory,
        }
    }

    /// Removes what killed processes have left, and hides the mounts of this one from others.
    pub(super) fn prepared(&self) -> Images<'_> {
        Images::in_folder(&self.images, self.has(Mode::Cut) || self.has(Mode::Replay))
    }

    /// Whether a kind of crashes is asked for.
    fn has(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }

    /// Crashes an engine at one level, in every place. Databases are in `data`; those that are wrong are kept in `keep`.
    pub(super) fn crashed(
        &self,
        engine: &Engine,
        name: &str,
        options: &[(String, String)],
        level: Durability,
        data: &Path,
        keep: Option<&Path>,
    ) -> Vec<Cell> {
        let mut cells = Vec::new();
        for place in self.places(data) {
            if signals::interrupts() > 0 {
                break;
            }
            let (what, count) = match place {
                Place::Device { .. } => ("state", self.states),
                Place::Calls { .. } => ("call, round", self.kills),
                Place::Volume { .. } => ("cut", self.cuts),
                Place::Folder(_) | Place::Folders { .. } => ("kill", self.kills),
            };
            // How many calls there are is found out.
            let of =
                if matches!(place, Place::Calls { .. }) { String::new() } else { format!(" of {count}") };
            let order = Order {
                engine: split_options(name).0.to_string(),
                options: options.to_vec(),
                level,
                place,
                rounds: count,
                seed: self.seed,
                stall: self.stall,
                keep: keep.map(PathBuf::from),
            };
            cells.push(crash(engine, &order, |round| {
                progress(&format!("{name}, level {level}: {what} {}{of}", round + 1));
            }));
        }
        cells
    }

    /// Where databases are crashed.
    fn places(&self, data: &Path) -> Vec<Place> {
        let mut places = Vec::new();
        if self.has(Mode::Kill) {
            places.push(match &self.memory {
                Some(memory) => Place::Folders { disk: data.to_path_buf(), memory: memory.folder.clone() },
                None => Place::Folder(data.to_path_buf()),
            });
        }
        if self.has(Mode::Calls) {
            places.push(Place::Calls { folder: data.to_path_buf(), most: self.calls, only: self.call });
        }
        if self.has(Mode::Cut) {
            places.extend(self.file_systems.iter().map(|kind| Place::Volume {
                images: self.images.clone(),
                kind: kind.clone(),
                bytes: self.image_size,
            }));
        }
        if self.has(Mode::Replay) {
            places.extend(self.file_systems.iter().map(|kind| Place::Device {
                images: self.images.clone(),
                kind: kind.clone(),
                bytes: self.image_size,
                tears: self.tears,
                only: self.state,
            }));
        }
        places
    }
}

/// An outcome with its rounds.
fn json_of(outcome: &Outcome, cells: &[Cell]) -> serde_json::Value {
    let mut value = serde_json::to_value(outcome).unwrap_or_default();
    let with_counts = |cell: &Cell| {
        let mut value = serde_json::to_value(cell).unwrap_or_default();
        value["bound"] = serde_json::json!(cell.bound());
        let verdicts = counts(cell).map(|(verdict, count)| (verdict.to_string(), serde_json::json!(count)));
        value["verdicts"] = serde_json::Value::Object(verdicts.collect());
        value["stages"] = serde_json::json!(cell.stages());
        value
    };
    value["cells"] = serde_json::Value::Array(cells.iter().map(with_counts).collect());
    value
}

/// The verdicts of a cell that occurred, with their counts.
fn counts(cell: &Cell) -> impl Iterator<Item = (Verdict, usize)> {
    Verdict::VARIANTS.iter().map(|&verdict| (verdict, cell.count(verdict))).filter(|(_, count)| *count > 0)
}

/// How many calls were seen, at how many of them a process was killed, and what was not seen.
fn seen_text(cell: &Cell) -> Option<String> {
    let seen = cell.seen.as_ref()?;
    let seconds = cell.rounds.iter().filter(|round| round.in_recovery).count();
    let calls = counted(seen.calls, "call changes its folder", "calls change its folder");
    let mut text = format!(
        "{calls}, and {} within writes; {} of one process and {seconds} of a second one after it",
        counted(seen.boundaries, "page boundary is", "page boundaries are"),
        counted((cell.rounds.len() - seconds) as u64, "kill", "kills"),
    );
    if !seen.unseen.is_empty() {
        text += &format!("; not seen: {}", listed(&seen.unseen, "and"));
    }
    if seen.moved > 0 {
        text += &format!(
            "; in {} a different call had that number, because threads run as the kernel schedules them",
            counted(u64::from(seen.moved), "round", "rounds")
        );
    }
    Some(text)
}

/// What a process did when it was crashed, and what came after that.
fn course_text(round: &Round) -> String {
    let called = round.called.as_ref().map(|called| format!(", {called}"));
    let state = state_text(round).or(called).unwrap_or_default();
    let setting = round.course.setting().map_or(String::new(), |setting| format!(", {setting}"));
    format!("{}{}{state}{setting}", round.stage, again_text(round))
}

/// What was crashed after the first crash of a round.
fn again_text(round: &Round) -> String {
    let recovery = if round.in_recovery && round.called.is_none() { ", and its recovery" } else { "" };
    let again = round.course.again.map_or(String::new(), |again| {
        let commits = counted(again.commits, "further commit", "further commits");
        format!(", and again after {commits} while {}", again.stage)
    });
    let within = if round.course.is_in_commit { " within a commit" } else { "" };
    format!("{within}{recovery}{again}")
}

/// How the rounds of a cell went: the row of a table.
fn course_row(cell: &Cell) -> Vec<String> {
    let number = |count: Option<u64>| count.map_or("-".into(), |count| count.to_string());
    let (commits, rows) = (cell.commits(), cell.rows());
    let stages: Vec<String> =
        cell.stages().into_iter().map(|(stage, count)| format!("{stage} {count}")).collect();
    vec![
        cell.engine.clone(),
        cell.level.to_string(),
        cell.mode.to_string(),
        cell.file_system.clone(),
        number(commits.map(|(median, _)| median)),
        number(commits.map(|(_, most)| most)),
        number(rows.map(|(median, _)| median)),
        number(rows.map(|(_, most)| most)),
        cell.went_on().to_string(),
        stages.join(", "),
    ]
}

/// The number of rounds in each file system, where a cell has several.
fn places_text(cell: &Cell) -> String {
    let places: Vec<String> =
        cell.places().into_iter().map(|(place, rounds)| format!("on {place} in {rounds}")).collect();
    match places.is_empty() {
        true => String::new(),
        false => format!("; of {} rounds, the database was {}", cell.rounds.len(), listed(&places, "and")),
    }
}

/// Which state of a device was rebuilt, and how small it can be.
fn state_text(round: &Round) -> Option<String> {
    let replayed = round.replayed.as_ref()?;
    let blocks = |kept: u64, pending: u64| match pending {
        0 => "all that was written is flushed".to_string(),
        _ => format!("{kept} of {} after the last flush", counted(pending, "block", "blocks")),
    };
    let mut text = format!(
        ", state {}: after entry {} of {}, {}",
        replayed.state,
        replayed.position,
        replayed.entries,
        blocks(replayed.kept, replayed.pending)
    );
    if let Some(Torn { block, sectors }) = &replayed.torn {
        let sectors: Vec<String> = sectors.iter().map(ToString::to_string).collect();
        text += &format!(", of block {block} only the sectors {}", sectors.join(" "));
    }
    if let Some(smallest) = &replayed.smallest {
        let kept = smallest.blocks.len() as u64;
        text += &format!(
            " (smallest that fails: after entry {}, with {} after the last flush)",
            smallest.position,
            counted(kept, "block", "blocks")
        );
    }
    Some(text)
}

impl Crashes {
    /// The tables, the failures with the commands that repeat them, and what cannot be tested.
    fn tables(&self) -> String {
        let (outcomes, groups) = (&self.outcomes, &self.groups);
        let mut table = Table::with_titles(&[
            ("engine", Align::Left),
            ("version", Align::Left),
            ("level", Align::Left),
            ("crash", Align::Left),
            ("file system", Align::Left),
            ("rounds", Align::Right),
            ("commits", Align::Right),
            ("loss per crash", Align::Right),
            ("mount", Align::Right),
            ("recovery", Align::Right),
            ("longest", Align::Right),
            ("reopen", Align::Right),
            ("verdicts", Align::Left),
        ]);
        let mut courses = Table::with_titles(&[
            ("engine", Align::Left),
            ("level", Align::Left),
            ("crash", Align::Left),
            ("file system", Align::Left),
            ("commits", Align::Right),
            ("most", Align::Right),
            ("rows", Align::Right),
            ("most", Align::Right),
            ("again", Align::Right),
            ("crashed while", Align::Left),
        ]);
        let mut notes = String::new();
        let mut devices: Vec<String> = Vec::new();
        for cell in groups.iter().flatten() {
            let time = |time: Option<(u64, u64)>| {
                let shown = |ns: u64| time_text(ns as f64);
                time.map_or(["-".to_string(), "-".to_string()], |(median, most)| [shown(median), shown(most)])
            };
            let [mount, _] = time(cell.time(|round| round.mount_ns));
            let [recovery, longest] = time(cell.time(|round| round.recovery_ns));
            let [reopen, _] = time(cell.time(|round| round.reopen_ns));
            let losses = match (cell.bound(), cell.loaded()) {
                (_, 0) => "-".into(),
                (Some(bound), _) => format!("< {}", share_text(bound)),
                (None, _) if cell.losses() == 0 => "-".into(),
                // No random moments: the share of calls is no probability.
                (None, _) if cell.mode == Mode::Calls => {
                    format!("{} of {}", cell.losses(), counted(cell.rounds.len() as u64, "kill", "kills"))
                }
                (None, count) => share_text(cell.losses() as f64 / count as f64),
            };
            let verdicts: Vec<String> =
                counts(cell).map(|(verdict, count)| format!("{verdict} {count}")).collect();
            let none = if cell.has_failed { "failed" } else { "skipped" };
            let verdicts = if verdicts.is_empty() { none.into() } else { verdicts.join(", ") };
            table.push(vec![
                cell.engine.clone(),
                cell.version.clone().unwrap_or_else(|| "-".into()),
                cell.level.to_string(),
                cell.mode.to_string(),
                cell.file_system.clone(),
                cell.rounds.len().to_string(),
                cell.rounds.iter().map(|round| round.acked).sum::<u64>().to_string(),
                losses,
                mount,
                recovery,
                longest,
                reopen,
                verdicts,
            ]);
            let head =
                format!("{}, level {}, {} on {}", cell.engine, cell.level, cell.mode, cell.file_system);
            if !cell.rounds.is_empty() {
                courses.push(course_row(cell));
            }
            if cell.by_time() > 0 {
                let text =
                    format!("{} of {} rounds were cut short by time", cell.by_time(), cell.rounds.len());
                notes += &wrapped("", "  ", &format!("{head}: {text}."), LINE);
            }
            if let Some(reason) = &cell.skipped {
                let what = if cell.has_failed { "failed" } else { "skipped" };
                notes += &wrapped("", "  ", &format!("{head}: {what}: {reason}."), LINE);
            }
            if let Some(text) = seen_text(cell) {
                notes += &wrapped("", "  ", &format!("{head}: {text}."), LINE);
            }
            if let Some(text) = states_text(&cell.states) {
                notes += &wrapped("", "  ", &format!("{head}: {text}."), LINE);
            }
            let mut failed: Vec<&Round> =
                cell.rounds.iter().filter(|round| round.verdict != Verdict::Ok).collect();
            // Those that were kept, or made small, first.
            let is_large = |round: &&Round| {
                let replayed = round.replayed.as_ref();
                (round.kept.is_none(), replayed.is_some_and(|replayed| replayed.smallest.is_none()))
            };
            failed.sort_by_key(is_large);
            let most = if cell.contradiction().is_some() { SHOWN } else { SHOWN_OF_OTHERS };
            for round in failed.iter().take(most) {
                let detail = round.detail.as_deref().unwrap_or("");
                let line =
                    format!("{head}: {}, crashed while {}: {detail}", round.verdict, course_text(round));
                notes += &wrapped("", "  ", &line, LINE);
                notes += &format!("  repeat: {}\n", self.repetition(cell, round));
                if let Some(folder) = &round.kept {
                    notes += &format!("  read it again: {}\n", self.reading(folder));
                    if folder.join(PAGE).exists() {
                        notes +=
                            &format!("  report for the engine's author: {}\n", folder.join(PAGE).display());
                    }
                }
            }
            if failed.len() > most {
                notes += &format!("  and {} more; --json lists all rounds\n", failed.len() - most);
            }
            let places = places_text(cell);
            let device = format!("{} on {}: {}{places}", cell.mode, cell.file_system, cell.device);
            if !cell.rounds.is_empty() && !devices.contains(&device) {
                devices.push(device);
            }
        }
        let mut classes = Table::with_titles(&[
            ("engine", Align::Left),
            ("claimed level", Align::Left),
            ("measured class", Align::Left),
            ("claim", Align::Left),
        ]);
        for (outcome, cells) in outcomes.iter().zip(groups) {
            let is_tested = cells.iter().any(|cell| !cell.rounds.is_empty());
            let class = outcome.class_text().unwrap_or_else(|| "-".into());
            let claim = match &outcome.contradicted {
                Some(reason) => format!("contradicted: {reason}"),
                None if is_tested => "not contradicted".into(),
                None => "not tested".into(),
            };
            classes.push(vec![outcome.engine.clone(), outcome.level.to_string(), class, claim]);
        }
        let head = "What was left after crashes of databases that had just acknowledged commits:";
        let is_bounded = |cell: &Cell| cell.mode == Mode::Replay && cell.bound().is_some();
        if groups.iter().flatten().any(is_bounded) {
            devices.push(REPLAYED.into());
        }
        let models: String =
            devices.iter().map(|device| wrapped("", "  ", &format!("{device}."), LINE)).collect();
        let gap = if notes.is_empty() { "" } else { "\n" };
        let courses = match groups.iter().flatten().all(|cell| cell.rounds.is_empty()) {
            true => String::new(),
            false => format!("{COURSES}\n\n{}\n", courses.text()),
        };
        format!("{head}\n\n{}\n{courses}{}{gap}{notes}\n{models}", table.text(), classes.text())
    }

    /// The command that repeats a round: the same commits, and a crash at a moment chosen in the same way.
    fn repetition(&self, cell: &Cell, round: &Round) -> CommandLine {
        let option = |(name, value): &(String, String)| format!("{}.{name}={value}", cell.engine);
        let command = CommandLine::of("prove --only crash")
            .with(&cell.engine)
            .with_flags("--mode", [cell.mode.to_string()])
            .with_flags("--durability", [cell.level.to_string()])
            .with_flags("--option", cell.options.iter().map(option));
        let how = &self.how;
        let is_kill = matches!(cell.mode, Mode::Kill | Mode::Calls);
        let data = self.data.as_path();
        let folders = [("--data", data, DATA, true), ("--images", how.images.as_path(), IMAGES, !is_kill)];
        let file_system = (!is_kill).then(|| cell.file_system.to_string());
        let mut command = self.with_plugins(command).with_flags("--file-system", file_system);
        for (flag, folder, usual, is_used) in folders {
            if is_used && folder != Path::new(usual) {
                command = command.with(flag).with_path(folder);
            }
        }
        if how.tears && round.replayed.is_some() {
            command = command.with("--tears");
        }
        match (&round.replayed, &round.called) {
            (_, Some(called)) => command
                .with_flags("--call", [called.at().to_string()])
                .with_flags("--seed", [round.seed.to_string()]),
            (Some(replayed), _) => command
                .with_flags("--states", [how.states.to_string()])
                .with_flags("--state", [replayed.state.to_string()])
                .with_flags("--seed", [how.seed.to_string()]),
            (None, None) => {
                command.with_flags("--rounds", ["1"]).with_flags("--seed", [round.seed.to_string()])
            }
        }
    }

    /// The command that reads a kept database again.
    fn reading(&self, folder: &Path) -> CommandLine {
        self.with_plugins(CommandLine::of("prove --kept").with_path(folder))
    }

    /// Writes a report beside each database that was kept. One that cannot be written is told, and the results stay.
    fn report(&self, engine: &Engine, cells: &[Cell]) {
        for cell in cells {
            for round in cell.rounds.iter().filter(|round| round.kept.is_some()) {
                let folder = round.kept.as_deref().unwrap_or(Path::new(""));
                let (command, again) = (self.repetition(cell, round), self.reading(folder));
                let course = course_text(round);
                let written = file_hash(engine).map_err(|error| error.to_string()).and_then(|driver| {
                    let (command, again) = (command.to_string(), again.to_string());
                    let repeat =
                        Repeat { course: &course, command: &command, again: &again, driver: &driver };
                    report(engine, round, &self.data, self.how.stall, &repeat)
                        .map_err(|error| error.to_string())
                });
                if let Err(error) = written {
                    eprintln!("{}: no report was written: {error}", folder.display());
                }
            }
        }
    }

    fn with_plugins(&self, command: CommandLine) -> CommandLine {
        command.with_flags("--plugins", self.plugins.iter().map(|folder| folder.display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    /// How many crashes of each kind these words ask for; without a kind, it is not asked for.
    fn asked(words: &str) -> [Option<u32>; 4] {
        let command = ProveArgs::augment_args(clap::Command::new("prove"));
        let words = ["prove", "lmdb"].into_iter().chain(words.split_whitespace());
        let how = How::of(&ProveArgs::from_arg_matches(&command.get_matches_from(words)).unwrap());
        let of = |mode: Mode, count: Option<u32>| how.has(mode).then_some(count.unwrap_or(u32::MAX));
        [
            of(Mode::Kill, Some(how.kills)),
            of(Mode::Calls, how.calls),
            of(Mode::Cut, Some(how.cuts)),
            of(Mode::Replay, Some(how.states)),
        ]
    }

    #[test]
    fn a_certificate_has_more_crashes_and_kills_at_every_call() {
        let all = Some(u32::MAX);
        assert_eq!(asked(""), [Some(20), None, Some(20), Some(200)]);
        assert_eq!(asked("--certificate"), [Some(600), all, Some(100), Some(2000)]);
        assert_eq!(asked("--certificate --rounds 7"), [Some(7), Some(7), Some(7), Some(2000)]);
        assert_eq!(asked("--certificate --mode cut"), [None, None, Some(100), None]);
        assert_eq!(asked("--mode calls"), [None, all, None, None]);
    }
}
