use std::path::PathBuf;

use openclaw_config::settings::ModelChoice;
use serde_json::{Value, json};

use super::*;
use crate::settings::ListedModel;
use openclaw_config::clock::now_ms;

/// An installation with an agent directory of its own.
struct Place {
    dir: tempfile::TempDir,
    settings: ModelSettings,
    variables: Vec<(&'static str, &'static str)>,
}

impl Place {
    fn new(providers: Value) -> Self {
        let Value::Object(providers) = providers else { panic!() };
        let providers =
            providers.into_iter().map(|(id, p)| (id, serde_json::from_value(p).unwrap())).collect();
        let settings = ModelSettings { providers, ..ModelSettings::default() };
        Self { dir: tempfile::tempdir().unwrap(), settings, variables: Vec::new() }
    }

    fn primary(mut self, model: &str) -> Self {
        self.settings.default_model.primary = Some(model.to_owned());
        self
    }

    fn fallbacks(mut self, models: &[&str]) -> Self {
        self.settings.default_model.fallbacks = Some(models.iter().map(|m| (*m).to_owned()).collect());
        self
    }

    fn listed(mut self, keys: &[&str]) -> Self {
        let listed = |key: &&str| ListedModel { key: (*key).to_owned(), ..ListedModel::default() };
        self.settings.listed = keys.iter().map(listed).collect();
        self
    }

    fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    fn profiles(self, text: &str) -> Self {
        std::fs::write(self.dir.path().join(crate::credentials::FILE), text).unwrap();
        self
    }

    fn models(&self) -> Models {
        // Programs on this machine are not part of a test unless it says so.
        let off = ("OPENCLAW_LOCAL_MODELS", "off");
        Models::new([off].into_iter().chain(self.variables.iter().copied()).collect(), Http::default())
    }

    async fn ask(&self, model: Option<&str>, thinking: AskedThinking) -> Result<Selected, String> {
        let (agent, agent_dir): (AgentId, PathBuf) = (AgentId::default(), self.dir.path().to_path_buf());
        let ask = Ask { model, thinking, ..Ask::new(&agent, &agent_dir) };
        self.models().select(&self.settings, &ask).await.map_err(|error| error.to_string())
    }

    /// The candidates as `reference source`.
    async fn candidates(&self, model: Option<&str>) -> Result<Vec<String>, String> {
        let shown = |c: &Candidate| format!("{} {}", c.reference, c.auth.source);
        Ok(self.ask(model, AskedThinking::Default).await?.candidates.iter().map(shown).collect())
    }
}

fn two() -> Value {
    json!({
        "a": {"baseUrl": "http://a/v1", "apiKey": "key-a", "api": "openai-completions", "models": [{"id": "x"}, {"id": "y", "reasoning": true}]},
        "b": {"baseUrl": "http://b", "apiKey": "key-b", "api": "anthropic-messages", "models": [{"id": "z"}]}})
}

#[tokio::test]
async fn offline_answers_only_when_nothing_at_all_is_connected() {
    let offline = Place::new(json!({})).ask(None, AskedThinking::Default).await.unwrap();
    assert!(offline.is_offline());
    assert_eq!(offline.candidates[0].model.provider(), "offline");
    assert_eq!(offline.candidates[0].thinking, ThinkingLevel::Off);

    let key = Place::new(json!({})).env("ANTHROPIC_API_KEY", "k");
    assert_eq!(key.candidates(None).await.unwrap(), ["anthropic/claude-opus-4-6 env: ANTHROPIC_API_KEY"]);
    let unrelated = Place::new(json!({})).env("GITHUB_TOKEN", "t").env("HF_TOKEN", "t");
    assert!(unrelated.ask(None, AskedThinking::Default).await.unwrap().is_offline());
    let chosen = Place::new(json!({})).primary("anthropic/claude-opus-4-6").env("GROQ_API_KEY", "k");
    let error = chosen.candidates(None).await.unwrap_err();
    assert!(error.starts_with("No API key found for provider \"anthropic\"."), "{error}");
    let keyless = json!({"a": {"baseUrl": "https://a.example/v1", "api": "openai-completions", "models": [{"id": "x"}]}});
    let error = Place::new(keyless).candidates(None).await.unwrap_err();
    assert!(error.starts_with("No API key found for provider \"a\"."), "{error}");
    let asked = Place::new(two()).primary("a/x");
    assert_eq!(asked.candidates(Some("offline/guide")).await.unwrap()[0], "offline/guide ");
}

