//! Faults of a phase: which member of a store fails, when, how, and for how long.

use super::{Phase, Workload};
use kvdyno_measure::text::listed;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use strum::IntoStaticStr;

/// The maximum number of faults of a workload.
pub(super) const MOST_FAULTS: usize = 100;
/// The maximum number of a member.
const MOST_MEMBERS: u32 = 1000;
/// The maximum seconds of a phase with faults: each thread keeps what happens in every 100 ms.
pub(super) const MOST_FAULT_SECONDS: f64 = 3600.0;
/// The maximum seconds by which a sync is delayed: syncs that wait at the end of a phase hold up what follows.
pub(super) const MOST_DELAY_SECONDS: f64 = 10.0;

/// What happens to a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum FaultKind {
    /// Its process is killed (SIGKILL), and started again at the end of the fault.
    #[default]
    Kill,
    /// Its process is stopped (SIGSTOP), and continued at the end of the fault.
    Pause,
    /// Its process is asked to end (SIGTERM), and started again as soon as it has ended.
    Restart,
    /// No packet reaches or leaves it, until the end of the fault.
    Cut,
    /// Each of its sync calls is delayed, until the end of the fault.
    Slow,
}

impl FaultKind {
    /// The name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The member that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The one that leads at the time of the fault.
    #[default]
    Leader,
    /// The first one that does not lead at the time of the fault.
    Follower,
    /// The one with this number, from 1, in the order of the store.
    Number(u32),
}

