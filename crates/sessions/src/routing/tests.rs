use openclaw_config::settings::Session;
use serde_json::json;

use super::*;
use crate::key::{DmScope, PeerKind};
use crate::settings::AgentRef;

fn settings(agents: &[&str], bindings: serde_json::Value) -> SessionSettings {
    let bindings = serde_json::from_value(bindings).unwrap();
    let agents =
        agents.iter().map(|id| AgentRef { id: AgentId::normalize(id), default: *id == "home" }).collect();
    SessionSettings { agents, bindings, ..SessionSettings::default() }
}

fn inbound(channel: &str, account: &str, kind: PeerKind, id: &str) -> Inbound {
    Inbound {
        channel: channel.into(),
        account_id: Some(account.into()).filter(|a: &String| !a.is_empty()),
        peer: Some(Peer::new(kind, id)),
        ..Inbound::default()
    }
}

fn check(settings: &SessionSettings, inbound: &Inbound, expect: (&str, &str, &str)) {
    let route = resolve(settings, inbound).unwrap();
    let got = (route.agent_id.as_str(), route.session_key.as_str(), route.why.matched_by.as_str());
    assert_eq!(got, expect, "{inbound:?}");
}

/// Vectors of `sessions.md` §2.2.
#[test]
fn account_and_channel_bindings() {
    use PeerKind::{Channel, Direct};
    let work = settings(&[], json!([{"agentId": "work", "match": {"channel": "whatsapp"}}]));
    check(&work, &inbound("whatsapp", "", Direct, "+1"), ("work", "agent:work:main", "binding.account"));
    check(&work, &inbound("whatsapp", "biz", Direct, "+1"), ("main", "agent:main:main", "default"));
    // Accounts are compared as they are written; blanks around them do not count.
    let biz =
        settings(&[], json!([{"agentId": "work", "match": {"channel": "WhatsApp ", "accountId": " Biz "}}]));
    check(&biz, &inbound("whatsapp", "Biz ", Direct, "+1"), ("work", "agent:work:main", "binding.account"));
    check(&biz, &inbound("whatsapp", "biz", Direct, "+1"), ("main", "agent:main:main", "default"));

    let ghost =
        settings(&["home"], json!([{"agentId": "ghost", "match": {"channel": "discord", "accountId": "*"}}]));
    let expect = ("home", "agent:home:discord:channel:c1", "binding.channel");
    check(&ghost, &inbound("discord", "biz", Channel, "c1"), expect);

    let unlisted = settings(&[], json!([{"agentId": "defaultAcct", "match": {"channel": "whatsapp"}}]));
    let expect = ("defaultacct", "agent:defaultacct:main", "binding.account");
    check(&unlisted, &inbound("whatsapp", "", Direct, "+1"), expect);
}

#[test]
fn peer_beats_account_and_guild() {
    use PeerKind::{Channel, Direct};
    let peer = settings(
        &[],
        json!([
            {"agentId": "a", "match": {"channel": "whatsapp", "accountId": "biz", "peer": {"kind": "dm", "id": "+1000"}}},
            {"agentId": "b", "match": {"channel": "whatsapp", "accountId": "biz"}},
        ]),
    );
    check(&peer, &inbound("whatsapp", "biz", Direct, "+1000"), ("a", "agent:a:main", "binding.peer"));
    check(&peer, &inbound("whatsapp", "biz", Direct, "+1001"), ("b", "agent:b:main", "binding.account"));

    let rooms = settings(
        &[],
        json!([
            {"agentId": "guild", "match": {"channel": "discord", "guildId": "g1"}},
            {"agentId": "acct", "match": {"channel": "discord", "accountId": "default"}},
            {"agentId": "chan", "match": {"channel": "discord", "peer": {"kind": "channel", "id": "c1"}}},
        ]),
    );
    let in_guild = |id| Inbound { guild_id: Some("g1".into()), ..inbound("discord", "", Channel, id) };
    check(&rooms, &in_guild("c1"), ("chan", "agent:chan:discord:channel:c1", "binding.peer"));
    check(&rooms, &in_guild("c2"), ("guild", "agent:guild:discord:channel:c2", "binding.guild"));
    check(
        &rooms,
        &inbound("discord", "", Channel, "c2"),
        ("acct", "agent:acct:discord:channel:c2", "binding.account"),
    );
}

