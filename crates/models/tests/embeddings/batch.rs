//! Jobs of batch APIs.

use std::time::Duration;

use openclaw_models::embeddings::{BatchError, BatchJobs, BatchRequest, BatchVectors};

use super::*;

const EVERY: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(60);

fn requests() -> Vec<BatchRequest> {
    ["a", "b"].map(|id| BatchRequest { id: id.to_owned(), text: format!("text {id}") }).to_vec()
}

fn lines(lines: &[Value]) -> Reply {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    Reply::plain(200, "application/jsonl", text.join("\n"))
}

fn both() -> BatchVectors {
    let vectors = [("a", vec![1.0, 2.0]), ("b", vec![3.0, 4.0])];
    BatchVectors {
        vectors: vectors.into_iter().map(|(id, vector)| (id.to_owned(), vector)).collect(),
        ..BatchVectors::default()
    }
}

async fn jobs(server: &ModelServer, provider: EmbeddingProvider, path: &str) -> BatchJobs {
    let mut settings = settings(&format!("{}{path}", server.url()));
    settings.provider = Some(provider);
    BatchJobs::of(&select(&embeddings(&[]), &settings).await.unwrap()).unwrap()
}

/// Method and path of each request.
fn asked(server: &ModelServer) -> Vec<String> {
    server.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

fn openai_answer(id: &str, vector: [f32; 2]) -> Value {
    json!({"id": "x", "custom_id": id, "error": null,
        "response": {"status_code": 200, "body": {"data": [{"embedding": vector, "index": 0}]}}})
}

#[tokio::test]
async fn a_job_of_openai_is_begun_watched_and_read() {
    let server = scripted([
        Reply::openai_error(503, "x", "busy"),
        document(&json!({"id": "file-in-0"})),
        document(&json!({"id": "batch_0", "status": "validating"})),
        document(&json!({"id": "batch_0", "status": "in_progress"})),
        Reply::openai_error(502, "x", "for a moment"),
        document(&json!({"id": "batch_0", "status": "completed", "output_file_id": "file-out"})),
        lines(&[openai_answer("b", [3.0, 4.0]), openai_answer("a", [1.0, 2.0])]),
    ])
    .await;
    let job =
        jobs(&server, EmbeddingProvider::OpenAi, "/v1").await.submit("main", &requests()).await.unwrap();
    assert_eq!(job, "batch_0");
    // Another process goes on with the stored id.
    let later = jobs(&server, EmbeddingProvider::OpenAi, "/v1").await;
    assert_eq!(later.wait(&job, EVERY, LONG).await.unwrap(), both());
    let status = "GET /v1/batches/batch_0";
    let files = "POST /v1/files";
    assert_eq!(
        asked(&server),
        [files, files, "POST /v1/batches", status, status, status, "GET /v1/files/file-out/content"]
    );
    let sent = server.requests();
    assert!(sent[1].header("content-type").unwrap().starts_with("multipart/form-data; boundary=openclaw-"));
    assert_eq!(sent[2].body["input_file_id"], "file-in-0");
    assert!(sent.iter().all(|request| request.header("authorization") == Some("Bearer sk-test-123")));
}

#[tokio::test]
async fn a_job_of_gemini_has_its_own_paths() {
    let answer =
        |id: &str, vector: [f32; 2]| json!({"key": id, "response": {"embedding": {"values": vector}}});
    let server = scripted([
        document(&json!({"file": {"name": "files/in"}})),
        document(&json!({"name": "batches/7"})),
        document(&json!({"name": "batches/7", "metadata": {"state": "BATCH_STATE_SUCCEEDED",
            "output": {"responsesFile": "files/out"}}})),
        lines(&[answer("a", [1.0, 2.0]), answer("b", [3.0, 4.0])]),
    ])
    .await;
    let jobs = jobs(&server, EmbeddingProvider::Gemini, "/v1beta").await;
    let job = jobs.submit("main", &requests()).await.unwrap();
    assert_eq!(jobs.wait(&job, EVERY, LONG).await.unwrap(), both());
    assert_eq!(
        asked(&server),
        [
            "POST /upload/v1beta/files?uploadType=multipart",
            "POST /v1beta/models/fake-embed-64:asyncBatchEmbedContent",
            "GET /v1beta/batches/7",
            "GET /v1beta/files/out:download",
        ]
    );
}

#[tokio::test]
async fn texts_that_failed_are_told_beside_those_that_did_not() {
    let server = scripted([
        document(&json!({"status": "completed", "output_file_id": "o"})),
        lines(&[
            openai_answer("a", [1.0, 2.0]),
            json!({"custom_id": "b", "error": {"message": "too long, sk-test-123"}}),
        ]),
    ])
    .await;
    let jobs = jobs(&server, EmbeddingProvider::OpenAi, "/v1").await;
    let found = jobs.wait("j", EVERY, LONG).await.unwrap();
    assert_eq!(found.vectors.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(found.failed["b"], "too long, [redacted]");
}

#[tokio::test]
async fn jobs_that_bring_nothing_are_given_up() {
    let status = |status: &str| document(&json!({"status": status, "error_file_id": "e"}));
    let errors = lines(&[json!({"custom_id": "a", "error": {"message": "no such model"}})]);
    let rows: Vec<(Vec<Reply>, Duration, &str)> = vec![
        (vec![status("failed"), errors], LONG, "openai batch j failed: no such model"),
        (vec![status("in_progress"); 3], Duration::ZERO, "openai batch j timed out after 0ms"),
        (vec![document(&json!({"status": "what"})); 12], LONG, "is in an unknown state"),
        (vec![Reply::openai_error(401, "x", "no")], LONG, "openai embeddings failed: 401"),
        (vec![document(&json!([])); 12], LONG, "is in an unknown state"),
    ];
    for (replies, limit, expect) in rows {
        let server = scripted(replies).await;
        let jobs = jobs(&server, EmbeddingProvider::OpenAi, "/v1").await;
        let error = jobs.wait("j", EVERY, limit).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
}

#[tokio::test]
async fn a_provider_without_jobs_is_told_of() {
    let server = scripted([
        document(&json!({"name": "files/in"})),
        Reply::error(404, &json!({"error": {"code": 404}})),
    ])
    .await;
    let jobs = jobs(&server, EmbeddingProvider::Gemini, "/v1beta").await;
    let error = jobs.submit("main", &requests()).await.unwrap_err();
    assert!(matches!(error, BatchError::Unsupported { .. }), "{error:?}");
    let local = select(&embeddings(&[]), &settings("http://127.0.0.1:1/v1")).await.unwrap();
    assert!(BatchJobs::of(&local).is_some(), "OpenAI's protocol may have them anywhere");
}
