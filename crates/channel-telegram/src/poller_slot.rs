//! Limits each token to one receiver in a process: two would take each other's updates away.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::credentials::BotToken;

type PollerLock = Arc<tokio::sync::Mutex<()>>;

static SLOTS: LazyLock<Mutex<HashMap<[u8; 32], PollerLock>>> = LazyLock::new(Mutex::default);

/// The right to receive for a token. It ends when dropped.
#[derive(Debug)]
pub(super) struct PollerSlot {
    _guard: OwnedMutexGuard<()>,
}

/// Takes the right if nobody has it.
pub(super) fn try_enter(token: &BotToken) -> Option<PollerSlot> {
    slot(token).try_lock_owned().ok().map(|guard| PollerSlot { _guard: guard })
}

/// Waits for the right.
pub(super) async fn enter(token: &BotToken) -> PollerSlot {
    PollerSlot { _guard: slot(token).lock_owned().await }
}

fn slot(token: &BotToken) -> PollerLock {
    let mut slots = SLOTS.lock();
    // Slots that nobody holds or waits for are referred to only by this map.
    slots.retain(|_, slot| Arc::strong_count(slot) > 1);
    Arc::clone(slots.entry(token.digest()).or_default())
}
