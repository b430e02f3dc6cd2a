//! Inputs of the `message` tool of a run: the actions that the platforms of this gateway have, and
//! the conversation in which the run was asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use openclaw_channels::{Address, Platforms};
use openclaw_config::Config;
use openclaw_journal::inbox::InboxRow;
use openclaw_tools::{CurrentChannel, MessageSetup};

use openclaw_runtime::messages::turn::{Bound, MessageTurn};

/// Action that every platform has.
const SEND: &str = "send";
const BROADCAST: &str = "broadcast";

/// Creates the record of a message's run, which has sent nothing yet.
pub(super) fn message_turn(row: &InboxRow) -> Arc<MessageTurn> {
    let request = &row.payload;
    let bound = request.conversation().map(|address| Bound {
        address: address.clone(),
        message_id: request.source.origin().map(|origin| origin.message_id.clone()),
    });
    let needs_target = row.session_key.is_subagent() || request.is_isolated();
    let rights = request.rights.clone().unwrap_or_default();
    MessageTurn::new(row.run_id.clone(), row.session_key.clone(), bound, needs_target, rights)
}

pub(super) fn setup(platforms: &Platforms, config: &Config, at: Option<&Address>) -> Option<MessageSetup> {
    let channels = platforms.usable(config);
    if channels.is_empty() {
        return None;
    }
    let mut actions: BTreeSet<&'static str> = [SEND].into();
    if config.tools.message.broadcast.enabled {
        actions.insert(BROADCAST);
    }
    let mut has_buttons = false;
    for channel in &channels {
        let ids = platforms.channel(channel).map(|channel| channel.account_ids(config)).unwrap_or_default();
        for account in ids.iter().filter_map(|id| platforms.account(config, channel, id)) {
            actions.extend(account.actions());
            has_buttons |= account.has_buttons();
        }
    }
    let current = at.and_then(|at| {
        let account = platforms.account(config, &at.channel, &at.account)?;
        let own: BTreeSet<&'static str> = account.actions().into_iter().chain([SEND]).collect();
        Some(CurrentChannel {
            id: at.channel.clone(),
            actions: own.into_iter().collect(),
            has_buttons: account.permits_buttons(at).is_ok(),
        })
    });
    Some(MessageSetup { channels, actions: actions.into_iter().collect(), has_buttons, current })
}

#[cfg(test)]
mod tests {
    use openclaw_channel_telegram::Telegram;
    use openclaw_config::Environment;

    use super::*;

    fn of(text: &str, at: Option<&Address>) -> Option<MessageSetup> {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
        setup(&Platforms::new(vec![Arc::new(Telegram)]), &Config::from_json5(text, &env).unwrap(), at)
    }

    #[test]
    fn the_tool_offers_what_the_configured_platforms_can_do() {
        assert!(of("{}", None).is_none(), "without a platform there is nothing to offer");
        let token = "123456:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc";
        let plain = of(&format!("{{channels: {{telegram: {{botToken: '{token}'}}}}}}"), None).unwrap();
        assert_eq!(
            plain.actions.join(" "),
            "broadcast delete edit list-pins pin poll react send thread-create thread-reply unpin"
        );
        assert!(plain.has_buttons && plain.current.is_none());
        let off = format!(
            "{{tools: {{message: {{broadcast: {{enabled: false}}}}}}, channels: {{telegram: {{botToken: '{token}',
                actions: {{reactions: false, pins: false, poll: false, createForumTopic: false, sendMessage: false}},
                capabilities: {{inlineButtons: 'off'}}}}}}}}"
        );
        let at = Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: "5".to_owned(),
            thread: None,
        };
        let off = of(&off, Some(&at)).unwrap();
        assert_eq!((off.actions.join(" "), off.has_buttons), ("delete edit send".to_owned(), false));
        let current = off.current.unwrap();
        assert_eq!(
            (current.id.as_str(), current.actions.join(" ")),
            ("telegram", "delete edit send".to_owned())
        );
    }
}
