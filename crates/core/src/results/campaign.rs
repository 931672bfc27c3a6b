//! A campaign: a plan whose trials several machines measure in slices of whole blocks.

use super::certificate::sha256;
use super::load::LoadError;
use super::{Plan, SCHEMA, Trial};
use kvdyno_measure::{ClockFacts, Machine, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum size of a plan's file, bytes: a plan of 100,000 trials has about 250 MB.
pub const PLAN_LIMIT_BYTES: u64 = 1 << 30;

/// The characters of the checksum that are part of a campaign's id.
const ID_DIGITS: usize = 12;

/// The file of a campaign. `kvdyno plan` writes it, and `kvdyno run --plan` reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// The version of kvdyno that planned it.
    pub tool_version: String,
    /// When it was planned, UTC, RFC 3339.
    pub planned_at: String,
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
    /// The CPUs that a machine must have: those for which the threads of the workloads were planned.
    pub cpus: u32,
    /// Engines that were known but not available when it was planned, and why.
    pub absent: Vec<(String, String)>,
    /// Warnings of the planning.
    pub warnings: Vec<Warning>,
    /// The estimates of the trials, in the order of the plan.
    pub trial_estimates: Vec<TrialEstimate>,
}

/// The estimated needs of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialEstimate {
    /// The id of the trial.
    pub trial: String,
    /// Time in its phases, seconds.
    pub seconds: f64,
    /// Maximum disk space, bytes.
    pub disk_bytes: u64,
}

/// A campaign as a file has it.
#[derive(Debug)]
pub struct ReadCampaign {
    /// The campaign.
    pub campaign: Campaign,
    /// Its id, which names the folders of its slices.
    pub id: String,
}

/// The first line of the file. The rest of the file is the rest of one JSON object.
#[derive(Serialize, Deserialize)]
struct Head {
    schema: u32,
    sha256: String,
}

impl Campaign {
    /// The text of the file: its first line has the checksum of all that follows.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let body = self.body()?;
        Ok(format!("{{\"schema\":{SCHEMA},\"sha256\":\"{}\",\n{body}", sha256(body.as_bytes())))
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{}\n", json.strip_prefix('{').unwrap_or(&json)))
    }

    /// Reads a file. One that was changed after it was written is refused, because slices of different plans cannot be merged.
    pub fn parse(bytes: &[u8]) -> Result<ReadCampaign, LoadError> {
        let invalid = |reason: String| LoadError::Invalid { reason };
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let (head, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
        let head = String::from_utf8_lossy(head);
        let head: Head = head
            .strip_suffix(',')
            .and_then(|head| serde_json::from_str(&format!("{head}}}")).ok())
            .ok_or_else(|| invalid("its first line is not that of a plan".to_string()))?;
        if head.schema > SCHEMA {
            return Err(LoadError::NewerSchema { found: head.schema });
        }
        if head.sha256 != sha256(body) {
            return Err(invalid(
                "its checksum differs: the plan was changed after it was written".to_string(),
            ));
        }
        let json = [b"{", body].concat();
        let campaign: Campaign = serde_json::from_slice(&json).map_err(|error| invalid(error.to_string()))?;
        let id = campaign.id(&head.sha256);
        Ok(ReadCampaign { campaign, id })
    }

    /// `2026-11-24T21-00-00-quick-3f2a91bc07d4`: the time and the name of the plan, and its checksum.
    fn id(&self, checksum: &str) -> String {
        let name = super::identity::run_id(&self.planned_at, &self.plan.name, "", 0);
        let name = name.strip_suffix("-0000").unwrap_or(&name);
        format!("{name}-{}", checksum.get(..ID_DIGITS).unwrap_or(checksum))
    }
}

/// A block of a campaign: one repetition of a workload with all engines. One machine measures all of its trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The places of its trials in the plan, ascending.
    pub trials: Vec<usize>,
}

/// The blocks of a plan in the order of their first trials.
pub fn blocks(trials: &[Trial]) -> Vec<Block> {
    let mut places = std::collections::HashMap::new();
    let mut blocks: Vec<Block> = Vec::new();
    for (at, trial) in trials.iter().enumerate() {
        let place = *places.entry((trial.workload.name.as_str(), trial.repetition)).or_insert(blocks.len());
        match blocks.get_mut(place) {
            Some(block) => block.trials.push(at),
            None => blocks.push(Block { trials: vec![at] }),
        }
    }
    blocks
}