#[test]
fn threads_inherit_from_their_parent() {
    let thread = Inbound {
        parent_peer: Some(Peer::new(PeerKind::Channel, "P")),
        guild_id: Some("g1".into()),
        ..inbound("discord", "", PeerKind::Channel, "T")
    };
    let parent =
        json!({"agentId": "adecco", "match": {"channel": "discord", "peer": {"kind": "channel", "id": "P"}}});
    let own =
        json!({"agentId": "x", "match": {"channel": "discord", "peer": {"kind": "channel", "id": "T"}}});
    let guild = json!({"agentId": "guild", "match": {"channel": "discord", "guildId": "g1"}});
    let rows = [
        (json!([parent]), ("adecco", "agent:adecco:discord:channel:t", "binding.peer.parent")),
        (json!([parent, own]), ("x", "agent:x:discord:channel:t", "binding.peer")),
        (json!([guild, parent]), ("adecco", "agent:adecco:discord:channel:t", "binding.peer.parent")),
    ];
    for (bindings, expect) in rows {
        check(&settings(&[], bindings), &thread, expect);
    }
}

#[test]
fn every_given_field_of_a_binding_must_hold() {
    let both = settings(
        &[],
        json!([{"agentId": "a", "match": {"channel": "discord", "guildId": "g2", "peer": {"kind": "channel", "id": "c1"}}}]),
    );
    let elsewhere =
        Inbound { guild_id: Some("g1".into()), ..inbound("discord", "", PeerKind::Channel, "c1") };
    check(&both, &elsewhere, ("main", "agent:main:discord:channel:c1", "default"));
}

#[test]
fn team_bindings_match_the_workspace() {
    let team = settings(&[], json!([{"agentId": "t", "match": {"channel": "slack", "teamId": "T1"}}]));
    let message = Inbound { team_id: Some("T1".into()), ..inbound("slack", "", PeerKind::Channel, "C1") };
    check(&team, &message, ("t", "agent:t:slack:channel:c1", "binding.team"));
}

/// Tiers 3 to 6 of `sessions.md` §2.2 against the order of the file.
#[test]
fn the_more_specific_tier_wins_and_inside_it_the_first() {
    let message = Inbound {
        guild_id: Some("G1".into()),
        team_id: Some("T1".into()),
        ..inbound("slack", "biz", PeerKind::Channel, "c")
    };
    let bound = |agent: &str, extra: serde_json::Value| {
        let mut matches = json!({"channel": "slack", "accountId": "biz"});
        matches.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"agentId": agent, "match": matches})
    };
    let any = bound("x", json!({"accountId": "*"}));
    let account = bound("y", json!({}));
    let team = bound("t", json!({"teamId": "T1"}));
    let guild = bound("g", json!({"guildId": "G1"}));
    let both = bound("b", json!({"guildId": "G1", "teamId": "T1"}));
    let rows = [
        (json!([any, account]), ("y", "agent:y:slack:channel:c", "binding.account")),
        (json!([account, team]), ("t", "agent:t:slack:channel:c", "binding.team")),
        (json!([team, guild]), ("g", "agent:g:slack:channel:c", "binding.guild")),
        (json!([team, both]), ("b", "agent:b:slack:channel:c", "binding.guild")),
        (json!([account, bound("later", json!({}))]), ("y", "agent:y:slack:channel:c", "binding.account")),
        (
            json!([guild, bound("later", json!({"guildId": "G1"}))]),
            ("g", "agent:g:slack:channel:c", "binding.guild"),
        ),
    ];
    for (bindings, expect) in rows {
        check(&settings(&[], bindings), &message, expect);
    }
}

/// Tests equality of ids as `sessions.md` §2.2 defines it.
#[test]
fn ids_are_compared_as_written_without_the_blanks_around_them() {
    let room = |id| json!({"channel": "slack", "peer": {"kind": "channel", "id": id}});
    let blank_account = || json!({"channel": "slack", "accountId": " "});
    let rows = [
        (room("P"), "", "P", "binding.peer"),
        (room("P"), "", "p", "default"),
        (room(" P "), "", "P", "binding.peer"),
        (room("P"), "", " P ", "binding.peer"),
        (blank_account(), "", "P", "binding.account"),
        (blank_account(), "default", "P", "binding.account"),
        (blank_account(), "biz", "P", "default"),
    ];
    for (matches, account, id, tier) in rows {
        let agent = if tier == "default" { "main" } else { "a" };
        let config = settings(&[], json!([{"agentId": "a", "match": matches}]));
        let expect = (agent, &*format!("agent:{agent}:slack:channel:p"), tier);
        check(&config, &inbound("slack", account, PeerKind::Channel, id), expect);
    }
}

