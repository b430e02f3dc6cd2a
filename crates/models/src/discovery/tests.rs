use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_protocol::AgentId;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use super::PATIENCE;
use super::inquiry::{DiscoverySource, Inquiry, KnownAs};
use super::server::reasons;
use crate::credentials::FILE as CREDENTIALS;
use crate::net::Http;
use crate::provider_entry::Asks;
use crate::reference::ProviderId;
use crate::select::{Ask, AskedThinking, Models, PrimaryOrigin};
use crate::settings::ModelSettings;
use crate::variables::Variables;

fn reply(body: &Value) -> Reply {
    Reply::plain(200, "application/json", body.to_string())
}

/// A server that answers by path; what it does not know is not found.
async fn server(routes: Value) -> ModelServer {
    let path = |request: &Captured| request.path.split('?').next().unwrap_or_default().to_owned();
    ModelServer::queue([]).await.listing(move |request| routes.get(path(request)).map(reply))
}

async fn ollama() -> ModelServer {
    ModelServer::queue([]).await.listing(|request| match request.path.as_str() {
        "/api/tags" => {
            let names = ["llama3.2:latest", "deepseek-r1:8b", "nomic-embed-text", "tiny", "old"];
            Some(reply(&json!({"models": names.map(|name| json!({"name": name}))})))
        }
        "/api/show" => details(request.body["model"].as_str().unwrap_or_default()).map(|found| reply(&found)),
        _ => None,
    })
}

fn details(model: &str) -> Option<Value> {
    Some(match model {
        "llama3.2:latest" => {
            json!({"capabilities": ["completion", "tools", "vision"], "model_info": {"llama.context_length": 131_072}})
        }
        "deepseek-r1:8b" => {
            json!({"capabilities": ["completion", "thinking"], "model_info": {"qwen3.context_length": 131_072},
                "parameters": "stop \"x\"\nnum_ctx                        40000"})
        }
        "nomic-embed-text" => {
            json!({"capabilities": ["embedding"], "model_info": {"bert.context_length": 2048}})
        }
        "tiny" => {
            json!({"capabilities": ["completion", "tools"], "model_info": {"llama.context_length": 2048}})
        }
        _ => return None,
    })
}

type Env = &'static [(&'static str, &'static str)];

/// Address at which no server listens.
const NOBODY: &str = "http://127.0.0.1:9";

/// All programs are where nobody is, except for these.
fn places(programs: &[(&str, &str)]) -> String {
    let at = |name: &str| programs.iter().find(|(known, _)| *known == name).map_or(NOBODY, |(_, url)| *url);
    let all = ["ollama", "lmstudio", "llamacpp", "vllm"].map(|name| format!("{name}={}", at(name)));
    all.join(",")
}

struct Place {
    dir: tempfile::TempDir,
    settings: ModelSettings,
    models: Models,
}

impl Place {
    fn new(providers: Value, env: &[(&str, &str)]) -> Self {
        let Value::Object(providers) = providers else { panic!("an object") };
        let providers =
            providers.into_iter().map(|(id, p)| (id, serde_json::from_value(p).unwrap())).collect();
        let settings = ModelSettings { providers, ..ModelSettings::default() };
        let models = Models::new(env.iter().copied().collect(), Http::default());
        Self { dir: tempfile::tempdir().unwrap(), settings, models }
    }

    /// Keys, windows and marks of the models of a provider, as a list has them.
    async fn rows(&self, provider: &str) -> Vec<String> {
        let rows = self.models.ask_for_rows(&self.settings, self.dir.path()).await;
        let of_provider = rows.into_iter().filter(|row| row.provider == provider);
        of_provider
            .map(|row| {
                let reasons = if row.reasoning { " reasons" } else { "" };
                format!("{} {}{} {}", row.id, row.context_window.unwrap(), reasons, row.input.join("+"))
            })
            .collect()
    }

