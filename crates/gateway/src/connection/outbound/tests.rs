use super::*;
use crate::events::{GatewayEvent, OfRun};
use openclaw_protocol::RunId;
use serde_json::{Value, json};

fn event(droppable: bool, size: usize) -> Arc<EncodedEvent> {
    let payload = json!({ "text": "x".repeat(size) }).into();
    Arc::new(GatewayEvent::new("chat", payload, droppable).encode(None))
}

/// Pops everything; the numbers of the events and whether a close follows.
fn drain(backlog: &mut OutboundQueue) -> (Vec<Option<u64>>, Option<Closing>) {
    let (frames, closing) = drain_frames(backlog);
    (frames.iter().map(|frame| frame["seq"].as_u64()).collect(), closing)
}

fn drain_frames(backlog: &mut OutboundQueue) -> (Vec<Value>, Option<Closing>) {
    let mut frames = Vec::new();
    loop {
        match backlog.next() {
            OutboundStep::Write(OutboundFrame { text, bytes }) => {
                frames.push(serde_json::from_str(&text.to_string()).unwrap());
                backlog.written(bytes);
            }
            OutboundStep::Close(closing) => return (frames, Some(closing)),
            OutboundStep::Wait => return (frames, None),
            OutboundStep::Pong(_) => panic!("nobody sent a ping"),
        }
    }
}

#[test]
fn numbers_count_per_connection_and_only_events_missed_for_slowness_leave_a_gap() {
    let mut backlog = OutboundQueue::default();
    let big = event(true, SLOW_BYTES + 1);
    assert_eq!(backlog.broadcast(&big), Pushed::Queued);
    assert_eq!(backlog.broadcast(&event(true, 1)), Pushed::Skipped);
    assert_eq!(backlog.broadcast(&event(true, 1)), Pushed::Skipped);
    assert_eq!(drain(&mut backlog), (vec![Some(1)], None));
    assert_eq!(backlog.broadcast(&event(false, 1)), Pushed::Queued);
    assert_eq!(backlog.target(&event(false, 1)), Pushed::Queued);
    assert_eq!(backlog.broadcast(&event(false, 1)), Pushed::Queued);
    assert_eq!(drain(&mut backlog), (vec![Some(4), None, Some(5)], None));
}

#[test]
fn a_slow_client_is_closed_by_an_event_it_may_not_miss_after_what_was_queued() {
    let mut backlog = OutboundQueue::default();
    backlog.broadcast(&event(true, SLOW_BYTES + 1));
    assert_eq!(backlog.broadcast(&event(false, 1)), Pushed::Closed);
    assert_eq!(backlog.broadcast(&event(true, 1)), Pushed::Closed);
    backlog.respond(FrameText::whole("late".to_owned()));
    assert_eq!(drain(&mut backlog), (vec![Some(1)], Some(Closing::policy("slow consumer"))));
}

/// A client that reads takes nothing of the room; one that does not is cut off when none is left.
#[test]
fn answers_to_clients_that_are_behind_share_their_room() {
    const ANSWER: usize = 50_000;
    let room = Arc::new(Semaphore::new(2 * ANSWER));
    let answer = || FrameText::whole("x".repeat(ANSWER));
    let joined = || OutboundQueue { room: Some(Arc::clone(&room)), ..OutboundQueue::default() };
    let (mut quick, mut deaf, mut second) = (joined(), joined(), joined());
    // What fits into the share of each takes nothing.
    [&mut deaf, &mut second].into_iter().for_each(|queue| (0..2).for_each(|_| queue.respond(answer())));
    assert_eq!(room.available_permits(), 2 * ANSWER);
    (0..2).for_each(|_| deaf.respond(answer()));
    assert_eq!(room.available_permits(), 0);
    assert!(deaf.owes_answers() && deaf.closing.is_none());
    second.respond(answer());
    assert_eq!(second.closing, Some(Closing::policy("slow consumer")));
    for _ in 0..4 {
        quick.respond(answer());
        let OutboundStep::Write(OutboundFrame { bytes, .. }) = quick.next() else { panic!("it waits") };
        quick.written(bytes);
    }
    assert!(quick.closing.is_none() && !quick.owes_answers());
    // Large answers hold their bytes themselves.
    deaf.respond(FrameText { payload: vec![b'x'; 200_000].into(), ..FrameText::whole(String::new()) });
    assert!(deaf.closing.is_none());
    for left in [0, 0, ANSWER, 2 * ANSWER] {
        let OutboundStep::Write(OutboundFrame { text, bytes }) = deaf.next() else { panic!("it waits") };
        drop(text);
        deaf.written(bytes);
        assert_eq!(room.available_permits(), left);
    }
}

#[test]
fn a_frame_that_is_being_written_still_counts() {
    let mut backlog = OutboundQueue::default();
    backlog.broadcast(&event(true, SLOW_BYTES + 1));
    let OutboundStep::Write(OutboundFrame { bytes, .. }) = backlog.next() else {
        panic!("something to write")
    };
    assert!(backlog.is_slow());
    backlog.written(bytes);
    assert!(!backlog.is_slow());
}

