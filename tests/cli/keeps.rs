//! Engines that keep the bytes that they are given get copies from the kit, in their own time, in C, C++ and Go.

use super::command::{Printed, kvdyno};
use super::liars::build;
use std::path::Path;
use std::process::Command;

fn verified(folder: &Path, engine: &str, plugins: &str) {
    let printed =
        kvdyno(folder, &format!("prove --only rules {engine} --plugins {plugins} --ops 2000 --seconds 1"));
    assert_eq!(printed.code, Some(0), "{}{}", printed.stdout, printed.stderr);
    let words = format!(
        "run quick --engines {engine} --plugins {plugins} --runs 1 --ops 2000 --keys 2000 --quiet --full"
    );
    let Printed { code, stdout, stderr } = kvdyno(folder, &words);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(!stdout.contains("times unaccounted"), "{stdout}");
}

#[test]
fn an_engine_in_c_that_keeps_what_it_is_given_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "keeper");
    verified(folder.path(), "keeper", "plugins");
}

#[test]
fn an_engine_in_cpp_that_keeps_what_it_is_given_is_verified() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("c++")
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-I"])
        .arg(root.join("driver/include"))
        .arg(root.join("tests/cli/keeper.cc"))
        .arg("-o")
        .arg(plugins.join("libkvdyno_keeper_cpp.so"))
        .status();
    assert!(built.expect("a C++ compiler named c++").success());
    verified(folder.path(), "keeper-cpp", "plugins");
}

#[test]
fn an_engine_in_go_that_keeps_what_it_is_given_is_verified() {
    let version = Command::new("go").arg("version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs Go");
        println!("skipped: Go is not here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = kvdyno(folder.path(), "new-engine keeper-go --lang go");
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let engine = folder.path().join("keeper-go");
    std::fs::write(engine.join("driver.go"), include_str!("keeper.go")).unwrap();
    let built = Command::new("make").current_dir(&engine).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    verified(folder.path(), "keeper-go", "keeper-go");
}