    /// Returns the model that a run is called with: `reference window source`.
    async fn run(&self, model: Option<&str>) -> Result<String, String> {
        let agent = AgentId::default();
        let thinking = AskedThinking::Default;
        let ask = Ask { model, thinking, ..Ask::new(&agent, self.dir.path()) };
        let selected = self.models.select(&self.settings, &ask).await.map_err(|error| error.to_string())?;
        let first = &selected.candidates[0];
        Ok(format!("{} {} {}", first.reference, first.window.tokens, first.auth.mode))
    }
}

#[tokio::test]
async fn ollama_tells_what_its_models_can_do() {
    let server = ollama().await;
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &places(&[("ollama", &server.url())]))]);
    let expect = [
        "llama3.2:latest 131072 text+image",
        "deepseek-r1:8b 40000 reasons text",
        "tiny 2048 text",
        "old 128000 text",
    ];
    assert_eq!(place.rows("ollama").await, expect, "what only embeds is no model for an agent");
    let by_host = Place::new(
        json!({}),
        &[
            ("OLLAMA_HOST", &server.address().to_string()),
            (
                "OPENCLAW_LOCAL_MODELS",
                "lmstudio=http://127.0.0.1:9,llamacpp=http://127.0.0.1:9,vllm=http://127.0.0.1:9",
            ),
        ],
    );
    assert_eq!(by_host.rows("ollama").await.len(), 4);
}

/// The row of Ollama in `models.md` §2.3.
#[test]
fn an_id_may_say_that_its_model_reasons() {
    for (id, expect) in [("x-r1", true), ("my-reasoning", true), ("DeepSeek-R1", true), ("llama", false)] {
        assert_eq!(reasons(id), expect, "{id}");
    }
}

/// The time limit of a program on this machine: five seconds.
#[tokio::test]
async fn a_program_on_this_machine_has_five_seconds_in_all() {
    let server = ModelServer::queue([]).await.listing(|_| Some(Reply::never()));
    let source =
        DiscoverySource::Server { asks: Asks::Ollama, root: server.url(), known_as: KnownAs::Stated };
    let inquiry = Inquiry { provider: ProviderId::normalize("ollama"), source, moved: false, key: None };
    tokio::time::pause();
    let answer = inquiry.ask(&Http::default(), &Variables::default()).await;
    assert_eq!(answer.err().as_deref(), Some("no answer within 5s"));
}

#[tokio::test]
async fn the_other_programs_are_asked_in_their_own_ways() {
    let lm_studio = server(json!({"/api/v0/models": {"data": [
        {"id": "cold", "type": "llm", "state": "not-loaded", "max_context_length": 32_768},
        {"id": "warm", "type": "vlm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": 20_000, "capabilities": ["tool_use"]},
        {"id": "embed", "type": "embeddings", "max_context_length": 2048}]}})).await;
    let llama_cpp = server(json!({
        "/v1/models": {"data": [{"id": "/models/some-7b.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 131_072}}]},
        "/props": {"default_generation_settings": {"n_ctx": 24_576}, "modalities": {"vision": true}}})).await;
    let vllm = server(
        json!({"/v1/models": {"data": [{"id": "meta/llama", "owned_by": "vllm", "max_model_len": 65_536}]}}),
    )
    .await;
    let (a, b, c) = (lm_studio.url(), llama_cpp.url(), vllm.v1());
    let env = places(&[("lmstudio", &a), ("llamacpp", &b), ("vllm", &c)]);
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &env)]);
    assert_eq!(place.rows("lmstudio").await, ["warm 20000 text+image", "cold 32768 text"]);
    assert_eq!(place.rows("llamacpp").await, ["/models/some-7b.gguf 24576 text+image"]);
    assert_eq!(place.rows("vllm").await, ["meta/llama 65536 text"]);
    assert_eq!(place.run(Some("vllm/meta/llama")).await.unwrap(), "vllm/meta/llama 65536 none");
}

