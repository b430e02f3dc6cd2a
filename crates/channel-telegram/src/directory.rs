//! Resolves a target to a user or chat. Bots can look up chats they take part in, and public groups
//! and channels by name; people only once they wrote.

use openclaw_channels::{DirectoryPeer, SendError, Target};
use serde_json::{Value, json};

use crate::bot::Bot;
use crate::failure::ApiRefusal;
use crate::params::chat_id;
use crate::people;
use crate::wire::Wire as _;

/// Asks Telegram.
pub(super) async fn look_up(bot: &Bot, target: &Target) -> Result<Option<DirectoryPeer>, SendError> {
    let chat = bot.current(&target.id);
    match bot.call("getChat", &json!({"chat_id": chat_id(&chat)})).await {
        Ok(found) => Ok(found.int("id").map(|id| DirectoryPeer {
            id: id.to_string(),
            name: found.text("title").map(str::to_owned).or_else(|| person(&found)),
            kind: Some(people::kind_of_chat(&found)),
        })),
        Err(error) if error.refusal() == Some(ApiRefusal::NoChat) => Ok(None),
        Err(error) => Err(bot.failed(&chat, error)),
    }
}

/// The name of a person.
fn person(chat: &Value) -> Option<String> {
    let names: Vec<&str> = ["first_name", "last_name"].iter().filter_map(|key| chat.text(key)).collect();
    (!names.is_empty()).then(|| names.join(" "))
}
