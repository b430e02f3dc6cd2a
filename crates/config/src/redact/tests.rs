//! The rule against every key that tells of a secret, there and back.

use serde_json::{Map, Value, json};

use super::*;
use crate::check::schema;

const HINTS: &str = include_str!("../../data/hints.json");

/// Words that suggest a secret in a name. Wider than the rule, so that a key which the rule passes
/// over has to be named in [`OPEN`].
const TELLING: &[&str] =
    &["token", "pass", "secret", "key", "cred", "private", "auth", "account", "cert", "bearer", "jwt", "pin"];

/// Names that contain such a word and hold no secret, and why.
const OPEN: &[(&str, &str)] = &[
    ("passEnv", "names of variables"),
    ("account", "a number or an address"),
    ("accountId", "an id"),
    ("accountSid", "an id"),
    ("defaultAccount", "an id"),
    ("authId", "an id"),
    ("defaultAuthProfileId", "an id"),
    ("auth", "a kind of authentication"),
    ("mainKey", "a part of session keys"),
    ("sessionKey", "a session's name"),
    ("keyPrefix", "a part of session keys"),
    ("maxTokensField", "the name of a field"),
    ("mediaAuthAllowHosts", "names of hosts"),
    ("publicKey", "public"),
    ("typingMode", "when typing is shown"),
    ("typingIndicator", "how typing is shown"),
];
/// Endings of names that say where a secret is.
const PLACES: &[&str] = &["File", "Path", "Dir"];

/// Keys of channels that the schema leaves open, as OpenClaw's plugins name them.
const OF_PLUGINS: &[&str] = &[
    "channels.nostr.privateKey",
    "channels.matrix.accessToken",
    "channels.matrix.password",
    "channels.twitch.clientSecret",
    "channels.twitch.refreshToken",
    "channels.googlechat.serviceAccount.private_key",
    "channels.googlechat.serviceAccount.client_email",
    "channels.googlechat.accounts.*.serviceAccount.private_key_id",
    "agents.list.[].sandbox.docker.env.ANYTHING",
    "models.providers.*.headers.Authorization",
    "skills.entries.*.env.ANYTHING",
    "skills.entries.*.config.deployKey",
];

/// All paths of a schema at which a text may stand. `[]` is an item, `*` any name.
fn texts(schema: &Value, path: &[&str], found: &mut Vec<Vec<String>>) {
    let members = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    members.for_each(|member| texts(member, path, found));
    let takes_text = schema["type"] == "string"
        || schema["type"].as_array().is_some_and(|types| types.contains(&json!("string")));
    if takes_text && schema.get("enum").is_none() {
        found.push(path.iter().map(|part| (*part).to_owned()).collect());
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        texts(property, &[path, &[key.as_str()]].concat(), found);
    }
    for (key, part) in [("additionalProperties", "*"), ("items", "[]")] {
        if schema[key].is_object() {
            texts(&schema[key], &[path, &[part]].concat(), found);
        }
    }
}

/// A document with one value.
fn document(path: &[String], value: &str) -> Value {
    path.iter().rev().fold(json!(value), |inner, part| match part.as_str() {
        "[]" => json!([inner]),
        key => Value::Object(Map::from_iter([(key.to_owned(), inner)])),
    })
}

fn tells_of_a_secret(path: &[String]) -> bool {
    let Some(name) = path.iter().rfind(|part| *part != "[]" && *part != "*") else { return false };
    let lower = name.to_lowercase();
    TELLING.iter().any(|word| lower.contains(word))
        && !OPEN.iter().any(|(open, _)| open == name)
        && !PLACES.iter().any(|ending| name.ends_with(ending))
}

/// The paths of the schema, of its hints and of plugins that hold secrets.
fn secret_paths() -> Vec<Vec<String>> {
    let split = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
    let mut paths = Vec::new();
    for schema in [schema::served(), schema::accepted(|_| true)] {
        texts(&schema, &[], &mut paths);
    }
    paths.retain(|path| tells_of_a_secret(path));
    let hints: Value = serde_json::from_str(HINTS).unwrap();
    let hinted = hints.as_object().unwrap().iter().filter(|(_, hint)| hint["sensitive"] == true);
    let hinted = hinted.map(|(path, _)| path.as_str()).filter(|path| !path.ends_with(".publicKey"));
    paths.extend(hinted.chain(OF_PLUGINS.iter().copied()).map(split));
    paths
}

#[test]
fn every_key_that_tells_of_a_secret_is_redacted_and_restored() {
    let paths = secret_paths();
    assert!(paths.len() > 80, "{}", paths.len());
    // As JSON writes it, and with an escape and a continued line, as a person may.
    let secret = "s3cr3t-äbc\nsecond line";
    let written = "'s3cr3t-\\xe4bc\\n\\\nsecond line'";
    for path in &paths {
        let original = document(path, secret);
        let shown = || path.join(".");
        let mut redacted = original.clone();
        redact(&mut redacted);
        assert!(!redacted.to_string().contains("s3cr3t"), "{}: {redacted}", shown());
        let plain = original.to_string();
        for raw in [plain.clone(), plain.replace(&Value::from(secret).to_string(), written)] {
            let text = redact_text(&raw, &Value::Null);
            assert!(text.contains(REDACTED), "{}: {text}", shown());
            assert!(!text.contains("s3cr3t") && !text.contains("second"), "{}: {text}", shown());
        }
        restore(&mut redacted, &original).unwrap();
        assert_eq!(redacted, original, "{}", shown());
    }
}

#[test]
fn names_tell_of_a_secret_by_their_words() {
    let secret = [
        "token",
        "botToken",
        "GITHUB_TOKEN",
        "privateKey",
        "private_key",
        "PRIVATE-KEY",
        "encryptKey",
        "x-api-key",
        "AWS_SECRET_ACCESS_KEY",
        "SMTP_PASS",
        "serviceAccount",
        "openaiApiKey",
        "DB_CREDENTIALS",
        "sshKey",
    ];
    let open = [
        "key",
        "pass",
        "monkey",
        "hockey",
        "PWD",
        "passEnv",
        "compass",
        "sessionKey",
        "mainKey",
        "publicKey",
        "keyPath",
        "tokenFile",
        "serviceAccountFile",
        "SSH_AUTH_SOCK",
        "accountId",
        "keyPrefix",
    ];
    for name in secret {
        assert!(is_secret_name(name), "{name}");
    }
    for name in open {
        assert!(!is_secret_name(name), "{name}");
    }
}

#[test]
fn a_url_is_redacted_for_the_secret_in_its_query() {
    let rows = [
        ("wss://browser.example?token=abc", true),
        ("https://h/p?x=1&api_key=abc#top", true),
        ("https://h/p#token=abc", true),
        ("https://h/p?token=", false),
        ("https://h/p?page=2", false),
        ("no url, token=abc", false),
    ];
    for (text, is_secret) in rows {
        let mut value = json!({ "cdpUrl": text });
        redact(&mut value);
        assert_eq!(value["cdpUrl"] == REDACTED, is_secret, "{text}");
    }
}

#[test]
fn a_part_of_a_document_is_redacted_as_in_the_whole() {
    let part = json!({ "PLAIN_NAME": "value" });
    for (path, expect) in [(vec!["env"], REDACTED), (vec!["env", "vars"], REDACTED), (vec!["ui"], "value")] {
        let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
        let mut shown = part.clone();
        redact_at(&path, &mut shown);
        assert_eq!(shown["PLAIN_NAME"], expect, "{path:?}");
    }
}
