//! The check of engines that declare `KV_EVICTS`: rows may be evicted, but not all of them, and the remaining ones
//! are right.

use super::act::Act;
use super::failure::Failure;
use super::subject::Context;
use super::{Found, skip};
use kvdyno_core::engine::abi::*;

/// Rows that fit into every budget.
const FEW: usize = 64;
/// Bytes of a value, and a number of such rows that is twice the budget of a verification.
const VALUE_BYTES: usize = 4 << 10;
const MANY: usize = 8192;

/// Some of a few rows are kept; of more rows than fit, every answer is the last value written.
pub(super) fn keeps_some_and_never_a_wrong_value(context: &Context<'_>) -> Found {
    if !context.has(KV_EVICTS) {
        return skip("not declared");
    }
    let mut subject = context.subject()?;
    let key = |number: usize| context.key(&format!("row-{number:06}"));
    let value = |number: usize, round: u8| {
        let mut value = vec![round; VALUE_BYTES];
        value[..8].copy_from_slice(&number.to_le_bytes());
        value
    };
    let puts = |range: std::ops::Range<usize>, round: u8| -> Vec<Act> {
        range.map(|number| Act::put(&key(number), &value(number, round))).collect()
    };
    let gets =
        |range: std::ops::Range<usize>| -> Vec<Act> { range.map(|number| Act::get(&key(number))).collect() };
    let mut kept = |acts: &[Act]| -> Result<usize, Failure> {
        let mut kept = 0;
        for acts in acts.chunks(FEW) {
            // The model checks each value.
            let answers = subject.run(acts)?;
            kept += acts
                .iter()
                .zip(&answers)
                .filter(|(act, answer)| act.kind == KV_GET && answer.status == KV_OK)
                .count();
        }
        Ok(kept)
    };
    kept(&puts(0..FEW, 1))?;
    if kept(&gets(0..FEW))? == 0 {
        return Err(format!(
            "driver.h, KV_EVICTS: none of {FEW} rows of {VALUE_BYTES} bytes was kept right after it was written"
        )
        .into());
    }
    kept(&puts(0..MANY, 2))?;
    let left = kept(&gets(0..MANY))?;
    context.note(format!("a cache: it kept {left} of {MANY} rows of {VALUE_BYTES} bytes"));
    Ok(subject.close()?)
}
