//! The cost of our own code, against the goals in docs/methodology.md. `cargo bench --bench harness` measures;
//! with `--small` every row runs once on tiny sizes, so that it cannot rot.

#[path = "harness/floor.rs"]
mod floor;
#[path = "harness/values.rs"]
mod values;

/// One line of the table.
pub struct Row {
    name: String,
    value: f64,
    unit: &'static str,
    goal: Option<f64>,
}

impl Row {
    fn new(name: impl Into<String>, value: f64, unit: &'static str, goal: Option<f64>) -> Row {
        Row { name: name.into(), value, unit, goal }
    }

    fn print(&self) {
        let (goal, verdict) = match self.goal {
            Some(goal) if self.value <= goal => (format!("{goal:.1}"), "ok"),
            Some(goal) => (format!("{goal:.1}"), "OVER"),
            None => ("-".into(), ""),
        };
        println!("{:58} {:>9.2} {:6} goal {:>7}  {verdict}", self.name, self.value, self.unit, goal);
    }
}

fn main() {
    let is_small = std::env::args().any(|word| word == "--small" || word == "--test");
    floor::rows(is_small).iter().for_each(Row::print);
    values::rows(is_small).iter().for_each(Row::print);
}
