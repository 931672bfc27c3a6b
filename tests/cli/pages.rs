//! The pages for authors of drivers, driver/README.md, followed word for word: each from an empty folder to a plug-in
//! that `verify` accepts, with nothing written outside that folder.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const PAGES: &str = include_str!("../../driver/README.md");

/// The boxes of a section as one script: commands as they stand, files written where their box says.
fn script(section: &str) -> String {
    let start = PAGES.find(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section `{section}`"));
    let text = &PAGES[start + 1..];
    let text = text.find("\n## ").map_or(text, |end| &text[..end]);
    let mut script = String::new();
    for part in text.split("\n```").skip(1).step_by(2) {
        let (head, body) = part.split_once('\n').unwrap_or((part, ""));
        // Writing to a String cannot fail.
        let _ = match head.split_once(' ') {
            Some((_, file)) => {
                write!(script, "cat > {file} <<'THE_END_OF_A_BOX'\n{body}\nTHE_END_OF_A_BOX\n")
            }
            None => writeln!(script, "{body}"),
        };
    }
    script
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Follows a section; `verifications` of its commands verify a plug-in.
fn follow(section: &str, verifications: usize) {
    let root = tempfile::tempdir().unwrap();
    let (page, temporary) = (root.path().join("page"), root.path().join("temporary"));
    std::fs::create_dir(&page).unwrap();
    std::fs::create_dir(&temporary).unwrap();
    let script = script(section);
    let kvdyno = Path::new(env!("CARGO_BIN_EXE_kvdyno")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(kvdyno.to_path_buf())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let mut command = Command::new("sh");
    command.args(["-e", "-u", "-c", &script]).current_dir(&page).stdin(Stdio::null());
    command
        .env("PATH", path.unwrap())
        .env("TMPDIR", &temporary)
        .env("CARGO_NET_OFFLINE", "true")
        .env("GOPROXY", "off");
    for variable in
        ["KVDYNO_PLUGINS", "CARGO_TARGET_DIR", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "OUT"]
    {
        command.env_remove(variable);
    }
    let output = command.output().expect("a shell named sh");
    let printed =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{section}: {}\n{printed}\n--\n{script}", output.status);
    assert_eq!(printed.matches(" green ").count(), verifications, "{section}:\n{printed}");
    assert_eq!(names(&page), ["mine"], "{section}: files beside the folder");
    assert_eq!(names(root.path()), ["page", "temporary"], "{section}: files beside the page");
    assert_eq!(names(&temporary), Vec::<String>::new(), "{section}: files left in the folder for such");
}

#[test]
fn the_page_for_c_leads_to_a_plugin_that_is_accepted() {
    follow("In C", 2);
}

#[test]
fn the_page_for_cpp_leads_to_a_plugin_that_is_accepted() {
    follow("In C++", 2);
}

#[test]
fn the_page_for_rust_leads_to_a_plugin_that_is_accepted() {
    follow("In Rust", 2);
}

#[test]
fn the_page_for_go_leads_to_a_plugin_that_is_accepted() {
    // Go 1.25 or newer, as the page says.
    let version = Command::new("go").arg("version").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&version).into_owned();
    let minor =
        version.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ']).next()?.parse::<u32>().ok());
    if minor.is_some_and(|minor| minor >= 25) {
        follow("In Go", 2);
    } else {
        assert!(std::env::var("CI").is_err(), "CI needs Go 1.25 or newer, found `{version}`");
        println!("skipped: Go 1.25 or newer is not here (`{version}`)");
    }
}
