//! Programs on this machine that embed texts.

use openclaw_models::embeddings::LocalEmbeddingServer;

use super::*;

#[tokio::test]
async fn programs_that_embed_are_found_with_their_models() {
    let ollama = server(|request| match request.path.as_str() {
        "/api/tags" => document(
            &json!({"models": [{"name": "llama3"}, {"name": "bge-m3"}, {"name": "nomic-embed-text"}]}),
        ),
        _ if request.body["model"] == "llama3" => document(&json!({"capabilities": ["completion"]})),
        _ if request.body["model"] == "bge-m3" => document(&json!({"capabilities": ["embedding"]})),
        _ => document(&json!({})),
    })
    .await;
    let llama = server(|request| match request.path.as_str() {
        "/v1/models" => document(&json!({"data": [{"id": "gemma.gguf", "owned_by": "llamacpp"}]})),
        _ => vectors(&[&[1.0]]),
    })
    .await;
    let studio = server(|_| {
        document(&json!({"data": [{"id": "m", "type": "embeddings"}, {"id": "n", "type": "llm"}]}))
    })
    .await;
    let mute = server(|request| match request.path.as_str() {
        "/v1/models" => document(&json!({"data": [{"id": "chat"}]})),
        _ => Reply::openai_error(501, "x", "This server does not support embeddings"),
    })
    .await;
    let places = format!(
        "ollama={},llamacpp={},lmstudio={},vllm={}",
        ollama.url(),
        llama.url(),
        studio.url(),
        mute.url()
    );
    let found = embeddings(&[("OPENCLAW_LOCAL_MODELS", &places)]).local_servers().await;
    let program = |program, server: &ModelServer, models: &[&str]| LocalEmbeddingServer {
        program,
        base_url: server.v1(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
    };
    assert_eq!(
        found,
        [
            program("Ollama", &ollama, &["bge-m3", "nomic-embed-text"]),
            program("llama-server", &llama, &["gemma.gguf"]),
            program("LM Studio", &studio, &["m"]),
        ]
    );
    assert_eq!(embeddings(&[("OPENCLAW_LOCAL_MODELS", "off")]).local_servers().await, []);
}

#[tokio::test]
async fn servers_elsewhere_are_not_asked() {
    let places = "ollama=http://ollama.example,llamacpp=http://10.0.0.1,lmstudio=http://a.example,vllm=http://b.example";
    assert_eq!(embeddings(&[("OPENCLAW_LOCAL_MODELS", places)]).local_servers().await, []);
}
