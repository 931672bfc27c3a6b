//! Rules that neither the compiler nor clippy checks: who may use whom, heads of files, and what no file may contain.

#[path = "layers/packaging.rs"]
mod packaging;
#[path = "layers/source.rs"]
mod source;
#[path = "layers/wording.rs"]
mod wording;

use source::{SOURCES, Source, body, closing, is_test, root, words};
use std::fs;
use std::path::Path;

/// The modules of the crate that measures, and those that each may use (ARCHITECTURE.md, "Crates"). Cargo sees to the crates.
const ROOMS: &[(&str, &[&str])] = &[
    ("generator", &[]),
    ("engine", &[]),
    ("workload", &["generator"]),
    ("results", &["workload"]),
    ("runner", &["workload", "generator", "engine", "results"]),
];
const CORE: &str = "crates/core/src/";
/// Names of engines may stand in the list of built-in ones, in the names of workloads that are called after a tool, and in
/// examples of the command line's help.
const MAY_NAME_ENGINES: &[&str] =
    &["crates/core/src/engine/builtin.rs", "crates/core/src/workload/builtin.rs", "src/cli/"];
/// Files that may hold more than ASCII.
const NOT_ASCII: &[&str] = &[];
/// Names that say nothing about what is inside.
const NO_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager"];

fn violations(rule: impl Fn(&Source) -> Vec<String>) -> Vec<String> {
    SOURCES.iter().flat_map(rule).collect()
}

fn assert_none(found: Vec<String>) {
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

/// The first names behind each `crate::`, and behind `super::` where it leaves the room.
fn uses(source: &Source, room: &str) -> Vec<(usize, String)> {
    let code = &source.code;
    let name_at =
        |at: usize| code[at..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    let mut found = Vec::new();
    for at in words(code, "crate").filter(|at| code[*at..].starts_with("crate::")) {
        let rest = at + "crate::".len();
        if !code[rest..].starts_with('{') {
            found.push((at, name_at(rest).to_string()));
            continue;
        }
        let mut depth = 0;
        for (place, byte) in code.bytes().enumerate().take(closing(code, rest)).skip(rest) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' | b' ' | b'\n' => {}
                _ if depth == 1 && b"{, \n".contains(&code.as_bytes()[place - 1]) => {
                    found.push((place, name_at(place).to_string()));
                }
                _ => {}
            }
        }
    }
    let inside =
        source.path.strip_prefix(CORE).unwrap_or("").trim_end_matches(".rs").trim_end_matches("/mod");
    let depth = inside.split('/').count();
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("super::")) {
        let ups = code[at..].split("::").take_while(|part| *part == "super").count();
        let modules = words(&code[..at], "mod").filter(|module| {
            let open = body(code, *module);
            code[open..].starts_with('{') && closing(code, open) > at
        });
        if ups >= depth + modules.count() {
            found.push((at, name_at(at + ups * "super::".len()).to_string()));
        }
    }
    found.retain(|(_, name)| name != room && name != "self");
    found
}

fn room_violations(source: &Source) -> Vec<String> {
    let Some(inside) = source.path.strip_prefix(CORE).filter(|_| source.is_rust()) else {
        return Vec::new();
    };
    let room = inside.split('/').next().unwrap_or("").trim_end_matches(".rs");
    if room == "lib" {
        return Vec::new();
    }
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        return vec![source.at(0, format!("`{room}` is no room of the map"))];
    };
    let wrong = uses(source, room).into_iter().filter(|(_, name)| !allowed.contains(&name.as_str()));
    wrong.map(|(at, name)| source.at(at, format!("{room} may not use {name}"))).collect()
}

fn head_violation(source: &Source) -> Option<String> {
    let name = source.path.rsplit('/').next().unwrap_or("");
    let text = source.text.strip_prefix("#!/usr/bin/env bash\n").unwrap_or(&source.text);
    let ending = if name.contains('.') { name.rsplit('.').next().unwrap_or("") } else { "sh" };
    let start = match ending {
        "rs" => "//! ",
        "c" | "h" | "cc" | "hpp" => "/* ",
        "go" => "// ",
        "md" | "sh" | "yml" => "# ",
        "map" | "toml" if name != "Cargo.toml" => "#",
        _ => return None,
    };
    if !text.starts_with(start) {
        return Some(
            source.at(0, format!("it does not begin with `{start}` and a sentence that says what it is")),
        );
    }
    let head =
        text.lines().map_while(|line| line.strip_prefix("//!")).take_while(|line| !line.trim().is_empty());
    let head: String = head.collect();
    let is_sentence = ending != "rs" || head.trim_end().ends_with(['.', ':', '`']);
    (!is_sentence).then(|| source.at(0, "the head does not end as a sentence"))
}

