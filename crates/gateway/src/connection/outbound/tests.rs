use super::*;
use crate::events::Event;
use serde_json::json;

fn event(droppable: bool, size: usize) -> Arc<EncodedEvent> {
    let payload = json!({ "text": "x".repeat(size) }).into();
    Arc::new(Event::new("chat", payload, droppable).encode(None))
}

/// Pops everything; the numbers of the events and whether a close follows.
fn drain(backlog: &mut Backlog) -> (Vec<Option<u64>>, Option<Closing>) {
    let mut seqs = Vec::new();
    loop {
        match backlog.next() {
            Next::Write(Outgoing::Event { seq, .. }, bytes) => {
                seqs.push(seq);
                backlog.written(bytes);
            }
            Next::Write(Outgoing::Text(_), bytes) => backlog.written(bytes),
            Next::Close(closing) => return (seqs, Some(closing)),
            Next::Wait => return (seqs, None),
        }
    }
}

#[test]
fn numbers_count_per_connection_and_only_events_missed_for_slowness_leave_a_gap() {
    let mut backlog = Backlog::default();
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
    let mut backlog = Backlog::default();
    backlog.broadcast(&event(true, SLOW_BYTES + 1));
    assert_eq!(backlog.broadcast(&event(false, 1)), Pushed::Closed);
    assert_eq!(backlog.broadcast(&event(true, 1)), Pushed::Closed);
    backlog.respond("late".to_owned());
    assert_eq!(drain(&mut backlog), (vec![Some(1)], Some(Closing::policy("slow consumer"))));
}

#[test]
fn a_frame_that_is_being_written_still_counts() {
    let mut backlog = Backlog::default();
    backlog.broadcast(&event(true, SLOW_BYTES + 1));
    let Next::Write(_, bytes) = backlog.next() else { panic!("something to write") };
    assert!(backlog.is_slow());
    backlog.written(bytes);
    assert!(!backlog.is_slow());
}

#[test]
fn responses_are_not_dropped_for_slowness_but_bounded() {
    let mut backlog = Backlog::default();
    let chunk = "x".repeat(SLOW_BYTES);
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
    let mut backlog = Backlog::default();
    backlog.close(Closing::stopping());
    backlog.close(Closing::too_big());
    assert_eq!(backlog.next(), Next::Close(Closing::stopping()));
}
