//! Dedupe of inbound events: the key by which the journal recognises an event that is delivered twice.

use super::Inbound;
use crate::Address;

impl Inbound {
    /// Returns the dedupe key of the event: an event that is delivered twice is taken once.
    pub fn dedupe_key(&self) -> String {
        match &self.unique_id {
            // No account has an empty name.
            Some(id) => self.key_of(id),
            None => self.key_of_account(),
        }
    }

    /// Returns the dedupe keys that older versions used: before there were unique ids, and before the unique id of a
    /// message was that of its conversation. Without another unique id they are the same.
    pub fn former_dedupe_keys(&self) -> [String; 2] {
        let by_account = self.key_of_account();
        let by_id = self.former_unique_id.as_ref().map(|id| self.key_of(id));
        [by_id.unwrap_or_else(|| by_account.clone()), by_account]
    }

    fn key_of(&self, unique_id: &str) -> String {
        format!("{}\n\n{unique_id}", self.address.channel)
    }

    fn key_of_account(&self) -> String {
        let Address { channel, account, .. } = &self.address;
        format!("{channel}\n{account}\n{}", self.native_id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Messages of the version before have the runs that they had then.
    #[test]
    fn what_was_stored_before_is_known_as_before() {
        let stored = json!({
            "nativeId": "update:7",
            "address": {"channel": "telegram", "account": "work", "target": "5", "thread": null},
            "conversation": {"kind": "direct"},
            "sender": {"id": "5"},
            "event": {"kind": "message", "messageId": "11", "text": "hi"},
            "at": 5,
        });
        let mut event: Inbound = serde_json::from_value(stored).unwrap();
        assert_eq!(event.dedupe_key(), "telegram\nwork\nupdate:7");
        event.unique_id = Some("7000:update:7:5:11:0".to_owned());
        assert_eq!(event.dedupe_key(), "telegram\n\n7000:update:7:5:11:0");
        let by_account = "telegram\nwork\nupdate:7";
        assert_eq!(event.former_dedupe_keys(), [by_account; 2]);
        event.unique_id = Some("7000:message:5:11".to_owned());
        event.former_unique_id = Some("7000:update:7:5:11:0".to_owned());
        assert_eq!(event.former_dedupe_keys(), ["telegram\n\n7000:update:7:5:11:0", by_account]);
    }
}
