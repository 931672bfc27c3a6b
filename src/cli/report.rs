//! `kvdyno report DIR`: prints or writes the report of a run, its charts (`--plot`), or a website of many runs (`--site`).

use super::error::CliError;
use super::folders;
use super::layouts;
use super::plot;
use super::redis_benchmark;
use super::site;
use kvdyno_core::results::price::Prices;
use kvdyno_core::results::store::{RunFolder, newest};
use kvdyno_core::results::summary::{Summary, is_mutant};
use kvdyno_measure::text::listed;
use kvdyno_report::{FORMATS, Format, LAYOUTS, PLOTS};
use std::path::{Path, PathBuf};

/// The folder in which results are by default.
pub(super) const RESULTS: &str = "kvdyno-results";

/// Print a report of a run, draw its charts, or generate a website of many runs.
#[derive(Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// Folder of a run, or a folder of runs, of which the newest is used. With --site, folders that contain runs up to three
    /// levels deep; certificates in them, or in their folders `certificates`, are added.
    #[arg(value_name = "DIR", default_value = RESULTS)]
    dirs: Vec<PathBuf>,
    #[arg(long, default_value = "text", help = formats(), long_help = listing("Output format (see docs/formats.md):", FORMATS.iter().map(|format| (format.name, format.about))))]
    format: String,
    /// Show ratios to ENGINE instead of to the first row of each table.
    #[arg(long, value_name = "ENGINE")]
    baseline: Option<String>,
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help = layouts::HELP, long_help = listing("Print in the layouts of older tools, separated by commas:", LAYOUTS.iter().map(|layout| (layout.name, layout.about))))]
    layout: Vec<String>,
    /// Print all tables instead of the overview on one screen. All formats other than text contain all figures.
    #[arg(long)]
    full: bool,
    /// Add the cost of a million ops at the prices in FILE (see docs/formats.md).
    #[arg(long, value_name = "FILE", conflicts_with = "layout")]
    price: Option<PathBuf>,
    /// Write a file for each cell or run to DIR instead of printing. Requires --layout, or --format hgrm or hlog. With --plot, the
    /// file of the chart: FILE.svg, FILE.png (needs rsvg-convert), or `-` to print SVG [default: KIND.svg in the run's folder].
    /// With --site, its folder: new, empty, or an earlier site, whose pages are overwritten [default: kvdyno-site].
    #[arg(short, long, value_name = "PATH")]
    out: Option<PathBuf>,
    #[arg(long, value_name = "KIND", help = plots(), long_help = listing("Draw a chart as an SVG or PNG file:", PLOTS.iter().map(|plot| (plot.name, plot.about))),
          conflicts_with_all = ["format", "baseline", "layout", "full", "price"])]
    plot: Option<String>,
    /// Draw only this phase: PHASE or WORKLOAD/PHASE.
    #[arg(long, requires = "plot")]
    phase: Option<String>,
    /// Axis scale of the chart [default: depends on KIND].
    #[arg(long, value_parser = ["linear", "log"], requires = "plot")]
    scale: Option<String>,
    /// Generate a static website from many runs: engines and phases on each machine, comparisons and histories.
    #[arg(long, conflicts_with_all = ["plot", "format", "baseline", "layout", "full", "price"])]
    site: bool,
}

/// Long help of a flag: a line for each value.
fn listing<'a>(title: &str, values: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    values.fold(title.to_string(), |text, (name, about)| format!("{text}\n  {name:<14} {about}"))
}

/// The short help of `--format`.
fn formats() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    format!("Output format: {} (see docs/formats.md)", listed(&names, "or"))
}

/// The short help of `--plot`.
fn plots() -> String {
    let names: Vec<&str> = PLOTS.iter().map(|plot| plot.name).collect();
    format!("Draw a chart as an SVG or PNG file: {}", listed(&names, "or"))
}

