//! Variants of a workload: one for each of several sizes, durability levels, numbers of threads and ratios of data to memory,
//! with a unique name.

use super::{Durability, Mix, Overrides, Phase, Workload, WorkloadError};
use crate::generator::Distribution;
use kvdyno_measure::text::count_text;

/// The phase that overwrites the keys before others are measured.
pub const AGING: &str = "age";

/// The sizes, levels, threads, ages and ratios of variants; an empty list: as in the workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axes {
    /// Numbers of keys.
    pub keys: Vec<u64>,
    /// Requested durability levels.
    pub durability: Vec<Durability>,
    /// Numbers of threads of the measured phases.
    pub threads: Vec<u32>,
    /// How many times each key is overwritten before the measured phases.
    pub ages: Vec<u32>,
    /// Sizes of the data as multiples of the memory that a trial may use for them.
    pub data_to_memory: Vec<f64>,
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
    /// The workload with all changes: once, or once for each size, level, number of threads, age and ratio of data to memory
    /// of the lists; lists of the command line replace `own`. If there are several, each has them in its name: `fill-1M`,
    /// `fill-1M-power`, `fill-t4`, `fill-a2`, `fill-m0.5`, a variant of `fill`.
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
                    for aged in self.by_age(variant)? {
                        variants.extend(self.by_memory(aged)?);
                    }
                }
            }
        }
        Ok(variants)
    }

    /// The workload at each age, or as it is.
    fn by_age(&self, workload: Workload) -> Result<Vec<Workload>, WorkloadError> {
        let ages = &self.axes.ages;
        if ages.is_empty() {
            return Ok(vec![workload]);
        }
        let of = |&age: &u32| {
            let mut variant = workload.clone();
            variant.age(age)?;
            if ages.len() > 1 {
                variant.suffix_name(&format!("a{age}"));
            }
            variant.check().map(|()| variant)
        };
        ages.iter().map(of).collect()
    }

    /// The workload with each ratio of data to memory, or as it is.
    fn by_memory(&self, workload: Workload) -> Result<Vec<Workload>, WorkloadError> {
        let ratios = &self.axes.data_to_memory;
        if ratios.is_empty() {
            return Ok(vec![workload]);
        }
        let memory = self.overrides.memory;
        if memory.is_some() && (!self.axes.keys.is_empty() || self.overrides.sets(&["keys"])) {
            let text = "with --memory it sets the number of keys; omit --keys, or --memory to set the cap";
            return Err(WorkloadError::new("--data-to-memory", text.to_string()));
        }
        if self.overrides.sets(&["memory_bytes"]) {
            let text =
                "it sets the cap itself; omit `memory_bytes`, or use --memory to set the number of keys";
            return Err(WorkloadError::new("--data-to-memory", text.to_string()));
        }
        let has_own_cache = self.overrides.cache.is_some() || self.overrides.sets(&["cache_bytes"]);
        let of = |&ratio: &f64| {
            let mut variant = workload.clone();
            variant.set_data_to_memory(ratio, memory, has_own_cache)?;
            if ratios.len() > 1 {
                variant.suffix_name(&format!("m{ratio}"));
            }
            variant.check().map(|()| variant)
        };
        ratios.iter().map(of).collect()
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

    /// Adds a phase after the fills that overwrites each key so many times, in random order, with the groups and the level of the
    /// last fill. The time budget no longer applies, because it would overwrite fewer.
    fn age(&mut self, times: u32) -> Result<(), WorkloadError> {
        let fail = |text: String| Err(WorkloadError::new("--age", text));
        let fills = self.phases.iter().take_while(|phase| phase.is_fill()).count();
        let Some(fill) =
            fills.checked_sub(1).and_then(|last| self.phases.get(last)).filter(|_| self.keys > 0)
        else {
            return fail(format!(
                "{} does not begin with a fill, so there is nothing to overwrite",
                self.name
            ));
        };
        if fills == self.phases.len() {
            return fail(format!(
                "{} has no phase after its fill, which could be measured with old data",
                self.name
            ));
        }
        if self.phases.iter().any(|phase| phase.name == AGING) {
            return fail(format!("{} has a phase named `{AGING}` already", self.name));
        }
        self.budget_seconds = None;
        if times == 0 {
            return Ok(());
        }
        let phase = Phase {
            name: AGING.into(),
            mix: Mix { update: 1.0, ..Mix::default() },
            distribution: Distribution::Permutation,
            ops: self.keys.saturating_mul(times.into()),
            join: fill.join,
            durability: fill.durability,
            value_size: fill.value_size.clone(),
            ..Phase::default()
        };
        self.phases.insert(fills, phase);
        Ok(())
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

    #[test]
    fn an_age_is_a_phase_that_overwrites_each_key_so_many_times_after_the_fills() {
        let of = |ages: &[u32]| {
            let axes = Axes { ages: ages.to_vec(), keys: vec![5000], ..Axes::default() };
            let changes = Changes { axes, ..Changes::default() };
            changes.variants(&builtin("ycsb-a").unwrap(), &Axes::default()).unwrap()
        };
        let both = of(&[0, 3]);
        assert_eq!(names(&both), [("ycsb-a-a0", Some("ycsb-a")), ("ycsb-a-a3", Some("ycsb-a"))]);
        let phases =
            |workload: &Workload| workload.phases.iter().map(|phase| phase.name.clone()).collect::<Vec<_>>();
        assert_eq!(phases(&both[0]), ["load", "run"]);
        assert_eq!(phases(&both[1]), ["load", AGING, "run"]);
        let aging = &both[1].phases[1];
        assert_eq!((aging.ops, aging.mix.update, aging.threads), (15_000, 1.0, 1));
        assert_eq!(aging.join, both[1].phases[0].join);
        assert_eq!(names(&of(&[2])), [("ycsb-a", None)]);
    }

    #[test]
    fn what_cannot_be_aged_is_refused() {
        let error = |name: &str, set: &[&str]| {
            let axes = Axes { ages: vec![1], ..Axes::default() };
            let set = set.iter().map(|text| text.to_string()).collect();
            let changes =
                Changes { axes, overrides: Overrides { set, ..Overrides::default() }, ..Changes::default() };
            changes.variants(&builtin(name).unwrap(), &Axes::default()).unwrap_err().to_string()
        };
        assert!(error("fill-seq", &[]).contains("no phase after its fill"), "{}", error("fill-seq", &[]));
        assert!(
            error("queue", &[]).contains("--age") || error("queue", &[]).contains("push"),
            "{}",
            error("queue", &[])
        );
        assert!(
            error("ycsb-a", &["run.name=age"]).contains("already"),
            "{}",
            error("ycsb-a", &["run.name=age"])
        );
    }

    #[test]
    fn ratios_of_data_to_memory_are_variants_and_exclude_what_sets_the_same() {
        let of = |ratios: &[f64], overrides: Overrides, keys: &[u64]| {
            let axes = Axes { data_to_memory: ratios.to_vec(), keys: keys.to_vec(), ..Axes::default() };
            Changes { axes, overrides, ..Changes::default() }
                .variants(&builtin("ycsb-c").unwrap(), &Axes::default())
        };
        let several = of(&[0.5, 4.0], Overrides::default(), &[]).unwrap();
        assert_eq!(names(&several), [("ycsb-c-m0.5", Some("ycsb-c")), ("ycsb-c-m4", Some("ycsb-c"))]);
        assert!(several[0].memory_bytes > several[1].memory_bytes);
        let memory = || Overrides { memory: Some(512 << 20), ..Overrides::default() };
        let one = of(&[4.0], memory(), &[]).unwrap();
        assert_eq!((names(&one)[0], one[0].memory_bytes), (("ycsb-c", None), Some(512 << 20)));
        assert!(of(&[4.0], memory(), &[1000]).unwrap_err().to_string().contains("omit --keys"));
        let set = Overrides { set: vec!["memory_bytes=64MiB".into()], ..Overrides::default() };
        assert!(of(&[4.0], set, &[]).unwrap_err().to_string().contains("omit `memory_bytes`"));
    }
}
