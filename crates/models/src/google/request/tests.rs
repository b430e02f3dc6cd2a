use openclaw_protocol::message::{
    AssistantMessage, Block, Message, ToolResultMessage, UserContent, UserMessage,
};
use serde_json::{Value, json};

use super::*;
use crate::history::IdRule;
use crate::parts::IMAGE_LEFT_OUT;
use crate::thinking::ThinkingLevel;

/// The body as a value.
fn body(spec: &ModelSpec, request: &ModelRequest) -> Value {
    let request = request.prepared_for(spec, IdRule::Strict);
    let conversation = RequestConversation::whole(&request.messages);
    serde_json::from_slice(&super::body(spec, &request, &conversation).to_bytes()).unwrap()
}

fn gemini(id: &str) -> ModelSpec {
    let mut spec = ModelSpec::sample("google", id, "google-generative-ai");
    spec.base_url = "http://127.0.0.1:1/v1beta".to_owned();
    (spec.reasoning, spec.images, spec.max_tokens) = (true, true, 64_000);
    spec
}

fn pro() -> ModelSpec {
    gemini("gemini-3-pro-preview")
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
        tool_name: "read".to_owned(),
        content: serde_json::from_value(content).unwrap(),
        ..ToolResultMessage::default()
    })
}

fn with(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        messages: messages.into_iter().map(Into::into).collect::<Vec<_>>().into(),
        ..ModelRequest::default()
    }
}

fn contents_of(spec: &ModelSpec, messages: Vec<Message>) -> Value {
    body(spec, &with(messages))["contents"].clone()
}

fn golden() -> Value {
    serde_json::from_str(include_str!("../../../tests/golden/agent-google-request.json")).unwrap()
}

fn read_tool() -> ToolSpec {
    let declared = golden()["body"]["tools"][0]["functionDeclarations"][0].clone();
    ToolSpec {
        name: "read".into(),
        description: "reads".into(),
        parameters: declared["parametersJsonSchema"].clone().into(),
    }
}

/// The captured request, with the elided prose filled in; the capture shows the first tool whole.
#[test]
fn the_request_is_the_recorded_one() {
    let golden = golden();
    let mut expect = golden["body"].clone();
    expect["systemInstruction"]["parts"][0]["text"] = json!("the prompt");
    expect["tools"][0]["functionDeclarations"][0]["description"] = json!("reads");
    expect["tools"][0].as_object_mut().unwrap().shift_remove("declaredNames");
    let request = ModelRequest {
        system: "the prompt".into(),
        tools: vec![read_tool()].into(),
        thinking: ThinkingLevel::Low,
        ..with(vec![user("[Sat 2026-11-21 02:45 UTC] hi go")])
    };
    assert_eq!(body(&pro(), &request).to_string(), expect.to_string(), "in the recorded order");

    let built = head(&pro(), Some(&SecretString::from("g-fake")), &request).unwrap();
    assert_eq!(built.url, format!("http://127.0.0.1:1{}", golden["url"].as_str().unwrap()));
    // Fields that name the recorded client are left out.
    let mut recorded: Vec<(String, String)> =
        serde_json::from_value::<std::collections::BTreeMap<_, _>>(golden["headers"].clone())
            .unwrap()
            .into_iter()
            .filter(|(name, _): &(String, String)| name != "user-agent" && name != "x-goog-api-client")
            .collect();
    let mut headers = built.headers.pairs();
    recorded.sort();
    headers.sort();
    assert_eq!(headers, recorded);
}

