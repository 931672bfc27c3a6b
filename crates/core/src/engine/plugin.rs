//! Finds and loads plug-ins: shared libraries named `libkvdyno_*.so` that export `kv_plugin`. They are loaded by
//! absolute path, with local symbols, after checks of name, owner and permissions. They are never unloaded, because
//! an engine's code may still be on some thread's stack.

use super::abi::{KV_ABI, kv_plugin_entry};
use super::{Engine, Origin, TableError, harmless};
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a plug-in is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is no such file.
    #[error("not found: {0}")]
    Missing(io::Error),
    /// There is a link to a file, but no such file.
    #[error("link to {}, which was not found: {error}", shown(target))]
    DeadLink {
        /// The file.
        target: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The facts about the file are unknown.
    #[error("cannot examine the file: {0}")]
    Facts(io::Error),
    /// It cannot be read.
    #[error("cannot read the file: {0}")]
    Unreadable(io::Error),
    /// It is a folder.
    #[error("a folder, not a file")]
    Folder,
    /// It is no file with contents of its own.
    #[error("not a regular file")]
    NoFile,
    /// The facts about it, or about a folder above it, are unknown.
    #[error("cannot examine {}: {error}", path.display())]
    FactsOf {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// It, or a folder above it, is of another user.
    #[error("{} belongs to user {user}; it must belong to you or root", path.display())]
    Owner {
        /// The file or folder.
        path: PathBuf,
        /// The user's number.
        user: u32,
    },
    /// Other users can change it, or a folder above it.
    #[error("{} is writable by others (mode {mode:o}); run `chmod go-w` on it", path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It has no bytes.
    #[error("empty file")]
    Empty,
    /// It is something else.
    #[error("not a shared library: it has no ELF header")]
    NoLibrary,
    /// It is a library for another kind of processor.
    #[error("built for {other}, but this machine is {}", std::env::consts::ARCH)]
    Machine {
        /// That kind.
        other: String,
    },
    /// This processor lacks what it needs: what that is.
    #[error("{0}")]
    Processor(String),
    /// The system's loader does not load it: why.
    #[error("cannot load: {0}")]
    Loader(String),
    /// It is a library, but not one of these.
    #[error("not a kvdyno plug-in: it does not export `kv_plugin`")]
    NoPlugin,
    /// It returns no list of tables.
    #[error("its `kv_plugin` returned nothing")]
    NoList,
    /// It returns a list of tables without any.
    #[error("its `kv_plugin` returned an empty list")]
    EmptyList,
    /// It is one of another version of the boundary.
    #[error("built for ABI {abi}, but this kvdyno requires ABI {KV_ABI}; {}", cure_of_abi(*abi))]
    Abi {
        /// That version.
        abi: u32,
    },
    /// A table in its list is null: its place, from 0.
    #[error("table {0} is null")]
    NoTable(usize),
    /// A table cannot be used.
    #[error("{0}")]
    Table(#[from] TableError),
    /// Two of its engines have the same name.
    #[error("contains two engines named `{0}`")]
    SameName(String),
    /// Why the process that examined it did not load it.
    #[error("{0}")]
    Told(String),
    /// How the process that examined it ended.
    #[error("{0}")]
    Died(String),
    /// Its path is no text.
    #[error("its path is not valid UTF-8")]
    Path,
    /// No process has examined it.
    #[error("was not examined")]
    Unexamined,
}

/// What to do about a plug-in of another version.
fn cure_of_abi(abi: u32) -> &'static str {
    if abi > KV_ABI {
        "update kvdyno"
    } else {
        "rebuild it with this version's kit; the driver itself does not change"
    }
}

/// A plug-in that was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", shown(file))]
pub struct Refused {
    /// The file.
    pub file: PathBuf,
    /// The engine that was skipped; `None` if the whole plug-in was.
    pub engine: Option<String>,
    /// The reason.
    pub reason: String,
}

/// A path in a form that is safe to show on a terminal.
pub(super) fn shown(path: &Path) -> String {
    harmless(&path.to_string_lossy())
}

/// The search path for plug-ins, in this order: the folders passed, `KVDYNO_PLUGINS` (separated by `:`),
/// `../lib/kvdyno` next to the executable, the build tree, `~/.local/lib/kvdyno`.
pub fn plugin_folders(given: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = given.to_vec();
    if let Some(list) = std::env::var_os("KVDYNO_PLUGINS") {
        folders.extend(std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()));
    }
    if let Some(folder) = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)) {
        folders.push(folder.join("../lib/kvdyno"));
        folders.push(folder.join("plugins"));
        // Test programs are one folder deeper than the executable.
        folders.push(folder.join("../plugins"));
    }
    if let Some(home) = std::env::var_os("HOME") {
        folders.push(Path::new(&home).join(".local/lib/kvdyno"));
    }
    folders
}

