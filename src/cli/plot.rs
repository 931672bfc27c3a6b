//! `kvdyno report --plot KIND`: writes charts as files.

use super::args::unknown;
use super::error::CliError;
use super::report::open;
use kvdyno_core::results::summary::Summary;
use kvdyno_measure::shortage::cure;
use kvdyno_measure::text::Table;
use kvdyno_measure::{signals, start};
use kvdyno_report::{OVERVIEW, PLOTS, Plot, PlotChoice};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The former command `kvdyno plot`: without KIND, it draws the overview; without arguments, it lists the kinds.
#[derive(Debug, clap::Args)]
pub(super) struct PlotArgs {
    /// Kind of chart: overview, throughput, latency, tradeoff, series, resources, sizes or scale. A single argument can also be DIR.
    kind: Option<String>,
    /// Folder of a run, or a folder of runs, of which the newest is used [default: kvdyno-results].
    dir: Option<PathBuf>,
    /// Output file: FILE.svg, FILE.png (needs rsvg-convert), or `-` to print SVG [default: KIND.svg in the run's folder].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw only this phase: PHASE or WORKLOAD/PHASE.
    #[arg(long)]
    phase: Option<String>,
    /// Axis scale [default: depends on KIND].
    #[arg(long, value_parser = ["linear", "log"])]
    scale: Option<String>,
}

/// A chart that is asked for.
pub(super) struct Order<'o> {
    /// The name of its kind.
    pub kind: &'o str,
    /// Folder of a run, or a folder of runs.
    pub dir: &'o Path,
    /// Output file, or `-` to print SVG.
    pub out: Option<&'o Path>,
    /// The only phase.
    pub phase: Option<&'o str>,
    /// Axis scale: linear or log.
    pub scale: Option<&'o str>,
}

/// Draws a chart or lists the kinds.
pub(super) fn run(args: &PlotArgs) -> Result<u8, CliError> {
    let Some(first) = &args.kind else {
        let mut table = Table::untitled(2);
        PLOTS.iter().for_each(|plot| table.push(vec![plot.name.into(), plot.about.into()]));
        println!("{}", table.lines().join("\n"));
        println!("\nUsage: kvdyno report --plot KIND DIR -o FILE.svg");
        return Ok(0);
    };
    // A name that is both a kind and a folder is a kind.
    let is_dir = args.dir.is_none() && kvdyno_report::plot(first).is_none() && Path::new(first).is_dir();
    let (name, dir) = match &args.dir {
        _ if is_dir => (OVERVIEW, PathBuf::from(first)),
        dir => (first.as_str(), dir.clone().unwrap_or_else(|| PathBuf::from("kvdyno-results"))),
    };
    draw(&Order {
        kind: name,
        dir: &dir,
        out: args.out.as_deref(),
        phase: args.phase.as_deref(),
        scale: args.scale.as_deref(),
    })
}

/// Draws a chart.
pub(super) fn draw(order: &Order<'_>) -> Result<u8, CliError> {
    let name = order.kind;
    let known: Vec<&str> = PLOTS.iter().map(|plot| plot.name).collect();
    let plot =
        kvdyno_report::plot(name).ok_or_else(|| unknown("plot", name, &known, "kvdyno report --help"))?;
    order.out.map(kind_of).transpose()?;
    let results = open(order.dir)?;
    let out = order.out.map_or_else(|| results.path().join(format!("{name}.svg")), Path::to_path_buf);
    let kind = kind_of(&out)?;
    results.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    let records = results.finished()?;
    let summary = Summary::new(results.run(), records);
    let is_log = order.scale.map(|scale| scale == "log");
    let choice = PlotChoice { phase: order.phase.map(String::from), is_log };
    check_phase(&choice, &summary)?;
    let svg = plot.svg(&summary, results.run(), &choice).ok_or_else(|| {
        CliError::usage(format!(
            "run {} has no data for the plot {name}, which needs {}",
            summary.run_id, plot.needs
        ))
        .hint("see `kvdyno report --help` for a list of kinds")
    })?;
    match kind {
        Kind::Print => print!("{svg}"),
        Kind::Svg => write(&out, svg.as_bytes())?,
        Kind::Png => write(&out, &png(plot, &svg)?)?,
    }
    Ok(0)
}

enum Kind {
    Print,
    Svg,
    Png,
}

fn kind_of(out: &Path) -> Result<Kind, CliError> {
    match out.extension().and_then(|ending| ending.to_str()) {
        _ if out.as_os_str() == "-" => Ok(Kind::Print),
        Some("svg") => Ok(Kind::Svg),
        Some("png") => Ok(Kind::Png),
        _ => Err(CliError::usage(format!("{}: unknown file type", out.display()))
            .hint("use a file name that ends in .svg or .png")),
    }
}

/// Refuses a phase that the run does not have.
fn check_phase(choice: &PlotChoice, summary: &Summary) -> Result<(), CliError> {
    let Some(requested) = &choice.phase else { return Ok(()) };
    let both: Vec<String> =
        summary.phases.iter().map(|phase| format!("{}/{}", phase.workload, phase.name)).collect();
    let names = summary.phases.iter().map(|phase| phase.name.as_str()).chain(both.iter().map(String::as_str));
    let names: Vec<&str> = names.collect();
    if names.contains(&requested.as_str()) {
        return Ok(());
    }
    Err(unknown("phase", requested, &names, "kvdyno report"))
}

/// The pixels of a PNG per unit of the SVG, for high-density screens and for print.
const PNG_ZOOM: &str = "--zoom=2";

/// The chart as PNG, drawn by `rsvg-convert`: a rasteriser with its fonts would be a third of kvdyno's own build.
fn png(plot: &Plot, svg: &str) -> Result<Vec<u8>, CliError> {
    let failed = |reason: String| {
        CliError::failed(format!("cannot draw the PNG file: {reason}"))
            .hint(format!("write {}.svg instead, or run `apt-get install librsvg2-bin`", plot.name))
    };
    // Not ended by SIGPIPE if it reads nothing.
    signals::outlive_the_reader();
    let mut command = Command::new("rsvg-convert");
    command.args(["--format=png", PNG_ZOOM]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start::process(&mut command).map_err(|error| failed(format!("rsvg-convert: {error}")))?;
    // It reads all of its input before it writes. If it ended early, its message and status say why.
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(svg.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(format!("rsvg-convert: {error}")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("rsvg-convert: {}, {}", message.trim(), output.status)));
    }
    Ok(output.stdout)
}

fn write(out: &Path, bytes: &[u8]) -> Result<(), CliError> {
    std::fs::write(out, bytes).map_err(|error| {
        CliError::failed(format!("cannot write {}: {error}", out.display()))
            .hint(cure(&error).unwrap_or("check that its folder exists, is writable and has free space"))
    })?;
    println!("{}", out.display());
    Ok(())
}