/// Three turns with tools and thinking.
fn three_turns(spec: &ModelSpec) -> Vec<Message> {
    vec![
        user("read them"),
        answer_of(
            spec,
            json!([
                {"type": "thinking", "thinking": "which?", "thinkingSignature": "VEhJTks="},
                {"type": "text", "text": "Let me look.", "textSignature": "VEVYVA=="},
                {"type": "toolCall", "id": "read_1_1", "name": "read", "arguments": {"path": "a.txt"}, "thoughtSignature": "Q0FMTA=="},
                {"type": "toolCall", "id": "read_1_2", "name": "read", "arguments": {"path": "b.png"}}]),
        ),
        result("read_1_1", json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])),
        result("read_1_2", json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}])),
        answer_of(spec, json!([{"type": "text", "text": "A text and a picture."}])),
        user("thanks"),
        answer_of(
            &ModelSpec::sample("anthropic", "claude", "anthropic-messages"),
            json!([{"type": "thinking", "thinking": "polite", "thinkingSignature": "QUJD"}, {"type": "text", "text": "Bye."}]),
        ),
        user("one more"),
    ]
}

/// The whole request of a conversation, to the byte.
#[test]
fn a_conversation_of_three_turns_keeps_its_pinned_form() {
    let request = ModelRequest {
        system: "You help.".into(),
        tools: vec![read_tool()].into(),
        thinking: ThinkingLevel::High,
        max_tokens: Some(4_000),
        temperature: Some(0.5),
        ..with(three_turns(&pro()))
    };
    let sent = serde_json::to_string_pretty(&body(&pro(), &request)).unwrap() + "\n";
    let pinned = include_str!("../../../tests/golden/google-three-turns.json");
    assert_eq!(sent, pinned);
}

#[test]
fn the_request_of_the_next_turn_begins_with_the_same_bytes() {
    for spec in [pro(), gemini("gemini-2.5-flash")] {
        let all = three_turns(&spec);
        let mut before = String::new();
        for length in [1, 4, 6, 8] {
            let now = contents_of(&spec, all[..length].to_vec()).to_string();
            assert!(now.starts_with(before.trim_end_matches(']')), "{before}\n{now}");
            before = now;
        }
    }
}

#[test]
fn images_of_results_follow_them_where_they_cannot_be_inside() {
    let spec = gemini("gemini-2.5-pro");
    let found = contents_of(&spec, three_turns(&spec)[..4].to_vec());
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "QQ=="}});
    assert_eq!(
        json!(found.as_array().unwrap()[2..]),
        json!([
            {"parts": [
                {"functionResponse": {"name": "read", "response": {"output": "one\ntwo"}}},
                {"functionResponse": {"name": "read", "response": {"output": "(see attached image)"}}}], "role": "user"},
            {"parts": [{"text": "Tool result image:"}, image], "role": "user"}])
    );
    let blind = ModelSpec { images: false, ..spec.clone() };
    let shown: Vec<Block> =
        serde_json::from_value(json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}])).unwrap();
    let shown = Message::User(UserMessage { content: UserContent::Blocks(shown), ..UserMessage::default() });
    let told = json!([{"parts": [{"text": IMAGE_LEFT_OUT}], "role": "user"}]);
    assert_eq!(contents_of(&blind, vec![shown.clone()]), told);
    assert_eq!(contents_of(&spec, vec![shown]), json!([{"parts": [image], "role": "user"}]));
}

#[test]
fn a_call_without_proof_is_told_in_words_and_so_is_its_result() {
    let foreign = ModelSpec::sample("openai", "gpt-5.2", "openai-responses");
    let calls = json!([{"type": "toolCall", "id": "a", "name": "read", "arguments": {"p": 1}, "thoughtSignature": "QUJD"},
        {"type": "toolCall", "id": "b", "name": "read", "arguments": {"p": 2}}]);
    let messages = |spec: &ModelSpec| {
        vec![
            user("hi"),
            answer_of(spec, calls.clone()),
            result("a", json!([{"type": "text", "text": "one"}])),
            result("b", json!([{"type": "text", "text": "two"}])),
            user("go on"),
        ]
    };
    let found = contents_of(&pro(), messages(&foreign));
    let text = |at: usize, part: usize| found[at]["parts"][part]["text"].as_str().unwrap().to_owned();
    assert!(text(1, 0).contains("\"read\"") && text(1, 0).contains("{\"p\":1}"), "{found}");
    assert_eq!(
        (text(2, 0), text(2, 1)),
        ("[The tool \"read\" answered: one]".to_owned(), "[The tool \"read\" answered: two]".to_owned())
    );
    assert!(!found.to_string().contains("function"), "{found}");

    // Of calls side by side the first proves them all; older models need no proof.
    let own = contents_of(&pro(), messages(&pro()));
    let calls_of = |found: &Value| {
        json!([found[1]["parts"][0]["functionCall"]["args"], found[1]["parts"][1]["functionCall"]["args"]])
    };
    assert_eq!(calls_of(&own), json!([{"p": 1}, {"p": 2}]));
    assert_eq!(
        (&own[1]["parts"][0]["thoughtSignature"], &own[1]["parts"][1]["thoughtSignature"]),
        (&json!("QUJD"), &Value::Null)
    );
    let older = contents_of(&gemini("gemini-2.5-pro"), messages(&foreign));
    assert_eq!(calls_of(&older), json!([{"p": 1}, {"p": 2}]));
    assert!(!older.to_string().contains("thoughtSignature"));
}

