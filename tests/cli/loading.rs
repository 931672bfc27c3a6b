//! Plug-ins that cannot be loaded, or hold what is not as driver.h wants it: each is a line with its reason, whatever it
//! does while it is loaded, and what is sound beside it is there.

use super::command::{Printed, kvdyno};
use std::fs;
use std::path::Path;
use std::process::Command;

fn cc(folder: &Path, words: &[&str]) {
    let built = Command::new("cc").args(["-w", "-shared", "-fPIC"]).args(words).current_dir(folder).status();
    assert!(built.expect("a C compiler named cc").success(), "{words:?}");
}

/// Builds tests/cli/loading.c as the plug-in `name`; `kind` are definitions (`NAME="x" ABI=3`) and flags of the linker.
fn build(folder: &Path, name: &str, kind: &[&str]) {
    fs::create_dir_all(folder.join("plugins")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = format!("-I{}", root.join("driver/include").display());
    let source = root.join("tests/cli/loading.c").display().to_string();
    let own = format!("-DNAME=\"{name}\"");
    let out = format!("plugins/libkvdyno_{name}.so");
    let mut words = vec!["-std=gnu11", "-O1", "-fvisibility=hidden", &include, &own, &source, "-o", &out];
    words.extend(kind);
    cc(folder, &words);
}

/// Each plug-in, how it is built, and what its line must say.
const KINDS: &[(&str, &[&str], &str)] = &[
    ("exit-0", &["-DKIND_EXIT=0"], "ended the process while being loaded (exit code 0)"),
    ("exit-3", &["-DKIND_EXIT=3"], "ended the process while being loaded (exit code 3)"),
    ("abort", &["-DKIND_ABORT"], "crashed while being loaded (SIGABRT); last message: last \\x1b[31mwords"),
    ("segfault", &["-DKIND_SEGFAULT"], "crashed while being loaded (SIGSEGV)"),
    ("undefined", &["-DKIND_UNDEFINED"], "cannot load: undefined symbol: nobody_defines_this"),
    ("no-symbol", &["-DKIND_NO_SYMBOL"], "does not export `kv_plugin`"),
    ("null-list", &["-DKIND_NULL_LIST"], "its `kv_plugin` returned nothing"),
    ("empty-list", &["-DKIND_NONE"], "its `kv_plugin` returned an empty list"),
    ("null-table", &["-DKIND_NULL_TABLE"], "table 0 is null"),
    ("twins", &["-DKIND_TWO"], "contains two engines named `twins`"),
    ("no-entry", &["-DKIND_NO_ENTRY"], "the driver table of `no-entry` lacks an entry"),
    (
        "older",
        &["-DABI=1"],
        "built for ABI 1, but this kvdyno requires ABI 2; rebuild it with this version's kit; the driver itself does not change",
    ),
    ("newer", &["-DABI=3"], "built for ABI 3, but this kvdyno requires ABI 2; update kvdyno"),
    ("null-name", &["-UNAME", "-DNAME=NULL"], "`` is not a valid engine name"),
    ("empty-name", &["-UNAME", "-DNAME=\"\""], "`` is not a valid engine name"),
    ("escape-name", &["-UNAME", "-DNAME=\"a\\033[31mb\""], "`a\\x1b[31mb` is not a valid engine name"),
    ("bytes-name", &["-UNAME", "-DNAME=\"a\\377b\""], "b` is not a valid engine name"),
    ("slash-name", &["-UNAME", "-DNAME=\"../a\""], "`../a` is not a valid engine name"),
    ("space-name", &["-UNAME", "-DNAME=\"a b\""], "`a b` is not a valid engine name"),
    ("unterminated", &["-DKIND_UNTERMINATED"], "the driver's name does not end within 4096 bytes"),
    ("null-option", &["-DKIND_NULL_OPTION"], "option 0 of `null-option` has no name or no type"),
    ("unknown-bit", &["-DCAPABILITIES=(1ull<<50)"], "capabilities that this kvdyno does not know (bit 50)"),
    (
        "taken",
        &["-UNAME", "-DNAME=\"memory-btree\""],
        "its engine `memory-btree` was skipped because a built-in engine",
    ),
];

/// Files that are no plug-ins at all; names and what their lines must say.
fn write_others(folder: &Path) -> Vec<(&'static str, &'static str)> {
    let plugins = folder.join("plugins");
    let file = |name: &str| plugins.join(format!("libkvdyno_{name}.so"));
    fs::write(folder.join("gone.c"), "int gone(void) { return 1; }\n").unwrap();
    cc(folder, &["gone.c", "-o", "libkvdyno-gone.so"]);
    build(folder, "missing", &["-Wl,--no-as-needed", "-L.", "-lkvdyno-gone"]);
    fs::remove_file(folder.join("libkvdyno-gone.so")).unwrap();
    fs::write(file("empty"), "").unwrap();
    fs::write(file("text"), "no library").unwrap();
    fs::create_dir(file("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", file("dangling")).unwrap();
    build(folder, "other-machine", &[]);
    let mut bytes = fs::read(file("other-machine")).unwrap();
    let other: u16 = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    bytes[18..20].copy_from_slice(&other.to_ne_bytes());
    fs::write(file("other-machine"), bytes).unwrap();
    vec![
        ("missing", "cannot load: libkvdyno-gone.so: cannot open shared object file"),
        ("empty", "empty file"),
        ("text", "not a shared library"),
        ("folder", "a folder, not a file"),
        ("dangling", "link to nowhere, which was not found"),
        ("other-machine", "built for"),
    ]
}

fn no_escapes(what: &str, printed: &Printed) {
    let text = format!("{}{}", printed.stdout, printed.stderr);
    assert!(!text.contains('\u{1b}'), "{what}: an escape in\n{text:?}");
}

#[test]
fn a_plugin_that_cannot_be_loaded_is_one_line_with_its_name_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut wanted = Vec::new();
    for (name, kind, reason) in KINDS {
        build(folder.path(), name, kind);
        wanted.push((*name, *reason));
    }
    wanted.extend(write_others(folder.path()));
    for name in ["print", "fork"] {
        build(folder.path(), name, &[&format!("-DKIND_{}", name.to_uppercase())]);
    }
    let printed = kvdyno(folder.path(), "engines --plugins plugins");
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    for (name, reason) in &wanted {
        let start = format!("refused: plugins/libkvdyno_{name}.so: ");
        let lines: Vec<&str> = printed.stdout.lines().filter(|line| line.starts_with(&start)).collect();
        assert!(lines.len() == 1 && lines[0].contains(reason), "{name}: no `{reason}` in {lines:#?}");
    }
    let refused = printed.stdout.lines().filter(|line| line.starts_with("refused: plugins"));
    assert_eq!(refused.count(), wanted.len(), "{}", printed.stdout);
    for name in ["print", "fork", "memory-btree"] {
        let is_here = printed.stdout.lines().any(|line| line.split(' ').next() == Some(name));
        assert!(is_here, "no {name} in\n{}", printed.stdout);
    }
    assert!(!printed.stdout.contains("babble") && !printed.stderr.contains("babble"), "{}", printed.stderr);
    no_escapes("engines", &printed);
}

#[test]
fn an_engine_whose_plugin_cannot_be_loaded_is_absent_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (name, kind) in
        [("exit-0", "-DKIND_EXIT=0"), ("abort", "-DKIND_ABORT"), ("undefined", "-DKIND_UNDEFINED")]
    {
        build(folder.path(), name, &[kind]);
    }
    for (name, reason) in
        [("exit-0", "(exit code 0)"), ("abort", "(SIGABRT)"), ("undefined", "undefined symbol")]
    {
        for words in [
            format!("run fill-seq --engines {name}"),
            format!("prove --only rules {name}"),
            format!("engines {name}"),
            format!("serve {name}"),
        ] {
            let printed = kvdyno(folder.path(), &format!("{words} --plugins plugins"));
            assert_eq!(printed.code, Some(4), "{words}\n{}{}", printed.stdout, printed.stderr);
            let line = printed.stderr.lines().find(|line| line.contains(&format!("libkvdyno_{name}.so")));
            assert!(
                line.is_some_and(|line| line.contains(reason)),
                "{words}: no `{reason}` in\n{}",
                printed.stderr
            );
            no_escapes(&words, &printed);
        }
    }
    let printed =
        kvdyno(folder.path(), "run fill-seq --keys 100 --engines memory-map --quiet --plugins plugins");
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    assert!(!printed.stderr.contains("plug-in"), "nobody asked for those: {}", printed.stderr);
}