#[test]
fn responses_are_not_dropped_for_slowness_but_bounded() {
    let mut backlog = OutboundQueue::default();
    let chunk = FrameText::whole("x".repeat(SLOW_BYTES));
    let fitting = HARD_BYTES / SLOW_BYTES;
    for _ in 0..fitting {
        backlog.respond(chunk.clone());
    }
    assert_eq!(backlog.closing, None);
    backlog.respond(chunk);
    assert_eq!(backlog.closing, Some(Closing::policy("slow consumer")));
    assert_eq!(backlog.queue.len(), fitting);
}

#[test]
fn the_first_reason_to_close_stays() {
    let mut backlog = OutboundQueue::default();
    backlog.close(Closing::stopping());
    backlog.close(Closing::too_big());
    assert_eq!(backlog.next(), OutboundStep::Close(Closing::stopping()));
}

/// An `agent` event of a run: the text that many words long, the last of which is new, or something else.
fn said(run: &str, words: Option<usize>) -> Arc<EncodedEvent> {
    let data = |words: usize| json!({"text": "word ".repeat(words), "delta": "word "});
    let (stream, data) = match words {
        Some(words) => ("assistant", data(words)),
        None => ("lifecycle", json!({"phase": "start", "startedAt": 1})),
    };
    let payload = json!({"runId": run, "stream": stream, "data": data, "seq": 1, "ts": 1});
    let of_run = OfRun { id: RunId::new(run), growing: words.map(|_| 1) };
    Arc::new(GatewayEvent::new("agent", payload.into(), false).of_run(of_run).encode(None))
}

#[test]
fn who_falls_behind_gets_the_newest_text_of_a_run_and_what_follows_it() {
    const LONG: usize = 3_000;
    let mut backlog = OutboundQueue::default();
    for words in 1..=LONG {
        assert_eq!(backlog.broadcast(&said("r", Some(words))), Pushed::Queued);
    }
    assert_eq!(backlog.broadcast(&said("r", None)), Pushed::Queued);
    assert_eq!(backlog.broadcast(&said("r", Some(LONG + 1))), Pushed::Queued);
    let (frames, closing) = drain_frames(&mut backlog);
    assert_eq!(closing, None);
    let seqs: Vec<u64> = frames.iter().filter_map(|frame| frame["seq"].as_u64()).collect();
    assert_eq!(
        seqs,
        (1..=seqs.len() as u64).collect::<Vec<_>>(),
        "nothing is missing, so nothing looks missing"
    );
    let texts: Vec<&str> =
        frames.iter().filter_map(|frame| frame["payload"]["data"]["text"].as_str()).collect();
    assert_eq!(texts.last(), Some(&"word ".repeat(LONG + 1).as_str()), "after the event that came between");
    assert_eq!(texts.iter().rev().nth(1), Some(&"word ".repeat(LONG).as_str()));
    let deltas = frames.iter().filter_map(|frame| frame["payload"]["data"]["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), "word ".repeat(LONG + 1), "who adds up what is new has all of it");
}

#[test]
fn other_runs_and_targeted_events_are_not_taken_for_the_same_text() {
    let mut backlog = OutboundQueue::default();
    backlog.broadcast(&event(false, BEHIND_BYTES + 1));
    for (run, words) in [("a", 1), ("b", 1), ("a", 2), ("b", 2)] {
        backlog.broadcast(&said(run, Some(words)));
    }
    backlog.target(&said("a", Some(3)));
    let (frames, _) = drain_frames(&mut backlog);
    let said: Vec<String> = frames
        .iter()
        .skip(1)
        .map(|frame| format!("{} {}", frame["payload"]["runId"], frame["payload"]["data"]["text"]))
        .collect();
    assert_eq!(said, [r#""a" "word word ""#, r#""b" "word word ""#, r#""a" "word word word ""#]);
}

#[test]
fn what_was_missed_before_a_text_that_was_taken_in_is_still_missing() {
    let mut backlog = OutboundQueue::default();
    backlog.broadcast(&event(false, SLOW_BYTES + 1));
    backlog.broadcast(&event(true, 1));
    let OutboundStep::Write(OutboundFrame { bytes, .. }) = backlog.next() else {
        panic!("something to write")
    };
    backlog.written(bytes);
    backlog.broadcast(&said("r", Some(1)));
    backlog.broadcast(&event(false, BEHIND_BYTES));
    backlog.broadcast(&said("r", Some(2)));
    assert_eq!(drain(&mut backlog).0, [Some(2), Some(4)]);
}

#[test]
fn the_last_ping_is_answered_before_what_is_queued() {
    let mut backlog = OutboundQueue::default();
    backlog.respond(FrameText::whole("answer".to_owned()));
    backlog.pinged(Bytes::from_static(b"first"));
    backlog.pinged(Bytes::from_static(b"second"));
    assert_eq!(backlog.next(), OutboundStep::Pong(Bytes::from_static(b"second")));
    assert!(matches!(backlog.next(), OutboundStep::Write(_)));
    assert_eq!(backlog.next(), OutboundStep::Wait);
}
