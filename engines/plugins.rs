//! Builds the two C plug-ins that need nothing but a C compiler, into `plugins` beside the executable. Without a
//! compiler, or on a system without shared libraries of this kind, they are left out with a warning.

use std::path::{Path, PathBuf};
use std::process::Command;

const PLUGINS: &[&str] = &["example", "null-c"];

fn main() {
    println!("cargo:rerun-if-changed=driver/include");
    for name in PLUGINS {
        println!("cargo:rerun-if-changed=engines/{name}/driver.c");
        println!("cargo:rerun-if-changed=engines/{name}/plugin.map");
        if let Err(reason) = build(name) {
            println!("cargo:warning=the plug-in {name} is left out: {reason}");
        }
    }
}

/// `target/<profile>/plugins`, three folders above the one that cargo gives to this script.
fn out_folder() -> Result<PathBuf, String> {
    let out = std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    let profile = Path::new(&out).ancestors().nth(3).ok_or("OUT_DIR is not deep enough")?;
    Ok(profile.join("plugins"))
}

fn build(name: &str) -> Result<(), String> {
    let folder = out_folder()?;
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let compiler = cc::Build::new().cargo_metadata(false).opt_level(2).try_get_compiler();
    let compiler = compiler.map_err(|error| format!("no C compiler: {error}"))?;
    let source = Path::new("engines").join(name);
    let mut command: Command = compiler.to_command();
    command
        .args(["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Idriver/include", "-shared", "-fPIC"])
        .arg("-fvisibility=hidden")
        .arg(format!("-Wl,--version-script={}", source.join("plugin.map").display()))
        .arg(source.join("driver.c"))
        .arg("-o")
        .arg(folder.join(format!("libkvdyno_{name}.so")))
        .arg("-pthread");
    let output = command.output().map_err(|error| format!("cannot run the C compiler: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