#[tokio::test]
async fn what_is_connected_is_called_when_nobody_chose_a_model() {
    let rows = [
        (Place::new(two()), vec!["a/x models.json"]),
        (Place::new(json!({})).env("GROQ_API_KEY", "k"), vec!["groq/openai/gpt-oss-120b env: GROQ_API_KEY"]),
        (Place::new(json!({})).env("OPENAI_API_KEY", "k"), vec!["openai/gpt-5.2 env: OPENAI_API_KEY"]),
        (
            Place::new(json!({}))
                .profiles(r#"{"profiles":{"p":{"type":"api_key","provider":"xai","key":"k"}}}"#),
            vec!["xai/grok-4 profile:p"],
        ),
        (Place::new(two()).fallbacks(&["b/z"]), vec!["a/x models.json", "b/z models.json"]),
    ];
    for (place, expect) in rows {
        assert_eq!(place.candidates(None).await.unwrap(), expect);
    }
    let asked = Place::new(two());
    assert_eq!(
        asked.candidates(Some("b/z")).await.unwrap(),
        ["b/z models.json"],
        "only a choice is fallen back to"
    );
}

#[tokio::test]
async fn damaged_credentials_are_named_and_do_not_lead_offline() {
    let damaged = Place::new(json!({})).profiles("{\"profiles\":");
    let error = damaged.candidates(None).await.unwrap_err();
    assert!(error.contains("auth-profiles.json is damaged (line 1)"), "{error}");
    let usable = Place::new(two()).primary("a/x").profiles("{\"profiles\":");
    let selected = usable.ask(None, AskedThinking::Default).await.unwrap();
    assert_eq!(selected.candidates.len(), 1);
    assert!(selected.warnings[0].contains("is damaged"));
}

#[tokio::test]
async fn primary_then_fallbacks_then_the_configured_primary() {
    let place = Place::new(two()).primary("a/x").fallbacks(&["b/z", "a/x", "b/z", "/bad"]);
    assert_eq!(place.candidates(None).await.unwrap(), ["a/x models.json", "b/z models.json"]);
    assert_eq!(
        place.candidates(Some("a/y")).await.unwrap(),
        ["a/y models.json", "b/z models.json", "a/x models.json"]
    );
    let selected = place.ask(None, AskedThinking::Default).await.unwrap();
    assert_eq!(selected.warnings, ["fallback \"/bad\" is not of the form provider/model and is left out"]);

    let listed =
        Place::new(two()).primary("a/x").fallbacks(&["b/z", "a/y"]).listed(&["a/x", "a/y", "gone/1"]);
    let selected = listed.ask(None, AskedThinking::Default).await.unwrap();
    let found: Vec<_> = selected.candidates.iter().map(|c| c.reference.to_string()).collect();
    assert_eq!(found, ["a/x", "a/y"]);
    let told = "fallback b/z is not in agents.defaults.models and is left out; add it there to have it asked";
    assert_eq!(selected.warnings, [told]);
    assert_eq!(listed.candidates(Some("a/y")).await.unwrap(), ["a/y models.json", "a/x models.json"]);
    let gone = listed.ask(Some("gone/1"), AskedThinking::Default).await.unwrap();
    assert!(gone.override_ignored, "{:?}", gone.warnings);

    let mut own = Place::new(two()).primary("a/x").fallbacks(&["b/z"]);
    let choice = ModelChoice { primary: Some("a/y".to_owned()), fallbacks: Some(vec![]) };
    own.settings.agent_models.insert(AgentId::default(), choice);
    assert_eq!(
        own.candidates(None).await.unwrap(),
        ["a/y models.json"],
        "an empty list of its own means none"
    );
}

#[tokio::test]
async fn every_profile_of_a_model_is_a_candidate() {
    let profiles = r#"{"profiles":{
        "a:1":{"type":"api_key","provider":"a","key":"one"},"a:2":{"type":"api_key","provider":"a","key":"two"}},
        "usageStats":{"a:1":{"lastUsed":9}}}"#;
    let place = Place::new(two()).primary("a/x").fallbacks(&["b/z"]).profiles(profiles);
    assert_eq!(
        place.candidates(None).await.unwrap(),
        ["a/x profile:a:2", "a/x profile:a:1", "b/z models.json"]
    );
}

