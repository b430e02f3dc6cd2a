//! Whole runs against a scripted model, tools and transcript in memory.

mod bad_input;
mod images;
mod laws;
mod room;
mod stage;

use std::num::NonZeroU32;

use openclaw_models::FailureKind;
use openclaw_protocol::message::{Block, Message, UserMessage};
use serde_json::json;

use crate::event::{RunEnd, RunEvent};
use crate::gateway_result::{SKIPPED, STOPPED_RUNNING, STOPPED_WAITING};
use crate::reply::{ReplyPayload, RunError, RunErrorKind, RunUsage};
use stage::{Reply, Stage, call, outline};

const INTERRUPTED: &str = "[openclaw] The gateway was interrupted during this call; it may or may not have completed. Check before doing it again.";

fn text(text: &str) -> ReplyPayload {
    ReplyPayload { text: text.into(), ..ReplyPayload::default() }
}

fn failed(text: &str) -> ReplyPayload {
    ReplyPayload { is_error: true, ..self::text(text) }
}

#[tokio::test]
async fn a_plain_answer_is_streamed_stored_and_returned() {
    let mut stage = Stage::new([Reply::say("Hello from the fake model.")]);
    let outcome = stage.run("hi").await;
    assert_eq!(stage.transcript(), ["U hi", "A Hello from the fake model."]);
    assert_eq!(stage.events(), ["start", "assistant Hello", "assistant + from the fake model.", "end"]);
    assert_eq!(outcome.payloads, [text("Hello from the fake model.")]);
    assert_eq!(outcome.end, RunEnd::Completed);
    assert_eq!(
        outcome.meta.agent_meta.usage,
        Some(RunUsage { input: 100, output: 7, total: 107, ..RunUsage::default() })
    );
    assert_eq!(outcome.last_usage.map(|usage| usage.total_tokens), Some(107));
}

/// The order of `golden/agent-steer-events.json`.
#[tokio::test]
async fn a_steered_message_skips_the_calls_that_are_left() {
    let mut stage = Stage::new([
        Reply::calls(
            "Working.",
            [
                call("c0", "steer", json!({"say": "STEERME now"})),
                call("c1", "echo", json!({"text": "B"})),
                call("c2", "echo", json!({"text": "C"})),
            ],
        ),
        Reply::say("Hello from fake."),
    ]);
    let outcome = stage.run("go").await;
    // Both calls are counted; the window is filled by the last alone.
    let usage = RunUsage { input: 200, output: 14, total: 214, ..RunUsage::default() };
    assert_eq!(outcome.meta.agent_meta.usage, Some(usage));
    assert_eq!(outcome.last_usage.map(|usage| usage.total_tokens), Some(107));
    let skip = format!("R! {SKIPPED}");
    assert_eq!(
        stage.transcript(),
        ["U go", "A Working. (c0)(c1)(c2)", "R steered", &skip, &skip, "U STEERME now", "A Hello from fake."]
    );
    assert_eq!(
        stage.events(),
        [
            "start",
            "assistant Worki",
            "assistant +ng.",
            "tool start steer c0",
            "tool update steer c0 {\"content\":[{\"type\":\"text\",\"text\":\"half\"}]}",
            "tool result steer c0 false steered",
            "tool start echo c1",
            &format!("tool result echo c1 true [B] {SKIPPED}"),
            "tool start echo c2",
            &format!("tool result echo c2 true [C] {SKIPPED}"),
            "assistant Hello",
            "assistant + from fake.",
            "end",
        ]
    );
}

#[tokio::test]
async fn queued_messages_are_taken_one_a_turn_each_under_its_entry() {
    let mut stage = Stage::new([Reply::say("a"), Reply::say("b")]);
    stage.steer("one");
    stage.steer("two");
    stage.run("go").await;
    assert_eq!(stage.transcript(), ["U go", "U one", "A a", "U two", "A b"]);
    let ids: Vec<_> = stage.entry_ids().into_iter().flatten().collect();
    assert_eq!(ids, ["entry-one", "entry-two"]);
}

