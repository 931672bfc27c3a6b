//! `kvdyno serve ENGINE`: an engine behind the Redis protocol.

mod folder;
mod statistics;

use super::args;
use super::error::CliError;
use crate::engine::{Database, Engine, Request, capability_names, level_name};
use crate::measure::{Clock, raise_open_files, signals};
use crate::resp::{Limits, Server, Settings};
use crate::runner::level_number;
use clap::builder::RangedU64ValueParser;
use folder::Folder;
use statistics::Statistics;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Serve an engine to Redis clients.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The engine (`kvdyno engines`).
    engine: String,
    /// The database's folder, made if it is not there; default: `kvdyno-serve/ENGINE`.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The least durability level: none, process, power or default.
    #[arg(long, default_value = "process")]
    durability: String,
    /// The port; 0: a free one, which is printed.
    #[arg(long, default_value_t = 6380)]
    port: u16,
    /// The address to listen on; another than a loopback one needs --listen-public.
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Be reachable from other machines; needs a password.
    #[arg(long)]
    listen_public: bool,
    /// The password that clients must give (AUTH). It can be seen in the list of processes; --password-file cannot.
    #[arg(long, conflicts_with = "password_file")]
    password: Option<String>,
    /// A file whose first line is the password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Threads; default: the processors that this process may use.
    #[arg(short, long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
    /// Cache budget of the engine: `64MiB`.
    #[arg(long, value_parser = crate::workload::parse_bytes)]
    cache: Option<u64>,
    /// Set an option of the engine: `NAME=VALUE` or `ENGINE.NAME=VALUE`; may be given more than once.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Clients at once.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    max_clients: usize,
    /// The largest argument of a command, 512MiB at most.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = crate::workload::parse_bytes)]
    max_bulk: u64,
    /// Close clients that say nothing for so many seconds; 0: never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    idle_seconds: u64,
    /// Print ops and latencies of each command once a second, and record them as CSV in FILE; default: a new file in
    /// kvdyno-results.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    stats: Option<Option<PathBuf>>,
}

/// The largest argument that can be asked for, as in Redis.
const MOST_BULK: u64 = 512 << 20;

/// Serves until SHUTDOWN or a signal.
pub fn run(args: &ServeArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let settings = Settings { clients: clients_that_fit(args.max_clients), ..settings(args)? };
    let registry = super::plugins::registry(plugins, std::slice::from_ref(&args.engine))?;
    let engine = args::engines(&registry, std::slice::from_ref(&args.engine))?.remove(0);
    let fixed = engine.capabilities() & crate::engine::abi::KV_FIXED_KEY_SIZE != 0;
    if fixed || engine.stores_nothing() {
        let lack = if fixed { "takes keys of one size only" } else { "stores nothing" };
        return Err(CliError::usage(format!("{} {lack}, so it cannot be served", engine.name()))
            .hint("`kvdyno engines` lists the others"));
    }
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("kvdyno-serve").join(engine.name()));
    let folder = Folder::prepare(&dir, engine.name()).map_err(CliError::usage)?;
    let clock = Clock::calibrate();
    let request = request(args, &engine, &folder, settings.threads, clock.kind())?;
    let failed = |what: &str, error: &dyn std::fmt::Display| CliError::failed(format!("{what}: {error}"));
    let database = Database::open(&engine, folder.path(), &request)
        .map_err(|error| failed(&format!("cannot open {} in {}", engine.name(), dir.display()), &error))?;
    let in_force = database.in_force().clone();
    let in_memory = in_force.capabilities & crate::engine::abi::KV_IN_MEMORY != 0;
    folder.opened(in_memory).map_err(CliError::failed)?;
    let address = SocketAddr::new(args.bind, args.port);
    let mut statistics = args.stats.as_ref().map(Statistics::new).transpose().map_err(CliError::failed)?;
    let server = Server::new(address, settings, database, engine.key_size_max(), clock.kind())
        .map_err(|error| failed(&format!("cannot listen on {address}"), &error))?;
    let listening = server.address().map_err(|error| failed("cannot listen", &error))?;
    signals::count_interrupts();
    signals::outlive_the_reader();
    println!(
        "{} {} at level {} in {}, on {listening}, {} threads",
        engine.name(),
        in_force.version,
        level_name(in_force.level),
        dir.display(),
        server.threads(),
    );
    println!("capabilities: {}", capability_names(in_force.capabilities).join(", "));
    // What is in force, not what was asked for: a password of an option is taken out of it.
    let is_set = |name: &String| request.settings.iter().any(|(set, _)| set == name);
    let set = in_force.settings.iter().filter(|(name, _)| is_set(name));
    let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    if !set.is_empty() {
        println!("options: {}", set.join(", "));
    }
    let ended = server.run(&mut |shared| {
        if let Some(statistics) = &mut statistics {
            statistics.tick(shared);
        }
        signals::interrupts() > 0
    });
    let closed = ended.map_err(CliError::failed)?.close();
    closed.map_err(|error| failed("close", &error))?;
    println!("closed");
    Ok(0)
}

