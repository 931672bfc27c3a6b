//! What stands in the folder of a new driver: copies of the example, of the kit and of the build, carried in the
//! executable, with the engine's name in the places for it.

use super::Language;

const EXAMPLE_C: &str = include_str!("../../../engines/example/driver.c");
const EXAMPLE_CPP: &str = include_str!("../../../engines/example-cpp/driver.cc");
const EXAMPLE_RUST: &str = include_str!("../../../driver/rust/examples/driver.rs");
const MAKEFILE_C: &str = include_str!("../../../engines/null-c/Makefile");
const MAKEFILE_CPP: &str = include_str!("../../../engines/example-cpp/Makefile");
const PLUGIN_MAP: &str = include_str!("../../../driver/plugin.map");
const KIT_TOML: &str = include_str!("../../../driver/rust/Cargo.toml");

const KIT_C: &[(&str, &str)] = &[
    ("driver.h", include_str!("../../../driver/include/driver.h")),
    ("kit.h", include_str!("../../../driver/include/kit.h")),
];
const KIT_CPP: (&str, &str) = ("driver.hpp", include_str!("../../../driver/include/driver.hpp"));
const KIT_RUST: &[(&str, &str)] = &[
    ("abi.rs", include_str!("../../../driver/rust/src/abi.rs")),
    ("config.rs", include_str!("../../../driver/rust/src/config.rs")),
    ("lib.rs", include_str!("../../../driver/rust/src/lib.rs")),
    ("op.rs", include_str!("../../../driver/rust/src/op.rs")),
    ("refuse.rs", include_str!("../../../driver/rust/src/refuse.rs")),
    ("run.rs", include_str!("../../../driver/rust/src/run.rs")),
    ("table.rs", include_str!("../../../driver/rust/src/table.rs")),
];

/// Paths in the folder, and texts.
pub(super) fn files(name: &str, language: Language) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut add = |path: String, text: String| files.push((path, text));
    match language {
        Language::C => {
            add("driver.c".into(), EXAMPLE_C.replace(".name = \"example\"", &format!(".name = \"{name}\"")))
        }
        Language::Cpp => {
            add("driver.cc".into(), EXAMPLE_CPP.replace("\"example-cpp\"", &format!("\"{name}\"")))
        }
        Language::Rust => {
            add("src/lib.rs".into(), EXAMPLE_RUST.replace("\"example-rust\"", &format!("\"{name}\"")))
        }
    }
    if language == Language::Rust {
        add("Cargo.toml".into(), cargo_toml(name));
        // What stands behind is for the workspace that the kit comes from.
        let kit = KIT_TOML.split("\n[lints]").next().unwrap_or(KIT_TOML);
        add("kit/Cargo.toml".into(), kit.to_string());
        KIT_RUST.iter().for_each(|(file, text)| add(format!("kit/src/{file}"), text.to_string()));
    } else {
        let makefile = if language == Language::C { MAKEFILE_C } else { MAKEFILE_CPP };
        add("Makefile".into(), own_makefile(makefile, name));
        add("plugin.map".into(), PLUGIN_MAP.to_string());
        let kit = KIT_C.iter().chain((language == Language::Cpp).then_some(&KIT_CPP));
        kit.for_each(|(file, text)| add(format!("include/{file}"), text.to_string()));
    }
    let ignored = if language == Language::Rust { "/target/\n" } else { "*.so\n" };
    add(".gitignore".into(), format!("{ignored}/kvdyno-results/\n"));
    add("engine.toml".into(), engine_toml(name, language));
    add("README.md".into(), readme(name, language));
    files
}

