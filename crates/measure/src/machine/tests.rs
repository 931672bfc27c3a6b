//! Facts that every machine has; none of them identifies its owner.

use super::{Conditions, Machine, parse_os};
use std::path::Path;

#[test]
fn reads_the_name_of_the_system() {
    assert_eq!(parse_os("NAME=x\nPRETTY_NAME=\"Debian 12\"\n").as_deref(), Some("Debian 12"));
    assert_eq!(parse_os("PRETTY_NAME=''\n"), None);
    assert_eq!(parse_os(""), None);
}

#[test]
fn facts_are_stored_and_come_back() {
    let machine = Machine::observe(Path::new("."));
    let text = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine, "{text}");
    assert!(!machine.architecture.is_empty());
}

#[test]
fn no_host_name_and_no_path_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = serde_json::to_string(&Machine::observe(folder.path())).unwrap();
    assert!(!text.contains("\"/"), "a path is in {text}");
    assert!(!text.contains(folder.path().file_name().unwrap().to_str().unwrap()), "the folder is in {text}");
    if let Ok(host) = std::fs::read_to_string("/etc/hostname") {
        let host = host.trim();
        // A short or common name could be in the facts for other reasons.
        assert!(
            host.len() < 8 || host == "localhost" || !text.contains(host),
            "the host's name is in {text}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn linux_reports_cpus_memory_and_limits() {
    let machine = Machine::observe(Path::new("."));
    assert!(machine.cpus.unwrap() >= 1 && machine.memory_bytes.unwrap() > 0, "{machine:?}");
    assert!(machine.open_files_soft <= machine.open_files_hard, "{machine:?}");
    let conditions = Conditions::observe(Path::new("."));
    assert!(conditions.load.is_some() && conditions.disk_free_bytes.is_some(), "{conditions:?}");
}
