//! Acknowledgement reaction: tells people that their message was accepted (spec `channels.md` §3.8,
//! `messages.md` §2.4). The reaction is put on a message once the message is on disk, beside
//! everything else, so that nobody waits for it. If it is to be taken back, this happens when its
//! message is over, whether the message was answered, stopped, silent or failed.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_channels::access::rules::Addressed;
use openclaw_channels::{Account, ActionError, Address};
use openclaw_config::Config;
use openclaw_journal::origin::MessageOrigin;
use openclaw_protocol::AgentId;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Emoji used if nothing else is configured, and if the platform lacks the configured emoji.
const EYES: &str = "👀";
/// The action of channels that puts it there.
const ACTION: &str = "acknowledge";
/// Reactions under way.
const MOST: usize = 16;

/// Reactions that are to be taken back, by the address and id of their messages.
pub struct Acks {
    shown: Mutex<HashMap<(Address, String), oneshot::Sender<()>>>,
    permits: Arc<Semaphore>,
}

impl Default for Acks {
    fn default() -> Self {
        Self { shown: Mutex::default(), permits: Arc::new(Semaphore::new(MOST)) }
    }
}

/// Returns the emoji for a message; `None` for no reaction. `group` tells how a group's message
/// addresses the agent.
pub fn emoji(config: &Config, agent: &AgentId, group: Option<&Addressed>) -> Option<String> {
    let messages = &config.messages;
    if !is_in_scope(messages.ack_reaction_scope.as_deref(), group) {
        return None;
    }
    let own = || config.agent(agent).identity.emoji;
    let emoji = messages.ack_reaction.clone().or_else(own).unwrap_or_else(|| EYES.to_owned());
    Some(emoji.trim().to_owned()).filter(|emoji| !emoji.is_empty())
}

fn is_in_scope(scope: Option<&str>, group: Option<&Addressed>) -> bool {
    match (scope.map(str::trim).unwrap_or_default(), group) {
        ("off" | "none", _) => false,
        ("all", _) => true,
        ("direct", group) => group.is_none(),
        ("group-all", group) => group.is_some(),
        // `group-mentions`.
        (_, Some(group)) => group.requires_mention && group.can_detect && group.is_addressed(),
        (_, None) => false,
    }
}

/// A reaction.
struct Reaction {
    account: Arc<dyn Account>,
    to: String,
    message: String,
}

impl Reaction {
    fn new(account: Arc<dyn Account>, origin: &MessageOrigin) -> Self {
        Self { account, to: origin.address.target.clone(), message: origin.message_id.clone() }
    }

    async fn show(&self, emoji: &str) -> Result<(), ActionError> {
        let params = json!({"to": self.to, "messageId": self.message, "emoji": emoji});
        self.account.act(ACTION, &params).await.map(drop)
    }

    /// Shows the reaction; uses eyes if the platform does not have the emoji.
    async fn show_any(&self, emoji: &str) -> Result<(), ActionError> {
        match self.show(emoji).await {
            Err(ActionError::Invalid(why)) if emoji != EYES => {
                tracing::info!(emoji, why, "messages are acknowledged with eyes instead");
                self.show(EYES).await
            }
            done => done,
        }
    }

    async fn take_back(&self) {
        let params = json!({"to": self.to, "messageId": self.message, "emoji": "", "remove": true});
        if let Err(error) = self.account.act(ACTION, &params).await {
            tracing::info!(to = self.to, message = self.message, %error, "an acknowledgement was not taken back");
        }
    }
}

