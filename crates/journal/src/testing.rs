//! Setup shared by tests: events and origins of a chat platform, and the state after a crash.

use std::path::Path;

use openclaw_channels::{
    Address, ConversationInfo, ConversationKind, Inbound, InboundEvent, InboundMessage, Sender,
};

use crate::caller::CallerRights;
pub use crate::frames::forged::FORGED;
use crate::origin::{MessageFrame, MessageOrigin};

/// Said by somebody with the id 7, to whom `..group_event(…)` may give other things.
pub fn group_event(native_id: &str, group: &str, message: InboundMessage) -> Inbound {
    Inbound {
        native_id: native_id.to_owned(),
        unique_id: None,
        former_unique_id: None,
        address: Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: group.to_owned(),
            thread: None,
        },
        conversation: ConversationInfo {
            kind: ConversationKind::Group,
            title: None,
            thread_title: None,
            is_forum: false,
            space: None,
            descriptions: Vec::new(),
        },
        sender: Sender { id: "7".to_owned(), ..Sender::default() },
        event: InboundEvent::Message(Box::new(message)),
        at: 0,
    }
}

/// A message of a private chat on Telegram.
pub fn direct(sender: &str, username: Option<&str>) -> MessageOrigin {
    let mut origin = group(sender, sender, None);
    origin.conversation.kind = ConversationKind::Direct;
    origin.conversation.is_forum = false;
    origin.sender.username = username.map(str::to_owned);
    origin
}

/// A message of a group on Telegram, in a topic if there is one.
pub fn group(group: &str, sender: &str, topic: Option<&str>) -> MessageOrigin {
    MessageOrigin {
        address: Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: group.to_owned(),
            thread: topic.map(str::to_owned),
        },
        conversation: ConversationInfo {
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
        rights: CallerRights { may_command: true, ..CallerRights::default() },
        is_forwarded: false,
        is_press: false,
        was_mentioned: true,
        ack: None,
        skills: None,
        is_named: true,
        command_text: String::new(),
        frame: MessageFrame::default(),
    }
}

/// Copies a state directory and its journal as a crash would leave them.
#[cfg(test)]
pub(crate) fn crash(dir: &std::path::Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    crate::journal::memory::copy(dir, to.path());
    for item in std::fs::read_dir(dir).unwrap() {
        let item = item.unwrap();
        if item.file_type().unwrap().is_file() && !item.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(item.path(), to.path().join(item.file_name())).unwrap();
        }
    }
    to
}

/// Copies a state directory as a crash would leave it: written data is there, nothing is closed.
///
/// # Errors
/// If a file that stays can't be copied.
pub fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for item in std::fs::read_dir(from)? {
        let item = item?;
        let target = to.join(item.file_name());
        let copied = if item.file_type()?.is_dir() {
            copy_files(&item.path(), &target)
        } else if item.file_name().to_string_lossy().ends_with("-shm") {
            Ok(())
        } else {
            std::fs::copy(item.path(), target).map(drop)
        };
        match copied {
            // A lock (a file or a directory) or a temporary file that was removed after the listing: the crash came a little later.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => copied?,
        }
    }
    Ok(())
}
