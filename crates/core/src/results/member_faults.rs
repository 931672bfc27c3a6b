//! What happened in a phase with faults: the faults and their effect, the errors that clients saw, and what became of
//! acknowledged writes.

use crate::workload::FaultKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A phase with faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbed {
    /// The faults, in the order in which they began.
    pub faults: Vec<FaultRecord>,
    /// The errors of ops, by op and text, the most frequent first; warm-up included.
    pub errors: Vec<OpErrors>,
    /// Writes that were acknowledged, without warm-up.
    pub acknowledged_writes: u64,
    /// Writes that failed, so that it is unknown whether they took effect; warm-up included.
    pub doubtful_writes: u64,
    /// Keys that the phase had written and that were read again when it had ended and all members ran; none: the versions of the
    /// keys are not known, or the phase was cut short.
    pub read_back: Option<u64>,
    /// Of these, keys whose acknowledged value was missing, older or damaged; none: nothing was read back.
    pub lost: Option<u64>,
    /// Reads in the phase that returned an older value than one that was acknowledged before they began, or none.
    pub stale_reads: u64,
}

/// A fault of a member. All times are nanoseconds from the moment at which counting began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultRecord {
    /// What happened.
    pub kind: FaultKind,
    /// The member that was to fail: `leader`, `follower` or `member 2`.
    pub target: String,
    /// The name of the member that failed.
    pub member: String,
    /// When it began.
    pub at_ns: u64,
    /// When the member was started or continued, its link restored, or its disk as fast as before; none: after the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// The longest time in which no thread had an acknowledgement, of those whose middle is between the fault and the next fault or
    /// the end of the phase; none: shorter than 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_service_ns: Option<u64>,
    /// When that time began; it begins with the last acknowledgement before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_service_at_ns: Option<u64>,
    /// The number of these times of 10 ms or more; none: older records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_service_times: Option<u64>,
    /// Their sum; none: older records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_service_sum_ns: Option<u64>,
    /// The last of these times, if the phase ended in it, so that it may have lasted longer; none: the phase did not end in one, or
    /// older records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_service_at_end_ns: Option<u64>,
    /// The longest time in which one of the threads had no acknowledgement; none: shorter than 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_waited_ns: Option<u64>,
    /// Whether the phase ended while a thread had none, so that it may have had none for longer; none: older records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_waited_at_end: Option<bool>,
    /// The median rate before the fault, in steps of 100 ms; ops per second; none: less than a second was before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_before: Option<f64>,
    /// The time from the fault to the begin of the first second with 90 % of that rate, after the longest time without service;
    /// none: not before the next fault or the end of the phase, or the rate before is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_ns: Option<u64>,
    /// How much longer each sync call of a slow disk took; none: another fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_delay_ns: Option<u64>,
    /// The sync calls that were delayed so; none: another fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_syncs: Option<u64>,
}

/// Errors of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpErrors {
    /// The kind of op.
    pub op: String,
    /// The driver's text.
    pub text: String,
    /// How many ops failed so.
    pub count: u64,
    /// When the first one ended, nanoseconds from the moment at which counting began; 0: in the warm-up.
    pub first_ns: u64,
    /// When the last one ended.
    pub last_ns: u64,
}
