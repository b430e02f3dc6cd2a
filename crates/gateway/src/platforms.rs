//! Chat platforms of this build: the one place where their crates are named. The gateway and the
//! command line above it read it; crates below get [`Platforms`] and know platforms by their traits
//! alone, so that they are built and tested without them.

use std::sync::Arc;

use openclaw_channel_telegram::Telegram;
use openclaw_channels::{Channel, Platforms};

/// One row a platform, in OpenClaw's order.
const PLATFORMS: &[fn() -> Arc<dyn Channel>] = &[|| Arc::new(Telegram)];

/// Returns the chat platforms of this build, without accounts at work.
pub fn platforms() -> Platforms {
    Platforms::new(PLATFORMS.iter().map(|platform| platform()).collect())
}
