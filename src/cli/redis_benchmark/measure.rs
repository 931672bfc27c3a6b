//! Runs redis-benchmark once for each trial of a server, on a new server that is started like the one of the trial.

use super::{FILE, HEAD, applies_to, is_of_servers, rows, shape, store};
use crate::cli::error::CliError;
use crate::cli::plugins;
use kvdyno_core::engine::{Database, Registry, Request, level_name};
use kvdyno_core::results::store::RunFolder;
use kvdyno_core::results::{Run, Trial};
use kvdyno_core::runner::{DataFolder, Runner, level_number};
use kvdyno_core::workload::Phase;
use kvdyno_measure::inner::Kind;
use kvdyno_measure::{Clock, Event, Task, TaskProcess, signals, start};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = "redis-benchmark";
/// The option of servers of the Redis protocol with the file that has the password.
const PASSWORD: &str = "password-file";
/// Interval between checks for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Round trips of each client if the workload specifies a duration instead of a number of ops.
const ROUND_TRIPS: u64 = 100;
/// SET commands that the fill sends at once.
const FILL_AT_ONCE: u64 = 1000;

/// Measures each trial of a server that redis-benchmark has not measured yet and saves each result immediately. Returns true if
/// one failed.
pub(crate) fn measure(
    run: &Run,
    folder: &Path,
    data: &Path,
    runner: &Runner,
    is_quiet: bool,
) -> Result<bool, CliError> {
    if !applies_to(&run.plan) {
        return Ok(false);
    }
    let mut known = Command::new(PROGRAM);
    let asked = start::status(known.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()));
    match asked {
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            eprintln!(
                "{PROGRAM} was not found in PATH: its rows are skipped (install: apt-get install redis-tools)"
            );
            return Ok(false);
        }
        Err(error) => {
            eprintln!("{PROGRAM}: cannot start a process: {error}");
            return Ok(true);
        }
    }
    let done = rows(folder);
    let mut has_failed = false;
    let of_servers = |trial: &&Trial| is_of_servers(&trial.workload) && !trial.is_floor;
    for trial in run.plan.trials.iter().filter(of_servers) {
        if signals::interrupts() > 0 {
            break;
        }
        if done.iter().filter(|row| row.trial == trial.id).count() == 2 {
            continue;
        }
        let what = format!("{PROGRAM} on {}", store(&trial.engine, &trial.options));
        if !is_quiet {
            eprintln!("{what}, {}, run {}", trial.workload.name, trial.repetition);
        }
        let place = DataFolder::create(data, &run.id, &format!("{}-{PROGRAM}", trial.id))
            .map_err(CliError::failed)?;
        let task =
            RedisBenchmarkTask { run: folder.to_path_buf(), trial: trial.id.clone(), data: place.database() };
        let started = task.start(&runner.executable, |command| {
            command.envs(runner.environment.iter().map(|(name, value)| (name, value)));
        });
        let result = started.map(|mut process| watch(&mut process));
        place.remove().map_err(CliError::failed)?;
        let failed = |what: &str, error: std::io::Error| CliError::failed(format!("cannot {what}: {error}"));
        match result.map_err(|error| failed("start a process", error))? {
            _ if signals::interrupts() >= 2 => break,
            Ok(lines) => keep(folder, &lines).map_err(|error| failed(&format!("write {FILE}"), error))?,
            Err(reason) => {
                has_failed |= matches!(reason, Unmeasured::Failed(_));
                eprintln!("{what}: {reason}");
            }
        }
    }
    Ok(has_failed)
}

/// Why redis-benchmark has not measured a trial.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Unmeasured {
    /// The server cannot reach the requested durability level, or does not have the protocol: a result, not a failure.
    Refused(String),
    /// Something has failed.
    Failed(String),
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmeasured::Refused(reason) => write!(out, "refused: {reason}"),
            Unmeasured::Failed(reason) => out.write_str(reason),
        }
    }
}

