//! Runs the built command in a folder of the test's own.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a command printed, and its exit code.
#[allow(dead_code, reason = "each test program looks at what it needs")]
pub struct Printed {
    /// None: it died of a signal.
    pub code: Option<i32>,
    /// Its results.
    pub stdout: String,
    /// Its talk.
    pub stderr: String,
}

impl From<Output> for Printed {
    fn from(output: Output) -> Printed {
        Printed {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The command, in `folder`, with words split at spaces.
pub fn prepared(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvdyno"));
    command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.env_remove("KVDYNO_PLUGINS").env_remove("GITHUB_STEP_SUMMARY").env("RUST_BACKTRACE", "0");
    command
}

/// Runs it to its end.
#[allow(dead_code, reason = "each test program needs what it needs")]
pub fn kvdyno(folder: &Path, words: &str) -> Printed {
    prepared(folder, words).output().expect("the command can be started").into()
}

/// Builds a driver in C, named by its path below `tests`, as a plug-in into `folder/plugins`.
#[allow(dead_code, reason = "each test program needs what it needs")]
pub fn build_driver(folder: &Path, source: &str) {
    let plugins = folder.join("plugins");
    std::fs::create_dir_all(&plugins).expect("a folder can be made");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = root.join("tests").join(source);
    let name = source.file_stem().expect("a file").to_string_lossy();
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-I"])
        .arg(root.join("driver/include"))
        .arg(&source)
        .arg("-o")
        .arg(plugins.join(format!("libkvdyno_{name}.so")))
        .status();
    assert!(built.expect("a C compiler named cc").success());
}

/// A folder in which another user can write.
#[allow(dead_code, reason = "each test program needs what it needs")]
pub fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).expect("its owner may change its mode");
    folder
}

/// The engines that may not be missing here; none, unless nothing may be skipped (`CI=true`).
#[allow(dead_code, reason = "each test program needs what it needs")]
pub fn required_engines() -> Vec<&'static str> {
    let may_skip = std::env::var("CI").as_deref() != Ok("true");
    if may_skip { Vec::new() } else { kvdyno::required_engines().collect() }
}

/// Says that a test is skipped because a facility, a row of `kvdyno doctor`, is missing here; panics if it is required
/// (`KVDYNO_REQUIRED_FACILITIES`, set by the Makefile in CI).
#[allow(dead_code, reason = "each test program needs what it needs")]
pub fn skip(facility: &str, why: &str) {
    let required = std::env::var("KVDYNO_REQUIRED_FACILITIES").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == facility);
    assert!(!is_required, "{facility} is required and missing: {why}");
    println!("skipped: {facility} is missing: {why}");
}
