//! One workload at several sizes and durability levels: a variant of it for each, with a name of its own.

use super::{Durability, Overrides, Workload, WorkloadError, count_text};

/// What a workload is varied over; an empty list: as the workload has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    /// Numbers of keys.
    pub keys: Vec<u64>,
    /// Levels asked for.
    pub durability: Vec<Durability>,
}

/// What the command line changes in every workload of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Keys, ops and times of the workload become so many times what is written; none: as they are.
    pub scale: Option<f64>,
    /// In place of what a suite says.
    pub axes: Axes,
    /// What is set, after scaling; its `keys` and `durability` are those of `axes`.
    pub overrides: Overrides,
}

impl Changes {
    /// The workload as it is run: once, or once for each size and level of the lists, those of the command line in place
    /// of `own`. Of several each is named after what it has: `fill-1M`, `fill-1M-power`, a variant of `fill`.
    ///
    /// Fails where a change does not fit the workload.
    pub fn variants(&self, workload: &Workload, own: &Axes) -> Result<Vec<Workload>, WorkloadError> {
        let is_typed = !self.axes.keys.is_empty();
        let sizes = if is_typed { &self.axes.keys } else { &own.keys };
        let levels = if self.axes.durability.is_empty() { &own.durability } else { &self.axes.durability };
        // Sizes that a suite has are scaled, those of the command line are meant as they are.
        let factor = self.scale.filter(|_| !is_typed).unwrap_or(1.0);
        let mut variants = Vec::new();
        for &keys in &one_or_all(sizes) {
            for &level in &one_or_all(levels) {
                let mut variant = workload.clone();
                if let Some(factor) = self.scale {
                    variant.scale(factor);
                }
                let keys = keys.map(|keys| scaled(keys, factor));
                let overrides = Overrides { keys, durability: level, ..self.overrides.clone() };
                overrides.apply(&mut variant)?;
                variant.name_as_variant(sizes.len() > 1, levels.len() > 1);
                variants.push(variant);
            }
        }
        Ok(variants)
    }

    /// What of them a workload of a suite takes, and the flags that it cannot: keys only where there are keys to fill,
    /// seconds only where rounds do not insert a counted turn of keys each.
    pub(super) fn fitting(&self, workload: &Workload) -> (Changes, Vec<&'static str>) {
        let mut fitting = self.clone();
        let mut missed = Vec::new();
        if workload.keys == 0 && !fitting.axes.keys.is_empty() {
            fitting.axes.keys.clear();
            missed.push("--keys");
        }
        if workload.turns_are_phases() && fitting.overrides.seconds.take().is_some() {
            missed.push("--seconds");
        }
        (fitting, missed)
    }
}

/// A count times a factor; of something never nothing.
fn scaled(count: u64, factor: f64) -> u64 {
    if count == 0 || factor == 1.0 { count } else { ((count as f64 * factor).round() as u64).max(1) }
}

/// Each of a list, or nothing once.
fn one_or_all<T: Copy>(list: &[T]) -> Vec<Option<T>> {
    if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
}

impl Workload {
    /// Makes keys, turns of keys, ops and times so many times what they are, but never nothing of what there was; a time budget no
    /// longer shrinks them.
    fn scale(&mut self, factor: f64) {
        // To whole microseconds, so that a tenth of 3 is 0.3.
        let time = |seconds: f64| {
            if seconds == 0.0 { 0.0 } else { ((seconds * factor * 1e6).round() / 1e6).max(1e-6) }
        };
        self.keys = scaled(self.keys, factor);
        self.key.alternate = scaled(self.key.alternate, factor);
        self.budget_seconds = None;
        for phase in &mut self.phases {
            phase.ops = scaled(phase.ops, factor);
            phase.seconds = time(phase.seconds);
            phase.warmup_seconds = time(phase.warmup_seconds);
        }
    }

    /// Adds a word to the name; the workload becomes a variant of what it was.
    pub(super) fn suffix_name(&mut self, suffix: &str) {
        let base = self.name.clone();
        self.name = format!("{base}-{suffix}");
        self.variant_of.get_or_insert(base);
    }

