//! A slice of a plan: which one this process measures, and what is left of it.

use super::error::CliError;
use super::request::RunArgs;
use super::run::{check_resumed, observed_run, try_cycles};
use kvdyno_core::engine::Registry;
use kvdyno_core::results::campaign::ReadCampaign;
use kvdyno_core::results::campaign::{Block, PLAN_LIMIT_BYTES};
use kvdyno_core::results::certificate::sha256;
use kvdyno_core::results::store::{RunFolder, StoreError, lock_idle, runs_below};
use kvdyno_core::results::{Campaign, Estimate, MeasuredOn, Part, Plan, Shard, Trial, random_suffix};
use kvdyno_core::runner;
use kvdyno_measure::text::{counted, listed};
use kvdyno_measure::{boot_id, read_limited};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The digits of a machine's id.
const MACHINE_DIGITS: usize = 8;

/// The maximum number of folders of one slice.
const MOST_TAKES: u32 = 1000;

/// How long another process may take to create a folder, or to end after it was killed: a process that it was starting may hold its
/// lock for a moment.
const PATIENCE: Duration = Duration::from_secs(4);

/// The pause between two looks at the folders.
const POLL: Duration = Duration::from_millis(100);

/// The value of --shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShardChoice {
    /// From the variables of the scheduler; some schedulers do not report the number of slices.
    Auto(Option<u32>),
    /// As given.
    Given(Shard),
}

impl std::str::FromStr for ShardChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<ShardChoice, String> {
        let count = |text: &str| text.parse::<u32>().ok().filter(|count| *count > 0);
        let expected = || "expected a slice and the number of slices, such as 3/16, or auto".to_string();
        let (index, of) = match text.split_once('/') {
            None if text == "auto" => return Ok(ShardChoice::Auto(None)),
            None => return Err(expected()),
            Some((index, of)) => (index, count(of).ok_or_else(expected)?),
        };
        match count(index) {
            _ if index == "auto" => Ok(ShardChoice::Auto(Some(of))),
            Some(index) if index <= of => Ok(ShardChoice::Given(Shard { index, of })),
            Some(index) => Err(format!("there is no slice {index} of {of}")),
            None => Err(expected()),
        }
    }
}

/// A place in a group of processes, as a scheduler reports it.
struct Place {
    scheduler: &'static str,
    /// From 0.
    index: u32,
    /// None: the scheduler does not report it.
    of: Option<u32>,
    /// The number that the user has given to the task; none: the scheduler counts.
    task: Option<u32>,
}

const SLURM_ARRAY: &str = "a Slurm array";