#[tokio::test]
async fn a_stranger_on_a_usual_port_is_not_taken_for_a_model_server() {
    let stranger = json!({"/v1/models": {"data": [{"id": "x", "owned_by": "somebody"}]}, "/api/v0/models": {"data": [{"id": "y"}]},
        "/api/tags": {"hello": "world"}});
    for asks in [Asks::LmStudio, Asks::LlamaCpp, Asks::Vllm, Asks::Ollama] {
        let server = server(stranger.clone()).await;
        let url = server.url();
        let ask = async |known_as| {
            let source = DiscoverySource::Server { asks, root: url.clone(), known_as };
            let inquiry = Inquiry { provider: ProviderId::normalize("x"), source, moved: false, key: None };
            inquiry.ask(&Http::default(), &Variables::default()).await.map(|entry| entry.models.len())
        };
        assert!(ask(KnownAs::Guessed).await.is_err(), "{asks:?}");
        let believed = if asks == Asks::Ollama { None } else { Some(1) };
        assert_eq!(ask(KnownAs::Stated).await.ok(), believed, "{asks:?}");
    }
}

#[tokio::test]
async fn a_configured_server_is_asked_where_it_is_configured_and_its_owner_knows_best() {
    let server = server(json!({"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}})).await;
    let entry = json!({"lmstudio": {"baseUrl": server.v1(), "apiKey": "k", "api": "openai-completions",
        "models": [{"id": "b", "contextWindow": 50_000}]}});
    let place = Place::new(entry, &[("OPENCLAW_LOCAL_MODELS", "off")]);
    assert_eq!(place.rows("lmstudio").await, ["b 50000 text", "a 128000 text"]);
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer k"));
    assert_eq!(place.run(None).await.unwrap(), "lmstudio/b 50000 api-key");
}

#[tokio::test]
async fn with_nothing_else_connected_a_model_of_this_machine_answers_and_it_is_told() {
    let server = ollama().await;
    let programs = places(&[("ollama", &server.url())]);
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &programs)]);
    let agent = AgentId::default();
    let before = place.models.primary(&place.settings, &agent, place.dir.path()).await;
    assert_eq!(before.reference.to_string(), "offline/guide", "a look asks nobody");
    assert!(server.requests().is_empty());
    assert_eq!(place.run(None).await.unwrap(), "ollama/llama3.2:latest 131072 none");
    let now = place.models.primary(&place.settings, &agent, place.dir.path()).await;
    assert_eq!(
        (now.reference.to_string().as_str(), now.origin),
        ("ollama/llama3.2:latest", PrimaryOrigin::OnThisMachine)
    );
    assert!(now.warnings[0].contains("OPENCLAW_LOCAL_MODELS=off"), "{:?}", now.warnings);

    let rows: [(&str, Value, Env); 3] = [
        ("openai/gpt-5.2", json!({}), &[("OPENAI_API_KEY", "k")]),
        (
            "mine/m",
            json!({"mine": {"baseUrl": "http://m", "apiKey": "k", "api": "openai-completions", "models": [{"id": "m"}]}}),
            &[],
        ),
        ("offline/guide", json!({}), &[("OPENCLAW_LOCAL_MODELS", "off")]),
    ];
    for (expect, providers, env) in rows {
        let env: Vec<_> =
            [("OPENCLAW_LOCAL_MODELS", programs.as_str())].into_iter().chain(env.iter().copied()).collect();
        let found = Place::new(providers, &env).run(None).await.unwrap();
        assert!(found.starts_with(expect), "{found}");
    }
}

#[tokio::test]
async fn a_server_on_another_machine_is_never_chosen_by_itself() {
    use crate::catalog::{Catalog, Layers, ServerReport};
    use crate::provider_entry::ProviderEntry;
    let settings = ModelSettings::default();
    for (address, expect) in [("http://127.0.0.1:1/v1", 1), ("http://10.0.0.7:11434/v1", 0)] {
        let entry: ProviderEntry =
            serde_json::from_value(json!({"baseUrl": address, "models": [{"id": "m"}]})).unwrap();
        let found =
            [ServerReport { provider: ProviderId::normalize("ollama"), entry: entry.into(), answered: true }];
        let catalog = Catalog::assemble(&Layers { settings: &settings, file: &[], found: &found });
        assert_eq!(catalog.on_this_machine().count(), expect, "{address}");
    }
}

