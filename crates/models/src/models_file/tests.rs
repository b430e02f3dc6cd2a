use std::path::Path;

use openclaw_config::settings::ModelsMode;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::keeper::FileKeeper;
use super::*;
use crate::catalog::{Catalog, Layers, ServerReport};
use crate::credentials::{AuthStore, Connections, FILE as CREDENTIALS};
use crate::provider_entry::ProviderEntry;
use crate::reference::{ModelRef, ProviderId};
use crate::settings::ModelSettings;
use crate::variables::Variables;

type Env = &'static [(&'static str, &'static str)];

/// An agent's directory and what is around it.
#[derive(Default)]
struct Place {
    settings: ModelSettings,
    variables: Variables,
    profiles: Value,
    found: Vec<ServerReport>,
}

impl Place {
    fn new(providers: Value) -> Self {
        let Value::Object(providers) = providers else { panic!("an object") };
        let providers =
            providers.into_iter().map(|(id, entry)| (id, serde_json::from_value(entry).unwrap())).collect();
        let settings = ModelSettings { providers, ..ModelSettings::default() };
        Self { settings, ..Self::default() }
    }

    fn env(mut self, pairs: &[(&str, &str)]) -> Self {
        self.variables = pairs.iter().copied().collect();
        self
    }

    fn profiles(mut self, profiles: Value) -> Self {
        self.profiles = profiles;
        self
    }

    fn writing(&self) -> Option<Writing> {
        let dir = tempfile::tempdir().unwrap();
        if self.profiles.is_object() {
            std::fs::write(dir.path().join(CREDENTIALS), json!({"profiles": self.profiles}).to_string())
                .unwrap();
        }
        let store = AuthStore::load(dir.path()).unwrap();
        let layers = Layers { settings: &self.settings, file: &[], found: &self.found };
        let catalog = Catalog::assemble(&layers);
        let connections = Connections {
            store: &store,
            settings: &self.settings,
            catalog: &catalog,
            variables: &self.variables,
        };
        Writing::of(&connections, &self.found)
    }

    /// Returns the content of a new file.
    fn written(&self) -> Value {
        let dir = tempfile::tempdir().unwrap();
        assert!(self.writing().unwrap().apply(dir.path()).unwrap());
        serde_json::from_str(&text(dir.path())).unwrap()
    }
}

fn text(dir: &Path) -> String {
    std::fs::read_to_string(dir.join(FILE)).unwrap()
}

fn mine(key: &str) -> Value {
    json!({"mine": {"baseUrl": "http://m/v1", "api": "openai-completions", "apiKey": key, "headers": {"x-secret": "s3cret"},
        "models": [{"id": "a", "name": "A", "cost": {"input": 1.5, "output": 2}, "contextWindow": 64_000, "maxTokens": 4096,
            "headers": {"x-secret": "s3cret"}, "compat": {"supportsStore": false}}]}})
}

#[test]
fn a_new_file_holds_the_configured_providers_as_openclaw_writes_them_and_no_secret() {
    let place = Place::new(mine("sk-literal-secret"));
    let dir = tempfile::tempdir().unwrap();
    let agent_dir = dir.path().join("agent");
    assert!(place.writing().unwrap().apply(&agent_dir).unwrap());
    let expect = r#"{
  "providers": {
    "mine": {
      "baseUrl": "http://m/v1",
      "apiKey": "openclaw-ref:config",
      "api": "openai-completions",
      "models": [
        {
          "id": "a",
          "name": "A",
          "reasoning": false,
          "input": [
            "text"
          ],
          "cost": {
            "input": 1.5,
            "output": 2,
            "cacheRead": 0,
            "cacheWrite": 0
          },
          "contextWindow": 64000,
          "maxTokens": 4096,
          "compat": {
            "supportsStore": false
          }
        }
      ]
    }
  }
}
"#;
    assert_eq!(text(&agent_dir), expect);
    assert!(!place.writing().unwrap().apply(&agent_dir).unwrap(), "the same again is no change");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&agent_dir), mode(&agent_dir.join(FILE))), (0o700, 0o600));
    }
}

