//! `kvdyno site DIR...`: a static site of many runs.

use super::error::CliError;
use crate::report::{Page, Site};
use crate::results::store::{RunFolder, runs_below};
use crate::results::summary::Summary;
use std::fs;
use std::path::{Path, PathBuf};

/// What shows that a folder is a site of ours, which may be written again.
const MARKER: &str = ".kvdyno-site";

/// Make a static site of many results folders: engines by phases on each machine, comparisons, histories.
#[derive(Debug, clap::Args)]
pub struct SiteArgs {
    /// Folders of runs, or folders that hold some, up to three levels down.
    #[arg(default_value = "kvdyno-results")]
    dirs: Vec<PathBuf>,
    /// Where to: a new or empty folder, or an earlier site, whose pages are written again.
    #[arg(short, long, value_name = "DIR", default_value = "kvdyno-site")]
    out: PathBuf,
}

/// Reads all runs, the oldest first, and writes the pages; runs that cannot be read are named on the first one.
pub fn run(args: &SiteArgs) -> Result<u8, CliError> {
    let mut folders = Vec::new();
    for dir in &args.dirs {
        if !dir.is_dir() {
            return Err(CliError::usage(format!("there is no folder {}", dir.display()))
                .hint("give folders of runs, as `kvdyno run` printed them, or one that holds them"));
        }
        folders.extend(runs_below(dir).map_err(|error| CliError::failed(error.to_string()))?);
    }
    folders.sort();
    folders.dedup();
    let mut site = Site::default();
    let runs = open_all(&folders, &mut site);
    if runs.is_empty() {
        let names: Vec<String> = args.dirs.iter().map(|dir| dir.display().to_string()).collect();
        return Err(CliError::usage(format!("{}: no run that can be read", names.join(", ")))
            .hint("give folders of runs, as `kvdyno run` printed them, or one that holds them"));
    }
    claim(&args.out)?;
    for folder in runs {
        let records = folder.finished().map_err(|error| CliError::failed(error.to_string()))?;
        let page = site.add(&Summary::new(folder.run(), records), folder.run());
        write(&args.out, &page)?;
    }
    let pages = site.pages();
    pages.iter().rev().try_for_each(|page| write(&args.out, page))?;
    let pages_written = site.run_count() + pages.len();
    eprintln!("runs: {}, engines: {}, pages: {pages_written}", site.run_count(), site.engines().len());
    println!("{}", args.out.join("index.html").display());
    Ok(0)
}

/// The runs that can be read, the oldest first; the site is told of the others, and so is the user.
fn open_all(folders: &[PathBuf], site: &mut Site) -> Vec<RunFolder> {
    let mut runs: Vec<RunFolder> = Vec::new();
    for path in folders {
        match RunFolder::open(path) {
            Ok(folder) if runs.iter().any(|other| other.run().id == folder.run().id) => {
                leave_out(site, path, "a run of this id is in it already");
            }
            Ok(folder) => {
                folder.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
                runs.push(folder);
            }
            Err(error) => leave_out(site, path, &error.to_string()),
        }
    }
    runs.sort_by(|one, other| one.run().started_at.cmp(&other.run().started_at));
    runs
}

/// On the page stands the folder's own name: where it lay on this machine is nobody's business.
fn leave_out(site: &mut Site, path: &Path, why: &str) {
    eprintln!("warning: {} is left out: {why}", path.display());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    site.leave_out(&name, &why.replace(&path.display().to_string(), &name));
}

/// Makes the folder, or finds that it may be written to.
fn claim(out: &Path) -> Result<(), CliError> {
    let failed = |error: std::io::Error| cannot_write(out, &error);
    fs::create_dir_all(out).map_err(failed)?;
    let is_ours = out.join(MARKER).exists();
    if !is_ours && fs::read_dir(out).map_err(failed)?.next().is_some() {
        return Err(CliError::usage(format!("{} holds files that are no site of kvdyno's", out.display()))
            .hint("name a new or empty folder with --out"));
    }
    fs::write(out.join(MARKER), "Pages of `kvdyno site`, which writes them again.\n").map_err(failed)
}

fn write(out: &Path, page: &Page) -> Result<(), CliError> {
    let folder = out.join(page.folder.as_deref().unwrap_or_default());
    let path = folder.join(&page.file);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, &page.text))
        .map_err(|error| cannot_write(&path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot write {}: {error}", path.display()))
        .hint("see that --out names a folder on a disk with room that you may write to")
}
