//! Requests as the golden file `memory-http.json` has them.

use std::collections::BTreeMap;

use super::*;

/// Method, path, body, and the headers that matter.
fn shown(request: &Captured) -> Value {
    let names = ["authorization", "content-type", "x-goog-api-key", "x-org"];
    let headers: BTreeMap<&str, &str> =
        names.into_iter().filter_map(|name| Some((name, request.header(name)?))).collect();
    json!([request.method, request.path, headers, request.text])
}

async fn requests(provider: EmbeddingProvider, model: &str, key: &str, path: &str) -> Vec<Value> {
    let answer = json!({
        "data": [{"embedding": [0, 1]}],
        "embeddings": [{"values": [0, 1]}],
        "embedding": {"values": [0, 1]},
    });
    let server = server(move |_| document(&answer)).await;
    let mut settings = settings(&format!("{}{path}", server.url()));
    settings.provider = Some(provider);
    settings.model = model.to_owned();
    settings.remote.api_key = Some(SecretString::from(key));
    settings.remote.headers = [("X-Org".to_owned(), SecretString::from("o1"))].into();
    let client = select(&embeddings(&[]), &settings).await.unwrap();
    assert_eq!(client.embed_batch(&["# 2026-01-29\n\n- 会议\n"]).await.unwrap(), [[0.0, 1.0]]);
    assert_eq!(client.embed_query("apple trees").await.unwrap(), [0.0, 1.0]);
    assert_eq!(client.embed_query(" \n").await.unwrap(), [0.0; 0], "nothing is asked for a blank text");
    server.requests().iter().map(shown).collect()
}

#[tokio::test]
async fn openai_is_asked_as_the_reference_asks() {
    let headers =
        json!({"authorization": "Bearer sk-test-123", "content-type": "application/json", "x-org": "o1"});
    let found = requests(EmbeddingProvider::OpenAi, "openai/fake-embed-64", "sk-test-123", "/v1/").await;
    let index = r##"{"model":"fake-embed-64","input":["# 2026-01-29\n\n- 会议\n"]}"##;
    let query = r#"{"model":"fake-embed-64","input":["apple trees"]}"#;
    let expect = [index, query].map(|body| json!(["POST", "/v1/embeddings", headers, body]));
    assert_eq!(found, expect);
}

#[tokio::test]
async fn voyage_is_asked_as_the_reference_asks() {
    let headers =
        json!({"authorization": "Bearer pa-test", "content-type": "application/json", "x-org": "o1"});
    let found = requests(EmbeddingProvider::Voyage, "", "pa-test", "/v1").await;
    let index =
        r##"{"model":"voyage-4-large","input":["# 2026-01-29\n\n- 会议\n"],"input_type":"document"}"##;
    let query = r#"{"model":"voyage-4-large","input":["apple trees"],"input_type":"query"}"#;
    let expect = [index, query].map(|body| json!(["POST", "/v1/embeddings", headers, body]));
    assert_eq!(found, expect);
}

#[tokio::test]
async fn gemini_is_asked_as_the_reference_asks() {
    let headers = json!({"x-goog-api-key": "AIza-test", "content-type": "application/json", "x-org": "o1"});
    let found =
        requests(EmbeddingProvider::Gemini, "models/gemini-embedding-001", "AIza-test", "/v1beta/openai/")
            .await;
    let index = concat!(
        r#"{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"#,
        r##""# 2026-01-29\n\n- 会议\n"}]},"taskType":"RETRIEVAL_DOCUMENT"}]}"##
    );
    let query = r#"{"content":{"parts":[{"text":"apple trees"}]},"taskType":"RETRIEVAL_QUERY"}"#;
    let path = |method: &str| format!("/v1beta/models/gemini-embedding-001:{method}");
    assert_eq!(
        found,
        [
            json!(["POST", path("batchEmbedContents"), headers, index]),
            json!(["POST", path("embedContent"), headers, query]),
        ]
    );
}

#[tokio::test]
async fn many_texts_go_in_several_requests_and_come_back_in_order() {
    let server = server(|request| {
        let input = request.body["input"].as_array().unwrap();
        // Backwards, as some servers answer.
        let data: Vec<Value> = (0..input.len())
            .rev()
            .map(|index| {
                let number: f64 = input[index].as_str().unwrap().parse().unwrap();
                json!({"index": index, "embedding": [number, 1.0]})
            })
            .collect();
        document(&json!({"data": data}))
    })
    .await;
    let texts: Vec<String> = (0..250).map(|number| number.to_string()).collect();
    let found = client(&server).await.embed_batch(&texts).await.unwrap();
    let numbers: Vec<String> = found.iter().map(|vector| vector[0].to_string()).collect();
    assert_eq!(numbers, texts);
    assert_eq!(server.requests().len(), 3);
    assert_eq!(client(&server).await.embed_batch::<&str>(&[]).await.unwrap(), Vec::<Vec<f32>>::new());
}

#[tokio::test]
async fn a_large_answer_is_read_whole() {
    let vector: Vec<f32> = (0..3072_u16).map(f32::from).collect();
    let answer = json!({"data": vec![json!({"embedding": vector}); 20]});
    let server = server(move |_| document(&answer)).await;
    let client = client(&server).await;
    assert_eq!(client.dimensions(), None);
    let found = client.embed_batch(&["x"; 20]).await.unwrap();
    assert!(found.len() == 20 && found.iter().all(|found| *found == vector));
    assert_eq!(client.dimensions(), Some(3072));
}
