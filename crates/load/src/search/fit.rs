//! Where a line through the measured shares meets a limit.

/// A measured rate: how far its share over a limit is from the allowed one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// The logarithm of the rate.
    pub x: f64,
    /// The logarithm of the share over the limit, divided by the allowed share: 0 at the limit.
    pub excess: f64,
    /// The standard deviation of `excess`.
    pub deviation: f64,
    /// How long ago it was measured, seconds of measurement.
    pub age: f64,
}

/// Where the limit is met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// The logarithm of the rate.
    pub x: f64,
    /// Its standard deviation: the relative one of the rate.
    pub deviation: f64,
    /// By how many per cent the share over the limit rises if the rate rises by one per cent.
    pub slope: f64,
}

impl Point {
    /// A rate at which `over` of `n` independent requests are over the limit, of which a share of `allowed` may be.
    pub fn new(rate: f64, n: f64, over: f64, allowed: f64) -> Point {
        // Half a request more, so that a rate without any over the limit has a logarithm too.
        let over = over + 0.5;
        Point { x: rate.ln(), excess: (over / (n * allowed)).ln(), deviation: over.powf(-0.5), age: 0.0 }
    }

    /// The weight in the fit. The share is no straight line; points far from the limit count less, because a curve leaves
    /// its tangent with the square of the distance. Old points count less, because a server can drift.
    fn weight(&self, slope: f64) -> f64 {
        const CURVE: f64 = 0.2;
        // The share of its rate that a server may have gained or lost, per second.
        const DRIFT: f64 = 1e-4;
        let curve = CURVE * self.excess.powi(2);
        let drift = DRIFT * self.age * slope;
        1.0 / (self.deviation.powi(2) + curve.powi(2) + drift.powi(2))
    }
}

/// The line of weighted least squares through points. Absent if there are fewer than two rates, or if the line does not rise.
pub(crate) fn crossing(points: &[Point]) -> Option<Crossing> {
    let first = line(points, 0.0)?;
    line(points, first.slope)
}

/// The line if weights assume a slope.
fn line(points: &[Point], assumed: f64) -> Option<Crossing> {
    let sum = |term: &dyn Fn(&Point) -> f64| {
        points.iter().map(|point| point.weight(assumed) * term(point)).sum::<f64>()
    };
    let total = sum(&|_| 1.0);
    let x = sum(&|point| point.x) / total;
    let excess = sum(&|point| point.excess) / total;
    let spread = sum(&|point| (point.x - x).powi(2));
    let slope = sum(&|point| (point.x - x) * (point.excess - excess)) / spread;
    // Less than this, the limit hardly depends on the rate, and the line says nothing.
    const LEAST_SLOPE: f64 = 0.05;
    if !slope.is_finite() || slope < LEAST_SLOPE {
        return None;
    }
    let crossing = x - excess / slope;
    let deviation = (1.0 / total + (crossing - x).powi(2) / spread).sqrt() / slope;
    Some(Crossing { x: crossing, deviation, slope })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_where_a_line_meets_the_limit() {
        // The share doubles for each 10 % of rate, and is the allowed one at 1,000/s.
        let share = |rate: f64| 0.01 * (rate / 1_000.0).powf(7.27);
        let points: Vec<Point> =
            [950.0, 1_100.0].iter().map(|rate| Point::new(*rate, 1e7, 1e7 * share(*rate), 0.01)).collect();
        let found = crossing(&points).expect("a rising line");
        assert!((found.x.exp() - 1_000.0).abs() < 0.5, "{found:?}");
        assert!((found.slope - 7.27).abs() < 0.01, "{found:?}");
        assert!(found.deviation < 0.05, "{found:?}");
    }

    #[test]
    fn has_no_answer_for_one_rate_or_a_falling_line() {
        let point = |rate, over| Point::new(rate, 1_000.0, over, 0.01);
        assert!(crossing(&[]).is_none());
        assert!(crossing(&[point(100.0, 10.0)]).is_none());
        assert!(crossing(&[point(100.0, 10.0), point(100.0, 12.0)]).is_none());
        assert!(crossing(&[point(100.0, 20.0), point(200.0, 10.0)]).is_none());
    }
}