#[test]
fn keys_are_written_as_names_commands_or_references() {
    let profile = json!({"p:1": {"type": "api_key", "provider": "mine", "key": "profile-secret"}});
    let login =
        json!({"p:1": {"type": "oauth", "provider": "mine", "access": "login-secret", "refresh": "r"}});
    let rows: Vec<(&str, Env, Value, &str)> = vec![
        ("${MY_KEY}", &[], Value::Null, "MY_KEY"),
        ("MY_KEY", &[("MY_KEY", "v")], Value::Null, "MY_KEY"),
        ("MY_KEY", &[], Value::Null, "openclaw-ref:config"),
        ("!pass show x", &[], Value::Null, "!pass show x"),
        ("value-of-it", &[("A", "value-of-it"), ("THE_TOKEN", "value-of-it")], Value::Null, "THE_TOKEN"),
        ("sk-literal", &[("SHELL", "sk-literal")], Value::Null, "openclaw-ref:config"),
        ("", &[], profile, "openclaw-ref:profile:p:1"),
        ("", &[], login, "openclaw-ref:none"),
        ("", &[], Value::Null, "openclaw-ref:none"),
    ];
    for (key, env, profiles, expect) in rows {
        let written = Place::new(mine(key)).env(env).profiles(profiles).written();
        assert_eq!(written["providers"]["mine"]["apiKey"], expect, "{key} {env:?}");
        assert!(!written.to_string().contains("secret"), "{written}");
    }
    let signed = json!({"amazon-bedrock": {"baseUrl": "https://b", "auth": "aws-sdk", "api": "bedrock-converse-stream", "models": [{"id": "a"}]}});
    assert_eq!(Place::new(signed.clone()).written()["providers"]["amazon-bedrock"]["apiKey"], "AWS_PROFILE");
    let env = [("AWS_BEARER_TOKEN_BEDROCK", "b")];
    let written = Place::new(signed).env(&env).written();
    assert_eq!(written["providers"]["amazon-bedrock"]["apiKey"], "AWS_BEARER_TOKEN_BEDROCK");
}

#[test]
fn providers_that_exist_by_credential_are_written_with_their_models() {
    let place = Place::new(json!({})).env(&[
        ("MOONSHOT_API_KEY", "k"),
        ("ANTHROPIC_API_KEY", "k"),
        ("GH_TOKEN", "t"),
    ]);
    let place = place.profiles(json!({
        "q": {"type": "oauth", "provider": "qwen-portal", "access": "login-secret", "refresh": "r"},
        "x": {"type": "api_key", "provider": "xiaomi", "key": "profile-secret"}}));
    let written = place.written();
    let providers = written["providers"].as_object().unwrap();
    let found: Vec<_> =
        providers.iter().map(|(id, entry)| (id.as_str(), entry["apiKey"].as_str().unwrap())).collect();
    assert_eq!(
        found,
        [
            ("moonshot", "MOONSHOT_API_KEY"),
            ("qwen-portal", "qwen-oauth"),
            ("xiaomi", "openclaw-ref:profile:x")
        ]
    );
    assert_eq!(providers["moonshot"]["models"][0]["id"], "kimi-k2.5");
    assert!(Place::new(json!({})).writing().is_none(), "nothing to say is no reason to write");
    let own =
        json!({"moonshot": {"baseUrl": "http://m", "api": "openai-completions", "models": [{"id": "mine"}]}});
    let both = Place::new(own).env(&[("MOONSHOT_API_KEY", "k")]).written();
    let ids: Vec<_> =
        both["providers"]["moonshot"]["models"].as_array().unwrap().iter().map(|m| m["id"].clone()).collect();
    assert_eq!(ids, ["mine", "kimi-k2.5"], "explicit models first, implicit ones follow");
}

