//! Models that ask for what makes no sense, and tools that say too much: the run goes on or ends, and the history stays whole.

use serde_json::{Value, json};

use super::laws::{assert_one_start_and_end, assert_well_formed};
use super::stage::{Reply, Stage, assistant, call, result};
use super::*;

fn results(stage: &Stage) -> Vec<String> {
    stage.transcript().into_iter().filter(|line| line.starts_with('R')).collect()
}

#[tokio::test]
async fn arguments_that_are_no_object_are_told_to_the_model() {
    let odd: [Value; 6] =
        [json!(null), json!("text"), json!(5), json!(true), json!([]), json!([{"text": "x"}])];
    for arguments in odd {
        let calls = [call("c1", "echo", arguments.clone()), call("c2", "fly", arguments.clone())];
        let mut stage = Stage::new([Reply::calls("", calls), Reply::say("done")]);
        let outcome = stage.run("go").await;
        let results = results(&stage);
        assert!(
            results[0].starts_with("R! Validation failed for tool \"echo\":\n  - "),
            "{arguments}: {results:?}"
        );
        let received = serde_json::to_string_pretty(&arguments).unwrap();
        assert!(
            results[0].ends_with(&format!("\n\nReceived arguments:\n{received}")),
            "{arguments}: {results:?}"
        );
        assert_eq!(results[1], "R! Tool fly not found", "{arguments}");
        assert_eq!((outcome.end, outcome.payloads), (RunEnd::Completed, vec![text("done")]), "{arguments}");
    }
}

#[tokio::test]
async fn five_hundred_calls_in_one_answer_are_made_or_closed() {
    let many = |different: bool| {
        let number = move |n: usize| if different { n } else { 0 };
        let calls =
            (0..500).map(move |n| call(&format!("c{n}"), "echo", json!({"text": number(n).to_string()})));
        Reply::calls("", calls)
    };
    for (different, made, end) in [
        (true, 500, RunEnd::Completed),
        (
            false,
            30,
            RunEnd::Failed("Stopped: the model made the same echo call 30 times in a row.".to_owned()),
        ),
    ] {
        let mut stage = Stage::new([many(different), Reply::say("done")]);
        assert_eq!(stage.run("go").await.end, end);
        let results = results(&stage);
        assert_eq!(results.len(), 500);
        let closed = format!("R! {STOPPED_WAITING}");
        assert_eq!(results.iter().filter(|line| **line != closed).count(), made);
        assert_well_formed(&stage.messages(), 0);
        assert_one_start_and_end(stage.raw_events(), 0);
    }
}

#[tokio::test]
async fn five_hundred_rounds_of_a_tool_end_well() {
    let round = |n: usize| Reply::calls("", [call(&format!("c{n}"), "echo", json!({"text": n.to_string()}))]);
    let mut stage = Stage::new((0..500).map(round).chain([Reply::say("done")]));
    assert_eq!(stage.run("go").await.end, RunEnd::Completed);
    assert_eq!(results(&stage).len(), 500);
}

#[tokio::test]
async fn a_result_of_a_hundred_megabytes_is_kept_and_told_in_part() {
    let mut stage = Stage::new([Reply::calls("", [call("c1", "flood", json!({}))]), Reply::say("done")]);
    let outcome = stage.run("go").await;
    assert_eq!(outcome.end, RunEnd::Completed);
    let results = results(&stage);
    assert!(results.len() == 1 && results[0].len() <= 400_010, "{}", results[0].len());
    let told = stage.raw_events().iter().find_map(|event| match event {
        RunEvent::ToolResult { result, .. } => Some(result["content"][0]["text"].as_str().unwrap().len()),
        _ => None,
    });
    assert!(told.is_some_and(|told| told < 8_100), "{told:?}");
}

/// Tests a transcript that another program left: its calls get a result before the model is asked.
#[tokio::test]
async fn a_history_that_ends_in_a_call_is_closed_first() {
    let open =
        assistant("", &[call("c1", "echo", json!({"text": "a"})), call("c2", "echo", json!({"text": "b"}))]);
    for (history, closed) in [
        (vec![Message::User(UserMessage::text("go", 1)), Message::Assistant(open.clone())], 2),
        (
            vec![
                Message::User(UserMessage::text("go", 1)),
                Message::Assistant(open.clone()),
                result("c1", "a"),
            ],
            1,
        ),
    ] {
        let mut stage = Stage::new([Reply::say("done")]);
        stage.set_transcript(history);
        assert_eq!(stage.resume().await.end, RunEnd::Completed);
        let messages = stage.messages();
        assert_well_formed(&messages, closed);
        let interrupted = results(&stage).iter().filter(|line| line.starts_with("R! [openclaw]")).count();
        assert_eq!(interrupted, closed);
    }
}