/// Files that the engine may have open beside the connections.
const ENGINE_FILES: u64 = 2048;

/// As many clients as there may be files, after raising that limit.
fn clients_that_fit(wanted: usize) -> usize {
    let Some(files) = raise_open_files(wanted as u64 + ENGINE_FILES) else { return wanted };
    let fit = files.saturating_sub(ENGINE_FILES.min(files / 2)) as usize;
    if fit < wanted {
        eprintln!(
            "warning: {files} files may be open at once, so {fit} clients are the most; raise the hard limit \
             (ulimit -Hn) for more"
        );
    }
    fit.min(wanted)
}

fn settings(args: &ServeArgs) -> Result<Settings, CliError> {
    let password = match (&args.password, &args.password_file) {
        (Some(password), _) => Some(password.clone()),
        (None, Some(file)) => {
            let text = crate::measure::read_text(file)
                .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
            Some(text.lines().next().unwrap_or_default().to_string())
        }
        (None, None) => None,
    };
    if password.as_ref().is_some_and(String::is_empty) {
        return Err(CliError::usage("the password is empty").hint("give one of at least one character"));
    }
    let is_meant = args.listen_public && password.is_some();
    if !args.bind.is_loopback() && !is_meant {
        return Err(CliError::usage(format!("{} can be reached from other machines", args.bind))
            .hint("if that is meant, give --listen-public and a password (--password-file FILE)"));
    }
    if args.max_bulk > MOST_BULK {
        return Err(CliError::usage(format!("--max-bulk {} is more than 512MiB", args.max_bulk))
            .hint("Redis has the same limit"));
    }
    Ok(Settings {
        engine: args.engine.clone(),
        password,
        threads: args.threads.unwrap_or_else(processors).max(1),
        limits: Limits { bulk_bytes: args.max_bulk as usize, ..Limits::default() },
        query_bytes: 1 << 30,
        clients: args.max_clients,
        idle_seconds: args.idle_seconds,
        stats: args.stats.is_some(),
    })
}

/// Options of engines in Go that suit a server, unless they are given. What it hands over at once are few ops, to which the
/// way to a goroutine costs more than a wait (`handover`, driver/go/runtime.go). Where `readers` share gets out, each
/// thread of ours may keep one of Go's processors while it is elsewhere, so these get as many more.
fn for_a_server(engine: &Engine, threads: usize, settings: &mut Vec<(String, String)>) {
    let has = |option: &str| engine.options().iter().any(|known| known.name == option);
    let mut suits = vec![("handover", "engine".to_string())];
    if has("readers") {
        suits.push(("readers", "8".to_string()));
        suits.push(("gomaxprocs", (processors() + threads).to_string()));
    }
    for (name, value) in suits {
        if has(name) && settings.iter().all(|(given, _)| given != name) {
            settings.push((name.into(), value));
        }
    }
}

/// Processors that this process may use.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn request(
    args: &ServeArgs,
    engine: &Engine,
    folder: &Folder,
    threads: usize,
    clock: u32,
) -> Result<Request, CliError> {
    let name = engine.name();
    let prefix = format!("{name}.");
    let full = |text: &String| match text.starts_with(&prefix) {
        true => text.clone(),
        false => format!("{prefix}{text}"),
    };
    let options: Vec<String> = args.options.iter().map(full).collect();
    let contestant = args::options(std::slice::from_ref(engine), &[name.to_string()], &options)?.remove(0);
    let mut settings = contestant.options;
    for_a_server(engine, threads, &mut settings);
    Ok(Request {
        level: level_number(args.durability.parse().map_err(|error| CliError::usage(format!("{error}")))?),
        create: folder.is_new(),
        cache_bytes: args.cache,
        key_size_max: engine.key_size_max(),
        value_size_max: (args.max_bulk as u32).saturating_add(16),
        threads: threads as u32 + 1,
        keyspaces: 1,
        settings,
        clock,
        ..Request::default()
    })
}
