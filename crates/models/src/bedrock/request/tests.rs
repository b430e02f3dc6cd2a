use openclaw_config::settings::ModelCost;
use openclaw_protocol::message::{
    AssistantMessage, Block, Message, ToolResultMessage, UserContent, UserMessage,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::*;
use crate::history::IdRule;
use crate::parts::IMAGE_LEFT_OUT;

/// The body as a value.
fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let request = request.prepared_for(spec, IdRule::Anthropic);
    let conversation = RequestConversation::whole(&request.messages);
    serde_json::from_slice(&super::body(spec, &request, &conversation).to_bytes()).unwrap()
}

const SONNET: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

fn model(id: &str) -> ModelSpec {
    let mut spec = ModelSpec::sample("amazon-bedrock", id, "bedrock-converse-stream");
    (spec.reasoning, spec.images, spec.max_tokens) = (true, true, 64_000);
    spec
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn answer_of(spec: &ModelSpec, content: Value) -> Message {
    Message::Assistant(AssistantMessage {
        content: serde_json::from_value(content).unwrap(),
        api: spec.api.as_str().to_owned(),
        provider: spec.provider().to_owned(),
        model: spec.id().to_owned(),
        ..AssistantMessage::default()
    })
}

fn result(id: &str, content: Value) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: id.to_owned(),
        content: serde_json::from_value(content).unwrap(),
        ..ToolResultMessage::default()
    })
}

fn with(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        messages: messages.into_iter().map(Into::into).collect::<Vec<_>>().into(),
        cache: CacheRetention::None,
        ..ModelRequest::default()
    }
}

fn messages_of(spec: &ModelSpec, messages: Vec<Message>) -> Value {
    body(spec, &with(messages))["messages"].clone()
}

fn read_tool() -> ToolSpec {
    let parameters =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    ToolSpec { name: "read".into(), description: "reads".into(), parameters: parameters.into() }
}

/// Three turns with tools and thinking.
fn three_turns(spec: &ModelSpec) -> Vec<Message> {
    vec![
        user("read them"),
        answer_of(
            spec,
            json!([
                {"type": "thinking", "thinking": "which?", "thinkingSignature": "sig"},
                {"type": "thinking", "thinking": "", "thinkingSignature": "b3BhcXVl", "redacted": true},
                {"type": "text", "text": "Let me look."},
                {"type": "toolCall", "id": "tooluse_1", "name": "read", "arguments": {"path": "a.txt"}},
                {"type": "toolCall", "id": "tooluse_2", "name": "read", "arguments": {"path": "b.png"}}]),
        ),
        result("tooluse_1", json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])),
        result("tooluse_2", json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}])),
        answer_of(spec, json!([{"type": "text", "text": "A text and a picture."}])),
        user("thanks"),
        answer_of(
            &ModelSpec::sample("openai", "gpt-5.2", "openai-responses"),
            json!([{"type": "thinking", "thinking": "polite", "thinkingSignature": "{}"}, {"type": "text", "text": "Bye."}]),
        ),
        user("one more"),
    ]
}

/// The whole request of a conversation, to the byte.
#[test]
fn a_conversation_of_three_turns_keeps_its_pinned_form() {
    let spec = model(SONNET);
    let request = ModelRequest {
        system: "You help.".into(),
        tools: vec![read_tool()].into(),
        thinking: ThinkingLevel::High,
        cache: CacheRetention::Long,
        max_tokens: Some(4_000),
        temperature: Some(0.5),
        ..with(three_turns(&spec))
    };
    let sent = serde_json::to_string_pretty(&body(&spec, &request)).unwrap() + "\n";
    let pinned = include_str!("../../../tests/golden/bedrock-three-turns.json");
    assert_eq!(sent, pinned);
}

#[test]
fn the_request_of_the_next_turn_begins_with_the_same_bytes() {
    let spec = model(SONNET);
    let all = three_turns(&spec);
    let mut before = String::new();
    for length in [1, 4, 6, 8] {
        let now = messages_of(&spec, all[..length].to_vec()).to_string();
        assert!(now.starts_with(before.trim_end_matches(']')), "{before}\n{now}");
        before = now;
    }
}