#[tokio::test]
async fn a_session_keeps_its_profile_as_long_as_it_can_be_used() {
    let profiles = r#"{"profiles":{
        "a:1":{"type":"api_key","provider":"a","key":"one"},"a:2":{"type":"api_key","provider":"a","key":"two"},
        "b:1":{"type":"api_key","provider":"b","key":"three"}}}"#;
    let place = Place::new(two()).primary("a/x").profiles(profiles);
    let sources = async |profile: &str| {
        let (agent, dir) = (AgentId::default(), place.dir.path().to_path_buf());
        let pin = Pin { profile: profile.to_owned(), source: PinSource::User, compactions: None };
        let ask = Ask { pin: Some(&pin), ..Ask::new(&agent, &dir) };
        let selected = place.models().select(&place.settings, &ask).await.unwrap();
        let sources: Vec<_> = selected.candidates.iter().map(|c| c.auth.profile.clone().unwrap()).collect();
        (sources.join(" "), selected.profile_ignored)
    };
    assert_eq!(sources("a:2").await, ("a:2".to_owned(), false));
    assert_eq!(sources("gone").await, ("a:1 a:2".to_owned(), true));
    assert_eq!(sources("b:1").await, ("a:1 a:2".to_owned(), true));
}

#[tokio::test]
async fn a_fallback_that_cannot_be_bound_is_passed_over_and_named() {
    let place = Place::new(two()).primary("google-gemini-cli/gemini-3-pro").fallbacks(&["a/x"]);
    let selected = place.ask(None, AskedThinking::Default).await.unwrap();
    assert_eq!(selected.candidates[0].reference.to_string(), "a/x");
    assert_eq!(
        selected.skipped[0].error.to_string(),
        "provider google-gemini-cli speaks google-gemini-cli, which is not supported yet"
    );
    let alone = Place::new(json!({})).primary("google-gemini-cli/gemini-3-pro");
    let error = alone.candidates(None).await.unwrap_err();
    assert_eq!(error, "provider google-gemini-cli speaks google-gemini-cli, which is not supported yet");
}

#[tokio::test]
async fn models_that_do_not_exist_or_are_not_allowed_are_told() {
    let place = Place::new(two()).primary("a/x").listed(&["a/x", "b/z"]);
    let ignored = place.ask(Some("a/y"), AskedThinking::Default).await.unwrap();
    assert!(ignored.override_ignored);
    assert_eq!(ignored.candidates[0].reference.to_string(), "a/x");
    assert_eq!(ignored.warnings, ["model a/y is not allowed any more; the default is used"]);
    assert_eq!(place.candidates(Some(" ")).await.unwrap_err(), "invalid model: empty");
    assert_eq!(place.candidates(Some("x/")).await.unwrap_err(), "invalid model: x/");
    let nobody = Place::new(two()).candidates(Some("nobody/x")).await.unwrap_err();
    assert!(nobody.starts_with("Unknown model: nobody/x (provider nobody is not known"), "{nobody}");
    let choices = place.models().choices(&place.settings, &AgentId::default(), place.dir.path()).await;
    let switch = |text| choices.strict(text).map(|m| m.to_string()).map_err(|e| e.to_string());
    assert_eq!(switch("b/z"), Ok("b/z".to_owned()));
    assert_eq!(switch("a/y"), Err("model not allowed: a/y".to_owned()));
    let warning = |model: &str| choices.warning(&ModelRef::new(model, "m"));
    assert_eq!(
        warning("openai").as_deref(),
        Some(
            "There is no credential for openai: runs fall back to a/x until there is one. Set OPENAI_API_KEY in \
             ~/.openclaw/.env or in the environment of the gateway's service and restart the gateway; or, \
             without a restart, run \
             `openclaw models auth paste-token --provider openai`."
        )
    );
    assert_eq!([warning("offline"), choices.warning(&ModelRef::new("b", "z"))], [None, None]);
    assert!(warning("b").unwrap().starts_with("b does not list \"m\" (models.providers.b.models has: z)."));
    let work = AgentId::normalize("work");
    let choices = place.models().choices(&place.settings, &work, place.dir.path()).await;
    let warning = choices.warning(&ModelRef::new("openai", "m")).unwrap();
    assert!(
        warning.ends_with("`openclaw models auth --agent work paste-token --provider openai`."),
        "{warning}"
    );
    let mut place = place.primary("openai/gpt-5");
    let rows: [(&[&str], &str); 2] = [(&["b/z"], "runs fall back to b/z until"), (&[], "runs fail until")];
    for (fallbacks, expect) in rows {
        place = place.fallbacks(fallbacks);
        let choices = place.models().choices(&place.settings, &AgentId::default(), place.dir.path()).await;
        let warning = choices.warning(&ModelRef::new("openai", "gpt-5")).unwrap();
        assert!(warning.starts_with(&format!("There is no credential for openai: {expect}")), "{warning}");
    }
    let hollow = Place::new(two()).primary("a/x").listed(&["gone/1"]);
    assert_eq!(
        hollow.candidates(Some("a/y")).await.unwrap()[0],
        "a/y models.json",
        "a list of nothing restricts nothing"
    );
}

