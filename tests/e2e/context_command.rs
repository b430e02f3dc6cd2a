//! `/context`: what the context of a session is made of (spec `agent-runtime.md` §13).

use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::Value;

use crate::gateway;
use crate::support::conversation::turn;

/// The line that says how large the system prompt is.
fn prompt_line(answer: &str) -> &str {
    answer.lines().find(|line| line.starts_with("System prompt (")).unwrap()
}

#[tokio::test]
async fn it_is_told_before_a_run_as_the_run_will_be_told_it() {
    let model = ModelServer::answering(|_| Reply::text("sure")).await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("AGENTS.md"), "be kind").unwrap();
    std::fs::write(workspace.join("TOOLS.md"), "x".repeat(54_210)).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let estimate = turn(&mut client, "main", "/context list", "run-1").await;
    assert_eq!(model.requests().len(), 0, "no model is asked");
    for line in [
        "🧠 Context breakdown".to_owned(),
        format!("Workspace: {}", workspace.display()),
        "Bootstrap max/file: 20,000 chars".to_owned(),
        "Sandbox: mode=off sandboxed=false".to_owned(),
        "- AGENTS.md: OK | raw 7 chars (~2 tok) | injected 7 chars (~2 tok)".to_owned(),
        "- SOUL.md: MISSING | raw 0 | injected 0".to_owned(),
        "Skills: (none)".to_owned(),
        "Session tokens (cached): unknown / ctx=?".to_owned(),
    ] {
        assert!(estimate.lines().any(|own| own == line), "no \"{line}\" in\n{estimate}");
    }
    let truncated = "- TOOLS.md: TRUNCATED | raw 54,210 chars (~13,553 tok) | injected 18,";
    assert!(estimate.contains(truncated), "{estimate}");
    turn(&mut client, "main", "hello", "run-2").await;
    let run = turn(&mut client, "main", "/context list", "run-3").await;
    assert_eq!(prompt_line(&run), prompt_line(&estimate).replace("(estimate)", "(run)"));
    assert!(run.contains("\nSession tokens (cached): 100 total / ctx=32000\n"), "{run}");
    let told = model.requests()[0].body["messages"][0]["content"].as_str().unwrap().encode_utf16().count();
    let digits: String =
        prompt_line(&run).split(" chars").next().unwrap().chars().filter(char::is_ascii_digit).collect();
    assert_eq!(digits, told.to_string(), "it is the size of what was sent");

    let detail = turn(&mut client, "main", "/context detail", "run-4").await;
    assert!(detail.contains("\nTop tools (schema size):\n- ") && !detail.contains("\n\n"), "{detail}");
    let json: Value =
        serde_json::from_str(&turn(&mut client, "main", "/context json", "run-5").await).unwrap();
    assert_eq!(
        (&json["report"]["source"], &json["session"]["contextTokens"]),
        (&"run".into(), &32_000.into())
    );
    assert!(turn(&mut client, "main", "/context", "run-6").await.contains("- /context list"));
    let unknown = turn(&mut client, "main", "/context nonsense", "run-7").await;
    assert_eq!(
        unknown,
        "Unknown /context mode.\nUse: /context, /context list, /context detail, or /context json"
    );
}
