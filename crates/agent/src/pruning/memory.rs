//! State of pruning that a session keeps between the calls of a run and between runs: the pruned
//! results and the time of the last request.

use std::collections::HashMap;
use std::sync::Arc;

use openclaw_protocol::message::{Message, StopReason};

use super::settings::{PruneSettings, is_cached};
use super::trim::trim;

/// Shortened results that are sent in place of the pruned ones. They stay in use until the provider
/// has forgotten the prompt once more, or until a compaction has put a summary in the place of what
/// was before.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Unix milliseconds of the last call that was answered; `None` where the history has to tell.
    last_call: Option<i64>,
    /// Replacements by the time of the result, with its call.
    sent: HashMap<i64, Vec<Replaced>>,
}

/// The id of a call, and what is sent as its result.
type Replaced = (Box<str>, Arc<Message>);

/// Context window of the model and the current time, by which results are pruned.
#[derive(Debug, Clone, Copy)]
pub struct PruningWindow {
    /// The model's context window in tokens.
    pub tokens: u64,
    /// Unix milliseconds.
    pub now: i64,
}

impl Pruned {
    /// The messages as they are sent now. No message is copied while nothing is pruned.
    pub fn view(
        &mut self,
        messages: &Arc<Vec<Arc<Message>>>,
        settings: &PruneSettings,
        window: PruningWindow,
    ) -> Arc<Vec<Arc<Message>>> {
        if self.is_forgotten(messages, settings, window.now) {
            let sent = trim(messages, settings, window.tokens);
            // Replacements sent now are kept from now on.
            if !sent.is_empty() {
                self.last_call = Some(window.now);
            }
            self.sent.clear();
            sent.into_iter().for_each(|(_, message)| self.remember(message));
        }
        if self.sent.is_empty() {
            return Arc::clone(messages);
        }
        let shown = |message: &Arc<Message>| Arc::clone(self.in_place_of(message).unwrap_or(message));
        Arc::new(messages.iter().map(shown).collect())
    }

    /// A call was answered: the provider has the prompt anew.
    pub fn answered(&mut self, now: i64) {
        self.last_call = Some(now);
    }

    /// The history is another one.
    pub fn forget(&mut self) {
        self.sent.clear();
    }

    /// About how much memory it takes, in bytes.
    pub fn memory(&self) -> usize {
        /// Memory estimate of a trimmed result with its map entry, in bytes.
        const EACH: usize = 4 * 1024;
        self.sent.values().map(Vec::len).sum::<usize>() * EACH
    }

    fn is_forgotten(&self, messages: &[Arc<Message>], settings: &PruneSettings, now: i64) -> bool {
        let last_call = self.last_call.or_else(|| last_answer(messages));
        let ttl = i64::try_from(settings.ttl.as_millis()).unwrap_or(i64::MAX);
        last_call.is_some_and(|last| now.saturating_sub(last) >= ttl)
    }

    fn remember(&mut self, message: Arc<Message>) {
        if let Message::ToolResult(result) = &*message {
            let call = result.tool_call_id.as_str().into();
            self.sent.entry(result.timestamp).or_default().push((call, message));
        }
    }

    fn in_place_of(&self, message: &Message) -> Option<&Arc<Message>> {
        let Message::ToolResult(result) = message else { return None };
        let of_then = self.sent.get(&result.timestamp)?;
        of_then.iter().find(|(call, _)| **call == *result.tool_call_id).map(|(_, message)| message)
    }
}

