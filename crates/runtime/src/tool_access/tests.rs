mod table;

use std::sync::Arc;

use openclaw_channel_telegram::Telegram;
use openclaw_config::Environment;
use openclaw_protocol::AgentId;
use serde_json::{Value, json};

use super::*;

const MAIN: &str = "agent:main:main";
const SUBAGENT: &str = "agent:main:subagent:x";
/// Tools of a run with a chat platform if nothing is configured.
const ALL: &str = "read edit write exec process message gateway agents_list sessions_list sessions_history sessions_send sessions_spawn \
                   session_status web_search web_fetch memory_search memory_get";

fn explained_at(key: &str, model: (&str, &str), document: &Value) -> Explanation {
    explained_for(true, false, key, model, document)
}

fn explained_for(
    is_owner: bool,
    has_image_model: bool,
    key: &str,
    (provider, model): (&str, &str),
    document: &Value,
) -> Explanation {
    let env = Environment::new([("HOME", "/home/user")], "/");
    let mut document = document.clone();
    document["channels"]["telegram"]["botToken"] = json!("1:x");
    let config = Config::from_json5(&document.to_string(), &env).unwrap();
    let agent = config.agent(&AgentId::default());
    let session = SessionKey::parse(key).unwrap();
    let run = RunOf {
        config: &config,
        agent: &agent,
        provider,
        model,
        session: &session,
        is_owner,
        has_image_model,
    };
    explain(run, &SessionEntry::default(), &Platforms::new(vec![Arc::new(Telegram)]))
}

fn document(tools: &Value, agent_tools: &Value) -> Value {
    json!({"tools": tools, "agents": {"list": [{"id": "main", "tools": agent_tools}]}})
}

fn offered(explanation: &Explanation) -> String {
    let offered = explanation.tools.iter().filter(|tool| tool.access == Access::Offered);
    offered.map(|tool| tool.name).collect::<Vec<_>>().join(" ")
}