#[test]
fn scope_global_and_dm_scope_shape_the_key() {
    let mut config = settings(&[], json!([]));
    config.section.dm_scope = DmScope::PerPeer;
    check(&config, &inbound("telegram", "", PeerKind::Direct, "7"), ("main", "agent:main:dm:7", "default"));
    config.section.dm_scope = DmScope::Main;
    config.section.scope = openclaw_protocol::SessionScope::Global;
    check(&config, &inbound("telegram", "", PeerKind::Direct, "7"), ("main", "global", "default"));
}

#[test]
fn bound_accounts_are_distinct_and_sorted() {
    let config = settings(
        &["home"],
        json!([
            {"agentId": "work", "match": {"channel": "Telegram", "accountId": "zeta"}},
            {"agentId": "home", "match": {"channel": "telegram", "accountId": "*"}},
            {"agentId": "home", "match": {"channel": "telegram", "accountId": "Alpha Bot"}},
            {"agentId": "home", "match": {"channel": "telegram", "accountId": "zeta"}},
            {"agentId": "home", "match": {"channel": "slack", "accountId": "beta"}},
        ]),
    );
    assert_eq!(bound_accounts(&config, "telegram"), ["alpha-bot", "zeta"]);
    assert_eq!(default_agent_account(&config, "telegram").as_deref(), Some("zeta"));
}

