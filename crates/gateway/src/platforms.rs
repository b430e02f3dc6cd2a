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

#[cfg(test)]
mod tests {
    use openclaw_config::registry;

    #[test]
    fn the_platforms_of_this_build_are_those_that_their_rows_say() {
        let built: Vec<&str> = super::platforms().channels().iter().map(|one| one.info().id).collect();
        let rows: Vec<&str> = registry::built_channels().map(|row| row.id).collect();
        assert_eq!(built, rows);
    }
}
