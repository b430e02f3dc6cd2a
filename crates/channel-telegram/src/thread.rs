//! Topics (spec `channels.md` §7.4). The thread of an address is that of its session; what is sent of it differs.

use openclaw_channels::Address;
use serde_json::Value;

use crate::wire::Wire as _;

/// The topic in which messages of a forum without a topic are.
const GENERAL: i64 = 1;

/// The thread that a message's session has.
pub(super) fn of_inbound(chat: &Value, message: &Value) -> Option<String> {
    let thread = message.int("message_thread_id");
    if chat.text("type") == Some("private") {
        return thread.map(|thread| thread.to_string());
    }
    // In other groups the number is that of a chain of replies.
    chat.flag("is_forum").then(|| thread.unwrap_or(GENERAL).to_string())
}

/// Returns true if the address is a private chat: only people have positive ids.
pub(super) fn is_private(at: &Address) -> bool {
    at.target.parse::<i64>().is_ok_and(|id| id > 0)
}

/// The thread that messages are sent with. Telegram refuses the number of the general topic.
pub(super) fn to_send(at: &Address) -> Option<i64> {
    let thread = to_show(at)?;
    (is_private(at) || thread != GENERAL).then_some(thread)
}

/// The thread that activity is shown in.
pub(super) fn to_show(at: &Address) -> Option<i64> {
    at.thread.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn threads_are_those_of_the_table() {
        let private = json!({"id": 5, "type": "private"});
        let group = json!({"id": -100, "type": "supergroup"});
        let forum = json!({"id": -100, "type": "supergroup", "is_forum": true});
        // Chat, incoming thread; of the session, sent, shown.
        let rows = [
            (&private, None, None, None, None),
            (&private, Some(9), Some("9"), Some(9), Some(9)),
            (&group, None, None, None, None),
            (&group, Some(9), None, None, None),
            (&forum, None, Some("1"), None, Some(1)),
            (&forum, Some(1), Some("1"), None, Some(1)),
            (&forum, Some(99), Some("99"), Some(99), Some(99)),
        ];
        for (chat, thread, session, sent, shown) in rows {
            let message = json!({"message_thread_id": thread});
            let address = Address {
                channel: "telegram".to_owned(),
                account: "default".to_owned(),
                target: chat["id"].to_string(),
                thread: of_inbound(chat, &message),
            };
            let found = (address.thread.as_deref(), to_send(&address), to_show(&address));
            assert_eq!(found, (session, sent, shown), "{chat} {thread:?}");
        }
    }
}
