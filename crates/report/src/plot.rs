//! Charts as files, for papers and READMEs: one kind of chart of a run, dark on white, with a title and a source line.

use super::block::Chart;
use super::chart::{self, Scales, Scene, Theme, WIDTH, plain_rules};
use super::describe::{machine, phase_name};
use super::markup::{Html, html};
use kvdyno_core::results::Run;
use kvdyno_core::results::summary::{PhaseSummary, Summary};
use kvdyno_measure::text::{plain_text, wrapped_lines};

/// A kind of chart that can be written to a file.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// What a run must contain for this chart.
    pub needs: &'static str,
    charts: fn(&Scene, &PlotChoice) -> Vec<Chart>,
}

/// Selects the part of a run to draw.
#[derive(Clone, Debug, Default)]
pub struct PlotChoice {
    /// Only phases with this name or this `workload/phase`; `None` for all phases.
    pub phase: Option<String>,
    /// Logarithmic or linear scale; `None` for the kind's default.
    pub is_log: Option<bool>,
}

/// The default kind.
pub const OVERVIEW: &str = "overview";

/// The kinds, in the order in which they are listed.
pub const PLOTS: &[Plot] = &[
    Plot {
        name: OVERVIEW,
        about: "Throughput and latency of each phase, and throughput by size or by threads if the run has several of them.",
        needs: "a measured phase",
        charts: |scene, choice| {
            let both = |phase| {
                let throughput = chart::throughput(phase, choice.scales()).into_iter();
                throughput.chain(named(phase, chart::latency(scene, phase, choice.scales())))
            };
            let by_size = chart::sizes(scene, choice.scales());
            let by_threads = chart::scaling(scene, choice.scales());
            choice.phases(scene).flat_map(both).chain(by_size).chain(by_threads).collect()
        },
    },
    Plot {
        name: "throughput",
        about: "Ops per second of each engine with the interval of the median, by effective durability level.",
        needs: "a measured phase",
        charts: |scene, choice| {
            choice.phases(scene).filter_map(|phase| chart::throughput(phase, choice.scales())).collect()
        },
    },
    Plot {
        name: "latency",
        about: "Percentiles of service times, with logarithmic axes.",
        needs: "a measured phase",
        charts: |scene, choice| choice.each(scene, |phase| chart::latency(scene, phase, choice.scales())),
    },
    Plot {
        name: "tradeoff",
        about: "Two figures against each other, with the engines that are beaten in neither: reads and writes, rate and p99, \
                rate and memory, bytes written and space.",
        needs: "a phase with two measured engines",
        charts: |scene, choice| {
            let phases: Vec<&PhaseSummary> = choice.phases(scene).collect();
            chart::tradeoffs(scene, &phases, choice.phase.is_none(), choice.scales())
        },
    },
    Plot {
        name: "series",
        about: "Ops per second, p99, memory and disk over time, with slow intervals and stalls marked.",
        needs: "a phase of at least three seconds",
        charts: |scene, choice| choice.each(scene, |phase| chart::series(scene, phase, choice.scales())),
    },
    Plot {
        name: "resources",
        about: "CPU per million ops, memory, disk and write amplification.",
        needs: "a measured phase",
        charts: |scene, choice| choice.each(scene, |phase| chart::resources(phase, choice.scales())),
    },
    Plot {
        name: "sizes",
        about: "Ops per second against the number of keys.",
        needs: "a workload run with several key counts (--keys 100k,1M), or one whose key count grows in rounds",
        charts: |scene, choice| chart::sizes(scene, choice.scales()),
    },
    Plot {
        name: "memory",
        about: "Ops per second, and blocks read from storage, against the size of the data as a multiple of memory.",
        needs: "a workload run at several ratios (--data-to-memory 0.5,1,2,4)",
        charts: |scene, choice| chart::data_to_memory(scene, choice.scales()),
    },
    Plot {
        name: "scale",
        about: "Ops per second against the number of threads, load generators or nodes, with the Universal Scalability Law.",
        needs: "a workload run with several numbers of threads, load generators or nodes (--threads 1,2,4,8, --load-generators 1,2,4,8, --nodes 1,3,5)",
        charts: |scene, choice| chart::scaling(scene, choice.scales()),
    },
];

/// The kind with this name, if there is one.
pub fn plot(name: &str) -> Option<&'static Plot> {
    PLOTS.iter().find(|plot| plot.name == name)
}

impl PlotChoice {
    fn scales(&self) -> Scales {
        match self.is_log {
            None => Scales::Own,
            Some(true) => Scales::Log,
            Some(false) => Scales::Linear,
        }
    }