impl From<String> for Unmeasured {
    fn from(reason: String) -> Unmeasured {
        Unmeasured::Failed(reason)
    }
}

impl From<&str> for Unmeasured {
    fn from(reason: &str) -> Unmeasured {
        Unmeasured::Failed(reason.to_string())
    }
}

/// The lines that the process of a trial tells, or the reason why there are none.
fn watch(process: &mut TaskProcess<Result<String, Unmeasured>>) -> Result<String, Unmeasured> {
    let mut result = None;
    let end = loop {
        match process.next(POLL_INTERVAL) {
            Event::Told(told) => result = Some(told),
            Event::Quiet => {}
            Event::Ended(end) => break end,
        }
        if signals::interrupts() >= 2 {
            process.kill();
        }
    };
    result.unwrap_or_else(|| Err(end.fate().text("its process").into()))
}

/// Measures one trial with redis-benchmark in a process of its own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RedisBenchmarkTask {
    /// The run's folder.
    run: PathBuf,
    /// The trial's ID.
    trial: String,
    /// The server's working folder.
    data: PathBuf,
}

impl Task for RedisBenchmarkTask {
    const KIND: Kind = Kind::RedisBenchmark;
    /// The lines for the results file, or why there are none.
    type Message = Result<String, Unmeasured>;
    type Prepared = ();

    fn prepare(&self) {}

    fn run(self, (): ()) -> Result<u8, String> {
        let folder = RunFolder::open(&self.run).map_err(|error| error.to_string())?;
        let trial = folder.run().plan.trials.iter().find(|trial| trial.id == self.trial);
        let trial = trial.ok_or_else(|| format!("the run has no trial {}", self.trial))?;
        let registry =
            plugins::registry(&[], std::slice::from_ref(&trial.engine)).map_err(|error| error.to_string())?;
        RedisBenchmarkTask::tell(&one(trial, &registry, &self.data).map(|lines| lines.join("\n")));
        Ok(0)
    }
}

/// Appends lines to the results file.
fn keep(folder: &Path, lines: &str) -> std::io::Result<()> {
    let path = folder.join(FILE);
    let is_new = !path.exists();
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let head = if is_new { format!("{HEAD}\n") } else { String::new() };
    // `rows` ignores a line that a crash truncated.
    file.write_all(format!("{head}{}\n", lines.trim_end()).as_bytes())?;
    file.sync_data()
}

/// Starts the server of one trial, measures it and returns the lines for the results file.
fn one(trial: &Trial, registry: &Registry, folder: &Path) -> Result<Vec<String>, Unmeasured> {
    let engine = registry
        .engine(&trial.engine)
        .map_err(|_| format!("the engine {} is not available", trial.engine))?;
    if !engine.options().iter().any(|option| option.name == PASSWORD) {
        let reason = format!("{} is not a server of the Redis protocol", trial.engine);
        return Err(Unmeasured::Refused(reason));
    }
    let password =
        std::fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(|error| error.to_string())?;
    let password = password.trim().to_string();
    let file = folder.join("client-password");
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    written.and_then(|mut file| file.write_all(password.as_bytes())).map_err(|error| error.to_string())?;
    let mut settings = trial.options.clone();
    settings.push((PASSWORD.into(), file.to_string_lossy().into_owned()));
    let request = Request {
        level: level_number(trial.workload.durability),
        create: true,
        cache_bytes: trial.workload.cache_bytes,
        key_size_max: 64,
        value_size_max: 64 << 10,
        threads: 1,
        keyspaces: 1,
        settings,
        clock: Clock::monotonic().kind(),
        ..Request::default()
    };
    let database =
        Database::open(&engine, folder, &request).map_err(|error| Unmeasured::Refused(error.to_string()))?;
    let level = level_name(database.effective().level);
    let stats = database.stats().map_err(|error| format!("stats: {error}"))?;
    let address = stats.into_iter().find(|(name, _)| name == "address").map(|(_, address)| address);
    let measured = address
        .ok_or(Unmeasured::from("the server did not report its address"))
        .and_then(|address| load(trial, &address, &password, level));
    database.close().map_err(|error| format!("close: {error}"))?;
    measured
}