#[test]
fn what_a_local_server_has_is_written_only_when_it_is_connected() {
    let entry: ProviderEntry =
        serde_json::from_value(json!({"baseUrl": "http://127.0.0.1:1/v1", "models": [{"id": "llama"}]}))
            .unwrap();
    let found =
        vec![ServerReport { provider: ProviderId::normalize("ollama"), entry: entry.into(), answered: true }];
    let alone = Place { found: found.clone(), ..Place::new(json!({})) };
    assert!(alone.writing().is_none());
    let connected = Place { found, ..Place::new(json!({})).env(&[("OLLAMA_API_KEY", "x")]) };
    let written = connected.written();
    let ollama = &written["providers"]["ollama"];
    assert_eq!(
        (&ollama["apiKey"], &ollama["baseUrl"]),
        (&json!("OLLAMA_API_KEY"), &json!("http://127.0.0.1:1/v1"))
    );
    let model = &ollama["models"][0];
    assert_eq!(
        (&model["contextWindow"], &model["maxTokens"], &model["params"]),
        (&json!(128_000), &json!(8192), &json!({"streaming": false}))
    );
}

#[test]
fn merge_keeps_what_is_there_and_replace_does_not() {
    let there = json!({"mark": 1, "providers": {
        "kept": {"baseUrl": "http://k", "apiKey": "sk-kept", "api": "openai-completions", "own": true, "models": [{"id": "k"}]},
        "mine": {"baseUrl": "http://old", "apiKey": "old", "api": "openai-completions", "models": [{"id": "old"}]}}});
    for (mode, expect) in [(ModelsMode::Merge, vec!["kept", "mine"]), (ModelsMode::Replace, vec!["mine"])] {
        let mut place = Place::new(mine("k"));
        place.settings.catalog_mode = mode;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), there.to_string()).unwrap();
        assert!(place.writing().unwrap().apply(dir.path()).unwrap());
        let written: Value = serde_json::from_str(&text(dir.path())).unwrap();
        let ids: Vec<_> = written["providers"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(ids, expect);
        assert_eq!(written["mark"], 1, "what means nothing to us stays");
        assert_eq!(written["providers"]["mine"]["models"][0]["id"], "a");
        if mode == ModelsMode::Merge {
            assert_eq!(written["providers"]["kept"], there["providers"]["kept"]);
        }
    }
}

#[test]
fn a_file_that_makes_no_sense_is_left_as_it_is() {
    for broken in ["[]", "{\"providers\": {\"x\": {}}}"] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), broken).unwrap();
        let error = Place::new(mine("k")).writing().unwrap().apply(dir.path()).unwrap_err();
        assert!(error.contains("models.json is left as it is: "), "{error}");
        assert_eq!(text(dir.path()), broken);
    }
}

/// The file may be empty if the name reached the disk before the power failed and the content did
/// not.
#[test]
fn a_file_that_a_power_cut_has_emptied_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Place::new(mine("k")).writing().unwrap().apply(dir.path()).unwrap());
    let whole = text(dir.path());
    for emptied in ["", "\0\0\0\0", " \n"] {
        std::fs::write(dir.path().join(FILE), emptied).unwrap();
        assert_eq!(models_file_problem(dir.path()), None, "{emptied:?}");
        assert!(Place::new(mine("k")).writing().unwrap().apply(dir.path()).unwrap(), "{emptied:?}");
        assert_eq!(text(dir.path()), whole);
    }
}

#[test]
fn a_file_that_was_cut_short_is_kept_beside_and_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Place::new(mine("k")).writing().unwrap().apply(dir.path()).unwrap());
    let whole = text(dir.path());
    let half = &whole[..whole.len() / 2];
    std::fs::write(dir.path().join(FILE), half).unwrap();
    assert!(models_file_problem(dir.path()).is_some());
    assert!(Place::new(mine("k")).writing().unwrap().apply(dir.path()).unwrap());
    assert_eq!(text(dir.path()), whole);
    let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = names.filter(|path| path.to_string_lossy().contains("models.json.damaged-")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), half);
    assert_eq!(set_models_file_aside(dir.path()).unwrap(), None);
}

