use openclaw_protocol::AgentId;
use openclaw_protocol::printable::is_control;
use openclaw_protocol::session_key::MAX_KEY_BYTES;
use proptest::prelude::*;

use super::group::{InboundContext, group_of, session_key};
use super::peer::PeerKey;
use super::*;
use openclaw_protocol::SessionScope;

fn ops() -> KeyRules {
    KeyRules::new(AgentId::normalize("ops"), "work", SessionScope::PerSender)
}

/// Vectors of `sessions.md` §1.3; `direct` of the spec is `dm` in new keys (decision 1).
#[test]
fn peers_get_their_keys() {
    use DmScope::{Main, PerAccountChannelPeer, PerChannelPeer, PerPeer};
    let links = [
        // A blank name is none, and of two that have an id the first counts.
        (" ", vec!["telegram:111"]),
        ("Alice", vec!["telegram:111", " Discord:222"]),
        ("x", vec![]),
        ("Aaron", vec!["telegram:111"]),
        ("Bob", vec!["555"]),
        ("carol", vec!["discord:123"]),
    ];
    let links = links.map(|(name, ids)| (name.to_owned(), ids.into_iter().map(str::to_owned).collect()));
    type Row = (DmScope, &'static str, Option<&'static str>, PeerKind, &'static str, &'static str);
    let rows: &[Row] = &[
        (Main, "whatsapp", None, PeerKind::Direct, "+1555", "agent:main:main"),
        (PerPeer, "whatsapp", None, PeerKind::Direct, "+1555", "agent:main:dm:+1555"),
        (PerChannelPeer, "WhatsApp ", None, PeerKind::Direct, "+1555", "agent:main:whatsapp:dm:+1555"),
        (
            PerAccountChannelPeer,
            "telegram",
            Some("Tasks Bot"),
            PeerKind::Direct,
            "7550",
            "agent:main:telegram:tasks-bot:dm:7550",
        ),
        (
            PerAccountChannelPeer,
            "telegram",
            None,
            PeerKind::Direct,
            "7550",
            "agent:main:telegram:default:dm:7550",
        ),
        (PerPeer, "telegram", None, PeerKind::Direct, "111", "agent:main:dm:alice"),
        (PerChannelPeer, "discord", None, PeerKind::Direct, "222", "agent:main:discord:dm:alice"),
        (
            PerAccountChannelPeer,
            "telegram",
            Some("biz"),
            PeerKind::Direct,
            "111",
            "agent:main:telegram:biz:dm:alice",
        ),
        (PerPeer, "signal", None, PeerKind::Direct, "555", "agent:main:dm:bob"),
        (Main, "telegram", None, PeerKind::Direct, "111", "agent:main:main"),
        (PerPeer, "telegram", None, PeerKind::Group, "111", "agent:main:telegram:group:111"),
        (Main, "telegram", None, PeerKind::Group, "-100:topic:99", "agent:main:telegram:group:-100:topic:99"),
        (PerPeer, "telegram", None, PeerKind::Direct, " ", "agent:main:main"),
        (Main, "", None, PeerKind::Channel, "", "agent:main:unknown:channel:unknown"),
        // `channels.md` §3.6.
        (PerChannelPeer, "telegram", None, PeerKind::Direct, "@alice", "agent:main:telegram:dm:@alice"),
        (PerPeer, "discord", None, PeerKind::Direct, "123", "agent:main:dm:carol"),
        (Main, "bluebubbles", None, PeerKind::Group, "ABC123", "agent:main:bluebubbles:group:abc123"),
    ];
    for (dm_scope, channel, account, kind, id, expect) in rows {
        let agent = AgentId::default();
        let peer = Peer::new(*kind, *id);
        let key = PeerKey {
            agent: &agent,
            main_key: "main",
            channel,
            account: *account,
            peer: &peer,
            dm_scope: *dm_scope,
            links: &links,
        };
        assert_eq!(key.build().unwrap().as_str(), *expect, "{channel} {id}");
        assert!(*dm_scope != Main || key.link().is_none(), "{channel} {id}");
    }
}

