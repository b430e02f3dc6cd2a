use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::reference::ModelRef;

fn settings(mode: CatalogMode, providers: serde_json::Value) -> ModelSettings {
    let serde_json::Value::Object(providers) = providers else { panic!("an object") };
    let providers =
        providers.into_iter().map(|(id, entry)| (id, serde_json::from_value(entry).unwrap())).collect();
    ModelSettings { catalog_mode: mode, providers, ..ModelSettings::default() }
}

fn catalog(providers: serde_json::Value) -> Catalog {
    Catalog::new(&settings(CatalogMode::Merge, providers))
}

fn find(catalog: &Catalog, text: &str) -> Result<ModelSpec, String> {
    catalog.lookup(&ModelRef::parse(text, "anthropic").unwrap()).map_err(|error| error.to_string())
}

#[test]
fn the_built_in_list_parses_and_holds_the_reference_prices() {
    let parsed: BTreeMap<String, ProviderEntry> = serde_json::from_str(include_str!("builtin.json")).unwrap();
    assert_eq!(parsed.len(), BUILT_IN.len());
    let catalog = catalog(json!({}));
    let rows = [
        ("anthropic/claude-opus-4-6", [5.0, 25.0, 0.5, 6.25], 200_000, 128_000),
        ("anthropic/claude-sonnet-4-5", [3.0, 15.0, 0.3, 3.75], 200_000, 64_000),
        ("anthropic/claude-haiku-4-5", [1.0, 5.0, 0.1, 1.25], 200_000, 64_000),
        ("openai/gpt-5.2", [1.75, 14.0, 0.175, 0.0], 400_000, 128_000),
        ("openai-codex/gpt-5.3-codex", [1.75, 14.0, 0.175, 0.0], 272_000, 128_000),
        ("openai/gpt-5-mini", [0.25, 2.0, 0.025, 0.0], 400_000, 128_000),
        ("google/gemini-3-pro", [2.0, 12.0, 0.2, 0.0], 1_000_000, 64_000),
        ("google/gemini-2.5-flash", [0.3, 2.5, 0.075, 0.0], 1_048_576, 65_536),
    ];
    for (key, price, window, max) in rows {
        let spec = find(&catalog, key).unwrap();
        let found = [spec.price.input, spec.price.output, spec.price.cache_read, spec.price.cache_write];
        assert_eq!((found, spec.context_window, spec.max_tokens), (price, Some(window), max), "{key}");
        assert!(spec.reasoning && spec.images, "{key}");
    }
}

#[test]
fn a_provider_without_models_redirects_the_built_in_ones() {
    let entry =
        json!({"anthropic": {"baseUrl": "http://127.0.0.1:9/", "headers": {"x-a": "b"}, "models": []}});
    let spec = find(&catalog(entry), "opus-4.6").unwrap();
    assert_eq!((spec.base_url.as_str(), spec.name.as_str()), ("http://127.0.0.1:9", "Claude Opus 4.6"));
    let headers: Vec<_> =
        spec.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(headers, [("x-a", "b")]);
}

#[test]
fn configured_models_come_first_and_get_the_documented_defaults() {
    let entry = json!({"Local": {"baseUrl": "http://l/v1", "api": "openai-completions", "models": [
        {"id": "a", "name": "A"},
        {"id": "b", "name": "B", "contextWindow": 4096, "maxTokens": 9000, "input": ["text", "image"]}]}});
    let catalog = catalog(entry);
    let a = find(&catalog, "local/a").unwrap();
    assert_eq!((a.context_window, a.window_configured, a.max_tokens), (None, false, 8192));
    assert_eq!((a.reasoning, a.images, a.price), (false, false, Price::default()));
    let b = find(&catalog, "local/b").unwrap();
    assert_eq!(
        (b.context_window, b.window_configured, b.max_tokens, b.images),
        (Some(4096), true, 4096, true)
    );
    let rows = catalog.rows(|_| false);
    let first: Vec<_> = rows.iter().take(2).map(|row| row.id.as_str()).collect();
    assert_eq!(first, ["a", "b"]);
    assert!(rows.iter().any(|row| row.id == "claude-opus-4-6"));
    assert!(!rows.iter().any(|row| row.provider == "moonshot"), "implicit providers need a credential");
    assert!(catalog.rows(|id| id.as_str() == "moonshot").iter().any(|row| row.id == "kimi-k2.5"));
}