#[tokio::test]
async fn a_model_that_nobody_lists_can_be_asked_for_by_name() {
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &places(&[]))]);
    assert_eq!(place.run(Some("ollama/anything")).await.unwrap(), "ollama/anything 128000 none");
    let key = Place::new(
        json!({}),
        &[("OPENCLAW_LOCAL_MODELS", "off"), ("OLLAMA_API_KEY", "x"), ("OLLAMA_HOST", "127.0.0.1:9")],
    );
    assert_eq!(key.run(Some("ollama/anything")).await.unwrap(), "ollama/anything 128000 api-key");
}

/// A server that has one model until it is told to do something else.
async fn server_until(now: &Arc<AtomicBool>, then: fn() -> Option<Reply>) -> ModelServer {
    let changed = Arc::clone(now);
    ModelServer::queue([]).await.listing(move |request| match request.path.as_str() {
        _ if changed.load(Ordering::SeqCst) => then(),
        "/api/tags" => Some(reply(&json!({"models": [{"name": "m"}]}))),
        _ => None,
    })
}

async fn an_age_later() {
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(31)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn an_answer_is_kept_and_used_while_it_is_renewed() {
    let hangs = Arc::new(AtomicBool::new(false));
    let server = server_until(&hangs, || Some(Reply::never())).await;
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &places(&[("ollama", &server.url())]))]);
    let asked = || server.requests().iter().filter(|request| request.path == "/api/tags").count();
    for _ in 0..3 {
        assert_eq!(place.rows("ollama").await.len(), 1);
    }
    assert_eq!(asked(), 1, "one question for all");
    hangs.store(true, Ordering::SeqCst);
    an_age_later().await;
    assert_eq!(place.rows("ollama").await.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_gone_is_forgotten() {
    let gone = Arc::new(AtomicBool::new(false));
    let server = server_until(&gone, || None).await;
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &places(&[("ollama", &server.url())]))]);
    assert_eq!(place.rows("ollama").await.len(), 1);
    gone.store(true, Ordering::SeqCst);
    an_age_later().await;
    place.rows("ollama").await;
    place.models.all_answered().await;
    assert_eq!(place.rows("ollama").await.len(), 0);
}

#[tokio::test]
async fn a_server_that_hangs_delays_a_run_by_the_patience_and_no_more() {
    let server = ModelServer::queue([]).await.listing(|_| Some(Reply::never()));
    let place = Place::new(json!({}), &[("OPENCLAW_LOCAL_MODELS", &places(&[("vllm", &server.url())]))]);
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    assert!(place.run(None).await.unwrap().starts_with("offline/guide"));
    let waited = begun.elapsed();
    assert!(PATIENCE <= waited && waited < PATIENCE * 2, "{waited:?}");
}

