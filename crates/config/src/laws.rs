//! Laws of reading and writing, and the bad inputs of the specification (spec `config.md` §13).

use std::fs;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::gateway_options::{GatewayFlags, StartRefusal, gateway_options};
use crate::redact::{REDACTED, redact, restore};
use crate::settings::{AuthKind, BindMode};
use crate::write::{self, Actor, WriteError};
use crate::{Config, Environment, Issue, Loaded, edit_text, json5, load, value_path};

struct Home {
    dir: tempfile::TempDir,
    env: Environment,
}

impl Home {
    fn with(text: impl AsRef<[u8]>) -> Self {
        let home = Self::empty();
        fs::create_dir_all(home.dir.path().join(".openclaw")).unwrap();
        fs::write(home.config(), text).unwrap();
        home
    }

    fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", dir.path().to_str().unwrap())], dir.path());
        Self { dir, env }
    }

    fn config(&self) -> std::path::PathBuf {
        self.dir.path().join(".openclaw/openclaw.json")
    }

    fn load(&self) -> Loaded {
        load(&self.env)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.config()).unwrap()
    }
}

fn path(text: &str) -> Vec<String> {
    value_path::parse_path(text).unwrap()
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zA-Z \\\\\"'/${}é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-c]{1,2}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Writes a value as somebody would by hand: comments, bare keys, trailing commas, one line or many.
fn by_hand(value: &Value, seed: u64, indent: usize) -> String {
    let choice = seed % 3;
    let next = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let pad = "  ".repeat(indent + 1);
    let close = "  ".repeat(indent);
    match value {
        Value::Object(map) if map.is_empty() => "{ /* none */ }".to_owned(),
        Value::Object(map) => {
            let entries = map.iter().enumerate().map(|(at, (key, each))| {
                let comment = if (next >> at) & 1 == 1 { " // note, with: comma }" } else { "" };
                let comma = if at + 1 < map.len() || choice == 0 { "," } else { "" };
                format!(
                    "{pad}{key}: {}{comma}{comment}\n",
                    by_hand(each, next.wrapping_add(at as u64).rotate_left(7), indent + 1)
                )
            });
            if choice == 2 {
                let flat: Vec<String> = map.iter().map(|(key, each)| format!("'{key}': {each}")).collect();
                format!("{{ {} }}", flat.join(", "))
            } else {
                format!("{{\n{}{close}}}", entries.collect::<String>())
            }
        }
        other => other.to_string(),
    }
}

proptest! {
    #[test]
    fn an_edited_text_says_what_was_asked(before in any_value(), after in any_value(), seed in any::<u64>()) {
        let text = by_hand(&before, seed, 0);
        prop_assert_eq!(&json5::parse_value(&text).unwrap(), &before, "{}", text);
        let edited = edit_text(&text, &after).unwrap();
        prop_assert_eq!(json5::parse_value(&edited).unwrap(), after, "{}\n->\n{}", text, edited);
        prop_assert_eq!(edit_text(&text, &before).unwrap(), text);
    }

    #[test]
    fn no_bytes_make_reading_panic_or_change_the_file(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let home = Home::with(&bytes);
        let loaded = home.load();
        prop_assert_eq!(loaded.snapshot.valid, loaded.config().is_ok());
        prop_assert_eq!(fs::read(home.config()).unwrap(), bytes);
    }

    #[test]
    fn any_document_is_valid_or_has_issues(value in any_value(), section in "(gateway|agents|session|models|channels|env|agent|routing|tools)") {
        let env = Environment::new([("HOME", "/h")], "/w");
        let result = Config::from_json5(&json!({ section: value }).to_string(), &env);
        prop_assert!(result.is_ok() || !result.unwrap_err().issues.is_empty());
    }

    #[test]
    fn secrets_survive_a_round_trip_through_a_client(token in "[a-z]{1,9}", key in "(token|botToken|apiKey|password)", other in any_value()) {
        let original = json!({"a": {key: token, "x": 1}, "list": [{"id": "p", "secret": token}, {"id": "q", "secret": "z"}], "o": other});
        let mut seen = original.clone();
        redact(&mut seen);
        seen["a"]["x"] = json!(2);
        seen["list"].as_array_mut().unwrap().reverse();
        restore(&mut seen, &original).unwrap();
        let mut want = original;
        want["a"]["x"] = json!(2);
        want["list"].as_array_mut().unwrap().reverse();
        prop_assert_eq!(seen, want);
    }
}

#[test]
fn bad_files_are_named_with_path_and_reason() {
    let big = format!("{{\"a\": \"{}\"}}", "x".repeat(11 * 1024 * 1024));
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let rows: &[(&str, &str)] = &[
        (&big, "<root>: config file is too large: 11534345 bytes (at most 10485760)"),
        (
            &deep,
            "<root>: JSON5 parse failed: SyntaxError: JSON5: nested deeper than 100 levels at 1:101 (line 1, column 101, at `[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[`)",
        ),
        (
            "{agents: {list: [{id: 'a', tools: {exec: {timeoutSec: 'soon'}}}]}}",
            "agents.list.0.tools.exec.timeoutSec: Invalid input: expected number, received string",
        ),
        ("{gateway: {prot: 1}}", "gateway: Unrecognized key: \"prot\" (did you mean \"port\"?)"),
        (
            "{gateway: {bind: 'public'}}",
            "gateway.bind: Invalid input (allowed: \"auto\", \"lan\", \"loopback\", \"custom\", \"tailnet\"; found \"public\")",
        ),
        (
            "{gateway: {reload: {mode: {token: 's3cr3t'}}}}",
            "gateway.reload.mode: Invalid input (allowed: \"off\", \"restart\", \"hot\", \"hybrid\"; found an object)",
        ),
        (
            "{agents: {list: [{id: 'a', model: {primary: 5}}]}}",
            "agents.list.0.model: Invalid input (agents.list.0.model.primary: Invalid input: expected string, received number)",
        ),
        (
            "{\n  gateway: { port: }\n}",
            "<root>: JSON5 parse failed: SyntaxError: JSON5: invalid character '}' at 2:20 (line 2, column 20, at `gateway: { port: }`)",
        ),
    ];
    for (text, expect) in rows {
        let loaded = Home::with(text).load();
        let error = loaded.config().unwrap_err();
        assert_eq!(error.issues.iter().map(crate::Issue::line).collect::<Vec<_>>(), [*expect]);
    }
    let not_text = Home::with([b'{', 0xff]).load();
    assert_eq!(not_text.snapshot.issues[0].message, "read failed: not UTF-8 at byte 1");
}

#[test]
fn a_missing_file_is_a_valid_empty_config() {
    let home = Home::empty();
    let loaded = home.load();
    assert!(loaded.snapshot.valid && !loaded.snapshot.exists && loaded.snapshot.raw.is_none());
    assert_eq!(loaded.snapshot.hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(fs::read_dir(home.dir.path()).unwrap().count(), 0, "reading made a file");
}

#[test]
fn a_write_keeps_comments_order_references_and_includes() {
    let text = "// mine\n{\n  gateway: {\n    mode: 'local', // here\n    auth: { token: '${TOK_X}' }\n  },\n  /* shared */ \"agents\": { $include: \"./agents.json5\" },\n}\n";
    let mut home = Home::with(text);
    fs::write(home.dir.path().join(".openclaw/agents.json5"), "{ list: [{ id: 'a' }] }").unwrap();
    home.env.set("TOK_X", "sekrit");
    write::set_value(&home.load(), &path("gateway.port"), json!(19000), Actor::Cli).unwrap();
    let text = home.text();
    let meta = text.find("\n  meta").or_else(|| text.find("\n  \"meta\"")).unwrap();
    assert_eq!(
        &text[..meta],
        "// mine\n{\n  gateway: {\n    mode: 'local', // here\n    auth: { token: '${TOK_X}' },\n    port: 19000\n  },\n  /* shared */ \"agents\": { $include: \"./agents.json5\" },"
    );
    let loaded = home.load();
    assert_eq!(loaded.config().unwrap().gateway.port, Some(19000));
    assert!(
        !home
            .dir
            .path()
            .join(".openclaw/logs/config-audit.jsonl")
            .metadata()
            .unwrap()
            .permissions()
            .readonly()
    );
    let audit = fs::read_to_string(home.dir.path().join(".openclaw/logs/config-audit.jsonl")).unwrap();
    assert!(audit.contains("\"changedPaths\":[\"gateway.port\"]") && !audit.contains("19000"), "{audit}");
}

/// The two would be joined.
#[test]
fn a_list_beside_an_included_one_is_refused_with_the_file_however_it_is_written() {
    let home = Home::with("{ channels: { telegram: { $include: './people.json5' } } }");
    let people = "{ accounts: { work: { allowFrom: [7] } } }";
    fs::write(home.dir.path().join(".openclaw/people.json5"), people).unwrap();
    let set = |at: &str, value: Value| write::set_value(&home.load(), &path(at), value, Actor::Cli);
    for (at, value) in [
        ("channels.telegram.accounts.work.allowFrom", json!([9])),
        ("channels.telegram.accounts", json!({"work": {"enabled": true, "allowFrom": [9]}})),
    ] {
        let refused = set(at, value).unwrap_err().to_string();
        let told = "channels.telegram.accounts.work.allowFrom comes from an included file; change it there: ";
        assert!(refused.starts_with(told) && refused.ends_with("/people.json5"), "{refused}");
    }
    set("channels.telegram.accounts.other.allowFrom", json!([9])).unwrap();
    let config = home.load().snapshot.config;
    assert_eq!(config["channels"]["telegram"]["accounts"]["work"]["allowFrom"], json!([7]));
}

#[cfg(unix)]
#[test]
fn files_that_are_written_belong_to_the_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::with("{}");
    fs::set_permissions(home.config(), fs::Permissions::from_mode(0o644)).unwrap();
    write::set_value(&home.load(), &path("ui.seamColor"), json!("#112233"), Actor::Cli).unwrap();
    for file in ["openclaw.json", "openclaw.json.bak", "openclaw.json.lock", "logs/config-audit.jsonl"] {
        let mode = fs::metadata(home.dir.path().join(".openclaw").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_write_that_would_break_the_config_changes_nothing() {
    let home = Home::with("{ ui: {} }");
    let error = write::set_value(&home.load(), &path("nope"), json!(1), Actor::Cli).unwrap_err();
    assert_eq!(error.to_string(), "Config validation failed: <root>: Unrecognized key: \"nope\"");
    let error =
        write::set_value(&home.load(), &path("hooks.token"), json!(REDACTED), Actor::Rpc).unwrap_err();
    assert!(matches!(error, WriteError::Redacted(key) if key == "token"));
    assert_eq!(home.text(), "{ ui: {} }");
}

#[test]
fn a_command_mends_one_of_several_mistakes_though_others_come_to_light() {
    let broken = "{ foo: 1, bar: 2, channels: { nosuch: {}, nothing: {} } }";
    let home = Home::with(broken);
    let error = write::unset_value(&home.load(), &path("foo"), Actor::Rpc).unwrap_err();
    assert!(matches!(error, WriteError::Invalid { .. }), "{error}");
    let worse = write::set_value(&home.load(), &path("foo"), json!(3), Actor::Cli).unwrap_err();
    assert!(matches!(worse, WriteError::Invalid { .. }), "{worse}");
    assert_eq!(home.text(), broken);
    let left = |key| -> Vec<String> {
        let written = write::unset_value(&home.load(), &path(key), Actor::Cli).unwrap().unwrap();
        written.left.iter().map(Issue::line).collect()
    };
    assert_eq!(left("foo"), ["<root>: Unrecognized key: \"bar\""]);
    // Platforms are only looked at once the keys are known.
    assert_eq!(left("bar").len(), 2);
    assert_eq!(left("channels.nosuch"), ["channels.nothing: unknown channel id: nothing"]);
    assert_eq!(left("channels.nothing"), [""; 0]);
}

#[test]
fn a_file_changed_by_somebody_else_is_not_overwritten() {
    let home = Home::with("{ ui: {} }");
    let loaded = home.load();
    fs::write(home.config(), "{ gateway: {} }").unwrap();
    let error = write::set_value(&loaded, &path("gateway.port"), json!(5), Actor::Cli).unwrap_err();
    assert!(matches!(error, WriteError::Changed), "{error}");
    assert_eq!(home.text(), "{ gateway: {} }");
}

#[test]
fn a_file_that_does_not_parse_is_not_overwritten() {
    let home = Home::with("{ oops");
    let error = write::set_value(&home.load(), &path("gateway.port"), json!(5), Actor::Cli).unwrap_err();
    assert!(matches!(error, WriteError::Unparsable { .. }), "{error}");
    assert_eq!(home.text(), "{ oops");
}

#[cfg(unix)]
#[test]
fn a_linked_config_is_written_where_it_lies() {
    let home = Home::empty();
    fs::create_dir_all(home.dir.path().join(".openclaw")).unwrap();
    let target = home.dir.path().join("dotfiles.json");
    fs::write(&target, "{}").unwrap();
    std::os::unix::fs::symlink(&target, home.config()).unwrap();
    write::set_value(&home.load(), &path("gateway.port"), json!(7), Actor::Cli).unwrap();
    assert!(fs::symlink_metadata(home.config()).unwrap().is_symlink());
    assert!(fs::read_to_string(target).unwrap().contains("\"port\": 7"));
}

#[test]
fn a_missing_variable_stops_the_gateway_but_not_commands_that_read() {
    let home = Home::with("{ gateway: { port: 5, auth: { token: '${NOPE_A}', password: '${NOPE_B}' } } }");
    let loaded = home.load();
    let messages: Vec<String> =
        loaded.config().unwrap_err().issues.into_iter().map(|issue| issue.message).collect();
    assert_eq!(
        messages,
        [
            "Missing env var \"NOPE_A\" referenced at config path: gateway.auth.token",
            "Missing env var \"NOPE_B\" referenced at config path: gateway.auth.password",
        ]
    );
    let config = loaded.config_for_reading().unwrap();
    assert_eq!(config.gateway.port, Some(5));
    assert!(config.gateway.auth.token.is_none());
}

#[test]
fn keys_of_a_newer_version_are_warnings() {
    let loaded = Home::with("{ meta: { lastTouchedVersion: '2099.1.1' }, gateway: { fancy: 1 } }").load();
    assert!(loaded.config().is_ok());
    let messages: Vec<&str> = loaded.snapshot.warnings.iter().map(|issue| issue.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "Unrecognized key: \"fancy\"",
            "Config was last written by a newer OpenClaw (2099.1.1); current version is 2026.2.9.",
        ]
    );
}

#[test]
fn a_lost_secret_counts_as_absent() {
    let loaded = Home::with(format!("{{ gateway: {{ auth: {{ token: '{REDACTED}' }} }} }}")).load();
    assert!(loaded.config().unwrap().gateway.auth.token.is_none());
    assert_eq!(loaded.snapshot.warnings[0].path, "gateway.auth.token");
}

#[test]
fn include_files_outside_the_config_directory_are_refused() {
    let home = Home::with("{ gateway: { $include: '../outside.json5' } }");
    fs::write(home.dir.path().join("outside.json5"), "{ port: 1 }").unwrap();
    let issues = home.load().snapshot.issues;
    assert!(
        issues[0].message.starts_with("Include file is outside the config directory: ../outside.json5"),
        "{issues:?}"
    );
}

#[test]
fn dotenv_files_fill_in_their_order() {
    let home = Home::with("{ gateway: { auth: { token: '${FOO}-${BAR}' } } }");
    fs::write(home.dir.path().join(".env"), "FOO=from-cwd\nOPENCLAW_GATEWAY_TOKEN=evil\nBASH_ENV=/evil.sh\n")
        .unwrap();
    fs::write(
        home.dir.path().join(".openclaw/.env"),
        "FOO=from-state\nBAR=1\nOPENCLAW_GATEWAY_PORT=4\nPAGER=less\n",
    )
    .unwrap();
    let loaded = home.load();
    assert_eq!(loaded.snapshot.config["gateway"]["auth"]["token"], "from-cwd-1");
    assert_eq!(loaded.environment.get("OPENCLAW_GATEWAY_TOKEN"), None);
    assert_eq!(loaded.environment.get("OPENCLAW_GATEWAY_PORT"), Some("4"));
    assert_eq!(loaded.environment.get("PAGER"), Some("less"), "the owner's own file");
    let [refused] = loaded.snapshot.warnings.as_slice() else { panic!("{:?}", loaded.snapshot.warnings) };
    assert!(refused.message.starts_with("ignored BASH_ENV, OPENCLAW_GATEWAY_TOKEN: "), "{}", refused.message);
}

#[test]
fn settings_of_an_agent_are_its_own_over_the_shared_ones() {
    let env = Environment::new([("HOME", "/h"), ("OPENCLAW_PROFILE", "work")], "/w");
    let config = Config::from_json5(
        "{ agents: { defaults: { model: 'p/shared', workspace: '~/shared', timeoutSeconds: 9 },
             list: [{ id: 'Ops', model: { fallbacks: ['p/b'] } }, { id: 'home', default: true, workspace: '/own' }] },
           tools: { exec: { timeoutSec: 5 } }, session: { store: '~/s/{agentId}.json' } }",
        &env,
    )
    .unwrap();
    assert_eq!(config.agent_ids().iter().map(ToString::to_string).collect::<Vec<_>>(), ["home", "ops"]);
    let ops = config.agent(&openclaw_protocol::AgentId::normalize("ops"));
    assert_eq!(ops.model_primary.as_deref(), Some("p/shared"));
    assert_eq!(ops.model_fallbacks, ["p/b"]);
    assert_eq!(ops.workspace, std::path::Path::new("/h/.openclaw/workspace-ops"), "in the state directory");
    assert_eq!(ops.agent_dir, std::path::Path::new("/h/.openclaw/agents/ops/agent"));
    assert_eq!(
        (ops.run_timeout.as_secs(), ops.bootstrap_max_chars, ops.exec.timeout_sec),
        (9, 20_000, Some(5))
    );
    let home = config.agent(&config.default_agent());
    assert_eq!((home.workspace.to_str(), home.is_default), (Some("/own"), true));
    assert_eq!(config.session_store(&ops.id), std::path::Path::new("/h/s/ops.json"));
}

#[test]
fn a_gateway_starts_only_with_a_secret_and_on_purpose() {
    type Expect = Result<(u16, BindMode, AuthKind), StartRefusal>;
    let token = |text: &str| GatewayFlags { token: Some(text.to_owned().into()), ..GatewayFlags::default() };
    let none = GatewayFlags::default;
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], GatewayFlags, Expect);
    let rows: Vec<Row<'_>> = vec![
        ("{}", &[], none(), Err(StartRefusal::NotConfigured { current: "unset".to_owned() })),
        (
            "{gateway:{mode:'remote'}}",
            &[],
            none(),
            Err(StartRefusal::NotConfigured { current: "remote".to_owned() }),
        ),
        ("{gateway:{mode:'local'}}", &[], none(), Err(StartRefusal::NoToken)),
        ("{gateway:{mode:'local'}}", &[], token("t"), Ok((18789, BindMode::Loopback, AuthKind::Token))),
        ("{gateway:{mode:'local',bind:'lan'}}", &[], none(), Err(StartRefusal::NoToken)),
        (
            "{gateway:{mode:'local',auth:{password:'p'}}}",
            &[("OPENCLAW_GATEWAY_PORT", "7")],
            none(),
            Ok((7, BindMode::Loopback, AuthKind::Password)),
        ),
        (
            "{gateway:{mode:'local',auth:{password:'p'}}}",
            &[],
            token("t"),
            Ok((18789, BindMode::Loopback, AuthKind::Token)),
        ),
        (
            "{gateway:{mode:'local',auth:{allowTailscale:true},bind:'lan'}}",
            &[],
            none(),
            Err(StartRefusal::OpenBind { bind: "lan" }),
        ),
        (
            "{gateway:{mode:'local',bind:'custom',auth:{token:'t'}}}",
            &[],
            none(),
            Err(StartRefusal::NoCustomHost),
        ),
        (
            "{gateway:{mode:'local',auth:{token:'t'},tailscale:{mode:'funnel'}}}",
            &[],
            none(),
            Err(StartRefusal::FunnelNeedsPassword),
        ),
    ];
    for (text, vars, flags, expect) in rows {
        let env = Environment::new(vars.iter().copied(), "/w");
        let config = Config::from_json5(text, &env).unwrap();
        let got = gateway_options(&config, &env, &flags)
            .map(|options| (options.port, options.bind, options.auth.mode));
        assert_eq!(got, expect, "{text}");
    }
}

#[test]
fn secrets_of_the_config_never_show_in_debug_output() {
    let env = Environment::new([("HOME", "/h")], "/w");
    let text = "{gateway:{auth:{token:'hunter2'}},models:{providers:{x:{baseUrl:'http://h',apiKey:'hunter2',headers:{A:'hunter2'},models:[]}}}}";
    let config = Config::from_json5(text, &env).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn a_url_with_a_password_is_a_secret_and_finds_its_way_back() {
    let original = serde_json::json!({"baseUrl": "https://me:secret@host/v1", "homepage": "https://host/@me", "port": 1});
    let mut shown = original.clone();
    crate::redact::redact(&mut shown);
    let redacted = crate::redact::REDACTED;
    assert_eq!(shown, serde_json::json!({"baseUrl": redacted, "homepage": "https://host/@me", "port": 1}));
    crate::redact::restore(&mut shown, &original).unwrap();
    assert_eq!(shown, original);
}
