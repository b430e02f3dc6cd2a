//! Requests and answers of batch APIs (spec `memory.md` §13). Pure.

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{BatchRequest, BatchState};
use crate::embeddings::answer::checked;
use crate::embeddings::provider::EmbeddingProvider;
use crate::embeddings::request::{TextUse, content};

/// A body with its type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BatchUpload {
    pub(super) content_type: String,
    pub(super) body: String,
}

/// The path of the upload. Gemini's stands before the version in the address.
pub(super) fn upload_url(provider: EmbeddingProvider, root: &str) -> String {
    match provider {
        EmbeddingProvider::Gemini => {
            let (host, version) = root.rsplit_once('/').unwrap_or((root, "v1beta"));
            format!("{host}/upload/{version}/files?uploadType=multipart")
        }
        EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local => {
            format!("{root}/files")
        }
    }
}

/// The file of a job, as a form or as related parts.
pub(super) fn upload(provider: EmbeddingProvider, model: &str, requests: &[BatchRequest]) -> BatchUpload {
    let lines: Vec<String> =
        requests.iter().map(|request| line(provider, model, request).to_string()).collect();
    let lines = lines.join("\n");
    let hash: String = Sha256::digest(&lines).iter().map(|byte| format!("{byte:02x}")).collect();
    let boundary = format!("openclaw-{hash}");
    match provider {
        EmbeddingProvider::Gemini => {
            let about = json!({"file": {"displayName": format!("memory-embeddings-{hash}"),
                "mimeType": "application/jsonl"}});
            let body = format!(
                "--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{about}\r\n--{boundary}\r\n\
                 Content-Type: application/jsonl; charset=UTF-8\r\n\r\n{lines}\r\n--{boundary}--\r\n"
            );
            BatchUpload { content_type: format!("multipart/related; boundary={boundary}"), body }
        }
        EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local => {
            let body = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{boundary}\r\n\
                 Content-Disposition: form-data; name=\"file\"; filename=\"memory-embeddings.{hash}.jsonl\"\r\n\
                 Content-Type: application/jsonl\r\n\r\n{lines}\r\n--{boundary}--\r\n"
            );
            BatchUpload { content_type: format!("multipart/form-data; boundary={boundary}"), body }
        }
    }
}

fn line(provider: EmbeddingProvider, model: &str, request: &BatchRequest) -> Value {
    let BatchRequest { id, text } = request;
    match provider {
        EmbeddingProvider::Gemini => json!({"key": id, "request": {"content": content(text),
            "task_type": TextUse::Documents.task_type()}}),
        EmbeddingProvider::Voyage => json!({"custom_id": id, "body": {"input": text}}),
        EmbeddingProvider::OpenAi | EmbeddingProvider::Local => json!({"custom_id": id, "method": "POST",
            "url": "/v1/embeddings", "body": {"model": model, "input": text}}),
    }
}

/// Id of the file that was uploaded.
pub(super) fn uploaded(answer: &Value) -> Option<&str> {
    ["/id", "/name", "/file/name"].iter().find_map(|place| answer.pointer(place)?.as_str())
}

/// Path and body of the request that begins a job.
pub(super) fn create(provider: EmbeddingProvider, model: &str, file: &str, agent: &str) -> (String, Value) {
    let endpoint = "/v1/embeddings";
    match provider {
        EmbeddingProvider::Gemini => {
            let batch = json!({"displayName": format!("memory-embeddings-{agent}"),
                "inputConfig": {"file_name": file}});
            (format!("/models/{model}:asyncBatchEmbedContent"), json!({"batch": batch}))
        }
        EmbeddingProvider::Voyage => (
            "/batches".to_owned(),
            json!({"input_file_id": file, "endpoint": endpoint, "completion_window": "12h",
                "request_params": {"model": model, "input_type": "document"},
                "metadata": {"source": "clawdbot-memory", "agent": agent}}),
        ),
        EmbeddingProvider::OpenAi | EmbeddingProvider::Local => (
            "/batches".to_owned(),
            json!({"input_file_id": file, "endpoint": endpoint, "completion_window": "24h",
                "metadata": {"source": "openclaw-memory", "agent": agent}}),
        ),
    }
}

/// Id of a job that was begun.
pub(super) fn created(provider: EmbeddingProvider, answer: &Value) -> Option<&str> {
    let name = if provider == EmbeddingProvider::Gemini { "name" } else { "id" };
    answer.get(name)?.as_str().filter(|id| !id.is_empty())
}

/// Path of the question how a job is.
pub(super) fn status_path(provider: EmbeddingProvider, job: &str) -> String {
    match provider {
        EmbeddingProvider::Gemini => format!("/batches/{}", job.strip_prefix("batches/").unwrap_or(job)),
        EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local => {
            format!("/batches/{job}")
        }
    }
}