/// The table of spec `tools.md` §8.2, with the tools that are built in. `openclaw_tools` has its rows for all names,
/// `openclaw_agent` the one with a plugin.
#[test]
fn every_step_narrows_what_the_ones_before_left() {
    const GOOGLE: (&str, &str) = ("google", "g-1");
    const OPENAI: (&str, &str) = ("openai", "gpt-5.2");
    let none = json!({});
    let by_google = json!({"byProvider": {"google": {"allow": ["read"]}}});
    let by_reference =
        json!({"byProvider": {"openai/gpt-5.2": {"profile": "minimal"}, "openai": {"allow": ["read"]}}});
    let apply_patch = json!({"exec": {"applyPatch": {"enabled": true}}, "allow": ["exec"]});
    let spawn = json!({"subagents": {"tools": {"allow": ["sessions_spawn"]}}});
    let (fetches, minimal) = (json!({"alsoAllow": ["web_fetch"]}), json!({"profile": "minimal"}));
    let rows = [
        (json!({}), &none, MAIN, GOOGLE, ALL),
        (json!({"allow": ["read"]}), &none, MAIN, GOOGLE, "read"),
        (apply_patch.clone(), &none, MAIN, OPENAI, "apply_patch exec"),
        (apply_patch, &none, MAIN, GOOGLE, "exec"),
        (
            json!({"deny": ["group:fs"]}),
            &none,
            MAIN,
            GOOGLE,
            "exec process message gateway agents_list sessions_list sessions_history sessions_send sessions_spawn \
             session_status web_search \
             web_fetch memory_search memory_get",
        ),
        (
            json!({"profile": "minimal", "alsoAllow": ["web_fetch"]}),
            &none,
            MAIN,
            GOOGLE,
            "session_status web_fetch",
        ),
        (
            json!({"profile": "coding", "deny": ["exec"]}),
            &none,
            MAIN,
            GOOGLE,
            "read edit write sessions_list sessions_history sessions_send sessions_spawn session_status memory_search memory_get",
        ),
        (
            json!({"allow": ["*"], "deny": ["web_*"]}),
            &none,
            MAIN,
            GOOGLE,
            "read edit write exec process message gateway agents_list sessions_list sessions_history sessions_send sessions_spawn \
             session_status memory_search memory_get",
        ),
        (json!({"allow": ["web_*"]}), &none, MAIN, GOOGLE, "web_search web_fetch"),
        (by_google.clone(), &none, MAIN, GOOGLE, "read"),
        (by_google, &none, MAIN, OPENAI, ALL),
        (by_reference.clone(), &none, MAIN, OPENAI, "session_status"),
        (by_reference, &none, MAIN, ("openai", "gpt-4"), "read"),
        (json!({"deny": ["exec"]}), &json!({"allow": ["exec", "read"]}), MAIN, GOOGLE, "read"),
        (
            json!({"profile": "minimal"}),
            &json!({"profile": "messaging"}),
            MAIN,
            GOOGLE,
            "message sessions_list sessions_history sessions_send session_status",
        ),
        // An addition belongs to the profile whichever of the two has it.
        (json!({"profile": "minimal"}), &fetches, MAIN, GOOGLE, "session_status web_fetch"),
        (json!({"alsoAllow": ["web_fetch"]}), &minimal, MAIN, GOOGLE, "session_status web_fetch"),
        (
            json!({"profile": "minimal", "alsoAllow": ["read"]}),
            &fetches,
            MAIN,
            GOOGLE,
            "session_status web_fetch",
        ),
        (
            json!({"byProvider": {"google": {"profile": "minimal"}}}),
            &json!({"byProvider": {"google": {"alsoAllow": ["read"]}}}),
            MAIN,
            GOOGLE,
            "read session_status",
        ),
        (spawn.clone(), &none, MAIN, GOOGLE, ALL),
        (spawn, &none, SUBAGENT, GOOGLE, ""),
        (json!({"subagents": {"tools": {"allow": ["read"]}}}), &none, SUBAGENT, GOOGLE, "read"),
        (
            json!({"web": {"search": {"enabled": false}}, "allow": ["web_*"]}),
            &none,
            MAIN,
            GOOGLE,
            "web_fetch",
        ),
    ];
    for (tools, agent_tools, key, model, expect) in rows {
        let explanation = explained_at(key, model, &document(&tools, agent_tools));
        assert_eq!(offered(&explanation), expect, "{tools} {agent_tools} {key} {model:?}");
    }
}

#[test]
fn the_rule_is_told_that_removed_a_tool() {
    let google = ("google", "g-1");
    let of = |key, tools: Value, agent_tools: Value| (key, document(&tools, &agent_tools));
    let group = json!({"channels": {"telegram": {"groups": {"-1": {"tools": {"deny": ["exec"]}}}}}});
    let rows = [
        (of(MAIN, json!({}), json!({})), "browser", "this version does not have it yet"),
        (of(MAIN, json!({"deny": ["browser"]}), json!({})), "browser", "this version does not have it yet"),
        (of(MAIN, json!({"deny": ["group:fs"]}), json!({})), "read", "denied by \"group:fs\" in tools.deny"),
        (of(MAIN, json!({"deny": ["Bash"]}), json!({})), "exec", "denied by \"Bash\" in tools.deny"),
        (of(MAIN, json!({"allow": ["read"]}), json!({})), "exec", "not in tools.allow"),
        (of(MAIN, json!({"profile": "minimal"}), json!({})), "exec", "not in tools.profile \"minimal\""),
        (
            of(MAIN, json!({"profile": "full"}), json!({"profile": "minimal"})),
            "exec",
            "not in agents.list[].tools.profile \"minimal\"",
        ),
        (
            of(MAIN, json!({"byProvider": {"google": {"deny": ["exec"]}}}), json!({})),
            "exec",
            "denied by \"exec\" in tools.byProvider.deny",
        ),
        (of(MAIN, json!({}), json!({"allow": ["read"]})), "exec", "not in agents.list[].tools.allow"),
        (
            of(MAIN, json!({}), json!({"byProvider": {"google/g-1": {"allow": ["read"]}}})),
            "exec",
            "not in agents.list[].tools.byProvider.allow",
        ),
        (
            of(SUBAGENT, json!({"subagents": {"tools": {"deny": ["exec"]}}}), json!({})),
            "exec",
            "denied by \"exec\" in tools.subagents.tools.deny",
        ),
        (
            ("agent:main:telegram:group:-1", group),
            "exec",
            "denied by \"exec\" in channels.*.groups.*.tools.deny",
        ),
        (
            of(MAIN, json!({}), json!({})),
            "apply_patch",
            "switched off: tools.exec.applyPatch.enabled is not true",
        ),
        (
            of(MAIN, json!({"exec": {"applyPatch": {"enabled": true}}}), json!({})),
            "apply_patch",
            "only for models of openai and openai-codex",
        ),
    ];
    for ((key, document), tool, expect) in rows {
        let explanation = explained_at(key, google, &document);
        let access = &explanation.tools.iter().find(|found| found.name == tool).unwrap().access;
        let told = match access {
            Access::Offered => "offered".to_owned(),
            Access::Absent(absence) => absence.to_string(),
            Access::Removed(removal) => removal.to_string(),
        };
        assert_eq!(told, expect, "{tool} {key} {document}");
    }
}

