//! Models behind Google's API and behind Bedrock that think and use their tools, through everything.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply, Step};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::turn;

/// A model that thinks, writes a note, says so, and answers once more.
async fn server(proof: &str) -> ModelServer {
    let writes = Reply::tool("call_1", "write", &json!({"path": "notes/a.txt", "content": "one\n"}))
        .after(Step::Signature(proof.to_owned()))
        .after(Step::Thinking("A file is wanted.".to_owned()));
    ModelServer::queue([writes, Reply::deltas(["It ", "is ", "there."]), Reply::text("Yes.")]).await
}

/// Two turns against it, with these settings and variables; what the server was asked.
async fn two_turns(server: &ModelServer, config: Value, variables: &[(&str, &str)]) -> Vec<Captured> {
    let setup =
        variables.iter().fold(gateway().config(config), |setup, (name, value)| setup.env(*name, *value));
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "make a note", "run-1").await, "It is there.");
    let file = gateway.state_dir().join("workspace/notes/a.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n");
    assert_eq!(turn(&mut client, "main", "sure?", "run-2").await, "Yes.");
    server.requests()
}

const WROTE: &str = "Successfully wrote 4 bytes to notes/a.txt";

#[tokio::test]
async fn a_model_of_google_thinks_uses_a_tool_and_gets_its_proof_back() {
    let server = server("QUJDRA==").await;
    let base_url = format!("{}/v1beta", server.url());
    let config = json!({"agents": {"defaults": {"model": "google/gemini-3-pro-preview"}},
        "models": {"providers": {"google": {"baseUrl": base_url, "models": []}}}});
    let requests = two_turns(&server, config, &[("GEMINI_API_KEY", "g-fake-key")]).await;

    assert_eq!(requests[0].path, "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse");
    assert_eq!(requests[0].header("x-goog-api-key"), Some("g-fake-key"));
    let first = &requests[0].body;
    assert_eq!(
        json!([first["generationConfig"]["thinkingConfig"], first["systemInstruction"]["role"]]),
        json!([{"includeThoughts": true, "thinkingLevel": "LOW"}, "user"])
    );
    assert!(requests[0].tool_names().contains(&"write".to_owned()));
    let contents = requests[1].messages();
    let parts = |at: usize| contents[contents.len() - at]["parts"].clone();
    assert_eq!(
        parts(2),
        json!([{"thought": true, "text": "A file is wanted."},
            {"functionCall": {"name": "write", "args": {"path": "notes/a.txt", "content": "one\n"}}, "thoughtSignature": "QUJDRA=="}])
    );
    assert_eq!(parts(1), json!([{"functionResponse": {"name": "write", "response": {"output": WROTE}}}]));
    let next = requests[2].messages();
    assert_eq!(next[..contents.len()], contents[..], "what was sent stays as it was");
    assert_eq!(next[contents.len()], json!({"parts": [{"text": "It is there."}], "role": "model"}));
}

#[tokio::test]
async fn a_model_of_bedrock_thinks_uses_a_tool_and_gets_its_proof_back() {
    let id = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
    let server = server("proof").await;
    let model = json!({"id": id, "name": "Sonnet", "reasoning": true, "input": ["text"], "contextWindow": 200_000, "maxTokens": 64_000});
    let provider = json!({"baseUrl": server.url(), "auth": "aws-sdk", "api": "bedrock-converse-stream", "models": [model]});
    let config = json!({"agents": {"defaults": {"model": format!("amazon-bedrock/{id}")}},
        "models": {"providers": {"amazon-bedrock": provider}}});
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
        ("AWS_SESSION_TOKEN", "session-token"),
        ("AWS_REGION", "eu-central-1"),
    ];
    let requests = two_turns(&server, config, &keys).await;

    let request = &requests[0];
    assert_eq!(request.path, "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream");
    let signed = request.header("authorization").unwrap();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{signed}");
    assert!(signed.contains("/eu-central-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature="), "{signed}");
    assert_eq!(request.header("x-amz-security-token"), Some("session-token"));
    assert_eq!(
        json!([request.body["additionalModelRequestFields"]["thinking"], request.body["system"][1]]),
        json!([{"type": "enabled", "budget_tokens": 2048}, {"cachePoint": {"type": "default"}}])
    );
    assert!(request.tool_names().contains(&"write".to_owned()));
    let messages = requests[1].messages();
    let content = |at: usize| messages[messages.len() - at]["content"].clone();
    assert_eq!(
        content(2),
        json!([{"reasoningContent": {"reasoningText": {"text": "A file is wanted.", "signature": "proof"}}},
            {"toolUse": {"toolUseId": "call_1", "name": "write", "input": {"path": "notes/a.txt", "content": "one\n"}}}])
    );
    assert_eq!(
        content(1),
        json!([{"toolResult": {"toolUseId": "call_1", "content": [{"text": WROTE}], "status": "success"}},
            {"cachePoint": {"type": "default"}}])
    );
    let next = requests[2].messages();
    let before = messages.len() - 1;
    assert_eq!(next[..before], messages[..before], "what was sent stays as it was");
    assert_eq!(next[messages.len()], json!({"role": "assistant", "content": [{"text": "It is there."}]}));
}
