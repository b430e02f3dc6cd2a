//! The one source of new ids.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

/// Ids are drawn by chance.
const CHANCE: u64 = 0;
/// The seed of the next id, where a test wants the same ids each time.
static NEXT_SEED: AtomicU64 = AtomicU64::new(CHANCE);

/// A version 4 UUID.
pub fn uuid() -> Uuid {
    uuid::Builder::from_random_bytes(draw().to_be_bytes()).into_uuid()
}

/// The version 4 UUID of these bytes.
pub fn uuid_from(bytes: [u8; 16]) -> Uuid {
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}

/// 32 random bits.
pub fn draw_u32() -> u32 {
    let [a, b, c, d, ..] = draw().to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A random number from 0 to 1.
pub fn draw_share() -> f64 {
    f64::from(draw_u32()) / f64::from(u32::MAX)
}

/// Eight hex digits, as transcript entries are named.
pub fn hex() -> String {
    format!("{:08x}", draw_u32())
}

/// Seeds the ids of the whole process: the same seed gives the same ids in the same order. For a
/// test that has the process for itself.
pub fn repeat_from(seed: u32) {
    NEXT_SEED.store((u64::from(seed) << 32) + 1, Ordering::Relaxed);
}

fn draw() -> u128 {
    match NEXT_SEED.load(Ordering::Relaxed) {
        CHANCE => rand::random(),
        _ => StdRng::seed_from_u64(NEXT_SEED.fetch_add(1, Ordering::Relaxed)).random(),
    }
}