fn banned(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    for mark in marks {
        found.extend(
            words(&source.text, mark).map(|at| source.at(at, format!("`{mark}`: a task or nothing"))),
        );
    }
    found
}

fn machine_paths(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for path in [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")]
    {
        // Below the last two lie the folders of people: one of them, and something in it, is a path of a machine.
        let has_names = path.ends_with("me/") || path.ends_with("ers/");
        for (at, _) in source.text.match_indices(path) {
            let before = source.text[..at].chars().last().unwrap_or(' ');
            let rest =
                source.text[at + path.len()..].trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
            let is_whole = !before.is_alphanumeric() && !"._-/".contains(before);
            if is_whole && (!has_names || rest.starts_with('/')) {
                found.push(source.at(at, format!("`{path}` is a path of one machine")));
            }
        }
    }
    found
}

fn not_ascii(source: &Source) -> Vec<String> {
    if source.is_in(NOT_ASCII) {
        return Vec::new();
    }
    let lines = source.text.lines().enumerate().filter(|(_, line)| !line.is_ascii());
    lines.map(|(number, line)| format!("{}:{}: not ASCII: {line}", source.path, number + 1)).collect()
}

/// Starts of threads and processes whose error would not name the limit that is reached. Engines do not have these functions, and
/// tests need not.
fn plain_starts(source: &Source) -> Vec<String> {
    const OURS: &str = "crates/measure/src/start.rs";
    const STARTS: &[&str] =
        &["thread::spawn(", ".spawn(", ".spawn_scoped(", ".spawn_unchecked(", ".output()", ".status()"];
    let is_code = source.is_rust() && (source.path.starts_with("src/") || source.path.starts_with("crates/"));
    if !is_code || source.path == OURS {
        return Vec::new();
    }
    let starts = STARTS.iter().flat_map(|start| source.code.match_indices(start));
    let plain = starts.filter(|(at, _)| !is_test(source, *at));
    plain
        .map(|(at, start)| source.at(at, format!("`{start}`: kvdyno_measure::start names the limit")))
        .collect()
}

/// Links, and paths between backticks, that lead nowhere.
fn dead_paths(source: &Source) -> Vec<String> {
    const FOLDERS: &[&str] = &[
        "src/",
        "crates/",
        "tests/",
        "docs/",
        "driver/",
        "engines/",
        "workloads/",
        "benches/",
        "fuzz/",
        "scripts/",
    ];
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let folder = root().join(&source.path).parent().map(Path::to_path_buf).unwrap_or_default();
    let mut found = Vec::new();
    for (at, _) in source.text.match_indices("](") {
        let link = source.text[at + 2..].split([')', '#']).next().unwrap_or("");
        if !link.is_empty() && !link.contains(':') && !folder.join(link).exists() {
            found.push(source.at(at, format!("the link to `{link}` leads nowhere")));
        }
    }
    for (number, line) in source.text.lines().enumerate() {
        for path in line.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| path.starts_with(folder))
                && !path.contains(|c: char| {
                    " <>*{}:,".contains(c) || c.is_ascii_uppercase() && !path.ends_with(".md")
                });
            if is_path && !root().join(path).exists() {
                found.push(format!("{}:{}: `{path}` is not there", source.path, number + 1));
            }
        }
    }
    found
}

/// Engines in Go and servers lie one folder deeper, beside what is theirs together.
fn engine_folders() -> Vec<String> {
    let mut names = Vec::new();
    for parent in ["", "go/", "servers/"] {
        let folders =
            fs::read_dir(root().join("engines").join(parent)).expect("engines/ is part of the tree");
        let folders = folders.flatten().filter(|entry| entry.path().is_dir());
        names.extend(folders.filter_map(|entry| Some(format!("{parent}{}", entry.file_name().to_str()?))));
    }
    let without_engine =
        ["go", "go/fidelity", "go/plugin", "servers", "servers/histories", "servers/host", "servers/plugin"];
    names.retain(|name| !without_engine.contains(&name.as_str()));
    names.sort();
    names
}

#[test]
fn rooms_use_only_what_they_may() {
    assert_none(violations(room_violations));
}

