//! The Pareto front of points with two figures: those that no other point beats.

use kvdyno_core::results::comparison::Better;

/// The figure as a cost, of which less is better.
fn cost(better: Better, figure: f64) -> f64 {
    match better {
        Better::Higher => -figure,
        Better::Lower => figure,
    }
}

/// The worse of two figures.
pub(super) fn worse(better: Better, one: f64, other: f64) -> f64 {
    match better {
        Better::Higher => one.min(other),
        Better::Lower => one.max(other),
    }
}

/// The places of the points on the front, from the best first figure to the best second figure. A point is on the front if
/// no other is at least as good in both figures and better in one; equal points are on it together. A point with a figure
/// that is not finite is never on it.
pub(super) fn front(points: &[(f64, f64)], first: Better, second: Better) -> Vec<usize> {
    let costs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (cost(first, *x), cost(second, *y))).collect();
    let is_usable = |place: &usize| costs[*place].0.is_finite() && costs[*place].1.is_finite();
    let mut order: Vec<usize> = (0..points.len()).filter(is_usable).collect();
    order.sort_by(|one, other| {
        let ((x, y), (other_x, other_y)) = (costs[*one], costs[*other]);
        x.total_cmp(&other_x).then(y.total_cmp(&other_y))
    });
    let mut front: Vec<usize> = Vec::new();
    for place in order {
        // All earlier points are at least as good in the first figure.
        let is_beaten = front.last().is_some_and(|last| {
            let ((x, y), (best_x, best_y)) = (costs[place], costs[*last]);
            y > best_y || (y == best_y && x > best_x)
        });
        if !is_beaten {
            front.push(place);
        }
    }
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BETTER: [Better; 2] = [Better::Higher, Better::Lower];

    /// The definition, word for word, for each pair of points.
    fn oracle(points: &[(f64, f64)], (first, second): (Better, Better)) -> Vec<usize> {
        let at_least = |better: Better, one: f64, other: f64| match better {
            Better::Higher => one >= other,
            Better::Lower => one <= other,
        };
        let beats = |one: (f64, f64), other: (f64, f64)| {
            at_least(first, one.0, other.0) && at_least(second, one.1, other.1) && one != other
        };
        let is_on = |place: &usize| !points.iter().any(|other| beats(*other, points[*place]));
        (0..points.len()).filter(is_on).collect()
    }

    proptest! {
        #[test]
        fn the_front_is_that_of_its_definition(
            // Few different figures, so that many are equal.
            points in proptest::collection::vec((0..12_i32, 0..12_i32), 0..40), first: bool, second: bool,
        ) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (x.into(), y.into())).collect();
            let better = (BETTER[usize::from(first)], BETTER[usize::from(second)]);
            let mut found = front(&points, better.0, better.1);
            prop_assert!(found.windows(2).all(|pair| cost(better.0, points[pair[0]].0) <= cost(better.0, points[pair[1]].0)));
            found.sort_unstable();
            prop_assert_eq!(found, oracle(&points, better));
        }

        #[test]
        fn figures_that_are_not_numbers_are_never_on_the_front(x: f64, y: f64) {
            let points = [(f64::NAN, 1.0), (1.0, f64::INFINITY), (x, y)];
            let wanted: &[usize] = if x.is_finite() && y.is_finite() { &[2] } else { &[] };
            prop_assert_eq!(front(&points, Better::Higher, Better::Lower), wanted);
        }
    }
}
