//! Removal of sandboxes that nobody uses any more, also while nobody speaks with an agent.

use std::sync::Arc;
use std::time::Duration;

use crate::state::GatewayState;

/// Interval between checks.
const PERIOD: Duration = Duration::from_secs(10 * 60);

/// Works until the gateway stops.
pub(crate) async fn run(state: Arc<GatewayState>) {
    loop {
        tokio::select! { biased;
            () = state.stopping.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
        let config = state.config();
        tokio::select! { biased;
            () = state.stopping.cancelled() => return,
            () = state.sandboxes.prune(&config) => {}
        }
    }
}
