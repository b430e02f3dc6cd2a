use serde_json::{Value, json};

use super::*;
use crate::credentials::{AuthStore, FILE};
use crate::settings::ListedModel;
use crate::variables::Variables;

/// Row of a test: the connections and the expected choice.
#[derive(Default)]
struct Row {
    providers: Value,
    listed: &'static [&'static str],
    vars: &'static [&'static str],
    profiles: &'static [&'static str],
    primary: Option<&'static str>,
}

fn find(row: &Row) -> (String, PrimaryOrigin, Vec<String>) {
    let providers: Vec<_> = row
        .providers
        .as_object()
        .into_iter()
        .flatten()
        .map(|(id, entry)| (id.clone(), serde_json::from_value(entry.clone()).unwrap()))
        .collect();
    let listed = |key: &&str| ListedModel { key: (*key).to_owned(), ..ListedModel::default() };
    let mut settings = ModelSettings {
        providers,
        listed: row.listed.iter().map(listed).collect(),
        ..ModelSettings::default()
    };
    settings.default_model.primary = row.primary.map(str::to_owned);
    let profile = |id: &&str| ((*id).to_owned(), json!({"type": "api_key", "provider": id, "key": "k"}));
    let profiles: serde_json::Map<_, _> = row.profiles.iter().map(profile).collect();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(FILE), json!({ "profiles": profiles }).to_string()).unwrap();
    let store = AuthStore::load(dir.path()).unwrap();
    let variables: Variables = row.vars.iter().map(|name| (*name, "k")).collect();
    let catalog = Catalog::new(&settings);
    let connections =
        Connections { store: &store, settings: &settings, catalog: &catalog, variables: &variables };
    let found = Primary::find(&connections, &AgentId::default());
    (found.reference.to_string(), found.origin, found.warnings)
}

fn local(key: Option<&str>, api: &str) -> Value {
    json!({"baseUrl": "https://models.example/v1", "apiKey": key, "api": api, "models": [{"id": "first"}, {"id": "second"}]})
}

#[test]
fn what_is_connected_decides_when_nobody_chose() {
    let chat = "openai-completions";
    let two = json!({"zed": local(Some("k"), chat), "abc": local(Some("k"), chat)});
    let rows: Vec<(Row, &str, PrimaryOrigin)> = vec![
        (Row::default(), "offline/guide", PrimaryOrigin::Offline),
        (Row { vars: &["GH_TOKEN", "HF_TOKEN"], ..Row::default() }, "offline/guide", PrimaryOrigin::Offline),
        (
            Row { vars: &["ANTHROPIC_API_KEY"], ..Row::default() },
            "anthropic/claude-opus-4-6",
            PrimaryOrigin::Connected,
        ),
        (
            Row { vars: &["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], providers: two.clone(), ..Row::default() },
            "anthropic/claude-opus-4-6",
            PrimaryOrigin::Connected,
        ),
        (Row { vars: &["OPENAI_API_KEY"], ..Row::default() }, "openai/gpt-5.2", PrimaryOrigin::Connected),
        (
            Row { vars: &["GEMINI_API_KEY"], ..Row::default() },
            "google/gemini-3-pro-preview",
            PrimaryOrigin::Connected,
        ),
        (
            Row { vars: &["OPENROUTER_API_KEY"], ..Row::default() },
            "openrouter/openrouter/auto",
            PrimaryOrigin::Connected,
        ),
        (
            Row { vars: &["GROQ_API_KEY"], ..Row::default() },
            "groq/openai/gpt-oss-120b",
            PrimaryOrigin::Connected,
        ),
        (
            Row { vars: &["GROQ_API_KEY", "OPENAI_API_KEY"], ..Row::default() },
            "openai/gpt-5.2",
            PrimaryOrigin::Connected,
        ),
        (
            Row { vars: &["GROQ_API_KEY"], providers: two.clone(), ..Row::default() },
            "zed/first",
            PrimaryOrigin::Connected,
        ),
        (
            Row { providers: two, listed: &["gone/x", "abc/second", "zed/first"], ..Row::default() },
            "abc/second",
            PrimaryOrigin::Connected,
        ),
        (Row { profiles: &["xai"], ..Row::default() }, "xai/grok-4", PrimaryOrigin::Connected),
        (
            Row { providers: json!({"a": local(None, chat), "b": local(Some("k"), chat)}), ..Row::default() },
            "b/first",
            PrimaryOrigin::Connected,
        ),
        (
            Row {
                providers: json!({"a": local(Some("${UNSET}"), chat)}),
                vars: &["XAI_API_KEY"],
                ..Row::default()
            },
            "xai/grok-4",
            PrimaryOrigin::Connected,
        ),
        (
            Row {
                providers: json!({"a": {"baseUrl": "http://127.0.0.1:1/v1", "api": chat, "models": [{"id": "m"}]}}),
                ..Row::default()
            },
            "a/m",
            PrimaryOrigin::Connected,
        ),
        (
            Row {
                providers: json!({"groq": {"baseUrl": "https://g.example/v1", "apiKey": "k"}}),
                ..Row::default()
            },
            "groq/openai/gpt-oss-120b",
            PrimaryOrigin::Connected,
        ),
        (
            Row {
                providers: json!({"openai": {"baseUrl": "https://proxy.example/v1"}}),
                vars: &["OPENAI_API_KEY"],
                ..Row::default()
            },
            "openai/gpt-5.2",
            PrimaryOrigin::Connected,
        ),
        (
            Row { providers: json!({"a": local(Some("k"), "google-gemini-cli")}), ..Row::default() },
            "a/first",
            PrimaryOrigin::Unusable,
        ),
        (
            Row { providers: json!({"a": local(None, chat)}), ..Row::default() },
            "a/first",
            PrimaryOrigin::Unusable,
        ),
        (
            Row { primary: Some("groq/x"), vars: &["ANTHROPIC_API_KEY"], ..Row::default() },
            "groq/x",
            PrimaryOrigin::Configured,
        ),
    ];
    for (row, model, origin) in rows {
        let (reference, found, _) = find(&row);
        let Row { providers, vars, profiles, listed, .. } = row;
        assert_eq!(
            (reference.as_str(), found),
            (model, origin),
            "{providers} {vars:?} {profiles:?} {listed:?}"
        );
    }
}

#[test]
fn a_key_for_a_provider_that_nothing_is_chosen_of_is_named() {
    let (model, origin, warnings) = find(&Row { vars: &["AZURE_OPENAI_API_KEY"], ..Row::default() });
    assert_eq!((model.as_str(), origin), ("offline/guide", PrimaryOrigin::Offline));
    assert_eq!(
        warnings,
        [
            "there are credentials for azure-openai-responses, but none of them can be used without a choice; set \
          agents.defaults.model.primary to <provider>/<model>. Until then the offline guide answers"
        ]
    );
}

#[test]
fn every_choice_is_a_model_of_the_catalog_whose_protocol_is_spoken() {
    let catalog = Catalog::new(&ModelSettings::default());
    for (provider, model) in CHOICES {
        assert!(speaks(&catalog, &ModelRef::new(provider, model)), "{provider}/{model}");
    }
}