/// Path of a file's content.
pub(super) fn content_path(provider: EmbeddingProvider, file: &str) -> String {
    match provider {
        EmbeddingProvider::Gemini => {
            format!("/files/{}:download", file.strip_prefix("files/").unwrap_or(file))
        }
        EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local => {
            format!("/files/{file}/content")
        }
    }
}

/// Places of the file with the answers.
const OUTPUTS: &[&str] = &[
    "/output_file_id",
    "/outputConfig/file",
    "/outputConfig/fileId",
    "/metadata/output/responsesFile",
    "/response/responsesFile",
];

/// State of a job. `None` if the answer says nothing of it.
pub(super) fn state(answer: &Value) -> Option<BatchState> {
    let named = ["/status", "/state", "/metadata/state"];
    let name = named.iter().find_map(|place| answer.pointer(place)?.as_str())?.to_lowercase();
    let word = name.rsplit('_').next().unwrap_or_default();
    let text =
        |places: &[&str]| places.iter().find_map(|place| answer.pointer(place)?.as_str()).map(str::to_owned);
    match word {
        "completed" | "succeeded" | "done" => match text(OUTPUTS) {
            Some(output) => Some(BatchState::Done { output }),
            None => Some(BatchState::Dead {
                reason: "completed without a file of answers".to_owned(),
                errors: text(&["/error_file_id"]),
            }),
        },
        "failed" | "expired" | "cancelled" | "canceled" => {
            let said = text(&["/error/message", "/errors/data/0/message"]);
            let reason = said.map_or_else(|| word.to_owned(), |said| format!("{word}: {said}"));
            Some(BatchState::Dead { reason, errors: text(&["/error_file_id"]) })
        }
        "validating" | "progress" | "finalizing" | "cancelling" | "pending" | "running" | "queued"
        | "processing" => Some(BatchState::Running),
        _ => None,
    }
}

#[derive(Deserialize)]
struct Numbers {
    #[serde(alias = "values")]
    embedding: Vec<Option<f32>>,
}

/// A line of the file with the answers: the id of a request, and its vector or what went wrong.
pub(super) fn answer(line: &str) -> Option<(String, Result<Vec<f32>, String>)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let ids = ["custom_id", "key", "request_id"];
    let id = ids.iter().find_map(|name| value.get(name)?.as_str())?.to_owned();
    Some((id, vector(&value)))
}