#[test]
fn what_is_written_can_be_read_by_the_rules_of_the_loader() {
    let place = Place::new(mine("sk-1")).env(&[
        ("MINIMAX_API_KEY", "k"),
        ("VENICE_API_KEY", "k"),
        ("SYNTHETIC_API_KEY", "k"),
    ]);
    let written = place.written().to_string();
    let file = read::parse(&written).unwrap();
    let ids: Vec<_> = file.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["mine", "minimax", "synthetic", "venice"]);
    assert!(file[0].1.api_key.is_none(), "a reference is no key");
    assert_eq!(file[1].1.api_key.as_ref().unwrap().expose_secret(), "MINIMAX_API_KEY");
    let bare = json!({"bare": {"baseUrl": "http://b", "models": [{"id": "a"}]}});
    assert!(
        Place::new(bare).writing().is_none(),
        "a provider that would make the file worthless is left out"
    );
}

fn problem(document: &Value) -> String {
    read::parse(&document.to_string()).unwrap_err().to_string()
}

#[test]
fn a_file_that_breaks_a_rule_is_named_by_it() {
    let with = |provider: Value| json!({"providers": {"x": provider}});
    let full = |change: Value| {
        let mut provider = json!({"baseUrl": "http://x", "apiKey": "k", "api": "a", "models": [{"id": "m"}]});
        for (name, value) in change.as_object().unwrap() {
            if value.is_null() {
                provider.as_object_mut().unwrap().remove(name);
            } else {
                provider[name] = value.clone();
            }
        }
        json!({"providers": {"x": provider}})
    };
    let schema = "Invalid models.json schema: ";
    let rows = [
        (json!({}), format!("{schema}root must have required property 'providers'")),
        (json!({"providers": []}), format!("{schema}/providers must be object")),
        (with(json!({"baseUrl": 1})), format!("{schema}/providers/x/baseUrl must be string")),
        (with(json!({"baseUrl": ""})), format!("{schema}/providers/x/baseUrl must not be empty")),
        (full(json!({"models": {}})), format!("{schema}/providers/x/models must be array")),
        (
            full(json!({"models": [{"name": "n"}]})),
            format!("{schema}/providers/x/models/0 must have required property 'id'"),
        ),
        (
            full(json!({"models": [{"id": "m", "cost": {"input": 1, "output": "2", "cacheRead": 0}}]})),
            format!(
                "{schema}/providers/x/models/0/cost/output must be number; /providers/x/models/0/cost must have required property 'cacheWrite'"
            ),
        ),
        (
            full(json!({"models": [{"id": "m", "input": ["smell"]}]})),
            format!("{schema}/providers/x/models/0/input must be a list of \"text\" and \"image\""),
        ),
        (full(json!({"headers": {"a": 1}})), format!("{schema}/providers/x/headers/a must be string")),
        (full(json!({"authHeader": "yes"})), format!("{schema}/providers/x/authHeader must be boolean")),
        (
            full(json!({"baseUrl": null})),
            "Provider x: \"baseUrl\" is required when defining custom models.".to_owned(),
        ),
        (
            full(json!({"apiKey": null})),
            "Provider x: \"apiKey\" is required when defining custom models.".to_owned(),
        ),
        (
            full(json!({"api": null})),
            "Provider x, model m: no \"api\" specified. Set at provider or model level.".to_owned(),
        ),
        (
            full(json!({"models": [{"id": "m", "contextWindow": 0}]})),
            "Provider x, model m: invalid contextWindow".to_owned(),
        ),
        (
            with(json!({"api": "a"})),
            "Provider x: must specify \"baseUrl\", \"modelOverrides\", or \"models\".".to_owned(),
        ),
    ];
    for (document, expect) in rows {
        assert_eq!(problem(&document), expect, "{document}");
    }
    assert!(read::parse("{").unwrap_err().to_string().starts_with("Failed to parse models.json: "));
}

fn lookup(file: &Value, config: Value, key: &str) -> crate::model_spec::ModelSpec {
    let place = Place::new(config);
    let file = read::parse(&file.to_string()).unwrap();
    let layers = Layers { settings: &place.settings, file: &file, found: &[] };
    Catalog::assemble(&layers).lookup(&ModelRef::parse(key, "anthropic").unwrap()).unwrap()
}