/// Every file in `folders` that is named like a plug-in, each once, in search order: by folder, then by name. A
/// folder may also be the path of a plug-in; missing folders are skipped.
pub(super) fn files_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for folder in folders {
        let mut files: Vec<PathBuf> = if folder.is_file() {
            vec![folder.clone()]
        } else {
            let Ok(entries) = fs::read_dir(folder) else { continue };
            entries.flatten().map(|entry| entry.path()).collect()
        };
        files.sort();
        for file in files.into_iter().filter(|file| is_plugin_name(file)) {
            // The same file found in two ways is one plug-in.
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            if !seen.contains(&real) {
                seen.push(real);
                found.push(file);
            }
        }
    }
    found
}

/// The plug-ins that builds skipped, as recorded in these folders: name and reason. The first entry of a name counts.
pub(super) fn left_out(folders: &[PathBuf]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for folder in folders {
        let text = fs::read_to_string(folder.join("absent.txt")).unwrap_or_default();
        for (name, reason) in text.lines().filter_map(|line| line.split_once('\t')) {
            if !found.iter().any(|(known, _)| known == name) {
                let plain = reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
                found.push((name.to_string(), plain.collect()));
            }
        }
    }
    found
}

/// NAME of `libkvdyno_NAME.so`.
pub(super) fn plugin_name(file: &Path) -> Option<&str> {
    file.file_name()?.to_str()?.strip_prefix("libkvdyno_")?.strip_suffix(".so")
}

/// `libkvdyno_NAME.so` with NAME of `[a-z0-9_.-]`.
pub fn is_plugin_name(file: &Path) -> bool {
    let name = plugin_name(file).unwrap_or("");
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}

/// The file and every folder above it must belong to this user or root, and nobody else may be able to change them. A
/// world-writable folder is allowed if it is sticky, as /tmp is: other users cannot replace files in it. A group may
/// have write access if it is the user's own, with the same number: systems with such groups set a umask of 002.
fn check_owner(file: &Path) -> Result<(), PluginError> {
    // SAFETY: geteuid and getegid cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    for path in file.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        let facts =
            fs::metadata(path).map_err(|error| PluginError::FactsOf { path: path.to_path_buf(), error })?;
        if facts.uid() != 0 && facts.uid() != user {
            return Err(PluginError::Owner { path: path.to_path_buf(), user: facts.uid() });
        }
        let is_sticky_folder = facts.is_dir() && facts.mode() & 0o1000 != 0;
        let is_own_group = group == user && facts.gid() == group;
        let others = if is_own_group { 0o002 } else { 0o022 };
        if facts.mode() & others != 0 && !is_sticky_folder {
            return Err(PluginError::Writable { path: path.to_path_buf(), mode: facts.mode() & 0o7777 });
        }
    }
    Ok(())
}

/// Whether a file can be a plug-in, as far as this can be checked without loading it; returns its real path.
pub(super) fn check_file(file: &Path) -> Result<PathBuf, PluginError> {
    let link = fs::read_link(file).ok();
    let file = file.canonicalize().map_err(|error| match link {
        Some(target) => PluginError::DeadLink { target, error },
        None => PluginError::Missing(error),
    })?;
    let facts = fs::metadata(&file).map_err(PluginError::Facts)?;
    if !facts.is_file() {
        return Err(if facts.is_dir() { PluginError::Folder } else { PluginError::NoFile });
    }
    check_owner(&file)?;
    let mut head = Vec::new();
    let opened = fs::File::open(&file).map_err(PluginError::Unreadable)?;
    opened.take(20).read_to_end(&mut head).map_err(PluginError::Unreadable)?;
    check_head(&head).map(|()| file)
}

/// Checks the first bytes of a library; on systems other than Linux the loader does this.
fn check_head(head: &[u8]) -> Result<(), PluginError> {
    if head.is_empty() {
        return Err(PluginError::Empty);
    }
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    if head.len() < 20 || !head.starts_with(b"\x7fELF") {
        return Err(PluginError::NoLibrary);
    }
    let machine = u16::from_ne_bytes([head[18], head[19]]);
    let own = MACHINES.iter().find(|(_, name)| *name == std::env::consts::ARCH);
    match own {
        Some((own, _)) if *own != machine => {
            let other = MACHINES.iter().find(|(number, _)| *number == machine);
            let other = other.map_or_else(|| format!("ELF machine {machine}"), |(_, name)| name.to_string());
            Err(PluginError::Machine { other })
        }
        _ => Ok(()),
    }
}

/// ELF machine numbers, with Rust's names.
const MACHINES: &[(u16, &str)] =
    &[(62, "x86_64"), (183, "aarch64"), (3, "x86"), (40, "arm"), (243, "riscv64"), (21, "powerpc64")];

/// The loader's message without the file name, which is already part of the message.
fn loader_reason(file: &Path, error: &libloading::Error) -> String {
    let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let path = file.to_string_lossy();
    let reason = reason.strip_prefix(&*path).map_or(&*reason, |rest| rest.trim_start_matches([':', ' ']));
    harmless(reason)
}