#[test]
fn a_plugin_that_hangs_while_it_is_loaded_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "hang", &["-DKIND_HANG"]);
    build(folder.path(), "sound", &[]);
    let printed = kvdyno(folder.path(), "engines sound --plugins plugins");
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let printed = kvdyno(folder.path(), "prove --only rules hang --plugins plugins");
    assert_eq!(printed.code, Some(4), "{}", printed.stderr);
    assert!(printed.stderr.contains("did not load within 10 s"), "{}", printed.stderr);
}

#[test]
fn a_name_is_one_engines_and_the_second_one_is_refused_with_both_files() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["first", "second"] {
        build(folder.path(), name, &["-UNAME", "-DNAME=\"same\""]);
    }
    let words = ["engines --plugins plugins", "prove --only rules same --check open --plugins plugins"];
    for words in words {
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(0), "{words}\n{}{}", printed.stdout, printed.stderr);
        let text = printed.stdout + &printed.stderr;
        let line =
            text.lines().find(|line| line.contains("libkvdyno_second.so: its engine `same` was skipped"));
        assert!(
            line.is_some_and(|line| line.contains("libkvdyno_first.so has the same name")),
            "{words}\n{text}"
        );
    }
}

#[test]
fn plugins_that_are_looked_for_where_nothing_is_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plugin.so"), "").unwrap();
    for words in
        ["engines", "run quick", "run quick --engines nothing-like-it", "verify", "serve redb", "doctor"]
    {
        for (place, wanted) in [("nowhere", "No such file"), ("plugin.so", "not the file name of a plug-in")]
        {
            let printed = kvdyno(folder.path(), &format!("{words} --plugins {place}"));
            assert_eq!(printed.code, Some(2), "{words}\n{}", printed.stderr);
            assert!(printed.stderr.contains(&format!("--plugins {place}: ")), "{words}\n{}", printed.stderr);
            assert!(printed.stderr.contains(wanted), "{words}\n{}", printed.stderr);
            assert!(!printed.stderr.contains("did you mean"), "{words}\n{}", printed.stderr);
        }
    }
}

