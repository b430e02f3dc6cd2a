//! Servers that fail in every way there is.

use std::time::Duration;

use openclaw_models::net::Timeouts;

use super::*;

fn refusal(status: u16, words: &str) -> Reply {
    Reply::openai_error(status, "x", words).header("retry-after", "0")
}

#[tokio::test]
async fn each_failure_has_its_error_and_its_number_of_requests() {
    let page = || Reply::html(502, "Bad gateway").header("retry-after", "0");
    let rows: Vec<(Reply, &str, usize, &str)> = vec![
        (refusal(429, "slow down"), "rate limited", 5, "openai embeddings failed: 429 {"),
        (refusal(500, "in trouble"), "unavailable", 5, "500 {"),
        (refusal(503, "in trouble"), "unavailable", 5, "503 {"),
        (page(), "unavailable", 5, "a web page titled \"Bad gateway\""),
        (refusal(401, "Incorrect API key provided: sk-test-123"), "unauthorized", 1, "[redacted]"),
        (refusal(403, "no"), "unauthorized", 1, "403"),
        (
            refusal(429, "You exceeded your current quota, please check your plan and billing details"),
            "rate limited",
            5,
            "429",
        ),
        (refusal(402, "pay"), "unauthorized", 1, "402"),
        (refusal(413, "x"), "too large", 1, "413"),
        (refusal(400, "This model's maximum context length is 8192 tokens"), "too large", 1, "400"),
        (
            refusal(500, "input is too large to process. increase the physical batch size"),
            "too large",
            1,
            "500",
        ),
        // Numbers in the words are no status.
        (refusal(400, "512 dimensions are not supported, 429"), "invalid", 1, "400"),
        (refusal(404, "no such model"), "invalid", 1, "404"),
        (
            Reply::plain(301, "text/plain", "").header("location", "https://b/"),
            "invalid",
            1,
            "redirects to https://b/",
        ),
        (Reply::html(200, "Sign in"), "invalid", 1, "a web page titled \"Sign in\""),
        (Reply::plain(200, "application/json", ""), "invalid", 1, "the server's answer is empty"),
        (document(&json!({"error": {"message": "no model loaded"}})), "invalid", 1, "no model loaded"),
        (vectors(&[&[1.0]]), "invalid", 1, "answered 2 texts with 1 vectors"),
        (
            document(&json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]})),
            "invalid",
            1,
            "numbers",
        ),
        (
            document(&json!({"data": [{"embedding": [1, null]}, {"embedding": [1, 2]}]})),
            "invalid",
            1,
            "finite",
        ),
        (vectors(&[&[0.0, 0.0], &[0.0, 0.0]]), "invalid", 1, "every vector is zero"),
        (vectors(&[&[1.0, 2.0], &[1.0]]), "invalid", 1, "1 dimensions, before with 2"),
    ];
    for (reply, expect, requests, words) in rows {
        let server = scripted(vec![reply; 6]).await;
        let error = client(&server).await.embed_batch(&["a", "b"]).await.unwrap_err();
        let message = error.to_string();
        assert_eq!((kind(&error), server.requests().len()), (expect, requests), "{message}");
        assert!(message.contains(words) && !message.contains("sk-test"), "{words}: {message}");
    }
}

#[tokio::test]
async fn trouble_that_passes_is_not_told() {
    let server = scripted([refusal(429, "slow"), refusal(502, "bad"), vectors(&[&[1.0]])]).await;
    assert_eq!(client(&server).await.embed_batch(&["a"]).await.unwrap(), [[1.0]]);
    assert_eq!(server.requests().len(), 3);
    let bodies: Vec<String> = server.requests().into_iter().map(|request| request.text).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]));
}

#[tokio::test]
async fn a_question_is_asked_three_times_at_most() {
    let server = scripted(vec![refusal(503, "x"); 6]).await;
    let error = client(&server).await.embed_query("a").await.unwrap_err();
    assert_eq!((kind(&error), server.requests().len()), ("unavailable", 3));
}

