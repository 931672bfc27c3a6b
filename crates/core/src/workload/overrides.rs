//! Changes to a workload from the command line: plain flags for common fields, `--set` for any field.

use super::file::WorkloadFile;
use super::parse::{WORKLOAD, explain};
use super::{Arriving, Durability, Phase, ThreadsError, Until, WhenLate, Workload, WorkloadError};
use crate::generator::{Rate, SizeSpec};
use kvdyno_measure::text::nearest;
use toml::{Table, Value};

/// Changes to a workload; fields without a value do not change it.
///
/// `threads`, `seconds`, `ops`, `until`, `rate`, `arrivals` and `when_late` apply to the measured phases: those that are not fills, or all if the workload has
/// only fills. If `keys`, `seconds` or `ops` are set, by a flag or by `--set`, the user has chosen the size, so the
/// time budget of the workload no longer shrinks it (unless `--set budget_seconds` is given too). If `keys` are set, the
/// maximum duration of fills no longer applies (unless it is given too).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Keys of the fill.
    pub keys: Option<u64>,
    /// Bytes of a key.
    pub key_size: Option<SizeSpec>,
    /// Bytes of a value; phases that set their own sizes keep them.
    pub value_size: Option<SizeSpec>,
    /// Threads that run the mix of measured phases.
    pub threads: Option<u32>,
    /// Seconds of measured phases, instead of their number of ops; a warm-up that would not be shorter shrinks in
    /// proportion.
    pub seconds: Option<f64>,
    /// What ends measured phases before their limits.
    pub until: Option<Until>,
    /// Ops of measured phases, instead of their seconds and of `each_key`; with `seconds`, the limit that is reached first
    /// ends the phase. If rounds insert keys in turns, a turn has the same size.
    pub ops: Option<u64>,
    /// Requests per second.
    pub rate: Option<Rate>,
    /// How they wait.
    pub arrivals: Option<Arriving>,
    /// What happens to late ones.
    pub when_late: Option<WhenLate>,
    /// The minimum durability level; phases that set their own keep it.
    pub durability: Option<Durability>,
    /// Budget for the engine's own caches, in bytes.
    pub cache: Option<u64>,
    /// Maximum duration of fills, in seconds.
    pub load_seconds: Option<f64>,
    /// Cap on all memory of a trial's process, in bytes.
    pub memory: Option<u64>,
    /// The seed of every stream.
    pub seed: Option<u64>,
    /// Repetitions of each cell.
    pub runs: Option<u32>,
    /// `field=value` or `phase.field=value`, applied in order, after the other fields.
    pub set: Vec<String>,
}

