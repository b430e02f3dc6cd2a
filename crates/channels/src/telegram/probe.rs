//! Probe of the token and of the bot's identity.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::account::Bot;
use super::audit::{self, Audit};
use super::failure::ApiError;
use super::wire::Wire as _;
use crate::Probe;

/// Asks Telegram.
pub(super) async fn probe(bot: &Bot, timeout: Duration) -> Probe {
    let start = Instant::now();
    let nothing = json!({});
    let user = bot.client.call_within("getMe", &nothing, timeout).await;
    let elapsed = || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    let user = match user {
        Ok(user) => user,
        Err(error) => {
            let status = match &error {
                ApiError::Refused { status, .. } => Some(*status),
                ApiError::Unreachable(_)
                | ApiError::Unsent(_)
                | ApiError::Gone(_)
                | ApiError::Lost(_)
                | ApiError::Unread { .. } => None,
            };
            let error = Some(error.to_string());
            return Probe { ok: false, status, error, elapsed_ms: elapsed(), ..Probe::default() };
        }
    };
    let left = timeout.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
    let webhook = bot.client.call_within("getWebhookInfo", &nothing, left).await.ok();
    let mut details = Map::new();
    details.insert("bot".to_owned(), who(&user));
    if let Some(webhook) = webhook {
        details.insert("webhook".to_owned(), hook(&webhook));
    }
    let elapsed_ms = elapsed();
    let left = timeout.saturating_sub(start.elapsed()).max(Duration::from_millis(1));
    let audit = audit::audit(bot, user.int("id").unwrap_or_default(), left).await;
    let issues = audit
        .as_ref()
        .map(|audit| audit.issues(user.flag("can_read_all_group_messages")))
        .unwrap_or_default();
    let audit = audit.as_ref().map(Audit::shown);
    Probe { ok: true, status: Some(200), error: None, elapsed_ms, details, audit, issues }
}

fn who(user: &Value) -> Value {
    json!({
        "id": user.int("id"),
        "username": user.text("username"),
        "canJoinGroups": user.at("can_join_groups").as_bool(),
        "canReadAllGroupMessages": user.at("can_read_all_group_messages").as_bool(),
        "supportsInlineQueries": user.at("supports_inline_queries").as_bool(),
    })
}

fn hook(webhook: &Value) -> Value {
    json!({"url": webhook.text("url"), "hasCustomCert": webhook.at("has_custom_certificate").as_bool()})
}