const A_MEMBER: &str = "\"leader\", \"follower\", or the number of a member from 1";

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Leader => out.write_str("leader"),
            Target::Follower => out.write_str("follower"),
            Target::Number(number) => write!(out, "member {number}"),
        }
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Target::Number(number) => serializer.serialize_u32(*number),
            named => serializer.collect_str(named),
        }
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Target, D::Error> {
        struct Reader;
        impl de::Visitor<'_> for Reader {
            type Value = Target;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(A_MEMBER)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Target, E> {
                match text {
                    "leader" => Ok(Target::Leader),
                    "follower" => Ok(Target::Follower),
                    _ => Err(E::custom(format!("expected {A_MEMBER}, got `{text}`"))),
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Target, E> {
                let number = u32::try_from(number).ok().filter(|number| (1..=MOST_MEMBERS).contains(number));
                number.map(Target::Number).ok_or_else(|| E::custom(format!("expected {A_MEMBER}")))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Target, E> {
                self.visit_u64(u64::try_from(number).unwrap_or(0))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Target {
    fn schema_name() -> Cow<'static, str> {
        "Member".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": format!("The member that fails: {A_MEMBER}."),
            "anyOf": [
                { "type": "string", "enum": ["leader", "follower"] },
                { "type": "integer", "minimum": 1, "maximum": MOST_MEMBERS }
            ]
        })
    }
}

/// A fault of a member while a phase is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemberFault {
    /// The name of the phase.
    pub phase: String,
    /// What happens.
    pub kind: FaultKind,
    /// Which member fails.
    pub member: Target,
    /// When it begins, seconds from the moment at which counting begins, after the warm-up.
    pub at_seconds: f64,
    /// When it ends, seconds after it began; none: with the phase. A restart has no such time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<f64>,
    /// How long each sync call of a slow disk is delayed, seconds. Other faults have no such time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
}

impl MemberFault {
    /// The fault in words: `at 3 s the leader is killed, and started again 4 s later`.
    pub(super) fn words(&self) -> String {
        let member = match self.member {
            Target::Leader => "the member that leads".to_string(),
            Target::Follower => "the first member that does not lead".to_string(),
            Target::Number(number) => format!("member {number}"),
        };
        let at = self.at_seconds;
        let end = |what: &str| match self.for_seconds {
            Some(seconds) => format!("{what} {seconds} s later"),
            None => format!("{what} when the phase has ended"),
        };
        match self.kind {
            FaultKind::Kill => format!("at {at} s {member} is killed, and {}", end("started again")),
            FaultKind::Pause => format!("at {at} s {member} is paused, and {}", end("continued")),
            FaultKind::Restart => format!("at {at} s {member} is asked to end, and then started again"),
            FaultKind::Cut => format!("at {at} s the link of {member} is cut, and {}", end("restored")),
            FaultKind::Slow => format!(
                "at {at} s each sync of {member} begins to take {} s longer, and {}",
                self.delay_seconds.unwrap_or_default(),
                end("the disk is as fast as before")
            ),
        }
    }
}

impl Workload {
    /// Whether it has a fault of this kind.
    pub fn has_fault(&self, kind: FaultKind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// The faults of a phase, in the order in which they begin.
    pub fn faults_of(&self, phase: &Phase) -> Vec<MemberFault> {
        let mut own: Vec<MemberFault> =
            self.faults.iter().filter(|fault| fault.phase == phase.name).cloned().collect();
        own.sort_by(|one, other| one.at_seconds.total_cmp(&other.at_seconds));
        own
    }

    /// The faults of a phase in words; empty if it has none.
    pub(super) fn text_of_faults(&self, phase: &Phase) -> String {
        let words: Vec<String> = self.faults_of(phase).iter().map(MemberFault::words).collect();
        if words.is_empty() {
            return String::new();
        }
        format!(
            "{}. Ops that fail meanwhile are counted by their errors, and each acknowledged write must be read back.",
            listed(&words, "and")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, schema};
    use super::*;

    const PHASES: &str = "keys = 100\n[[phase]]\nname = 'load'\nmix.put = 1\ndistribution = 'permutation'\neach_key = true\n\
                          [[phase]]\nname = 'run'\nmix = { get = 1, update = 1 }\nseconds = 10\n";

    /// The error of a workload with this text after its phases; empty: there is none.
    fn error(more: &str) -> String {
        parse(&format!("{PHASES}{more}"), "w.toml").map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn faults_are_read_written_and_described_in_their_order() {
        let text = "[[fault]]\nkind = 'restart'\nmember = 'follower'\nat_seconds = '4500ms'\n\
                    [[fault]]\nphase = 'run'\nkind = 'pause'\nmember = 2\nat_seconds = 1\nfor_seconds = 0.5\n\
                    [[fault]]\nat_seconds = 7\n";
        let workload = parse(&format!("{PHASES}{text}"), "w.toml").unwrap();
        assert_eq!(parse(&workload.to_toml(), "w.toml").unwrap(), workload);
        let json = serde_json::to_string(&workload).unwrap();
        assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
        let own = workload.faults_of(&workload.phases[1]);
        let kinds: Vec<FaultKind> = own.iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, [FaultKind::Pause, FaultKind::Restart, FaultKind::Kill]);
        assert_eq!((own[0].member, own[0].for_seconds), (Target::Number(2), Some(0.5)));
        assert_eq!(own[2].member, Target::Leader);
        let told = workload.text_of_faults(&workload.phases[1]);
        assert!(told.starts_with("at 1 s member 2 is paused, and continued 0.5 s later, at 4.5 s"), "{told}");
        assert!(
            told.contains("the member that leads is killed, and started again when the phase has ended.")
        );
        assert!(workload.text_of_faults(&workload.phases[0]).is_empty());
        assert!(workload.explain().contains("Faults: at 1 s member 2"), "{}", workload.explain());
        assert!(schema().pointer("/$defs/Fault/properties/member").is_some());
    }

    #[test]
    fn cut_links_and_slow_disks_are_read_and_described() {
        let text = "[[fault]]\nkind = 'cut'\nat_seconds = 1\nfor_seconds = 2\n\
                    [[fault]]\nkind = 'slow'\nmember = 'follower'\nat_seconds = 4\ndelay_seconds = '20ms'\n";
        let workload = parse(&format!("{PHASES}{text}"), "w.toml").unwrap();
        assert_eq!(parse(&workload.to_toml(), "w.toml").unwrap(), workload);
        let own = workload.faults_of(&workload.phases[1]);
        assert_eq!(
            (own[0].kind, own[0].for_seconds, own[0].delay_seconds),
            (FaultKind::Cut, Some(2.0), None)
        );
        assert_eq!(
            (own[1].kind, own[1].for_seconds, own[1].delay_seconds),
            (FaultKind::Slow, None, Some(0.02))
        );
        let told = workload.text_of_faults(&workload.phases[1]);
        let words = [
            "at 1 s the link of the member that leads is cut, and restored 2 s later",
            "at 4 s each sync of the first member that does not lead begins to take 0.02 s longer, and the disk is as fast as \
             before when the phase has ended",
        ];
        words.iter().for_each(|word| assert!(told.contains(word), "no `{word}` in {told}"));
        assert!(workload.has_fault(FaultKind::Cut) && !workload.has_fault(FaultKind::Kill));
        assert!(schema().pointer("/$defs/Fault/properties/delay_seconds").is_some());
    }

    #[test]
    fn a_fault_that_makes_no_sense_is_one_line_with_its_place() {
        let cases = [
            ("at_seconds = 10", "at_seconds from 0 and below 10, the seconds of phase `run`, got 10"),
            (
                "at_seconds = 5\nfor_seconds = 6",
                "for_seconds above 0, up to the end of phase `run` at 10 s, got 6",
            ),
            ("kind = 'restart'\nfor_seconds = 1", "no for_seconds for a restart"),
            ("kind = 'burn'", "expected `kill`, `pause`, `restart`, `cut` or `slow`, got `burn`"),
            ("kind = 'slow'", "delay_seconds above 0 and up to 10 for a slow disk, got none"),
            ("kind = 'slow'\ndelay_seconds = 0", "delay_seconds above 0 and up to 10 for a slow disk, got 0"),
            (
                "kind = 'slow'\ndelay_seconds = 11",
                "delay_seconds above 0 and up to 10 for a slow disk, got 11",
            ),
            (
                "kind = 'cut'\ndelay_seconds = 1",
                "no delay_seconds, which only a slow disk has, for a cut, got 1",
            ),
            ("delay_seconds = 1", "no delay_seconds, which only a slow disk has, for a kill, got 1"),
            (
                "kind = 'cut'\nat_seconds = 5\nfor_seconds = 6",
                "for_seconds above 0, up to the end of phase `run` at 10 s, got 6",
            ),
            ("member = 0", "the number of a member from 1"),
            ("member = 'first'", "got `first`"),
            ("phase = 'rum'", "a phase of the workload (load, run), got \"rum\""),
            (
                "phase = 'load'",
                "`seconds`: expected a time up to 3600 seconds for a phase with a [[fault]], got 0",
            ),
            ("nodes = 3", "unknown field `nodes`"),
            (
                "[[fault]]\nat_seconds = 3",
                "one fault at a time in a phase, got one at 3 s while that of 0 s lasts",
            ),
        ];
        for (fault, expected) in cases {
            let told = error(&format!("[[fault]]\n{fault}\n"));
            assert!(told.starts_with("w.toml:") && told.contains(expected), "{fault}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
        for (phase, expected) in [
            ("mix.insert = 1", "`mix`: expected get, multi_get, put, update and read_modify_write only"),
            ("mix.put = 1\njoin = 2", "`join`: expected 1 in a phase with a [[fault]], got 2"),
            ("mix.put = 1\nops = 5", "`ops`: expected 0 for a phase with a [[fault]]"),
            (
                "mix.put = 1\neach_round = true",
                "`each_round`: expected a phase that ends by time and runs once",
            ),
        ] {
            let told = error(&format!("[[phase]]\nname = 'more'\nseconds = 5\n{phase}\n[[fault]]\n"));
            assert!(told.contains(expected), "{phase}: {told}");
        }
        let budget = parse(&format!("budget_seconds = 9\n{PHASES}[[fault]]\n"), "w.toml").unwrap_err();
        assert!(budget.to_string().contains("`budget_seconds`: expected none with [[fault]]"), "{budget}");
    }
}
