//! Runs that have no room in the model's window.

use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_config::settings::CompactionMode;
use openclaw_models::{FailureKind, ModelRequest};
use openclaw_protocol::message::{
    AssistantMessage, Block, ImageBlock, Message, ToolResultMessage, Usage, UserMessage,
};
use proptest::prelude::*;
use serde_json::json;

use super::laws::{assert_one_start_and_end, assert_well_formed};
use super::stage::{Reply, Stage, Trip, call};
use crate::compaction::CompactionSettings;
use crate::event::RunEnd;
use crate::reply::RunErrorKind;

const OVERFLOW: &str = "prompt is too long: 208423 tokens > 200000 maximum";

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 1))
}

fn answer(text: &str, total_tokens: u64) -> Message {
    let usage = Usage { total_tokens, ..Usage::default() };
    let content = vec![Block::text(text)];
    Message::Assistant(AssistantMessage { content, usage, timestamp: 1, ..AssistantMessage::default() })
}

fn long() -> String {
    "x".repeat(90_000)
}

/// Returns true if the request asks for a summary rather than for an answer.
fn is_summary(request: &ModelRequest) -> bool {
    request.tools.is_empty() && question(request).starts_with("<conversation>")
}

fn question(request: &ModelRequest) -> String {
    match request.messages.last().map(AsRef::as_ref) {
        Some(Message::User(user)) => user.content.to_text(),
        _ => String::new(),
    }
}

/// A model whose window holds so many tokens, and that says so.
fn bounded(window: u64) -> impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static {
    move |request| match crate::tokens::all_tokens(&request.messages) {
        _ if is_summary(request) => Reply::say("Much was said."),
        tokens if tokens > window => Reply::fail(FailureKind::ContextOverflow, OVERFLOW),
        _ => Reply::say("Done."),
    }
}

fn shown(messages: &[String]) -> Vec<String> {
    messages.iter().map(|line| line.chars().take(60).collect()).collect()
}

#[tokio::test]
async fn an_overflow_is_compacted_and_asked_again_within_one_run() {
    let mut stage = Stage::answering(bounded(30_000), Trip::default());
    stage.set_transcript(vec![user(&long()), answer("one", 0), user(&long()), answer("two", 0)]);
    let outcome = stage.run("and now?").await;
    assert_eq!(outcome.end, RunEnd::Completed);
    assert_eq!(stage.events(), ["start", "compaction", "compaction end true", "assistant Done.", "end"]);
    let transcript = shown(&stage.transcript());
    assert!(transcript[0].starts_with("U The conversation history before this point"), "{transcript:?}");
    assert_eq!(&transcript[transcript.len() - 3..], ["U and now?", &format!("A !{OVERFLOW}"), "A Done."]);
    assert_eq!((outcome.meta.agent_meta.compaction_count, outcome.tokens_after), (Some(1), None));
    assert_eq!(outcome.payloads[0].text, "Done.");
}

#[tokio::test]
async fn what_will_not_fit_is_compacted_before_the_model_is_asked() {
    let mut stage = Stage::answering(bounded(u64::MAX), Trip::default());
    stage.set_transcript(vec![user(&long()), answer("one", 150_000), user("more"), answer("two", 179_990)]);
    let outcome = stage.run("fits").await;
    assert!(!outcome.is_full && stage.events().len() == 3, "{:?}", stage.events());
    stage.set_transcript(vec![user(&long()), answer("one", 150_000), user(&long()), answer("two", 180_001)]);
    let outcome = stage.run("and now?").await;
    assert_eq!(stage.events(), ["start", "compaction", "compaction end false", "assistant Done.", "end"]);
    assert_eq!((outcome.end, outcome.meta.agent_meta.compaction_count), (RunEnd::Completed, Some(1)));
}

#[tokio::test]
async fn a_conversation_that_is_full_at_the_end_says_so() {
    let mut stage = Stage::new([Reply::say("Hello.")]);
    stage.compaction = CompactionSettings { reserve: 199_950, ..CompactionSettings::default() };
    let outcome = stage.run("hi").await;
    assert!(!outcome.is_full, "a quarter of the window is always for the conversation");
    let mut stage = Stage::new([Reply::say("Hello.")]);
    stage.window(400);
    let outcome = stage.run("hi").await;
    assert!(outcome.is_full, "107 of 100 tokens");
}

