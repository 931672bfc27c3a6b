//! Finds and loads plug-ins: shared libraries named `libkvdyno_*.so` that export `kv_plugin`. They are loaded by
//! absolute path, with their symbols kept to themselves, after checks of name, owner and permissions, and are never
//! unloaded: code of an engine may still be on some thread's stack.

use super::abi::{KV_ABI, kv_plugin_entry};
use super::{Engine, Origin};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A plug-in that was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The file.
    pub file: PathBuf,
    /// Why.
    pub reason: String,
}

/// Where plug-ins are looked for, in this order: the folders given, `KVDYNO_PLUGINS` (separated by `:`),
/// `../lib/kvdyno` beside the executable, the build tree, `~/.local/lib/kvdyno`.
pub fn plugin_folders(given: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = given.to_vec();
    if let Some(list) = std::env::var_os("KVDYNO_PLUGINS") {
        folders.extend(std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()));
    }
    if let Some(folder) = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_path_buf)) {
        folders.push(folder.join("../lib/kvdyno"));
        folders.push(folder.join("plugins"));
        // Test programs lie one folder deeper than the executable.
        folders.push(folder.join("../plugins"));
    }
    if let Some(home) = std::env::var_os("HOME") {
        folders.push(Path::new(&home).join(".local/lib/kvdyno"));
    }
    folders
}

/// Loads every plug-in in `folders`, one of which may also be a plug-in's file; what is not there is passed over.
pub(super) fn load_all(folders: &[PathBuf]) -> (Vec<Engine>, Vec<Refused>) {
    let mut engines = Vec::new();
    let mut refused = Vec::new();
    let mut seen = Vec::new();
    for folder in folders {
        let Ok(folder) = folder.canonicalize() else { continue };
        if seen.contains(&folder) {
            continue;
        }
        let mut files: Vec<PathBuf> = if folder.is_file() {
            vec![folder.clone()]
        } else {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            entries.flatten().map(|entry| entry.path()).collect()
        };
        seen.push(folder);
        files.sort();
        for file in files.into_iter().filter(|file| is_plugin_name(file)) {
            match load(&file) {
                Ok(found) => engines.extend(found),
                Err(reason) => refused.push(Refused { file, reason }),
            }
        }
    }
    (engines, refused)
}

/// What the builds that left plug-ins out of these folders say of them: name and reason, the first of a name wins.
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
fn is_plugin_name(file: &Path) -> bool {
    let name = plugin_name(file).unwrap_or("");
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}

/// The file and every folder above it must be ours or root's, and no one else may be able to change them. A folder
/// that all may write to is let pass when it is sticky, as /tmp is: in it others cannot replace what is ours. A group
/// may write where it is the user's own, of the same number: systems that make such groups give a umask of 002.
fn check_owner(file: &Path) -> Result<(), String> {
    // SAFETY: geteuid and getegid cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    for path in file.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        let facts =
            fs::metadata(path).map_err(|error| format!("cannot look at {}: {error}", path.display()))?;
        let shown = path.display();
        if facts.uid() != 0 && facts.uid() != user {
            return Err(format!("{shown} belongs to user {}; it must be yours or root's", facts.uid()));
        }
        let is_sticky_folder = facts.is_dir() && facts.mode() & 0o1000 != 0;
        let is_own_group = group == user && facts.gid() == group;
        let others = if is_own_group { 0o002 } else { 0o022 };
        if facts.mode() & others != 0 && !is_sticky_folder {
            return Err(format!(
                "{shown} can be written to by others (mode {:o}); run `chmod go-w` on it",
                facts.mode() & 0o7777
            ));
        }
    }
    Ok(())
}

/// Loads one plug-in and checks each of its tables.
pub(super) fn load(file: &Path) -> Result<Vec<Engine>, String> {
    let file = file.canonicalize().map_err(|error| format!("cannot be found: {error}"))?;
    check_owner(&file)?;
    let flags = libloading::os::unix::RTLD_NOW | libloading::os::unix::RTLD_LOCAL;
    // SAFETY: running a plug-in's constructors is what the user asks for; who may write the file was checked above.
    let library = unsafe { libloading::os::unix::Library::open(Some(&file), flags) }
        .map_err(|error| format!("is no shared library that can be loaded here: {error}"))?;
    // SAFETY: the symbol has this type in every plug-in (driver.h); what it returns is checked below.
    let entry = unsafe { library.get::<kv_plugin_entry>(b"kv_plugin\0") };
    let Ok(entry) = entry.map(|symbol| *symbol) else {
        return Err("is no kvdyno plug-in: it does not export `kv_plugin`".into());
    };
    std::mem::forget(library);
    // SAFETY: see above.
    let list = unsafe { entry() };
    // SAFETY: the ABI number comes first in every version of the list.
    let Some(abi) = (!list.is_null()).then(|| unsafe { *list.cast::<u32>() }) else {
        return Err("its `kv_plugin` returned nothing".into());
    };
    if abi != KV_ABI {
        return Err(format!("it was built for ABI {abi}, this kvdyno speaks {KV_ABI}; build it again"));
    }
    // SAFETY: the ABI matches, so the list is as in driver.h and lives for ever.
    let list = unsafe { &*list };
    let mut engines = Vec::new();
    for index in 0..list.count as usize {
        // SAFETY: a list has `count` tables.
        let table = unsafe { *list.drivers.add(index) };
        if table.is_null() {
            return Err(format!("table {index} is null"));
        }
        // SAFETY: tables are constants of the library, which is never unloaded.
        engines.push(Engine::check(unsafe { &*table }, Origin::Plugin(file.clone()))?);
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
        let (engines, refused) = load_all(&[folder.path().to_path_buf()]);
        assert!(engines.is_empty());
        assert_eq!(refused.len(), 1);
        assert!(refused[0].reason.contains("chmod go-w"), "{}", refused[0].reason);
    }

    #[test]
    fn a_file_given_by_name_is_looked_at_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = ["libkvdyno_one.so", "libkvdyno_other.so"].map(|name| folder.path().join(name));
        for file in [&one, &other] {
            fs::write(file, b"not a library").unwrap();
        }
        let (_, refused) = load_all(std::slice::from_ref(&one));
        assert_eq!(refused.len(), 1);
        assert!(refused[0].file.ends_with("libkvdyno_one.so"));
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
        fs::write(folder.path().join("libkvdyno_text.so"), b"not a library").unwrap();
        let (engines, refused) = load_all(&[folder.path().to_path_buf()]);
        assert!(engines.is_empty());
        assert!(refused[0].reason.contains("no shared library"), "{}", refused[0].reason);
    }
}
