//! Dedupe of inbound events: the key by which the journal recognises an event that is delivered twice.

use super::Inbound;
use crate::Address;

impl Inbound {
    /// Returns the dedupe key of the event: an event that is delivered twice is taken once.
    pub fn dedupe_key(&self) -> String {
        match &self.unique_id {
            // No account has an empty name.
            Some(id) => format!("{}\n\n{id}", self.address.channel),
            None => self.former_dedupe_key(),
        }
    }

    /// Returns the dedupe key that older versions used, before there were unique ids.
    pub fn former_dedupe_key(&self) -> String {
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
        assert_eq!(event.former_dedupe_key(), "telegram\nwork\nupdate:7");
    }
}
