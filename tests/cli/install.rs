//! `scripts/install.sh`, which `make install` and `make uninstall` call: what is installed where, and what is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn install(words: &[&Path], destination: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install.sh");
    let mut command = Command::new(script);
    command.args(words).env("DESTDIR", destination).env("PREFIX", "/opt/it").env_remove("STRIP");
    command.output().expect("bash is installed")
}

/// All files below a folder, by path from it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// A folder of a build, with a plug-in of this name. The command is a link, so that 100 MiB are copied only to install it.
fn built(folder: &Path, plugin: &str) -> PathBuf {
    let _ = fs::remove_dir_all(folder.join("plugins"));
    fs::create_dir_all(folder.join("plugins")).unwrap();
    fs::write(folder.join("plugins").join(plugin), "not loaded here").unwrap();
    let kvdyno = folder.join("kvdyno");
    if !kvdyno.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kvdyno"), &kvdyno).unwrap();
    }
    kvdyno
}

#[test]
fn uninstalling_removes_what_was_installed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder.path().join("a folder");
    let prefix = destination.join("opt/it");
    let own = Path::new("lib/kvdyno/libkvdyno_own.so");
    fs::create_dir_all(prefix.join(own).parent().unwrap()).unwrap();
    fs::write(prefix.join(own), "the user's").unwrap();

    let first = built(&folder.path().join("build"), "libkvdyno_first.so");
    let done = install(&[&first], &destination);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let there = files(&prefix);
    for wanted in [
        "bin/kvdyno",
        "lib/kvdyno/libkvdyno_first.so",
        "share/bash-completion/completions/kvdyno",
        "share/fish/vendor_completions.d/kvdyno.fish",
        "share/man/man1/kvdyno.1",
        "share/man/man1/kvdyno-run.1",
        "share/man/man1/kvdyno-keys-make.1",
        "share/zsh/site-functions/_kvdyno",
    ] {
        assert!(there.contains(&PathBuf::from(wanted)), "no {wanted} in {there:?}");
    }

    // A newer build without that plug-in.
    let second = built(&folder.path().join("build"), "libkvdyno_second.so");
    assert!(install(&[&second], &destination).status.success());
    let there = files(&prefix);
    assert!(there.contains(&PathBuf::from("lib/kvdyno/libkvdyno_second.so")), "{there:?}");
    assert!(!there.contains(&PathBuf::from("lib/kvdyno/libkvdyno_first.so")), "{there:?}");

    assert!(install(&[Path::new("--uninstall")], &destination).status.success());
    assert_eq!(files(&prefix), [own]);
    assert!(!prefix.join("share").exists() && !prefix.join("bin").exists(), "empty folders are left");
    let again = install(&[Path::new("--uninstall")], &destination);
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("kvdyno is not installed in"));
}

#[test]
fn completions_and_manual_pages_name_no_internal_command() {
    for words in ["completions bash", "completions zsh", "completions fish", "man"].map(str::split_whitespace)
    {
        let output = Command::new(env!("CARGO_BIN_EXE_kvdyno")).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("new-engine") || text.contains("new\\-engine"), "{text}");
        for inner in ["inner", "(internal)"] {
            assert!(!text.contains(inner), "{inner}");
        }
    }
}