impl Overrides {
    /// Changes the workload and checks it. On an error (an unknown phase or field with the nearest name, an invalid value,
    /// or a broken rule) the workload stays unchanged.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), WorkloadError> {
        let mut changed = workload.clone();
        if self.keys.is_some() && workload.keys == 0 {
            let name = &workload.name;
            let message = format!(
                "{name} has no fill; its phases insert keys in each round, set their number by --ops N"
            );
            return Err(WorkloadError::new("--keys", message));
        }
        self.apply_flags(&mut changed);
        for text in &self.set {
            set(&mut changed, text)?;
        }
        // An explicit size is kept: the budget would shrink it again.
        let sized = self.keys.is_some() || self.seconds.is_some() || self.ops.is_some();
        if (sized || self.sets(&["keys", "seconds", "ops"])) && !self.sets(&["budget_seconds"]) {
            changed.budget_seconds = None;
        }
        let has_own_keys = self.keys.is_some() || self.sets(&["keys"]);
        if has_own_keys && self.load_seconds.is_none() && !self.sets(&["load_seconds"]) {
            changed.load_seconds = None;
        }
        // Fields that the file sets may lose their effect with a new mix, but not those that were set here.
        let is_set = |field: &str| {
            (field == "arrivals" && self.arrivals.is_some())
                || (field == "when_late" && self.when_late.is_some())
                || field.rsplit('.').next().is_some_and(|field| self.sets(&[field]))
        };
        let idle = || changed.idle().into_iter().find(|fault| is_set(fault.field));
        if let Some(fault) = changed.sound().err().or_else(idle) {
            return Err(WorkloadError::new(&self.blame(workload), fault.message));
        }
        *workload = changed;
        Ok(())
    }

    fn apply_flags(&self, workload: &mut Workload) {
        workload.keys = self.keys.unwrap_or(workload.keys);
        workload.seed = self.seed.unwrap_or(workload.seed);
        workload.runs = self.runs.unwrap_or(workload.runs);
        if let Some(level) = self.durability {
            // An explicit level is required.
            (workload.durability, workload.or_weaker) = (level, false);
        }
        workload.cache_bytes = self.cache.or(workload.cache_bytes);
        workload.load_seconds = self.load_seconds.or(workload.load_seconds);
        workload.memory_bytes = self.memory.or(workload.memory_bytes);
        if let Some(size) = &self.key_size {
            workload.key.size = size.clone();
        }
        if let Some(size) = &self.value_size {
            workload.value.size = size.clone();
        }
        if let Some(ops) = self.ops.filter(|_| workload.turns_are_phases()) {
            workload.key.alternate = ops;
        }
        for phase in measured(&mut workload.phases) {
            // With only readers and writers, no thread has a mix to run.
            if phase.threads > 0 {
                phase.threads = self.threads.unwrap_or(phase.threads);
            }
            phase.until = self.until.unwrap_or(phase.until);
            phase.rate = self.rate.clone().or(phase.rate.take());
            phase.arrivals = self.arrivals.unwrap_or(phase.arrivals);
            phase.when_late = self.when_late.unwrap_or(phase.when_late);
            if let Some(ops) = self.ops {
                phase.ops = ops;
                phase.each_key = false;
                phase.seconds = 0.0;
            }
            if let Some(seconds) = self.seconds {
                // A warm-up must be shorter than the phase.
                if let Some(before) = phase.seconds_limit().filter(|_| phase.warmup_seconds >= seconds) {
                    phase.warmup_seconds *= seconds / before;
                }
                phase.seconds = seconds;
                phase.ops = self.ops.unwrap_or(0);
            }
        }
    }

    /// Whether `--set` names one of these fields, in any phase.
    pub(super) fn sets(&self, fields: &[&str]) -> bool {
        let paths = self.set.iter().filter_map(|text| text.split_once('='));
        paths.filter_map(|(path, _)| path.trim().rsplit('.').next()).any(|field| fields.contains(&field))
    }

    /// The origin of an error when the changed workload breaks a rule: the setting that caused it, if that is known.
    fn blame(&self, before: &Workload) -> String {
        let mut by_flags = before.clone();
        self.apply_flags(&mut by_flags);
        match self.set.as_slice() {
            [only] if by_flags.sound().is_ok() => format!("--set {only}"),
            _ => format!("workload {} as changed on the command line", before.name),
        }
    }
}

/// The phases that flags apply to: all but the fills, or all if there are only fills.
fn measured(phases: &mut [Phase]) -> impl Iterator<Item = &mut Phase> {
    let only_fills = phases.iter().all(Phase::is_fill);
    phases.iter_mut().filter(move |phase| only_fills || !phase.is_fill())
}

