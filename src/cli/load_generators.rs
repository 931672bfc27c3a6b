//! The flags of `kvdyno run` for several load generators: which one this process is, where they meet, and how many there are.

use super::error::CliError;
use super::plugins::executable;
use kvdyno_cluster::{Guest, Hub, PlanParts, Seat, Secret, nonce};
use kvdyno_core::engine::nodes_option_of;
use kvdyno_core::results::{Plan, store::LOAD_GENERATORS};
use kvdyno_core::runner::{Company, Entry, Side, load_generator_refusal};
use kvdyno_core::workload::Phase;
use kvdyno_measure::{signals, start};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Where the load generators of one machine meet.
const HERE: &str = "127.0.0.1:7707";
/// The maximum time until all load generators have come. A scheduler may start them one after another.
const PATIENCE: Duration = Duration::from_secs(120);
/// The maximum number of load generators.
const MOST: u32 = 4096;
/// The variables with the load generator and the number of load generators, of Open MPI, of MPICH and Intel MPI, and of Slurm's
/// steps.
const VARIABLES: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];
/// The variables that tell that all load generators are on one machine: a number, and what it is equal to then.
const ON_ONE_MACHINE: [(&str, Result<&str, &str>); 4] = [
    ("OMPI_COMM_WORLD_LOCAL_SIZE", Ok("OMPI_COMM_WORLD_SIZE")),
    ("MPI_LOCALNRANKS", Ok("PMI_SIZE")),
    ("SLURM_STEP_NUM_NODES", Err("1")),
    ("SLURM_NNODES", Err("1")),
];

/// Flags for several load generators.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Several load generators (docs/clusters.md)")]
pub(super) struct LoadGeneratorArgs {
    /// Number of processes that load one running server together. `2` starts them on this machine; with a list (`1,2,4`), run
    /// each workload once with each number. `auto` uses as many processes as MPI or Slurm has started.
    #[arg(long, alias = "ranks", value_delimiter = ',', value_name = "N")]
    load_generators: Vec<String>,
    /// Number of this process among N load generators, from 0, such as `0/4`; load generator 0 reports the results. `auto` takes
    /// both numbers from MPI or Slurm.
    #[arg(long, alias = "rank", value_name = "I/N")]
    load_generator: Option<String>,
    /// Address where load generator 0 listens and to which the others connect [default: 127.0.0.1:7707].
    #[arg(long, value_name = "HOST:PORT")]
    rendezvous: Option<String>,
    /// File whose first line is the secret that all load generators share [default: the environment variable KVDYNO_SECRET].
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

/// The load generators of a run, as requested.
#[derive(Debug)]
pub(super) struct LoadGenerators {
    seat: Seat,
    /// The numbers of load generators to run the workloads with.
    counts: Vec<u32>,
    /// Whether this process starts the others.
    starts: bool,
    secret: Secret,
}

impl LoadGeneratorArgs {
    /// What is requested; none: a single load generator.
    pub(super) fn requested(&self) -> Result<Option<LoadGenerators>, CliError> {
        self.requested_in(&|name| std::env::var(name).ok())
    }