#[test]
fn ids_are_sent_to_models_of_others_alone() {
    let ids = |id: &str| {
        let spec = gemini(id);
        let call = json!([{"type": "toolCall", "id": "c.1", "name": "x", "arguments": {}}]);
        let foreign = ModelSpec::sample("p", "m", "openai-completions");
        let mut failed = result("c.1", json!([]));
        if let Message::ToolResult(failed) = &mut failed {
            failed.is_error = true;
        }
        let found = contents_of(&spec, vec![user("hi"), answer_of(&foreign, call), failed]);
        json!([found[1]["parts"][0], found[2]["parts"][0]])
    };
    let result = json!({"name": "x", "response": {"error": "(no output)"}});
    assert_eq!(
        ids("gemini-2.5-flash"),
        json!([{"functionCall": {"name": "x", "args": {}}}, {"functionResponse": result}])
    );
    for id in ["claude-sonnet-4-5", "gpt-oss-120b"] {
        let mut result = result.clone();
        result["id"] = json!("c1");
        assert_eq!(
            ids(id),
            json!([{"functionCall": {"name": "x", "args": {}, "id": "c1"}}, {"functionResponse": result}])
        );
    }
}

#[test]
fn the_first_word_is_the_users_and_blank_ones_are_not_sent() {
    let said =
        answer_of(&pro(), json!([{"type": "text", "text": "Welcome."}, {"type": "text", "text": " "}]));
    assert_eq!(
        contents_of(&pro(), vec![user(" "), said, user("hi")]),
        json!([{"parts": [{"text": "(session bootstrap)"}], "role": "user"},
            {"parts": [{"text": "Welcome."}], "role": "model"},
            {"parts": [{"text": "hi"}], "role": "user"}])
    );
}

#[test]
fn thoughts_go_back_to_their_own_model_with_the_proof_that_is_one() {
    let thought = |signature: Value| {
        let block = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": signature});
        contents_of(&pro(), vec![user("hi"), answer_of(&pro(), json!([block]))])[1]["parts"][0].clone()
    };
    assert_eq!(thought(json!("QUJD")), json!({"thought": true, "text": "hm", "thoughtSignature": "QUJD"}));
    assert_eq!(thought(json!("sig")), json!({"thought": true, "text": "hm"}));
    let foreign = three_turns(&pro());
    assert_eq!(
        contents_of(&pro(), foreign)[5],
        json!({"parts": [{"text": "polite"}, {"text": "Bye."}], "role": "model"})
    );
}

#[test]
fn the_address_follows_the_model_and_the_way_to_ask() {
    let tools = ModelRequest { tools: vec![read_tool()].into(), ..ModelRequest::default() };
    let silent = |id: &str| ModelSpec { streaming: false, ..gemini(id) };
    let base = "http://127.0.0.1:1/v1beta";
    assert_eq!(url(&silent("m"), &tools), format!("{base}/models/m:generateContent"));
    assert_eq!(
        url(&silent("tunedModels/t"), &ModelRequest::default()),
        format!("{base}/tunedModels/t:streamGenerateContent?alt=sse")
    );
}