/// Runs `work` with its output to stdout and stderr discarded: a plug-in may print while it is loaded. Only for a
/// process with one thread.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let Ok(null) = fs::OpenOptions::new().write(true).open("/dev/null") else { return work() };
    let streams = [libc::STDOUT_FILENO, libc::STDERR_FILENO];
    // SAFETY: descriptors of this process; a copy that failed is -1 and is not restored.
    let kept = streams.map(|stream| unsafe {
        let kept = libc::dup(stream);
        if kept >= 0 {
            libc::dup2(null.as_raw_fd(), stream);
        }
        kept
    });
    let done = work();
    // SAFETY: as above; all C streams are flushed while their output is still discarded.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        for (stream, kept) in streams.into_iter().zip(kept).filter(|(_, kept)| *kept >= 0) {
            libc::dup2(kept, stream);
            libc::close(kept);
        }
    }
    done
}

/// Loads one plug-in into this process and checks each of its tables.
pub(super) fn load(file: &Path) -> Result<Vec<Engine>, PluginError> {
    let file = check_file(file)?;
    let flags = libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_LOCAL;
    let own = std::process::id();
    // SAFETY: the user asks for a plug-in's constructors to run; who can write the file was checked above.
    let library = unsafe { libloading::os::unix::Library::open(Some(&file), flags) }
        .map_err(|error| PluginError::Loader(loader_reason(&file, &error)))?;
    if std::process::id() != own {
        // SAFETY: ends a copy of this process that a constructor forked, which must not do the process's work again.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: the symbol has this type in every plug-in (driver.h); what it returns is checked below.
    let entry = unsafe { library.get::<kv_plugin_entry>(b"kv_plugin\0") };
    let Ok(entry) = entry.map(|symbol| *symbol) else {
        return Err(PluginError::NoPlugin);
    };
    std::mem::forget(library);
    // SAFETY: see above.
    let list = unsafe { entry() };
    // SAFETY: the ABI number is first in every version of the list.
    let Some(abi) = (!list.is_null()).then(|| unsafe { *list.cast::<u32>() }) else {
        return Err(PluginError::NoList);
    };
    if abi != KV_ABI {
        return Err(PluginError::Abi { abi });
    }
    // SAFETY: the ABI matches, so the list is as in driver.h and is never freed.
    let list = unsafe { &*list };
    if list.count == 0 || list.drivers.is_null() {
        return Err(PluginError::EmptyList);
    }
    let mut engines: Vec<Engine> = Vec::new();
    for index in 0..list.count as usize {
        // SAFETY: a list has `count` tables.
        let table = unsafe { *list.drivers.add(index) };
        if table.is_null() {
            return Err(PluginError::NoTable(index));
        }
        // SAFETY: tables are constants of the library, which is never unloaded.
        let engine = Engine::check(unsafe { &*table }, Origin::Plugin(file.clone()))?;
        if engines.iter().any(|other| other.name() == engine.name()) {
            return Err(PluginError::SameName(engine.name().to_string()));
        }
        engines.push(engine);
    }
    Ok(engines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_files_named_as_plugins_are_looked_at() {
        for (name, wanted) in [
            ("libkvdyno_leveldb.so", true),
            ("libkvdyno_go-engines.so", true),
            ("libkvdyno_.so", false),
            ("libkvdyno_../x.so", false),
            ("libleveldb.so", false),
            ("libkvdyno_A.so", false),
        ] {
            assert_eq!(is_plugin_name(&Path::new("/somewhere").join(name)), wanted, "{name}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_to_is_refused_with_the_cure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libkvdyno_bad.so");
        fs::write(&file, b"").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let reason = check_file(&file).unwrap_err().to_string();
        assert!(reason.contains("chmod go-w"), "{reason}");
    }

    #[test]
    fn a_file_given_by_name_is_looked_at_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["libkvdyno_one.so", "libkvdyno_other.so"].map(|name| folder.path().join(name));
        for file in [&one, &other] {
            fs::write(file, b"not a library").unwrap();
        }
        assert_eq!(files_in(std::slice::from_ref(&one)), std::slice::from_ref(&one));
        let folders = [one.clone(), folder.path().to_path_buf()];
        assert_eq!(files_in(&folders), [one, other], "no file twice");
    }

    #[test]
    fn the_reasons_of_a_build_are_read_and_the_first_of_a_name_wins() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        fs::write(folders[0].path().join("absent.txt"), "one\tno header\u{1b}[31m\nnonsense\n").unwrap();
        fs::write(folders[1].path().join("absent.txt"), "one\tanother\ntwo\tno library\n").unwrap();
        let found = left_out(&folders.each_ref().map(|folder| folder.path().to_path_buf()));
        let wanted = [("one", "no header [31m"), ("two", "no library")];
        assert_eq!(found, wanted.map(|(name, reason)| (name.to_string(), reason.to_string())));
    }

    #[test]
    fn a_file_that_is_no_library_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libkvdyno_text.so");
        assert!(check_file(&file).unwrap_err().to_string().contains("not found"));
        for (text, wanted) in [(&b""[..], "empty file"), (b"not a library", "not a shared library")] {
            fs::write(&file, text).unwrap();
            let reason = check_file(&file).unwrap_err().to_string();
            assert!(reason.contains(wanted), "{reason}");
        }
    }
}
