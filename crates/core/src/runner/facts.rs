//! Converts levels and the effective settings of an engine for records.

use crate::engine::abi::*;
use crate::engine::{Effective, Engine, capability_names, defects_of};
use crate::results::{Class, EngineFacts};
use crate::workload::{Durability, Phase, Workload};

/// The number of a level in driver.h.
pub fn level_number(level: Durability) -> u32 {
    match level {
        Durability::None => KV_NONE,
        Durability::Process => KV_PROCESS,
        Durability::Power => KV_POWER,
        Durability::Default => KV_DEFAULT,
    }
}

/// The level with this number, for records.
pub fn level_of(number: u32) -> Durability {
    match number {
        KV_POWER => Durability::Power,
        KV_PROCESS => Durability::Process,
        _ => Durability::None,
    }
}

/// The level to request of an engine for a phase: that of the phase or workload, or a weaker one if that is allowed.
pub fn target_level(engine: &Engine, workload: &Workload, phase: &Phase) -> Durability {
    let requested = phase.durability.unwrap_or(workload.durability);
    if !workload.or_weaker || phase.durability.is_some() || requested == Durability::Default {
        return requested;
    }
    let strongest = (0..=KV_POWER).rev().find(|level| engine.levels() & (1 << level) != 0);
    requested.min(level_of(strongest.unwrap_or(KV_NONE)))
}

/// The engine with its effective settings.
pub(super) fn facts_of(engine: &Engine, effective: &Effective) -> EngineFacts {
    let capabilities: Vec<String> =
        capability_names(effective.capabilities).into_iter().map(String::from).collect();
    EngineFacts {
        name: engine.name().into(),
        about: engine.about(),
        version: effective.version.clone(),
        language: engine.language(),
        family: engine.family(),
        origin: engine.origin().to_string(),
        class: Some(Class::reported(&capabilities, &effective.settings)),
        capabilities,
        cache_bytes: effective.cache_bytes,
        compression: effective.compression.clone(),
        options: effective.settings.clone(),
        avoided_defects: defects_of(engine.name())
            .iter()
            .filter_map(|defect| defect.avoided_in(&effective.version))
            .map(String::from)
            .collect(),
    }
}