#[tokio::test]
async fn a_huge_result_is_shown_in_part() {
    let mut stage = Stage::answering(bounded(70_000), Trip::default());
    let huge = ToolResultMessage {
        tool_call_id: "c".into(),
        content: vec![Block::text("y".repeat(390_000))],
        ..ToolResultMessage::default()
    };
    let calling = AssistantMessage {
        content: vec![Block::ToolCall(call("c", "echo", json!({})))],
        ..AssistantMessage::default()
    };
    stage.set_transcript(vec![user("look"), Message::Assistant(calling), Message::ToolResult(huge)]);
    let outcome = stage.resume().await;
    assert_eq!(outcome.end, RunEnd::Completed, "{:?}", stage.events());
    assert_well_formed(&stage.messages(), 0);
    let last = stage.requests().last().map(|messages| messages.concat().len());
    assert!(last.is_some_and(|chars| chars < 250_000), "{last:?}");
}

#[tokio::test]
async fn a_prompt_that_alone_does_not_fit_is_told_with_its_sizes() {
    let mut stage = Stage::answering(bounded(10), Trip::default());
    stage.fixed_tokens = 250_000;
    let outcome = stage.run(&"x".repeat(4_000)).await;
    let RunEnd::Failed(text) = &outcome.end else { panic!("{:?}", outcome.end) };
    let first = "Context overflow: prompt too large for the model. Try again with less input or a larger-context model.";
    assert_eq!(text.lines().next(), Some(first));
    assert!(text.contains("alone take about 250,000 tokens, and the model's window holds 200,000"), "{text}");
    assert_eq!(outcome.meta.error.map(|error| error.kind), Some(RunErrorKind::ContextOverflow));
    assert_eq!(outcome.payloads.len(), 1);
    assert!(outcome.payloads[0].is_error);
    assert_one_start_and_end(stage.raw_events(), 0);
    let messages = stage.messages();
    let Message::Assistant(last) = &**messages.last().unwrap() else { panic!() };
    assert_eq!(last.error_text.as_ref(), Some(text), "who reads the history is told the same");
}

#[tokio::test]
async fn a_server_that_refuses_everything_is_given_up_on() {
    for mode in [CompactionMode::Default, CompactionMode::Safeguard] {
        let refusing = |_: &ModelRequest| Reply::fail(FailureKind::ContextOverflow, OVERFLOW);
        let mut stage = Stage::answering(refusing, Trip::default());
        stage.compaction.mode = mode;
        stage.set_transcript(vec![user(&long()), answer("one", 0), user(&long()), answer("two", 0)]);
        let outcome = stage.run("go").await;
        assert!(matches!(outcome.end, RunEnd::Failed(_)), "{mode:?}");
        let kind = outcome.meta.error.map(|error| error.kind);
        let expect = match mode {
            CompactionMode::Default => RunErrorKind::CompactionFailure,
            CompactionMode::Safeguard => RunErrorKind::ContextOverflow,
        };
        assert_eq!(kind, Some(expect));
        assert_one_start_and_end(stage.raw_events(), 0);
        assert!(stage.requests().len() < 40, "{}", stage.requests().len());
    }
}

#[tokio::test]
async fn a_summary_that_fails_costs_nothing_while_there_is_room() {
    let failing = |request: &ModelRequest| match is_summary(request) {
        true => Reply::fail(FailureKind::Other, "no summary today"),
        false => Reply::say("Done."),
    };
    for mode in [CompactionMode::Default, CompactionMode::Safeguard] {
        let mut stage = Stage::answering(failing, Trip::default());
        stage.compaction.mode = mode;
        let before = vec![user(&long()), answer("one", 150_000), user(&long()), answer("two", 190_000)];
        stage.set_transcript(before);
        let outcome = stage.run("and now?").await;
        assert_eq!(
            (outcome.end, outcome.meta.agent_meta.compaction_count),
            (RunEnd::Completed, None),
            "{mode:?}"
        );
        assert_eq!(stage.events(), ["start", "compaction", "compaction end false", "assistant Done.", "end"]);
        assert!(stage.transcript()[0].starts_with("U xxx"), "nothing was left out");
    }
}

#[tokio::test]
async fn a_stop_during_a_compaction_ends_the_run() {
    let hanging = |request: &ModelRequest| match is_summary(request) {
        true => Reply::hang("Much"),
        false => Reply::fail(FailureKind::ContextOverflow, OVERFLOW),
    };
    let mut stage = Stage::answering(hanging, Trip::default());
    stage.set_transcript(vec![user(&long()), answer("one", 0), user(&long()), answer("two", 0)]);
    let outcome = stage.run_and_abort_on("compaction").await;
    assert_eq!(outcome.end, RunEnd::Aborted);
    assert_eq!(stage.events(), ["start", "compaction", "compaction end false", "aborted"]);
    assert!(stage.transcript()[0].starts_with("U xxx"), "the conversation is what it was");
}

/// Message of a generated conversation.
#[derive(Debug, Clone)]
enum Said {
    User(usize),
    Answer(usize),
    Call(usize),
    Image,
}

