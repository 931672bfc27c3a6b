//! The files of a new driver: copies of the example, the kit and the build files, which are embedded in the executable, with
//! the name of the engine filled in.

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
    ("rows.h", include_str!("../../../driver/include/rows.h")),
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
const EXAMPLE_GO: &str = include_str!("../../../engines/go/example/driver.go");
const GO_MOD: &str = include_str!("../../../driver/go/go.mod");
const KIT_GO: &[(&str, &str)] = &[
    ("abi.go", include_str!("../../../driver/go/abi.go")),
    ("direct.go", include_str!("../../../driver/go/direct.go")),
    ("done_amd64.go", include_str!("../../../driver/go/done_amd64.go")),
    ("done_other.go", include_str!("../../../driver/go/done_other.go")),
    ("drive.go", include_str!("../../../driver/go/drive.go")),
    ("driver.go", include_str!("../../../driver/go/driver.go")),
    ("glue.c", include_str!("../../../driver/go/glue.c")),
    ("glue.go", include_str!("../../../driver/go/glue.go")),
    ("glue.h", include_str!("../../../driver/go/glue.h")),
    ("go.mod", GO_MOD),
    ("internal/tick/monotonic.go", include_str!("../../../driver/go/internal/tick/monotonic.go")),
    ("internal/tick/tick_amd64.go", include_str!("../../../driver/go/internal/tick/tick_amd64.go")),
    ("internal/tick/tick_amd64.s", include_str!("../../../driver/go/internal/tick/tick_amd64.s")),
    ("internal/tick/tick_arm64.go", include_str!("../../../driver/go/internal/tick/tick_arm64.go")),
    ("internal/tick/tick_arm64.s", include_str!("../../../driver/go/internal/tick/tick_arm64.s")),
    ("internal/tick/tick_other.go", include_str!("../../../driver/go/internal/tick/tick_other.go")),
    ("op.go", include_str!("../../../driver/go/op.go")),
    ("run.go", include_str!("../../../driver/go/run.go")),
    ("runtime.go", include_str!("../../../driver/go/runtime.go")),
    ("version.go", include_str!("../../../driver/go/version.go")),
];

/// The example with the name of the engine.
pub(super) fn driver(name: &str, language: Language) -> String {
    match language {
        Language::C => EXAMPLE_C.replace(".name = \"example\"", &format!(".name = \"{name}\"")),
        Language::Cpp => EXAMPLE_CPP.replace("\"example-cpp\"", &format!("\"{name}\"")),
        Language::Rust => EXAMPLE_RUST.replace("\"example-rust\"", &format!("\"{name}\"")),
        Language::Go => EXAMPLE_GO.replace("\"example-go\"", &format!("\"{name}\"")),
    }
}

/// The files as pairs of relative path and text.
pub(super) fn files(name: &str, language: Language) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let mut add = |path: String, text: String| files.push((path, text));
    let text = driver(name, language);
    add(language.driver().into(), if language == Language::Go { go_main(&text, name) } else { text });
    if language == Language::Go {
        add("go.mod".into(), go_mod());
        add("Makefile".into(), go_makefile(name));
        add("plugin.map".into(), PLUGIN_MAP.to_string());
        KIT_C.iter().for_each(|(file, text)| add(format!("include/{file}"), text.to_string()));
        KIT_GO.iter().for_each(|(file, text)| add(format!("kit/{file}"), text.to_string()));
    } else if language == Language::Rust {
        add("Cargo.toml".into(), cargo_toml(name));
        // The rest of the file applies only to the workspace of kvdyno.
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
    let ignored = match language {
        Language::Rust => "/target/\n",
        Language::Go => "/*.so\n/libkvdyno_*.h\n",
        Language::C | Language::Cpp => "*.so\n",
    };
    add(".gitignore".into(), format!("{ignored}/kvdyno-results/\n"));
    add("engine.toml".into(), engine_toml(name, language));
    add("README.md".into(), readme(name, language));
    files
}

