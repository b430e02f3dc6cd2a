//! Table tests of the sessions that an agent can see.

use openclaw_protocol::{AgentId, SessionKey, SessionScope};

use super::{Denied, Reference, Sight, TalkPolicy, ToolKind, Unseen, Viewer};
use crate::entry::SessionEntry;
use crate::key::KeyRules;

fn rules(scope: SessionScope) -> KeyRules {
    KeyRules::new(AgentId::normalize("main"), "main", scope)
}

fn viewer(agent: &str, key: &str, sight: Sight) -> Viewer {
    Viewer { agent: AgentId::normalize(agent), key: SessionKey::parse(key).unwrap(), sight }
}

fn spawned_by(parent: Option<&str>) -> SessionEntry {
    SessionEntry { spawned_by: parent.map(Into::into), ..SessionEntry::default() }
}

#[test]
fn a_sandbox_hides_what_was_not_spawned_from_it() {
    let rows = [
        ("agent:main:main", Some("agent:main:main"), Ok(())),
        // Spellings of the same parent.
        ("agent:main:main", Some("main"), Ok(())),
        ("agent:main:main", Some(" Agent:MAIN:main "), Ok(())),
        ("agent:main:telegram:dm:7", Some("agent:main:telegram:direct:7"), Ok(())),
        ("agent:main:main", Some("agent:main:other"), Err(Unseen::Hidden)),
        ("agent:main:main", Some(""), Err(Unseen::Hidden)),
        ("agent:main:main", None, Err(Unseen::Hidden)),
    ];
    let child = SessionKey::parse("agent:main:subagent:x").unwrap();
    for (own, parent, expect) in rows {
        let entry = spawned_by(parent);
        let own = viewer("main", own, Sight::OwnChildren);
        let seen = own.check(&child, Some(&entry), &rules(SessionScope::PerSender), TalkPolicy::default());
        assert_eq!(seen, expect, "{own:?} {parent:?}");
    }
    let own = viewer("main", "agent:main:main", Sight::OwnChildren);
    let seen = own.check(&child, None, &rules(SessionScope::PerSender), TalkPolicy::default());
    assert_eq!(seen, Err(Unseen::Hidden), "no row");
    let own = viewer("main", "agent:main:main", Sight::Full);
    assert_eq!(own.check(&child, None, &rules(SessionScope::PerSender), TalkPolicy::default()), Ok(()));
}

#[test]
fn a_sandbox_does_not_widen_what_agents_may_do() {
    let child = SessionKey::parse("agent:work:subagent:x").unwrap();
    let entry = spawned_by(Some("agent:main:main"));
    let own = viewer("main", "agent:main:main", Sight::OwnChildren);
    let seen = own.check(&child, Some(&entry), &rules(SessionScope::PerSender), TalkPolicy::default());
    assert_eq!(seen, Err(Unseen::Foreign(Denied::Disabled)));
}

#[test]
fn the_shared_session_is_the_own_one_of_who_talks_in_it() {
    let rules = rules(SessionScope::Global);
    let rows = [
        (viewer("work", "global", Sight::Full), "global", Ok(())),
        (
            viewer("work", "agent:work:x:group:1", Sight::Full),
            "global",
            Err(Unseen::Foreign(Denied::Disabled)),
        ),
        (viewer("main", "agent:main:x:group:1", Sight::Full), "global", Ok(())),
    ];
    for (own, key, expect) in rows {
        let key = SessionKey::parse(key).unwrap();
        assert_eq!(own.check(&key, None, &rules, TalkPolicy::default()), expect, "{own:?}");
    }
}

