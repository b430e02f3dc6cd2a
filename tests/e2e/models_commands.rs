//! `openclaw models list|status|set|set-image|aliases|fallbacks|image-fallbacks` through the real binary.

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, openclaw};

/// The installation of the recording.
fn recorded_installation() -> GatewayUnderTest {
    let config = json!({
        "agents": {"defaults": {
            "model": {"primary": "mock/mock-1", "fallbacks": ["openai/gpt-5.2"]},
            "models": {"mock/mock-1": {"alias": "mk"}}}},
        "models": {"providers": {"mock": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions",
            "apiKey": "sk-mock-0123456789abcdef",
            "models": [{"id": "mock-1", "name": "Mock One", "contextWindow": 32000}]}}}});
    gateway().whole_config(config).prepare().unwrap()
}

/// Recorded text that is different with us, and what stands there instead.
const DIFFERENT: &[(&str, &str)] = &[
    // Only the last four characters of a key are shown.
    ("sk-mock-...89abcdef", "...cdef"),
    // The key is read from the config; it is not copied elsewhere.
    ("models.json: <STATE>/agents/main/agent/models.json", "models.json: models.providers.mock.apiKey"),
    // There is no wizard; the variable is named.
    (
        "Run `openclaw configure` or set an API key env var.",
        "Set OPENAI_API_KEY in <STATE>/.env or in the environment of the gateway's service and restart the \
         gateway; or, without a restart, run `openclaw models auth paste-token --provider openai`.",
    ),
];

fn as_ours(text: &str) -> String {
    DIFFERENT.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
}

#[tokio::test]
async fn what_is_printed_is_what_was_recorded() {
    let gateway = recorded_installation();
    let runs: Value = serde_json::from_str(include_str!("../golden/cli-models.json")).unwrap();
    let state = gateway.state_dir().display().to_string();
    for run in runs.as_array().unwrap() {
        let argv: Vec<&str> =
            run["argv"].as_array().unwrap().iter().filter_map(Value::as_str).skip(1).collect();
        let ended = openclaw(&gateway, &argv).await;
        assert_eq!(ended.code.map(i64::from), run["exitCode"].as_i64(), "{argv:?} {ended:?}");
        let out = ended.out.replace(&state, "<STATE>").replace("~/.openclaw", "<STATE>");
        if run.get("stdoutJson").is_some() {
            let (ours, theirs): (Value, Value) = (
                serde_json::from_str(&out).unwrap(),
                serde_json::from_str(&as_ours(&run["stdoutJson"].to_string())).unwrap(),
            );
            assert_eq!(format!("{ours:#}"), format!("{theirs:#}"), "{argv:?}");
        } else {
            let lines: Vec<&str> =
                run["stdout"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(out, as_ours(&lines.join("\n")), "{argv:?}");
        }
    }
}

fn defaults(gateway: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(gateway.state_dir().join("openclaw.json")).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    config["agents"]["defaults"].clone()
}

/// Runs `openclaw models` with these words; what it prints after the line that names the file.
async fn change(gateway: &GatewayUnderTest, line: &str) -> String {
    let words: Vec<&str> = std::iter::once("models").chain(line.split(' ')).collect();
    let ended = openclaw(gateway, &words).await;
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    ended.out.trim_start_matches("Updated ~/.openclaw/openclaw.json\n").trim_end().to_owned()
}

async fn refused(gateway: &GatewayUnderTest, line: &str) -> Ended {
    let words: Vec<&str> = std::iter::once("models").chain(line.split(' ')).collect();
    let before = std::fs::read(gateway.state_dir().join("openclaw.json")).unwrap();
    let ended = openclaw(gateway, &words).await;
    assert_eq!(std::fs::read(gateway.state_dir().join("openclaw.json")).unwrap(), before, "{line}");
    ended
}

#[tokio::test]
async fn models_are_chosen_and_only_what_was_meant_is_changed() {
    let gateway = recorded_installation();
    assert_eq!(change(&gateway, "set openai/gpt-5.2").await, "Default model: openai/gpt-5.2");
    assert_eq!(
        defaults(&gateway)["model"],
        json!({"primary": "openai/gpt-5.2", "fallbacks": ["openai/gpt-5.2"]})
    );
    // There is a list of allowed models, so the new one joins it.
    assert_eq!(defaults(&gateway)["models"], json!({"mock/mock-1": {"alias": "mk"}, "openai/gpt-5.2": {}}));
    assert_eq!(change(&gateway, "set MK").await, "Default model: mock/mock-1");
    assert_eq!(change(&gateway, "set sonnet-4.5").await, "Default model: anthropic/claude-sonnet-4-5");
    assert_eq!(change(&gateway, "set-image openai/gpt-5-mini").await, "Image model: openai/gpt-5-mini");
    assert_eq!(defaults(&gateway)["imageModel"], json!({"primary": "openai/gpt-5-mini"}));

    assert_eq!(change(&gateway, "fallbacks add mk").await, "Fallbacks: openai/gpt-5.2, mock/mock-1");
    assert_eq!(change(&gateway, "fallbacks add mock/mock-1").await, "Fallbacks: openai/gpt-5.2, mock/mock-1");
    assert_eq!(change(&gateway, "fallbacks remove openai/gpt-5.2").await, "Fallbacks: mock/mock-1");
    assert_eq!(change(&gateway, "fallbacks list").await, "Fallbacks (1):\n- mock/mock-1");
    assert_eq!(change(&gateway, "fallbacks list --plain").await, "mock/mock-1");
    assert_eq!(change(&gateway, "fallbacks clear").await, "Fallback list cleared.");
    assert_eq!(change(&gateway, "fallbacks list").await, "Fallbacks (0):\n- none");
    assert_eq!(
        change(&gateway, "image-fallbacks add anthropic/opus-4.6").await,
        "Image fallbacks: anthropic/claude-opus-4-6"
    );
    assert_eq!(change(&gateway, "image-fallbacks list --plain").await, "anthropic/claude-opus-4-6");
    assert_eq!(change(&gateway, "image-fallbacks clear").await, "Image fallback list cleared.");

    assert_eq!(
        change(&gateway, "aliases add fast openai/gpt-5-mini").await,
        "Alias fast -> openai/gpt-5-mini"
    );
    assert_eq!(change(&gateway, "set fast").await, "Default model: openai/gpt-5-mini");
    let aliases = change(&gateway, "aliases list --plain").await;
    assert!(aliases.contains("fast openai/gpt-5-mini") && aliases.contains("mk mock/mock-1"), "{aliases}");
    assert_eq!(change(&gateway, "aliases remove fast").await, "Alias fast removed.");
    // A built-in alias would come back; it does not while this one is gone on purpose.
    assert!(!change(&gateway, "aliases list --plain").await.contains("fast"));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let gateway = recorded_installation();
    let rows: [(&str, &[&str]); 10] = [
        ("set nosuchmodel", &["Unknown model: nosuchmodel", "<provider>/<model>"]),
        ("set openai/", &["Invalid model reference: openai/"]),
        ("set-image /x", &["Invalid model reference: /x"]),
        ("--agent main set openai/gpt-5.2", &["--agent has no effect here"]),
        ("fallbacks remove mock/mock-1", &["Fallback not found: mock/mock-1", "openai/gpt-5.2"]),
        ("image-fallbacks remove mock/mock-1", &["Image fallback not found: mock/mock-1"]),
        ("aliases add mk openai/gpt-5.2", &["Alias mk already points to mock/mock-1.", "aliases remove mk"]),
        ("aliases add a/b openai/gpt-5.2", &["Alias must use letters"]),
        ("aliases remove nobody", &["Alias not found: nobody"]),
        ("list --json --plain", &["Choose either --json or --plain, not both."]),
    ];
    for (line, words) in rows {
        refused(&gateway, line).await.failed(words);
    }
    let gateway = crate::gateway().fake_model("http://127.0.0.1:1/v1").prepare().unwrap();
    refused(&gateway, "set fake-1").await.failed(&["Unknown model: fake-1", "Did you mean fake/fake-1?"]);
}

#[tokio::test]
async fn a_change_keeps_the_comments_of_the_file() {
    let gateway = gateway().prepare().unwrap();
    let path = gateway.state_dir().join("openclaw.json");
    let written = "{\n  // mine\n  agents: { defaults: { model: 'openai/gpt-5.2', /* cheap */ maxConcurrent: 2 } },\n}\n";
    std::fs::write(&path, written).unwrap();
    assert_eq!(
        change(&gateway, "fallbacks add google/gemini-3-pro").await,
        "Fallbacks: google/gemini-3-pro-preview"
    );
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("// mine") && text.contains("/* cheap */"), "{text}");
    let status = openclaw(&gateway, &["models", "status", "--json"]).await;
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["resolvedDefault"], "openai/gpt-5.2");
    assert_eq!(status["fallbacks"], json!(["google/gemini-3-pro-preview"]));
    // An empty list of models allows all of them, and stays empty.
    assert_eq!(status["allowed"], json!([]));
}

