use std::fs;

use openclaw_config::{Environment, load};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A home with this config.
struct Home {
    dir: TempDir,
}

impl Home {
    fn with(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".openclaw")).unwrap();
        fs::write(dir.path().join(".openclaw/openclaw.json"), config).unwrap();
        Self { dir }
    }

    fn load(&self) -> Loaded {
        let home = self.dir.path().to_str().unwrap();
        load(&Environment::new([("HOME", home)], home))
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The config without its stamp.
    fn config(&self) -> Value {
        let mut document = self.load().snapshot.parsed;
        document.as_object_mut().unwrap().remove("meta");
        document
    }
}

fn agent(home: &Home, id: &str) -> NewAgent {
    NewAgent {
        id: AgentId::normalize(id),
        name: id.to_owned(),
        workspace: home.path(&format!("ws-{id}")),
        agent_dir: None,
        model: None,
        bindings: Vec::new(),
        identity: IdentityLines::default(),
    }
}

fn id(text: &str) -> AgentId {
    AgentId::normalize(text)
}

fn bind(channel: &str, account: Option<&str>) -> NewBinding {
    NewBinding { channel: channel.to_owned(), account: account.map(str::to_owned) }
}

/// The recorded configs of `cli-agents-mutate.json`.
#[test]
fn the_first_added_agent_keeps_main_in_the_list() {
    let home = Home::with("{ gateway: { mode: 'local' } }");
    let new =
        NewAgent { agent_dir: Some(home.path("dir")), model: Some("a/b".into()), ..agent(&home, "work") };
    let created = create(&home.load(), &new, Actor::Cli).unwrap();
    assert_eq!(created.agent_dir, home.path("dir"));
    assert_eq!(created.bindings, BindingChanges::default());
    let entry = json!({
        "id": "work", "name": "work", "workspace": new.workspace, "agentDir": home.path("dir"), "model": "a/b",
    });
    let expect = json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "main"}, entry]}});
    assert_eq!(home.config(), expect);
    assert!(new.workspace.join("AGENTS.md").exists() && created.sessions_dir.is_dir());

    let identity = Identity { name: Some("Bob".into()), emoji: Some("X".into()), ..Identity::default() };
    let whole = set_identity(&home.load(), &new.id, &identity, Actor::Cli).unwrap();
    assert_eq!(whole, identity);
    let theme = Identity { theme: Some("calm".into()), ..Identity::default() };
    let whole = set_identity(&home.load(), &new.id, &theme, Actor::Cli).unwrap();
    assert_eq!(whole, Identity { theme: Some("calm".into()), ..identity });
    assert_eq!(
        home.config()["agents"]["list"][1]["identity"],
        json!({"name": "Bob", "emoji": "X", "theme": "calm"})
    );

    delete(&home.load(), &new.id, Files::Keep, Actor::Cli).unwrap();
    assert_eq!(home.config(), json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "main"}]}}));
    assert!(new.workspace.exists());
}

#[test]
fn names_that_are_taken_or_reserved_change_nothing() {
    let home = Home::with("{ agents: { list: [{ id: 'Home Agent', default: true }] } }");
    let before = home.config();
    let said = |error: RosterError| error.to_string();
    assert_eq!(
        said(create(&home.load(), &agent(&home, "main"), Actor::Cli).unwrap_err()),
        "\"main\" is reserved"
    );
    let taken = create(&home.load(), &agent(&home, "home-agent"), Actor::Cli).unwrap_err();
    assert_eq!(said(taken), "agent \"home-agent\" already exists");
    let keep = |name: &str| delete(&home.load(), &id(name), Files::Keep, Actor::Cli).unwrap_err();
    assert_eq!(said(keep("main")), "\"main\" cannot be deleted");
    assert_eq!(said(keep("ghost")), "agent \"ghost\" not found");
    let change = AgentChange { name: Some("x".into()), ..AgentChange::default() };
    assert_eq!(
        said(update(&home.load(), &id("ghost"), &change, Actor::Cli).unwrap_err()),
        "agent \"ghost\" not found"
    );
    assert_eq!(home.config(), before);
    assert!(!home.path("ws-home-agent").exists());
}

#[test]
fn comments_and_unknown_keys_stay() {
    let text =
        "{\n  // my agents\n  agents: {\n    list: [\n      { id: 'main' }, // the first\n    ],\n  },\n}\n";
    let home = Home::with(text);
    create(&home.load(), &agent(&home, "work"), Actor::Cli).unwrap();
    let written = || fs::read_to_string(home.path(".openclaw/openclaw.json")).unwrap();
    assert!(written().contains("// my agents") && written().contains("{ id: 'main' }, // the first"));
    delete(&home.load(), &id("work"), Files::Keep, Actor::Cli).unwrap();
    let stamped = written();
    let (body, _) = stamped.split_once("  meta").unwrap();
    assert_eq!(format!("{body}}}\n"), text);
}

