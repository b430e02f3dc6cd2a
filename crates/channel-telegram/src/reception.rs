//! Parts that both ways of receiving share: the inbox, the account's status, and answers to pressed
//! buttons.

use std::time::Duration;

use openclaw_channels::{AccountIo, Inbound};
use openclaw_config::clock::now_ms;
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::failure::{ApiRefusal, BotApiError};
use crate::polling::{AfterFailure, Polling};
use crate::update::Callback;

/// Answers to pressed buttons under way.
const MOST_ANSWERS: usize = 16;
const ANSWER: Duration = Duration::from_secs(10);

/// Gives events to the inbox.
pub(super) async fn give(io: &AccountIo, events: Vec<Inbound>) -> Result<(), String> {
    if events.is_empty() {
        return Ok(());
    }
    let taken = io.inbox.take(events).await;
    io.status.update(|status| match &taken {
        Ok(()) => status.last_inbound_at = Some(now_ms()),
        Err(error) => status.last_error = Some(error.0.clone()),
    });
    taken.map_err(|error| error.0)
}

/// Notes in the status that Telegram has answered.
pub(super) fn works(io: &AccountIo, client: &Client) {
    let now = now_ms();
    io.status.update(|status| {
        if !status.connected {
            status.last_connected_at = Some(now);
        }
        status.connected = true;
        status.last_error = None;
        status.reconnect_attempts = 0;
        status.last_event_at = Some(now);
        status.clock_ahead_ms = client.clock().ahead();
    });
}

/// Notes in the status that Telegram has not answered, and returns the next step.
pub(super) fn failed(polling: &mut Polling, error: &BotApiError, io: &AccountIo) -> AfterFailure {
    let next = polling.failed(error, rand::random());
    let why = match (&next, error.refusal()) {
        (AfterFailure::Pause(pause), Some(ApiRefusal::Slower(_))) => {
            format!("{}; it is asked again after {} s", error.told(), pause.as_secs())
        }
        (AfterFailure::Pause(_) | AfterFailure::PassOver(_) | AfterFailure::End(_), _) => error.told(),
    };
    tracing::warn!(error = why, failures = polling.failures(), "Telegram can't be received from");
    io.status.update(|status| {
        status.connected = false;
        status.last_error = Some(why);
        status.reconnect_attempts = polling.failures();
    });
    next
}

/// Answers pressed buttons, so that they stop turning. They end with their owner.
pub(super) struct Answers {
    client: Client,
    tasks: JoinSet<()>,
}

impl Answers {
    pub(super) fn new(client: Client) -> Self {
        Self { client, tasks: JoinSet::new() }
    }

    pub(super) fn add(&mut self, Callback { id, .. }: Callback) {
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= MOST_ANSWERS {
            // The button stops its animation by itself after a while.
            return;
        }
        let client = self.client.clone();
        self.tasks.spawn(async move {
            let params = json!({"callback_query_id": id});
            if let Err(error) = client.call_within("answerCallbackQuery", &params, ANSWER).await {
                tracing::debug!(%error, "a pressed button was not answered");
            }
        });
    }
}