#[test]
fn the_core_names_no_engine() {
    let engines = engine_folders();
    let of_ours = ["null", "example", "example-cpp", "memory", "mutant", "go"];
    let names: Vec<&String> = engines.iter().filter(|name| !of_ours.contains(&name.as_str())).collect();
    // The protocol of a server bears the name of one.
    let is_protocol =
        |source: &Source, name: &str| source.path.starts_with("crates/serve/") && name == "redis";
    assert_none(violations(|source| {
        let is_code = source.path.starts_with("src/") || source.path.starts_with("crates/");
        if !is_code || source.is_in(MAY_NAME_ENGINES) {
            return Vec::new();
        }
        let places = names
            .iter()
            .filter(|name| !is_protocol(source, name))
            .flat_map(|name| words(&source.code_and_strings, name).map(move |at| (at, name)));
        let outside = places.filter(|(at, _)| !is_test(source, *at));
        outside.map(|(at, name)| source.at(at, format!("the core names the engine {name}"))).collect()
    }));
}

#[test]
fn every_file_begins_with_a_sentence() {
    assert_none(violations(|source| head_violation(source).into_iter().collect()));
}

#[test]
fn text_is_ascii() {
    assert_none(violations(not_ascii));
}

#[test]
fn what_people_read_is_plain_english() {
    assert_none(violations(wording::violations));
}

#[test]
fn nothing_is_left_unfinished() {
    assert_none(violations(banned));
}

#[test]
fn files_are_named_for_what_they_are() {
    assert_none(violations(|source| {
        let parts = source.path.split('/').map(|part| part.split('.').next().unwrap_or(""));
        let bad = parts.filter(|part| NO_NAMES.contains(part));
        bad.map(|part| format!("{}:1: `{part}` says nothing about what is inside", source.path)).collect()
    }));
}

#[test]
fn no_file_knows_a_path_of_one_machine() {
    assert_none(violations(machine_paths));
}

#[test]
fn threads_and_processes_are_started_where_the_limit_is_named() {
    assert_none(violations(plain_starts));
}

#[test]
fn paths_in_documents_exist() {
    assert_none(violations(dead_paths));
}

#[test]
fn the_pages_that_are_read_first_stay_short() {
    let text = |name: &str| fs::read_to_string(root().join(name)).expect("the page can be read");
    assert!(text("README.md").lines().count() <= 180, "README.md: a link to docs/ is shorter");
    assert!(text("ARCHITECTURE.md").len() <= 16 << 10, "ARCHITECTURE.md: reasons are in docs/decisions.md");
}

#[test]
fn pages_of_results_say_where_they_come_from() {
    let pages = SOURCES.iter().filter(|source| {
        let name = source.path.strip_prefix("results/").unwrap_or("/");
        name.ends_with(".md") && !name.contains('/') && name != "README.md"
    });
    let lacking = pages.flat_map(|page| {
        let rows = ["| machine |", "| date |", "| version |", "| command", "| written |"];
        rows.into_iter()
            .filter(|row| !page.text.contains(row))
            .map(|row| page.at(0, format!("its head has no row `{row}`")))
    });
    assert_none(lacking.collect());
}

/// rustdoc would compile each of them for itself, and scripts/test.sh starts none.
#[test]
fn no_comment_has_a_doctest() {
    let fence = concat!("``", "`");
    assert_none(violations(|source| {
        let comments = source.text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim_start();
            source.is_rust() && line.starts_with("//") && line.contains(fence)
        });
        comments.map(|(at, line)| format!("{}:{}: {line}", source.path, at + 1)).collect()
    }));
}

/// Drivers in Go cannot ask the core what the log of a server says.
#[test]
fn servers_in_go_know_all_words_of_a_shortage() {
    let text = |path: &str| fs::read_to_string(root().join(path)).expect("it can be read");
    let (core, go) = (text("crates/measure/src/shortage/words.rs"), text("engines/servers/host/words.go"));
    let lists = &core[..core.find("const LOCK").expect("the lists end there")];
    let words: Vec<&str> = lists
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .collect();
    assert!(words.len() > 40 && words.contains(&"no space left") && words.contains(&"eagain"), "{words:?}");
    let lacking = words.iter().filter(|word| !go.contains(&format!("\"{word}\"")));
    assert_none(lacking.map(|word| format!("engines/servers/host/words.go: `{word}` is missing")).collect());
}