    fn name_as_variant(&mut self, by_keys: bool, by_level: bool) {
        if by_keys {
            self.suffix_name(&count_text(self.keys));
        }
        if by_level {
            self.suffix_name(&self.durability.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn variants(changes: Changes, own: Axes) -> Vec<Workload> {
        changes.variants(&builtin("quick").unwrap(), &own).unwrap()
    }

    fn names(workloads: &[Workload]) -> Vec<(&str, Option<&str>)> {
        workloads.iter().map(|workload| (workload.name.as_str(), workload.variant_of.as_deref())).collect()
    }

    #[test]
    fn nothing_asked_for_is_the_workload_itself() {
        assert_eq!(variants(Changes::default(), Axes::default()), [builtin("quick").unwrap()]);
    }

    #[test]
    fn one_size_is_a_change_and_several_are_variants() {
        let axes = |keys: &[u64]| Axes { keys: keys.to_vec(), durability: vec![] };
        let one = variants(Changes { axes: axes(&[5000]), ..Changes::default() }, Axes::default());
        assert_eq!(names(&one), [("quick", None)]);
        assert_eq!((one[0].keys, one[0].budget_seconds), (5000, None));
        let sizes = [1_000_000, 20_000, 1234];
        let several = variants(Changes { axes: axes(&sizes), ..Changes::default() }, axes(&[7]));
        let of = Some("quick");
        assert_eq!(names(&several), [("quick-1M", of), ("quick-20k", of), ("quick-1234", of)]);
        assert_eq!(several.iter().map(|workload| workload.keys).collect::<Vec<_>>(), sizes);
        assert!(several.iter().all(|workload| workload.budget_seconds.is_none()));
        let own = variants(Changes::default(), axes(&[2000, 3000]));
        assert_eq!(names(&own), [("quick-2k", of), ("quick-3k", of)]);
    }

    #[test]
    fn sizes_and_levels_are_crossed() {
        let axes = Axes { keys: vec![1000, 2000], durability: vec![Durability::None, Durability::Power] };
        let all = variants(Changes { axes, ..Changes::default() }, Axes::default());
        let wanted = ["quick-1k-none", "quick-1k-power", "quick-2k-none", "quick-2k-power"];
        assert_eq!(all.iter().map(|workload| workload.name.as_str()).collect::<Vec<_>>(), wanted);
        assert!(all.iter().all(|workload| workload.variant_of.as_deref() == Some("quick")));
        let of = |place: usize| (all[place].keys, all[place].durability, all[place].or_weaker);
        assert_eq!((of(1), of(2)), ((1000, Durability::Power, false), (2000, Durability::None, false)));
    }

    #[test]
    fn a_scale_is_of_what_is_written_and_not_of_what_is_typed() {
        let own = Axes { keys: vec![500_000, 100_000], durability: vec![] };
        let scaled = variants(Changes { scale: Some(0.1), ..Changes::default() }, own.clone());
        assert_eq!(names(&scaled), [("quick-50k", Some("quick")), ("quick-10k", Some("quick"))]);
        let (before, after) = (builtin("quick").unwrap(), &scaled[0]);
        assert_eq!((before.phases[1].ops, after.phases[1].ops), (400_000, 40_000));
        assert_eq!((before.phases[2].seconds, after.phases[2].seconds), (0.6, 0.06));
        assert_eq!(after.budget_seconds, None);
        let axes = Axes { keys: vec![3000], durability: vec![] };
        let overrides = Overrides { seconds: Some(2.0), ..Overrides::default() };
        let typed = variants(Changes { scale: Some(0.1), axes, overrides }, own);
        assert_eq!((typed[0].keys, typed[0].phases[1].seconds), (3000, 2.0));
        let tiny = variants(Changes { scale: Some(1e-9), ..Changes::default() }, Axes::default());
        assert_eq!((tiny[0].keys, tiny[0].phases[1].ops, tiny[0].phases[0].ops), (1, 1, 0));
    }

    #[test]
    fn a_change_that_does_not_fit_is_an_error() {
        let overrides = Overrides { set: vec!["raed.seconds=1".into()], ..Overrides::default() };
        let changes = Changes { overrides, ..Changes::default() };
        let error = changes.variants(&builtin("quick").unwrap(), &Axes::default()).unwrap_err();
        assert!(error.to_string().starts_with("--set raed.seconds=1: the workload has no phase"), "{error}");
    }
}
