//! `kvdyno serve ENGINE`: serves an engine over the Redis protocol.

mod folder;
mod statistics;

use super::args;
use super::error::CliError;
use super::number::number;
use folder::Folder;
use kvdyno_core::engine::{Database, Engine, Request, capability_names, level_name};
use kvdyno_core::runner::level_number;
use kvdyno_measure::text::bytes_text;
use kvdyno_measure::{Clock, raise_open_files, signals};
use kvdyno_serve::{Limits, Listener, Server, Settings, UnixSocket};
use statistics::Statistics;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Serve an engine to Redis clients.
#[derive(Debug, clap::Args)]
pub(super) struct ServeArgs {
    /// Engine to serve (see `kvdyno engines`).
    engine: String,
    /// Folder of the database, created if it does not exist [default: kvdyno-serve/ENGINE].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Minimum durability level: none, process, power or default.
    #[arg(long, value_name = "LEVEL", default_value = "process")]
    durability: String,
    /// Port to listen on [default: 6380, or none with --unix-socket]. 0 chooses a free port and prints it.
    #[arg(long, value_parser = number(0..=u16::MAX))]
    port: Option<u16>,
    /// Listen on a Unix socket at PATH. It is removed when the server ends.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// Address to listen on. Addresses other than loopback require --listen-public.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1", value_parser = address)]
    bind: IpAddr,
    /// Allow connections from other machines. Requires a password.
    #[arg(long)]
    listen_public: bool,
    /// Password that clients must send (AUTH). It is visible in the process list; with --password-file it is not.
    #[arg(long, conflicts_with = "password_file")]
    password: Option<String>,
    /// Read the password from the first line of FILE.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Number of threads [default: the number of CPUs that this process may use].
    #[arg(short, long, value_name = "N", value_parser = number(1..=1024_usize))]
    threads: Option<usize>,
    /// Cache budget of the engine, such as `64MiB`.
    #[arg(long, value_name = "BYTES", value_parser = kvdyno_measure::text::parse_bytes)]
    cache: Option<u64>,
    /// Set an option of the engine: `NAME=VALUE` or `ENGINE.NAME=VALUE`. Can be given more than once.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Maximum number of connected clients.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = number(1..=1_000_000_usize))]
    max_clients: usize,
    /// Maximum size of a command argument, up to 512 MiB.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = kvdyno_measure::text::parse_bytes)]
    max_bulk: u64,
    /// Close connections that are idle for N seconds. 0 disables this.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number(0..=u64::MAX))]
    idle_seconds: u64,
    /// Print the ops and latencies of each command once a second and write them to FILE as CSV [default: a new file in
    /// kvdyno-results].
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    stats: Option<Option<PathBuf>>,
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an IP address such as 127.0.0.1 or ::1".to_string())
}

/// The default of --port.
const PORT: u16 = 6380;

/// The maximum of --max-bulk, as in Redis.
const MOST_BULK: u64 = 512 << 20;