/// Adapts the Makefile of an engine of this project to a folder with its own kit.
fn own_makefile(text: &str, name: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once('=') {
        Some(("NAME :", _)) => format!("NAME := {name}\n"),
        Some(("KVDYNO_INCLUDE ?", _)) => "KVDYNO_INCLUDE ?= include\n".to_string(),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// The driver as a main package.
fn go_main(driver: &str, name: &str) -> String {
    let head = format!("// The plug-in of {name}: ");
    let driver =
        driver.replace("// Package example is ", &head).replace("package example\n", "package main\n");
    format!("{driver}\nfunc main() {{}}\n")
}

/// The go.mod of a module that contains the kit.
fn go_mod() -> String {
    let go = GO_MOD.lines().find(|line| line.starts_with("go ")).unwrap_or("go 1.25");
    format!(
        "module kvdyno/plugin\n\n{go}\n\nrequire kvdyno/driver v0.0.0\n\nreplace kvdyno/driver => ./kit\n"
    )
}

fn go_makefile(name: &str) -> String {
    format!(
        "# Builds the plug-in libkvdyno_$(NAME).so in $(OUT).\nNAME := {name}\nOUT ?= .\nGO ?= go\n\n\
         $(OUT)/libkvdyno_$(NAME).so: *.go plugin.map go.mod kit/*\n\t$(GO) build -buildmode=c-shared -trimpath -o $@ \\\n\
         \t  -ldflags \"-extldflags '-Wl,--version-script=$(CURDIR)/plugin.map'\" .\n\n.PHONY: clean\nclean:\n\
         \trm -f $(OUT)/libkvdyno_$(NAME).so $(OUT)/libkvdyno_$(NAME).h\n"
    )
}

fn cargo_toml(name: &str) -> String {
    let plain = name.replace(['.', '-'], "_");
    format!(
        "# The plug-in libkvdyno_{plain}.so.\n[package]\nname = \"kvdyno_{plain}\"\nversion = \"0.1.0\"\n\
         edition = \"2024\"\npublish = false\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\n\
         kvdyno-driver = {{ path = \"kit\" }}\n\n# Its own workspace, independent of any surrounding one.\n[workspace]\n"
    )
}

fn engine_toml(name: &str, language: Language) -> String {
    let language_text = language.text();
    let (build, _) = language.build();
    format!(
        "# What must be known about {name} before it is built. The driver itself declares its capabilities.\n\
         name = \"{name}\"\nupstream = \"-\"\nlicence = \"-\"\nfamily = \"example\"\nlanguage = \"{language_text}\"\n\
         build = \"plug-in, by its own folder\"\nget = \"{build}\"\nneeds_env = []\n\
         fairness = \"What a reader must know to judge its results.\"\n"
    )
}

fn readme(name: &str, language: Language) -> String {
    let driver = language.driver();
    let (build, plugins) = language.build();
    let kit = match language {
        Language::C => {
            "`include/` (the head comment of `driver.h` lists the rules; `kit.h` has the timed loop)"
        }
        Language::Cpp => {
            "`include/` (the head comment of `driver.h` lists the rules; that of `driver.hpp` shows the structure of a driver)"
        }
        Language::Rust => {
            "`kit/` (a driver implements the traits `Driver` and `Session` of `kit/src/lib.rs`)"
        }
        Language::Go => "`kit/` (a driver implements the interfaces of `kit/driver.go`)",
    };
    let link = match language {
        Language::Rust => "Add your engine to `[dependencies]` of `Cargo.toml`.",
        Language::Go => "Get your engine: `go get MODULE@VERSION`, and import it in `driver.go`.",
        _ => {
            "Link your engine: `LDFLAGS += -lname` in the `Makefile`. `plugin.map` exports only the symbol `kv_plugin`."
        }
    };
    format!(
        "# {name}\n\nA driver for kvdyno, created by `kvdyno new-engine`. Initially it stores its rows in memory.\n\n    \
         {build}\n    kvdyno prove --only rules --plugins {plugins} {name}\n    kvdyno run quick --engines {name} --plugins {plugins} --durability none\n\n\
         1. {link}\n\
         2. Connect it in `{driver}`, from top to bottom: open, session, get, put and the other ops, stats, close. The kit is in\n   \
         {kit}.\n\
         3. Declare all capabilities and durability levels that the engine has, and no others; `kvdyno prove --only rules` tests each. Set `family`\n   \
         to the kind of engine (`lsm`, `b+tree` ...): `example` excludes it from comparisons of all engines.\n\
         4. Report the effective level, version, compression, cache and options at open.\n\
         5. In `engine.toml`, state what must be known before the engine is built. In this file, state for each durability level\n   \
         which settings implement it and why, and list the known limits:\n\n\
         | level | setting | what happens at a commit |\n|---|---|---|\n| none | - | nothing |\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn text_of(files: &[(String, String)], path: &str) -> String {
        files.iter().find(|(own, _)| own == path).map(|(_, text)| text.clone()).unwrap_or_default()
    }

    #[test]
    fn the_name_replaces_that_of_the_example() {
        for language in Language::value_variants().iter().copied() {
            let files = files("my.engine-2", language);
            let driver = text_of(&files, language.driver());
            assert_eq!(driver.matches("\"my.engine-2\"").count(), 1, "{language:?}");
            for example in ["\"example-cpp\"", "\"example-rust\"", "\"example-go\"", ".name = \"example\""] {
                assert!(!driver.contains(example), "{language:?}: {example} was not replaced");
            }
            assert!(driver.contains("\"example\""), "{language:?}: the family stays");
            let build = text_of(&files, if language == Language::Rust { "Cargo.toml" } else { "Makefile" });
            assert!(build.contains("my.engine-2") || build.contains("kvdyno_my_engine_2"), "{language:?}");
            // Go's assembly needs a character that is not ASCII.
            let is_plain = |(path, text): &(String, String)| text.is_ascii() || path.ends_with(".s");
            assert!(files.iter().all(is_plain) && files.iter().all(|(path, _)| !path.starts_with('/')));
        }
    }

    #[test]
    fn a_folder_needs_nothing_outside_it() {
        for language in Language::value_variants().iter().copied() {
            for (path, text) in files("mine", language) {
                assert!(!text.contains("../.."), "{language:?}: {path} refers to a file outside");
                assert!(!text.contains("workspace = true"), "{language:?}: {path} needs a workspace");
            }
        }
    }

    #[test]
    fn the_whole_kit_is_copied() {
        let kit = |folder: &str| -> Vec<String> {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let entries = std::fs::read_dir(folder).unwrap().flatten();
            let names = entries.filter(|entry| entry.path().is_file());
            let names = names.map(|entry| entry.file_name().into_string().unwrap());
            names.filter(|name| !name.ends_with("_test.go")).collect()
        };
        for (language, from, to) in [
            (Language::Rust, "driver/rust/src", "kit/src"),
            (Language::Cpp, "driver/include", "include"),
            (Language::Go, "driver/go", "kit"),
            (Language::Go, "driver/go/internal/tick", "kit/internal/tick"),
        ] {
            let files = files("mine", language);
            for name in kit(from) {
                assert!(!text_of(&files, &format!("{to}/{name}")).is_empty(), "{name} is not copied");
            }
        }
    }
}
