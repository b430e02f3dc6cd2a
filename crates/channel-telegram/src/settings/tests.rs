//! Tests of the place of settings and their precedence.

use std::sync::Arc;

use openclaw_channels::access::{DmPolicy, Entry, GroupPolicy};
use openclaw_channels::reply_layers;
use openclaw_config::Environment;
use openclaw_config::settings::StreamMode;

use super::*;

pub(super) fn config(text: &str) -> Arc<Config> {
    let home = tempfile::tempdir().unwrap();
    let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
    Config::from_json5(text, &env).unwrap()
}

fn of(text: &str, id: &str) -> AccountSettings {
    AccountSettings::of(&config(text), id).unwrap().unwrap()
}

#[test]
fn an_account_lies_over_its_channel_and_defaults_come_last() {
    let text = r#"{channels: {telegram: {dmPolicy: "open", allowFrom: ["*"], groupPolicy: "open", streamMode: "off",
        accounts: {b: {botToken: "1:a"}}}}}"#;
    let b = of(text, "b");
    let stream_mode =
        reply_layers(&config(text), ID, Some("b")).into_iter().find_map(|layer| layer.stream_mode);
    assert_eq!(
        (b.access.dm_policy, b.access.group_policy, stream_mode),
        (DmPolicy::Open, Some(GroupPolicy::Open), Some(StreamMode::Off))
    );
    let text = r#"{channels: {telegram: {dmPolicy: "allowlist", allowFrom: ["+1"], accounts: {b: {allowFrom: ["+2", 3]}}}}}"#;
    let b = of(text, "b");
    assert_eq!(b.access.dm_policy, DmPolicy::Allowlist);
    assert_eq!(b.access.allow_from, Some(vec![Entry("+2".to_owned()), Entry("3".to_owned())]));
    let bare = of("{channels: {telegram: {}}}", "default");
    let policies = (bare.access.dm_policy, bare.access.group_policy);
    assert_eq!(policies, (DmPolicy::Pairing, Some(GroupPolicy::Allowlist)));
    assert_eq!(
        (bare.fetch_limit(), bare.text_limit(), bare.shows_link_previews()),
        (5 * 1024 * 1024, 4000, true)
    );
    assert!(!bare.actions.sticker && bare.actions.edit_message);
    assert_eq!(bare.retry, RetryPolicy::default());
}

#[test]
fn accounts_are_found_by_their_normalised_names() {
    let text = r#"{channels: {telegram: {accounts: {Work: {name: "W"}, "My Bot!": {}}}},
        bindings: [{agentId: "main", match: {channel: "telegram", accountId: "ops"}}]}"#;
    let config = config(text);
    assert_eq!(account_ids(&config), ["my-bot", "ops", "work"]);
    let found = |id: &str| AccountSettings::of(&config, id).map(|found| found.unwrap().name);
    assert_eq!(found(" WORK "), Some(Some("W".to_owned())));
    assert_eq!(found("my bot"), Some(None));
    assert_eq!(found("ops"), Some(None));
    assert_eq!(found("none"), None);
}

#[test]
fn of_two_names_of_one_account_the_first_in_the_file_counts() {
    let text = r#"{channels: {telegram: {accounts: {
        "my-bot": {botToken: "1:first", textChunkLimit: 100, allowFrom: [1]},
        "My Bot": {botToken: "2:second", textChunkLimit: 200, allowFrom: [2]}}}}}"#;
    let token = crate::BotToken::find(&config(text), "my-bot").unwrap();
    let settings = of(text, "my-bot");
    assert_eq!((token.bot_id(), settings.text_limit()), (Some(1), 100));
    assert_eq!(settings.access.allow_from, Some(vec![Entry("1".to_owned())]));
}

#[test]
fn an_account_is_on_where_neither_it_nor_its_channel_nor_its_plugin_is_off() {
    let rows = [
        ("{channels: {telegram: {accounts: {a: {}}}}}", true),
        ("{channels: {telegram: {enabled: false, accounts: {a: {enabled: true}}}}}", false),
        ("{channels: {telegram: {accounts: {a: {enabled: false}}}}}", false),
        (
            "{plugins: {entries: {telegram: {enabled: false}}}, channels: {telegram: {accounts: {a: {}}}}}",
            false,
        ),
    ];
    for (text, expect) in rows {
        assert_eq!(of(text, "a").is_enabled, expect, "{text}");
    }
}

#[test]
fn buttons_are_shown_to_whom_the_capabilities_say() {
    let rows = [
        (r#"{channels: {telegram: {capabilities: ["inlineButtons"]}}}"#, InlineButtons::All),
        (r#"{channels: {telegram: {capabilities: {inlineButtons: "dm"}}}}"#, InlineButtons::Dm),
        ("{channels: {telegram: {}}}", InlineButtons::Allowlist),
    ];
    for (text, expect) in rows {
        assert_eq!(of(text, "default").inline_buttons(), expect, "{text}");
    }
}

#[test]
fn groups_and_topics_have_rules_of_their_own() {
    let text = r#"{channels: {telegram: {groups: {"-100": {requireMention: false, topics: {"9": {enabled: false}}}}}}}"#;
    let settings = of(text, "default");
    let group = &settings.access.groups["-100"];
    assert_eq!(group.rules.require_mention, Some(false));
    assert_eq!(group.topics["9"].enabled, Some(false));
}