#[tokio::test]
async fn levels_follow_the_model() {
    use ThinkingLevel::{High, Low, Medium, Off, XHigh};
    let place = Place::new(two());
    let level = async |model: &str, asked| {
        let selected = place.ask(Some(model), asked).await?;
        Ok::<_, String>(selected.candidates[0].thinking)
    };
    assert_eq!(level("a/x", AskedThinking::Explicit(High)).await, Ok(Off));
    assert_eq!(level("a/y", AskedThinking::Default).await, Ok(Low));
    assert_eq!(level("a/y", AskedThinking::Stored(XHigh)).await, Ok(High));
    let refused = level("a/y", AskedThinking::Explicit(XHigh)).await.unwrap_err();
    assert!(
        refused.starts_with("thinking level \"xhigh\" is only supported for openai/gpt-5.2, "),
        "{refused}"
    );
    let mut set = Place::new(two());
    set.settings.thinking_default = Some(Medium);
    assert_eq!(set.ask(Some("a/y"), AskedThinking::Default).await.unwrap().candidates[0].thinking, Medium);
}

#[tokio::test]
async fn parameters_cache_and_window_come_with_the_candidate() {
    let mut place = Place::new(two()).primary("a/x").env("ANTHROPIC_API_KEY", "k");
    place.settings.listed = vec![
        ListedModel {
            key: "a/x".to_owned(),
            max_tokens: Some(9),
            temperature: Some(0.5),
            cache: Some(CacheRetention::None),
            ..ListedModel::default()
        },
        ListedModel { key: "anthropic/opus-4.6".to_owned(), ..ListedModel::default() },
    ];
    place.settings.context_tokens = Some(50_000);
    let selected = place.ask(None, AskedThinking::Default).await.unwrap();
    let first = &selected.candidates[0];
    assert_eq!(
        (first.max_tokens, first.temperature, first.cache),
        (Some(9), Some(0.5), CacheRetention::None)
    );
    assert_eq!((first.window.tokens, first.window.source.as_str()), (50_000, "agentContextTokens"));
    assert_eq!(first.model.context_window(), 50_000);
    let opus = place.ask(Some("anthropic/opus-4.6"), AskedThinking::Default).await.unwrap();
    assert_eq!(opus.candidates[0].cache, CacheRetention::Long, "an API key pays for the hour");
    place.settings.context_tokens = Some(8_000);
    let small = place.candidates(None).await.unwrap_err();
    assert_eq!(small, "Model context window too small (8000 tokens). Minimum is 16000.");
}