    fn requested_in(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<LoadGenerators>, CliError> {
        let by_scheduler = self.load_generators.iter().any(|text| text == "auto")
            || self.load_generator.as_deref() == Some("auto");
        if self.load_generators.iter().any(|text| text == "auto")
            && (self.load_generators.len() > 1 || self.load_generator.is_some())
        {
            return Err(CliError::usage("--load-generators auto has no list and no --load-generator").hint(
                "for several numbers of load generators use --load-generator auto --load-generators 1,2,4",
            ));
        }
        let counts = self.load_generators.iter().filter(|text| *text != "auto").map(|text| count(text));
        let mut counts = counts.collect::<Result<Vec<u32>, _>>()?;
        let place = match &self.load_generator {
            _ if by_scheduler => Some(place_in(variable)?),
            Some(text) => Some(place(text)?),
            None => None,
        };
        let Some(load_generators) =
            place.map(|(_, load_generators)| load_generators).or(counts.iter().copied().max())
        else {
            return self.refuse_others("--load-generators or --load-generator").map(|()| None);
        };
        if let Some(more) = counts.iter().find(|count| **count > load_generators) {
            return Err(CliError::usage(format!(
                "--load-generators {more}: there are {load_generators} load generators"
            ))
            .hint("start more of them, or leave out larger numbers"));
        }
        if counts.is_empty() {
            counts.push(load_generators);
        }
        counts.dedup();
        if load_generators == 1 {
            return self.refuse_others("more than one load generator").map(|()| None);
        }
        let (load_generator, starts) = place.map_or((0, true), |(load_generator, _)| (load_generator, false));
        let rendezvous = match &self.rendezvous {
            Some(text) if starts => {
                return Err(CliError::usage(format!("--rendezvous {text}: --load-generators N starts all of them on this machine"))
                    .hint("name the place of each process with --load-generator I/N, or let MPI or Slurm start them: --load-generators auto"));
            }
            Some(text) => text.clone(),
            None if starts => "127.0.0.1:0".to_string(),
            None if by_scheduler && !is_on_one_machine(variable) => {
                return Err(CliError::usage("the load generators are on several machines, and no place to meet is given")
                    .hint("--rendezvous HOST:PORT names an address of the machine of load generator 0 that all others can reach"));
            }
            None => HERE.to_string(),
        };
        let secret = match (starts, &self.secret_file) {
            (true, Some(_)) => {
                return Err(CliError::usage("--secret-file: --load-generators N makes a secret of its own")
                    .hint("omit it, or name the place of each process with --load-generator I/N"));
            }
            (true, None) => {
                nonce().and_then(|text| Secret::new(text.as_bytes())).map_err(CliError::failed)?
            }
            (false, file) => Secret::find(file.as_deref()).map_err(CliError::usage)?,
        };
        let seat =
            Seat { load_generator, load_generators, rendezvous, secret_file: self.secret_file.clone() };
        Ok(Some(LoadGenerators { seat, counts, starts, secret }))
    }

    /// Refuses flags that would be ignored.
    fn refuse_others(&self, needed: &str) -> Result<(), CliError> {
        let flags =
            [("--rendezvous", self.rendezvous.is_some()), ("--secret-file", self.secret_file.is_some())];
        match flags.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(CliError::usage(format!("{flag} needs {needed}"))),
            None => Ok(()),
        }
    }
}

fn count(text: &str) -> Result<u32, CliError> {
    let found = text.trim().parse().ok().filter(|count| (1..=MOST).contains(count));
    found.ok_or_else(|| {
        CliError::usage(format!("--load-generators {text}: expected numbers from 1 to {MOST}, or `auto`"))
    })
}

/// `0/4`.
fn place(text: &str) -> Result<(u32, u32), CliError> {
    let parts = text.split_once('/').and_then(|(load_generator, load_generators)| {
        let (load_generator, load_generators) =
            (load_generator.trim().parse::<u32>().ok()?, load_generators.trim().parse::<u32>().ok()?);
        (load_generator < load_generators && load_generators <= MOST)
            .then_some((load_generator, load_generators))
    });
    parts.ok_or_else(|| {
        CliError::usage(format!(
            "--load-generator {text}: expected I/N with I from 0 to N - 1, such as 0/2, or `auto`"
        ))
    })
}

/// The place that a scheduler gave to this process.
fn place_in(variable: &dyn Fn(&str) -> Option<String>) -> Result<(u32, u32), CliError> {
    for (load_generator, load_generators) in VARIABLES {
        if let (Some(load_generator), Some(load_generators)) =
            (variable(load_generator), variable(load_generators))
        {
            return place(&format!("{load_generator}/{load_generators}"));
        }
    }
    let names: Vec<&str> = VARIABLES.iter().map(|(load_generator, _)| *load_generator).collect();
    Err(CliError::usage(format!("`auto` finds no variable of MPI or Slurm ({})", names[..3].join(", ")))
        .hint("start it with mpirun or srun, or use --load-generators N or --load-generator I/N"))
}

fn is_on_one_machine(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    ON_ONE_MACHINE.iter().any(|(name, expected)| {
        let expected = match expected {
            Ok(other) => variable(other),
            Err(text) => Some(text.to_string()),
        };
        variable(name).is_some_and(|value| Some(value) == expected)
    })
}

impl LoadGenerators {
    /// Whether another process reports the results.
    pub(super) fn is_guest(&self) -> bool {
        self.seat.load_generator > 0
    }