/// Why a field cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SetError {
    #[error("expected FIELD=VALUE or PHASE.FIELD=VALUE, got no `=`")]
    NoValue,
    #[error("expected the name of a field, got `{0}`")]
    NoField(String),
    /// A phase that the workload lacks, and what may be meant.
    #[error("the workload has no phase `{phase}`; {hint}")]
    Phase { phase: String, hint: String },
    #[error("`{field}` is a field of a phase; name the phase, as in `{phase}.{field}=...`")]
    OfPhase { field: String, phase: String },
    #[error("expected a field, got a phase")]
    WholePhase,
    #[error("the workload has no phase `{0}`")]
    NoPhase(String),
    #[error("`{0}` is a single value and has no fields")]
    Single(String),
    #[error("{0}")]
    Threads(#[from] ThreadsError),
    /// The workload cannot be written as a file.
    #[error("{0}")]
    Written(#[from] toml::ser::Error),
    /// No such field, or not such a value: what was expected.
    #[error("{0}")]
    Expected(String),
}

/// Sets one field, given as `path=value`.
fn set(workload: &mut Workload, text: &str) -> Result<(), WorkloadError> {
    let wrong = |error: SetError| WorkloadError::new(&format!("--set {text}"), error.to_string());
    let Some((path, value)) = text.split_once('=') else {
        return Err(wrong(SetError::NoValue));
    };
    let (path, value) = (path.trim(), value.trim());
    let phases: Vec<String> = workload.phases.iter().map(|phase| phase.name.clone()).collect();
    let steps = steps(path, &phases).map_err(wrong)?;
    if steps.as_slice() == ["threads"] {
        let threads = super::parse_threads(value).map_err(|error| wrong(error.into()))?;
        measured(&mut workload.phases)
            .filter(|phase| phase.threads > 0)
            .for_each(|phase| phase.threads = threads);
        return Ok(());
    }
    *workload = with_value(workload, &steps, value).map_err(wrong)?;
    Ok(())
}

/// The steps of a path in the file: `read.mix.get` becomes `phase`, `read`, `mix`, `get`.
fn steps<'a>(path: &'a str, phases: &[String]) -> Result<Vec<&'a str>, SetError> {
    let mut steps: Vec<&str> = path.split('.').collect();
    if steps.contains(&"") {
        return Err(SetError::NoField(path.to_string()));
    }
    let first = steps[0];
    let tables = ["key", "value", "collections", "phase"];
    if phases.iter().any(|phase| phase == first) && steps.len() > 1 {
        steps.insert(0, "phase");
    } else if steps.len() > 1 && !tables.contains(&first) {
        let known: Vec<&str> =
            phases.iter().map(String::as_str).chain(["key", "value", "collections"]).collect();
        let hint = match nearest(first, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected one of {}", known.join(", ")),
        };
        return Err(SetError::Phase { phase: first.to_string(), hint });
    } else if steps.len() == 1 && phase_has(first) {
        let phase = phases.last().map_or("PHASE", String::as_str).to_string();
        return Err(SetError::OfPhase { field: first.to_string(), phase });
    }
    Ok(steps)
}

/// Whether this is a field of phases and not of the workload itself.
fn phase_has(field: &str) -> bool {
    let schema = super::schema();
    let has = |pointer: &str| schema.pointer(pointer).is_some_and(|fields| fields.get(field).is_some());
    has("/$defs/Phase/properties") && !has("/properties")
}

/// The workload with one field changed. The value is parsed as TOML, or used as a plain string if that does not fit; an
/// empty value removes the field, so that its default applies.
fn with_value(workload: &Workload, steps: &[&str], value: &str) -> Result<Workload, SetError> {
    let read =
        toml::from_str::<Table>(&format!("value = {value}")).ok().and_then(|mut table| table.remove("value"));
    let text = Value::String(value.to_string());
    if value.is_empty() {
        return replaced(workload, steps, None);
    }
    match read {
        Some(read) => replaced(workload, steps, Some(read))
            .or_else(|error| replaced(workload, steps, Some(text)).map_err(|_| error)),
        None => replaced(workload, steps, Some(text)),
    }
}