/// The places that the variables of schedulers describe. A group of one process is no group.
/// `has_number`: the user has given the number of slices.
fn places(variable: &dyn Fn(&str) -> Option<String>, has_number: bool) -> Result<Vec<Place>, CliError> {
    let number = |name: &str| -> Result<Option<u32>, CliError> {
        let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        text.trim()
            .parse()
            .map(Some)
            .map_err(|_| CliError::usage(format!("{name}={text}: expected a number")))
    };
    let mut places = Vec::new();
    if let Some(index) = number("JOB_COMPLETION_INDEX")? {
        places.push(Place { scheduler: "Kubernetes", index, of: None, task: None });
    }
    if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
        places.push(match has_number {
            true => Place { scheduler: SLURM_ARRAY, index: 0, of: None, task: Some(id) },
            false => slurm_array(id, &number)?,
        });
    }
    let by_rank = |scheduler, rank: &str, size: &str| -> Result<Option<Place>, CliError> {
        let both = number(rank)?.zip(number(size)?);
        Ok(both.map(|(index, of)| Place { scheduler, index, of: Some(of), task: None }))
    };
    let of_mpi = match by_rank("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")? {
        Some(place) => Some(place),
        None => by_rank("MPI (PMI)", "PMI_RANK", "PMI_SIZE")?,
    };
    match of_mpi {
        Some(place) => places.push(place),
        // mpirun starts its ranks below steps of Slurm, whose variables they inherit.
        None => places.extend(by_rank("a Slurm step", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")?),
    }
    places.extend(by_rank("AWS Batch", "AWS_BATCH_JOB_ARRAY_INDEX", "AWS_BATCH_JOB_ARRAY_SIZE")?);
    let has_several = |place: &Place| place.of != Some(1);
    if places.iter().any(has_several) {
        places.retain(has_several);
    }
    Ok(places)
}

/// The place of a task in a Slurm array, whose tasks may have any numbers.
fn slurm_array(id: u32, number: &dyn Fn(&str) -> Result<Option<u32>, CliError>) -> Result<Place, CliError> {
    let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
    let (last, of) = (number("SLURM_ARRAY_TASK_MAX")?, number("SLURM_ARRAY_TASK_COUNT")?);
    let step = number("SLURM_ARRAY_TASK_STEP")?.filter(|step| *step > 0).unwrap_or(1);
    let is_regular = last
        .zip(of)
        .is_none_or(|(last, of)| last.checked_sub(first) == Some(of.saturating_sub(1).saturating_mul(step)));
    let offset = id.checked_sub(first).filter(|offset| is_regular && offset % step == 0);
    let offset = offset.ok_or_else(|| {
        CliError::usage(format!(
            "the tasks of the Slurm array are not evenly spaced, so task {id} has no place among them"
        ))
    })?;
    Ok(Place { scheduler: SLURM_ARRAY, index: offset / step, of, task: Some(id) })
}

/// The slice that this process measures.
fn shard(choice: Option<ShardChoice>, variable: &dyn Fn(&str) -> Option<String>) -> Result<Shard, CliError> {
    let of_user = match choice {
        None => return Ok(Shard { index: 1, of: 1 }),
        Some(ShardChoice::Given(shard)) => return Ok(shard),
        Some(ShardChoice::Auto(of)) => of,
    };
    let by_hand = "give the slice as --shard I/N";
    let places = places(variable, of_user.is_some())
        .map_err(|error| CliError::usage(format!("--shard auto: {error}")).hint(by_hand))?;
    let place = match &places[..] {
        [] => {
            return Err(CliError::usage(
                "--shard auto: no variables of Slurm, Kubernetes, MPI or AWS Batch are set",
            )
            .hint(by_hand));
        }
        [place] => place,
        several => {
            let each: Vec<String> = several
                .iter()
                .map(|place| {
                    let of = place.of.map_or(String::new(), |of| format!(" of {of}"));
                    format!("{} reports {}{of}", place.scheduler, u64::from(place.index) + 1)
                })
                .collect();
            return Err(CliError::usage(format!("--shard auto: {}", listed(&each, "and"))).hint(by_hand));
        }
    };
    let Some(of) = of_user.or(place.of) else {
        let text = format!("--shard auto: {} does not report the number of slices", place.scheduler);
        return Err(CliError::usage(text).hint("add it: --shard auto/N"));
    };
    // With a number of slices, the number of a task is that of its slice, so that some tasks can be submitted again.
    let number = match place.task.filter(|_| of_user.is_some()) {
        Some(task) => u64::from(task),
        None => u64::from(place.index) + 1,
    };
    if number == 0 || number > of.into() {
        let text = format!("--shard auto: {} reports slice {number} of {of}", place.scheduler);
        return Err(
            CliError::usage(text).hint(format!("number the tasks from 1 to {of}, or start {of} of them"))
        );
    }
    Ok(Shard { index: number as u32, of })
}

/// What there is to measure.
pub(super) enum Begun {
    /// A folder with trials that have no record yet, and lines for the user.
    Folder(Box<RunFolder>, Vec<String>),
    /// Nothing, and why.
    Nothing(String),
}

/// Reads a plan.
pub(super) fn read_plan(file: &Path) -> Result<ReadCampaign, CliError> {
    let bytes = read_limited(file, PLAN_LIMIT_BYTES).map_err(CliError::cannot("read", file))?;
    Campaign::parse(&bytes).map_err(|error| {
        CliError::usage(format!("{}: {error}", file.display())).hint("`kvdyno plan` writes plans")
    })
}

/// Finds what is left of the slice, and opens its folder or creates one. Everything that can be refused is refused before that.
pub(super) fn begin(args: &RunArgs, registry: &Registry, file: &Path) -> Result<Begun, CliError> {
    check_alone(args)?;
    let shard = shard(args.shard, &|name| std::env::var(name).ok())?;
    let ReadCampaign { campaign, id } = read_plan(file)?;
    check_machine(&campaign, file)?;
    let machine = machine_id(&id);
    let blocks = shard.blocks(&campaign.plan.trials);
    if blocks.is_empty() {
        let all = counted(
            kvdyno_core::results::campaign::blocks(&campaign.plan.trials).len() as u64,
            "block",
            "blocks",
        );
        return Ok(Begun::Nothing(format!("slice {shard} is empty: the plan has {all}")));
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let known = Known::find(args, &id, shard)?;
        let left = known.left(&campaign, &blocks, &machine);
        let may_change = Instant::now() < deadline;
        if may_change && !left.busy.is_empty() {
            std::thread::sleep(POLL);
            continue;
        }
        if left.trials.is_empty() {
            return match left.busy.first() {
                None => Ok(Begun::Nothing(format!("slice {shard}: all of its trials have records"))),
                Some(folder) => Err(is_busy(shard, folder)),
            };
        }
        let ids: HashSet<&str> = left.trials.iter().map(|trial| trial.id.as_str()).collect();
        let planned = left.trials.len();
        let mut notes = vec![format!(
            "slice {shard}: {} on machine {machine}",
            counted(planned as u64, "trial", "trials")
        )];
        notes.extend(left.busy.first().map(|folder| {
            format!(
                "other blocks of the slice are being measured by the process that writes to {}",
                folder.display()
            )
        }));
        if let Some(path) = known.to_resume(&ids, &machine) {
            let results = match RunFolder::resume(path) {
                Err(StoreError::Locked(_)) if may_change => {
                    std::thread::sleep(POLL);
                    continue;
                }
                Err(StoreError::Locked(path)) => return Err(is_busy(shard, &path)),
                resumed => resumed?,
            };
            check_resumed(&results, registry)?;
            return Ok(Begun::Folder(Box::new(results), notes));
        }
        let part = NewPart { campaign: &campaign, id: &id, shard, machine: &machine };
        match part.create(args, registry, left.trials, &|path| known.state(path, may_change))? {
            Some(results) => return Ok(Begun::Folder(Box::new(results), notes)),
            // Another process has created the folder at the same time, or has died while it did.
            None => std::thread::sleep(POLL),
        }
    }
}

/// Refuses arguments that the plan has determined.
fn check_alone(args: &RunArgs) -> Result<(), CliError> {
    let none =
        super::run_args(&["kvdyno".to_string(), "run".to_string()]).expect("these are words of `kvdyno run`");
    let (given, none) = (args.parts(), none.parts());
    let differ = given.iter().zip(&none).filter(|(given, none)| given != none);
    let names: Vec<&str> = differ.map(|(given, _)| given.0).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(format!("a plan determines its own {}", listed(&names, "and")))
        .hint("omit them, or make another plan with `kvdyno plan`"))
}