/// Returns the time of the provider's last answer, taken from the history.
fn last_answer(messages: &[Arc<Message>]) -> Option<i64> {
    messages.iter().rev().find_map(|message| match &**message {
        Message::Assistant(answer)
            if is_cached(&answer.provider, &answer.model)
                && !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) =>
        {
            Some(answer.timestamp)
        }
        Message::Assistant(_) | Message::User(_) | Message::ToolResult(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, Block, ToolResultMessage, UserMessage};
    use serde_json::json;

    use super::*;

    const TTL: i64 = 300_000;

    fn settings() -> PruneSettings {
        let config = json!({"mode": "cache-ttl", "hardClear": {"enabled": false}});
        PruneSettings::of(&serde_json::from_value(config).unwrap()).unwrap()
    }

    fn answer(provider: &str, timestamp: i64) -> Arc<Message> {
        let content = vec![Block::text("a")];
        let (provider, model) = (provider.to_owned(), "claude".to_owned());
        Arc::new(Message::Assistant(AssistantMessage {
            content,
            provider,
            model,
            timestamp,
            ..AssistantMessage::default()
        }))
    }

    fn result(at: i64, chars: usize) -> Arc<Message> {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: "c".to_owned(),
            content: vec![Block::text("r".repeat(chars))],
            timestamp: at,
            ..ToolResultMessage::default()
        }))
    }

    fn history(provider: &str) -> Arc<Vec<Arc<Message>>> {
        let user = Arc::new(Message::User(UserMessage::text("u", 0)));
        let answers = (2..=4).map(|at| answer(provider, at));
        Arc::new([user, result(1, 70_000)].into_iter().chain(answers).collect())
    }

    fn sent_chars(pruned: &mut Pruned, messages: &Arc<Vec<Arc<Message>>>, now: i64) -> Vec<usize> {
        let view = pruned.view(messages, &settings(), PruningWindow { tokens: 50_000, now });
        let chars = |message: &Arc<Message>| match &**message {
            Message::ToolResult(result) => match &result.content[0] {
                Block::Text(text) => Some(text.text.len()),
                _ => None,
            },
            _ => None,
        };
        view.iter().filter_map(chars).collect()
    }

    #[test]
    fn it_opens_when_the_last_call_is_longer_ago_than_the_cache_lives() {
        let rows =
            [("anthropic", 4 + TTL - 1, 70_000), ("anthropic", 4 + TTL, 3_087), ("openai", 4 + TTL, 70_000)];
        for (provider, now, expect) in rows {
            let mut pruned = Pruned::default();
            assert_eq!(sent_chars(&mut pruned, &history(provider), now), [expect], "{provider} {now}");
        }
        // A run that is longer than the cache lives has kept it warm.
        let mut pruned = Pruned::default();
        pruned.answered(TTL);
        assert_eq!(sent_chars(&mut pruned, &history("anthropic"), 4 + TTL), [70_000]);
    }

    #[test]
    fn what_was_pruned_stays_pruned_and_the_very_same() {
        let mut pruned = Pruned::default();
        let mut messages = history("anthropic");
        let now = 4 + TTL;
        let first = pruned.view(&messages, &settings(), PruningWindow { tokens: 50_000, now });
        pruned.answered(now + 1);
        // Later results are not pruned before the gate opens again, however long they are.
        let more = [
            result(now, 60_000),
            answer("anthropic", now),
            answer("anthropic", now),
            answer("anthropic", now),
        ];
        Arc::make_mut(&mut messages).extend(more);
        let second = pruned.view(&messages, &settings(), PruningWindow { tokens: 50_000, now: now + 1_000 });
        assert!(Arc::ptr_eq(&first[1], &second[1]));
        assert_eq!(sent_chars(&mut pruned, &messages, now + 1_000), [3_087, 60_000]);
        assert_eq!(sent_chars(&mut pruned, &messages, now + TTL), [3_087, 60_000]);
        assert_eq!(sent_chars(&mut pruned, &messages, now + 1 + TTL), [3_087, 3_087]);
        assert!(pruned.memory() > 0);
        pruned.forget();
        assert_eq!(sent_chars(&mut pruned, &messages, now + 2 + TTL), [70_000, 60_000]);
    }

    #[test]
    fn nothing_is_copied_while_nothing_is_pruned() {
        let mut pruned = Pruned::default();
        let messages = history("anthropic");
        let view = pruned.view(&messages, &settings(), PruningWindow { tokens: 50_000, now: 10 });
        assert!(Arc::ptr_eq(&view, &messages));
        let small = PruningWindow { tokens: 5_000_000, now: 10 + TTL };
        assert!(Arc::ptr_eq(&pruned.view(&messages, &settings(), small), &messages), "nothing to prune");
    }
}