#[test]
fn a_file_adds_models_and_changes_built_in_ones() {
    let file = json!({"providers": {
        "Custom": {"baseUrl": "http://c/v1", "apiKey": "k", "api": "openai-completions", "models": [{"id": "m"}, {"id": "n", "name": "N", "contextWindow": 5000.0, "maxTokens": 9999, "input": ["text", "image"]}]},
        "anthropic": {"baseUrl": "http://proxy", "modelOverrides": {
            "claude-opus-4-6": {"name": "Mine", "contextWindow": 1_000_000, "cost": {"output": 1}, "headers": {"x-a": "b"}},
            "nobody": {"name": "X"}}}}});
    let plain = lookup(&file, json!({}), "custom/m");
    assert_eq!((plain.name.as_str(), plain.context_window, plain.max_tokens), ("m", Some(128_000), 16_384));
    assert!(!plain.window_configured, "the file is the catalog, not the configuration");
    let full = lookup(&file, json!({}), "custom/n");
    assert_eq!(
        (full.name.as_str(), full.context_window, full.max_tokens, full.images),
        ("N", Some(5000), 5000, true)
    );
    let changed = lookup(&file, json!({}), "opus-4.6");
    assert_eq!(
        (changed.name.as_str(), changed.base_url.as_str(), changed.context_window),
        ("Mine", "http://proxy", Some(1_000_000))
    );
    assert_eq!((changed.price.input, changed.price.output, changed.max_tokens), (5.0, 1.0, 128_000));
    assert_eq!(changed.headers.keys().collect::<Vec<_>>(), ["x-a"]);
    let beside = lookup(&file, json!({}), "sonnet-4.5");
    assert_eq!((beside.name.as_str(), beside.base_url.as_str()), ("Claude Sonnet 4.5", "http://proxy"));
    let config = json!({"anthropic": {"baseUrl": "http://mine", "models": []}});
    let configured = lookup(&file, config, "opus-4.6");
    assert_eq!(
        (configured.name.as_str(), configured.base_url.as_str()),
        ("Claude Opus 4.6", "http://mine"),
        "the configuration stands above"
    );
}

#[test]
fn a_file_written_by_openclaw_is_read() {
    let file = json!({"providers": {
        "mock": {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "sk-mock-0123456789abcdef", "api": "openai-completions",
            "models": [{"id": "mock-1", "name": "Mock One", "reasoning": false, "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 32000, "maxTokens": 4096}]},
        "ollama": {"baseUrl": "http://127.0.0.1:11434/v1", "api": "openai-completions", "apiKey": "OLLAMA_API_KEY",
            "models": [{"id": "r1", "name": "r1", "reasoning": true, "input": ["text"], "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 128000, "maxTokens": 8192, "params": {"streaming": false}}]},
        "github-copilot": {"baseUrl": "https://api.business.githubcopilot.com", "models": []}}});
    assert_eq!(lookup(&file, json!({}), "mock/mock-1").context_window, Some(32_000));
    assert!(!lookup(&file, json!({}), "ollama/r1").streaming);
    assert_eq!(
        lookup(&file, json!({}), "github-copilot/gpt-5.2").base_url,
        "https://api.business.githubcopilot.com"
    );
}

#[test]
fn a_changed_file_is_noticed_and_a_broken_one_told() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = FileKeeper::default();
    assert!(keeper.view(dir.path()).providers.is_empty());
    let path = dir.path().join(FILE);
    std::fs::write(&path, json!({"providers": {"x": {"baseUrl": "http://x"}}}).to_string()).unwrap();
    let view = keeper.view(dir.path());
    let again = keeper.view(dir.path());
    assert!(std::sync::Arc::ptr_eq(&view.providers, &again.providers), "read once");
    std::fs::write(&path, "{}").unwrap();
    let warning = keeper.view(dir.path()).warning.unwrap();
    assert_eq!(
        warning,
        format!(
            "{} is ignored: Invalid models.json schema: root must have required property 'providers'",
            path.display()
        )
    );
    std::fs::remove_file(&path).unwrap();
    assert!(keeper.view(dir.path()).warning.is_none());
}
