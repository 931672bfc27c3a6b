//! Variants of a workload: one for each of several sizes, durability levels and numbers of threads, with a unique name.

use super::{Durability, Overrides, Workload, WorkloadError};
use kvdyno_measure::text::count_text;

/// The sizes, levels and threads of variants; an empty list: as in the workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    /// Numbers of keys.
    pub keys: Vec<u64>,
    /// Requested durability levels.
    pub durability: Vec<Durability>,
    /// Numbers of threads of the measured phases.
    pub threads: Vec<u32>,
}

/// Changes from the command line to every workload of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Keys, ops and durations of the workload are multiplied by this factor; none: unchanged.
    pub scale: Option<f64>,
    /// Replaces the axes of a suite.
    pub axes: Axes,
    /// Changes after scaling; their `keys`, `durability` and `threads` come from `axes`.
    pub overrides: Overrides,
}

impl Changes {
    /// The workload with all changes: once, or once for each size, level and number of threads of the lists; lists of the
    /// command line replace `own`. If there are several, each has them in its name: `fill-1M`, `fill-1M-power`, `fill-t4`, a
    /// variant of `fill`.
    ///
    /// Fails if a change does not fit the workload.
    pub fn variants(&self, workload: &Workload, own: &Axes) -> Result<Vec<Workload>, WorkloadError> {
        let is_typed = !self.axes.keys.is_empty();
        let sizes = if is_typed { &self.axes.keys } else { &own.keys };
        let levels = if self.axes.durability.is_empty() { &own.durability } else { &self.axes.durability };
        let threads = if self.axes.threads.is_empty() { &own.threads } else { &self.axes.threads };
        // Sizes of a suite are scaled, those of the command line are not.
        let factor = self.scale.filter(|_| !is_typed).unwrap_or(1.0);
        let mut variants = Vec::new();
        for &keys in &one_or_all(sizes) {
            for &level in &one_or_all(levels) {
                for &count in &one_or_all(threads) {
                    let mut variant = workload.clone();
                    if let Some(factor) = self.scale {
                        variant.scale(factor);
                    }
                    let keys = keys.map(|keys| scaled(keys, factor));
                    let overrides =
                        Overrides { keys, durability: level, threads: count, ..self.overrides.clone() };
                    overrides.apply(&mut variant)?;
                    variant.name_as_variant(sizes.len() > 1, levels.len() > 1);
                    if threads.len() > 1 {
                        variant.name_by_threads(count)?;
                    }
                    variants.push(variant);
                }
            }
        }
        Ok(variants)
    }

    /// The changes that apply to a workload of a suite, and the flags that do not: keys only if there are keys to fill,
    /// seconds only if the rounds do not insert a fixed turn of keys each.
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

/// A count times a factor; a count over 0 stays at least 1.
fn scaled(count: u64, factor: f64) -> u64 {
    if count == 0 || factor == 1.0 { count } else { ((count as f64 * factor).round() as u64).max(1) }
}

/// Each item of a list, or a single `None` for an empty list.
fn one_or_all<T: Copy>(list: &[T]) -> Vec<Option<T>> {
    if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
}

impl Workload {
    /// Multiplies keys, turns of keys, ops and durations by a factor, but leaves none at 0 that was over 0; removes the
    /// time budget.
    fn scale(&mut self, factor: f64) {
        // Rounded to microseconds, so that a tenth of 3 is 0.3.
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

    /// Adds a suffix to the name; the workload becomes a variant of the original.
    pub fn suffix_name(&mut self, suffix: &str) {
        let base = self.name.clone();
        self.name = format!("{base}-{suffix}");
        self.variant_of.get_or_insert(base);
    }

    /// Adds the number of threads to the name. Fails if no phase has that many, because the variants would all be equal.
    fn name_by_threads(&mut self, count: Option<u32>) -> Result<(), WorkloadError> {
        let Some(count) = count else { return Ok(()) };
        if !self.phases.iter().any(|phase| phase.threads == count) {
            let text = format!(
                "--threads with a list: no phase of `{}` has its number of threads from it; use --set PHASE.readers=N or \
                 --set PHASE.writers=N in separate runs",
                self.name
            );
            return Err(WorkloadError::new("", text));
        }
        self.suffix_name(&format!("t{count}"));
        Ok(())
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
    fn no_changes_return_the_workload_itself() {
        assert_eq!(variants(Changes::default(), Axes::default()), [builtin("quick").unwrap()]);
    }

    #[test]
    fn one_size_is_a_change_and_several_are_variants() {
        let axes = |keys: &[u64]| Axes { keys: keys.to_vec(), ..Axes::default() };
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
        let axes = Axes {
            keys: vec![1000, 2000],
            durability: vec![Durability::None, Durability::Power],
            ..Axes::default()
        };
        let all = variants(Changes { axes, ..Changes::default() }, Axes::default());
        let expected = ["quick-1k-none", "quick-1k-power", "quick-2k-none", "quick-2k-power"];
        assert_eq!(all.iter().map(|workload| workload.name.as_str()).collect::<Vec<_>>(), expected);
        assert!(all.iter().all(|workload| workload.variant_of.as_deref() == Some("quick")));
        let of = |place: usize| (all[place].keys, all[place].durability, all[place].or_weaker);
        assert_eq!((of(1), of(2)), ((1000, Durability::Power, false), (2000, Durability::None, false)));
    }

    #[test]
    fn several_numbers_of_threads_are_variants_and_one_is_a_change() {
        let threads = |threads: &[u32]| Changes {
            axes: Axes { threads: threads.to_vec(), ..Axes::default() },
            ..Changes::default()
        };
        let one = variants(threads(&[3]), Axes::default());
        assert_eq!((names(&one), one[0].phases[1].threads), (vec![("quick", None)], 3));
        let several = variants(threads(&[1, 8]), Axes::default());
        let of = Some("quick");
        assert_eq!(names(&several), [("quick-t1", of), ("quick-t8", of)]);
        assert_eq!(several.iter().map(|workload| workload.phases[1].threads).collect::<Vec<_>>(), [1, 8]);
        assert_eq!(several[1].phases[0].threads, several[0].phases[0].threads, "the fill is the same");
        // Its threads have roles.
        let mut roles = builtin("read-while-writing").unwrap();
        let phase = roles.phases.last_mut().unwrap();
        (phase.threads, phase.readers, phase.mix) = (0, 1, Default::default());
        let error = threads(&[4, 8]).variants(&roles, &Axes::default()).unwrap_err();
        assert!(error.to_string().contains("no phase of `read-while-writing`"), "{error}");
    }

    #[test]
    fn a_scale_applies_to_the_file_and_not_to_the_command_line() {
        let own = Axes { keys: vec![500_000, 100_000], ..Axes::default() };
        let scaled = variants(Changes { scale: Some(0.1), ..Changes::default() }, own.clone());
        assert_eq!(names(&scaled), [("quick-50k", Some("quick")), ("quick-10k", Some("quick"))]);
        let (before, after) = (builtin("quick").unwrap(), &scaled[0]);
        assert_eq!((before.phases[1].ops, after.phases[1].ops), (1_000_000, 100_000));
        assert_eq!((before.phases[2].seconds, after.phases[2].seconds), (1.0, 0.1));
        assert_eq!(after.budget_seconds, None);
        let axes = Axes { keys: vec![3000], ..Axes::default() };
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
