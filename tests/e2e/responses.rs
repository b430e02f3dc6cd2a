//! A model behind OpenAI's Responses protocol that thinks and uses its tools, through everything.

use openclaw_testkit::model_server::{ModelServer, Reply, Step};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::turn;

#[tokio::test]
async fn a_model_of_openai_thinks_uses_a_tool_and_gets_its_reasoning_back() {
    let writes = Reply::tool("call_1", "write", &json!({"path": "notes/a.txt", "content": "one\n"}))
        .after(Step::Signature("gAAAA".to_owned()))
        .after(Step::Thinking("A file is wanted.".to_owned()));
    let server =
        ModelServer::queue([writes, Reply::deltas(["It ", "is ", "there."]), Reply::text("Yes.")]).await;
    let elsewhere = json!({"models": {"providers": {"openai": {"baseUrl": server.v1(), "models": []}}}});
    let setup = gateway().config(elsewhere).env("OPENAI_API_KEY", "sk-fake-key");
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();

    assert_eq!(turn(&mut client, "main", "make a note", "run-1").await, "It is there.");
    let file = gateway.state_dir().join("workspace/notes/a.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n");
    assert_eq!(turn(&mut client, "main", "sure?", "run-2").await, "Yes.");

    let requests = server.requests();
    let bodies: Vec<&Value> = requests.iter().map(|request| &request.body).collect();
    let first = bodies[0];
    assert_eq!(requests[0].path, "/v1/responses");
    assert_eq!(
        json!([first["model"], first["store"], first["stream"], first["include"], first["input"][0]["role"]]),
        json!(["gpt-5.2", false, true, ["reasoning.encrypted_content"], "developer"])
    );
    let key = first["prompt_cache_key"].as_str().unwrap();
    assert!(bodies.iter().all(|body| body["prompt_cache_key"] == key), "one cache a session");
    let after_the_tool = bodies[1]["input"].as_array().unwrap();
    let items: Vec<&Value> = after_the_tool.iter().filter(|item| item.get("type").is_some()).collect();
    assert_eq!(items[0]["encrypted_content"], json!("gAAAA"));
    assert_eq!((&items[1]["call_id"], &items[1]["id"]), (&json!("call_1"), &json!("fc_call_1")));
    assert_eq!(
        *items[2],
        json!({"type": "function_call_output", "call_id": "call_1", "output": "Successfully wrote 4 bytes to notes/a.txt"})
    );
    let next = bodies[2]["input"].as_array().unwrap();
    let said = next.iter().find(|item| item["type"] == "message").unwrap();
    assert_eq!((&said["content"][0]["text"], &said["status"]), (&json!("It is there."), &json!("completed")));
    assert_eq!(next[..after_the_tool.len()], after_the_tool[..], "what was sent stays as it was");
}

/// The server keeps nothing: what is named by its id alone is not found, and neither is what belongs to it.
#[tokio::test]
async fn reasoning_that_came_without_its_content_is_not_sent_back_and_the_conversation_goes_on() {
    let is_lost = |item: &Value| item["type"] == "reasoning" && item["encrypted_content"].as_str().is_none();
    let server = ModelServer::answering(move |request| {
        let input = request.body["input"].as_array().unwrap();
        match input.iter().find(|item| is_lost(item)) {
            Some(item) => {
                let said = format!("Item with id '{}' not found. Items are not persisted.", item["id"]);
                Reply::error(404, &json!({"error": {"message": said}}))
            }
            None if request.ends_with_tool_result() => Reply::text("It is there."),
            None if request.last_user_text().contains("sure?") => Reply::text("Yes."),
            None => Reply::tool("call_1", "write", &json!({"path": "a.txt", "content": "one\n"}))
                .after(Step::Thinking("A file is wanted.".to_owned())),
        }
    })
    .await;
    let elsewhere = json!({"models": {"providers": {"openai": {"baseUrl": server.v1(), "models": []}}}});
    let gateway = gateway().config(elsewhere).env("OPENAI_API_KEY", "sk-fake-key").start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "make a note", "run-1").await, "It is there.");
    assert_eq!(turn(&mut client, "main", "sure?", "run-2").await, "Yes.");
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "nothing was refused");
    for request in &requests[1..] {
        let input = request.body["input"].to_string();
        assert!(input.contains("call_1") && !input.contains("rs_") && !input.contains("fc_"), "{input}");
    }
}