/// Refuses a plan of another version, and a machine with fewer CPUs than the plan was made for.
fn check_machine(campaign: &Campaign, file: &Path) -> Result<(), CliError> {
    let own = env!("CARGO_PKG_VERSION");
    if campaign.tool_version != own {
        let text = format!(
            "{} was made by kvdyno {}, and this is kvdyno {own}: their figures are not comparable",
            file.display(),
            campaign.tool_version
        );
        return Err(CliError::not_comparable(text).hint("use that version, or make a new plan with this one"));
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    if cpus < campaign.cpus as usize {
        return Err(CliError::usage(format!(
            "the plan is for machines with {}; this process may use {cpus}",
            counted(campaign.cpus.into(), "CPU", "CPUs")
        ))
        .hint("use a larger machine, request its CPUs from the scheduler, or plan with --machine-cpus"));
    }
    if campaign.plan.trials.iter().any(|trial| trial.counts_cycles) {
        try_cycles()?;
    }
    Ok(())
}

/// The id of this machine in a campaign. Without a random number of the kernel, each process is a machine of its own, so that
/// blocks are never put together from several of them.
fn machine_id(campaign: &str) -> String {
    let boot = boot_id().unwrap_or_else(|| format!("{:04x}{:04x}", random_suffix(), random_suffix()));
    let mut id = sha256(format!("{campaign} {boot}").as_bytes());
    id.truncate(MACHINE_DIGITS);
    id
}

fn is_busy(shard: Shard, folder: &Path) -> CliError {
    CliError::failed(format!(
        "slice {shard} is being measured by the process that writes to {}",
        folder.display()
    ))
    .hint("wait until it has ended, or stop it")
}

/// A folder of the campaign whose trials may belong to the slice.
struct Earlier {
    folder: RunFolder,
    machine: String,
    is_busy: bool,
}

/// The folders of the campaign.
struct Known(Vec<Earlier>);

/// What an existing folder with the name of a new one is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    /// An earlier part, or what a process left that died while it created the folder.
    Taken,
    /// That of another process, which was created after the folders were read or is being created.
    Fresh,
}