#[tokio::test]
async fn bedrock_is_asked_for_a_list_and_for_its_own_models_only() {
    let server = server(json!({"/foundation-models": {"modelSummaries": [
        {"modelId": "acme.new-model", "modelName": "New", "providerName": "Acme", "inputModalities": ["TEXT", "IMAGE"], "outputModalities": ["TEXT"],
         "responseStreamingSupported": true, "modelLifecycle": {"status": "ACTIVE"}},
        {"modelId": "us.anthropic.claude-haiku-4-5-20251001-v1:0", "modelName": "Haiku", "providerName": "Anthropic", "inputModalities": ["TEXT"], "outputModalities": ["TEXT"],
         "responseStreamingSupported": true, "modelLifecycle": {"status": "ACTIVE"}}]}})).await;
    let url = server.url();
    let env = [
        ("OPENCLAW_LOCAL_MODELS", "off"),
        ("AWS_BEARER_TOKEN_BEDROCK", "b"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ENDPOINT_URL_BEDROCK", url.as_str()),
        ("OPENAI_API_KEY", "k"),
    ];
    let place = Place::new(json!({}), &env);
    place.run(None).await.unwrap();
    place.models.all_answered().await;
    assert!(server.requests().is_empty(), "a run with another provider's model is none of Amazon's business");
    let rows = place.rows("amazon-bedrock").await;
    assert!(rows.contains(&"acme.new-model 32000 text+image".to_owned()), "{rows:?}");
    assert!(
        rows.contains(&"us.anthropic.claude-haiku-4-5-20251001-v1:0 200000 reasons text+image".to_owned()),
        "what is known is known better"
    );
    assert_eq!(
        place.run(Some("amazon-bedrock/acme.new-model")).await.unwrap(),
        "amazon-bedrock/acme.new-model 32000 aws-sdk"
    );
    let mut off = Place::new(json!({}), &env);
    off.settings.bedrock.enabled = Some(false);
    assert!(!off.rows("amazon-bedrock").await.iter().any(|row| row.starts_with("acme.")));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn venice_is_asked_when_it_is_connected_and_its_static_list_stands_in() {
    let rich = server(json!({"/models": {"data": [
        {"id": "llama-3.3-70b", "type": "text", "model_spec": {"availableContextTokens": 1}},
        {"id": "brand-new", "type": "text", "model_spec": {"name": "Brand New", "availableContextTokens": 70_000, "capabilities": {"supportsVision": true, "supportsReasoning": true}}},
        {"id": "painter", "type": "image"}]}})).await;
    let poor = server(json!({})).await;
    let entry = |url: String| json!({"venice": {"baseUrl": url, "api": "openai-completions", "apiKey": "k", "models": []}});
    let env = [("OPENCLAW_LOCAL_MODELS", "off")];
    let rows = Place::new(entry(rich.url()), &env).rows("venice").await;
    assert_eq!(rows, ["llama-3.3-70b 131072 text", "brand-new 70000 reasons text+image"]);
    assert_eq!(rich.requests()[0].header("authorization"), None, "a public list needs no key");
    let rows = Place::new(entry(poor.url()), &env).rows("venice").await;
    assert!(rows.len() > 20, "{rows:?}");
    assert!(Place::new(json!({}), &env).rows("venice").await.is_empty(), "nobody connected it");
}

#[tokio::test]
async fn a_run_writes_models_json_behind_its_back_and_a_look_writes_nothing() {
    let entry = json!({"mine": {"baseUrl": "http://m", "apiKey": "sk-secret", "api": "openai-completions", "models": [{"id": "m"}]}});
    let place = Place::new(entry, &[("OPENCLAW_LOCAL_MODELS", "off")]);
    std::fs::write(place.dir.path().join(CREDENTIALS), "{}").unwrap();
    let path = place.dir.path().join(crate::models_file::FILE);
    let agent = AgentId::default();
    let thinking = AskedThinking::Default;
    let ask = Ask { thinking, ..Ask::new(&agent, place.dir.path()) };
    place.models.describe(&place.settings, &ask).await.unwrap();
    place.models.ask_for_rows(&place.settings, place.dir.path()).await;
    place.models.all_answered().await;
    assert!(!path.exists(), "reading never changes a file");
    place.run(None).await.unwrap();
    place.models.all_answered().await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"mine\"") && !text.contains("sk-secret"), "{text}");
    std::fs::write(&path, "{").unwrap();
    let selected = place.models.select(&place.settings, &ask).await.unwrap();
    assert!(
        selected.warnings[0].contains("models.json is ignored: Failed to parse models.json: "),
        "{:?}",
        selected.warnings
    );
    place.models.all_answered().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{", "not looked at again, and never written over");
}