#[tokio::test]
async fn an_agents_own_models_are_listed_for_it() {
    let config = json!({
        "agents": {
            "defaults": {"model": "openai/gpt-5.2", "imageModel": {"primary": "openai/gpt-5-mini", "fallbacks": ["google/gemini-3-pro"]}},
            "list": [{"id": "main"}, {"id": "work", "model": {"primary": "nowhere/at-all", "fallbacks": ["anthropic/opus-4.6"]}}]}});
    let gateway = gateway().whole_config(config).prepare().unwrap();
    let listed = openclaw(&gateway, &["models", "--agent", "work", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let rows: Vec<Value> = listed["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["key"], row["tags"], row["missing"]]))
        .collect();
    assert_eq!(
        json!(rows),
        json!([
            ["nowhere/at-all", ["default"], true],
            ["anthropic/claude-opus-4-6", ["fallback#1"], false],
            ["openai/gpt-5-mini", ["image"], false],
            ["google/gemini-3-pro-preview", ["img-fallback#1"], false],
        ])
    );
    let plain = openclaw(&gateway, &["models", "--agent", "work", "--status-plain"]).await;
    assert_eq!(plain.out, "nowhere/at-all\n");
    let bare = openclaw(&gateway, &["models", "--status-json"]).await;
    let bare: Value = serde_json::from_str(&bare.out).unwrap();
    assert_eq!(bare["resolvedDefault"], "openai/gpt-5.2");
    let text = openclaw(&gateway, &["models", "list", "--provider", "nobody"]).await;
    assert_eq!((text.code, text.out.as_str()), (Some(0), "No models found.\n"));
    assert!(text.err.contains("--all"), "{text:?}");
    let status = openclaw(&gateway, &["models", "--agent", "work", "status"]).await;
    assert!(
        status.out.contains("- nowhere Not a known provider. Add models.providers.nowhere with"),
        "{status:?}"
    );
    let alias = openclaw(&gateway, &["models", "aliases", "add", "lost", "nosuch/model"]).await;
    assert!(alias.code == Some(0) && alias.err.contains("Unknown model: nosuch/model"), "{alias:?}");
    let spaced = openclaw(&gateway, &["models", "set", "anthropic/claude opus"]).await;
    assert!(spaced.err.contains("models list --all --provider anthropic"), "{spaced:?}");
}
