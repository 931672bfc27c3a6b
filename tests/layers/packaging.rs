//! The image, the release and the Debian package agree with the build: versions, stages, files, and one list of packages.

use super::source::root;
use std::fs;

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rest of the first line that begins with `start`.
fn after<'t>(text: &'t str, start: &str) -> &'t str {
    text.lines()
        .find_map(|line| line.strip_prefix(start))
        .unwrap_or_else(|| panic!("no line begins with `{start}`"))
}

/// `1.95` of `1.95-bookworm`, `"1.95"` or `1.95.0`.
fn version(text: &str) -> (u32, u32) {
    let numbers: Vec<u32> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map_while(|part| part.parse().ok())
        .collect();
    (numbers[0], numbers[1])
}

/// The names of a list in the Makefile.
fn list<'t>(makefile: &'t str, name: &str) -> Vec<&'t str> {
    let start = makefile.find(&format!("\n{name} := ")).expect("the Makefile has the list") + name.len() + 5;
    let end =
        makefile[start..].match_indices('\n').find(|(at, _)| !makefile[start..start + at].ends_with('\\'));
    let names = makefile[start..start + end.expect("a line ends").0].split_whitespace();
    names.filter(|name| *name != "\\").collect()
}

#[test]
fn debian_packages_to_build_with_are_only_in_the_makefile() {
    let makefile = text("Makefile");
    let names = list(&makefile, "PACKAGES");
    assert!(names.contains(&"cmake") && names.contains(&"libsqlite3-dev"), "{names:?}");
    for path in ["Dockerfile", ".github/workflows/release.yml", "Cargo.toml"] {
        let text = text(path);
        let named = names.iter().filter(|name| name.ends_with("-dev") && text.contains(**name));
        let named: Vec<_> = named.collect();
        assert!(named.is_empty(), "{path} names {named:?}: `make packages` installs them");
    }
    assert!(text("Dockerfile").contains("RUN make packages"));
}

#[test]
fn the_image_has_compilers_that_are_new_enough() {
    let dockerfile = text("Dockerfile");
    let rust = version(after(&dockerfile, "FROM rust:"));
    assert!(rust >= version(after(&text("Cargo.toml"), "rust-version = ")), "rust:{rust:?}");
    let go = version(after(&dockerfile, "FROM golang:"));
    assert!(go >= version(after(&text("engines/go/go.mod"), "go ")), "golang:{go:?}");
    // What is built on one release of Debian is installed on the same one.
    let releases: Vec<&str> = dockerfile.lines().filter(|line| line.contains("bookworm")).collect();
    let images =
        dockerfile.lines().filter(|line| line.starts_with("FROM ") && !line.starts_with("FROM scratch"));
    assert_eq!(images.count(), releases.len(), "{releases:?}");
}

#[test]
fn the_image_and_the_release_use_what_exists() {
    let dockerfile = text("Dockerfile");
    let workflow = text(".github/workflows/release.yml");
    let makefile = text("Makefile");
    for target in ["archive", "deb", "install", "uninstall"] {
        assert!(makefile.contains(&format!("\n{target}:")), "the Makefile has no target {target}");
    }
    assert!(dockerfile.contains("make archive deb"));
    for (_, stage) in workflow.lines().filter_map(|line| line.split_once("--target ")) {
        let stage = stage.split(' ').next().unwrap_or("");
        assert!(dockerfile.contains(&format!(" AS {stage}\n")), "the Dockerfile has no stage {stage}");
    }
    let sources = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    for source in sources.filter(|source| !source.starts_with("--from")) {
        let path = source.split(' ').next().unwrap_or("");
        assert!(root().join(path).exists(), "the Dockerfile copies {path}, which does not exist");
    }
}

#[test]
fn actions_are_pinned_by_commit() {
    let workflow = text(".github/workflows/release.yml");
    let uses: Vec<&str> =
        workflow.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, name)| name).collect();
    assert!(!uses.is_empty());
    for name in uses {
        let (_, commit) = name.split_once('@').expect("an action has a version");
        let (hash, version) = commit.split_once(" # v").expect("a comment has the version of the commit");
        assert!(hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert!(version.split('.').count() == 3, "{name}");
    }
}

#[test]
fn the_debian_package_has_every_folder_that_is_installed() {
    let script = text("scripts/install.sh");
    let manifest: toml::Table = text("Cargo.toml").parse().expect("Cargo.toml is TOML");
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().expect("a list of files");
    let sources: Vec<&str> = assets.iter().filter_map(|asset| asset[0].as_str()).collect();
    for folder in [
        "bin/",
        "lib/kvdyno/",
        "share/man/man1",
        "share/bash-completion/completions/",
        "share/zsh/site-functions/",
        "share/fish/vendor_completions.d/",
    ] {
        assert!(script.contains(&format!("$files/{folder}")), "install.sh does not install {folder}");
        let staged = format!("target/release/staged/usr/{folder}");
        assert!(
            sources.iter().any(|source| source.starts_with(&staged)),
            "Cargo.toml has no asset of {folder}"
        );
    }
    let kept = sources.iter().filter(|source| !source.starts_with("target/"));
    for path in kept.map(|source| source.trim_end_matches("*.md")) {
        assert!(root().join(path).exists(), "Cargo.toml has the asset {path}, which does not exist");
    }
}
