//! Layouts, requested on the command line or by the workloads of a run.

use super::args::unknown;
use super::error::CliError;
use kvdyno_core::results::store::newest;
use kvdyno_core::results::summary::Summary;
use kvdyno_core::results::{Plan, Run};
use kvdyno_report::{CommandLine, Format, LAYOUTS, Layout, Page, layout, overview, troubles};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The help of `--layout`.
pub(super) const HELP: &str = "Print in the layouts of older tools, separated by commas: histogram (mininb), sizes (NuDB), wide and \
     ranks (KVBench), seconds (KVDK), rounds (ft-index)";

/// The layouts with these names, without duplicates. An unknown name is a usage error.
pub(super) fn named(names: &[String]) -> Result<Vec<&'static Layout>, CliError> {
    let mut found: Vec<&'static Layout> = Vec::new();
    for name in names {
        let known: Vec<&str> = LAYOUTS.iter().map(|layout| layout.name).collect();
        let own = layout(name).ok_or_else(|| unknown("layout", name, &known, "kvdyno report --help"))?;
        if !found.iter().any(|other| other.name == own.name) {
            found.push(own);
        }
    }
    Ok(found)
}

/// The layouts for the end of a run: the requested ones, or else those that its workloads name.
pub(super) fn of_run(requested: &[String], plan: &Plan) -> Result<Vec<&'static Layout>, CliError> {
    if !requested.is_empty() {
        return named(requested);
    }
    let workloads = plan.trials.iter().map(|trial| &trial.workload);
    let names: Vec<String> = workloads.flat_map(|workload| workload.layouts.iter().cloned()).collect();
    named(&names).map_err(|error| {
        error.hint("it is named in the workload's field `layouts`; see `kvdyno report --help` for a list")
    })
}

/// Why a layout does not apply to a run.
fn nothing(layout: &Layout, run: &Run) -> String {
    format!("layout {} does not apply to run {}: it needs {}", layout.name, run.id, layout.needs)
}

/// Prints the layouts, with a warning on stderr for each that does not apply. Returns false if none applies.
pub(super) fn print(layouts: &[&Layout], csv: bool, summary: &Summary, run: &Run) -> bool {
    let mut printed = 0;
    for layout in layouts {
        let Some(text) = (if csv { layout.csv(summary) } else { layout.text(summary) }) else {
            eprintln!("warning: {}", nothing(layout, run));
            continue;
        };
        if printed > 0 {
            println!();
        }
        if layouts.len() > 1 && !csv {
            println!("== {} ==\n", layout.name);
        }
        print!("{text}");
        printed += 1;
    }
    printed > 0
}

/// Prints the layouts at the end of a run, followed by problems. If no layout applies, prints the overview.
pub(super) fn print_ending(layouts: &[&Layout], summary: &Summary, run: &Run, folder: &Path) {
    if layouts.is_empty() || !print(layouts, false, summary, run) {
        return print_overview(summary, run, folder);
    }
    print_rest(summary, folder);
}

/// Prints the report on one screen, and the command for all tables.
pub(super) fn print_overview(summary: &Summary, run: &Run, folder: &Path) {
    print!("{}", overview(summary, run, super::screen::of_stdout()));
    println!("all tables: {}", full_command(folder));
}

/// The run with the folders of this machine in its command, for the commands that a report prints.
pub(super) fn with_folders(run: &Run, folder: &Path, plugins: &[PathBuf]) -> Run {
    let mut run = run.clone();
    let words = &mut run.plan.command;
    if words.get(1).is_none_or(|word| word != "run") {
        return run;
    }
    let results = folder.parent().filter(|parent| *parent != Path::new(super::report::RESULTS));
    let folders = plugins.iter().map(|folder| ("--plugins", folder.as_path()));
    for (flag, folder) in folders.chain(results.map(|folder| ("--results", folder))) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        words.push(format!("{flag}={}", folder.display()));
    }
    run
}

/// The command that prints all tables of a run; without its folder, if it is the newest one where results are by default.
pub(super) fn full_command(folder: &Path) -> CommandLine {
    let parent = Path::new(super::report::RESULTS);
    let is_newest = folder.parent() == Some(parent)
        && newest(parent).ok().flatten().is_some_and(|newest| newest.file_name() == folder.file_name());
    match is_newest {
        true => CommandLine::of("report --full"),
        false => CommandLine::of("report").with_path(folder).with("--full"),
    }
}

/// Prints what went wrong and how to print the complete report.
pub(super) fn print_rest(summary: &Summary, folder: &Path) {
    print!("{}", troubles(summary));
    println!(
        "\nFor the complete report with all phases, intervals, CPU, memory and disk: `{}`",
        full_command(folder)
    );
}

/// Writes the layouts below a folder, one file for each page, and prints the paths. If one of the files exists, writes
/// nothing.
pub(super) fn write(
    layouts: &[&Layout],
    csv: bool,
    summary: &Summary,
    run: &Run,
    out: &Path,
) -> Result<(), CliError> {
    let mut files = Vec::new();
    for layout in layouts {
        let before = files.len();
        if csv {
            let file = out.join(format!("{}.csv", layout.name));
            files.extend(layout.csv(summary).map(|text| (file, text)));
        } else {
            let path = |folder: Option<String>, file: String| out.join(folder.unwrap_or_default()).join(file);
            files.extend(
                layout.files(summary).into_iter().map(|page| (path(page.folder, page.file), page.text)),
            );
        }
        if files.len() == before {
            eprintln!("warning: {}", nothing(layout, run));
        }
    }
    write_files(&files)
}

/// Writes the files of a format below a folder, as [`write`] does for layouts.
pub(super) fn write_pages(pages: Vec<Page>, out: &Path) -> Result<(), CliError> {
    let path = |page: &Page| out.join(page.folder.as_deref().unwrap_or_default()).join(&page.file);
    write_files(&pages.into_iter().map(|page| (path(&page), page.text)).collect::<Vec<_>>())
}

fn write_files(files: &[(PathBuf, String)]) -> Result<(), CliError> {
    if files.is_empty() {
        return Err(CliError::usage("nothing was written: this run has no data for the requested output"));
    }
    if let Some((taken, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(CliError::usage(format!("{} already exists; nothing was written", taken.display()))
            .hint("name another folder with --out, or move the existing one"));
    }
    for (path, text) in files {
        fs::create_dir_all(path.parent().unwrap_or(path))
            .and_then(|()| fs::File::create_new(path)?.write_all(text.as_bytes()))
            .map_err(CliError::cannot_write_out(path))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Checks that the layouts, the format and --out can be combined.
pub(super) fn check(layouts: &[&Layout], format: &Format, out: Option<&Path>) -> Result<(), CliError> {
    if layouts.is_empty() && format.pages.is_some() {
        return Ok(());
    }
    if layouts.is_empty() {
        return match out {
            Some(_) => Err(CliError::usage("--out requires --layout, or --format hgrm or hlog")
                .hint("add --layout NAME, or redirect the report to a file: `kvdyno report DIR > FILE`")),
            None => Ok(()),
        };
    }
    match (format.name, out) {
        ("text", _) => Ok(()),
        ("csv", None) if layouts.len() > 1 => {
            Err(CliError::usage("layouts have different columns and cannot be printed together as CSV")
                .hint("name one layout, or write a file for each with --out DIR"))
        }
        ("csv", _) => Ok(()),
        (other, _) => Err(CliError::usage(format!("a layout cannot be printed as {other}"))
            .hint("use --format text or csv, or omit --layout")),
    }
}
