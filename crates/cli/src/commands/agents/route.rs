//! `openclaw agents route`: which agent and session a message would reach, and by which rule. Ours; works without a
//! gateway, from the config alone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use openclaw_config::clock::now_ms;
use openclaw_config::{Config, registry};
use openclaw_sessions::SessionSettings;
use openclaw_sessions::entry::SendPolicy;
use openclaw_sessions::key::{DmScope, Peer, PeerKind, SessionKey};
use openclaw_sessions::reset::{self, ResetMode, ResetPolicy, ResetType, last_daily_reset};
use openclaw_sessions::routing::{self, Inbound, KeyReason, Route, ThreadStyle};
use openclaw_sessions::send_policy::{self, SendSubject};
use serde::Serialize;

use crate::args::{AgentsRouteArgs, given, given_text};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::output;

/// The answer as JSON; documented in `docs/sessions.md`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteReport {
    agent_id: String,
    channel: String,
    account_id: String,
    session_key: String,
    main_session_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session_key: Option<String>,
    matched_by: &'static str,
    binding: Option<BindingShown>,
    key: KeyReason,
    thread: Option<ThreadStyle>,
    reset: ResetShown,
    send_policy: SendPolicy,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BindingShown {
    index: usize,
    #[serde(rename = "match")]
    matches: String,
    agent_id: String,
    /// The agent is not in `agents.list`, so that the default agent answers.
    fallback: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResetShown {
    #[serde(rename = "type")]
    kind: &'static str,
    mode: ResetMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_hour: Option<i8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_minutes: Option<i64>,
    /// Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_daily_at: Option<i64>,
}

pub(super) fn run(args: &AgentsRouteArgs, context: &CliContext) -> CommandResult {
    let config = context.config()?;
    context.print_warnings_about(&["agents", "bindings"]);
    let settings = SessionSettings::from(config.as_ref());
    let inbound = inbound(args, config)?;
    if registry::by_any_name(&inbound.channel).is_none() {
        let known: Vec<&str> = registry::CHANNELS.iter().map(|info| info.id).collect();
        let text = format!(
            "Warning: there is no platform \"{}\" (there is: {}). No message comes from it.",
            output::one_line(&inbound.channel),
            known.join(", ")
        );
        output::error_line(&context.style.warn(&text));
    }
    let route = routing::resolve(&settings, &inbound)
        .map_err(|error| CommandFailure::new("bad-key", error.to_string()))?;
    let answer = answer(&settings, &inbound, &route, config, now_ms(), &TimeZone::system());
    if args.json {
        output::json(&answer);
    } else {
        text(&answer, &TimeZone::system()).iter().for_each(|line| output::row(line));
    }
    Ok(0)
}

fn inbound(args: &AgentsRouteArgs, config: &Config) -> Result<Inbound, CommandFailure> {
    let Some(channel) = given(Some(&args.channel)) else {
        return Err(CommandFailure::usage("--channel must not be blank"));
    };
    let peer = |text: &Option<String>| given(text.as_deref()).map(peer).transpose();
    let channel = openclaw_sessions::key::group::surface(channel).unwrap_or(channel);
    let inherits = config.document().pointer(&format!("/channels/{channel}/thread/inheritParent"));
    Ok(Inbound {
        channel: channel.to_owned(),
        account_id: given_text(&args.account),
        peer: peer(&args.peer)?,
        parent_peer: peer(&args.parent_peer)?,
        guild_id: given_text(&args.guild),
        team_id: given_text(&args.team),
        thread_id: given_text(&args.thread),
        thread_inherits: inherits.is_some_and(|value| value == true),
    })
}

/// `group:<id>`, `channel:<id>`, `dm:<id>`, `direct:<id>`, or an id alone for a person.
fn peer(text: &str) -> Result<Peer, CommandFailure> {
    let Some((kind, id)) = text.split_once(':') else { return Ok(Peer::new(PeerKind::Direct, text)) };
    match kind.trim().to_lowercase().as_str() {
        "dm" | "direct" => Ok(Peer::new(PeerKind::Direct, id)),
        "group" => Ok(Peer::new(PeerKind::Group, id)),
        "channel" => Ok(Peer::new(PeerKind::Channel, id)),
        // Ids of some channels have a colon too: `19:…`.
        word if !word.chars().all(|c| c.is_ascii_alphabetic()) => Ok(Peer::new(PeerKind::Direct, text)),
        _ => Err(CommandFailure::usage(format!("\"{text}\" begins with an unknown kind \"{kind}\"")).hint(
            format!("Kinds are group, channel, dm and direct. A person whose id has a colon: dm:{text}"),
        )),
    }
}

fn answer(
    settings: &SessionSettings,
    inbound: &Inbound,
    route: &Route,
    config: &Config,
    now: i64,
    zone: &TimeZone,
) -> RouteReport {
    let kind = inbound.peer.as_ref().map(|peer| peer.kind);
    let is_group = matches!(kind, Some(PeerKind::Group | PeerKind::Channel));
    let reset_type = ResetType::of(&route.session_key, route.why.thread.is_some(), is_group);
    let policy = reset::policy(&settings.section, reset_type, Some(&route.channel));
    let subject = SendSubject {
        key: &route.session_key,
        entry: None,
        channel: Some(&route.channel),
        chat_type: kind.map(Into::into),
    };
    let shown = |bound: &routing::BoundBy| BindingShown {
        index: bound.index,
        matches: config
            .bindings
            .get(bound.index)
            .map(|binding| binding.matches.to_string())
            .unwrap_or_default(),
        agent_id: bound.named.to_string(),
        fallback: bound.is_fallback(),
    };
    RouteReport {
        agent_id: route.agent_id.to_string(),
        channel: route.channel.clone(),
        account_id: route.account_id.clone(),
        session_key: route.session_key.to_string(),
        main_session_key: route.main_session_key.to_string(),
        parent_session_key: route.parent_session_key.as_ref().map(SessionKey::to_string),
        matched_by: route.why.matched_by.as_str(),
        binding: route.why.binding.as_ref().map(shown),
        key: route.why.key.clone(),
        thread: route.why.thread,
        reset: reset_shown(reset_type, &policy, now, zone),
        send_policy: send_policy::resolve(settings.section.send_policy.as_ref(), &subject),
    }
}

fn reset_shown(kind: ResetType, policy: &ResetPolicy, now: i64, zone: &TimeZone) -> ResetShown {
    let is_daily = policy.mode == ResetMode::Daily;
    ResetShown {
        kind: match kind {
            ResetType::Direct => "direct",
            ResetType::Group => "group",
            ResetType::Thread => "thread",
        },
        mode: policy.mode,
        at_hour: is_daily.then_some(policy.at_hour),
        idle_minutes: policy.idle_minutes,
        next_daily_at: if is_daily { next_daily_reset(policy.at_hour, now, zone) } else { None },
    }
}

/// The first daily reset after `now`. A day of the clock may have 23 or 25 hours.
fn next_daily_reset(hour: i8, now: i64, zone: &TimeZone) -> Option<i64> {
    const HOUR_MS: i64 = 3_600_000;
    (1..=26).map(|hours| last_daily_reset(hour, now + hours * HOUR_MS, zone)).find(|reset| *reset > now)
}

fn text(answer: &RouteReport, zone: &TimeZone) -> Vec<String> {
    let mut lines = vec![
        format!("Agent:   {}", answer.agent_id),
        format!("Session: {}", answer.session_key),
        format!("Agent because:   {}", why_agent(answer)),
        format!("Session because: {}", why_session(answer)),
    ];
    lines.extend(answer.parent_session_key.as_ref().map(|key| format!("Starts with the history of: {key}")));
    lines.push(format!("Resets:  {} (as {})", resets(&answer.reset, zone), answer.reset.kind));
    lines.push(match answer.send_policy {
        SendPolicy::Deny => "Sending: denied by session.sendPolicy".to_owned(),
        SendPolicy::Allow => "Sending: allowed".to_owned(),
    });
    lines
}

fn why_agent(answer: &RouteReport) -> String {
    let Some(binding) = &answer.binding else {
        return "no binding claims it, the default agent answers (default)".to_owned();
    };
    let fallback = if binding.fallback {
        format!("; its agent \"{}\" is not in agents.list, the default agent answers", binding.agent_id)
    } else {
        String::new()
    };
    format!("bindings[{}] claims {} ({}){fallback}", binding.index, binding.matches, answer.matched_by)
}

fn why_session(answer: &RouteReport) -> String {
    let base = match &answer.key {
        KeyReason::GlobalScope => "session.scope is global, everybody shares one session".to_owned(),
        KeyReason::NoPeer => "no peer is given, which is the main session".to_owned(),
        KeyReason::BlankPeer => "the peer has no id, which is the main session".to_owned(),
        KeyReason::MainSession => "dmScope main, direct chats share the main session".to_owned(),
        KeyReason::DirectChat { dm_scope, identity_link } => {
            let link =
                identity_link.as_ref().map(|link| format!(", identityLinks.{} has {}", link.name, link.id));
            format!(
                "dmScope {}, one session a {}{}",
                dm_scope.as_str(),
                scope_unit(*dm_scope),
                link.unwrap_or_default()
            )
        }
        KeyReason::Room { kind } => format!("one session a {}", kind.segment()),
    };
    match answer.thread {
        Some(ThreadStyle::Suffix) => format!("{base}; a thread has its own"),
        Some(ThreadStyle::Room) => format!("{base}; a thread is a channel of its own"),
        Some(ThreadStyle::Topic) => format!("{base}; a topic has its own"),
        None => base,
    }
}

fn scope_unit(scope: DmScope) -> &'static str {
    match scope {
        DmScope::Main => "agent",
        DmScope::PerPeer => "person",
        DmScope::PerChannelPeer => "person and channel",
        DmScope::PerAccountChannelPeer => "person, channel and account",
    }
}

