//! Regular work: `tick`, presence, health, sweeping.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::Payload;
use openclaw_protocol::event::Tick;
use tokio::time::{MissedTickBehavior, interval_at, sleep};

use crate::clock::now_ms;
use crate::events::Event;
use crate::health::MAX_AGE;
use crate::state::GatewayState;

/// Interval between ticks: `policy.tickIntervalMs`. Clients give a connection up after two missing
/// ones.
pub(crate) const TICK: Duration = Duration::from_secs(30);

/// Minimum interval between presence events: when hundreds of clients connect at once, a list for
/// each of them to each of them would keep the gateway busy.
const PRESENCE_PAUSE: Duration = Duration::from_millis(500);

/// Tells who is here when that has changed, until the gateway stops.
pub(crate) async fn tell_presence(state: Arc<GatewayState>) {
    loop {
        tokio::select! { biased;
            () = state.stopping.cancelled() => return,
            () = state.presence_news.notified() => state.broadcast_presence(),
        }
        tokio::select! { biased;
            () = state.stopping.cancelled() => return,
            () = sleep(PRESENCE_PAUSE) => {}
        }
    }
}

/// Ticks until the gateway stops.
pub(crate) async fn run(state: Arc<GatewayState>) {
    let start = tokio::time::Instant::now() + TICK;
    let mut ticks = interval_at(start, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut health = interval_at(tokio::time::Instant::now(), MAX_AGE);
    health.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! { biased;
            () = state.stopping.cancelled() => return,
            _ = ticks.tick() => tick(&state),
            _ = health.tick() => drop(state.look_at_health().await),
        }
    }
}

fn tick(state: &GatewayState) {
    let now = now_ms();
    state.presence.refresh_connected();
    state.events.sweep(now);
    if let Ok(payload) = Payload::of(&Tick { ts: now }) {
        state.events.publish(Event::named("tick", payload));
    }
}