#[test]
fn turns_alternate_and_begin_with_the_user() {
    let spec = model("amazon.nova-pro-v1:0");
    let blocks: Vec<Block> =
        serde_json::from_value(json!([{"type": "image", "data": "QQ==", "mimeType": "image/JPEG"},
        {"type": "text", "text": " "}, {"type": "image", "data": "QQ==", "mimeType": "image/tiff"}]))
        .unwrap();
    let shown = Message::User(UserMessage { content: UserContent::Blocks(blocks), ..UserMessage::default() });
    let mut failed = result("t", json!([]));
    if let Message::ToolResult(failed) = &mut failed {
        failed.is_error = true;
    }
    let call = answer_of(&spec, json!([{"type": "toolCall", "id": "t", "name": "x", "arguments": "?"}]));
    assert_eq!(
        messages_of(&spec, vec![user(" "), call, failed, user("a"), shown]),
        json!([
            {"role": "user", "content": [{"text": "(session bootstrap)"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "x", "input": {}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t", "content": [{"text": "(no output)"}], "status": "error"}},
                {"text": "a"},
                {"image": {"format": "jpeg", "source": {"bytes": "QQ=="}}},
                {"text": IMAGE_LEFT_OUT}]}])
    );
}

#[test]
fn thoughts_carry_their_proof_to_claude_alone() {
    let thought = |spec: &ModelSpec, signature: Value| {
        let block = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": signature});
        messages_of(spec, vec![user("hi"), answer_of(spec, json!([block]))])[1]["content"][0].clone()
    };
    let (claude, other) = (model(SONNET), model("deepseek.r1-v1:0"));
    let signed = json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}});
    let unsigned = json!({"reasoningContent": {"reasoningText": {"text": "hm"}}});
    assert_eq!(thought(&claude, json!("s")), signed);
    assert_eq!(thought(&claude, json!(null)), json!({"text": "hm"}));
    assert_eq!(thought(&other, json!("s")), unsigned);
    assert_eq!(thought(&other, json!(null)), unsigned);
}

#[test]
fn prompts_are_kept_by_models_that_can() {
    let points = |spec: &ModelSpec, cache: CacheRetention, last: Message| {
        let request = ModelRequest { system: "s".into(), cache, ..with(vec![user("a"), last]) };
        let body = body(spec, &request);
        let messages = body["messages"].as_array().unwrap();
        let content = messages.last().unwrap()["content"].as_array().unwrap();
        (body["system"][1].clone(), content.iter().find(|block| block.get("cachePoint").is_some()).cloned())
    };
    let short = json!({"cachePoint": {"type": "default"}});
    let long = json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    let some = |point: &Value| (point.clone(), Some(point.clone()));
    let none = (Value::Null, None);
    let mut priced = model("amazon.nova-pro-v1:0");
    priced.price = ModelCost { cache_read: 0.2, ..ModelCost::default() };
    let rows = [
        (model(SONNET), some(&short)),
        (model("anthropic.claude-opus-4-6-v1"), some(&short)),
        (model("anthropic.claude-3-7-sonnet-20250219-v1:0"), some(&short)),
        (model("anthropic.claude-3-5-haiku-20241022-v1:0"), some(&short)),
        (model("anthropic.claude-3-5-sonnet-20241022-v2:0"), none.clone()),
        (model("amazon.nova-pro-v1:0"), none.clone()),
        (priced, some(&short)),
    ];
    for (spec, expect) in rows {
        assert_eq!(points(&spec, CacheRetention::Short, user("b")), expect, "{}", spec.id());
    }
    let sonnet = model(SONNET);
    assert_eq!(points(&sonnet, CacheRetention::Long, user("b")), some(&long));
    assert_eq!(points(&sonnet, CacheRetention::None, user("b")), none);
    let said = answer_of(&sonnet, json!([{"type": "text", "text": "x"}]));
    assert_eq!(points(&sonnet, CacheRetention::Short, said), (short, None), "only after the user's words");
}