/// What is left of a slice.
struct Left {
    trials: Vec<Trial>,
    /// The folders of processes that measure blocks of the slice now.
    busy: Vec<PathBuf>,
}

impl Known {
    /// Opens the folders in the results folder that may have trials of the slice: the same slice of all takes, and all slices
    /// of another cut.
    fn find(args: &RunArgs, campaign: &str, shard: Shard) -> Result<Known, CliError> {
        let mut all = Vec::new();
        if !args.results.is_dir() {
            return Ok(Known(all));
        }
        for path in runs_below(&args.results)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(slice) = name.strip_prefix(campaign).and_then(|rest| rest.strip_prefix('-')) else {
                continue;
            };
            let mut words = slice.split('-');
            let (index, of) = (words.next(), words.nth(1));
            let is_other = of.is_some_and(|of| of == shard.of.to_string())
                && index.is_some_and(|index| index != shard.index.to_string());
            if is_other {
                continue;
            }
            // The lock first: records that are added later are of a process that is busy.
            let is_busy = lock_idle(&path).is_none();
            let folder = RunFolder::open(&path)?;
            let Some(part) = folder.run().campaign.as_ref().filter(|part| part.slice.is_some()) else {
                continue;
            };
            let machine = part.machines.first().map_or(String::new(), |on| on.id.clone());
            all.push(Earlier { machine, is_busy, folder });
        }
        all.sort_by(|one, other| one.folder.path().cmp(other.folder.path()));
        Ok(Known(all))
    }

    fn state(&self, path: &Path, may_be_created: bool) -> Existing {
        let is_known = self.0.iter().any(|earlier| earlier.folder.path() == path);
        let is_run = path.join("run.json").is_file();
        if is_known || (!is_run && !may_be_created) { Existing::Taken } else { Existing::Fresh }
    }

    /// The trials of blocks that no machine has finished and that no process is measuring, without those that this machine has
    /// measured.
    fn left(&self, campaign: &Campaign, blocks: &[Block], machine: &str) -> Left {
        let trials = &campaign.plan.trials;
        let mut done: HashMap<&str, HashSet<&str>> = HashMap::new();
        let mut begun: HashMap<&str, &Path> = HashMap::new();
        for earlier in &self.0 {
            for trial in &earlier.folder.run().plan.trials {
                if earlier.folder.is_done(&trial.id) {
                    done.entry(&earlier.machine).or_default().insert(&trial.id);
                } else if earlier.is_busy {
                    begun.insert(&trial.id, earlier.folder.path());
                }
            }
        }
        let mut left = Left { trials: Vec::new(), busy: Vec::new() };
        for block in blocks {
            let own = || block.trials.iter().map(|at| &trials[*at]);
            let is_done = |ids: &HashSet<&str>| own().all(|trial| ids.contains(trial.id.as_str()));
            if done.values().any(is_done) {
                continue;
            }
            if let Some(folder) = own().find_map(|trial| begun.get(trial.id.as_str())) {
                left.busy.push(folder.to_path_buf());
                continue;
            }
            let here = done.get(machine);
            let is_left = |trial: &&Trial| here.is_none_or(|ids| !ids.contains(trial.id.as_str()));
            left.trials.extend(own().filter(is_left).cloned());
        }
        left
    }

    /// The folder of a process that has ended on this machine and whose trials without records are those that are left.
    fn to_resume(&self, left: &HashSet<&str>, machine: &str) -> Option<&Path> {
        let fits = |earlier: &&Earlier| {
            let trials = &earlier.folder.run().plan.trials;
            let open = trials.iter().filter(|trial| !earlier.folder.is_done(&trial.id));
            let open: HashSet<&str> = open.map(|trial| trial.id.as_str()).collect();
            !earlier.is_busy && earlier.machine == machine && open == *left
        };
        self.0.iter().find(fits).map(|earlier| earlier.folder.path())
    }
}