fn said() -> impl Strategy<Value = Said> {
    let chars = prop_oneof![8 => 0_usize..800, 2 => 800_usize..8_000, 1 => 8_000_usize..40_000];
    (0_u8..8, chars).prop_map(|(kind, chars)| match kind {
        0..3 => Said::User(chars),
        3 | 4 => Said::Answer(chars),
        5 | 6 => Said::Call(chars),
        _ => Said::Image,
    })
}

fn conversation(said: &[Said]) -> Vec<Message> {
    let mut out = vec![];
    for (at, said) in said.iter().enumerate() {
        match said {
            Said::User(chars) => out.push(user(&"u".repeat(*chars))),
            Said::Answer(chars) => out.push(answer(&"a".repeat(*chars), 0)),
            Said::Call(_) | Said::Image => {
                let id = format!("c{at}");
                let content = vec![Block::ToolCall(call(&id, "echo", json!({"text": "?"})))];
                out.push(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }));
                let content = match said {
                    Said::Call(chars) => vec![Block::text("r".repeat(*chars))],
                    _ => vec![Block::Image(ImageBlock::default())],
                };
                let result = ToolResultMessage { tool_call_id: id, content, ..ToolResultMessage::default() };
                out.push(Message::ToolResult(result));
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn it_cannot_fail_in_parts(case in case()) {
        check(CompactionMode::Safeguard, &case)?;
    }

    #[test]
    fn it_cannot_fail_at_once(case in case()) {
        check(CompactionMode::Default, &case)?;
    }
}

/// A generated conversation and all that may go wrong with it.
#[derive(Debug, Clone)]
struct Case {
    history: Vec<Said>,
    /// Behaviour of the summarising model, call by call.
    failures: Vec<u8>,
    fixed: u64,
    prompt: usize,
    rounds: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let fixed = prop_oneof![4 => 0_u64..600, 1 => 3_000_u64..8_000];
    let prompt = prop_oneof![4 => 0_usize..400, 1 => 400_usize..24_000];
    let history = prop::collection::vec(said(), 0..12);
    (history, prop::collection::vec(0_u8..4, 12), fixed, prompt, 1_usize..3).prop_map(
        |(history, failures, fixed, prompt, rounds)| Case { history, failures, fixed, prompt, rounds },
    )
}

/// Tokens the window of the model holds, which is strict, unlike the one that summarises.
const WINDOW: u64 = 4_000;

fn unreliable(case: &Case) -> impl Fn(&ModelRequest) -> Reply + Send + Sync + 'static {
    let (failures, fixed) = (case.failures.clone(), case.fixed);
    let calls = AtomicUsize::new(0);
    move |request| {
        let n = calls.fetch_add(1, Ordering::Relaxed);
        let tokens = crate::tokens::all_tokens(&request.messages);
        match failures[n % failures.len()] {
            _ if !is_summary(request) && tokens + fixed > WINDOW => {
                Reply::fail(FailureKind::ContextOverflow, OVERFLOW)
            }
            _ if !is_summary(request) => Reply::say("Done."),
            0 => Reply::fail(FailureKind::Other, "broken"),
            1 => Reply::say(""),
            2 => Reply::say(&"s".repeat(1_200)),
            _ if tokens > WINDOW => Reply::fail(FailureKind::ContextOverflow, OVERFLOW),
            _ => Reply::say("A summary."),
        }
    }
}

/// However the conversation looks and whatever the summarising model does: at the end the model was sent what fits, or the person was
/// told how large things are; pairs are whole; the number of calls is bounded.
fn check(mode: CompactionMode, case: &Case) -> Result<(), TestCaseError> {
    let mut stage = Stage::answering(unreliable(case), Trip::default());
    stage.window(WINDOW);
    stage.fixed_tokens = case.fixed;
    stage.compaction.mode = mode;
    stage.set_transcript(conversation(&case.history));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for _ in 0..case.rounds {
        let outcome = runtime.block_on(stage.run(&"p".repeat(case.prompt)));
        assert_one_start_and_end(stage.raw_events(), 0);
        match &outcome.end {
            RunEnd::Completed => prop_assert_eq!(&outcome.payloads.last().unwrap().text, "Done."),
            RunEnd::Failed(text) => {
                prop_assert!(text.starts_with("Context overflow: prompt too large"), "{}", text);
                prop_assert!(text.contains("window holds 4,000"), "{}", text);
                // Only what cannot be made smaller, or what nobody summarises, may end so.
                let kind = outcome.meta.error.as_ref().map(|error| error.kind);
                let fits = case.fixed + (case.prompt as u64).div_ceil(4) + 2_000 < WINDOW;
                prop_assert!(!fits || kind == Some(RunErrorKind::CompactionFailure), "{}", text);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
    assert_well_formed(&stage.messages(), 0);
    let bound = 120 * (1 + case.history.len());
    prop_assert!(stage.requests().len() < bound, "{} calls", stage.requests().len());
    Ok(())
}
