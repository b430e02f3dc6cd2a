//! Removal of sandboxes that nobody uses any more, also while nobody speaks with an agent.

use std::sync::Arc;
use std::time::Duration;

use openclaw_tools::sandbox::Sandboxes;
use tokio_util::sync::CancellationToken;

use crate::current_settings::CurrentSettings;

/// Interval between checks.
const PERIOD: Duration = Duration::from_secs(10 * 60);

/// Works until the gateway stops.
pub(crate) async fn run(sandboxes: Arc<Sandboxes>, settings: CurrentSettings, stopping: CancellationToken) {
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        let config = settings.config();
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = sandboxes.prune(&config) => {}
        }
    }
}