/// What the folder of a new part needs.
struct NewPart<'a> {
    campaign: &'a Campaign,
    id: &'a str,
    shard: Shard,
    machine: &'a str,
}

impl NewPart<'_> {
    /// Creates the folder. None: another process was faster.
    fn create(
        &self,
        args: &RunArgs,
        registry: &Registry,
        trials: Vec<Trial>,
        state: &dyn Fn(&Path) -> Existing,
    ) -> Result<Option<RunFolder>, CliError> {
        let whole = &self.campaign.plan;
        let ids: HashSet<&str> = trials.iter().map(|trial| trial.id.as_str()).collect();
        let own = self.campaign.trial_estimates.iter().filter(|of| ids.contains(of.trial.as_str()));
        let seconds = own.map(|of| of.seconds).sum();
        let estimate = whole.estimate.map(|whole| Estimate { seconds, ..whole });
        let (name, command) = (whole.name.clone(), whole.command.clone());
        let plan = Plan { name, command, trials, reference: whole.reference.clone(), race: None, estimate };
        check_plan(&plan, registry)?;
        let mut run = observed_run(args, registry, plan, self.campaign.absent.clone())?;
        run.warnings.extend(self.campaign.warnings.clone());
        run.campaign = Some(Part {
            campaign: self.id.to_string(),
            trials: whole.trials.len() as u32,
            slice: Some(self.shard.to_string()),
            machines: vec![MeasuredOn {
                id: self.machine.to_string(),
                machine: run.machine.clone(),
                clock: run.clock.clone(),
                warnings: run.warnings.clone(),
                trials: Vec::new(),
            }],
        });
        let Shard { index, of } = self.shard;
        for take in 1..=MOST_TAKES {
            let name = format!("{}-{index}-of-{of}", self.id);
            run.id = if take == 1 { name } else { format!("{name}-take-{take}") };
            match RunFolder::create(&args.results, &run) {
                Err(StoreError::Exists(path)) if state(&path) == Existing::Fresh => return Ok(None),
                Err(StoreError::Exists(_)) => {}
                created => return Ok(Some(created?)),
            }
        }
        Err(CliError::failed(format!(
            "slice {} has {MOST_TAKES} folders in {}",
            self.shard,
            args.results.display()
        ))
        .hint("use another folder for the results: --results DIR"))
    }
}

