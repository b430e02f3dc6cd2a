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
    let route = resolve(settings, inbound);
    let got = (route.agent_id.as_str(), route.session_key.as_str(), route.matched_by.as_str());
    assert_eq!(got, expect, "{inbound:?}");
}

/// Vectors of `sessions.md` §2.2.
#[test]
fn account_and_channel_bindings() {
    use PeerKind::{Channel, Direct};
    let work = settings(&[], json!([{"agentId": "work", "match": {"channel": "whatsapp"}}]));
    check(&work, &inbound("whatsapp", "", Direct, "+1"), ("work", "agent:work:main", "binding.account"));
    check(&work, &inbound("whatsapp", "biz", Direct, "+1"), ("main", "agent:main:main", "default"));

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

#[test]
fn scope_global_and_dm_scope_shape_the_key() {
    let mut config = settings(&[], json!([]));
    config.dm_scope = DmScope::PerPeer;
    check(&config, &inbound("telegram", "", PeerKind::Direct, "7"), ("main", "agent:main:dm:7", "default"));
    config.dm_scope = DmScope::Main;
    config.scope = crate::settings::Scope::Global;
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
