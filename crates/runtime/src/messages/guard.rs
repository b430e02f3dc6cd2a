//! Guard: decides if a run that answers one conversation may act in another (spec `channels.md`
//! §6.2). Pure.

use openclaw_channels::Address;
use openclaw_config::settings::{Marker, ToolsMessage};

/// Text put around words that come from another conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OriginMark {
    prefix: String,
    suffix: String,
}

impl OriginMark {
    /// The words with it.
    pub(super) fn around(&self, text: &str) -> String {
        if text.trim().is_empty() { text.to_owned() } else { format!("{}{text}{}", self.prefix, self.suffix) }
    }
}

/// Actions that are guarded, because they bring something new into a conversation. The others are
/// about what is there already.
const HELD: &[&str] = &[
    "send",
    "poll",
    "reply",
    "sendWithEffect",
    "sendAttachment",
    "thread-create",
    "thread-reply",
    "sticker",
];

/// Checks that a run, or an operator by hand, bound to one conversation may do an action at another
/// address; returns the mark for its words.
pub(super) fn check(
    action: &str,
    to: &Address,
    bound: &Address,
    settings: &ToolsMessage,
    is_operator: bool,
) -> Result<OriginMark, String> {
    if !HELD.contains(&action) {
        return Ok(OriginMark::default());
    }
    let allowed = settings.allow_cross_context_send;
    if to.channel != bound.channel {
        if !allowed && !settings.cross_context.allow_across_providers {
            return Err(format!(
                "Cross-context messaging denied: action={action} target provider \"{}\" while bound to \"{}\".",
                to.channel, bound.channel
            ));
        }
    } else if to.target == bound.target {
        return Ok(OriginMark::default());
    } else if !allowed && !settings.cross_context.allow_within_provider {
        return Err(format!(
            "Cross-context messaging denied: action={action} target=\"{}\" while bound to \"{}\" (channel={}).",
            to.target, bound.target, bound.channel
        ));
    }
    // The reader of an agent's message knows the agent; whoever sends by hand tells where from.
    Ok(match is_operator {
        true => marked(&settings.cross_context.marker, &bound.target),
        false => OriginMark::default(),
    })
}

fn marked(marker: &Marker, from: &str) -> OriginMark {
    let fill = |text: &str| text.replace("{channel}", from);
    match marker.enabled {
        true => OriginMark { prefix: fill(&marker.prefix), suffix: fill(&marker.suffix) },
        false => OriginMark::default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn address(channel: &str, target: &str) -> Address {
        Address {
            channel: channel.to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: None,
        }
    }

    /// Every row of the table.
    #[test]
    fn a_run_stays_in_its_conversation_as_far_as_the_settings_say() {
        let (across, within) = (
            "Cross-context messaging denied: action=send target provider \"slack\" while bound to \"telegram\".",
            "Cross-context messaging denied: action=send target=\"C9\" while bound to \"C1\" (channel=slack).",
        );
        let (telegram, slack, other) =
            (address("telegram", "1"), address("slack", "C1"), address("slack", "C9"));
        let rows: [(&Address, &Address, Value, Result<(), &str>); 8] = [
            (&slack, &telegram, json!({}), Err(across)),
            (&slack, &telegram, json!({"crossContext": {"allowAcrossProviders": true}}), Ok(())),
            (&other, &slack, json!({}), Ok(())),
            (&other, &slack, json!({"crossContext": {"allowWithinProvider": false}}), Err(within)),
            (&slack, &slack, json!({"crossContext": {"allowWithinProvider": false}}), Ok(())),
            (&slack, &telegram, json!({"allowCrossContextSend": true}), Ok(())),
            (
                &other,
                &slack,
                json!({"allowCrossContextSend": true, "crossContext": {"allowWithinProvider": false}}),
                Ok(()),
            ),
            (&slack, &telegram, json!({"crossContext": {"allowWithinProvider": false}}), Err(across)),
        ];
        for (to, bound, settings, expect) in rows {
            let read: ToolsMessage = serde_json::from_value(settings.clone()).unwrap();
            let found = check("send", to, bound, &read, false);
            assert_eq!(found, expect.map(|()| OriginMark::default()).map_err(str::to_owned), "{settings}");
        }
    }

    #[test]
    fn what_somebody_sends_by_hand_from_elsewhere_says_so() {
        let (bound, other) = (address("telegram", "1"), address("telegram", "2"));
        let rows = [
            (json!({}), "[from 1] hi"),
            (json!({"crossContext": {"marker": {"enabled": false}}}), "hi"),
            (json!({"crossContext": {"marker": {"prefix": "<{channel}> ", "suffix": " ."}}}), "<1> hi ."),
        ];
        for (settings, expect) in rows {
            let read: ToolsMessage = serde_json::from_value(settings).unwrap();
            let mark = check("send", &other, &bound, &read, true).unwrap();
            assert_eq!((mark.around("hi").as_str(), mark.around(" ").as_str()), (expect, " "));
            let own = check("send", &bound, &bound, &read, true).unwrap();
            assert_eq!(own.around("hi"), "hi");
        }
    }

    /// Spec `channels.md` §6.2.
    #[test]
    fn what_brings_nothing_new_into_a_conversation_is_not_held() {
        let held: ToolsMessage =
            serde_json::from_value(json!({"crossContext": {"allowWithinProvider": false}})).unwrap();
        let (bound, elsewhere) =
            (address("telegram", "1"), [address("telegram", "2"), address("slack", "C1")]);
        for (action, is_held) in [
            ("send", true),
            ("poll", true),
            ("thread-create", true),
            ("thread-reply", true),
            ("sticker", true),
            ("react", false),
            ("edit", false),
            ("delete", false),
            ("pin", false),
            ("list-pins", false),
        ] {
            for to in &elsewhere {
                assert_eq!(check(action, to, &bound, &held, false).is_err(), is_held, "{action} {to:?}");
            }
        }
    }
}