/// Vectors of `sessions.md` §1.4 with its "Better" rules.
#[test]
fn inputs_are_canonicalised() {
    let rows = [
        ("main", "agent:ops:work"),
        ("work", "agent:ops:work"),
        ("  main ", "agent:ops:work"),
        ("agent:ops:main", "agent:ops:work"),
        ("agent:review:main", "agent:review:work"),
        ("agent:review:foo", "agent:review:foo"),
        ("discord:group:123", "agent:ops:discord:group:123"),
        ("sess-1", "agent:ops:sess-1"),
        ("MAIN", "agent:ops:work"),
        ("agent:OPS:main", "agent:ops:work"),
        ("Agent:My Bot:Foo", "agent:my-bot:foo"),
        ("global", "global"),
        ("unknown", "unknown"),
        ("agent:ops:telegram:direct:7", "agent:ops:telegram:dm:7"),
        ("agent:ops:telegram:acct:direct:7", "agent:ops:telegram:acct:dm:7"),
        ("agent:ops:direct:7", "agent:ops:dm:7"),
        ("agent:ops:telegram:group:direct:7", "agent:ops:telegram:group:direct:7"),
        ("agent:ops:subagent:direct:7", "agent:ops:subagent:direct:7"),
    ];
    for (input, expect) in rows {
        assert_eq!(ops().canonical(input).unwrap().as_str(), expect, "{input:?}");
    }
}

#[test]
fn global_scope_folds_every_main_bucket() {
    let rules = KeyRules::new(AgentId::normalize("ops"), "work", SessionScope::Global);
    for input in ["main", "agent:ops:main", "agent:main:work", "global"] {
        assert_eq!(rules.canonical(input).unwrap().as_str(), "global", "{input:?}");
    }
    assert_eq!(rules.canonical("agent:ops:x").unwrap().as_str(), "agent:ops:x");
}

#[test]
fn malformed_inputs_are_refused() {
    for input in ["", " ", ":", " : : ", "agent:main", "agent:", "agent::x", "agent:main: : ", "AGENT:x"] {
        assert!(ops().canonical(input).is_err(), "{input:?}");
    }
}

#[test]
fn keys_with_control_characters_are_refused_from_outside_and_read_from_files() {
    for text in ["a\u{1b}[2Jb", "agent:ops:a\nb", "agent:ops:\u{202e}gpj", "x\u{9b}y", "x\u{7f}"] {
        let refused = ops().canonical(text).unwrap_err();
        assert!(matches!(refused, KeyError::Control { .. }), "{text:?}: {refused}");
        let shown = refused.to_string();
        assert!(!shown.contains(is_control), "{shown:?}");
        let agent = AgentId::normalize("ops");
        assert!(SessionKey::of(&agent, KeyForm::Named(text)).is_err(), "{text:?}");
        assert!(legacy::canonicalize(text, &agent, &ops()).is_ok(), "{text:?}");
    }
    assert_eq!(
        ops().canonical("a\u{1b}b").unwrap_err().to_string(),
        "session key \"a\\u001bb\" has the control character U+001B; leave it out"
    );
    assert!(SessionKey::parse("agent:ops:x").unwrap().with_thread("1\u{85}2").is_err());
}

#[test]
fn a_key_that_is_too_long_is_refused_and_never_cut() {
    assert_eq!(ops().canonical(&"k".repeat(10_000)), Err(KeyError::TooLong(10_000)));
    // The longest that is accepted, and one byte more.
    let longest = "k".repeat(MAX_KEY_BYTES - "agent:ops:".len());
    assert_eq!(ops().canonical(&longest).unwrap().as_str().len(), MAX_KEY_BYTES);
    assert_eq!(ops().canonical(&format!("{longest}k")), Err(KeyError::TooLong(MAX_KEY_BYTES + 1)));
    // Lower case takes more bytes than upper case here: what counts is the canonical key.
    assert!(matches!(ops().canonical(&"Ⱥ".repeat(2_000)), Err(KeyError::TooLong(_))));
    let text = ops().canonical(&"k".repeat(10_000)).unwrap_err().to_string();
    assert_eq!(text, "session key of 10000 bytes is too long, at most 4096 are allowed");
}

