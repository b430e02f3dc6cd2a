//! `/dock_<channel>`: answers of this session go to another platform from now on (spec `messages.md` §5): to the sender's own
//! identity there (`session.identityLinks`), else to the last private chat of that platform.

use openclaw_channels::ConversationKind;
use openclaw_protocol::IdentityLinks;
use openclaw_sessions::entry::delivery::update_last_route;
use openclaw_sessions::entry::{ChatType, DeliveryContext, ThreadId};
use openclaw_sessions::store::{Query, Row, Rows};

use super::command::{Category, ChatCommand, Does};
use super::{Answering, CommandContext, CommandError};

pub(crate) const TELEGRAM: ChatCommand = ChatCommand {
    aliases: &["dock_telegram"],
    platform: Some("telegram"),
    ..ChatCommand::new(
        "dock-telegram",
        Category::Docks,
        Does::Answers(telegram),
        "Send this session's answers to Telegram.",
    )
};
pub(crate) const DISCORD: ChatCommand = ChatCommand {
    aliases: &["dock_discord"],
    platform: Some("discord"),
    ..ChatCommand::new(
        "dock-discord",
        Category::Docks,
        Does::Answers(discord),
        "Send this session's answers to Discord.",
    )
};
pub(crate) const SLACK: ChatCommand = ChatCommand {
    aliases: &["dock_slack"],
    platform: Some("slack"),
    ..ChatCommand::new(
        "dock-slack",
        Category::Docks,
        Does::Answers(slack),
        "Send this session's answers to Slack.",
    )
};

/// Rows that are looked at for the last private chat.
const MOST_ROWS: usize = 500;

fn telegram<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Answering<'a> {
    Box::pin(dock(context, "telegram"))
}

fn discord<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Answering<'a> {
    Box::pin(dock(context, "discord"))
}

fn slack<'a>(context: &'a CommandContext<'a>, _: &'a str) -> Answering<'a> {
    Box::pin(dock(context, "slack"))
}

async fn dock(context: &CommandContext<'_>, channel: &'static str) -> Result<String, CommandError> {
    let Some(route) = route(context, channel).await? else {
        return Ok(format!("⚠️ No linked {channel} target for you."));
    };
    // A thread of the former place is none of the new one's.
    context
        .edit(move |entry| {
            entry.last_thread_id = None;
            update_last_route(entry, &route);
        })
        .await?;
    Ok(format!("⚙️ Replies docked to {channel}."))
}

/// Returns the route to the sender on the other channel.
async fn route(context: &CommandContext<'_>, channel: &str) -> Result<Option<DeliveryContext>, CommandError> {
    let account = context.services.platforms.sending_account(&context.settings.config, channel);
    if let Some(origin) = context.row.payload.source.origin() {
        // A sender in the channel's direct chat stays there.
        if origin.address.channel == channel && origin.conversation.kind == ConversationKind::Direct {
            return Ok(Some(origin.route()));
        }
        let links = &context.settings.sessions.section.identity_links;
        if let Some(to) = linked(links, &origin.address.channel, &origin.sender.id, channel) {
            return Ok(Some(to_person(channel, &to, account.as_deref(), None)));
        }
    }
    let rows = context.services.store.select(Rows::All, &Query::newest(MOST_ROWS)).await?;
    Ok(rows.rows.iter().find_map(|row| private_route(row, channel)))
}

fn to_person(channel: &str, to: &str, account: Option<&str>, thread: Option<ThreadId>) -> DeliveryContext {
    DeliveryContext {
        channel: Some(channel.into()),
        to: Some(to.into()),
        account_id: account.map(Into::into),
        thread_id: thread,
        ..DeliveryContext::default()
    }
}

/// Returns the sender's id on another channel, as the owner has linked it.
fn linked(links: &IdentityLinks, from: &str, sender: &str, channel: &str) -> Option<String> {
    let is_sender = |id: &String| {
        let id = id.trim().to_lowercase();
        id == sender.to_lowercase() || id == format!("{from}:{sender}").to_lowercase()
    };
    let on_channel = |id: &String| {
        let (name, id) = id.trim().split_once(':')?;
        name.eq_ignore_ascii_case(channel).then(|| id.to_owned())
    };
    links
        .iter()
        .find(|(_, ids)| ids.iter().any(is_sender))
        .and_then(|(_, ids)| ids.iter().find_map(on_channel))
}

/// Returns the route of a session's private chat on a channel; `None` if the row has no such chat.
fn private_route(row: &Row, channel: &str) -> Option<DeliveryContext> {
    let is_private = matches!(row.entry.chat_type, Some(ChatType::Direct) | None);
    let route = openclaw_sessions::entry::delivery::of_entry(&row.entry)?;
    let is_there = route.channel.as_deref() == Some(channel) && route.to.is_some();
    (is_private && is_there).then_some(route)
}

#[cfg(test)]
mod tests {
    use openclaw_config::registry;

    use super::*;

    #[test]
    fn platforms_with_a_menu_have_a_dock() {
        let docks = [TELEGRAM, DISCORD, SLACK].map(|command| command.platform.unwrap());
        let with_menu = registry::CHANNELS.iter().filter(|row| row.native_commands).map(|row| row.id);
        assert_eq!(docks.to_vec(), with_menu.collect::<Vec<_>>());
    }

    #[test]
    fn a_person_is_found_by_the_owners_links() {
        let ids = |ids: &[&str]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let links: IdentityLinks = vec![
            ("ada".into(), ids(&["telegram:5", " Discord:77"])),
            ("bob".into(), ids(&["6", "slack:U1"])),
        ];
        let rows = [
            ("telegram", "5", "discord", Some("77")),
            ("discord", "77", "telegram", Some("5")),
            ("telegram", "6", "slack", Some("U1")),
            ("telegram", "5", "slack", None),
            ("telegram", "9", "discord", None),
        ];
        for (from, sender, channel, expect) in rows {
            assert_eq!(linked(&links, from, sender, channel).as_deref(), expect, "{from} {sender} {channel}");
        }
    }
}