fn replaced(workload: &Workload, steps: &[&str], value: Option<Value>) -> Result<Workload, SetError> {
    let mut root = Table::try_from(WorkloadFile::of(workload))?;
    let (steps, mut table) = match steps {
        ["phase", name, rest @ ..] => (rest, phase_table(&mut root, name)?),
        all => (all, &mut root),
    };
    let Some((field, parents)) = steps.split_last() else {
        return Err(SetError::WholePhase);
    };
    for parent in parents {
        let inner = table.entry(parent.to_string()).or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut().ok_or_else(|| SetError::Single(parent.to_string()))?;
    }
    match value {
        Some(value) => table.insert(field.to_string(), value),
        None => table.remove(*field),
    };
    let expected = |error: toml::de::Error| SetError::Expected(explain(error.message(), &WORKLOAD));
    let file: WorkloadFile = root.try_into().map_err(expected)?;
    Ok(file.into_workload(&workload.name))
}

fn phase_table<'a>(root: &'a mut Table, name: &str) -> Result<&'a mut Table, SetError> {
    let phases = root.get_mut("phase").and_then(Value::as_array_mut).into_iter().flatten();
    let mut tables = phases.filter_map(Value::as_table_mut);
    tables
        .find(|phase| phase.get("name").and_then(Value::as_str) == Some(name))
        .ok_or_else(|| SetError::NoPhase(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{builtin, parse};

    fn changed(name: &str, overrides: Overrides) -> Workload {
        let mut workload = builtin(name).unwrap();
        overrides.apply(&mut workload).unwrap();
        workload
    }

    fn setting(name: &str, settings: &[&str]) -> Result<Workload, String> {
        let mut workload = builtin(name).unwrap();
        let set = settings.iter().map(|text| text.to_string()).collect();
        let before = workload.clone();
        match (Overrides { set, ..Overrides::default() }).apply(&mut workload) {
            Ok(()) => Ok(workload),
            Err(error) => {
                assert_eq!(workload, before, "an error must change nothing");
                Err(error.to_string())
            }
        }
    }

    #[test]
    fn changes_nothing_when_nothing_is_requested() {
        assert_eq!(changed("quick", Overrides::default()), builtin("quick").unwrap());
    }

    #[test]
    fn flags_apply_to_the_measured_phases_and_not_to_the_load() {
        let before = builtin("ycsb-a").unwrap();
        let after = changed(
            "ycsb-a",
            Overrides { threads: Some(4), seconds: Some(3.0), keys: Some(5000), ..Overrides::default() },
        );
        assert_eq!(after.keys, 5000);
        assert_eq!(after.phases[0], before.phases[0]);
        assert_eq!((after.phases[1].threads, after.phases[1].seconds), (4, 3.0));
    }

    #[test]
    fn flags_apply_to_the_fill_of_a_workload_that_has_only_fills() {
        let after =
            changed("fill-seq", Overrides { threads: Some(2), ops: Some(100), ..Overrides::default() });
        let phase = &after.phases[0];
        assert_eq!((phase.threads, phase.ops, phase.each_key, phase.seconds), (2, 100, false, 0.0));
        let after = changed("fill-seq", Overrides { seconds: Some(2.0), ..Overrides::default() });
        assert_eq!((after.phases[0].seconds, after.phases[0].each_key), (2.0, true));
    }

    #[test]
    fn a_warm_up_shrinks_with_the_seconds_if_necessary() {
        let with = |seconds: f64| {
            let after = changed("kvdk-read", Overrides { seconds: Some(seconds), ..Overrides::default() });
            (after.phases[1].seconds, after.phases[1].warmup_seconds)
        };
        assert_eq!((with(5.0), with(30.0), with(1.0)), ((5.0, 2.0), (30.0, 2.0), (1.0, 0.2)));
    }

    #[test]
    fn the_type_of_collections_may_be_set_if_there_are_none() {
        use crate::workload::{Collections, DataType};
        let workload = |settings: &[&str]| setting("kvdk-read", settings);
        let hash = workload(&["collections.type=hash"]).unwrap();
        assert_eq!(hash.collections, Collections { count: 16, r#type: DataType::Hash });
        let sorted = workload(&["collections.type=sorted", "collections.count=3"]).unwrap();
        assert_eq!(sorted.collections, Collections { count: 3, r#type: DataType::Sorted });
        assert_eq!(workload(&["collections.type=string"]).unwrap(), builtin("kvdk-read").unwrap());
        let wrong = |settings: &[&str]| workload(settings).unwrap_err();
        assert!(wrong(&["collections.type=set"]).contains("expected `string`, `hash`, `sorted` or `list`"));
        assert!(wrong(&["collections.count=3"]).contains("`hash`, `sorted` or `list` with a count"));
        assert!(wrong(&["collections.type=list"]).contains("push and pop only"));
    }

    #[test]
    fn deletes_of_each_key_are_measured_and_not_a_fill() {
        let after = changed("delete-random", Overrides { ops: Some(7), ..Overrides::default() });
        assert!(after.phases[0].each_key && after.phases[0].ops == 0);
        assert_eq!((after.phases[1].ops, after.phases[1].each_key), (7, false));
    }

    #[test]
    fn every_plain_flag_changes_its_field() {
        let after = changed(
            "quick",
            Overrides {
                key_size: Some(SizeSpec::Fixed(24)),
                value_size: Some(SizeSpec::Uniform(10, 20)),
                durability: Some(Durability::None),
                cache: Some(1 << 20),
                seed: Some(u64::MAX),
                runs: Some(9),
                seconds: Some(1.0),
                ops: Some(50),
                ..Overrides::default()
            },
        );
        assert_eq!(after.key.size, SizeSpec::Fixed(24));
        assert_eq!(after.value.size, SizeSpec::Uniform(10, 20));
        assert_eq!((after.durability, after.cache_bytes), (Durability::None, Some(1 << 20)));
        assert!(!after.or_weaker, "an explicit level is required");
        assert_eq!((after.seed, after.runs, after.budget_seconds), (u64::MAX, 9, None));
        assert!(after.phases[1..].iter().all(|phase| phase.ops == 50 && phase.seconds == 1.0));
        assert_eq!(after.phases[5].durability, Some(Durability::Power), "the phase keeps its own level");
    }

    #[test]
    fn set_changes_any_field() {
        let after = setting(
            "quick",
            &[
                "key.encoding=hex",
                "key.size=uniform:16-32",
                "seed=18446744073709551615",
                "cache_bytes=64MiB",
                "about=true",
                "read.mix.get=0.9",
                "read.mix.scan = 0.1",
                "read.scan.rows=5",
                "read.seconds=2m",
                "read.each_key=false",
                "read.distribution=hotspot:0.1,0.9",
                "sync.durability=",
                "mix.mix={ get = 1 }",
                "threads=3",
            ],
        )
        .unwrap();
        assert_eq!(after.key.encoding, crate::generator::Encoding::Hex);
        assert_eq!(after.key.size, SizeSpec::Uniform(16, 32));
        assert_eq!((after.seed, after.cache_bytes, after.about.as_str()), (u64::MAX, Some(64 << 20), "true"));
        let read = &after.phases[1];
        assert_eq!((read.mix.get, read.mix.scan, read.scan.rows, read.seconds), (0.9, 0.1, 5, 120.0));
        assert_eq!(read.distribution.to_string(), "hotspot:0.1,0.9");
        assert_eq!(after.phases[5].durability, None);
        assert_eq!((after.phases[3].mix.get, after.phases[3].mix.update), (1.0, 0.0));
        assert_eq!(after.phases.iter().map(|phase| phase.threads).collect::<Vec<_>>(), [1, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn only_an_explicit_size_removes_the_budget() {
        let budget = |settings: &[&str]| setting("quick", settings).unwrap().budget_seconds;
        assert_eq!(budget(&["key.size=24"]), Some(145.0));
        assert_eq!(budget(&["read.seconds=5"]), None);
        assert_eq!(budget(&["budget_seconds=50", "keys=300k"]), Some(50.0));
        let load = |settings: &[&str]| setting("quick", settings).unwrap().load_seconds;
        let usual = load(&[]);
        assert!(usual.is_some());
        assert_eq!((load(&["read.seconds=5"]), load(&["keys=300k"])), (usual, None));
        assert_eq!(load(&["load_seconds=3", "keys=300k"]), Some(3.0));
    }

    #[test]
    fn reports_what_is_wrong_with_a_setting() {
        const CASES: &[(&str, &str)] = &[
            ("threads", "expected FIELD=VALUE or PHASE.FIELD=VALUE, got no `=`"),
            ("raed.seconds=5", "the workload has no phase `raed`; did you mean `read`?"),
            ("seconds=5", "`seconds` is a field of a phase; name the phase, as in `sync.seconds=...`"),
            ("read.secnods=5", "unknown field `secnods`; did you mean `seconds`?"),
            ("read.mix.gett=5", "unknown field `gett`; did you mean `get`?"),
            ("kesy=5", "unknown field `kesy`; did you mean `keys`?"),
            ("keys=many", "expected a count such as 200000 or \"200k\", got \"many\""),
            ("keys=5x", "unknown unit `x`; expected one of k, M, G"),
            ("read.ops.x=5", "`ops` is a single value and has no fields"),
            ("read..x=5", "expected the name of a field, got `read..x`"),
            (
                "read.multi_get_keys=16",
                "phase `read`: `multi_get_keys`: expected multi_get in the mix, got none",
            ),
            ("read.scan.rows=5", "phase `read`: `scan.rows`: expected scan in the mix, got none"),
            ("read.miss=2", "phase `read`: `miss`: expected a share from 0 to 1, got 2"),
            ("read.each_key=maybe", "expected true or false, got the string \"maybe\""),
            ("read.distribution=zpif:1", "unknown distribution `zpif`; did you mean `zipf:THETA`?"),
            ("phase=1", "expected tables written as [[phase]], got the number `1`"),
            (
                "durability=pwoer",
                "expected `none`, `process`, `power` or `default`, got `pwoer`; did you mean `power`?",
            ),
        ];
        for (typed, expected) in CASES {
            let error = setting("quick", &[typed]).unwrap_err();
            assert!(error.starts_with(&format!("--set {typed}: ")), "{error}");
            assert!(
                error.ends_with(expected) && !error.contains('\n'),
                "for {typed}\nexpected {expected}\ngot    {error}"
            );
        }
    }

    #[test]
    fn a_new_mix_may_leave_fields_of_the_file_without_effect() {
        let after = setting("quick", &["scan.mix={ get = 1 }"]).unwrap();
        assert!(after.phases.iter().any(|phase| phase.name == "scan" && phase.scan.rows == 100));
        let after = setting("ycsb-e", &["run.mix={ get = 1 }"]).unwrap();
        assert!(after.idle().iter().any(|fault| fault.field == "scan.uniform_rows"));
    }

    #[test]
    fn errors_caused_by_flags_name_the_command_line() {
        let mut workload = builtin("quick").unwrap();
        let error = Overrides { threads: Some(0), set: vec!["keys=5".to_string()], ..Overrides::default() }
            .apply(&mut workload)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("workload quick as changed on the command line: phase `read`: "),
            "{error}"
        );
    }

    #[test]
    fn a_phase_may_have_the_name_of_a_field() {
        let text = "[[phase]]\nname = 'keys'\nmix = { put = 1 }\nops = 5\n";
        let mut workload = parse(text, "w.toml").unwrap();
        let set = vec!["keys=7".to_string(), "keys.ops=9".to_string()];
        Overrides { set, ..Overrides::default() }.apply(&mut workload).unwrap();
        assert_eq!((workload.keys, workload.phases[0].ops), (7, 9));
    }
}
