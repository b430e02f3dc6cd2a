use openclaw_protocol::message::{AssistantMessage, Block, ToolCall, ToolResultMessage, UserMessage};
use openclaw_sessions::transcript::StoredMessage;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

const BUDGET_150: Budget = Budget { keep_recent: 150, ..BUDGET };
const BUDGET: Budget = Budget { window: 200_000, reserve: 20_000, keep_recent: 200 };

fn entry(id: &str, body: Body) -> Arc<Entry> {
    let (id, timestamp) = (EntryId::new(id), "1970-01-01T00:00:00.001Z".to_owned());
    Arc::new(Entry { id, parent_id: None, timestamp, body, extra: Map::new() })
}

/// `u100`: a person, `a100`: an answer, `t100`: an answer with a call, `r100`: its result, `m`: settings. Ids are the positions.
fn entries(branch: &str, from: usize) -> Vec<Arc<Entry>> {
    let mut call = 0;
    let mut body = |word: &str| {
        let (kind, tokens) = word.split_at(1);
        let text = "x".repeat(4 * tokens.parse::<usize>().unwrap_or(0));
        let content = vec![Block::text(text)];
        let message = match kind {
            "u" => Message::User(UserMessage::text("x".repeat(4 * tokens.parse::<usize>().unwrap_or(0)), 1)),
            "a" => Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }),
            "t" => {
                call += 1;
                let called = ToolCall {
                    id: format!("c{call}"),
                    name: "read".to_owned(),
                    arguments: json!({"path": format!("/{call}")}),
                    ..ToolCall::default()
                };
                let content = [content, vec![Block::ToolCall(called)]].concat();
                Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() })
            }
            "r" => Message::ToolResult(ToolResultMessage {
                tool_call_id: format!("c{call}"),
                content,
                ..ToolResultMessage::default()
            }),
            _ => return Body::SessionInfo { name: None },
        };
        Body::Message(StoredMessage::Known(Arc::new(message)))
    };
    branch
        .split_whitespace()
        .enumerate()
        .map(|(at, word)| entry(&(from + at).to_string(), body(word)))
        .collect()
}

fn compaction(details: &Value) -> Arc<Entry> {
    let fields = json!({"summary": "S", "firstKeptEntryId": "0", "tokensBefore": 1, "details": details});
    entry("C", Body::Compaction(serde_json::from_value(fields).unwrap()))
}

fn fresh(branch: &str) -> Range {
    Range::of(&View { later: entries(branch, 0), ..View::default() })
}

fn after_compaction(kept: &str, later: &str, details: &Value) -> Range {
    let kept = entries(kept, 0);
    let later = entries(later, kept.len());
    Range::of(&View { compaction: Some(compaction(details)), kept, later })
}

#[test]
fn what_is_summarised_is_what_is_not_kept() {
    let planned = plan(&fresh("u100 a100 m u100 a100"), &BUDGET, Urgency::CanWait).unwrap();
    assert_eq!((planned.first_kept.as_str(), planned.history.len(), planned.prefix.len()), ("2", 2, 0));
    assert_eq!((planned.kept_tokens, planned.results_up_to, planned.previous_summary), (200, None, None));
    let planned = plan(&fresh("u50 t50 r300 t50 r300 a50"), &BUDGET, Urgency::CanWait).unwrap();
    assert_eq!((planned.first_kept.as_str(), planned.history.len(), planned.prefix.len()), ("5", 0, 5));
    assert_eq!(planned.appendix(true), "\n\n<read-files>\n/1\n/2\n</read-files>");
}

#[test]
fn the_second_compaction_begins_where_the_first_kept() {
    let range = after_compaction("u100 a100", "u100 a100 u100 a100", &json!({"readFiles": ["old"]}));
    let planned = plan(&range, &BUDGET, Urgency::CanWait).unwrap();
    assert_eq!((planned.first_kept.as_str(), planned.history.len()), ("4", 4));
    assert_eq!(planned.previous_summary.as_deref(), Some("S"));
    assert_eq!(
        planned.entry("T".to_owned(), 9).details.unwrap(),
        json!({"readFiles": ["old"], "modifiedFiles": []})
    );
}