#[test]
fn texts_mean_keys_or_else_ids() {
    let (key, either) = (
        |text: &str| Ok(Reference::Key(SessionKey::parse(text).unwrap())),
        |text: &str| Ok(Reference::KeyOrId(SessionKey::parse(text).unwrap())),
    );
    let rows = [
        ("main", key("agent:work:main")),
        (" MAIN ", key("agent:work:main")),
        ("global", key("agent:work:main")),
        ("unknown", key("unknown")),
        ("agent:ops:main", key("agent:ops:main")),
        ("Agent:Ops:Discord:Group:Dev", key("agent:ops:discord:group:dev")),
        ("cron:job", key("agent:work:cron:job")),
        ("hook:1", key("agent:work:hook:1")),
        ("node-7", key("agent:work:node-7")),
        ("node:7", key("agent:work:node:7")),
        ("acp:x", key("agent:work:acp:x")),
        ("discord:group:dev", key("agent:work:discord:group:dev")),
        ("slack:channel:c1", key("agent:work:slack:channel:c1")),
        ("telegram:dm:7", either("agent:work:telegram:dm:7")),
        ("9f1c5c1e-8f0b-4f4f-9d6c-111111111111", either("agent:work:9f1c5c1e-8f0b-4f4f-9d6c-111111111111")),
        ("nightly", either("agent:work:nightly")),
        ("  ", Err(())),
        ("agent:", Err(())),
        ("a\nb", Err(())),
    ];
    let work = AgentId::normalize("work");
    for (text, expect) in rows {
        let read = Reference::read(text, &work, &rules(SessionScope::PerSender)).map_err(drop);
        assert_eq!(read, expect, "{text}");
    }
    let long = "x".repeat(10_000);
    assert!(Reference::read(&long, &work, &rules(SessionScope::PerSender)).is_err());
}

#[test]
fn a_main_key_of_ones_own_is_a_key_too() {
    let own = KeyRules::new(AgentId::normalize("main"), "home", SessionScope::PerSender);
    let main = || Ok(Reference::Key(SessionKey::parse("agent:main:home").unwrap()));
    for text in ["home", "main", "agent:main:main"] {
        assert_eq!(Reference::read(text, &AgentId::normalize("main"), &own), main(), "{text}");
    }
    let global = rules(SessionScope::Global);
    let read = Reference::read("main", &AgentId::normalize("work"), &global);
    assert_eq!(read, Ok(Reference::Key(SessionKey::global())));
}

#[test]
fn only_the_own_main_session_is_called_main() {
    let rows = [
        ("main", "agent:main:main", SessionScope::PerSender, "main"),
        ("work", "agent:work:main", SessionScope::PerSender, "main"),
        ("main", "agent:work:main", SessionScope::PerSender, "agent:work:main"),
        ("main", "agent:main:x", SessionScope::PerSender, "agent:main:x"),
        ("work", "global", SessionScope::Global, "main"),
    ];
    for (agent, key, scope, expect) in rows {
        let own = viewer(agent, &format!("agent:{agent}:other"), Sight::Full);
        let key = SessionKey::parse(key).unwrap();
        assert_eq!(own.shown(&key, &rules(scope)), expect, "{agent} {key}");
    }
}

#[test]
fn kinds_are_read_behind_the_agent() {
    let rows = [
        ("agent:main:main", ToolKind::Main),
        ("agent:work:main", ToolKind::Main),
        ("global", ToolKind::Main),
        ("agent:main:cron:job", ToolKind::Cron),
        ("agent:main:hook:1", ToolKind::Hook),
        ("agent:main:node-7", ToolKind::Node),
        ("agent:main:discord:group:dev", ToolKind::Group),
        ("agent:main:slack:channel:c1", ToolKind::Group),
        ("agent:main:slack:channel:c1:thread:1.2", ToolKind::Group),
        ("agent:main:telegram:dm:7", ToolKind::Other),
        ("agent:main:subagent:x", ToolKind::Other),
    ];
    for (key, expect) in rows {
        let key = SessionKey::parse(key).unwrap();
        let kind = ToolKind::of(&key, &SessionEntry::default(), &rules(SessionScope::PerSender));
        assert_eq!(kind, expect, "{key}");
        assert_eq!(ToolKind::parse(kind.as_str()), Some(kind));
    }
    assert_eq!(ToolKind::parse("nonsense"), None);
}
