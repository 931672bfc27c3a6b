//! The time of one verdict: `cargo run --release -p kvdyno-load --example steady_time`.

use std::hint::black_box;
use std::time::Instant;

use kvdyno_load::steady::{Better, Series, verdict};

fn main() {
    println!("rows  series  ms per verdict");
    for (rows, count) in [(60, 1), (600, 1), (600, 3), (1800, 1), (3600, 1), (3600, 3)] {
        // A saw with noise: the longest way through, since it is judged with and without its period.
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1_u64 << 31) as f64
        };
        let values: Vec<Option<f64>> =
            (0..rows).map(|row| Some(1000.0 + 20.0 * (row % 17) as f64 + 50.0 * noise())).collect();
        let series = vec![Series { values: &values, better: Better::Higher }; count];
        let mut best = f64::INFINITY;
        for _ in 0..50 {
            let start = Instant::now();
            black_box(verdict(black_box(&series), 1.0));
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{rows:4}  {count:6}  {:.2}", best * 1000.0);
    }
}
