//! The cost of the harness, compared with goals. `cargo bench --bench harness` measures all parts, `-- boundary` one of
//! them; with `--small` every row runs once at a tiny size, as a test that it still works.

#[path = "harness/arrivals.rs"]
mod arrivals;
#[path = "harness/boundary.rs"]
mod boundary;
#[path = "harness/fidelity.rs"]
mod fidelity;
#[path = "harness/floor.rs"]
mod floor;
#[path = "harness/live.rs"]
mod live;
#[path = "harness/values.rs"]
mod values;

/// A trial of a workload on an engine. `seed`: that of its ops; none: the workload's.
fn trial(engine: &str, workload: &kvdyno::Workload, seed: Option<u64>, is_floor: bool) -> kvdyno::Trial {
    kvdyno::Trial {
        id: "bench".into(),
        order: 0,
        repetition: 1,
        engine: engine.into(),
        options: Vec::new(),
        workload: workload.clone().into(),
        seed,
        placement: Default::default(),
        reused: false,
        paranoid: false,
        counts_cycles: false,
        counts_calls: false,
        is_floor,
        load_generators: 1,
        nodes_option: None,
        load_generator: None,
        lengths: Default::default(),
    }
}

/// One line of the table.
pub struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    goal: Option<f64>,
    text: Option<String>,
}

impl Row {
    fn new(name: impl Into<String>, value: f64, unit: &'static str, goal: Option<f64>) -> Row {
        Row { name: name.into(), value, unit, goal, text: None }
    }

    /// With its own verdict.
    fn with_text(name: String, value: f64, unit: &'static str, goal: f64, text: String) -> Row {
        Row { name, value, unit, goal: Some(goal), text: Some(text) }
    }

    /// With `is_small` the figures mean nothing and are not printed.
    fn print(&self, is_small: bool) {
        if is_small {
            println!("{:58} runs", self.name);
            return;
        }
        let (goal, verdict) = match self.goal {
            Some(goal) if self.value <= goal => (format!("{goal:.1}"), "ok"),
            Some(goal) => (format!("{goal:.1}"), "OVER"),
            None => ("-".into(), ""),
        };
        let verdict = self.text.as_deref().unwrap_or(verdict);
        println!("{:58} {:>9.2} {:6} goal {:>7}  {verdict}", self.name, self.value, self.unit, goal);
    }
}

fn main() {
    let is_small = std::env::args().any(|word| word == "--small" || word == "--test");
    type Rows = fn(bool) -> Vec<Row>;
    let parts: [(&str, Rows); 6] = [
        ("floor", floor::rows),
        ("boundary", boundary::rows),
        ("values", values::rows),
        ("fidelity", fidelity::rows),
        ("live", live::rows),
        ("arrivals", arrivals::rows),
    ];
    let names: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let Some(name) = names.iter().find(|name| !parts.iter().any(|(part, _)| part == name)) {
        eprintln!("unknown part `{name}`; the parts are {}", parts.map(|(part, _)| part).join(", "));
        std::process::exit(2);
    }
    for (_, rows) in
        parts.iter().filter(|(part, _)| names.is_empty() || names.iter().any(|name| name == part))
    {
        rows(is_small).iter().for_each(|row| row.print(is_small));
    }
}