#[test]
fn an_explicit_model_replaces_the_built_in_one_of_its_id() {
    let entry = json!({"anthropic": {"baseUrl": "https://api.anthropic.com", "models": [
        {"id": "claude-opus-4-6", "name": "Mine", "contextWindow": 1000000}]}});
    let catalog = catalog(entry);
    let spec = find(&catalog, "opus-4.6").unwrap();
    assert_eq!(
        (spec.name.as_str(), spec.context_window, spec.window_configured),
        ("Mine", Some(1_000_000), true)
    );
    assert!(find(&catalog, "sonnet-4.5").is_ok(), "the others stay");
}

#[test]
fn replace_mode_knows_only_what_is_configured() {
    let entry =
        json!({"local": {"baseUrl": "http://l", "api": "openai-completions", "models": [{"id": "a"}]}});
    let catalog = Catalog::new(&settings(CatalogMode::Replace, entry));
    assert!(find(&catalog, "local/a").is_ok());
    assert_eq!(find(&catalog, "opus-4.6").unwrap_err(), "Unknown model: anthropic/claude-opus-4-6");
    assert_eq!(catalog.rows(|_| true).len(), 1);
}

#[test]
fn ids_that_are_not_listed_are_looked_up_as_the_spec_says() {
    let entry = json!({
        "local": {"baseUrl": "http://l", "models": [{"id": "a", "api": "openai-completions", "contextWindow": 30000, "maxTokens": 100}]},
        "bare": {"baseUrl": "http://l", "models": [{"id": "a"}]},
        "nowhere": {"api": "openai-completions", "models": [{"id": "a"}]}});
    let catalog = catalog(entry);
    let dated = find(&catalog, "anthropic/claude-opus-4-6-20260201").unwrap();
    assert_eq!((dated.id(), dated.max_tokens), ("claude-opus-4-6-20260201", 128_000));
    assert_eq!(find(&catalog, "anthropic/claude-opus-4.6-latest").unwrap().price.output, 25.0);
    let new = find(&catalog, "local/other").unwrap();
    assert_eq!(
        (new.api.as_str(), new.context_window, new.max_tokens),
        ("openai-completions", Some(30_000), 100)
    );
    assert_eq!(find(&catalog, "bare/new").unwrap().api.as_str(), "openai-responses");
    let open = find(&catalog, "openrouter/moonshotai/kimi-k2").unwrap();
    assert_eq!((open.id(), open.base_url.as_str()), ("moonshotai/kimi-k2", "https://openrouter.ai/api/v1"));
    let ollama = find(&catalog, "ollama/llama3.2").unwrap();
    assert_eq!(
        (ollama.base_url.as_str(), ollama.context_window),
        ("http://127.0.0.1:11434/v1", Some(128_000))
    );
    assert!(!ollama.streaming);
    let rows = [
        ("anthropic/claude-opus-9", "Unknown model: anthropic/claude-opus-9"),
        ("nobody/x", "Unknown model: nobody/x"),
        ("bare/a", "Provider bare, model a: no \"api\" specified. Set at provider or model level."),
        ("nowhere/a", "Provider nowhere: \"baseUrl\" is required when defining custom models."),
    ];
    for (key, expect) in rows {
        assert_eq!(find(&catalog, key).unwrap_err(), expect, "{key}");
    }
}

#[test]
fn variables_with_keys_are_found_in_their_order() {
    let names: Vec<_> = key_variables(&ProviderId::normalize("anthropic")).collect();
    assert_eq!(names, ["ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"]);
    let variables: Variables =
        [("GROQ_API_KEY", "k"), ("XAI_API_KEY", " "), ("GITHUB_TOKEN", "t")].into_iter().collect();
    let found: Vec<_> = providers_with_key(&variables).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["groq"], "a GitHub token alone connects no model");
}
