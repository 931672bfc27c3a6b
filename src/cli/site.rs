//! `kvdyno report --site DIR...`: generates a static website from many runs.

use super::error::CliError;
use super::history;
use kvdyno_core::results::certificate::Certificate;
use kvdyno_core::results::store::{RunFolder, runs_below, sort_by_age};
use kvdyno_core::results::summary::Summary;
use kvdyno_report::{History, Page, Site};
use std::fs;
use std::path::{Path, PathBuf};

/// The file that marks a folder as a site that kvdyno may overwrite.
const MARKER: &str = ".kvdyno-site";

/// The folder of a site if nothing else is said.
pub(super) const SITE: &str = "kvdyno-site";

/// The former command `kvdyno site`.
#[derive(Debug, clap::Args)]
pub(super) struct SiteArgs {
    /// Folders of runs, or folders that contain runs up to three levels deep. Certificates in them, or in their folders
    /// `certificates`, are added.
    #[arg(value_name = "DIR", default_value = "kvdyno-results")]
    pub dirs: Vec<PathBuf>,
    /// Output folder: new, empty, or an earlier site, whose pages are overwritten.
    #[arg(short, long, value_name = "DIR", default_value = SITE)]
    pub out: PathBuf,
}

/// Reads all runs, oldest first, and writes the pages. The first page lists the runs that cannot be read.
pub(super) fn run(dirs: &[PathBuf], out: &Path) -> Result<u8, CliError> {
    let mut folders = Vec::new();
    for dir in dirs {
        if !dir.is_dir() {
            return Err(CliError::usage(format!("folder {} does not exist", dir.display()))
                .hint("name folders of runs, as printed by `kvdyno run`, or a folder that contains them"));
        }
        folders.extend(runs_below(dir)?);
    }
    folders.sort();
    folders.dedup();
    let mut site = Site::default();
    let runs = open_all(&folders, &mut site);
    if runs.is_empty() {
        let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
        return Err(CliError::usage(format!("{}: no readable run found", names.join(", ")))
            .hint("name folders of runs, as printed by `kvdyno run`, or a folder that contains them"));
    }
    let certificates = dirs.iter().flat_map(|dir| certificates_in(dir, &mut site)).collect();
    site.certify(certificates);
    claim(out)?;
    for folder in runs {
        let records = folder.finished()?;
        let page = site.add(&Summary::new(folder.run(), records), folder.run());
        write(out, &page)?;
    }
    let mut histories = 0;
    for (name, history) in
        dirs.iter().map(|dir| histories_in(dir)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten()
    {
        write(out, &site.add_history(&name, &history))?;
        histories += 1;
    }
    let pages = site.pages();
    pages.iter().rev().try_for_each(|page| write(out, page))?;
    let pages_written = site.run_count() + histories + pages.len();
    eprintln!("runs: {}, engines: {}, pages: {pages_written}", site.run_count(), site.engines().len());
    println!("{}", out.join("index.html").display());
    Ok(0)
}

/// The histories of commits in a folder and in those in it, each with the name of its folder.
fn histories_in(dir: &Path) -> Result<Vec<(String, History)>, CliError> {
    let mut folders: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders.insert(0, dir.to_path_buf());
    let mut found = Vec::new();
    for folder in folders {
        if let Some(history) = history::of_folder(&folder)? {
            let name = folder.file_name().map_or_else(|| "history".into(), |name| name.to_string_lossy());
            found.push((name.into_owned(), history));
        }
    }
    Ok(found)
}

/// The certificates in a folder and in its folder `certificates`. Files that are none are ignored; those that were changed are
/// skipped.
fn certificates_in(dir: &Path, site: &mut Site) -> Vec<Certificate> {
    let mut found = Vec::new();
    for folder in [dir.to_path_buf(), dir.join("certificates")] {
        let mut files: Vec<PathBuf> =
            fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json")) {
            match fs::read_to_string(file).map(|text| Certificate::parse(&text)) {
                Ok(Ok(certificate)) if certificate.is_intact() => found.push(certificate),
                Ok(Ok(_)) => skip(site, file, "it was changed since it was made"),
                // A file of something else.
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }
    found
}

/// The readable runs, oldest first. The others are reported to the user and on the site.
fn open_all(folders: &[PathBuf], site: &mut Site) -> Vec<RunFolder> {
    let mut runs: Vec<RunFolder> = Vec::new();
    for path in folders {
        match RunFolder::open(path) {
            Ok(folder) if runs.iter().any(|other| other.run().id == folder.run().id) => {
                skip(site, path, "another folder contains the same run");
            }
            Ok(folder) => {
                folder.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
                runs.push(folder);
            }
            Err(error) => skip(site, path, &error.to_string()),
        }
    }
    sort_by_age(&mut runs);
    runs
}

/// Reports a run that is skipped. The page shows only the folder's name, not its path on this machine.
fn skip(site: &mut Site, path: &Path, why: &str) {
    eprintln!("warning: {} was skipped: {why}", path.display());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    site.leave_out(&name, &why.replace(&path.display().to_string(), &name));
}

/// Creates and marks the folder, or checks that kvdyno may write to it.
fn claim(out: &Path) -> Result<(), CliError> {
    let failed = CliError::cannot_write_out(out);
    fs::create_dir_all(out).map_err(&failed)?;
    let is_ours = out.join(MARKER).exists();
    if !is_ours && fs::read_dir(out).map_err(&failed)?.next().is_some() {
        return Err(CliError::usage(format!(
            "{} is not empty and is not a site made by kvdyno",
            out.display()
        ))
        .hint("name a new or empty folder with --out"));
    }
    fs::write(
        out.join(MARKER),
        "This folder was generated by `kvdyno report --site`, which overwrites its pages.\n",
    )
    .map_err(failed)
}

fn write(out: &Path, page: &Page) -> Result<(), CliError> {
    let folder = out.join(page.folder.as_deref().unwrap_or_default());
    let path = folder.join(&page.file);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, &page.text))
        .map_err(CliError::cannot_write_out(&path))
}
