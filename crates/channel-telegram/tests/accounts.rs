//! Which account is meant, and which one sends, where none is named.

use std::sync::Arc;

use openclaw_channel_telegram::Telegram;
use openclaw_channels::Platforms;
use openclaw_config::{Config, Environment};
use serde_json::json;

fn platforms() -> Platforms {
    Platforms::new(vec![Arc::new(Telegram)])
}

#[test]
fn an_account_is_chosen_where_none_is_named() {
    let bound = |agent: &str, account: &str| json!([{"agentId": agent, "match": {"channel": "telegram", "accountId": account}}]);
    let (two, three) = (json!({"b": {}, "a": {}}), json!({"b": {}, "a": {}, "Default": {}}));
    let rows = [
        (json!({}), json!([]), "default"),
        (two.clone(), json!([]), "a"),
        (three.clone(), json!([]), "default"),
        (three.clone(), bound("main", "B"), "b"),
        (three.clone(), bound("main", "*"), "default"),
        (three, bound("other", "b"), "default"),
        (two, bound("main", "c"), "c"),
    ];
    for (accounts, bindings, expect) in rows {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
        let file = json!({
            "agents": {"list": [{"id": "main", "default": true}, {"id": "other"}]},
            "channels": {"telegram": {"accounts": accounts}},
            "bindings": bindings,
        });
        let config = Config::from_json5(&file.to_string(), &env).unwrap();
        let found = platforms().default_account(&config, "telegram");
        assert_eq!(found.as_deref(), Some(expect), "{file}");
    }
}

/// Spec `channels.md` §1.4.
#[test]
fn an_account_that_can_be_used_sends_where_none_is_named() {
    const TOKEN: &str = "123456:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc";
    let bound =
        |account: &str| json!([{"agentId": "main", "match": {"channel": "telegram", "accountId": account}}]);
    let with = json!({"botToken": TOKEN});
    let off = json!({"botToken": TOKEN, "enabled": false});
    let rows = [
        (json!({"b": with, "a": with}), json!([]), ("a", true)),
        (json!({"b": with, "default": with}), json!([]), ("default", true)),
        (json!({"b": with, "default": {}}), json!([]), ("b", true)),
        (json!({"b": with, "default": off}), json!([]), ("b", true)),
        (json!({"b": with, "a": {}}), json!([]), ("b", true)),
        (json!({"b": with, "a": with}), bound("b"), ("b", true)),
        (json!({"b": off, "a": with}), bound("b"), ("a", true)),
        // A bound account is an account, but has no token here.
        (json!({"b": with, "a": with}), bound("c"), ("a", true)),
        (json!({"b": with, "c": {"tokenFile": "/nonexistent"}}), bound("c"), ("b", true)),
        // If none can be used, the message is about the intended one.
        (json!({"b": {}, "a": off}), bound("b"), ("b", false)),
        (json!({"b": off, "default": {}}), json!([]), ("default", false)),
    ];
    for (accounts, bindings, (expect, is_usable)) in rows {
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME".to_owned(), home.path().display().to_string())], home.path());
        let file = json!({
            "agents": {"list": [{"id": "main", "default": true}]},
            "channels": {"telegram": {"accounts": accounts}},
            "bindings": bindings,
        });
        let config = Config::from_json5(&file.to_string(), &env).unwrap();
        let platforms = platforms();
        let found = platforms.sending_account(&config, "telegram");
        assert_eq!(found.as_deref(), Some(expect), "{file}");
        let usable: &[&str] = if is_usable { &["telegram"] } else { &[] };
        assert_eq!(platforms.usable(&config), usable, "{file}");
    }
}
