//! Looks for programs on this machine that embed texts. Nobody is asked unless a person wants to
//! know.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::address::Whereabouts;
use super::inquiry::KnownAs;
use super::server::{ModelList, Server};
use super::{lm_studio, ollama};
use crate::net::{Http, is_local_url};
use crate::provider_entry::Asks;
use crate::variables::Variables;

/// Time limit for a program.
const DEADLINE: Duration = Duration::from_secs(2);
/// Models of a server of which nobody knows whether they embed: as many are tried.
const MAX_TRIED: usize = 4;
/// Programs, by name and usual address.
const PROGRAMS: [(Asks, &str, &str); 4] = [
    (Asks::Ollama, "Ollama", "http://127.0.0.1:11434"),
    (Asks::LlamaCpp, "llama-server", "http://127.0.0.1:8080"),
    (Asks::LmStudio, "LM Studio", "http://127.0.0.1:1234"),
    (Asks::Vllm, "vLLM", "http://127.0.0.1:8000"),
];

/// A program on this machine that embeds texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalEmbeddingServer {
    /// Name of the program.
    pub program: &'static str,
    /// Value for `memorySearch.remote.baseUrl`.
    pub base_url: String,
    /// Values for `memorySearch.model`; never empty.
    pub models: Vec<String>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

#[derive(Deserialize)]
struct TriedAnswer {
    data: Vec<serde_json::Value>,
}

/// Asks the programs for local models on this machine which of their models embed texts. Takes two
/// seconds at most. Finds nothing where `OPENCLAW_LOCAL_MODELS` is `off`.
pub(crate) async fn embedding_servers(http: &Http, variables: &Variables) -> Vec<LocalEmbeddingServer> {
    let places = Whereabouts::of(variables);
    if !places.looked_for {
        return Vec::new();
    }
    let asked = PROGRAMS.map(|(asks, program, usual)| {
        let root = places.of_program(asks).unwrap_or(usual).to_owned();
        embedding_server(http, asks, program, root)
    });
    futures_util::future::join_all(asked).await.into_iter().flatten().collect()
}

async fn embedding_server(
    http: &Http,
    asks: Asks,
    program: &'static str,
    root: String,
) -> Option<LocalEmbeddingServer> {
    if !is_local_url(&root) {
        return None;
    }
    let server = Server { http, root: &root, key: None, known_as: KnownAs::Guessed };
    let found = tokio::time::timeout(DEADLINE, models(&server, asks)).await.ok()?;
    let models = found.ok()?.into_iter().filter(|id| !id.trim().is_empty()).collect::<Vec<_>>();
    let base_url = format!("{root}/v1");
    (!models.is_empty()).then_some(LocalEmbeddingServer { program, base_url, models })
}

async fn models(server: &Server<'_>, asks: Asks) -> Result<Vec<String>, String> {
    match asks {
        Asks::Ollama => ollama::embedding_models(server).await,
        Asks::LmStudio => lm_studio::embedding_models(server).await,
        Asks::LlamaCpp | Asks::Vllm => tried(server).await,
        Asks::Venice => Ok(Vec::new()),
    }
}

/// The models with which a word can be embedded: these servers do not say which ones embed.
async fn tried(server: &Server<'_>) -> Result<Vec<String>, String> {
    let list: ModelList<ListedModel> = server.get("/v1/models").await?;
    let mut embed = Vec::new();
    for ListedModel { id } in list.data.into_iter().take(MAX_TRIED) {
        let body = json!({"model": id, "input": ["ping"]});
        let answer: Result<TriedAnswer, String> = server.post("/v1/embeddings", &body).await;
        if answer.is_ok_and(|answer| answer.data.len() == 1) {
            embed.push(id);
        }
    }
    Ok(embed)
}