impl Acks {
    /// Shows in a task of `tasks` that a message was accepted. `account` is the bot that heard it;
    /// `is_taken_back` says whether [`Self::take_back`] follows.
    pub fn show(
        self: &Arc<Self>,
        account: Arc<dyn Account>,
        origin: &MessageOrigin,
        is_taken_back: bool,
        stopping: CancellationToken,
        tasks: &TaskTracker,
    ) {
        let Some(emoji) = origin.ack.clone() else { return };
        let reaction = Reaction::new(account, origin);
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            tracing::info!(to = reaction.to, "a message is not acknowledged: too many are");
            return;
        };
        let key = key(origin);
        let over = is_taken_back.then(|| {
            let (over, is_over) = oneshot::channel();
            self.shown.lock().insert(key.clone(), over);
            is_over
        });
        let acks = Arc::clone(self);
        tasks.spawn(async move {
            let shown = tokio::select! { biased;
                () = stopping.cancelled() => return,
                shown = reaction.show_any(&emoji) => shown,
            };
            drop(permit);
            if let Err(error) = shown {
                tracing::info!(to = reaction.to, %error, "a message was not acknowledged");
                acks.shown.lock().remove(&key);
                return;
            }
            let Some(over) = over else { return };
            tokio::select! { biased;
                // The next start takes the message up, and its reaction back.
                () = stopping.cancelled() => {}
                Ok(()) = over => reaction.take_back().await,
                else => {}
            }
        });
    }

    /// Takes the reaction back after its message is over. `account` finds the bot that heard it;
    /// `was_recovered` tells that an earlier process may have put the reaction there.
    pub fn take_back(
        &self,
        account: impl FnOnce() -> Option<Arc<dyn Account>>,
        origin: &MessageOrigin,
        was_recovered: bool,
        tasks: &TaskTracker,
    ) {
        let shown = self.shown.lock().remove(&key(origin));
        match shown {
            Some(over) => drop(over.send(())),
            None if was_recovered => {
                if let Some(account) = account() {
                    let reaction = Reaction::new(account, origin);
                    tasks.spawn(async move { reaction.take_back().await });
                }
            }
            // The reaction could not be put there.
            None => {}
        }
    }
}

fn key(origin: &MessageOrigin) -> (Address, String) {
    (origin.address.clone(), origin.message_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_says_which_messages_are_acknowledged() {
        let mentioned = Addressed {
            requires_mention: true,
            can_detect: true,
            was_mentioned: true,
            ..Addressed::default()
        };
        let unmentioned = Addressed { was_mentioned: false, ..mentioned };
        let open = Addressed { requires_mention: false, ..mentioned };
        let blind = Addressed { can_detect: false, ..mentioned };
        let rows = [
            (None, None, false),
            (None, Some(mentioned), true),
            (Some("group-mentions"), Some(mentioned), true),
            (Some("group-mentions"), Some(unmentioned), false),
            (Some("group-mentions"), Some(open), false),
            (Some("group-mentions"), Some(blind), false),
            (Some("group-all"), Some(open), true),
            (Some("group-all"), None, false),
            (Some("direct"), None, true),
            (Some("direct"), Some(mentioned), false),
            (Some("all"), None, true),
            (Some("all"), Some(unmentioned), true),
            (Some("off"), Some(mentioned), false),
            (Some("none"), None, false),
        ];
        for (scope, group, expect) in rows {
            assert_eq!(is_in_scope(scope, group.as_ref()), expect, "{scope:?} {group:?}");
        }
    }

    #[test]
    fn the_emoji_is_configured_or_the_agents_or_eyes() {
        let of = |document: serde_json::Value| {
            let config: openclaw_config::Config = serde_json::from_value(document).unwrap();
            emoji(&config, &AgentId::default(), None)
        };
        let with = |more: serde_json::Value| {
            let mut messages = json!({"ackReactionScope": "all"});
            messages.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"messages": messages, "agents": {"list": [{"id": "main", "identity": {"emoji": "🦊"}}]}})
        };
        assert_eq!(of(with(json!({"ackReaction": "👍"}))).as_deref(), Some("👍"));
        assert_eq!(of(with(json!({"ackReaction": ""}))), None);
        assert_eq!(of(with(json!({}))).as_deref(), Some("🦊"));
        assert_eq!(of(json!({"messages": {"ackReactionScope": "all"}})).as_deref(), Some(EYES));
    }
}