#[test]
fn there_may_be_nothing_to_do() {
    assert_eq!(plan(&fresh("u10 a10"), &BUDGET, Urgency::CanWait).unwrap_err(), Nothing::TooSmall);
    assert_eq!(plan(&fresh(""), &BUDGET, Urgency::CanWait).unwrap_err(), Nothing::TooSmall);
    let compacted = after_compaction("u900 a900", "m", &json!({}));
    assert_eq!(plan(&compacted, &BUDGET, Urgency::CanWait).unwrap_err(), Nothing::AlreadyCompacted);
    // Each attempt keeps less.
    let small = fresh("u60 a60 u60 a60");
    let budget = Budget { keep_recent: 240, ..BUDGET };
    assert_eq!(plan(&small, &budget, Urgency::CanWait).unwrap_err(), Nothing::TooSmall);
    let kept = |range: &Range, attempt| {
        plan(range, &budget, Urgency::Overflow { attempt }).map(|plan| plan.first_kept)
    };
    assert_eq!(kept(&small, 0), Err(Nothing::TooSmall));
    assert_eq!(kept(&small, 1), Ok(EntryId::new("3")));
    assert_eq!(kept(&fresh("u60 a60 u60 t9 r9"), 2), Ok(EntryId::new("3")), "as little as can stay");
    assert_eq!(kept(&compacted, 0), Ok(EntryId::new("1")), "even if nothing was said since");
}

#[test]
fn what_must_stay_and_is_too_long_is_shown_in_part() {
    let planned = plan(&fresh("u50 a50 u50 t50 r100000"), &BUDGET, Urgency::CanWait).unwrap();
    assert_eq!((planned.first_kept.as_str(), planned.results_up_to), ("3", Some(240_000)));
    let details = planned.entry("T".to_owned(), 9).details.unwrap();
    assert_eq!(details[Compaction::RESULTS_UP_TO], 240_000);
    assert_eq!(shorten(&fresh("u50 t50 r500"), &BUDGET).map(|plan| plan.first_kept), None);
    let shortened = shorten(&fresh("u50 t50 r100000"), &BUDGET).unwrap();
    assert_eq!((shortened.first_kept.as_str(), shortened.results_up_to), ("0", Some(240_000)));
    assert!(shortened.history.is_empty() && shortened.prefix.is_empty());
    // Once they are, there is nothing to shorten; what comes later is.
    let known = json!({Compaction::RESULTS_UP_TO: 240_000});
    let shown = after_compaction("u50 t50 r100000", "a10", &known);
    assert_eq!(shorten(&shown, &BUDGET).map(|plan| plan.first_kept), None);
    let still_kept =
        plan(&after_compaction("u900 t50 r100", "a10", &known), &BUDGET_150, Urgency::CanWait).unwrap();
    assert_eq!((still_kept.first_kept.as_str(), still_kept.results_up_to), ("1", Some(240_000)));
    let gone = plan(&shown, &BUDGET_150, Urgency::CanWait).unwrap();
    assert_eq!((gone.first_kept.as_str(), gone.results_up_to), ("3", None));
    assert!(shorten(&after_compaction("u50 t50 r100000", "t10 r99000", &known), &BUDGET).is_some());
}

proptest! {
    /// No message is lost between the parts, no call is separated from its result, and no result is
    /// kept without its call.
    #[test]
    fn every_entry_is_in_one_part_and_pairs_are_whole(
        words in prop::collection::vec((prop::sample::select(vec!["u", "a", "t", "r", "m"]), 0_u32..400), 0..40),
        kept_before in 0_usize..20,
        keep in 0_u64..2_000,
        attempt in 0_u32..4,
    ) {
        let branch: Vec<String> = words.iter().map(|(kind, tokens)| format!("{kind}{tokens}")).collect();
        let all = entries(&branch.join(" "), 0);
        let (kept, later) = all.split_at(kept_before.min(all.len()));
        let compaction = (kept_before > 0).then(|| compaction(&json!({})));
        let range = Range::of(&View {
            kept: if compaction.is_some() { kept.to_vec() } else { Vec::new() },
            later: if compaction.is_some() { later.to_vec() } else { all.clone() },
            compaction,
        });
        let budget = Budget { keep_recent: keep, ..BUDGET };
        let urgency = attempt.checked_sub(1).map_or(Urgency::CanWait, |attempt| Urgency::Overflow { attempt });
        if let Ok(planned) = plan(&range, &budget, urgency) {
            let first = all.iter().position(|entry| entry.id == planned.first_kept).unwrap();
            let messages = |part: &[Arc<Entry>]| part.iter().filter(|entry| entry.body.message().is_some()).count();
            prop_assert_eq!(planned.history.len() + planned.prefix.len(), messages(&all[..first]));
            let calls = |part: &[Arc<Entry>]| -> Vec<String> {
                let of = |entry: &Arc<Entry>| match entry.body.message().map(Arc::as_ref) {
                    Some(Message::Assistant(answer)) => answer.tool_calls().map(|call| call.id.clone()).collect(),
                    _ => Vec::new(),
                };
                part.iter().flat_map(of).collect()
            };
            let made_before = calls(&all[..first]);
            for entry in &all[first..] {
                if let Some(Message::ToolResult(result)) = entry.body.message().map(Arc::as_ref) {
                    prop_assert!(!made_before.contains(&result.tool_call_id), "{:?}", branch);
                }
            }
        }
    }
}
