//! GGUF files, run by a program that stands in for `llama-server`: this test binary itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use openclaw_models::embeddings::{LlamaServer, LocalEmbeddings};

use super::*;

/// Variable with the arguments that the stand-in got.
const ARGUMENTS: &str = "FAKE_LLAMA_SERVER_ARGUMENTS";

/// Not a test: the program, when it is called as such.
#[test]
fn stand_in() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let value = |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1];
    assert!(words.contains(&"--embeddings") && value("--model").ends_with(".gguf"));
    assert!(std::env::var_os("OPENAI_API_KEY").is_none(), "keys of providers are not handed on");
    let key = format!("authorization: bearer {}", std::env::var("LLAMA_API_KEY").unwrap());
    let listener = TcpListener::bind((value("--host"), value("--port").parse().unwrap())).unwrap();
    let mut health = 0;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_lowercase());
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        let request = lines.first().cloned().unwrap_or_default();
        let (status, answer) = if request.starts_with("get /health") {
            health += 1;
            (if health > 2 { 200 } else { 503 }, String::new())
        } else if !lines.contains(&key) {
            (401, String::new())
        } else if String::from_utf8_lossy(&body).contains("crash") {
            eprintln!("out of memory");
            std::process::exit(3);
        } else {
            (200, json!({"data": [{"embedding": [std::process::id() % 65_536, 1]}]}).to_string())
        };
        let head =
            format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

/// A directory with a program of that name, and the variables of a process that finds it.
fn program(dir: &Path, script: &str) -> Variables {
    let program = dir.join("llama-server");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    [("PATH", dir.display().to_string())].into_iter().collect()
}

fn stand_in_program(dir: &Path) -> Variables {
    let test = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\n{ARGUMENTS}=\"$*\" exec '{}' --exact llama_server::stand_in --nocapture\n",
        test.display()
    );
    program(dir, &script)
}

async fn server(variables: Variables, dir: &Path, model_path: &str) -> LlamaServer {
    let local = LocalEmbeddings {
        model_path: Some(model_path.to_owned()),
        cache_dir: Some(dir.display().to_string()),
    };
    let settings =
        EmbeddingSettings { provider: Some(EmbeddingProvider::Local), local, ..EmbeddingSettings::default() };
    let all = Embeddings::new(Models::new(variables, Http::default()));
    let selection = all.select(&ModelSettings::default(), dir, &settings).await.unwrap();
    match selection.source {
        EmbeddingSource::LlamaServer(server) => server,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_gguf_file_is_run_by_an_installed_program() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("hf_owner_model.gguf"), "GGUF").unwrap();
    let server = server(stand_in_program(dir.path()), dir.path(), "hf:owner/repo/model.gguf").await;
    assert_eq!(
        (server.identity().provider.as_str(), server.identity().model.as_str()),
        ("local", "hf:owner/repo/model.gguf")
    );
    let first = server.embed_query("a").await.unwrap();
    let batch = server.clone().embed_batch(&["b"]).await.unwrap();
    assert_eq!(batch.first(), Some(&first), "the same process");
    // It dies, and is started anew.
    let died = server.embed_query("crash").await.unwrap_err();
    assert_eq!(kind(&died), "unavailable", "{died}");
    let second = server.embed_query("a").await.unwrap();
    assert_ne!(first, second);
    server.stop().await;
    assert_ne!(server.embed_query("a").await.unwrap(), second);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_told_of_in_its_own_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("model.gguf");
    std::fs::write(&file, "GGUF").unwrap();
    let variables = program(
        dir.path(),
        "#!/bin/sh\necho x >> \"$0.log\"\necho 'unknown model architecture' >&2\nexit 1\n",
    );
    let server = server(variables, dir.path(), &file.display().to_string()).await;
    for _ in 0..2 {
        let error = server.embed_query("a").await.unwrap_err();
        assert_eq!(kind(&error), "unavailable");
        assert!(
            error.to_string().contains("Local embeddings unavailable.\nReason: llama-server ended"),
            "{error}"
        );
    }
    let starts = std::fs::read_to_string(dir.path().join("llama-server.log")).unwrap();
    assert_eq!(starts.lines().count(), 1, "a start that failed is not tried again at once");
}