#[test]
fn every_engine_folder_is_complete() {
    let mut found = Vec::new();
    for name in engine_folders() {
        let folder = format!("engines/{name}/");
        let has = |file: &str| SOURCES.iter().any(|source| source.path == format!("{folder}{file}"));
        let lacks_driver = !["driver.rs", "driver.c", "driver.cc", "driver.go"].into_iter().any(has);
        found.extend(lacks_driver.then(|| format!("{folder}: no driver")));
        let lacking = ["engine.toml", "README.md"].into_iter().filter(|file| !has(file));
        found.extend(lacking.map(|file| format!("{folder}: no {file}")));
    }
    assert_none(found);
}

#[test]
fn every_rule_finds_what_it_is_for() {
    let rust = |text: &str| Source::new("crates/core/src/workload/planted.rs", text);
    let planted = rust("//! A head.\nuse crate::{engine::Arena, generator};\nuse super::super::runner;\n");
    assert_eq!(room_violations(&planted).len(), 2, "{:?}", room_violations(&planted));
    let allowed = rust(
        "//! A head.\nuse crate::generator::Keys; // crate::engine\nconst T: &str = \"crate::engine\";\n",
    );
    assert!(room_violations(&allowed).is_empty());
    assert!(!room_violations(&Source::new("crates/core/src/misplaced.rs", "")).is_empty());
    let starts =
        "use x::Y;\nfn f() { std::thread::spawn(g); Command::new(\"x\").output(); start::output(c); }\n";
    assert_eq!(plain_starts(&rust(starts)).len(), 2, "{:?}", plain_starts(&rust(starts)));
    let tests = format!("#[cfg(test)]\nmod tests {{\n{starts}}}\n");
    assert!(plain_starts(&rust(&tests)).is_empty(), "{:?}", plain_starts(&rust(&tests)));
    assert!(head_violation(&rust("use std::fs;\n")).is_some());
    assert!(head_violation(&rust("//! A head without an end\n")).is_some());
    assert_eq!(banned(&rust(concat!("// TO", "DO later\n"))).len(), 1);
    assert_eq!(
        machine_paths(&rust(concat!("\"/ho", "me/someone/x\" \"/ho", "me/x\" src/ho", "me/x/y\n"))).len(),
        1
    );
    assert_eq!(
        not_ascii(&rust("fine\n\u{e9}\n")),
        ["crates/core/src/workload/planted.rs:2: not ASCII: \u{e9}"]
    );
    assert_eq!(dead_paths(&Source::new("PLANTED.md", "[a](nowhere.md) `src/nowhere.rs`\n")).len(), 2);
}

#[test]
fn the_reader_knows_strings_from_code() {
    let text = "a('\"', 'x'); // \"b\n/* /* c */ d */ e::<'f>(r#\"g\"h\"#, b\"\\\"i\", '\\'') j";
    let code = Source::new("planted.rs", text).code;
    let left: Vec<&str> =
        code.split(|c: char| !c.is_ascii_alphabetic()).filter(|part| !part.is_empty()).collect();
    assert_eq!(left, ["a", "e", "f", "b", "j"]);
    assert_eq!(code.len(), text.len());
}

/// The engines in Rust that are plug-ins, as the Makefile finds them.
fn rust_plugins() -> Vec<String> {
    let is_plugin = |name: &String| {
        let manifest = fs::read_to_string(root().join("engines").join(name).join("Cargo.toml"));
        manifest.is_ok_and(|text| text.contains("\ncrate-type = [\"cdylib\"]"))
    };
    engine_folders().into_iter().filter(is_plugin).collect()
}

/// The packages of the build and their features, with or without those of tests.
fn features(edges: &str) -> Vec<String> {
    let plugins = rust_plugins();
    assert!(plugins.len() >= 4, "{plugins:?}");
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.current_dir(root()).args(["tree", "--offline", "--workspace", "--prefix=none", "--format={p} {f}"]);
    cargo.args(["--edges", edges]).args(plugins.iter().map(|name| format!("--exclude=kvdyno-{name}")));
    let output = cargo.output().expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| line.trim_end_matches(" (*)").to_string()).collect()
}

#[test]
fn tests_compile_no_crate_of_the_build_again() {
    let (build, tests) = (features("normal,build"), features("normal,build,dev"));
    assert!(build.len() > 100 && tests.len() > build.len(), "{} and {}", build.len(), tests.len());
    let other = build.iter().filter(|line| !tests.contains(line));
    assert_none(other.map(|line| format!("{line}: add the tests' features to tests/unified")).collect());
}
