//! `kvdyno new-engine`: what it refuses and creates. pages.rs tests that the created drivers build and pass `verify`.

use super::command::kvdyno;
use std::fs;

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
        for text in [next, "kvdyno verify", "my.own-2", driver] {
            assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
        }
    }
}
