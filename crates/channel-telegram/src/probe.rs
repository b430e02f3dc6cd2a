//! Probe of the token and of the bot's identity.

use std::time::{Duration, Instant};

use openclaw_channels::Probe;
use serde_json::{Map, Value, json};

use crate::audit::{self, Audit};
use crate::bot::Bot;
use crate::entities::Me;
use crate::failure::BotApiError;
use crate::wire::Wire as _;

/// Asks Telegram.
pub(super) async fn probe(bot: &Bot, timeout: Duration) -> Probe {
    let start = Instant::now();
    let nothing = json!({});
    let me = bot.client.call_within("getMe", &nothing, timeout).await.and_then(|user| Me::read(&user));
    let elapsed = || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let me = match me {
        Ok(me) => me,
        Err(error) => {
            let status = match &error {
                BotApiError::Refused { status, .. } => Some(*status),
                BotApiError::Unreachable(_)
                | BotApiError::Unsent(_)
                | BotApiError::Gone(_)
                | BotApiError::Lost(_)
                | BotApiError::Unread { .. } => None,
            };
            let error = Some(error.to_string());
            return Probe { ok: false, status, error, elapsed_ms: elapsed(), ..Probe::default() };
        }
    };
    let left = timeout.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
    let webhook = bot.client.call_within("getWebhookInfo", &nothing, left).await.ok();
    let mut details = Map::new();
    details.insert("bot".to_owned(), me.shown());
    if let Some(webhook) = webhook {
        details.insert("webhook".to_owned(), hook(&webhook));
    }
    let elapsed_ms = elapsed();
    let left = timeout.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
    let audit = audit::audit(bot, me.id, left).await;
    let reads_all = me.rights.reads_all_of_groups == Some(true);
    let issues = audit.as_ref().map(|audit| audit.issues(reads_all)).unwrap_or_default();
    let audit = audit.as_ref().map(Audit::shown);
    Probe { ok: true, status: Some(200), error: None, elapsed_ms, details, audit, issues }
}

fn hook(webhook: &Value) -> Value {
    json!({"url": webhook.text("url"), "hasCustomCert": webhook.at("has_custom_certificate").as_bool()})
}
