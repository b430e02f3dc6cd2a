//! Selection of the provider and its key.

use std::path::Path;

use openclaw_models::catalog::ProviderEntry;
use openclaw_models::embeddings::LocalEmbeddings;

use super::*;

/// The selected provider, and the one in whose place it is.
async fn selected(variables: &[(&str, &str)], settings: &EmbeddingSettings) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let found = embeddings(variables).select(&ModelSettings::default(), dir.path(), settings).await;
    let selection = found.map_err(|error| error.to_string())?;
    Ok(match selection.fallback {
        Some(fallback) => format!("{} for {}", selection.provider.id(), fallback.from.id()),
        None => selection.provider.id().to_owned(),
    })
}

fn wanted(provider: Option<EmbeddingProvider>, fallback: Option<EmbeddingProvider>) -> EmbeddingSettings {
    EmbeddingSettings { provider, fallback, ..EmbeddingSettings::default() }
}

#[tokio::test]
async fn the_first_provider_with_a_key_is_used() {
    let (openai, google, voyage) =
        (("OPENAI_API_KEY", "sk-1"), ("GEMINI_API_KEY", "AIza"), ("VOYAGE_API_KEY", "pa-1"));
    let rows: [(&[(&str, &str)], &str); 4] = [
        (&[openai, google, voyage], "openai"),
        (&[google, voyage], "gemini"),
        (&[voyage], "voyage"),
        (&[], ""),
    ];
    for (variables, expect) in rows {
        let found = selected(variables, &wanted(None, None)).await;
        match found {
            Ok(found) => assert_eq!(found, expect),
            Err(error) => {
                assert_eq!(expect, "", "{error}");
                let paragraphs: Vec<&str> = error.split("\n\n").collect();
                assert_eq!(paragraphs.len(), 3, "{error}");
                for (paragraph, provider) in paragraphs.iter().zip(["openai", "google", "voyage"]) {
                    assert!(
                        paragraph.starts_with(&format!("No API key found for provider \"{provider}\"")),
                        "{error}"
                    );
                }
                assert!(error.contains("VOYAGE_API_KEY"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_fallback_stands_in_and_both_reasons_are_told() {
    use EmbeddingProvider::{Gemini, Local, OpenAi, Voyage};
    let google = [("GEMINI_API_KEY", "AIza")];
    assert_eq!(selected(&google, &wanted(Some(OpenAi), Some(Gemini))).await.unwrap(), "gemini for openai");
    assert_eq!(selected(&google, &wanted(Some(Local), Some(Gemini))).await.unwrap(), "gemini for local");
    assert_eq!(selected(&google, &wanted(Some(Gemini), Some(OpenAi))).await.unwrap(), "gemini");
    let both = selected(&google, &wanted(Some(OpenAi), Some(Voyage))).await.unwrap_err();
    let (first, second) = both.split_once("\n\nFallback to voyage failed: ").unwrap();
    assert!(first.contains("\"openai\"") && second.contains("\"voyage\""), "{both}");
    let same = selected(&google, &wanted(Some(OpenAi), Some(OpenAi))).await.unwrap_err();
    assert!(!same.contains("Fallback"), "{same}");
}

#[tokio::test]
async fn a_local_server_needs_no_key_and_is_sent_none() {
    let server = scripted(vec![vectors(&[&[1.0]]); 2]).await;
    let mut settings = settings(&server.v1());
    settings.remote.api_key = None;
    for provider in [Some(EmbeddingProvider::OpenAi), None] {
        settings.provider = provider;
        let client = select(&embeddings(&[("OPENAI_API_KEY", "sk-stored-1")]), &settings).await.unwrap();
        client.embed_query("a").await.unwrap();
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn a_foreign_server_that_wants_a_key_is_told_of_with_advice() {
    let server = scripted([Reply::openai_error(401, "x", "key please")]).await;
    let mut settings = settings(&server.v1());
    settings.remote.api_key = None;
    let client = select(&embeddings(&[("OPENAI_API_KEY", "sk-stored-1")]), &settings).await.unwrap();
    let error = client.embed_query("a").await.unwrap_err().to_string();
    assert!(error.contains("remote.apiKey"), "{error}");
}

#[tokio::test]
async fn the_configured_provider_gets_its_stored_key_and_headers() {
    let server = scripted([vectors(&[&[1.0]])]).await;
    let entry = json!({"baseUrl": server.v1(), "apiKey": "sk-stored-1", "headers": {"X-Org": "o9"}});
    let entry: ProviderEntry = serde_json::from_value(entry).unwrap();
    let model_settings =
        ModelSettings { providers: vec![("openai".to_owned(), entry)], ..ModelSettings::default() };
    let dir = tempfile::tempdir().unwrap();
    let wanted = wanted(None, None);
    let selection = embeddings(&[]).select(&model_settings, dir.path(), &wanted).await.unwrap();
    let EmbeddingSource::Client(client) = selection.source else { panic!("a client") };
    client.embed_query("a").await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(
        (request.header("authorization"), request.header("x-org")),
        (Some("Bearer sk-stored-1"), Some("o9"))
    );
    assert_eq!(client.identity().model, "text-embedding-3-small");
}

#[tokio::test]
async fn geminis_key_may_name_a_variable() {
    let server = scripted([document(&json!({"embedding": {"values": [1]}}))]).await;
    let mut settings = settings(&server.url());
    settings.provider = Some(EmbeddingProvider::Gemini);
    settings.remote.api_key = Some(SecretString::from("GOOGLE_API_KEY"));
    let client = select(&embeddings(&[("GOOGLE_API_KEY", "AIza-1")]), &settings).await.unwrap();
    client.embed_query("a").await.unwrap();
    assert_eq!(server.requests()[0].header("x-goog-api-key"), Some("AIza-1"));
}

#[tokio::test]
async fn an_address_that_is_none_is_named() {
    let error = select(&embeddings(&[]), &settings("localhost:11434")).await.unwrap_err().to_string();
    assert!(error.contains("\"localhost:11434\" is not an http(s) address"), "{error}");
}

/// Settings of a local model at this place.
fn local(path: &Path) -> EmbeddingSettings {
    let model_path = Some(path.display().to_string());
    EmbeddingSettings {
        local: LocalEmbeddings { model_path, cache_dir: None },
        ..wanted(Some(EmbeddingProvider::Local), None)
    }
}

#[tokio::test]
async fn a_local_model_goes_first_where_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let with_key = [("OPENAI_API_KEY", "sk-1")];
    let mut settings = local(dir.path());
    settings.provider = None;
    assert_eq!(selected(&with_key, &settings).await.unwrap(), "local");
    settings.local.model_path = Some(dir.path().join("gone").display().to_string());
    assert_eq!(selected(&with_key, &settings).await.unwrap(), "openai");
    settings.local.model_path = Some("hf:a/b/c.gguf".to_owned());
    assert_eq!(selected(&with_key, &settings).await.unwrap(), "openai");
}

#[tokio::test]
async fn a_local_model_that_cannot_be_used_is_told_of_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("model.gguf");
    std::fs::write(&file, "GGUF").unwrap();
    let home = dir.path().display().to_string();
    let rows = [
        (local(&dir.path().join("gone.gguf")), "No model file found at"),
        (local(&file), "needs llama-server, which is not installed"),
        (local(Path::new("https://host/x.gguf")), "is not downloaded"),
        (
            wanted(Some(EmbeddingProvider::Local), None),
            "embeddinggemma-300M-Q8_0.gguf is not on this machine",
        ),
    ];
    for (settings, expect) in rows {
        let error = selected(&[("HOME", &home), ("PATH", &home)], &settings).await.unwrap_err();
        assert!(error.starts_with("Local embeddings unavailable.\nReason: "), "{error}");
        assert!(error.contains(expect) && error.contains("remote.baseUrl"), "{error}");
    }
}
