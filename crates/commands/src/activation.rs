//! `/activation mention|always`: when a group is answered (spec `channels.md` §2.7). The row overrides `requireMention`.

use openclaw_channels::access::AccessSettings;
use openclaw_protocol::params::sessions::GroupActivation;
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::ChatType;

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new("activation", Category::Management, Does::Answers(run), "Set when a group is answered.")
        .taking(Takes::Words, "mention|always")
        .offering(ArgumentMenu::Here(|context| {
            let modes: &[&str] = if is_group(context) { &["mention", "always"] } else { &[] };
            Box::pin(async { modes.iter().map(|mode| (*mode).to_owned()).collect() })
        }));

const USAGE: &str = "⚙️ Usage: /activation mention|always";
const NO_GROUP: &str = "⚙️ Group activation only applies to group chats.";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        if !is_group(context) {
            return Ok(NO_GROUP.to_owned());
        }
        let Some(mode) = read(arguments) else { return Ok(USAGE.to_owned()) };
        context
            .edit(move |entry| {
                entry.group_activation = Some(mode);
                entry.group_activation_needs_system_intro = Some(true);
            })
            .await?;
        Ok(format!("⚙️ Group activation set to {}.", name(mode)))
    })
}

fn read(arguments: &str) -> Option<GroupActivation> {
    match arguments.trim().to_lowercase().as_str() {
        "mention" => Some(GroupActivation::Mention),
        "always" => Some(GroupActivation::Always),
        _ => None,
    }
}

fn name(mode: GroupActivation) -> &'static str {
    match mode {
        GroupActivation::Mention => "mention",
        GroupActivation::Always => "always",
    }
}

/// True if the command was given in a group, or in the session of one.
fn is_group(context: &CommandContext<'_>) -> bool {
    match context.row.payload.source.origin() {
        Some(origin) => !origin.is_direct(),
        None => matches!(context.entry.chat_type, Some(ChatType::Group | ChatType::Channel)),
    }
}

/// Returns the activation of the session's group: the row's value, else the configured one. `None`
/// if there is no group.
pub(crate) fn effective(context: &CommandContext<'_>) -> Option<&'static str> {
    if !is_group(context) {
        return None;
    }
    let SessionEntry { group_activation, .. } = context.entry;
    let configured = || {
        let origin = context.row.payload.source.origin()?;
        let address = &origin.address;
        let access = AccessSettings::of(&context.settings.config, &address.channel, &address.account).ok()?;
        let topic = address.thread.as_deref().filter(|_| origin.conversation.is_forum);
        let requires = access.requires_mention(&address.target, topic);
        Some(if requires { GroupActivation::Mention } else { GroupActivation::Always })
    };
    Some(name(group_activation.or_else(configured).unwrap_or(GroupActivation::Mention)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_two_modes() {
        let rows = [
            ("always", Some(GroupActivation::Always)),
            (" Mention ", Some(GroupActivation::Mention)),
            ("", None),
            ("never", None),
            ("always please", None),
        ];
        for (text, expect) in rows {
            assert_eq!(read(text), expect, "{text:?}");
        }
    }
}
