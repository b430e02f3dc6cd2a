//! What tests of commands begin with.

use openclaw_channels::{Address, Conversation, ConversationKind, Sender};
use openclaw_config::Environment;
use tempfile::TempDir;

use crate::origin::{Frame, Origin};

/// A message of a private chat on Telegram.
pub(crate) fn direct(sender: &str, username: Option<&str>) -> Origin {
    let mut origin = group(sender, sender, None);
    origin.conversation.kind = ConversationKind::Direct;
    origin.conversation.is_forum = false;
    origin.sender.username = username.map(str::to_owned);
    origin
}

/// A message of a group on Telegram, in a topic if there is one.
pub(crate) fn group(group: &str, sender: &str, topic: Option<&str>) -> Origin {
    Origin {
        address: Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: group.to_owned(),
            thread: topic.map(str::to_owned),
        },
        conversation: Conversation {
            kind: ConversationKind::Group,
            title: None,
            thread_title: None,
            is_forum: topic.is_some(),
            space: None,
            descriptions: Vec::new(),
        },
        sender: Sender { id: sender.to_owned(), ..Sender::default() },
        listed_as: Vec::new(),
        message_id: "1".to_owned(),
        message_ids: Vec::new(),
        may_command: true,
        is_owner: false,
        hears_reasons: false,
        is_forwarded: false,
        was_mentioned: true,
        ack: None,
        skills: None,
        is_named: true,
        command_text: String::new(),
        frame: Frame::default(),
    }
}

/// A config file in a home of its own.
pub(crate) fn config_file(text: &str) -> (TempDir, Environment) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("openclaw.json"), text).unwrap();
    let path = home.path().display().to_string();
    let environment =
        Environment::new([("HOME", path.as_str()), ("OPENCLAW_STATE_DIR", path.as_str())], home.path());
    (home, environment)
}
