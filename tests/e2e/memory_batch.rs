//! Batch jobs of memory: many missing texts become one job, which a restart goes on with.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{has, json_of, ok, openclaw};
use crate::support::memory_files::{note, with_embeddings};

const LINES: usize = 2_100;

/// What a provider with jobs answers. The job is done when `is_done` says so.
fn answer(request: &Captured, uploaded: &Mutex<String>, is_done: &AtomicBool) -> Option<Reply> {
    let document = |value: Value| Some(Reply::plain(200, "application/json", value.to_string()));
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/files") => {
            *uploaded.lock().unwrap() = request.text.clone();
            document(json!({"id": "file-in"}))
        }
        ("POST", "/v1/batches") => document(json!({"id": "batch_1", "status": "validating"})),
        ("GET", "/v1/batches/batch_1") => match is_done.load(Ordering::Relaxed) {
            true => document(json!({"id": "batch_1", "status": "completed", "output_file_id": "file-out"})),
            false => document(json!({"id": "batch_1", "status": "in_progress"})),
        },
        ("GET", "/v1/files/file-out/content") => {
            let uploaded = uploaded.lock().unwrap();
            let asked = uploaded.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let line = |(at, asked): (usize, Value)| {
                let vector = [1.0, at as f64];
                json!({"custom_id": asked["custom_id"], "error": null,
                    "response": {"status_code": 200, "body": {"data": [{"embedding": vector, "index": 0}]}}})
                .to_string()
            };
            let lines: Vec<String> = asked.enumerate().map(line).collect();
            Some(Reply::plain(200, "application/jsonl", lines.join("\n")))
        }
        _ => None,
    }
}

#[tokio::test]
async fn many_missing_texts_are_one_job_which_a_restart_goes_on_with() {
    let (uploaded, is_done) = (Arc::new(Mutex::new(String::new())), Arc::new(AtomicBool::new(false)));
    let model = ModelServer::queue([]).await.listing({
        let (uploaded, is_done) = (Arc::clone(&uploaded), Arc::clone(&is_done));
        move |request| answer(request, &uploaded, &is_done)
    });
    let batch = json!({"agents": {"defaults": {"memorySearch": {
        "chunking": {"tokens": 8, "overlap": 0},
        "remote": {"batch": {"enabled": true, "wait": false, "pollIntervalMs": 50}},
    }}}});
    let mut gateway = gateway().config(with_embeddings(&model)).config(batch).prepare().unwrap();
    let text: Vec<String> = (0..LINES).map(|line| format!("- line {line:05} of the logbook")).collect();
    note(&gateway, "memory/log.md", &text.join("\n"));
    gateway.start().await.unwrap();
    // Words are found while the job is under way, and who indexes is told of it.
    let hits = json_of(&gateway, &["memory", "search", "line 00042", "--json"]).await;
    assert_eq!(hits["results"][0]["path"], "memory/log.md", "{hits}");
    let submitted = "openai batch batch_1 submitted; enable remote.batch.wait to await completion";
    openclaw(&gateway, &["memory", "index"]).await.failed(&[submitted]);
    gateway.kill().await.unwrap();
    is_done.store(true, Ordering::Relaxed);
    gateway.start().await.unwrap();
    assert_eq!(ok(&gateway, &["memory", "index"]).await, "Memory index updated (main).\n");
    let status = ok(&gateway, &["memory", "status"]).await;
    has(&status, &["Batch: enabled (failures 0/2)", "Vector dims: 2"]);
    let of = |method: &str, path: &str| {
        model.requests().iter().filter(|request| request.method == method && request.path == path).count()
    };
    // The query was embedded at once.
    assert_eq!((of("POST", "/v1/batches"), of("POST", "/v1/embeddings")), (1, 1), "{status}");
    let left = std::fs::read_dir(gateway.state_dir().join("memory")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("batch")), "{left:?}");
}
