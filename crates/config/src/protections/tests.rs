use serde_json::json;

use super::*;
use crate::{Environment, SupportedKeys, config_schema};

fn config(document: &Value) -> Config {
    let environment = Environment::new([("HOME", "/home/user")], "/");
    Config::from_json5(&document.to_string(), &environment).unwrap().as_ref().clone()
}

/// Keys and values, for each config.
fn check(document: &Value, expect: &[(&str, &str)]) {
    let unmet = unmet_protections(&config(document));
    let found: Vec<(&str, &str)> =
        unmet.iter().map(|unmet| (unmet.key.as_str(), unmet.value.as_str())).collect();
    assert_eq!(found, expect, "{document}");
}

#[test]
fn what_is_asked_for_and_missing_is_listed() {
    let agents = |mode: &str| json!({"agents": {"defaults": {"sandbox": {"mode": mode}}}});
    let exec = |exec: Value| json!({"tools": {"exec": exec}});
    check(&json!({}), &[]);
    check(&json!({"gateway": {"tls": {"enabled": true}}}), &[("gateway.tls.enabled", "true")]);
    check(&json!({"gateway": {"tls": {"enabled": false, "certPath": "/x"}}}), &[]);
    check(&agents("off"), &[]);
    // The agent's runs are held in a sandbox, or do not begin.
    check(&agents("all"), &[]);
    check(&agents("non-main"), &[]);
    check(
        &json!({"agents": {"defaults": {"sandbox": {"workspaceAccess": "none", "docker": {"network": "none"}}}}}),
        &[],
    );
    check(
        &json!({"agents": {"list": [{"id": "b", "sandbox": {"mode": "all"}}]}, "tools": {"exec": {"host": "sandbox"}}}),
        &[],
    );
    for open in [json!({}), json!({"security": "full"}), json!({"ask": "off"}), json!({"security": "deny"})] {
        check(&exec(open), &[]);
    }
    check(&exec(json!({"host": "gateway", "security": "full", "ask": "on-miss"})), &[]);
    for (rules, shown) in [
        (json!({"host": "sandbox"}), "host=sandbox"),
        (json!({"host": "node", "security": "full", "ask": "off"}), "host=node security=full ask=off"),
    ] {
        check(&exec(rules), &[("tools.exec", shown)]);
    }
    // A person is asked, or the command is on a list.
    for rules in [
        json!({"host": "gateway"}),
        json!({"security": "allowlist"}),
        json!({"ask": "on-miss"}),
        json!({"security": "full", "ask": "always"}),
    ] {
        check(&exec(rules), &[]);
    }
    check(
        &json!({"tools": {"exec": {"security": "full"}}, "agents": {"list": [{"id": "a", "tools": {"exec": {"host": "node"}}}]}}),
        &[("agents.list.0.tools.exec", "host=node security=full")],
    );
    let policy = json!({"requireMention": true, "toolsBySender": {"7": {"deny": ["exec"]}}});
    let telegram = json!({"groups": {"-1": policy}, "accounts": {"a": {"groups": {"-1": policy}}}});
    check(&json!({"channels": {"telegram": telegram}}), &[]);
    check(
        &json!({"channels": {"discord": {"guilds": {"1": policy}}, "slack": {"channels": {"c": {"tools": {}}}}}}),
        &[("channels.discord.guilds.1.toolsBySender", "set")],
    );
    let remote = json!({"url": "wss://x", "tlsFingerprint": "ab"});
    check(&json!({"gateway": {"mode": "local", "remote": remote}}), &[]);
    check(
        &json!({"gateway": {"mode": "remote", "remote": remote}}),
        &[("gateway.remote.tlsFingerprint", "set")],
    );
}

#[test]
fn a_run_is_refused_where_its_group_is_meant() {
    let unmet = unmet_protections(&config(
        &json!({"channels": {"discord": {"guilds": {"*": {"tools": {"deny": ["exec"]}}}}}}),
    ));
    for (groups, refused) in [(&[][..], false), (&["slack"], false), (&["slack", "discord"], true)] {
        assert_eq!(unmet.iter().any(|unmet| unmet.refuses_run(groups)), refused, "{groups:?}");
    }
}

