//! Regular work: `tick`, presence, health, sweeping.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::Payload;
use openclaw_protocol::event::Tick;
use tokio::time::{MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::events::GatewayEvent;
use crate::fan_out::EventHub;
use crate::health::{HealthMonitor, MAX_AGE};
use crate::presence::Presence;

/// Interval between ticks: `policy.tickIntervalMs`. Clients give a connection up after two missing
/// ones.
pub(crate) const TICK: Duration = Duration::from_secs(30);

/// Minimum interval between presence events: when hundreds of clients connect at once, a list for
/// each of them to each of them would keep the gateway busy.
const PRESENCE_PAUSE: Duration = Duration::from_millis(500);

/// Tells who is here when that has changed, until the gateway stops.
pub(crate) async fn tell_presence(
    presence: Arc<Presence>,
    events: Arc<EventHub>,
    stopping: CancellationToken,
) {
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = presence.changed() => presence.broadcast(&events),
        }
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            () = sleep(PRESENCE_PAUSE) => {}
        }
    }
}

/// Ticks until the gateway stops.
pub(crate) async fn run(
    presence: Arc<Presence>,
    events: Arc<EventHub>,
    health: Arc<HealthMonitor>,
    stopping: CancellationToken,
) {
    let start = tokio::time::Instant::now() + TICK;
    let mut ticks = interval_at(start, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut renewals = interval_at(tokio::time::Instant::now(), MAX_AGE);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! { biased;
            () = stopping.cancelled() => return,
            _ = ticks.tick() => tick(&presence, &events),
            _ = renewals.tick() => drop(health.look().await),
        }
    }
}

fn tick(presence: &Presence, events: &EventHub) {
    let now = now_ms();
    presence.refresh_connected();
    events.sweep(now);
    if let Ok(payload) = Payload::of(&Tick { ts: now }) {
        events.publish(GatewayEvent::named("tick", payload));
    }
}
