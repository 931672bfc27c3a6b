//! `kvdyno new-engine`: what it refuses and creates. pages.rs tests that the created drivers build and pass `verify`.

use super::command::kvdyno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_bad_name_or_an_existing_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("there")).unwrap();
    fs::write(folder.path().join("there/thesis.txt"), "years").unwrap();
    for (words, wanted) in [
        ("new-engine Mine --lang c", "`Mine` is not a valid engine name"),
        ("new-engine .mine --lang c", "`.mine` is not a valid engine name"),
        ("new-engine ../mine --lang c", "is not a valid engine name"),
        ("new-engine memory-btree --lang rust", "an engine named `memory-btree` already exists"),
        ("new-engine there --lang c", "there already exists"),
        ("new-engine mine --lang rust there", "there already exists"),
        ("new-engine mine --lang fortran", "fortran"),
        ("new-engine mine", "--lang"),
    ] {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(2), "kvdyno {words}\n{}{}", printed.stdout, printed.stderr);
        assert!(printed.stderr.contains(wanted), "kvdyno {words}: no `{wanted}` in\n{}", printed.stderr);
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["there"], "a refused command wrote something");
    assert_eq!(fs::read_dir(folder.path().join("there")).unwrap().count(), 1);
}

#[test]
fn a_new_engine_is_created_in_the_named_folder_and_next_steps_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    for (language, driver, next) in [
        ("c", "driver.c", "make"),
        ("c++", "driver.cc", "make"),
        ("rust", "src/lib.rs", "cargo build --release"),
        ("go", "driver.go", "make"),
    ] {
        let printed =
            kvdyno(folder.path(), &format!("new-engine my.own-2 --lang {language} deep/{language}"));
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        let made = folder.path().join("deep").join(language);
        assert!(fs::read_to_string(made.join(driver)).unwrap().contains("my.own-2"));
        assert!(made.join("engine.toml").exists() && made.join("README.md").exists());
        for text in [next, "kvdyno prove --only rules", "my.own-2", driver] {
            assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let own = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &own);
        } else {
            fs::copy(entry.path(), own).unwrap();
        }
    }
}

/// A checkout with all that the build of an engine needs, and few engines.
fn checkout() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    for part in ["driver", "scripts", "engines/null", "engines/go/example", "engines/go/plugin"] {
        copy(&root().join(part), &top.join(part));
    }
    for file in ["engines/plugins.rs", "engines/CMakeLists.txt"] {
        fs::copy(root().join(file), top.join(file)).unwrap();
    }
    // The workspace and the module, without the dependencies of other engines.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let shared =
        manifest.split_once("\n[workspace.package]\n").unwrap().1.split_once("\n[lints]\n").unwrap().0;
    let members =
        "[workspace]\nmembers = [\n    \"driver/rust\",\n    \"engines/null\",\n]\nresolver = \"3\"\n";
    fs::write(top.join("Cargo.toml"), format!("{members}\n[workspace.package]\n{shared}\n")).unwrap();
    let module = "module kvdyno/engines\n\ngo 1.25.0\n\nrequire kvdyno/driver v0.0.0\n\nreplace kvdyno/driver => ../../driver/go\n";
    fs::write(top.join("engines/go/go.mod"), module).unwrap();
    fs::create_dir_all(top.join("engines/other")).unwrap();
    fs::write(top.join("engines/other/engine.toml"), "name = \"first, second\"\n").unwrap();
    folder
}

/// All files below a folder, with their text.
fn files(folder: &Path, top: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, top, found);
        } else {
            found.insert(path.strip_prefix(top).unwrap().display().to_string(), fs::read(&path).unwrap());
        }
    }
}

fn tree(top: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    files(top, top, &mut found);
    found
}

#[test]
fn an_engine_of_the_tree_is_only_its_folder_and_in_rust_a_member() {
    for (language, name, folder, own, build) in [
        ("c", "my.own-c", "engines/my-own-c", ["CMakeLists.txt", "driver.c"].as_slice(), "make plugins"),
        ("c++", "my-own", "engines/my-own", &["CMakeLists.txt", "driver.cc"], "make plugins"),
        (
            "rust",
            "my-own",
            "engines/my-own",
            &["Cargo.toml", "driver.rs"],
            "make rust-plugins RUST_PLUGINS=my-own",
        ),
        ("go", "my.own-go", "engines/go/myowngo", &["driver.go"], "make go-plugins"),
    ] {
        let checkout = checkout();
        let top = checkout.path();
        let before = tree(top);
        let words = format!("new-engine {name} --lang {language} --in-tree");
        let printed = kvdyno(&top.join("engines/null"), &words);
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        let after = tree(top);
        let is_new = |file: &&String| !before.contains_key(*file);
        let wanted: Vec<String> =
            ["README.md", "engine.toml"].iter().chain(own).map(|file| format!("{folder}/{file}")).collect();
        assert_eq!(
            after.keys().filter(is_new).collect::<BTreeSet<_>>(),
            wanted.iter().collect(),
            "{language}"
        );
        let changed: Vec<&String> = before.keys().filter(|file| before[*file] != after[*file]).collect();
        assert_eq!(changed, if language == "rust" { vec!["Cargo.toml"] } else { vec![] }, "{language}");
        for text in wanted.iter().map(|file| &file[..]).chain([
            "    cd ",
            build,
            "kvdyno prove --only rules",
            "make engines-table",
        ]) {
            assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
        }
        let driver = own.iter().find(|file| file.starts_with("driver")).unwrap();
        let driver = fs::read_to_string(top.join(folder).join(driver)).unwrap();
        assert!(driver.contains(&format!("\"{name}\"")), "{driver}");
        let facts: toml::Table =
            fs::read_to_string(top.join(folder).join("engine.toml")).unwrap().parse().unwrap();
        assert_eq!(facts["name"].as_str(), Some(name));
        // What a driver outside has beside it, and what there would be to delete.
        assert!(
            !after.keys().any(|file| file.ends_with("/kit.h") && file.starts_with("engines/")),
            "{after:?}"
        );
    }
}