#[tokio::test]
async fn a_warning_is_told_once() {
    let mut place = Place::new(two()).primary("a/x");
    let (agent, dir) = (AgentId::default(), place.dir.path().to_path_buf());
    let ask = Ask::new(&agent, &dir);
    let models = place.models();
    let warnings = async |settings: &ModelSettings| models.select(settings, &ask).await.unwrap().warnings;
    place.settings.context_tokens = Some(32_000);
    assert_eq!(warnings(&place.settings).await, Vec::<String>::new());
    place.settings.context_tokens = Some(20_000);
    let told = "the context window of a/x is small: 20000 tokens (agentContextTokens), 32000 or more are recommended";
    assert_eq!(warnings(&place.settings).await, [told]);
    assert_eq!(warnings(&place.settings).await, Vec::<String>::new());
    let place = place.fallbacks(&["/bad"]);
    let told = "fallback \"/bad\" is not of the form provider/model and is left out";
    assert_eq!(warnings(&place.settings).await, [told]);
    assert_eq!(warnings(&place.settings).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_description_needs_no_key() {
    let place = Place::new(two()).primary("b/z");
    let (agent, dir) = (AgentId::default(), place.dir.path().to_path_buf());
    let ask = Ask::new(&agent, &dir);
    let found = place.models().describe(&place.settings, &ask).await.unwrap();
    assert_eq!((found.reference.to_string().as_str(), found.api.as_str()), ("b/z", "anthropic-messages"));
    assert_eq!((found.window.tokens, found.auth.unwrap().source.as_str()), (200_000, "models.json"));
    let bare = Place::new(json!({})).primary("openai/gpt-5.2");
    let found = bare.models().describe(&bare.settings, &ask).await.unwrap();
    assert_eq!((found.name.as_str(), found.reasons, found.sees, found.auth), ("GPT-5.2", true, true, None));
    let offline = Place::new(json!({}));
    let found = offline.models().describe(&offline.settings, &ask).await.unwrap();
    assert_eq!(found.reference.to_string(), "offline/guide");
}

#[tokio::test]
async fn the_rows_of_models_list_begin_with_the_owners() {
    let place = Place::new(two()).env("MOONSHOT_API_KEY", "k");
    let rows = place.models().rows(&place.settings, place.dir.path()).await;
    let keys: Vec<_> = rows.iter().map(|row| format!("{}/{}", row.provider, row.id)).collect();
    assert_eq!(keys[..3], ["a/x", "a/y", "b/z"]);
    assert!(keys.contains(&"moonshot/kimi-k2.5".to_owned()));
    assert!(!keys.contains(&"qianfan/deepseek-v3.2".to_owned()));
    let row = &rows[0];
    assert_eq!(
        (row.context_window, row.reasoning, row.input.join("+").as_str()),
        (Some(200_000), false, "text")
    );
}

/// Profiles `a:1` and `a:2` of provider `a`, with this `usageStats`.
fn cooling_down(stats: &Value) -> String {
    json!({"profiles": {
        "a:1": {"type": "api_key", "provider": "a", "key": "one"},
        "a:2": {"type": "api_key", "provider": "a", "key": "two"}}, "usageStats": stats})
    .to_string()
}

#[tokio::test]
async fn what_a_session_took_by_itself_goes_first_and_the_others_follow() {
    let place =
        Place::new(two()).primary("a/x").fallbacks(&["a/y", "b/z"]).profiles(&cooling_down(&json!({})));
    let (agent, dir) = (AgentId::default(), place.dir.path().to_path_buf());
    let pin = Pin { profile: "a:2".to_owned(), source: PinSource::Auto, compactions: Some(0) };
    let ask = Ask { pin: Some(&pin), ..Ask::new(&agent, &dir) };
    let selected = place.models().select(&place.settings, &ask).await.unwrap();
    let found: Vec<_> =
        selected.candidates.iter().map(|c| format!("{} {}", c.reference, c.auth.source)).collect();
    assert_eq!(
        found,
        ["a/x profile:a:2", "a/x profile:a:1", "a/y profile:a:2", "a/y profile:a:1", "b/z models.json"]
    );
    assert_eq!(selected.pin, Some(pin));
}

#[tokio::test]
async fn a_provider_whose_profiles_all_rest_is_left_out_unless_it_is_the_servers_trouble() {
    let until = now_ms() + 3_600_000;
    let barred = json!({"cooldownUntil": until, "errorCount": 1});
    let unlucky = json!({"cooldownUntil": until, "failureCounts": {"unknown": 1}});
    let left_out = "a/x: Provider a is in cooldown (all profiles unavailable) (rate_limit)";
    let rows = [
        (json!({"a:1": barred, "a:2": barred}), vec!["b/z models.json"], vec![left_out]),
        (json!({"a:1": barred, "a:2": unlucky}), vec!["a/x profile:a:2", "b/z models.json"], vec![]),
        (
            json!({"a:1": unlucky, "a:2": {"lastUsed": 5}}),
            vec!["a/x profile:a:2", "a/x profile:a:1", "b/z models.json"],
            vec![],
        ),
    ];
    for (stats, candidates, skipped) in rows {
        let place = Place::new(two()).primary("a/x").fallbacks(&["b/z"]).profiles(&cooling_down(&stats));
        let selected = place.ask(None, AskedThinking::Default).await.unwrap();
        let found: Vec<_> =
            selected.candidates.iter().map(|c| format!("{} {}", c.reference, c.auth.source)).collect();
        assert_eq!(found, candidates, "{stats}");
        assert_eq!(selected.skipped.iter().map(Skipped::to_string).collect::<Vec<_>>(), skipped);
        let alone = Place::new(two()).primary("a/x").profiles(&cooling_down(&stats));
        if !skipped.is_empty() {
            let error = alone.candidates(None).await.unwrap_err();
            assert!(
                error.starts_with("No available auth profile for a (all in cooldown or unavailable). a:"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn a_model_that_a_person_chose_is_tried_with_credentials_that_failed_before() {
    let now = now_ms();
    let until = now + 3_600_000;
    let disabled =
        |failed_at: i64| json!({"disabledUntil": until, "errorCount": 1, "lastFailureAt": failed_at});
    let place = |failed_at: i64| {
        let stats = json!({"a:1": disabled(failed_at), "a:2": disabled(now + 9)});
        Place::new(two()).primary("a/x").fallbacks(&["a/y", "b/z"]).profiles(&cooling_down(&stats))
    };
    let (agent, tried) = (AgentId::default(), ["a/x profile:a:1", "b/z models.json"]);
    for (failed_at, chosen_at, expect) in [
        (now - 5, Some(now), &tried[..]),
        (now - 5, None, &tried[1..]),
        // The profile was tried, and failed again.
        (now + 5, Some(now), &tried[1..]),
    ] {
        let place = place(failed_at);
        let dir = place.dir.path().to_path_buf();
        let ask = Ask { chosen_at, ..Ask::new(&agent, &dir) };
        let selected = place.models().select(&place.settings, &ask).await.unwrap();
        let found: Vec<_> =
            selected.candidates.iter().map(|c| format!("{} {}", c.reference, c.auth.source)).collect();
        assert_eq!(found, expect, "{failed_at} {chosen_at:?}");
    }
}

#[test]
fn fallbacks_that_no_run_asks_are_named_for_every_agent() {
    let mut place = Place::new(two()).primary("a/x").fallbacks(&["b/z", "a/y"]).listed(&["a/x", "a/y"]);
    let own = ModelChoice { primary: None, fallbacks: Some(vec!["b/z".to_owned(), "/bad".to_owned()]) };
    place.settings.agent_models.insert(AgentId::normalize("work"), own);
    assert_eq!(
        fallbacks_left_out(&place.settings, &Catalog::new(&place.settings)),
        [
            "fallback \"/bad\" is not of the form provider/model and is left out",
            "fallback b/z is not in agents.defaults.models and is left out; add it there to have it asked",
        ]
    );
}

#[tokio::test]
async fn a_run_has_a_bounded_number_of_candidates() {
    let models: Vec<_> = (0..40).map(|n| json!({"id": format!("m{n}")})).collect();
    let names: Vec<String> = (0..40).map(|n| format!("a/m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let provider =
        json!({"baseUrl": "http://a/v1", "apiKey": "k", "api": "openai-completions", "models": models});
    let place = Place::new(json!({"a": provider})).primary("a/m0").fallbacks(&names);
    assert_eq!(place.candidates(None).await.unwrap().len(), MAX_CANDIDATES);
}