/// The table of threads in `sessions.md` §1.3.
#[test]
fn threads_stand_where_their_channel_puts_them() {
    use PeerKind::{Channel, Direct, Group};
    let config = settings(&[], json!([]));
    type Row =
        (&'static str, PeerKind, &'static str, Option<&'static str>, &'static str, Option<&'static str>);
    let rows: &[Row] = &[
        ("slack", Channel, "C1", Some("17.2"), "agent:main:slack:channel:c1:thread:17.2", None),
        ("slack", Channel, "C123", Some("456"), "agent:main:slack:channel:c123:thread:456", None),
        ("telegram", Group, "-100123456", Some("42"), "agent:main:telegram:group:-100123456:topic:42", None),
        ("slack", Channel, "C1", Some(" "), "agent:main:slack:channel:c1", None),
        ("slack", Direct, "U1", Some("17.2"), "agent:main:main:thread:17.2", None),
        (
            "discord",
            Channel,
            "P",
            Some("T"),
            "agent:main:discord:channel:t",
            Some("agent:main:discord:channel:p"),
        ),
        ("discord", Channel, "P", None, "agent:main:discord:channel:p", None),
        ("discord", Channel, "T", Some("T"), "agent:main:discord:channel:t", None),
        ("telegram", Group, "-100", Some("9"), "agent:main:telegram:group:-100:topic:9", None),
        ("telegram", Group, "-100:topic:9", Some("9"), "agent:main:telegram:group:-100:topic:9", None),
        ("telegram", Direct, "7", Some("9"), "agent:main:main:thread:9", None),
        ("msteams", Channel, "19:x", Some("4"), "agent:main:msteams:channel:19:x:thread:4", None),
    ];
    for (channel, kind, id, thread, expect, parent) in rows {
        let message = Inbound { thread_id: thread.map(str::to_owned), ..inbound(channel, "", *kind, id) };
        let route = resolve(&config, &message).unwrap();
        let got = (route.session_key.as_str(), route.parent_session_key.as_ref().map(SessionKey::as_str));
        assert_eq!(got, (*expect, *parent), "{channel} {id} {thread:?}");
    }
    let inherits = Inbound {
        thread_id: Some("17.2".into()),
        thread_inherits: true,
        ..inbound("slack", "", PeerKind::Channel, "C1")
    };
    let parent = resolve(&config, &inherits).unwrap().parent_session_key;
    assert_eq!(parent.as_ref().map(SessionKey::as_str), Some("agent:main:slack:channel:c1"));
}

#[test]
fn a_topic_is_claimed_by_the_binding_of_its_group() {
    let config = settings(
        &[],
        json!([{"agentId": "work", "match": {"channel": "telegram", "peer": {"kind": "group", "id": "-100"}}}]),
    );
    let expect = ("work", "agent:work:telegram:group:-100:topic:9", "binding.peer.parent");
    check(&config, &inbound("telegram", "", PeerKind::Group, "-100:topic:9"), expect);
    let beside = Inbound { thread_id: Some("9".into()), ..inbound("telegram", "", PeerKind::Group, "-100") };
    check(&config, &beside, expect);
}

#[test]
fn the_rules_that_decided_are_told() {
    let mut config = settings(
        &["home"],
        json!([
            {"agentId": "x", "match": {"channel": "slack"}},
            {"agentId": "ghost", "match": {"channel": "telegram", "accountId": "*"}},
        ]),
    );
    config.section.dm_scope = DmScope::PerPeer;
    config.section.identity_links = vec![("Alice".into(), vec!["discord:2".into(), " Telegram:111 ".into()])];
    let route = resolve(&config, &inbound("telegram", "Biz", PeerKind::Direct, "111")).unwrap();
    let link = IdentityLink { name: "Alice".into(), id: "Telegram:111".into() };
    let why = RouteReason {
        matched_by: MatchedBy::Channel,
        binding: Some(BoundBy {
            index: 1,
            matches: config.bindings[1].matches.clone(),
            named: AgentId::normalize("ghost"),
            agent: AgentId::normalize("home"),
        }),
        key: KeyReason::DirectChat { dm_scope: DmScope::PerPeer, identity_link: Some(link) },
        thread: None,
    };
    assert_eq!(route.why, why);
    assert!(route.why.binding.is_some_and(|bound| bound.is_fallback()));
    assert_eq!((route.session_key.as_str(), route.account_id.as_str()), ("agent:home:dm:alice", "Biz"));

    let reasons = [
        (Some(Peer::new(PeerKind::Direct, " ")), KeyReason::BlankPeer, "agent:home:main"),
        (None, KeyReason::NoPeer, "agent:home:main"),
        (
            Some(Peer::new(PeerKind::Group, "G")),
            KeyReason::Room { kind: PeerKind::Group },
            "agent:home:signal:group:g",
        ),
    ];
    for (peer, reason, key) in reasons {
        let message = Inbound { channel: "signal".into(), peer, ..Inbound::default() };
        let route = resolve(&config, &message).unwrap();
        assert_eq!((route.why.key, route.session_key.as_str()), (reason, key), "{message:?}");
    }
}

#[test]
fn the_main_session_has_its_configured_name() {
    let config = SessionSettings {
        section: Session { main_key: " Work ".into(), ..Session::default() },
        ..settings(&[], json!([]))
    };
    check(&config, &inbound("telegram", "", PeerKind::Direct, "1"), ("main", "agent:main:work", "default"));
}

#[test]
fn the_first_agent_marked_as_default_answers() {
    let agent = |id: &str, default| AgentRef { id: AgentId::normalize(id), default };
    let rows = [
        (vec![], "main"),
        (vec![agent("a", false), agent("b", false)], "a"),
        (vec![agent("a", false), agent("b", true)], "b"),
        (vec![agent("a", false), agent("B Two", true), agent("c", true)], "b-two"),
    ];
    for (agents, expect) in rows {
        let config = SessionSettings { agents, ..SessionSettings::default() };
        check(
            &config,
            &inbound("telegram", "", PeerKind::Direct, "1"),
            (expect, &format!("agent:{expect}:main"), "default"),
        );
    }
}

#[test]
fn a_peer_whose_key_would_be_too_long_is_refused() {
    let config = settings(&[], json!([]));
    let error = resolve(&config, &inbound("signal", "", PeerKind::Group, &"g".repeat(10_000))).unwrap_err();
    assert!(matches!(error, KeyError::TooLong(n) if n > 10_000), "{error}");
}

mod laws {
    use proptest::prelude::*;

    use super::*;
    use openclaw_config::settings::{Binding, BindingMatch};

    fn some(text: &'static str) -> impl Strategy<Value = Option<String>> {
        prop::option::of(text.prop_map(|text: String| text))
    }

    fn a_peer() -> impl Strategy<Value = Peer> {
        let kind = prop_oneof![Just(PeerKind::Direct), Just(PeerKind::Group), Just(PeerKind::Channel)];
        (kind, "[a-c]{1}(:topic:[12])?").prop_map(|(kind, id)| Peer::new(kind, id))
    }

    fn a_channel() -> impl Strategy<Value = String> {
        prop_oneof![Just("telegram"), Just("discord"), Just("slack")].prop_map(str::to_owned)
    }

    fn a_binding() -> impl Strategy<Value = Binding> {
        let account = prop_oneof![Just(None), Just(Some("*".to_owned())), Just(Some("biz".to_owned()))];
        let matches = (a_channel(), account, prop::option::of(a_peer()), some("[gh]"), some("[tu]"));
        ("[a-d]", matches).prop_map(|(agent_id, (channel, account_id, peer, guild_id, team_id))| Binding {
            agent_id,
            matches: BindingMatch { channel, account_id, peer, guild_id, team_id },
        })
    }

    prop_compose! {
        fn a_message()(
            channel in a_channel(), account_id in some("(biz)?"), peer in prop::option::of(a_peer()),
            parent_peer in prop::option::of(a_peer()), guild_id in some("[gh]"), team_id in some("[tu]"),
            thread_id in some("[12]"), thread_inherits in any::<bool>(),
        ) -> Inbound {
            Inbound { channel, account_id, peer, parent_peer, guild_id, team_id, thread_id, thread_inherits }
        }
    }

    prop_compose! {
        fn some_settings()(
            bindings in prop::collection::vec(a_binding(), 0..6), listed in any::<bool>(), scope in 0..4usize,
        ) -> SessionSettings {
            let agents = if listed { vec!["a", "b"] } else { vec![] };
            SessionSettings {
                bindings,
                agents: agents.into_iter().map(|id| AgentRef { id: AgentId::normalize(id), default: false }).collect(),
                section: Session {
                    dm_scope: [DmScope::Main, DmScope::PerPeer, DmScope::PerChannelPeer, DmScope::PerAccountChannelPeer][scope],
                    ..Session::default()
                },
            }
        }
    }

    proptest! {
        #[test]
        fn bindings_of_other_channels_change_nothing(settings in some_settings(), message in a_message()) {
            let mut narrow = settings.clone();
            narrow.bindings.retain(|binding| binding.matches.channel == message.channel);
            let (all, own) = (resolve(&settings, &message).unwrap(), resolve(&narrow, &message).unwrap());
            prop_assert_eq!((&all.agent_id, &all.session_key), (&own.agent_id, &own.session_key));
            prop_assert_eq!(all.why.matched_by, own.why.matched_by);
        }

        #[test]
        fn the_binding_that_decides_holds_in_every_field(settings in some_settings(), message in a_message()) {
            let route = resolve(&settings, &message).unwrap();
            let Some(bound) = route.why.binding else { return Ok(()) };
            let wanted = &settings.bindings[bound.index].matches;
            prop_assert_eq!(&wanted.channel, &message.channel);
            prop_assert!(wanted.guild_id.is_none() || wanted.guild_id == message.guild_id);
            prop_assert!(wanted.team_id.is_none() || wanted.team_id == message.team_id);
            let account = wanted.account_id.as_deref().unwrap_or("default");
            prop_assert!(account == "*" || account == route.account_id);
            prop_assert_eq!(wanted.peer.is_some(), route.why.matched_by <= MatchedBy::ParentPeer);
        }

        #[test]
        fn a_less_specific_binding_never_takes_a_message_away(
            settings in some_settings(), message in a_message(), other in a_binding(),
        ) {
            let before = resolve(&settings, &message).unwrap();
            let mut more = settings;
            more.bindings.push(other);
            let after = resolve(&more, &message).unwrap();
            prop_assert!(after.why.matched_by <= before.why.matched_by);
            if after.why.matched_by == before.why.matched_by {
                prop_assert_eq!(after, before, "the order of the file decides inside a tier");
            }
        }

        #[test]
        fn a_routed_key_is_canonical_and_of_the_agent_that_answers(settings in some_settings(), message in a_message()) {
            let route = resolve(&settings, &message).unwrap();
            prop_assert_eq!(&settings.key_rules().canonical(route.session_key.as_str()).unwrap(), &route.session_key);
            prop_assert_eq!(route.session_key.agent(), Some(route.agent_id));
            if let Some(direct) = route.session_key.direct_spelling() {
                prop_assert_eq!(&settings.key_rules().canonical(&direct).unwrap(), &route.session_key);
            }
        }
    }
}