/// Vectors of `sessions.md` §1.5.
#[test]
fn groups_are_found_in_inbound_contexts() {
    let rows = [
        ("whatsapp:group:123@g.us", "group", "whatsapp", Some("whatsapp:group:123@g.us")),
        ("123@g.us", "", "whatsapp", Some("whatsapp:group:123@g.us")),
        ("123@g.us", "", "", Some("whatsapp:group:123@g.us")),
        // better: no double `group:`
        ("group:abc", "group", "signal", Some("signal:group:abc")),
        ("telegram:group:-100:topic:5", "group", "", Some("telegram:group:-100:topic:5")),
        ("discord:channel:99", "channel", "", Some("discord:channel:99")),
        ("slack:group:G1", "channel", "", Some("slack:group:g1")),
        ("telegram:group:-1", "group", "slack", Some("telegram:group:-1")),
        ("webchat:group:1", "group", "", Some("webchat:group:1")),
        ("slack:channel:C1", "", "", Some("slack:channel:c1")),
        ("abc", "channel", "slack", Some("slack:channel:abc")),
        // Second place gives the kind on an unknown surface too; the id is the whole.
        ("foo:group:9", "channel", "slack", Some("slack:group:foo:group:9")),
        ("+1555", "direct", "", None),
        ("abc", "group", "", None),
    ];
    for (from, chat_type, provider, expect) in rows {
        let context = InboundContext {
            from: Some(from),
            chat_type: Some(chat_type),
            provider: Some(provider),
            ..InboundContext::default()
        };
        assert_eq!(group_of(&context).map(|group| group.key()).as_deref(), expect, "{from:?}");
    }
}

#[test]
fn contexts_without_a_key_fall_into_group_or_main() {
    let rules = KeyRules::default();
    let from =
        |from| InboundContext { from: Some(from), chat_type: Some("group"), ..InboundContext::default() };
    let key =
        |context: &InboundContext<'_>, rules: &KeyRules| session_key(context, rules).unwrap().to_string();
    assert_eq!(key(&from("discord:channel:9"), &rules), "agent:main:discord:channel:9");
    let direct = InboundContext { from: Some("+1"), chat_type: Some("direct"), ..InboundContext::default() };
    assert_eq!(key(&direct, &rules), "agent:main:main");
    let explicit = InboundContext { session_key: Some(" Agent:X:Y "), ..direct };
    assert_eq!(key(&explicit, &rules), "agent:x:y");
    let global = KeyRules::new(AgentId::default(), "main", SessionScope::Global);
    assert_eq!(key(&from("discord:channel:9"), &global), "global");
    assert_eq!(key(&explicit, &global), "agent:x:y", "an explicit key wins over the scope");
    let malformed = InboundContext { session_key: Some("agent:x"), ..direct };
    assert!(session_key(&malformed, &rules).is_err(), "no message falls into another bucket");
}

#[test]
fn channels_are_known_by_id_and_alias() {
    let rows = [
        ("Telegram ", Some("telegram")),
        ("imsg", Some("imessage")),
        ("Teams", Some("msteams")),
        ("fax", None),
    ];
    for (name, expect) in rows {
        assert_eq!(group::surface(name), expect, "{name:?}");
    }
}

/// The bare spelling that a client or a door uses names the same session (`sessions.md` §1.1, "stored").
#[test]
fn bare_spellings_are_stored_under_the_default_agent() {
    let rows = [
        ("acp:U-1", "agent:ops:acp:u-1"),
        ("cron:job", "agent:ops:cron:job"),
        ("hook:gmail:m1", "agent:ops:hook:gmail:m1"),
        ("node-N1", "agent:ops:node-n1"),
        ("subagent:U", "agent:ops:subagent:u"),
    ];
    for (bare, stored) in rows {
        assert_eq!(ops().canonical(bare).unwrap().as_str(), stored);
    }
}

/// Vectors of `sessions.md` §1.6 (agent `main`, main key `work`).
#[test]
fn legacy_rows_get_canonical_keys() {
    let main = AgentId::default();
    let rules = KeyRules::new(main.clone(), "work", SessionScope::PerSender);
    let rows = [
        ("main", "agent:main:work"),
        ("work", "agent:main:work"),
        ("agent:main:main", "agent:main:work"),
        ("global", "global"),
        ("Unknown", "unknown"),
        ("subagent:ABC", "agent:main:subagent:abc"),
        ("group:123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("whatsapp:123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("whatsapp:group:123@g.us", "agent:main:whatsapp:group:123@g.us"),
        ("group:abc", "agent:main:unknown:group:abc"),
        ("telegram:group:-1", "agent:main:telegram:group:-1"),
        ("discord:channel:9", "agent:main:discord:channel:9"),
        ("cron:job", "agent:main:cron:job"),
        ("+1555", "agent:main:+1555"),
        ("slack:channel:C1:thread:1.2", "agent:main:slack:channel:c1:thread:1.2"),
    ];
    for (input, expect) in rows {
        assert_eq!(legacy::canonicalize(input, &main, &rules).unwrap().as_str(), expect, "{input:?}");
    }
    assert!(legacy::canonicalize("group:", &main, &rules).is_err());
}

/// Texts full of what keys are made of.
fn key_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("agent".to_owned()),
        Just("main".to_owned()),
        Just("dm".to_owned()),
        Just("direct".to_owned()),
        Just("group".to_owned()),
        Just("channel".to_owned()),
        Just("thread".to_owned()),
        Just("topic".to_owned()),
        Just("telegram".to_owned()),
        Just("cron".to_owned()),
        Just("run".to_owned()),
        Just("subagent".to_owned()),
        Just("node-".to_owned()),
        Just("Work".to_owned()),
        Just(String::new()),
        Just(" ".to_owned()),
        "[ -~äßȺİΣ日]{0,6}",
    ];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.join(":"))
}