    fn phases<'a>(&self, scene: &Scene<'a>) -> impl Iterator<Item = &'a PhaseSummary> {
        scene.summary.phases.iter().filter(|phase| match &self.phase {
            None => true,
            Some(name) => phase.name == *name || format!("{}/{}", phase.workload, phase.name) == *name,
        })
    }

    /// The charts of each phase, with the phase's name in their titles.
    fn each(&self, scene: &Scene, of: impl Fn(&PhaseSummary) -> Vec<Chart>) -> Vec<Chart> {
        self.phases(scene).flat_map(|phase| named(phase, of(phase))).collect()
    }
}

/// The charts with the phase's name in their titles.
fn named(phase: &PhaseSummary, charts: Vec<Chart>) -> impl Iterator<Item = Chart> {
    let lead = phase_name(phase);
    charts.into_iter().map(move |chart| Chart { title: format!("{lead}: {}", chart.title), ..chart })
}

const MARGIN: f64 = 20.0;
/// The height of a line of a panel's title, and the space below the last one.
const TITLE: (f64, f64) = (15.0, 9.0);
/// The width of a character of a title, at most on average.
const CHARACTER: f64 = 6.2;
/// The maximum number of panels in a row.
const COLUMNS: usize = 2;

/// Charts as an SVG file, with a heading and where their figures are from; none: there are no charts.
pub(super) fn picture(charts: &[Chart], title: &str, heading: &str, source: &str) -> Option<String> {
    let columns = charts.len().min(COLUMNS);
    if columns == 0 {
        return None;
    }
    let width = columns as f64 * (WIDTH + MARGIN) + MARGIN;
    let mut y = MARGIN + 34.0;
    let mut panels = Html::default();
    for row in charts.chunks(columns) {
        let height = row.iter().map(|chart| chart.height).fold(0.0, f64::max);
        let titles: Vec<Vec<String>> =
            row.iter().map(|chart| wrapped_lines(&chart.title, (WIDTH / CHARACTER) as usize)).collect();
        // Charts of a row begin at the same height.
        let lines = titles.iter().map(Vec::len).max().unwrap_or(1);
        let title_height = lines as f64 * TITLE.0 + TITLE.1;
        for (place, (chart, title)) in row.iter().zip(&titles).enumerate() {
            let x = MARGIN + place as f64 * (WIDTH + MARGIN);
            panels.push(&panel(chart, title, x, y, title_height));
        }
        y += height + title_height + MARGIN;
    }
    let mut foot = Html::default();
    for line in wrapped_lines(source, (width / 6.4) as usize) {
        foot.push(&html!("<text class=\"t\" x=\"{}\" y=\"{}\">{}</text>\n", MARGIN, y, line));
        y += 15.0;
    }
    let svg = html!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\">\n\
         <title>{}</title>\n<style>{}</style>\n<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n\
         <text class=\"h\" x=\"{}\" y=\"34\" font-size=\"18\">{}</text>\n{}{}</svg>\n",
        width,
        y,
        width,
        y,
        title,
        plain_rules(Theme::Light),
        width,
        y,
        MARGIN,
        heading,
        panels,
        foot
    );
    Some(svg.into_string())
}

impl Plot {
    /// The picture as an SVG file; `None` if the run has no data for it or the choice selects none.
    pub fn svg(&self, summary: &Summary, run: &Run, choice: &PlotChoice) -> Option<String> {
        let charts = (self.charts)(&Scene::new(summary, run), choice);
        let title = plain_text(&format!("{} of {}", self.name, run.id));
        picture(&charts, &title, &self.heading(run), &source_line(run))
    }

    fn heading(&self, run: &Run) -> String {
        let mut workloads: Vec<&str> =
            run.plan.trials.iter().map(|trial| trial.workload.name.as_str()).collect();
        workloads.dedup();
        workloads.sort_unstable();
        workloads.dedup();
        let workloads = match workloads.len() {
            0..=3 => workloads.join(", "),
            many => format!("{many} workloads"),
        };
        format!("{workloads}: {}", self.name)
    }
}

fn panel(chart: &Chart, title: &[String], x: f64, y: f64, title_height: f64) -> Html {
    let line = |(place, text): (usize, &String)| {
        html!("<text class=\"h\" x=\"0\" y=\"{}\">{}</text>", 10.0 + place as f64 * TITLE.0, text)
    };
    let title: Html = title.iter().enumerate().map(line).collect();
    html!(
        "<g transform=\"translate({} {})\">{}<g transform=\"translate(0 {})\">{}</g></g>\n",
        x,
        y,
        title,
        title_height,
        chart.content
    )
}

/// The source of the figures.
fn source_line(run: &Run) -> String {
    let date = run.started_at.split('T').next().unwrap_or("-");
    plain_text(&format!("Source: run {}, {date}, kvdyno {}; {}", run.id, run.tool_version, machine(run)))
}

#[cfg(test)]
mod tests;