fn resets(reset: &ResetShown, zone: &TimeZone) -> String {
    let next = reset
        .next_daily_at
        .and_then(|at| Timestamp::from_millisecond(at).ok())
        .map(|at| format!(" (next {})", at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %Z")));
    let daily = reset.at_hour.map(|hour| format!("daily at {hour:02}:00{}", next.unwrap_or_default()));
    let idle = reset.idle_minutes.map(|minutes| format!("after {minutes} min idle"));
    daily.into_iter().chain(idle).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;
    use serde_json::{Value, json};

    use super::*;

    const CONFIG: &str = "{
        agents: { list: [{ id: 'home' }, { id: 'work' }] },
        bindings: [
            { agentId: 'ghost', match: { channel: 'slack', accountId: '*' } },
            { agentId: 'work', match: { channel: 'telegram', peer: { kind: 'group', id: '-100' } } },
        ],
        session: {
            dmScope: 'per-peer', identityLinks: { Alice: ['telegram:111'] },
            resetByType: { thread: { mode: 'idle', idleMinutes: 30 } },
            sendPolicy: { rules: [{ action: 'deny', match: { channel: 'slack' } }] },
        },
        channels: { slack: { thread: { inheritParent: true } } },
    }";

    /// 2026-11-21 12:00 UTC.
    const NOON: i64 = 1_795_262_400_000;

    fn ask(args: &AgentsRouteArgs) -> RouteReport {
        let config = Config::from_json5(CONFIG, &Environment::new([("HOME", "/h")], "/")).unwrap();
        let settings = SessionSettings::from(config.as_ref());
        let inbound = inbound(args, &config).unwrap();
        let route = routing::resolve(&settings, &inbound).unwrap();
        answer(&settings, &inbound, &route, &config, NOON, &TimeZone::UTC)
    }

    fn args(channel: &str, peer: &str, thread: Option<&str>) -> AgentsRouteArgs {
        AgentsRouteArgs {
            channel: channel.to_owned(),
            peer: Some(peer.to_owned()),
            thread: thread.map(str::to_owned),
            ..AgentsRouteArgs::default()
        }
    }

    #[test]
    fn the_decision_and_its_rules_are_told() {
        let said = |args: AgentsRouteArgs| text(&ask(&args), &TimeZone::UTC).join("\n");
        expect_test::expect![[r#"
            Agent:   work
            Session: agent:work:telegram:group:-100:topic:9
            Agent because:   bindings[1] claims telegram peer=group:-100 (binding.peer.parent)
            Session because: one session a group; a topic has its own
            Resets:  after 30 min idle (as thread)
            Sending: allowed"#]]
        .assert_eq(&said(args("telegram", "group:-100", Some("9"))));
        expect_test::expect![[r#"
            Agent:   home
            Session: agent:home:dm:alice
            Agent because:   no binding claims it, the default agent answers (default)
            Session because: dmScope per-peer, one session a person, identityLinks.Alice has telegram:111
            Resets:  daily at 04:00 (next 2026-11-22 04:00 UTC) (as direct)
            Sending: allowed"#]]
        .assert_eq(&said(args("Telegram", "111", None)));
        expect_test::expect![[r#"
            Agent:   home
            Session: agent:home:slack:channel:c1:thread:17.2
            Agent because:   bindings[0] claims slack accountId=* (binding.channel); its agent "ghost" is not in agents.list, the default agent answers
            Session because: one session a channel; a thread has its own
            Starts with the history of: agent:home:slack:channel:c1
            Resets:  after 30 min idle (as thread)
            Sending: denied by session.sendPolicy"#]]
        .assert_eq(&said(args("slack", "channel:C1", Some("17.2"))));
    }

    #[test]
    fn the_json_has_its_documented_shape() {
        let answer = serde_json::to_value(ask(&args("telegram", "dm:111", None))).unwrap();
        let expect = json!({
            "agentId": "home", "channel": "telegram", "accountId": "default", "sessionKey": "agent:home:dm:alice",
            "mainSessionKey": "agent:home:main", "matchedBy": "default", "binding": null,
            "key": {"rule": "direct-chat", "dmScope": "per-peer", "identityLink": {"name": "Alice", "id": "telegram:111"}},
            "thread": null, "sendPolicy": "allow",
            "reset": {"type": "direct", "mode": "daily", "atHour": 4, "nextDailyAt": NOON + 16 * 3_600_000},
        });
        assert_eq!(answer, expect);
        let bound = serde_json::to_value(ask(&args("slack", "channel:C1", None))).unwrap();
        let binding: &Value = &bound["binding"];
        let expect = json!({"index": 0, "match": "slack accountId=*", "agentId": "ghost", "fallback": true});
        assert_eq!(*binding, expect);
    }

    #[test]
    fn peers_are_persons_unless_they_say_otherwise() {
        let rows = [
            ("+1555", PeerKind::Direct, "+1555"),
            ("DM:7", PeerKind::Direct, "7"),
            ("direct:7", PeerKind::Direct, "7"),
            ("group:-100:topic:9", PeerKind::Group, "-100:topic:9"),
            ("channel:C1", PeerKind::Channel, "C1"),
            ("19:abc", PeerKind::Direct, "19:abc"),
        ];
        for (text, kind, id) in rows {
            assert_eq!(peer(text), Ok(Peer::new(kind, id)), "{text}");
        }
        assert!(peer("foo:bar").unwrap_err().message.contains("unknown kind \"foo\""));
    }

    #[test]
    fn the_next_daily_reset_is_found_across_the_changes_of_the_clock() {
        let zone = TimeZone::get("America/New_York").unwrap();
        let at = |text: &str| text.parse::<jiff::Zoned>().unwrap().timestamp().as_millisecond();
        let rows = [
            ("2026-03-07T12:00[America/New_York]", "2026-03-08T04:00[America/New_York]"),
            ("2026-03-08T03:59[America/New_York]", "2026-03-08T04:00[America/New_York]"),
            ("2026-10-31T04:00[America/New_York]", "2026-11-01T04:00[America/New_York]"),
            ("2026-11-01T04:00[America/New_York]", "2026-11-02T04:00[America/New_York]"),
        ];
        for (now, next) in rows {
            assert_eq!(next_daily_reset(4, at(now), &zone), Some(at(next)), "{now}");
        }
    }
}