/// Serves until SHUTDOWN or a signal.
pub(super) fn run(args: &ServeArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    let settings = Settings { clients: clients_that_fit(args.max_clients), ..settings(args)? };
    let registry = super::plugins::registry(plugins, std::slice::from_ref(&args.engine))?;
    let engine = args::engines(&registry, std::slice::from_ref(&args.engine))?.remove(0);
    let fixed = engine.capabilities() & kvdyno_core::engine::abi::KV_FIXED_KEY_SIZE != 0;
    if fixed || engine.stores_nothing() {
        let reason = if fixed { "supports only keys of one size" } else { "stores nothing" };
        return Err(CliError::usage(format!("{} {reason} and cannot be served", engine.name()))
            .hint("see `kvdyno engines` for other engines"));
    }
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("kvdyno-serve").join(engine.name()));
    let mut listeners = Vec::new();
    if let Some(path) = &args.unix_socket {
        let socket = UnixSocket::bind(path).map_err(|error| {
            CliError::usage(error.to_string()).hint("choose another path for --unix-socket")
        })?;
        listeners.push(Listener::Unix(socket));
    }
    let folder = Folder::prepare(&dir, engine.name())?;
    let clock = Clock::calibrate();
    let request = request(args, &engine, &folder, settings.threads, clock.kind())?;
    let failed = |what: &str, error: &dyn std::fmt::Display| CliError::failed(format!("{what}: {error}"));
    let database = Database::open(&engine, folder.path(), &request)
        .map_err(|error| failed(&format!("cannot open {} in {}", engine.name(), dir.display()), &error))?;
    let effective = database.effective().clone();
    let in_memory = effective.capabilities & kvdyno_core::engine::abi::KV_IN_MEMORY != 0;
    folder.opened(in_memory)?;
    if args.port.is_some() || listeners.is_empty() {
        let address = SocketAddr::new(args.bind, args.port.unwrap_or(PORT));
        let listener =
            Listener::tcp(address).map_err(|error| failed(&format!("cannot listen on {address}"), &error))?;
        listeners.insert(0, listener);
    }
    let mut statistics = args.stats.as_ref().map(Statistics::new).transpose()?;
    let server = Server::new(listeners, settings, database, engine.key_size_max(), clock.kind())
        .map_err(|error| failed("cannot prepare the threads", &error))?;
    let listening = server.addresses().map_err(|error| failed("cannot listen", &error))?.join(" and ");
    signals::count_interrupts();
    signals::outlive_the_reader();
    println!(
        "{} {} at level {} in {}, on {listening}, {} threads",
        engine.name(),
        effective.version,
        level_name(effective.level),
        dir.display(),
        server.threads(),
    );
    println!("capabilities: {}", capability_names(effective.capabilities).join(", "));
    if in_memory {
        println!("the database is in memory and is lost when the server ends");
    }
    // These are the effective options, not the requested ones: passwords are removed from them.
    let is_set = |name: &String| request.settings.iter().any(|(set, _)| set == name);
    let set = effective.settings.iter().filter(|(name, _)| is_set(name));
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
    let closed = ended.map_err(|error| CliError::failed(error.to_string()))?.close();
    closed.map_err(|error| failed("close", &error))?;
    println!("closed");
    Ok(0)
}

/// Number of files reserved for the engine, in addition to the connections.
const ENGINE_FILES: u64 = 2048;

/// Raises the limit of open files and returns how many clients it allows.
fn clients_that_fit(requested: usize) -> usize {
    let Some(files) = raise_open_files(requested as u64 + ENGINE_FILES) else { return requested };
    let fit = files.saturating_sub(ENGINE_FILES.min(files / 2)) as usize;
    if fit < requested {
        eprintln!(
            "warning: the limit of {files} open files allows at most {fit} clients; raise the hard limit (ulimit -Hn) for \
             more"
        );
    }
    fit.min(requested)
}

fn settings(args: &ServeArgs) -> Result<Settings, CliError> {
    let password = match (&args.password, &args.password_file) {
        (Some(password), _) => Some(password.clone()),
        (None, Some(file)) => {
            let text = kvdyno_measure::read_text(file)
                .map_err(|error| CliError::usage(format!("cannot read {}: {error}", file.display())))?;
            Some(text.lines().next().unwrap_or_default().to_string())
        }
        (None, None) => None,
    };
    if password.as_ref().is_some_and(String::is_empty) {
        return Err(CliError::usage("the password is empty").hint("use a password of at least one character"));
    }
    let is_allowed = args.listen_public && password.is_some();
    if !args.bind.is_loopback() && !is_allowed {
        return Err(CliError::usage(format!("{} is reachable from other machines", args.bind))
            .hint("to allow this, add --listen-public and a password (--password-file FILE)"));
    }
    if args.max_bulk > MOST_BULK {
        return Err(CliError::usage(format!(
            "--max-bulk {} exceeds the maximum of 512 MiB",
            bytes_text(args.max_bulk)
        ))
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

/// Adds options of Go engines that suit a server, unless they are set. If `readers` distribute gets, each server thread may
/// occupy one of Go's processors while it is busy elsewhere, so GOMAXPROCS is raised by their number.
fn add_server_options(engine: &Engine, threads: usize, settings: &mut Vec<(String, String)>) {
    let has = |option: &str| engine.options().iter().any(|known| known.name == option);
    if !has("readers") {
        return;
    }
    for (name, value) in [("readers", "8".to_string()), ("gomaxprocs", (processors() + threads).to_string())]
    {
        if has(name) && settings.iter().all(|(given, _)| given != name) {
            settings.push((name.into(), value));
        }
    }
}

/// The number of CPUs that this process may use.
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
    add_server_options(engine, threads, &mut settings);
    Ok(Request {
        level: level_number(args::level(&args.durability)?),
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
