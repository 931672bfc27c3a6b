//! The order of trials in a block.

/// Each arm once in a random order; if `mirrored`, followed by the same backwards. Seed and number of the block determine it.
pub(super) fn order(arms: usize, mirrored: bool, seed: u64, block: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..arms).collect();
    let mut state = mix(seed).wrapping_add(block);
    for last in (1..arms).rev() {
        state = mix(state);
        // The bias of a remainder of 64 bits is below one in 10^17.
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    if mirrored {
        order.extend_from_within(..);
        order[arms..].reverse();
    }
    order
}

/// The step and the finaliser of splitmix64.
fn mix(state: u64) -> u64 {
    let mut bits = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
