//! Why a run was measured: the choice of an engine for an application.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an application needs, and what was decided before its engines were measured. `kvdyno choose` adds it to its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The needs: names and answers.
    pub needs: Vec<(String, String)>,
    /// The rate at which requests of the measured phases arrive: `poisson:20k`; absent: they are closed loops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The limits that an engine must keep at this rate: `p99<1ms,max<1s`; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The engines that were not measured because they do not meet a need.
    pub ruled_out: Vec<RuledOut>,
    /// How the measured data differ from the application's, a sentence each; empty: they do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size: Vec<String>,
    /// What of the needs the measurement does not show, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_shown: Vec<String>,
    /// Engines that meet all needs and were not measured, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// Engines that one need has ruled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuledOut {
    /// The reason, in words.
    pub reason: String,
    /// The flag that changes it; absent: none does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub flag: String,
    /// The engines.
    pub engines: Vec<String>,
}