#[test]
fn bindings_are_added_where_nobody_has_them() {
    let home = Home::with(
        "{ agents: { list: [{ id: 'main' }, { id: 'other' }] }, bindings: [
            { agentId: 'other', match: { channel: 'Telegram', accountId: 'default' } },
            { agentId: 'other', match: { channel: 'whatsapp', peer: { kind: 'dm', id: '+1' } } } ] }",
    );
    let bindings = vec![
        bind("telegram", None),
        bind("telegram", Some("ops")),
        bind("telegram", Some("ops")),
        bind("whatsapp", None),
        bind("slack", Some("*")),
    ];
    let created = create(&home.load(), &NewAgent { bindings, ..agent(&home, "work") }, Actor::Cli).unwrap();
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let expect = BindingChanges {
        added: texts(&["telegram accountId=ops", "whatsapp", "slack accountId=*"]),
        skipped: texts(&["telegram accountId=ops"]),
        conflicts: texts(&["telegram (agent=other)"]),
    };
    assert_eq!(created.bindings, expect);
    assert_eq!(
        home.config()["bindings"].as_array().unwrap()[2..],
        [
            json!({"agentId": "work", "match": {"channel": "telegram", "accountId": "ops"}}),
            json!({"agentId": "work", "match": {"channel": "whatsapp"}}),
            json!({"agentId": "work", "match": {"channel": "slack", "accountId": "*"}}),
        ]
    );
}

#[test]
fn a_deleted_agent_is_named_nowhere_and_its_directories_are_in_the_trash() {
    let home = Home::with(
        "{ agents: { list: [{ id: 'main', subagents: { allowAgents: ['work', 'x'] } }, { id: 'work' }, { id: 'x' }] },
           bindings: [{ agentId: 'Work', match: { channel: 'slack' } }, { agentId: 'x', match: { channel: 'signal' } }],
           tools: { agentToAgent: { allow: ['work', 'main'] } },
           broadcast: { strategy: 'parallel', '1@g.us': ['work'], '2@g.us': ['work', 'x'] } }",
    );
    let sessions = home.path(".openclaw/agents/work/sessions");
    fs::create_dir_all(&sessions).unwrap();
    fs::write(sessions.join("sessions.json"), "{}").unwrap();
    let deleted = delete(&home.load(), &id("work"), Files::Trash, Actor::Cli).unwrap();
    assert_eq!((deleted.removed_bindings, deleted.removed_allow), (1, 1));
    assert_eq!(deleted.kept, []);
    let [(from, to)] = deleted.trashed.as_slice() else { panic!("{deleted:?}") };
    assert_eq!(*from, sessions);
    assert_eq!(fs::read_to_string(to.join("sessions.json")).unwrap(), "{}");
    assert!(!home.path(".openclaw/agents/work").exists());
    let expect = json!({
        "agents": {"list": [{"id": "main", "subagents": {"allowAgents": ["x"]}}, {"id": "x"}]},
        "bindings": [{"agentId": "x", "match": {"channel": "signal"}}],
        "tools": {"agentToAgent": {"allow": ["main"]}},
        "broadcast": {"strategy": "parallel", "2@g.us": ["x"]},
    });
    assert_eq!(home.config(), expect);
}

#[test]
fn directories_that_others_need_stay() {
    let home = tempfile::tempdir().unwrap();
    let at = |below: &str| home.path().join(below);
    let rows = [
        ("shared/ws", "agent \"other\" uses it too"),
        ("shared/ws/deep", "agent \"other\" uses it too"),
        ("shared", "agent \"other\" uses it too"),
        ("", "is in it"),
        (".openclaw", "is in it"),
    ];
    for (workspace, reason) in rows {
        let config = json!({"agents": {"list": [
            {"id": "main"}, {"id": "other", "workspace": at("shared/ws")}, {"id": "work", "workspace": at(workspace)},
        ]}});
        fs::create_dir_all(at("shared/ws/deep")).unwrap();
        fs::create_dir_all(at(".openclaw")).unwrap();
        fs::write(at(".openclaw/openclaw.json"), config.to_string()).unwrap();
        let text = home.path().to_str().unwrap();
        let loaded = load(&Environment::new([("HOME", text)], text));
        let deleted = delete(&loaded, &id("work"), Files::Trash, Actor::Cli).unwrap();
        assert_eq!(deleted.trashed, [], "{workspace}");
        assert!(deleted.kept.iter().any(|(_, why)| why.contains(reason)), "{workspace}: {:?}", deleted.kept);
        assert!(at("shared/ws/deep").exists());
    }
}

#[test]
fn changes_reach_config_workspace_and_identity() {
    let home =
        Home::with("{ agents: { list: [{ id: 'w', model: { primary: 'a/b', fallbacks: ['c/d'] } }] } }");
    let change = AgentChange {
        name: Some("Worker".into()),
        workspace: Some(home.path("elsewhere")),
        model: Some("e/f".into()),
        avatar: Some("me.png".into()),
    };
    update(&home.load(), &id("w"), &change, Actor::Rpc).unwrap();
    let expect = json!({"agents": {"list": [{
        "id": "w", "model": {"primary": "e/f", "fallbacks": ["c/d"]}, "name": "Worker",
        "workspace": home.path("elsewhere"),
    }]}});
    assert_eq!(home.config(), expect);
    let identity = fs::read_to_string(home.path("elsewhere/IDENTITY.md")).unwrap();
    assert!(identity.ends_with("\n- Avatar: me.png\n"), "{identity}");
}

#[test]
fn an_agent_of_an_included_file_is_changed_there() {
    let home = Home::with("{ agents: { $include: './agents.json5' } }");
    fs::write(home.path(".openclaw/agents.json5"), "{ list: [{ id: 'main' }, { id: 'w' }] }").unwrap();
    let error = delete(&home.load(), &id("w"), Files::Keep, Actor::Cli).unwrap_err();
    assert!(matches!(error, RosterError::Included(_)), "{error}");
    let error = create(&home.load(), &agent(&home, "new"), Actor::Cli).unwrap_err();
    assert!(error.to_string().contains("included file"), "{error}");
}
