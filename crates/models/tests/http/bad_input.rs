//! Servers that fail in every way there is, through every protocol (issue 4, "Bad input").

use super::*;

/// Calls a model of each protocol against these replies; returns the events and the number of
/// requests of each.
async fn outcomes(replies: impl Fn() -> Vec<Reply>) -> Vec<(&'static str, Vec<ModelEvent>, usize)> {
    let mut out = Vec::new();
    for provider in PROVIDERS {
        let server = ModelServer::queue(replies()).await;
        let events = call(&candidate(&server, provider).await, vec![user("hi")]).await;
        out.push((provider, events, server.requests().len()));
    }
    out
}

fn error(status: u16) -> Reply {
    Reply::openai_error(status, "x", "in trouble").header("retry-after", "0")
}

#[tokio::test]
async fn trouble_that_may_pass_is_waited_for_and_given_up_after_four_requests() {
    use FailureKind::{RateLimit, Timeout, Transient};
    for (status, kind) in
        [(408, Timeout), (429, RateLimit), (500, Transient), (503, Transient), (529, Transient)]
    {
        for (provider, events, asked) in outcomes(|| vec![error(status); 5]).await {
            // The Codex backend says with 429 that requests came too fast.
            let kind = if (provider, status) == ("codex", 429) { Transient } else { kind };
            let found = failure(&events);
            assert_eq!((found.kind, found.status, asked), (kind, Some(status), 4), "{provider} {found:?}");
        }
        for (provider, events, asked) in outcomes(|| vec![error(status), Reply::text("now")]).await {
            assert_eq!((message(&events).text().as_str(), asked), ("now", 2), "{provider} {status}");
        }
    }
}

#[tokio::test]
async fn a_wait_of_more_than_a_minute_is_not_waited() {
    let later = || vec![Reply::openai_error(429, "x", "come back later").header("retry-after", "61"); 2];
    for (provider, events, asked) in outcomes(later).await {
        let found = failure(&events);
        assert_eq!((found.retry_after, asked), (Some(Duration::from_secs(61)), 1), "{provider} {found:?}");
    }
}

