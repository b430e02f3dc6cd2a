//! Embeddings over real HTTP against a scripted server, through the same door as the rest of the product.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's way to fail")]

#[path = "embeddings/batch.rs"]
mod batch;
#[path = "embeddings/failures.rs"]
mod failures;
#[cfg(unix)]
#[path = "embeddings/llama_server.rs"]
mod llama_server;
#[path = "embeddings/local_servers.rs"]
mod local_servers;
#[path = "embeddings/selection.rs"]
mod selection;
#[path = "embeddings/wire.rs"]
mod wire;

use std::collections::VecDeque;
use std::sync::Mutex;

use openclaw_embedding::EmbedError;
use openclaw_models::embeddings::{
    EmbeddingClient, EmbeddingProvider, EmbeddingSettings, EmbeddingSource, Embeddings, NoEmbeddings,
    RemoteEmbeddings,
};
use openclaw_models::{Http, ModelSettings, Models, Variables};
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use secrecy::SecretString;
use serde_json::{Value, json};

/// A server that answers requests for embeddings by a function, in place of its own vectors.
async fn server(answer: impl Fn(&Captured) -> Reply + Send + Sync + 'static) -> ModelServer {
    ModelServer::queue([]).await.listing(move |request| Some(answer(request)))
}

/// A server that gives these answers one after another, then fails.
async fn scripted(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
    let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
    server(move |_| {
        replies.lock().unwrap().pop_front().unwrap_or_else(|| Reply::plain(418, "text/plain", "no more"))
    })
    .await
}

fn document(value: &Value) -> Reply {
    Reply::plain(200, "application/json", value.to_string())
}

/// OpenAI's answer with these vectors.
fn vectors(vectors: &[&[f32]]) -> Reply {
    let data: Vec<Value> = vectors
        .iter()
        .enumerate()
        .map(|(index, vector)| json!({"index": index, "embedding": vector}))
        .collect();
    document(&json!({"object": "list", "data": data}))
}

fn settings(base_url: &str) -> EmbeddingSettings {
    let remote = RemoteEmbeddings {
        base_url: Some(base_url.to_owned()),
        api_key: Some(SecretString::from("sk-test-123")),
        ..RemoteEmbeddings::default()
    };
    EmbeddingSettings {
        provider: Some(EmbeddingProvider::OpenAi),
        model: "fake-embed-64".to_owned(),
        remote,
        ..EmbeddingSettings::default()
    }
}

fn embeddings(variables: &[(&str, &str)]) -> Embeddings {
    let variables: Variables = variables.iter().copied().collect();
    Embeddings::new(Models::new(variables, Http::default()))
}

async fn select(all: &Embeddings, settings: &EmbeddingSettings) -> Result<EmbeddingClient, NoEmbeddings> {
    let dir = tempfile::tempdir().unwrap();
    let selection = all.select(&ModelSettings::default(), dir.path(), settings).await?;
    match selection.source {
        EmbeddingSource::Client(client) => Ok(client),
        other => panic!("{other:?}"),
    }
}

/// A client of a server, with a process of its own.
async fn client(server: &ModelServer) -> EmbeddingClient {
    select(&embeddings(&[]), &settings(&server.v1())).await.unwrap()
}

/// The kind of an error.
fn kind(error: &EmbedError) -> &'static str {
    match error {
        EmbedError::RateLimited { .. } => "rate limited",
        EmbedError::Unauthorized { .. } => "unauthorized",
        EmbedError::TooLarge { .. } => "too large",
        EmbedError::Unavailable { .. } => "unavailable",
        EmbedError::UnderWay { .. } => "under way",
        EmbedError::Invalid { .. } => "invalid",
    }
}