#[test]
fn tools_of_the_owner_are_the_owners_whatever_a_list_says() {
    let google = ("google", "g-1");
    let rows = [
        (true, json!({}), "offered"),
        (false, json!({}), "only the owner has it"),
        (false, json!({"allow": ["gateway"]}), "only the owner has it"),
        (true, json!({"deny": ["group:automation"]}), "denied by \"group:automation\" in tools.deny"),
    ];
    for (is_owner, tools, expect) in rows {
        let explanation = explained_for(is_owner, true, MAIN, google, &document(&tools, &json!({})));
        let access =
            |name: &str| explanation.tools.iter().find(|tool| tool.name == name).unwrap().access.clone();
        let told = match access("gateway") {
            Access::Removed(removal) => removal.to_string(),
            Access::Offered => "offered".to_owned(),
            Access::Absent(absence) => absence.to_string(),
        };
        assert_eq!(told, expect, "{is_owner} {tools}");
    }
    let image = |has_image_model| {
        let explanation =
            explained_for(false, has_image_model, MAIN, google, &document(&json!({}), &json!({})));
        explanation.tools.iter().find(|tool| tool.name == "image").unwrap().access.clone()
    };
    assert_eq!((image(true), image(false)), (Access::Offered, Access::Absent(Absence::NoImageModel)));
}

#[test]
fn a_list_that_names_no_tool_leaves_none_at_any_level() {
    let (none, model) = (json!({"allow": ["reed"]}), ("google", "g-1"));
    for (tools, own) in [
        (none.clone(), json!({})),
        (json!({"byProvider": {"google": none}}), json!({})),
        (json!({}), none.clone()),
        (json!({}), json!({"byProvider": {"google/g-1": none}})),
    ] {
        assert_eq!(offered(&explained_at(MAIN, model, &document(&tools, &own))), "", "{tools} {own}");
    }
    let subagents = document(&json!({"subagents": {"tools": none}}), &json!({}));
    assert_eq!(offered(&explained_at("agent:main:subagent:x", model, &subagents)), "");
    let run = |config: &Config| {
        let (session, agent) = (SessionKey::parse(MAIN).unwrap(), config.agent(&config.default_agent()));
        let run = RunOf {
            config,
            agent: &agent,
            provider: "p",
            model: "m",
            session: &session,
            is_owner: true,
            has_image_model: false,
        };
        let policy = || ToolPolicy { allow: Some(vec!["reed".to_owned()]), ..ToolPolicy::default() };
        let tools: Vec<Candidate<'_>> = CATALOGUE.facts().map(Candidate::from).collect();
        let left = |groups: &[ToolPolicy], sandbox| select(run, &tools, groups, sandbox).names().count();
        [left(&[policy()], None), left(&[], Some(policy()))]
    };
    assert_eq!(run(&Config::default()), [0, 0], "of a group or a sender, and of a sandbox");
}