#[tokio::test]
async fn calls_run_in_order_and_errors_are_told_to_the_model() {
    let mut stage = Stage::new([
        Reply::calls(
            "",
            [
                call("c1", "fly", json!({})),
                call("c2", "echo", json!({})),
                call("c3", "boom", json!({})),
                call("c4", "echo", json!({"text": 5})),
            ],
        ),
        Reply::say("done"),
    ]);
    let outcome = stage.run("go").await;
    assert_eq!(
        stage.transcript(),
        [
            "U go",
            "A  (c1)(c2)(c3)(c4)",
            "R! Tool fly not found",
            "R! Validation failed for tool \"echo\":\n  - text: must have required property 'text'\n\nReceived arguments:\n{}",
            "R {\n  \"status\": \"error\",\n  \"tool\": \"boom\",\n  \"error\": \"disk full\"\n}",
            "R 5",
            "A done",
        ]
    );
    assert!(stage.events().contains(&"tool result boom c3 true {\n  \"status\": \"error\",\n  \"tool\": \"boom\",\n  \"error\": \"disk full\"\n}".to_owned()));
    assert_eq!(outcome.payloads, [text("done")]);
}

#[tokio::test]
async fn a_silent_answer_is_stored_but_neither_shown_nor_returned() {
    let mut stage = Stage::new([Reply::say("NO_REPLY")]);
    let outcome = stage.run("go").await;
    assert_eq!(
        (stage.transcript(), stage.events(), outcome.payloads),
        (vec!["U go".to_owned(), "A NO_REPLY".into()], vec!["start".to_owned(), "end".into()], vec![])
    );
}