#[test]
fn what_cannot_be_added_to_the_tree_is_refused_and_nothing_is_written() {
    let checkout = checkout();
    let (top, outside) = (checkout.path(), tempfile::tempdir().unwrap());
    let before = tree(top);
    for (folder, words, wanted) in [
        (outside.path(), "mine --lang go --in-tree", "this folder is not in a checkout of kvdyno"),
        (top, "mine mine --lang go --in-tree", "cannot be used with"),
        (top, "Mine --lang go --in-tree", "`Mine` is not a valid engine name"),
        (top, "memory-btree --lang c --in-tree", "an engine named `memory-btree` already exists"),
        // Known to the checkout only.
        (top, "second --lang c --in-tree", "an engine named `second` already exists"),
        (top, "plugin --lang go --in-tree", "engines/go/plugin already exists"),
        (top, "go --lang rust --in-tree", "engines/go already exists"),
    ] {
        let printed = kvdyno(folder, &format!("new-engine {words}"));
        assert_eq!(printed.code, Some(2), "{words}\n{}{}", printed.stdout, printed.stderr);
        assert!(printed.stderr.contains(wanted), "{words}: no `{wanted}` in\n{}", printed.stderr);
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(tree(top), before);
    fs::write(top.join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
    let printed = kvdyno(top, "new-engine mine --lang rust --in-tree");
    assert_eq!(printed.code, Some(1), "{}", printed.stderr);
    assert!(
        printed.stderr.contains("no list of members") && !top.join("engines/mine").exists(),
        "{}",
        printed.stderr
    );
}

/// Adds an engine to a checkout for each language, builds its plug-ins by `build`, and verifies them.
fn build_and_verify(languages: &[&str], build: &mut Command, checkout: &Path) {
    let names: Vec<String> = (1..=languages.len()).map(|number| format!("in-tree.{number}")).collect();
    for (language, name) in languages.iter().zip(&names) {
        let printed = kvdyno(checkout, &format!("new-engine {name} --lang {language} --in-tree"));
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    }
    let built = build.current_dir(checkout).env_remove("CI").output().unwrap();
    let log = [&built.stdout[..], &built.stderr[..]].concat();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&log));
    let words = format!(
        "prove --only rules --plugins target/release/plugins --ops 500 --seconds 0.2 {}",
        names.join(" ")
    );
    let printed = kvdyno(checkout, &words);
    assert_eq!(
        printed.code,
        Some(0),
        "{}{}{}",
        String::from_utf8_lossy(&log),
        printed.stdout,
        printed.stderr
    );
    assert_eq!(printed.stdout.matches(" green ").count(), languages.len(), "{}", printed.stdout);
}

/// Whether a tool is here, which it must be in CI.
fn has(tool: &str, argument: &str) -> bool {
    let is_here = Command::new(tool).arg(argument).output().is_ok_and(|output| output.status.success());
    assert!(is_here || std::env::var("CI").as_deref() != Ok("true"), "CI needs {tool}");
    is_here
}

#[test]
fn an_engine_of_the_tree_in_c_or_cpp_builds_and_is_verified() {
    if has("cmake", "--version") {
        let checkout = checkout();
        let mut build = Command::new("scripts/plugins.sh");
        build_and_verify(&["c", "c++"], build.arg("target"), checkout.path());
    }
}

#[test]
fn an_engine_of_the_tree_in_go_builds_and_is_verified() {
    if has("go", "version") {
        let checkout = checkout();
        let mut build = Command::new("scripts/go-plugins.sh");
        build_and_verify(&["go"], build.arg("target").env("GOPROXY", "off"), checkout.path());
    }
}

#[test]
fn an_engine_of_the_tree_in_rust_builds_and_is_verified() {
    let checkout = checkout();
    let mut build = Command::new("scripts/rust-plugins.sh");
    build.arg("target").env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", "target");
    build_and_verify(&["rust"], build.env("RUST_PLUGINS", "in-tree-1"), checkout.path());
}
