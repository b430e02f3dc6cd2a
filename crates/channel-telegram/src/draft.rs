//! Drafts: the text so far, in private chats with topics (spec `streaming.md` §10).

use openclaw_channels::{Address, SendError};
use serde_json::json;

use crate::MESSAGE_LIMIT;
use crate::bot::Bot;
use crate::params::chat_id;
use crate::thread;

/// Shows the text so far.
pub(super) async fn show(bot: &Bot, at: &Address, id: i64, text: &str) -> Result<(), SendError> {
    let refuse = |reason: &str| Err(SendError::Final { reason: reason.to_owned() });
    let Some(thread) = thread::to_send(at).filter(|_| thread::is_private(at)) else {
        return refuse("Telegram has drafts in private chats with topics only");
    };
    if text.encode_utf16().count() > MESSAGE_LIMIT {
        return refuse("the text is too long for a draft");
    }
    let params = json!({
        "chat_id": chat_id(&at.target),
        // Zero is no number of a draft.
        "draft_id": if id == 0 { 1 } else { id.saturating_abs() },
        "text": text,
        "message_thread_id": thread,
    });
    let done = bot.client.call("sendMessageDraft", &params).await;
    done.map(drop).map_err(|error| bot.failed(&at.target, error))
}