#[tokio::test(start_paused = true)]
async fn a_hiccup_is_retried_and_the_failed_answer_stays_in_the_transcript_only() {
    let mut stage = Stage::new([Reply::fail(FailureKind::Transient, "Overloaded"), Reply::say("ok")]);
    let begun = tokio::time::Instant::now();
    let outcome = stage.run("go").await;
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert_eq!(stage.transcript(), ["U go", "A !Overloaded", "A ok"]);
    assert_eq!(stage.requests(), [vec!["U go".to_owned()], vec!["U go".to_owned()]]);
    assert_eq!(
        (outcome.end, outcome.payloads, outcome.failures.len()),
        (RunEnd::Completed, vec![text("ok")], 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_ends_once_with_the_text_for_people() {
    let mut stage = Stage::new([0; 4].map(|_| {
        Reply::fail(
            FailureKind::Transient,
            "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
        )
    }));
    let begun = tokio::time::Instant::now();
    let outcome = stage.run("go").await;
    let words = "The AI service is temporarily overloaded. Please try again in a moment.";
    assert_eq!(begun.elapsed().as_secs(), 14);
    let busy = words.trim_end_matches('.');
    let retry = |end: &str| format!("retry fake/m0 does not answer ({busy}); trying again in {end}");
    let retries = [retry("2 s (2 of 4)"), retry("4 s (3 of 4)"), retry("8 s (4 of 4)")];
    let expect: Vec<String> =
        ["start".to_owned()].into_iter().chain(retries).chain([format!("error {words}")]).collect();
    assert_eq!(stage.events(), expect);
    assert_eq!(outcome.payloads, [failed(words)]);
    assert_eq!(outcome.meta.error, Some(RunError { kind: RunErrorKind::Unavailable, message: words.into() }));
}

#[tokio::test]
async fn an_overflow_is_said_clearly() {
    let mut stage = Stage::new([Reply::fail(
        FailureKind::ContextOverflow,
        "prompt is too long: 208423 tokens > 200000 maximum",
    )]);
    let outcome = stage.run("go").await;
    let words = "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.\n\
                 fake (model m0) takes no request of this size. About 1 tokens were sent, of 200,000 that its window holds, and \
                 could not be made fewer. Send less at once; /new begins a conversation without this history; /model \
                 <provider>/<model> asks another model.";
    assert_eq!(outcome.end, RunEnd::Failed(words.into()));
    assert_eq!(outcome.meta.error.map(|error| error.kind), Some(RunErrorKind::ContextOverflow));
    assert_eq!(stage.events()[..1], ["start"], "there is nothing to compact");
}

#[tokio::test]
async fn another_model_takes_over_within_the_same_run() {
    let mut stage = Stage::new([
        Reply::calls("", [call("c1", "echo", json!({"text": "x"}))]),
        Reply::fail(FailureKind::Auth, "401 invalid key"),
    ]);
    stage.fallback([Reply::say("from the other")]);
    let outcome = stage.run("go").await;
    assert_eq!(stage.transcript(), ["U go", "A  (c1)", "R x", "A !401 invalid key", "A from the other"]);
    assert_eq!(
        (outcome.candidate, outcome.meta.agent_meta.model.as_str(), outcome.end),
        (1, "m1", RunEnd::Completed)
    );
    assert_eq!(stage.events().iter().filter(|event| *event == "start" || *event == "end").count(), 2);
}

#[tokio::test]
async fn an_abort_keeps_the_text_so_far() {
    let mut stage = Stage::new([Reply::hang("So far so go")]);
    let outcome = stage.run_and_abort_on("assistant").await;
    assert_eq!(stage.transcript(), ["U go", "A ~So far so go"]);
    assert_eq!((outcome.end, outcome.meta.aborted), (RunEnd::Aborted, true));
    assert_eq!(stage.events().last().map(String::as_str), Some("aborted"));
}

#[tokio::test]
async fn an_abort_before_any_text_leaves_the_users_message() {
    let mut stage = Stage::new([Reply::hang("")]);
    stage.run_and_abort_on("start").await;
    assert_eq!(stage.transcript(), ["U go"]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_during_a_tool_closes_every_call() {
    for tool in ["slow", "stuck"] {
        let mut stage = Stage::new([Reply::calls(
            "",
            [call("c1", tool, json!({})), call("c2", "echo", json!({"text": "x"}))],
        )]);
        let outcome = stage.run_and_abort_on("tool start").await;
        assert_eq!(
            stage.transcript(),
            ["U go", "A  (c1)(c2)", &format!("R! {STOPPED_RUNNING}"), &format!("R! {STOPPED_WAITING}")],
            "{tool}"
        );
        assert_eq!(outcome.end, RunEnd::Aborted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_out_of_time_is_stopped_and_says_so() {
    let mut stage = Stage::new([Reply::hang("partial")]);
    let begun = tokio::time::Instant::now();
    let outcome = stage.run("go").await;
    assert_eq!(Some(begun.elapsed()), stage.limits.timeout);
    assert_eq!(stage.transcript(), ["U go", "A ~partial"]);
    let last = stage.messages().pop();
    let Some(Message::Assistant(cut)) = last.as_deref() else { panic!("the answer is stored") };
    assert_eq!(cut.error_message, Some(stage.limits.time_is_up()));
    assert_eq!((outcome.end.clone(), outcome.meta.aborted), (RunEnd::TimedOut, true));
    assert_eq!(
        outcome
            .payloads
            .iter()
            .map(|p| (
                p.is_error,
                p.text.starts_with("⚠️ The run timed out: it was stopped at its time limit of 600 s")
                    || p.text == "partial"
            ))
            .collect::<Vec<_>>(),
        [(true, true), (false, true)]
    );
}

#[tokio::test(start_paused = true)]
async fn only_a_model_that_said_nothing_at_all_ran_out_of_time() {
    for (said, expect) in [("", true), ("partial", false)] {
        let mut stage = Stage::new([Reply::hang(said)]);
        assert_eq!(stage.run("go").await.ran_out_of_time, expect, "{said:?}");
    }
    let mut stopped = Stage::new([Reply::hang("")]);
    assert!(!stopped.run_and_abort_on("start").await.ran_out_of_time);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_ignores_cancellation_is_dropped() {
    let mut stage = Stage::new([Reply::deaf("some")]);
    let outcome = stage.run_and_abort_on("assistant").await;
    assert_eq!(
        (stage.transcript(), outcome.end),
        (vec!["U go".to_owned(), "A ~some".into()], RunEnd::Aborted)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_is_a_failure_that_is_retried() {
    let mut stage = Stage::new([Reply::cut("half an ans"), Reply::say("whole")]);
    let outcome = stage.run("go").await;
    assert_eq!(
        stage.transcript(),
        ["U go", "A !the model's answer ended without a last word half an ans", "A whole"]
    );
    assert_eq!(outcome.payloads, [text("whole")]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_asked_for_again_wherever_it_broke_off_and_not_at_all_when_none_began() {
    let cases = [
        ("in its text", Reply::cut("half"), 4),
        ("in a tool call", Reply::cut_in_call(), 4),
        ("before it began", Reply::fail(FailureKind::Transient, "terminated"), 1),
    ];
    for (name, reply, requests) in cases {
        let mut stage = Stage::new(std::iter::repeat_n(reply, 4));
        stage.models_repeat = true;
        let begun = tokio::time::Instant::now();
        let outcome = stage.run("go").await;
        assert!(matches!(outcome.end, RunEnd::Failed(_)), "{name}");
        let waited = if requests > 1 { 14 } else { 0 };
        assert_eq!((stage.requests().len(), begun.elapsed().as_secs()), (requests, waited), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_completed_answers_count() {
    // Everything the stage's models say claims a usage, also what is cut off.
    let mut stage = Stage::new([Reply::hang("partial")]);
    let outcome = stage.run_and_abort_on("assistant").await;
    assert_eq!((outcome.meta.agent_meta.usage, outcome.last_usage), (None, None));
}

#[tokio::test]
async fn a_model_that_goes_in_circles_is_warned_then_stopped() {
    let circle = || Reply::calls("", [call("c", "echo", json!({"text": "x"}))]);
    let mut stage = Stage::new(std::iter::repeat_with(circle).take(40));
    let outcome = stage.run("go").await;
    let results: Vec<String> = stage.transcript().into_iter().filter(|line| line.starts_with('R')).collect();
    assert_eq!(results.len(), 30);
    assert_eq!((results[8].as_str(), results[9].contains("made 10 times in a row")), ("R x", true));
    assert_eq!(outcome.meta.stop_reason, Some("tool_loop"));
    let stopped = RunEnd::Failed("Stopped: the model made the same echo call 30 times in a row.".into());
    assert_eq!(outcome.end, stopped);

    // The gateway ends in between, once all calls so far have their results.
    let asked = Message::Assistant(stage::assistant("", &[call("c", "echo", json!({"text": "x"}))]));
    let made = |n: usize| {
        let Message::ToolResult(mut result) = stage::result("c", "x") else { unreachable!() };
        result
            .content
            .extend((n >= 10).then(|| Block::text(format!("[openclaw] This exact call was made {n} times"))));
        [asked.clone(), Message::ToolResult(result)]
    };
    let mut stage = Stage::new(std::iter::repeat_with(circle).take(40));
    let own = (1..=20).flat_map(made);
    stage.set_transcript(std::iter::once(Message::User(UserMessage::text("go", 1))).chain(own).collect());
    assert_eq!(stage.resume().await.end, stopped);
    assert_eq!(stage.requests().len(), 10);
}

#[tokio::test]
async fn a_limit_of_tool_rounds_ends_the_run() {
    let round = |n: u32| Reply::calls("", [call("c", "echo", json!({"text": n.to_string()}))]);
    let mut stage = Stage::new((0..9).map(round));
    stage.limits.max_tool_rounds = NonZeroU32::new(2);
    let outcome = stage.run("go").await;
    assert_eq!(
        stage.transcript(),
        ["U go", "A  (c)", "R 0", "A  (c)", "R 1", "A  (c)", &format!("R! {STOPPED_WAITING}")]
    );
    assert_eq!(outcome.meta.stop_reason, Some("max_tool_rounds"));
}

#[tokio::test]
async fn a_transcript_that_cannot_be_written_ends_the_run() {
    let mut stage = Stage::new([Reply::say("never stored")]);
    stage.break_transcript_after(1);
    let outcome = stage.run("go").await;
    assert_eq!(outcome.meta.error.map(|error| error.kind), Some(RunErrorKind::Storage));
    assert!(matches!(stage.raw_events().last(), Some(RunEvent::Ended { end: RunEnd::Failed(_), .. })));
}

#[tokio::test]
async fn nobody_listening_does_not_stop_a_run() {
    let mut stage = Stage::new([Reply::say("ok")]);
    stage.deaf_listener();
    assert_eq!(stage.run("go").await.payloads, [text("ok")]);
}

#[tokio::test]
async fn resuming_returns_an_answer_that_is_already_there() {
    let mut stage = Stage::new([Reply::say("first")]);
    stage.run("go").await;
    let outcome = stage.resume().await;
    assert_eq!(stage.requests().len(), 1);
    assert_eq!(outcome.payloads, [text("first")]);
    assert_eq!(stage.events(), ["start", "assistant first", "end"]);
}

#[tokio::test]
async fn resuming_closes_open_calls_and_goes_on() {
    let mut stage = Stage::new([Reply::say("sorted out")]);
    let asked = stage::assistant(
        "Working.",
        &[call("c1", "echo", json!({"text": "a"})), call("c2", "echo", json!({"text": "b"}))],
    );
    stage.set_transcript(vec![
        Message::User(UserMessage::text("go", 1)),
        Message::Assistant(asked),
        stage::result("c1", "a"),
    ]);
    let outcome = stage.resume().await;
    let interrupted = "R! [openclaw] The gateway was interrupted during this call; it may or may not have completed. Check before doing it again.";
    assert_eq!(stage.transcript(), ["U go", "A Working. (c1)(c2)", "R a", interrupted, "A sorted out"]);
    assert_eq!(outcome.payloads, [text("Working."), text("sorted out")]);
}

/// Text said before a message was steered in also belongs to the run, wherever it was interrupted.
#[tokio::test]
async fn resuming_remembers_what_was_said_before_a_steered_message() {
    let all = [
        Message::User(UserMessage::text("before", 1)),
        Message::Assistant(stage::assistant("long ago", &[])),
        Message::User(UserMessage::text("go", 2)),
        Message::Assistant(stage::assistant("Working.", &[call("c1", "echo", json!({"text": "a"}))])),
        stage::result("c1", "a"),
        Message::User(UserMessage::text("and more", 3)),
        Message::Assistant(stage::assistant("Both.", &[])),
    ];
    for is_answered in [false, true] {
        let mut stage = Stage::new((!is_answered).then(|| Reply::say("Both.")));
        stage.set_transcript(all.iter().take(all.len() - usize::from(!is_answered)).cloned().collect());
        stage.begins_behind(3);
        let outcome = stage.resume().await;
        let both = ReplyPayload { said_to: 1, ..text("Both.") };
        assert_eq!(outcome.payloads, [text("Working."), both], "answered: {is_answered}");
    }
}

#[tokio::test]
async fn resuming_makes_open_calls_of_repeatable_tools_again() {
    let mut stage = Stage::new([Reply::say("sorted out")]);
    let calls = [
        call("c1", "once", json!({})),
        call("c2", "echo", json!({"text": "b"})),
        call("c3", "once", json!({})),
    ];
    let asked = stage::assistant("Working.", &calls);
    stage.set_transcript(vec![Message::User(UserMessage::text("go", 1)), Message::Assistant(asked)]);
    let outcome = stage.resume().await;
    let interrupted = "R! [openclaw] The gateway was interrupted during this call; it may or may not have completed. Check before doing it again.";
    assert_eq!(
        stage.transcript(),
        [
            "U go",
            "A Working. (c1)(c2)(c3)",
            interrupted,
            "R c1 made again",
            "R c3 made again",
            "A sorted out"
        ]
    );
    assert_eq!(outcome.payloads, [text("Working."), text("sorted out")]);
}

/// A step counts once, however many of its calls were under way; one that went well begins the count of a row anew, not that of all. Of
/// stops in order more are borne.
#[tokio::test]
async fn a_run_whose_calls_end_the_gateway_again_and_again_is_given_up() {
    let open = |id: &str| Message::Assistant(stage::assistant("", &[call(id, "boom", json!({}))]));
    let closed = |id: &str| stage::result(id, INTERRUPTED);
    let well = |id: &str| [open(id), stage::result(id, "done")];
    let died = |ids: &[&str]| ids.iter().flat_map(|id| [open(id), closed(id)]).collect::<Vec<_>>();
    let looks_and_dies = |ids: &[&str]| {
        let each = ids.iter().map(|id| [well(&format!("w{id}")).to_vec(), died(&[id])].concat());
        each.collect::<Vec<_>>().concat()
    };
    let rows = [
        (3, [died(&["a", "b"]), vec![open("c")]].concat(), Some("ended unexpectedly 3 times in a row")),
        // The process died once more before that was reported.
        (3, died(&["a", "b", "c"]), Some("ended unexpectedly 3 times in a row")),
        // Stops in order lie between the deaths.
        (
            3,
            [died(&["a", "b", "d", "e"]), vec![open("c")]].concat(),
            Some("ended 5 times in a row (3 times unexpectedly, 2 times stopped in order)"),
        ),
        (
            3,
            [died(&["a", "b", "d"]), vec![open("c")]].concat(),
            Some("ended 4 times in a row (3 times unexpectedly, once stopped in order)"),
        ),
        // Stops in order, by the call or by the owner.
        (0, [died(&["a", "b", "d"]), vec![open("c")]].concat(), None),
        (0, [died(&["a", "b", "d", "e"]), vec![open("c")]].concat(), Some("was stopped 5 times in a row")),
        (0, [looks_and_dies(&["1", "2", "3", "4", "5", "6", "7", "8"]), vec![open("c")]].concat(), None),
        (
            0,
            [looks_and_dies(&["1", "2", "3", "4", "5", "6", "7", "8", "9"]), vec![open("c")]].concat(),
            Some("was stopped 10 times"),
        ),
        (9, [died(&["a"]), vec![open("c")]].concat(), None),
        (2, [died(&["a", "b"]), vec![open("c")]].concat(), None),
        (9, [died(&["a", "b"]), well("w").to_vec(), vec![open("c")]].concat(), None),
        (9, well("a").to_vec(), None),
        // The model looks at something harmless before each call that ends the gateway.
        (9, [looks_and_dies(&["a", "b", "d"]), vec![open("c")]].concat(), None),
        (4, [looks_and_dies(&["a", "b", "d", "e"]), vec![open("c")]].concat(), None),
        (
            5,
            [looks_and_dies(&["a", "b", "d", "e"]), vec![open("c")]].concat(),
            Some("ended unexpectedly 5 times"),
        ),
    ];
    for (deaths, own, given_up) in rows {
        let mut stage = Stage::new(given_up.is_none().then(|| Reply::say("sorted out")));
        stage.deaths = deaths;
        stage.set_transcript([vec![Message::User(UserMessage::text("go", 1))], own].concat());
        let outcome = stage.resume().await;
        let error = outcome.meta.error.map(|error| error.message).unwrap_or_default();
        let says_why =
            |times| error.contains(&format!("the gateway {times} while")) && error.contains("boom");
        assert_eq!(given_up.is_some_and(says_why), !error.is_empty(), "{deaths}: {error:?}");
        assert_eq!(given_up.is_some(), !error.is_empty(), "{deaths}: {error:?}");
        let transcript = stage.transcript();
        assert!(!transcript.last().unwrap().contains("(c)"), "no call stays open: {transcript:?}");
    }
}

/// Checks also that a call which only reads needs no sync: nothing is lost if it is made again.
#[tokio::test]
async fn what_the_model_said_is_made_durable_before_a_call_that_acts() {
    let calls = [
        call("c1", "echo", json!({"text": "a"})),
        call("c2", "once", json!({})),
        call("c3", "once", json!({})),
    ];
    let mut stage = Stage::new([Reply::calls("", calls), Reply::say("done")]);
    stage.run("go").await;
    // Behind the message, the answer with the calls, and the result of the first.
    assert_eq!(stage.secured_at(), [3, 4]);
}

#[tokio::test]
async fn resuming_asks_again_after_a_failed_or_cut_off_answer() {
    let mut stage = Stage::new([Reply::say("again")]);
    let cut = openclaw_protocol::message::AssistantMessage {
        stop_reason: openclaw_protocol::message::StopReason::Aborted,
        ..stage::assistant("hal", &[])
    };
    stage.set_transcript(vec![Message::User(UserMessage::text("go", 1)), Message::Assistant(cut)]);
    let outcome = stage.resume().await;
    assert_eq!(
        (outline(&stage.messages()), outcome.payloads),
        (vec!["U go".to_owned(), "A ~hal".into(), "A again".into()], vec![text("again")])
    );
}

#[tokio::test]
async fn resuming_nothing_is_an_error() {
    let mut stage = Stage::new([]);
    let outcome = stage.resume().await;
    assert!(matches!(outcome.end, RunEnd::Failed(_)));
}

#[tokio::test]
async fn the_result_has_the_shape_clients_know() {
    let mut stage = Stage::new([Reply::say("Hello")]);
    let outcome = stage.run("hi").await;
    let mut result = outcome.to_result();
    result["meta"]["durationMs"] = json!(1);
    assert_eq!(
        result,
        json!({
            "payloads": [{"text": "Hello", "mediaUrl": null}],
            "meta": {
                "durationMs": 1,
                "agentMeta": {"sessionId": "s1", "provider": "fake", "model": "m0", "usage": {"input": 100, "output": 7, "total": 107}},
                "aborted": false,
            },
        })
    );
}
