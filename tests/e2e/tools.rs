//! A model that uses its tools, through everything.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, send};

#[tokio::test]
async fn a_model_writes_edits_runs_and_reads() {
    let model = ModelServer::queue([
        Reply::tool("c1", "write", &json!({"path": "notes/a.txt", "content": "one\ntwo\n"})),
        Reply::tool("c2", "edit", &json!({"path": "notes/a.txt", "oldText": "two", "newText": "2"})),
        Reply::tool("c3", "exec", &json!({"command": "cat notes/a.txt; exit 3"})),
        Reply::tool("c4", "read", &json!({"path": "notes/a.txt", "offset": 2, "limit": 1})),
        Reply::tool("c5", "read", &json!({"path": "none.txt"})),
        Reply::text("done"),
    ])
    .await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let params = json!({"sessionKey": "main", "message": "go", "idempotencyKey": "run-1"});
    client.request("chat.send", params).await.unwrap();
    client.event("chat", |payload| payload["state"] == "final").await.unwrap();

    let tools = "read edit write exec process gateway agents_list sessions_list sessions_history sessions_send sessions_spawn session_status \
                 web_search web_fetch memory_search memory_get";
    assert_eq!(model.requests()[0].tool_names().join(" "), tools);
    let last = model.requests().pop().unwrap();
    let results: Vec<Value> = last.body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| json!([message["tool_call_id"], message["content"]]))
        .collect();
    let failed = |tool: &str, error: &str| {
        serde_json::to_string_pretty(&json!({"status": "error", "tool": tool, "error": error})).unwrap()
    };
    let expected = [
        json!(["c1", "Successfully wrote 8 bytes to notes/a.txt"]),
        json!(["c2", "Successfully replaced text in notes/a.txt."]),
        json!(["c3", failed("exec", "one\n2\n\nCommand exited with code 3")]),
        json!(["c4", "2\n\n[Lines 2-2 of 3. Go on with offset=3.]"]),
        json!(["c5", failed("read", "File not found: none.txt")]),
    ];
    assert_eq!(results, expected);
    let file = gateway.state_dir().join("workspace/notes/a.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n2\n");
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_told_and_stopped_when_the_owner_says() {
    let read = json!({"path": "none.txt"});
    let model = ModelServer::answering(move |_| Reply::tool("c", "read", &read)).await;
    let guard = json!({"tools": {"loopGuard": {"warnAfter": 2, "stopAfter": 3}}});
    let gateway = gateway().fake_model(&model.v1()).config(guard).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    let end = end(&mut client, "run-1").await;
    let requests = model.requests();
    assert_eq!(requests.len(), 3, "{end}");
    let warnings =
        |request: &Captured| request.body["messages"].to_string().matches("times in a row").count();
    assert_eq!(requests.iter().map(warnings).collect::<Vec<_>>(), [0, 0, 1]);
    let told = end.to_string();
    assert!(told.contains("Stopped: the model made the same read call 3 times in a row."), "{told}");
}

#[tokio::test]
async fn a_call_that_is_repeated_while_its_result_changes_is_no_circle() {
    let grows = json!({"command": "echo x >> log; wc -l < log"});
    let model = ModelServer::answering(move |request| {
        let results = request.messages().iter().filter(|message| message["role"] == "tool").count();
        if results < 6 { Reply::tool("c", "exec", &grows) } else { Reply::text("six lines") }
    })
    .await;
    let guard = json!({"tools": {"loopGuard": {"warnAfter": 2, "stopAfter": 3}}});
    let gateway = gateway().fake_model(&model.v1()).config(guard).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    let end = end(&mut client, "run-1").await;
    assert_eq!(end["message"]["content"][0]["text"], "six lines", "{end}");
    assert!(!model.requests().last().unwrap().body.to_string().contains("times in a row"));
}

/// Decision 65: the name as it is written, and a tidied one only where that is not there.
#[tokio::test]
async fn files_are_found_and_written_under_their_exact_names() {
    let names = ["meeting\u{202f}3\u{a0}PM.txt", "@team.txt", "\u{3000}wide.txt", "@with\u{a0}both.txt"];
    let mut calls = Vec::new();
    for name in names {
        calls.push(("read", json!({"path": name})));
        calls.push(("edit", json!({"path": name, "oldText": "old", "newText": "edited"})));
        calls.push(("write", json!({"path": name, "content": format!("new {name}")})));
        calls.push(("read", json!({"path": name})));
    }
    // Where there is none of this name, the tidied one is meant.
    calls.push(("write", json!({"path": "@plain\u{a0}name.txt", "content": "tidied"})));
    let replies =
        calls.iter().enumerate().map(|(at, (tool, args))| Reply::tool(&format!("c{at}"), tool, args));
    let model = ModelServer::queue(replies.chain([Reply::text("done")]).collect::<Vec<_>>()).await;
    let gateway = gateway().fake_model(&model.v1()).prepare();
    let mut gateway = gateway.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    for name in names {
        std::fs::write(workspace.join(name), format!("old {name}")).unwrap();
    }
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "go", "run-1").await;
    end(&mut client, "run-1").await;
    let last = model.requests().pop().unwrap();
    let tools = last.messages().iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = tools.map(|message| message["content"].as_str().unwrap()).collect();
    for (at, name) in names.into_iter().enumerate() {
        let [read, edited, written, again] = results[4 * at..4 * at + 4] else { panic!("{results:?}") };
        assert_eq!(read, format!("old {name}"));
        assert!(edited.contains(name) && written.contains(name), "{edited} {written}");
        assert_eq!(again, format!("new {name}"));
        assert_eq!(std::fs::read_to_string(workspace.join(name)).unwrap(), format!("new {name}"));
    }
    assert!(results.last().unwrap().ends_with(" to plain name.txt"), "{results:?}");
    let files = std::fs::read_dir(&workspace).unwrap().map(|entry| entry.unwrap().file_name().into_string());
    let made = files.filter(|name| name.as_ref().unwrap().ends_with(".txt")).count();
    assert_eq!(made, names.len() + 1, "no other file was made");
}
