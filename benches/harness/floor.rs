//! The cost of the complete loop with the null engine: generation, clock, call, histogram.

use crate::{Row, trial};
use kvdyno::Clock;
use kvdyno::Distribution;
use kvdyno::{Engine, Registry, plugin_folders};
use kvdyno::{Mix, Phase, Workload, builtin};

fn workload(mix: Mix, distribution: Distribution, ops: u64) -> Workload {
    let mut workload = builtin("read-random").expect("it is built in");
    workload.keys = 1_000_000;
    workload.phases =
        vec![Phase { name: "floor".into(), mix, distribution, ops, threads: 1, ..Phase::default() }];
    workload
}

/// Nanoseconds per op of the complete loop, the best of `rounds`: the cost of the harness without disturbance.
fn ns_per_op(engine: &Engine, workload: &Workload, rounds: u32) -> f64 {
    let trial = trial(engine.name(), workload, None, true);
    let data = tempfile::tempdir().expect("a temporary folder");
    let once = |_| {
        let record =
            kvdyno::run_trial(&trial, engine.clone(), data.path(), Clock::calibrate(), &mut |_| {}, &|_| {
                Ok(())
            })
            .expect("the null engine does not fail");
        record.phases[0].elapsed_ns as f64 / record.phases[0].ops as f64
    };
    (0..rounds).map(once).fold(f64::INFINITY, f64::min)
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    let (ops, rounds) = if is_small { (10_000, 1) } else { (20_000_000, 7) };
    let registry = Registry::load(&plugin_folders(&[]));
    let null = registry.engine("null").expect("it is built in");
    let get = Mix { get: 1.0, ..Mix::default() };
    let put = Mix { put: 1.0, ..Mix::default() };
    let measure = |engine: &Engine, mix: Mix, distribution: Distribution| {
        ns_per_op(engine, &workload(mix, distribution, ops), rounds)
    };
    let uniform = measure(&null, get, Distribution::Uniform);
    let built_in_put = measure(&null, put, Distribution::Uniform);
    let zipf = measure(&null, get, Distribution::Zipf(0.99));
    let ycsb = measure(&null, get, Distribution::YcsbZipfian);
    let mut rows = vec![
        Row::new("null, get, 16-byte uniform keys", uniform, "ns/op", Some(20.0)),
        Row::new("null, put, 16-byte uniform keys, 100-byte values", built_in_put, "ns/op", Some(30.0)),
        Row::new("zipf:0.99 over uniform", zipf - uniform, "ns/op", Some(15.0)),
        Row::new("ycsb-zipfian over uniform", ycsb - uniform, "ns/op", None),
    ];
    match registry.engine("null-c") {
        Ok(loaded) => {
            let get = measure(&loaded, get, Distribution::Uniform);
            let put = measure(&loaded, put, Distribution::Uniform);
            rows.push(Row::new(
                "null-c through the loader, get, over built in",
                (get / uniform - 1.0) * 100.0,
                "%",
                Some(10.0),
            ));
            rows.push(Row::new(
                "null-c through the loader, put, over built in",
                (put / built_in_put - 1.0) * 100.0,
                "%",
                Some(10.0),
            ));
        }
        Err(_) => println!("null-c: skipped (built without a C compiler)"),
    }
    match registry.engine("null-go") {
        Ok(loaded) => {
            let get = measure(&loaded, get, Distribution::Uniform);
            let put = measure(&loaded, put, Distribution::Uniform);
            rows.push(Row::new("null-go through its plug-in, get", get, "ns/op", Some(25.0)));
            rows.push(Row::new("null-go through its plug-in, put", put, "ns/op", Some(25.0)));
        }
        Err(_) => println!("null-go: skipped (built without Go 1.25)"),
    }
    rows
}