/// Prints the report, or writes its layouts, a chart or a website.
pub(super) fn run(args: &ReportArgs, plugins: &[PathBuf]) -> Result<u8, CliError> {
    if args.site {
        return site::run(&args.dirs, args.out.as_deref().unwrap_or(Path::new(site::SITE)));
    }
    let [dir] = &args.dirs[..] else {
        return Err(CliError::usage("a report shows one run; several folders were given")
            .hint("name one folder, or add --site"));
    };
    if let Some(kind) = &args.plot {
        return plot::draw(&plot::Order {
            kind,
            dir,
            out: args.out.as_deref(),
            phase: args.phase.as_deref(),
            scale: args.scale.as_deref(),
        });
    }
    let format = kvdyno_report::format(&args.format).ok_or_else(|| {
        let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        super::args::unknown("format", &args.format, &known, "kvdyno report --help")
    })?;
    let layouts = layouts::named(&args.layout)?;
    layouts::check(&layouts, format, args.out.as_deref())?;
    let prices = args.price.as_deref().map(|file| prices(file, format)).transpose()?;
    let results = open(dir)?;
    results.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let finished = results.finished()?;
    if let Some(name) = &args.baseline {
        let mut engines: Vec<&str> =
            results.run().plan.trials.iter().map(|trial| trial.engine.as_str()).collect();
        engines.sort_unstable();
        engines.dedup();
        if !engines.contains(&name.as_str()) {
            return Err(super::args::unknown("engine", name, &engines, "kvdyno report"));
        }
        let is_floor = results.run().plan.trials.iter().any(|trial| trial.is_floor && trial.engine == *name);
        if is_floor || is_mutant(name) {
            return Err(CliError::usage(format!("{name} is never ranked and cannot be the baseline"))
                .hint("choose an engine that has a rank"));
        }
    }
    let summary = Summary::against(results.run(), finished, args.baseline.as_deref());
    let summary = match prices {
        Some(prices) => summary.priced(prices),
        None => summary,
    };
    let csv = format.name == "csv";
    let pages = format.pages.map(|pages| pages(&summary));
    if args.out.is_none() && format.is_one_page && pages.as_ref().is_some_and(|pages| pages.len() > 1) {
        let count = pages.map_or(0, |pages| pages.len());
        return Err(CliError::usage(format!("format {} produces {count} files for this run", format.name))
            .hint("name a folder for them: --out DIR"));
    }
    match &args.out {
        Some(out) if layouts.is_empty() => layouts::write_pages(pages.unwrap_or_default(), out)?,
        Some(out) => layouts::write(&layouts, csv, &summary, results.run(), out)?,
        None if layouts.is_empty() => {
            if format.name == "text" && !args.full {
                let run = layouts::with_folders(results.run(), results.path(), plugins);
                layouts::print_overview(&summary, &run, results.path());
                print!("{}", kvdyno_report::prices(&summary));
                let page = results.path().join("report.html");
                if page.is_file() {
                    println!("report: {}", page.display());
                }
            } else {
                let is_text = format.name == "text";
                let here = is_text.then(|| layouts::with_folders(results.run(), results.path(), plugins));
                print!("{}", (format.render)(&summary, here.as_ref().unwrap_or(results.run())));
            }
            let table = redis_benchmark::table(results.run(), &summary, results.path());
            if let Some(table) = table.filter(|_| format.name == "text") {
                print!("\n{}", table.text);
            }
        }
        None => {
            if !layouts::print(&layouts, csv, &summary, results.run()) {
                return Err(CliError::usage("none of the requested layouts applies to this run")
                    .hint("omit --layout for the complete report"));
            }
            if !csv {
                layouts::print_rest(&summary, results.path());
            }
        }
    }
    Ok(0)
}

/// The prices in a file, for a format that shows them.
fn prices(file: &Path, format: &Format) -> Result<Prices, CliError> {
    if !format.has_prices {
        let names: Vec<&str> =
            FORMATS.iter().filter(|format| format.has_prices).map(|format| format.name).collect();
        return Err(CliError::usage(format!("format {} shows no prices", format.name))
            .hint(format!("omit --price, or choose {}", listed(&names, "or"))));
    }
    let text = kvdyno_measure::read_text(file).map_err(|error| {
        CliError::usage(format!("cannot read the prices {}: {error}", file.display()))
            .hint("docs/formats.md shows a file of prices")
    })?;
    Prices::parse(&text).map_err(|error| {
        CliError::usage(format!("{}: {}", file.display(), error.to_string().trim_end()))
            .hint("docs/formats.md shows a file of prices")
    })
}

/// Opens the run in the folder, or the newest run below it.
pub(super) fn open(dir: &Path) -> Result<RunFolder, CliError> {
    if !dir.is_dir() {
        return Err(
            CliError::usage(format!("folder {} does not exist", dir.display())).hint(folders::run_hint(dir))
        );
    }
    let path = if dir.join("run.json").exists() {
        dir.to_path_buf()
    } else {
        newest(dir)?.ok_or_else(|| {
            CliError::usage(format!("{} contains no results", dir.display())).hint(folders::run_hint(dir))
        })?
    };
    Ok(RunFolder::open(&path)?)
}