/// The column of `models.md` §5, and the budget rule below it.
#[test]
fn claude_is_asked_to_think_in_its_own_fields() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, XHigh};
    let asked = |id: &str, thinking: ThinkingLevel| {
        let body = body(&model(id), &ModelRequest { thinking, temperature: Some(0.5), ..with(vec![]) });
        json!([
            body["inferenceConfig"]["maxTokens"],
            body["inferenceConfig"]["temperature"],
            body["additionalModelRequestFields"]
        ])
    };
    for (level, max, budget) in [
        (Minimal, 33_024, 1024),
        (Low, 34_048, 2048),
        (Medium, 40_192, 8192),
        (High, 48_384, 16_384),
        (XHigh, 48_384, 16_384),
    ] {
        let thinking = json!({"type": "enabled", "budget_tokens": budget});
        let fields = json!({"thinking": thinking, "anthropic_beta": ["interleaved-thinking-2025-05-14"]});
        assert_eq!(asked(SONNET, level), json!([max, null, fields]), "{level}");
        assert_eq!(
            asked("anthropic.claude-3-7-sonnet-v1:0", level),
            json!([max, null, {"thinking": thinking}])
        );
    }
    let adaptive =
        |effort: &str| json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}});
    assert_eq!(asked("eu.anthropic.claude-opus-4-6-v1", Medium), json!([32_000, null, adaptive("medium")]));
    assert_eq!(asked(SONNET, Off), json!([32_000, 0.5, null]));
    assert_eq!(asked("amazon.nova-pro-v1:0", High), json!([32_000, 0.5, null]));
}

#[test]
fn tools_once_used_stay_named() {
    let spec = model(SONNET);
    let call = |name: &str| {
        answer_of(&spec, json!([{"type": "toolCall", "id": name, "name": name, "arguments": {}}]))
    };
    let history = vec![user("hi"), call("b"), result("b", json!([])), call("a"), result("a", json!([]))];
    let without = body(&spec, &with(history.clone()));
    let names: Vec<_> =
        without["toolConfig"]["tools"].as_array().unwrap().iter().map(|t| &t["toolSpec"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    let offered = ModelRequest { tools: vec![read_tool()].into(), ..with(history) };
    let tools = body(&spec, &offered)["toolConfig"]["tools"].clone();
    let schema = read_tool().parameters;
    assert_eq!(
        tools,
        json!([{"toolSpec": {"name": "read", "description": "reads", "inputSchema": {"json": *schema}}}])
    );
    assert_eq!(body(&spec, &with(vec![user("hi")])).get("toolConfig"), None);
}

#[test]
fn the_address_and_the_key_follow_the_credentials() {
    let mut spec = model(SONNET);
    let build = |spec: &ModelSpec, key: Option<&str>| {
        let key = key.map(|key| ProviderKey::from(SecretString::from(key)));
        let built =
            head(spec, key.as_ref(), &ModelRequest { tools: vec![read_tool()].into(), ..with(vec![]) })
                .unwrap();
        let bearer = built
            .headers
            .pairs()
            .into_iter()
            .find(|(name, _)| name == "authorization")
            .map(|(_, value)| value);
        (built.url, bearer)
    };
    let path = "model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0";
    let own = format!("http://127.0.0.1:1/{path}/converse-stream");
    let bearer = |token: &str| Some(format!("Bearer {token}"));
    assert_eq!(build(&spec, None), (own.clone(), None));
    assert_eq!(build(&spec, Some("plain-api-key")), (own.clone(), bearer("plain-api-key")));
    assert_eq!(build(&spec, Some(r#"{"skipAuth":"1","region":"eu-west-1"}"#)), (own.clone(), None));
    assert_eq!(
        build(&spec, Some(r#"{"accessKeyId":"A","secretAccessKey":"s"}"#)),
        (own, None),
        "signed later"
    );
    spec.base_url.clear();
    let found = build(&spec, Some(r#"{"token":"t","region":"eu-west-1"}"#));
    assert_eq!(
        found,
        (format!("https://bedrock-runtime.eu-west-1.amazonaws.com/{path}/converse-stream"), bearer("t"))
    );
    spec.streaming = false;
    assert!(build(&spec, None).0.ends_with("/converse"));
}