    /// Whether all load generators are on this machine: they meet on its loopback interface.
    fn is_here(&self) -> bool {
        let host = self.seat.rendezvous.rsplit_once(':').map_or("", |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        self.starts || host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The folder for the results of this process.
    pub(super) fn results(&self, results: &std::path::Path) -> PathBuf {
        match self.seat.load_generator {
            0 => results.to_path_buf(),
            // `kvdyno report` does not take it for the newest run.
            load_generator => results.join(LOAD_GENERATORS).join(format!("rank-{load_generator}")),
        }
    }

    /// Each entry once for each number of load generators. Refuses engines and workloads that several load generators cannot
    /// share.
    pub(super) fn entries(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, CliError> {
        let mut all = Vec::new();
        for entry in entries {
            for &load_generators in &self.counts {
                let mut entry = Entry { load_generators, ..entry.clone() };
                check(&entry, self.is_here())?;
                if self.counts.len() > 1 {
                    entry.workload.suffix_name(&format!("r{load_generators}"));
                }
                all.push(entry);
            }
        }
        Ok(all)
    }

    /// Meets the others; load generator 0 waits until all have come. The processes that this one has started end with the
    /// second result.
    pub(super) fn meet(&self, plan: &Plan) -> Result<(Arc<Company>, Started), CliError> {
        let parts = parts(plan);
        let (seat, secret) = (self.seat.clone(), self.secret.clone());
        if self.is_guest() {
            let guest = Guest::join(&seat, &secret, parts, PATIENCE).map_err(CliError::failed)?;
            return Ok((Arc::new(Company { seat, side: Side::Guest(guest) }), Started::default()));
        }
        // Ctrl-C ends the wait for the others.
        signals::count_interrupts();
        let hub = Hub::listen(&seat.rendezvous, seat.load_generators, secret.clone(), parts)
            .map_err(CliError::failed)?;
        let seat = Seat { rendezvous: hub.address().to_string(), ..seat };
        let mut started = Started::default();
        if self.starts {
            // Trials of this process find the secret where those of the others find it.
            started.secret = Some(secret.text());
            for load_generator in 1..seat.load_generators {
                started.start(&seat, load_generator, &secret)?;
            }
        }
        let watched = RefCell::new(&mut started);
        let is_stopped = || signals::interrupts() > 0 || watched.borrow_mut().has_ended();
        hub.await_all(PATIENCE, &is_stopped).map_err(|text| {
            CliError::failed(text).hint(format!(
                "load generator 0 waited at {}; start all load generators with the same arguments, each with its own --load-generator",
                seat.rendezvous
            ))
        })?;
        Ok((Arc::new(Company { seat, side: Side::Host(hub) }), started))
    }
}

/// Refuses what several load generators cannot share. `is_here`: all of them are on this machine.
fn check(entry: &Entry, is_here: bool) -> Result<(), CliError> {
    let load_generators = entry.load_generators;
    if let Some(reason) =
        load_generator_refusal(&entry.workload, load_generators).filter(|_| load_generators > 1)
    {
        return Err(CliError::usage(format!(
            "workload {}: several load generators cannot run it, because {reason}",
            entry.workload.name
        ))
        .hint(
            "choose a workload of gets, puts, updates, inserts and deletes, such as ycsb-b, or omit --load-generators",
        ));
    }
    // Also with one load generator: the others of the list must have the same database.
    for contestant in
        entry.contestants.iter().filter(|contestant| !contestant.is_floor && !contestant.has_url())
    {
        let engine = &contestant.engine;
        if nodes_option_of(engine).is_none() {
            return Err(CliError::usage(format!(
                "{engine}: several load generators need one database that all of them reach; an embedded engine, or a server \
                 that a driver starts, would be one for each of them"
            ))
            .hint(format!(
                "use a running server: --engines redis --option redis.url=redis://HOST:PORT, instead of {engine}"
            )));
        }
        if !is_here {
            return Err(CliError::usage(format!(
                "{engine}: a cluster that a driver starts is reached only by load generators on its machine"
            ))
            .hint(format!(
                "start them there with --load-generators N, or use a running cluster: --option {engine}.url=URL"
            )));
        }
        let reopens =
            |phase: &Phase| phase.reopen_before || phase.drop_caches_before || phase.durability.is_some();
        if entry.workload.phases.iter().any(reopens) {
            return Err(CliError::usage(format!(
                "workload {}: it reopens the database, which would stop the cluster of {engine} that the load generators share",
                entry.workload.name
            ))
            .hint(format!("use a running cluster: --option {engine}.url=URL")));
        }
    }
    Ok(())
}

/// What must be equal in all load generators.
fn parts(plan: &Plan) -> PlanParts {
    let digest = |value: &dyn Fn() -> Vec<u8>| {
        let digest = Sha256::digest(value());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    fn json<Value: Serialize>(value: &Value) -> Vec<u8> {
        serde_json::to_vec(value).unwrap_or_default()
    }
    let trials = &plan.trials;
    let of = |name: &str, value: &dyn Fn() -> Vec<u8>| (name.to_string(), digest(value));
    vec![
        of("version of kvdyno", &|| env!("CARGO_PKG_VERSION").into()),
        of("workloads", &|| json(&trials.iter().map(|trial| &trial.workload).collect::<Vec<_>>())),
        of("engines and options", &|| {
            json(&trials.iter().map(|trial| (&trial.engine, &trial.options)).collect::<Vec<_>>())
        }),
        of("numbers of load generators", &|| {
            json(&trials.iter().map(|trial| trial.load_generators).collect::<Vec<_>>())
        }),
        of("trials", &|| json(&trials.iter().map(|trial| (&trial.id, trial.seed)).collect::<Vec<_>>())),
    ]
}

/// Processes that this one has started. They are ended with it.
#[derive(Default)]
pub(super) struct Started {
    children: Vec<Child>,
    /// The secret that they share, for the trials of this process.
    secret: Option<String>,
}

impl Started {
    fn start(&mut self, seat: &Seat, load_generator: u32, secret: &Secret) -> Result<(), CliError> {
        let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
        words.extend([
            "--load-generator".into(),
            format!("{load_generator}/{}", seat.load_generators).into(),
            "--rendezvous".into(),
            seat.rendezvous.clone().into(),
        ]);
        let mut command = Command::new(executable()?);
        command
            .args(words)
            .env(kvdyno_cluster::SECRET, secret.text())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = start::process(&mut command).map_err(|error| {
            CliError::failed(format!("cannot start load generator {load_generator}: {error}"))
        })?;
        self.children.push(child);
        Ok(())
    }

    /// Whether one of them has ended, after it has said why.
    fn has_ended(&mut self) -> bool {
        self.children.iter_mut().any(|child| matches!(child.try_wait(), Ok(Some(_))))
    }

    /// The environment that trials of this process need in addition.
    pub(super) fn environment(&self) -> Option<(String, String)> {
        self.secret.clone().map(|secret| (kvdyno_cluster::SECRET.to_string(), secret))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.children {
            // They end by themselves when the hub does. Their exit codes say nothing that the merged records do not.
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(load_generators: &[&str], load_generator: Option<&str>) -> LoadGeneratorArgs {
        LoadGeneratorArgs {
            load_generators: load_generators.iter().map(|text| text.to_string()).collect(),
            load_generator: load_generator.map(String::from),
            rendezvous: None,
            secret_file: None,
        }
    }

    fn requested(
        args: &LoadGeneratorArgs,
        variables: &[(&str, &str)],
    ) -> Result<Option<LoadGenerators>, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string())
        };
        args.requested_in(&variable).map_err(|error| error.to_string())
    }

    fn with_secret(mut args: LoadGeneratorArgs) -> (LoadGeneratorArgs, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "a secret of this test").unwrap();
        args.secret_file = Some(file);
        (args, folder)
    }

    #[test]
    fn the_place_comes_from_mpi_or_slurm() {
        for variables in [
            &[
                ("OMPI_COMM_WORLD_RANK", "1"),
                ("OMPI_COMM_WORLD_SIZE", "3"),
                ("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
            ][..],
            &[("PMI_RANK", "1"), ("PMI_SIZE", "3"), ("MPI_LOCALNRANKS", "3")],
            &[
                ("SLURM_PROCID", "1"),
                ("SLURM_NTASKS", "9"),
                ("SLURM_STEP_NUM_TASKS", "3"),
                ("SLURM_NNODES", "1"),
            ],
        ] {
            let (args, _folder) = with_secret(args(&["auto"], None));
            let found = requested(&args, variables).unwrap().unwrap();
            assert_eq!(
                (found.seat.load_generator, found.seat.load_generators, &*found.seat.rendezvous),
                (1, 3, HERE),
                "{variables:?}"
            );
            assert_eq!((found.counts, found.starts), (vec![3], false));
            // On several machines, loopback would be a different place on each.
            let apart: Vec<(&str, &str)> = variables[..2].to_vec();
            let apart = if apart[0].0 == "SLURM_PROCID" {
                [&variables[..3], &[("SLURM_NNODES", "2")]].concat()
            } else {
                apart
            };
            assert!(requested(&args, &apart).unwrap_err().contains("on several machines"), "{apart:?}");
        }
        let error = requested(&args(&["auto"], None), &[]).unwrap_err();
        assert!(error.contains("OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID"), "{error}");
    }

    #[test]
    fn load_generators_that_meet_on_loopback_are_on_this_machine() {
        for (rendezvous, is_here) in [
            ("127.0.0.1:7707", true),
            ("[::1]:7707", true),
            ("localhost:1", true),
            ("10.0.0.1:7707", false),
            ("a:7707", false),
        ] {
            let (args, _folder) = with_secret(args(&[], Some("1/2")));
            let args = LoadGeneratorArgs { rendezvous: Some(rendezvous.into()), ..args };
            assert_eq!(requested(&args, &[]).unwrap().unwrap().is_here(), is_here, "{rendezvous}");
        }
    }

    #[test]
    fn a_number_of_load_generators_starts_them_here_with_a_secret_of_their_own() {
        let found = requested(&args(&["1", "2", "4"], None), &[]).unwrap().unwrap();
        assert_eq!((found.seat.load_generator, found.seat.load_generators, found.starts), (0, 4, true));
        assert_eq!(found.counts, [1, 2, 4]);
        assert!(requested(&args(&["1"], None), &[]).unwrap().is_none());
        assert!(requested(&args(&[], None), &[]).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (load_generators, load_generator, part) in [
            (&["0"][..], None, "--load-generators 0"),
            (&["x"], None, "--load-generators x"),
            (&["auto", "2"], None, "has no list"),
            (&[], Some("2/2"), "--load-generator 2/2"),
            (&[], Some("1"), "--load-generator 1"),
            (&["8"], Some("0/2"), "there are 2 load generators"),
            (&[], Some("auto"), "finds no variable"),
        ] {
            let error = requested(&args(load_generators, load_generator), &[]).unwrap_err();
            assert!(error.contains(part), "{load_generators:?} {load_generator:?}: {error}");
        }
        let (alone, _folder) = with_secret(args(&[], None));
        assert!(requested(&alone, &[]).unwrap_err().contains("--secret-file needs"));
    }
}