fn vector(value: &Value) -> Result<Vec<f32>, String> {
    let message = ["/error/message", "/response/error/message", "/response/body/error/message"];
    if let Some(message) = message.iter().find_map(|place| value.pointer(place)?.as_str()) {
        return Err(message.to_owned());
    }
    let status = value.pointer("/response/status_code").and_then(Value::as_u64);
    if let Some(status) = status.filter(|status| *status >= 400) {
        return Err(format!("status {status}"));
    }
    let places = ["/response/body/data/0", "/response/embedding", "/embedding"];
    let numbers = places.iter().find_map(|place| Numbers::deserialize(value.pointer(place)?).ok());
    let numbers = numbers.ok_or("no embedding")?;
    checked(0, &numbers.embedding).map_err(|_| "no usable embedding".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use EmbeddingProvider::{Gemini, OpenAi, Voyage};

    fn one(id: &str, text: &str) -> [BatchRequest; 1] {
        [BatchRequest { id: id.to_owned(), text: text.to_owned() }]
    }

    /// The upload of the golden file `memory-http.json`, byte by byte but for the boundary.
    #[test]
    fn uploads_are_those_of_the_reference() {
        let requests = one("3428b430", "# 2026-01-28\n");
        let BatchUpload { content_type, body } = upload(Gemini, "gemini-embedding-001", &requests);
        let boundary = content_type.strip_prefix("multipart/related; boundary=").unwrap();
        assert_eq!(boundary.len(), "openclaw-".len() + 64);
        let hash = boundary.strip_prefix("openclaw-").unwrap();
        let expect = "--B\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n\
            {\"file\":{\"displayName\":\"memory-embeddings-H\",\"mimeType\":\"application/jsonl\"}}\r\n--B\r\n\
            Content-Type: application/jsonl; charset=UTF-8\r\n\r\n\
            {\"key\":\"3428b430\",\"request\":{\"content\":{\"parts\":[{\"text\":\"# 2026-01-28\\n\"}]},\
            \"task_type\":\"RETRIEVAL_DOCUMENT\"}}\r\n--B--\r\n";
        assert_eq!(body.replace(boundary, "B").replace(hash, "H"), expect);
        let upload = upload(OpenAi, "m", &requests);
        assert!(upload.content_type.starts_with("multipart/form-data; boundary=openclaw-"));
        let line = r##"{"custom_id":"3428b430","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"# 2026-01-28\n"}}"##;
        for part in ["name=\"purpose\"\r\n\r\nbatch\r\n", "Content-Type: application/jsonl\r\n\r\n", line] {
            assert!(upload.body.contains(part), "{}", upload.body);
        }
        assert_eq!(
            upload_url(Gemini, "http://h/v1beta"),
            "http://h/upload/v1beta/files?uploadType=multipart"
        );
        assert_eq!(upload_url(OpenAi, "http://h/v1"), "http://h/v1/files");
    }

    #[test]
    fn jobs_are_begun_as_the_reference_does() {
        let openai = r#"{"input_file_id":"file-in-0","endpoint":"/v1/embeddings","completion_window":"24h","metadata":{"source":"openclaw-memory","agent":"main"}}"#;
        let voyage = r#"{"input_file_id":"file-in-0","endpoint":"/v1/embeddings","completion_window":"12h","request_params":{"model":"voyage-4-large","input_type":"document"},"metadata":{"source":"clawdbot-memory","agent":"main"}}"#;
        let gemini =
            r#"{"batch":{"displayName":"memory-embeddings-main","inputConfig":{"file_name":"files/a"}}}"#;
        let rows = [
            (create(OpenAi, "m", "file-in-0", "main"), "/batches", openai),
            (create(Voyage, "voyage-4-large", "file-in-0", "main"), "/batches", voyage),
            (create(Gemini, "g", "files/a", "main"), "/models/g:asyncBatchEmbedContent", gemini),
        ];
        for ((path, body), expect_path, expect) in rows {
            assert_eq!((path.as_str(), body.to_string().as_str()), (expect_path, expect));
        }
    }

    #[test]
    fn states_are_read() {
        let done = |output: &str| Some(BatchState::Done { output: output.to_owned() });
        let dead = |reason: &str, errors: Option<&str>| {
            Some(BatchState::Dead { reason: reason.to_owned(), errors: errors.map(str::to_owned) })
        };
        let rows = [
            (json!({"status": "in_progress"}), Some(BatchState::Running)),
            (json!({"status": "completed", "output_file_id": "f"}), done("f")),
            (
                json!({"status": "completed", "error_file_id": "e"}),
                dead("completed without a file of answers", Some("e")),
            ),
            (json!({"status": "expired"}), dead("expired", None)),
            (
                json!({"status": "failed", "errors": {"data": [{"message": "bad line"}]}}),
                dead("failed: bad line", None),
            ),
            (json!({"metadata": {"state": "BATCH_STATE_RUNNING"}}), Some(BatchState::Running)),
            (
                json!({"metadata": {"state": "BATCH_STATE_SUCCEEDED", "output": {"responsesFile": "files/o"}}}),
                done("files/o"),
            ),
            (json!({"state": "SUCCEEDED", "outputConfig": {"file": "files/p"}}), done("files/p")),
            (json!({"state": "FAILED", "error": {"message": "no"}}), dead("failed: no", None)),
            (json!({"state": "UNKNOWN"}), None),
            (json!({}), None),
        ];
        for (answer, expect) in rows {
            assert_eq!(state(&answer), expect, "{answer}");
        }
    }

    #[test]
    fn lines_of_answers_are_read() {
        let vector = |id: &str| Some((id.to_owned(), Ok(vec![0.0, 1.0])));
        let wrong = |what: &str| Some(("a".to_owned(), Err(what.to_owned())));
        let rows = [
            (
                r#"{"id":"x","custom_id":"a","response":{"status_code":200,"body":{"data":[{"embedding":[0,1],"index":0}]}},"error":null}"#,
                vector("a"),
            ),
            (r#"{"key":"b","embedding":{"values":[0,1]}}"#, vector("b")),
            (r#"{"request_id":"c","response":{"embedding":{"values":[0,1]}}}"#, vector("c")),
            (r#"{"custom_id":"a","error":{"message":"too long"}}"#, wrong("too long")),
            (r#"{"custom_id":"a","response":{"status_code":500,"body":{}}}"#, wrong("status 500")),
            (
                r#"{"custom_id":"a","response":{"status_code":200,"body":{"data":[{"embedding":[]}]}}}"#,
                wrong("no usable embedding"),
            ),
            (r#"{"custom_id":"a"}"#, wrong("no embedding")),
            (r#"{"id":"x"}"#, None),
            ("not json", None),
        ];
        for (line, expect) in rows {
            assert_eq!(answer(line), expect, "{line}");
        }
    }
}