#[test]
fn what_a_driver_says_never_reaches_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "print", &["-DKIND_PRINT", "-DTEXT=\"a \\033[31mred\\007 engine\""]);
    for words in [
        "engines print",
        "engines --json",
        "prove --only rules print --all --ops 100 --seconds 0.05",
        "prove --only rules print --json --ops 100 --seconds 0.05",
        "run fill-seq --keys 100 --engines print --quiet",
        "report",
        "doctor",
    ] {
        let plugins = if words == "report" { "" } else { " --plugins plugins" };
        let printed = kvdyno(folder.path(), &format!("{words}{plugins}"));
        // A constructor that prints breaks a rule, of which these commands tell.
        let is_verified = words.starts_with("prove");
        let tells = is_verified || words.starts_with("run") || words == "report";
        let code = if is_verified { 3 } else { 0 };
        assert_eq!(printed.code, Some(code), "{words}\n{}{}", printed.stdout, printed.stderr);
        no_escapes(words, &printed);
        let has_text = printed.stdout.contains("babble") || printed.stderr.contains("babble");
        assert!(tells || !has_text, "{words}\n{}{}", printed.stdout, printed.stderr);
        assert!(!is_verified || printed.stdout.contains("printed"), "{words}\n{}", printed.stdout);
    }
    let printed = kvdyno(folder.path(), "engines print --plugins plugins");
    for text in ["print: a \\x1b[31mred\\x07 engine", "1.0\\x1b[31m", "of \\x1b[31mnothing"] {
        assert!(printed.stdout.contains(text), "no `{text}` in\n{}", printed.stdout);
    }
}

#[test]
fn defaults_with_units_are_fine_and_those_of_another_type_are_not() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "units", &["-DDEFAULT=\"256M\""]);
    build(folder.path(), "banana", &["-DDEFAULT=\"banana\""]);
    let verify = |name: &str| {
        kvdyno(folder.path(), &format!("prove --only rules {name} --check options --plugins plugins"))
    };
    let printed = verify("units");
    assert_eq!(printed.code, Some(0), "{}", printed.stdout);
    assert!(
        printed.stdout.contains("3 passed, 0 failed, 0 not applicable"),
        "it and processes: {}",
        printed.stdout
    );
    let printed = verify("banana");
    assert_eq!(printed.code, Some(3), "{}", printed.stdout);
    assert!(printed.stdout.contains("the default of the option `size` is `banana`"), "{}", printed.stdout);
    for (more, wanted) in
        [("--check optoins", "did you mean `options`"), ("--option units.sice=1", "did you mean `size`")]
    {
        let printed = kvdyno(folder.path(), &format!("prove --only rules units {more} --plugins plugins"));
        assert_eq!(printed.code, Some(2), "{more}\n{}", printed.stderr);
        assert!(printed.stderr.contains(wanted), "{more}\n{}", printed.stderr);
    }
    let printed = kvdyno(
        folder.path(),
        "prove --only rules units --check open --option units.size=0 --plugins plugins",
    );
    assert_eq!(printed.code, Some(3), "the option reaches the driver\n{}", printed.stdout);
}

#[test]
fn rows_of_a_plugin_say_that_it_is_not_verified_until_it_is() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), "unproven", &[]);
    let told = || {
        let run = "run fill-seq --keys 100 --engines unproven,memory-map --quiet --plugins plugins";
        let mut texts = vec![("engines", kvdyno(folder.path(), "engines unproven --plugins plugins").stdout)];
        for words in [run, "report --format csv", "report --format html", "report --format json"] {
            let printed = kvdyno(folder.path(), words);
            assert_eq!(printed.code, Some(0), "{words}\n{}{}", printed.stdout, printed.stderr);
            texts.push((words, printed.stdout));
        }
        texts
    };
    for (words, text) in told() {
        assert!(text.contains("not verified"), "{words}\n{text}");
    }
    // What only one check proves is not remembered.
    let words = "prove --only rules unproven --ops 100 --seconds 0.05 --plugins plugins";
    let printed = kvdyno(folder.path(), &format!("{words} --check open"));
    assert!(!folder.path().join("plugins/proven.toml").exists(), "{}", printed.stderr);
    let printed = kvdyno(folder.path(), words);
    assert_eq!(printed.code, Some(0), "{}", printed.stdout);
    for text in ["unproven passed all checks; saved in ", "plugins/proven.toml"] {
        assert!(printed.stderr.contains(text), "no `{text}` in\n{}", printed.stderr);
    }
    for (words, text) in told() {
        assert!(!text.contains("not verified"), "{words}\n{text}");
    }
}
