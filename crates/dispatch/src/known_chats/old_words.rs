//! Direct chats with words that were too old to be answered.

use std::collections::HashMap;

use openclaw_channels::Address;
use parking_lot::Mutex;

/// Direct chats of which is remembered whether something old waits in them.
const MOST_CHATS: usize = 10_000;

/// Direct chats with messages that were too old to be answered, which hardly any chat has. The
/// journal is asked once for each chat.
#[derive(Debug, Default)]
pub(crate) struct OldWords(Mutex<HashMap<Address, bool>>);

impl OldWords {
    /// True if the journal is to be asked.
    pub(crate) fn may_wait(&self, chat: &Address) -> bool {
        self.0.lock().get(chat).copied().unwrap_or(true)
    }

    /// Remembers that a message was noted in this chat. It is stored soon: from now on the journal
    /// is asked each time.
    pub(crate) fn noted(&self, chat: &Address) {
        self.put(chat, true);
    }

    /// Notes that the journal has nothing for this chat.
    pub(crate) fn none(&self, chat: &Address) {
        if !self.0.lock().contains_key(chat) {
            self.put(chat, false);
        }
    }

    fn put(&self, chat: &Address, waits: bool) {
        let mut chats = self.0.lock();
        // A chat that is forgotten is asked for again.
        if chats.len() >= MOST_CHATS {
            chats.clear();
        }
        chats.insert(chat.clone(), waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_asked_until_it_has_nothing_and_again_once_something_is_noted() {
        let at = |target: &str| Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: None,
        };
        let (chat, other) = (at("1"), at("2"));
        let words = OldWords::default();
        assert!(words.may_wait(&chat));
        words.none(&chat);
        assert!(!words.may_wait(&chat) && words.may_wait(&other));
        words.noted(&chat);
        words.none(&chat);
        assert!(words.may_wait(&chat), "it may not have been stored yet");
    }
}
