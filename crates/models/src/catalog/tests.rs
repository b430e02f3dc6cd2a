use openclaw_config::settings::ModelCost;
use openclaw_config::settings::ModelsMode;
use secrecy::ExposeSecret;
use serde_json::json;

use super::*;
use crate::reference::ModelRef;

fn settings(mode: ModelsMode, providers: serde_json::Value) -> ModelSettings {
    let serde_json::Value::Object(providers) = providers else { panic!("an object") };
    let providers =
        providers.into_iter().map(|(id, entry)| (id, serde_json::from_value(entry).unwrap())).collect();
    ModelSettings { catalog_mode: mode, providers, ..ModelSettings::default() }
}

fn catalog(providers: serde_json::Value) -> Catalog {
    Catalog::new(&settings(ModelsMode::Merge, providers))
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
    assert_eq!((a.reasoning, a.images, a.price), (false, false, ModelCost::default()));
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
    let catalog = Catalog::new(&settings(ModelsMode::Replace, entry));
    assert!(find(&catalog, "local/a").is_ok());
    let unknown = find(&catalog, "opus-4.6").unwrap_err();
    assert!(
        unknown.starts_with("Unknown model: anthropic/claude-opus-4-6 (provider anthropic is not known"),
        "{unknown}"
    );
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
        (
            "anthropic/claude-opus-9",
            "Unknown model: anthropic/claude-opus-9 (`openclaw models list --all --provider anthropic` shows the known ones)",
        ),
        (
            "nobody/x",
            "Unknown model: nobody/x (provider nobody is not known: add it to models.providers with its baseUrl, or choose \
             one of `openclaw models list --all`)",
        ),
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

/// The tables of spec `models.md` §2.3, row by row.
#[test]
fn every_provider_of_the_spec_is_there_with_its_protocol_address_and_variables() {
    let rows: &[(&str, &str, Option<&str>, &[&str])] = &[
        (
            "anthropic",
            "anthropic-messages",
            Some("https://api.anthropic.com"),
            &["ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"],
        ),
        ("openai", "openai-responses", Some("https://api.openai.com/v1"), &["OPENAI_API_KEY"]),
        ("openai-codex", "openai-codex-responses", Some("https://chatgpt.com/backend-api"), &[]),
        ("azure-openai-responses", "azure-openai-responses", None, &["AZURE_OPENAI_API_KEY"]),
        (
            "google",
            "google-generative-ai",
            Some("https://generativelanguage.googleapis.com/v1beta"),
            &["GEMINI_API_KEY"],
        ),
        ("google-vertex", "google-vertex", None, &[]),
        ("google-gemini-cli", "google-gemini-cli", None, &[]),
        ("google-antigravity", "google-gemini-cli", None, &[]),
        ("amazon-bedrock", "bedrock-converse-stream", None, &[]),
        (
            "github-copilot",
            "",
            Some("https://api.individual.githubcopilot.com"),
            &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"],
        ),
        ("openrouter", "openai-completions", Some("https://openrouter.ai/api/v1"), &["OPENROUTER_API_KEY"]),
        (
            "vercel-ai-gateway",
            "anthropic-messages",
            Some("https://ai-gateway.vercel.sh"),
            &["AI_GATEWAY_API_KEY"],
        ),
        ("cloudflare-ai-gateway", "anthropic-messages", None, &["CLOUDFLARE_AI_GATEWAY_API_KEY"]),
        ("xai", "openai-completions", Some("https://api.x.ai/v1"), &["XAI_API_KEY"]),
        ("groq", "openai-completions", Some("https://api.groq.com/openai/v1"), &["GROQ_API_KEY"]),
        ("cerebras", "openai-completions", Some("https://api.cerebras.ai/v1"), &["CEREBRAS_API_KEY"]),
        ("mistral", "openai-completions", Some("https://api.mistral.ai/v1"), &["MISTRAL_API_KEY"]),
        (
            "zai",
            "openai-completions",
            Some("https://api.z.ai/api/coding/paas/v4"),
            &["ZAI_API_KEY", "Z_AI_API_KEY"],
        ),
        ("huggingface", "openai-completions", Some("https://router.huggingface.co/v1"), &["HF_TOKEN"]),
        (
            "opencode",
            "openai-completions",
            Some("https://opencode.ai/zen/v1"),
            &["OPENCODE_API_KEY", "OPENCODE_ZEN_API_KEY"],
        ),
        (
            "kimi-coding",
            "anthropic-messages",
            Some("https://api.kimi.com/coding"),
            &["KIMI_API_KEY", "KIMICODE_API_KEY"],
        ),
        ("minimax", "openai-completions", Some("https://api.minimax.chat/v1"), &["MINIMAX_API_KEY"]),
        (
            "minimax-cn",
            "anthropic-messages",
            Some("https://api.minimaxi.com/anthropic"),
            &["MINIMAX_CN_API_KEY"],
        ),
        (
            "minimax-portal",
            "anthropic-messages",
            Some("https://api.minimax.io/anthropic"),
            &["MINIMAX_OAUTH_TOKEN"],
        ),
        ("moonshot", "openai-completions", Some("https://api.moonshot.ai/v1"), &["MOONSHOT_API_KEY"]),
        (
            "qwen-portal",
            "openai-completions",
            Some("https://portal.qwen.ai/v1"),
            &["QWEN_OAUTH_TOKEN", "QWEN_PORTAL_API_KEY"],
        ),
        (
            "synthetic",
            "anthropic-messages",
            Some("https://api.synthetic.new/anthropic"),
            &["SYNTHETIC_API_KEY"],
        ),
        ("venice", "openai-completions", Some("https://api.venice.ai/api/v1"), &["VENICE_API_KEY"]),
        ("xiaomi", "anthropic-messages", Some("https://api.xiaomimimo.com/anthropic"), &["XIAOMI_API_KEY"]),
        ("qianfan", "openai-completions", Some("https://qianfan.baidubce.com/v2"), &["QIANFAN_API_KEY"]),
        ("ollama", "openai-completions", Some("http://127.0.0.1:11434/v1"), &["OLLAMA_API_KEY"]),
        (
            "chutes",
            "openai-completions",
            Some("https://llm.chutes.ai/v1"),
            &["CHUTES_OAUTH_TOKEN", "CHUTES_API_KEY"],
        ),
        ("lmstudio", "openai-completions", Some("http://127.0.0.1:1234/v1"), &["LM_STUDIO_API_KEY"]),
        ("llamacpp", "openai-completions", Some("http://127.0.0.1:8080/v1"), &["LLAMA_API_KEY"]),
        ("vllm", "openai-completions", Some("http://127.0.0.1:8000/v1"), &["VLLM_API_KEY"]),
    ];
    let catalog = catalog(json!({}));
    for (id, api, base_url, variables) in rows {
        let id = ProviderId::normalize(id);
        let entry = catalog.provider(&id).unwrap_or_else(|| panic!("{id}"));
        let found = (entry.api.as_ref().map_or("", |api| api.as_str()), entry.base_url.as_deref());
        assert_eq!(found, (*api, *base_url), "{id}");
        assert_eq!(&key_variables(&id).collect::<Vec<_>>(), variables, "{id}");
    }
    assert_eq!(rows.len(), BUILT_IN.len(), "a provider has no row");
}

/// The default models of implicit providers in spec `models.md` §2.3.
#[test]
fn implicit_providers_have_the_models_of_the_spec() {
    let rows = [
        ("minimax/MiniMax-M2.1", 200_000, 8192, [15.0, 60.0, 2.0, 10.0]),
        ("minimax/MiniMax-VL-01", 200_000, 8192, [15.0, 60.0, 2.0, 10.0]),
        ("minimax-portal/MiniMax-M2.1", 200_000, 8192, [0.0; 4]),
        ("moonshot/kimi-k2.5", 256_000, 8192, [0.0; 4]),
        ("qwen-portal/coder-model", 128_000, 8192, [0.0; 4]),
        ("qwen-portal/vision-model", 128_000, 8192, [0.0; 4]),
        ("xiaomi/mimo-v2-flash", 262_144, 8192, [0.0; 4]),
        ("qianfan/deepseek-v3.2", 98_304, 32_768, [0.0; 4]),
        ("qianfan/ernie-5.0-thinking-preview", 119_000, 64_000, [0.0; 4]),
    ];
    let catalog = catalog(json!({}));
    for (key, window, max, price) in rows {
        let spec = find(&catalog, key).unwrap();
        let found = [spec.price.input, spec.price.output, spec.price.cache_read, spec.price.cache_write];
        assert_eq!((spec.context_window, spec.max_tokens, found), (Some(window), max, price), "{key}");
    }
    let placeholders: Vec<_> = BUILT_IN
        .iter()
        .filter_map(|(id, entry)| Some((id.as_str(), entry.placeholder.as_deref()?)))
        .collect();
    assert_eq!(placeholders, [("minimax-portal", "minimax-oauth"), ("qwen-portal", "qwen-oauth")]);
}

#[test]
fn the_built_in_list_is_sound() {
    // Azure's address is that of the owner's resource.
    let azure = json!({"azure-openai-responses": {"baseUrl": "https://mine.openai.azure.com", "models": []}});
    let catalog = catalog(azure);
    for (provider, entry) in BUILT_IN.iter() {
        let mut ids = std::collections::HashSet::new();
        for model in &entry.models {
            let key = format!("{provider}/{}", model.id);
            assert!(ids.insert(&model.id), "{key} is listed twice");
            let spec = catalog
                .lookup(&ModelRef::new(provider.as_str(), &model.id))
                .unwrap_or_else(|e| panic!("{key}: {e}"));
            assert!(spec.max_tokens > 0 && spec.context_window >= Some(8_192), "{key}");
            assert!(spec.price.input >= 0.0 && spec.price.output >= 0.0, "{key}");
            assert!(crate::protocols::protocol(&spec.api).is_some(), "{key}");
        }
    }
}

#[test]
fn a_model_may_speak_another_protocol_at_another_address_than_its_provider() {
    let built_in = catalog(json!({}));
    let rows = [
        ("opencode/claude-opus-4-6", "anthropic-messages", "https://opencode.ai/zen"),
        ("opencode/gpt-5.2", "openai-responses", "https://opencode.ai/zen/v1"),
        ("opencode/glm-4.7", "openai-completions", "https://opencode.ai/zen/v1"),
        ("github-copilot/gpt-5.2", "openai-responses", "https://api.individual.githubcopilot.com"),
        ("github-copilot/claude-opus-4.6", "openai-completions", "https://api.individual.githubcopilot.com"),
        ("github-copilot/new", "openai-completions", "https://api.individual.githubcopilot.com"),
    ];
    for (key, api, base_url) in rows {
        let spec = find(&built_in, key).unwrap();
        assert_eq!((spec.api.as_str(), spec.base_url.as_str()), (api, base_url), "{key}");
    }
    let moved = catalog(json!({"opencode": {"baseUrl": "http://proxy", "models": []}}));
    assert_eq!(find(&moved, "opencode/claude-opus-4-6").unwrap().base_url, "http://proxy");
}

/// Spec `models.md` §2.2, in its order.
#[test]
fn newcomers_are_like_their_siblings() {
    let codex = json!({"openai-codex": {"baseUrl": "http://c", "api": "openai-codex-responses", "models": [
        {"id": "gpt-5.2-codex", "contextWindow": 111_111, "maxTokens": 9}]}});
    let codex = Catalog::new(&settings(ModelsMode::Replace, codex));
    let spec = find(&codex, "openai-codex/gpt-5.3-codex").unwrap();
    assert_eq!(
        (spec.name.as_str(), spec.context_window, spec.reasoning),
        ("gpt-5.3-codex", Some(111_111), true)
    );
    let opus = json!({"anthropic": {"baseUrl": "http://a", "api": "anthropic-messages", "models": [
        {"id": "claude-opus-4-5", "contextWindow": 222_222, "maxTokens": 9, "input": ["text", "image"]}]}});
    let opus = Catalog::new(&settings(ModelsMode::Replace, opus));
    for id in ["claude-opus-4-6", "claude-opus-4.6", "claude-opus-4-6-20260205", "Claude-Opus-4.6-fast"] {
        let spec = find(&opus, &format!("anthropic/{id}")).unwrap();
        assert_eq!((spec.id(), spec.context_window, spec.images), (id, Some(222_222), true), "{id}");
    }
    assert_eq!(
        find(&opus, "anthropic/claude-opus-4-61").unwrap().context_window,
        Some(222_222),
        "any id of a configured provider"
    );
    let built_in = catalog(json!({}));
    assert_eq!(find(&built_in, "anthropic/claude-opus-4-6-preview").unwrap().max_tokens, 128_000);
    assert!(find(&built_in, "anthropic/claude-opus-4-61").is_err());
    assert!(find(&built_in, "openai-codex/gpt-5.4-codex").is_err());
}

#[test]
fn any_id_of_a_configured_provider_is_a_text_model_like_its_first() {
    let catalog = catalog(json!({
        "local": {"baseUrl": "http://l", "api": "anthropic-messages", "models": [
            {"id": "a", "contextWindow": 30_000, "maxTokens": 100, "reasoning": true, "input": ["text", "image"], "cost": {"input": 1, "output": 1}}]},
        "empty": {"baseUrl": "http://e", "models": []}}));
    let like = find(&catalog, "LOCAL/new").unwrap();
    assert_eq!(
        (like.api.as_str(), like.context_window, like.max_tokens),
        ("anthropic-messages", Some(30_000), 100)
    );
    assert_eq!((like.reasoning, like.images, like.price), (false, false, ModelCost::default()));
    let empty = find(&catalog, "empty/new").unwrap();
    assert_eq!(
        (empty.api.as_str(), empty.context_window, empty.max_tokens),
        ("openai-responses", None, 200_000)
    );
    assert_eq!(find(&catalog, "anthropic/mock-1").unwrap().api.as_str(), "anthropic-messages");
}

#[test]
fn z_ai_is_told_apart_by_id_and_by_address() {
    let catalog = catalog(json!({
        "mine": {"baseUrl": "https://api.z.ai/api/paas/v4", "api": "openai-completions", "models": [{"id": "glm"}]},
        "other": {"baseUrl": "https://other", "api": "openai-completions", "models": [{"id": "glm"}]}}));
    let rows = [
        ("zai/glm-4.7", Some(false)),
        ("z.ai/new", Some(false)),
        ("mine/glm", Some(false)),
        ("other/glm", None),
    ];
    for (key, expect) in rows {
        assert_eq!(find(&catalog, key).unwrap().compat.supports_developer_role, expect, "{key}");
    }
}
