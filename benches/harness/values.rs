//! The cost of generating and checking values.

use crate::Row;
use kvdyno::{SizeSpec, ValueRules, Values};
use std::hint::black_box;
use std::time::Instant;

fn best_ns(rounds: u32, count: u64, mut work: impl FnMut(u64)) -> f64 {
    let once = |_| {
        let start = Instant::now();
        (0..count).for_each(&mut work);
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..rounds).map(once).fold(f64::INFINITY, f64::min)
}

/// The rows of this part.
pub fn rows(is_small: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (size, goal) in [(100, Some(15.0)), (1000, None), (4096, Some(160.0))] {
        let (count, rounds) = if is_small { (100, 1) } else { (20_000_000 / u64::from(size), 9) };
        let rules = ValueRules { size: SizeSpec::Fixed(size), compressed_share: 0.5 };
        let values = Values::new(&rules, 1).expect("the rules are right");
        let mut out = vec![0u8; size as usize];
        let write = best_ns(rounds, count, |index| {
            black_box(values.write(index, 1, black_box(&mut out)));
        });
        // A few values are enough: the check is measured with the value in the nearest cache.
        let kept: Vec<Vec<u8>> = (0..8)
            .map(|index| {
                values.write(index, 1, &mut out);
                out.clone()
            })
            .collect();
        let check = best_ns(rounds, count, |index| {
            let index = index % 8;
            black_box(values.check(index, black_box(&kept[index as usize]))).expect("it was just written");
        });
        rows.push(Row::new(format!("write a value of {size} bytes"), write, "ns", None));
        rows.push(Row::new(format!("verify a value of {size} bytes"), check, "ns", goal));
    }
    rows
}