fn any_rules() -> impl Strategy<Value = KeyRules> {
    (key_text(), any::<bool>()).prop_map(|(main_key, global)| {
        let scope = if global { SessionScope::Global } else { SessionScope::PerSender };
        KeyRules::new(AgentId::normalize("ops"), &main_key, scope)
    })
}

proptest! {
    #[test]
    fn reading_a_canonical_key_back_changes_nothing(text in key_text(), rules in any_rules()) {
        if let Ok(key) = rules.canonical(&text) {
            prop_assert_eq!(&rules.canonical(key.as_str()).unwrap(), &key);
            prop_assert_eq!(&SessionKey::parse(key.as_str()).unwrap(), &key);
            if let Some(direct) = key.direct_spelling() {
                prop_assert_eq!(&SessionKey::parse(&direct).unwrap(), &key);
                prop_assert_eq!(&rules.canonical(&direct.to_ascii_uppercase()).unwrap(), &key);
            }
        }
    }

    #[test]
    fn a_key_is_its_form_and_its_thread(text in key_text()) {
        if let Ok(key) = ops().canonical(&text) && let Some(agent) = key.agent() {
            let made = SessionKey::of(&agent, key.form()).unwrap();
            let whole = key.thread_id().map_or(Ok(made.clone()), |thread| made.with_thread(thread));
            prop_assert_eq!(whole.unwrap(), key);
        }
    }

    #[test]
    fn a_key_is_little_longer_than_its_text(text in key_text()) {
        if let Ok(key) = ops().canonical(&text) {
            // Lower case may take half as much again; the rest is `agent:ops:`, and `work` for blank names.
            prop_assert!(key.as_str().len() <= text.len() * 3 / 2 + "agent:ops:work".len());
        }
    }

    #[test]
    fn long_keys_are_taken_whole_or_refused(length in 1..12_000_usize) {
        match ops().canonical(&"k".repeat(length)) {
            Ok(key) => prop_assert_eq!(key.rest().len(), length),
            Err(error) => prop_assert!(matches!(error, KeyError::TooLong(n) if n >= length), "{}", error),
        }
    }

    #[test]
    fn no_text_panics(text in any::<String>(), agent in any::<String>()) {
        let _ = SessionKey::parse(&text);
        let _ = legacy::canonicalize(&text, &AgentId::normalize(&agent), &ops());
        let _ = group_of(&InboundContext { from: Some(&text), chat_type: Some(&agent), ..InboundContext::default() });
    }

    #[test]
    fn peer_keys_read_back_as_they_are_in_either_spelling(
        id in "[ -~日:]{0,20}", channel in "[a-z]{1,8}", kind in 0..3usize, scope in 0..4usize,
    ) {
        let agent = AgentId::default();
        let kind = [PeerKind::Direct, PeerKind::Group, PeerKind::Channel][kind];
        let dm_scope =
            [DmScope::Main, DmScope::PerPeer, DmScope::PerChannelPeer, DmScope::PerAccountChannelPeer][scope];
        let peer = Peer::new(kind, id);
        let key = PeerKey { agent: &agent, main_key: "main", channel: &channel, account: None, peer: &peer, dm_scope, links: &[] };
        let key = key.build().unwrap();
        prop_assert_eq!(&SessionKey::parse(key.as_str()).unwrap(), &key);
        if let Some(direct) = key.direct_spelling() {
            prop_assert_eq!(&SessionKey::parse(&direct).unwrap(), &key);
        }
    }
}