#[tokio::test]
async fn google_says_in_the_body_how_long_to_wait() {
    let body = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}});
    let server = scripted([Reply::error(429, &body)]).await;
    let mut settings = settings(&server.url());
    settings.provider = Some(EmbeddingProvider::Gemini);
    let error = select(&embeddings(&[]), &settings).await.unwrap().embed_query("a").await.unwrap_err();
    let EmbedError::RateLimited { retry_after, message } = error else { panic!("{error:?}") };
    assert_eq!(retry_after, Some(Duration::from_millis(34_500)));
    assert!(message.starts_with("gemini embeddings failed: 429"), "{message}");
}

#[tokio::test]
async fn all_users_of_a_key_share_its_cooldown() {
    let later = || Reply::openai_error(429, "x", "later").header("retry-after", "120");
    let server = scripted(vec![later(); 4]).await;
    let all = embeddings(&[]);
    let one = select(&all, &settings(&server.v1())).await.unwrap();
    let other = select(&all, &settings(&server.v1())).await.unwrap();
    assert_eq!(kind(&one.embed_query("a").await.unwrap_err()), "rate limited");
    for client in [&one, &other] {
        let error = client.embed_batch(&["a"]).await.unwrap_err();
        let EmbedError::RateLimited { retry_after: Some(left), .. } = error else { panic!("{error:?}") };
        assert!(left > Duration::from_secs(100) && left <= Duration::from_secs(120), "{left:?}");
    }
    assert_eq!(server.requests().len(), 1);
    let mut another = settings(&server.v1());
    another.remote.api_key = Some(SecretString::from("sk-other-1"));
    let another = select(&all, &another).await.unwrap();
    assert_eq!(kind(&another.embed_query("a").await.unwrap_err()), "rate limited");
    assert_eq!(server.requests().len(), 2, "another key has its own");
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again_at_once() {
    let server = scripted(vec![refusal(401, "no"); 4]).await;
    let client = client(&server).await;
    let first = client.embed_query("a").await.unwrap_err();
    assert_eq!(client.embed_batch(&["a"]).await.unwrap_err(), first);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn vectors_of_another_model_midway_are_refused() {
    let server =
        scripted([vectors(&[&[1.0, 2.0]]), vectors(&[&[1.0, 2.0, 3.0]]), vectors(&[&[3.0, 4.0]])]).await;
    let client = client(&server).await;
    assert_eq!(client.embed_query("a").await.unwrap(), [1.0, 2.0]);
    let error = client.embed_batch(&["a"]).await.unwrap_err();
    assert!(error.to_string().contains("3 dimensions, before with 2"), "{error}");
    assert_eq!(client.embed_query("a").await.unwrap(), [3.0, 4.0]);
}

#[tokio::test]
async fn a_server_that_is_silent_or_gone_is_unavailable() {
    let http = Http::with_timeouts(Timeouts { idle: Duration::from_millis(50), ..Timeouts::default() });
    let all = Embeddings::new(Models::new(Variables::default(), http));
    let server = scripted(vec![Reply::never(); 6]).await;
    let silent = select(&all, &settings(&server.v1())).await.unwrap();
    let error = silent.embed_query("a").await.unwrap_err();
    assert_eq!(
        (kind(&error), server.requests().len()),
        ("unavailable", 1),
        "silence is not waited out twice"
    );
    assert!(error.to_string().contains("sent nothing for 50ms"), "{error}");
    let port = openclaw_testkit::ReservedPort::any().unwrap();
    let gone = format!("http://127.0.0.1:{}/v1", port.number().unwrap());
    let gone = select(&all, &settings(&gone)).await.unwrap();
    let error = gone.embed_query("a").await.unwrap_err();
    assert_eq!(kind(&error), "unavailable");
    assert!(error.to_string().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_closes_its_connection() {
    let server = scripted([Reply::never()]).await;
    let client = client(&server).await;
    let asked = client.embed_query("a");
    tokio::select! { biased;
        () = server.arrived(1) => {}
        found = asked => panic!("{found:?}"),
    }
    server.over(0).await;
}