/// A clock that is off by an hour does not make an hour of ten seconds: dates are the server's, and so is its time.
#[tokio::test]
async fn a_date_to_come_back_at_counts_from_the_servers_own_time() {
    let reply = || {
        let reply = Reply::openai_error(429, "x", "later").header("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        vec![reply.header("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT")]
    };
    for (provider, events, _) in outcomes(reply).await {
        assert_eq!(failure(&events).retry_after, Some(Duration::from_secs(90)), "{provider}");
    }
}

#[tokio::test]
async fn a_refusal_without_json_is_told_in_the_servers_words() {
    for (provider, events, asked) in outcomes(|| vec![Reply::plain(403, "text/plain", "not from here")]).await
    {
        let found = failure(&events);
        assert_eq!((found.kind, asked), (FailureKind::Auth, 1), "{provider}");
        assert_eq!(found.message, "403 not from here", "{provider}");
    }
}

#[tokio::test]
async fn an_empty_answer_and_one_that_ends_too_early_are_asked_for_again() {
    let empty = || vec![Reply::plain(200, "text/event-stream", ""), Reply::text("now")];
    let too_early = || vec![Reply::steps([Step::Thinking("hm".into()), Step::Cut]), Reply::text("now")];
    let found = outcomes(empty).await;
    for (provider, events, asked) in found {
        assert_eq!((message(&events).text().as_str(), asked), ("now", 2), "{provider}");
    }
    // Emitted text is not taken back: the listener decides.
    for (provider, events, asked) in outcomes(too_early).await {
        assert_eq!((failure(&events).kind, asked), (FailureKind::Transient, 1), "{provider}");
    }
}

#[tokio::test]
async fn arguments_that_never_become_json_make_no_call_that_runs() {
    let broken = || {
        let call = ScriptedCall {
            id: "call_1".into(),
            name: "exec".into(),
            arguments: "{\"command\": \"rm -rf /tm".into(),
        };
        vec![Reply::tools([call])]
    };
    for (provider, events, _) in outcomes(broken).await {
        // Google sends objects, not text: there is nothing to break.
        if provider == "gemini" {
            continue;
        }
        let message = message(&events);
        let calls: Vec<_> = message.tool_calls().collect();
        assert_eq!((calls.len(), &calls[0].arguments), (1, &json!({})), "{provider}");
        let kept = openclaw_models::invalid_arguments(calls[0]);
        assert_eq!(kept, Some("{\"command\": \"rm -rf /tm"), "{provider}");
    }
}

/// Each protocol's decoder is tried with it in `answer/tests.rs`; this is the way over the wire.
#[tokio::test]
async fn a_delta_of_fifty_megabytes_is_refused_whole_or_streamed() {
    let huge = Reply::text(&"x".repeat(50 * 1024 * 1024));
    let server = ModelServer::queue([huge.clone().unstreamed()]).await;
    let found = failure(&call(&candidate(&server, "llama").await, vec![user("hi")]).await);
    assert_eq!(
        (found.kind, found.message.as_str()),
        (FailureKind::Other, "the model's answer is larger than 32 MiB")
    );
    // An event of that size is garbage, and garbage may be better next time.
    let server = ModelServer::queue([huge, Reply::text("small")]).await;
    let events = call(&candidate(&server, "claude").await, vec![user("hi")]).await;
    assert_eq!((message(&events).text().as_str(), server.requests().len()), ("small", 2));
}

/// A byte now and then is no answer.
#[tokio::test]
async fn a_server_that_dribbles_is_given_up_like_a_silent_one() {
    let idle = Duration::from_millis(200);
    for provider in PROVIDERS {
        let drop = |byte: &u8| [Step::Raw(vec![*byte]), Step::Delay(Duration::from_millis(20))];
        // The beginning of something in any protocol: AWS's messages say first how long they are.
        let mut head = b"data: ".to_vec();
        if provider == "bedrock" {
            head = [1024_u32, 16].map(u32::to_be_bytes).concat();
            head.extend(crc32fast::hash(&head).to_be_bytes());
        }
        let bytes = head.into_iter().chain(std::iter::repeat_n(b'x', 400)).collect::<Vec<_>>();
        let server = ModelServer::queue([Reply::steps(bytes.iter().flat_map(drop))]).await;
        let http = Http::with_timeouts(Timeouts { idle, ..Timeouts::default() });
        let candidate = bind(&settings(&server, false), http, provider).await.remove(0);
        let found = failure(&call(&candidate, vec![user("hi")]).await);
        assert_eq!(found.kind, FailureKind::Timeout, "{provider}: {found:?}");
        let expect = format!("timed out: {} sent nothing but pieces for 200ms", server.address());
        assert_eq!(found.message, expect, "{provider}");
        server.over(0).await;
    }
}

/// Lines that say nothing but that somebody is there are signs of life.
#[tokio::test]
async fn a_server_that_keeps_saying_it_is_busy_is_waited_for() {
    let idle = Duration::from_secs(2);
    let server = ModelServer::queue([Reply::steps(
        (0..30)
            .flat_map(|_| [Step::Raw(b": PROCESSING\n\n".to_vec()), Step::Delay(Duration::from_millis(100))])
            .chain([Step::Text("done".into())]),
    )])
    .await;
    let http = Http::with_timeouts(Timeouts { idle, ..Timeouts::default() });
    let candidate = bind(&settings(&server, false), http, "llama").await.remove(0);
    assert_eq!(message(&call(&candidate, vec![user("hi")]).await).text(), "done");
}

/// AWS refuses signatures that are more than five minutes old or early.
#[tokio::test]
async fn a_wrong_clock_is_set_right_for_what_is_signed() {
    let server = ModelServer::answering(|request| {
        let signed = request.header("x-amz-date").unwrap_or_default();
        if signed.starts_with("20151021T07") {
            return Reply::text("in time");
        }
        let body = json!({"message": "Signature expired: it is now 20151021T072800Z"});
        Reply::error(403, &body).header("date", "Wed, 21 Oct 2015 07:28:00 GMT")
    })
    .await;
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "s3cret-s3cret")];
    let candidate = bedrock(&server, &keys).await.unwrap();
    for asked in [2, 3] {
        assert_eq!(message(&call(&candidate, vec![user("hi")]).await).text(), "in time");
        assert_eq!(server.requests().len(), asked, "the difference is known from then on");
    }
}