#[test]
fn what_is_shown_says_what_is_refused_and_what_to_do() {
    let all = unmet_protections(&config(&json!({"gateway": {"tls": {"enabled": true}}})));
    assert_eq!(
        all[0].to_string(),
        "gateway.tls.enabled is true, but this version does not serve TLS yet: the gateway does not start. Set it to false and \
         put a TLS proxy or a tunnel in front."
    );
}

/// Parts of names that tell of a protection.
const TELLING: &[&str] = &[
    "sandbox",
    "policy",
    "allow",
    "deny",
    "approv",
    "elevat",
    "tls",
    "token",
    "auth",
    "secret",
    "password",
    "insecure",
    "owner",
    "redact",
    "bind",
    "trust",
    "readonly",
    "access",
    "finger",
    "ssh",
    "security",
    "evaluate",
    "unsafe",
    "bysender",
    "includeprompt",
    "includebody",
    "scope",
    "tailscale",
    "hookurl",
    "verif",
    "sign",
    "isolat",
    "disable",
];

#[test]
fn every_key_that_tells_of_a_protection_is_acted_on_or_said_to_guard_nothing_yet() {
    let mut keys = Vec::new();
    leaves(&config_schema().schema, &mut Vec::new(), &mut keys);
    let tells = |path: &&Vec<String>| {
        path.iter().any(|key| TELLING.iter().any(|word| key.to_lowercase().contains(word)))
    };
    let undecided: Vec<String> =
        keys.iter().filter(tells).filter(|path| !is_decided(path)).map(|path| path.join(".")).collect();
    assert_eq!(undecided, Vec::<String>::new());
}

/// The schemas of what an object or a list may hold, by key.
fn below(schema: &Value) -> Vec<(&str, &Value)> {
    let named = schema["properties"].as_object().into_iter().flatten();
    let others = ["additionalProperties", "items"].map(|kind| ("*", &schema[kind]));
    let branches = ["anyOf", "oneOf", "allOf"].iter().filter_map(|kind| schema[kind].as_array()).flatten();
    named
        .map(|(key, child)| (key.as_str(), child))
        .chain(others)
        .chain(branches.map(|branch| ("", branch)))
        .filter(|(_, child)| child.is_object())
        .collect()
}

fn is_below(path: &[String], key: &str) -> bool {
    let key: Vec<&str> = key.split('.').collect();
    path.len() >= key.len() && key.iter().zip(path).all(|(part, step)| part == step)
}

fn is_decided(path: &[String]) -> bool {
    let guards_nothing = GUARDS_NOTHING_YET.iter().flat_map(|(keys, _)| *keys).any(|key| is_below(path, key));
    guards_nothing || SupportedKeys::of_build().acts_on(path)
}

/// Keys that all platforms have. They are read for each platform that the config names, whether it exists here or not.
const OF_ANY_PLATFORM: &[&str] = &["heartbeat", "dmHistoryLimit", "dms"];

#[test]
fn no_key_that_is_acted_on_is_said_to_guard_nothing() {
    let mut keys = Vec::new();
    leaves(&config_schema().schema, &mut Vec::new(), &mut keys);
    for row in GUARDS_NOTHING_YET.iter().flat_map(|(keys, _)| *keys) {
        let below: Vec<&Vec<String>> = keys.iter().filter(|path| is_below(path, row)).collect();
        assert!(!below.is_empty(), "{row} is no key");
        let is_shared = |path: &[String]| path.iter().any(|part| OF_ANY_PLATFORM.contains(&part.as_str()));
        for path in below.into_iter().filter(|path| !is_shared(path)) {
            assert!(!SupportedKeys::of_build().acts_on(path), "{row}: {} is acted on", path.join("."));
        }
    }
}

fn leaves(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let below = below(schema);
    if below.is_empty() {
        found.push(path.clone());
    }
    for (key, child) in below {
        let depth = path.len();
        path.extend((!key.is_empty()).then(|| key.to_owned()));
        leaves(child, path, found);
        path.truncate(depth);
    }
}