/// The Makefile of an engine of this project, for a folder with its own kit.
fn own_makefile(text: &str, name: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once('=') {
        Some(("NAME :", _)) => format!("NAME := {name}\n"),
        Some(("KVDYNO_INCLUDE ?", _)) => "KVDYNO_INCLUDE ?= include\n".to_string(),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

fn cargo_toml(name: &str) -> String {
    let plain = name.replace(['.', '-'], "_");
    format!(
        "# The plug-in libkvdyno_{plain}.so.\n[package]\nname = \"kvdyno_{plain}\"\nversion = \"0.1.0\"\n\
         edition = \"2024\"\npublish = false\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n\
         kvdyno-driver = {{ path = \"kit\" }}\n\n# A workspace of its own, wherever the folder lies.\n[workspace]\n"
    )
}

fn engine_toml(name: &str, language: Language) -> String {
    let language_text = language.text();
    let (build, _) = language.build();
    format!(
        "# What must be known of {name} before it is built; what it can do it says itself.\nname = \"{name}\"\n\
         upstream = \"-\"\nlicence = \"-\"\nfamily = \"example\"\nlanguage = \"{language_text}\"\n\
         build = \"plug-in, by its own folder\"\nget = \"{build}\"\nneeds_env = []\n\
         fairness = \"What a reader of its figures must know.\"\n"
    )
}

fn readme(name: &str, language: Language) -> String {
    let driver = language.driver();
    let (build, plugins) = language.build();
    let kit = match language {
        Language::C => "`include/` (the head of `driver.h` has the rules, `kit.h` the timed loop)",
        Language::Cpp => {
            "`include/` (the head of `driver.h` has the rules, that of `driver.hpp` the shape of a driver)"
        }
        Language::Rust => {
            "`kit/` (the traits `Driver` and `Session` of `kit/src/lib.rs` are what a driver implements)"
        }
    };
    let link = match language {
        Language::Rust => "Add your engine to `[dependencies]` of `Cargo.toml`.",
        _ => {
            "Link your engine: `LDFLAGS += -lname` in the `Makefile`. `plugin.map` lets no symbol out but `kv_plugin`."
        }
    };
    format!(
        "# {name}\n\nA driver of kvdyno, made by `kvdyno new-engine`. As it stands it keeps its rows in memory.\n\n    \
         {build}\n    kvdyno verify --plugins {plugins} {name}\n    kvdyno run quick --engines {name} --plugins {plugins} --durability none\n\n\
         1. {link}\n\
         2. Put it into `{driver}`, from the top down: open, session, get, put and the rest, stats, close. The kit is in {kit}.\n\
         3. Declare the capabilities and durability levels that it has, all of them and no more; `verify` tries each. Change\n   \
         `family` to what it is (`lsm`, `b+tree` ...): `example` keeps it out of comparisons of all engines.\n\
         4. Report at open what is in force: level, version, compression, cache, options.\n\
         5. Say in `engine.toml` what must be known before it is built, and here, for each durability level, which settings make\n   \
         it so and why, and the known limits:\n\n\
         | level | setting | what happens at a commit |\n|---|---|---|\n| none | - | nothing |\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Language; 3] = [Language::C, Language::Cpp, Language::Rust];

    fn text_of(files: &[(String, String)], path: &str) -> String {
        files.iter().find(|(own, _)| own == path).map(|(_, text)| text.clone()).unwrap_or_default()
    }

    #[test]
    fn the_name_stands_where_the_example_had_its_own() {
        for language in ALL {
            let files = files("my.engine-2", language);
            let driver = text_of(&files, language.driver());
            assert_eq!(driver.matches("\"my.engine-2\"").count(), 1, "{language:?}");
            for example in ["\"example-cpp\"", "\"example-rust\"", ".name = \"example\""] {
                assert!(!driver.contains(example), "{language:?}: {example} is left");
            }
            assert!(driver.contains("family") && driver.contains("\"example\""), "{language:?}: its family");
            let build = text_of(&files, if language == Language::Rust { "Cargo.toml" } else { "Makefile" });
            assert!(build.contains("my.engine-2") || build.contains("kvdyno_my_engine_2"), "{language:?}");
            assert!(files.iter().all(|(path, text)| text.is_ascii() && !path.starts_with('/')));
        }
    }

    #[test]
    fn a_folder_needs_nothing_outside_it() {
        for language in ALL {
            for (path, text) in files("mine", language) {
                assert!(!text.contains("../.."), "{language:?}: {path} leads outside");
                assert!(!text.contains("workspace = true"), "{language:?}: {path} wants a workspace");
            }
        }
    }

    #[test]
    fn the_whole_kit_is_copied() {
        let kit = |folder: &str| -> Vec<String> {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let entries = std::fs::read_dir(folder).unwrap().flatten();
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
        };
        for (language, from, to) in
            [(Language::Rust, "driver/rust/src", "kit/src"), (Language::Cpp, "driver/include", "include")]
        {
            let files = files("mine", language);
            for name in kit(from) {
                assert!(!text_of(&files, &format!("{to}/{name}")).is_empty(), "{name} is not copied");
            }
        }
    }
}
