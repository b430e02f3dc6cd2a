//! A moment between an acknowledgement and the run, for the one client that needs it.
//!
//! The TUI of OpenClaw 2026.2.9 notes a run as pending after its `chat.send` is answered. If the end of the run comes in the same
//! read as the answer, it hears of the end first and waits for ever: that is what happens with every chat command.

use std::time::Duration;

use openclaw_protocol::params::connect::{ClientDescription, ClientId, ClientMode};
use tokio_util::task::TaskTracker;

/// Client id of the TUI.
const TUI: &str = "openclaw-tui";
/// Long enough for two reads, also while the TUI draws its first page; too short for a person to mind.
const PAUSE: Duration = Duration::from_millis(150);

/// Drops what holds a run back: at once, but for the TUI after a moment.
pub(crate) fn release<T: Send + 'static>(held: T, client: &ClientDescription, tasks: &TaskTracker) {
    if is_tui(client) {
        tasks.spawn(async move {
            tokio::time::sleep(PAUSE).await;
            drop(held);
        });
    }
}

fn is_tui(client: &ClientDescription) -> bool {
    client.id == ClientId::GatewayClient
        && client.mode == ClientMode::Ui
        && client.display_name.as_ref().is_some_and(|name| name.0 == TUI)
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::params::NonEmpty;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::connection::tests::client;

    fn named(id: ClientId, mode: ClientMode, name: &str) -> ClientDescription {
        ClientDescription { display_name: Some(NonEmpty(name.to_owned())), ..client(id, mode) }
    }

    #[tokio::test(start_paused = true)]
    async fn the_runs_of_the_tui_begin_a_moment_after_their_acknowledgement_and_others_at_once() {
        let rows = [
            (named(ClientId::GatewayClient, ClientMode::Ui, TUI), PAUSE),
            (named(ClientId::GatewayClient, ClientMode::Ui, "mine"), Duration::ZERO),
            (named(ClientId::GatewayClient, ClientMode::Backend, TUI), Duration::ZERO),
            (named(ClientId::Cli, ClientMode::Cli, TUI), Duration::ZERO),
            (client(ClientId::GatewayClient, ClientMode::Ui), Duration::ZERO),
        ];
        for (client, pause) in rows {
            let (tasks, gate, since) = (TaskTracker::new(), CancellationToken::new(), Instant::now());
            release(gate.clone().drop_guard(), &client, &tasks);
            gate.cancelled().await;
            assert_eq!(since.elapsed(), pause, "{client:?}");
        }
    }
}