/// Refuses a plan that cannot be measured, or that has trials of engines that are not available.
fn check_plan(plan: &Plan, registry: &Registry) -> Result<(), CliError> {
    runner::check_plan(plan)?;
    let missing: BTreeSet<&str> = plan
        .trials
        .iter()
        .map(|trial| &*trial.engine)
        .filter(|name| registry.engine(name).is_err())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = Vec::from_iter(missing).join(", ");
    Err(CliError::absent(format!("the plan has trials of engines that are not available here: {names}"))
        .hint("install them on this machine; `kvdyno engines` shows how"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto(of: Option<u32>, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        };
        let found = shard(Some(ShardChoice::Auto(of)), &variable);
        found.map(|shard| shard.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_scheduler_is_recognized_by_its_variables() {
        let array = |id, first, last, count, step| {
            [
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", first),
                ("SLURM_ARRAY_TASK_MAX", last),
                ("SLURM_ARRAY_TASK_COUNT", count),
                ("SLURM_ARRAY_TASK_STEP", step),
            ]
        };
        for (variables, expected) in [
            (&array("3", "1", "16", "16", "1")[..], "3/16"),
            (&array("0", "0", "15", "16", "1"), "1/16"),
            (&array("9", "1", "13", "4", "4"), "3/4"),
            (&[("OMPI_COMM_WORLD_RANK", "7"), ("OMPI_COMM_WORLD_SIZE", "8")], "8/8"),
            (&[("PMI_RANK", "0"), ("PMI_SIZE", "4")], "1/4"),
            (&[("SLURM_PROCID", "2"), ("SLURM_STEP_NUM_TASKS", "4")], "3/4"),
            (&[("AWS_BATCH_JOB_ARRAY_INDEX", "2"), ("AWS_BATCH_JOB_ARRAY_SIZE", "10")], "3/10"),
            // mpirun in a job of Slurm: its ranks inherit the variables of the step that started them.
            (
                &[
                    ("SLURM_PROCID", "1"),
                    ("SLURM_STEP_NUM_TASKS", "2"),
                    ("OMPI_COMM_WORLD_RANK", "5"),
                    ("OMPI_COMM_WORLD_SIZE", "8"),
                ],
                "6/8",
            ),
            // srun with one task in a task of an array.
            (
                &[
                    ("SLURM_ARRAY_TASK_ID", "2"),
                    ("SLURM_ARRAY_TASK_MIN", "1"),
                    ("SLURM_ARRAY_TASK_MAX", "3"),
                    ("SLURM_ARRAY_TASK_COUNT", "3"),
                    ("SLURM_PROCID", "0"),
                    ("SLURM_STEP_NUM_TASKS", "1"),
                ],
                "2/3",
            ),
            // The batch script of a job has no step.
            (&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")], "1/1"),
        ] {
            assert_eq!(auto(None, variables), Ok(expected.to_string()), "{variables:?}");
        }
        assert_eq!(auto(Some(8), &[("JOB_COMPLETION_INDEX", "7")]), Ok("8/8".to_string()));
        // Only the failed tasks of an array were submitted again.
        assert_eq!(auto(Some(16), &array("7", "3", "7", "2", "4")), Ok("7/16".to_string()));
        assert_eq!(auto(None, &array("7", "3", "7", "2", "4")), Ok("2/2".to_string()));
    }

    #[test]
    fn a_slice_that_is_not_clear_is_refused() {
        for (of, variables, expected) in [
            (None, &[][..], "no variables of Slurm"),
            (None, &[("JOB_COMPLETION_INDEX", "0")], "does not report the number"),
            (Some(4), &[("JOB_COMPLETION_INDEX", "4")], "reports slice 5 of 4"),
            (None, &[("PMI_RANK", "x"), ("PMI_SIZE", "4")], "PMI_RANK=x"),
            (
                None,
                &[
                    ("SLURM_ARRAY_TASK_ID", "7"),
                    ("SLURM_ARRAY_TASK_MIN", "1"),
                    ("SLURM_ARRAY_TASK_MAX", "7"),
                    ("SLURM_ARRAY_TASK_COUNT", "3"),
                ],
                "not evenly spaced",
            ),
            (
                None,
                &[
                    ("AWS_BATCH_JOB_ARRAY_INDEX", "0"),
                    ("AWS_BATCH_JOB_ARRAY_SIZE", "2"),
                    ("OMPI_COMM_WORLD_RANK", "1"),
                    ("OMPI_COMM_WORLD_SIZE", "2"),
                ],
                "Open MPI reports 2 of 2 and AWS Batch reports 1 of 2",
            ),
        ] {
            let error = auto(of, variables).unwrap_err();
            assert!(error.contains(expected), "{variables:?}: {error}");
        }
        for text in ["", "0/4", "5/4", "1/0", "a/4", "auto/0", "auto/x", "3", "-1/4", "1/99999999999"] {
            assert!(text.parse::<ShardChoice>().is_err(), "{text}");
        }
        assert_eq!("auto".parse(), Ok(ShardChoice::Auto(None)));
        assert_eq!("3/16".parse(), Ok(ShardChoice::Given(Shard { index: 3, of: 16 })));
    }
}