/// A slice of a campaign: every `of`-th block, from block `index` on, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// The number of slices.
    pub of: u32,
}

impl std::fmt::Display for Shard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}", self.index, self.of)
    }
}

impl Shard {
    /// The blocks of the slice, in the order of the plan. Blocks are dealt out workload by workload, so that the repetitions of
    /// each workload are on as many machines as possible.
    pub fn blocks(self, trials: &[Trial]) -> Vec<Block> {
        let all = blocks(trials);
        let mut dealt: Vec<usize> = (0..all.len()).collect();
        let first = |block: usize| all[block].trials.first().map(|at| &trials[*at]);
        dealt.sort_by_key(|block| first(*block).map(|trial| (&trial.workload.name, trial.repetition)));
        let mut own: Vec<usize> = (0_u32..)
            .zip(dealt)
            .filter(|(at, _)| at % self.of == self.index - 1)
            .map(|(_, block)| block)
            .collect();
        own.sort_unstable();
        own.into_iter().map(|block| all[block].clone()).collect()
    }
}

/// The part of a campaign that a run is: a slice, or the result of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The id of the campaign.
    pub campaign: String,
    /// The number of trials of the whole campaign.
    pub trials: u32,
    /// The slice, `3/16`; none: slices were merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The machines that measured its trials, in the order of their first trials.
    pub machines: Vec<MeasuredOn>,
}

/// A machine that measured trials of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredOn {
    /// The same for all slices of the campaign that the machine measured since it was booted. It is derived from a random number,
    /// and identifies the machine in no other campaign.
    pub id: String,
    /// The machine.
    pub machine: Machine,
    /// Its clock.
    pub clock: ClockFacts,
    /// Its warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The ids of the trials that it measured, in the order of the plan; empty: all trials of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;
    use std::collections::BTreeSet;

    fn campaign() -> Campaign {
        Campaign {
            tool_version: "0.1.0".to_string(),
            planned_at: "2026-11-24T21:00:00Z".to_string(),
            plan: Plan { name: "quick".to_string(), ..fixture::run().plan },
            cpus: 2,
            absent: Vec::new(),
            warnings: Vec::new(),
            trial_estimates: Vec::new(),
        }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written_and_refused_if_a_byte_of_it_changes() {
        let text = campaign().text().unwrap();
        let ReadCampaign { campaign: found, id } = Campaign::parse(text.as_bytes()).unwrap();
        assert_eq!(found, campaign());
        assert!(id.starts_with("2026-11-24T21-00-00-quick-") && id.len() == 38, "{id}");
        assert_eq!(Campaign::parse(text.as_bytes()).unwrap().id, id);
        for at in [0, 5, 20, 90, 120, text.len() / 2, text.len() - 2] {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Campaign::parse(&bytes).is_err(), "byte {at}");
        }
        for end in [0, 1, 70, 100, text.len() / 2, text.len() - 1] {
            assert!(Campaign::parse(&text.as_bytes()[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn slices_have_whole_blocks_and_each_block_is_in_one_slice() {
        let mut trials = fixture::run().plan.trials;
        let second: Vec<Trial> = trials
            .iter()
            .map(|trial| {
                let workload =
                    crate::workload::Workload { name: "other".into(), ..(*trial.workload).clone() };
                Trial { workload: workload.into(), id: format!("{}-other", trial.id), ..trial.clone() }
            })
            .collect();
        trials.extend(second);
        assert_eq!(blocks(&trials).len(), 6);
        for of in 1..=8 {
            let mut seen = BTreeSet::new();
            for index in 1..=of {
                for block in (Shard { index, of }).blocks(&trials) {
                    let first = &trials[block.trials[0]];
                    let all: Vec<usize> = (0..trials.len())
                        .filter(|at| {
                            trials[*at].workload.name == first.workload.name
                                && trials[*at].repetition == first.repetition
                        })
                        .collect();
                    assert_eq!(block.trials, all, "slice {index}/{of}");
                    assert!(block.trials.iter().all(|at| seen.insert(*at)), "slice {index}/{of}");
                }
            }
            assert_eq!(seen.len(), trials.len(), "{of} slices");
        }
        // Three repetitions of each of two workloads on three machines: each machine has one of each.
        for index in 1..=3 {
            let own = (Shard { index, of: 3 }).blocks(&trials);
            let names: BTreeSet<&str> =
                own.iter().map(|block| trials[block.trials[0]].workload.name.as_str()).collect();
            assert_eq!(names.len(), 2, "slice {index}/3");
        }
    }
}