fn load(trial: &Trial, address: &str, password: &str, level: &str) -> Result<Vec<String>, Unmeasured> {
    let workload = &trial.workload;
    let (pipeline, clients) = shape(workload).ok_or("the workload has no phase `set`")?;
    let size = workload.value.size.to_string();
    let bytes =
        size.parse().map_err(|_| format!("redis-benchmark needs values of one fixed size, not {size}"))?;
    if bytes == 0 {
        return Err("redis-benchmark writes values of 1 byte or more, not of 0 bytes".into());
    }
    fill(address, password, workload.keys, bytes).map_err(|error| format!("fill: {error}"))?;
    let set = workload.phases.iter().find(|phase| phase.name == "set");
    // redis-benchmark cannot stop after a time, and it never ends with zero requests.
    let by_time = || ROUND_TRIPS * clients as u64 * u64::from(pipeline);
    let ops = set.and_then(Phase::ops_limit).unwrap_or_else(by_time);
    let (host, port) = address.rsplit_once(':').ok_or("the server has no port")?;
    let numbers =
        [ops, workload.keys, bytes as u64, pipeline.into(), clients as u64].map(|number| number.to_string());
    let [ops, keys, bytes, requests, connections] = numbers.each_ref().map(String::as_str);
    let mut command = Command::new(PROGRAM);
    command.args(["-h", host, "-p", port, "-a", password, "-t", "set,get", "--csv"]);
    command.args(["-n", ops, "-r", keys, "-d", bytes, "-P", requests, "-c", connections]);
    let output = start::output(command.stdin(Stdio::null()))
        .map_err(|error| format!("cannot start {PROGRAM}: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr
            .lines()
            .chain(stdout.lines())
            .rfind(|line| !line.is_empty())
            .unwrap_or("nothing")
            .to_string();
        return Err(format!("it ended with {}; its last output was: {last}", output.status).into());
    }
    let store = store(&trial.engine, &trial.options);
    let names = format!("{},{store},{level},{pipeline},{clients},{}", trial.id, trial.repetition);
    let lines: Vec<String> = stdout
        .lines()
        .map(|line| line.replace('"', ""))
        .filter(|line| line.starts_with("SET,") || line.starts_with("GET,"))
        .map(|line| format!("{names},{line}"))
        .collect();
    if lines.len() != 2 || lines.iter().any(|line| line.split(',').count() != super::COLUMNS) {
        return Err(format!("its output has an unknown format: {stdout}").into());
    }
    Ok(lines)
}

/// Writes every key that redis-benchmark may request, so that each get is a hit.
fn fill(address: &str, password: &str, keys: u64, bytes: usize) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let request = |words: &[&[u8]]| {
        let mut text = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            text.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            text.extend_from_slice(word);
            text.extend_from_slice(b"\r\n");
        }
        text
    };
    let value = vec![b'x'; bytes];
    let mut next = 0;
    stream.write_all(&request(&[b"AUTH", password.as_bytes()]))?;
    let mut waiting = 1;
    while waiting > 0 {
        for _ in 0..waiting {
            let mut line = String::new();
            replies.read_line(&mut line)?;
            if line != "+OK\r\n" {
                return Err(std::io::Error::other(format!("the server replied {line:?}")));
            }
        }
        let end = (next + FILL_AT_ONCE).min(keys);
        let requests: Vec<u8> = (next..end)
            .flat_map(|key| request(&[b"SET", format!("key:{key:012}").as_bytes(), &value]))
            .collect();
        stream.write_all(&requests)?;
        waiting = end - next;
        next = end;
    }
    Ok(())
}
