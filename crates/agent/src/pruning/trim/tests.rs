use openclaw_protocol::message::{AssistantMessage, ImageBlock, UserMessage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn settings(mut config: Value) -> PruneSettings {
    config["mode"] = "cache-ttl".into();
    PruneSettings::of(&serde_json::from_value(config).unwrap()).unwrap()
}

fn user(chars: usize) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::text("u".repeat(chars), 0)))
}

fn answer() -> Arc<Message> {
    let content = vec![Block::text("a")];
    Arc::new(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }))
}

fn result_of(tool: &str, content: Vec<Block>) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_name: tool.to_owned(),
        content,
        ..ToolResultMessage::default()
    }))
}

fn result(chars: usize) -> Arc<Message> {
    result_of("exec", vec![Block::text("r".repeat(chars))])
}

/// `times` times `u a r(chars)`, then what is given.
fn turns(times: usize, chars: usize, rest: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let turn = || [user(1), answer(), result(chars)];
    let turns = std::iter::repeat_with(turn).take(times).flatten();
    turns.chain(rest.iter().cloned()).collect()
}

fn tail() -> [Arc<Message>; 3] {
    [answer(), answer(), answer()]
}

/// Formats the replaced results as `position: length`, or `-` for the placeholder.
fn pruned(messages: &[Arc<Message>], settings: &PruneSettings, window: u64) -> Vec<(usize, String)> {
    let shown = |(at, message): (usize, Arc<Message>)| {
        let text = text(&message);
        (
            at,
            if text == "[Old tool result content cleared]" { "-".to_owned() } else { text.len().to_string() },
        )
    };
    trim(messages, settings, window).into_iter().map(shown).collect()
}

fn text(message: &Message) -> String {
    match message {
        Message::ToolResult(result) => {
            result.content.iter().filter_map(text_of).collect::<Vec<_>>().join("|")
        }
        other => panic!("{other:?}"),
    }
}

fn cleared(at: impl IntoIterator<Item = usize>) -> Vec<(usize, String)> {
    at.into_iter().map(|at| (at, "-".to_owned())).collect()
}

/// The vectors of spec `agent-runtime.md` §7.2.
#[test]
fn the_vectors_of_the_spec() {
    let plain = settings(json!({}));
    let none: Vec<(usize, String)> = vec![];
    assert_eq!(pruned(&turns(1, 30_000, &tail()), &plain, 50_000), none);

    let long = turns(1, 70_000, &tail());
    assert_eq!(pruned(&long, &plain, 50_000), [(2, "3087".to_owned())]);
    let sent = trim(&long, &plain, 50_000);
    let note = "[Tool result trimmed: kept first 1500 chars and last 1500 chars of 70000 chars.]";
    assert!(text(&sent[0].1).ends_with(note));

    let rest: Vec<_> = [user(120_000)].into_iter().chain(tail()).collect();
    let both = [(2, "3086".to_owned()), (5, "3086".to_owned())];
    assert_eq!(pruned(&turns(2, 5_000, &rest), &plain, 50_000), both);

    let rest: Vec<_> = [user(60_000)].into_iter().chain(tail()).collect();
    let first_16 = cleared((0..16).map(|n| 3 * n + 2));
    assert_eq!(pruned(&turns(20, 3_900, &rest), &plain, 40_000), first_16);

    let rest: Vec<_> = [user(90_000)].into_iter().chain(tail()).collect();
    let soft_only = settings(json!({"hardClear": {"enabled": false}}));
    assert_eq!(pruned(&turns(2, 3_900, &rest), &soft_only, 20_000), none);

    assert_eq!(pruned(&turns(1, 90_000, &[answer()]), &plain, 10_000), none, "two answers alone");

    let eager = |keep: usize| {
        settings(json!({
            "keepLastAssistants": keep, "softTrimRatio": 0, "hardClearRatio": 0, "minPrunableToolChars": 0,
        }))
    };
    assert_eq!(pruned(&turns(4, 20_000, &[]), &eager(3), 1_000)[..1], cleared([2]));
    assert_eq!(pruned(&turns(4, 20_000, &[]), &eager(3), 1_000).len(), 1);
    assert_eq!(pruned(&turns(3, 20_000, &[]), &eager(1), 1_000), cleared([2, 5]));
    assert_eq!(pruned(&turns(3, 20_000, &[]), &eager(0), 1_000), cleared([2, 5, 8]), "none is kept");

    let read_first: Vec<_> = [answer(), result(90_000)].into_iter().chain(turns(3, 10, &[])).collect();
    assert_eq!(pruned(&read_first, &eager(1), 1_000), cleared([4, 7]), "before the first words of a person");
    let nobody = [answer(), result(90_000), answer(), answer(), answer()];
    assert_eq!(pruned(&nobody, &eager(1), 1_000), none);

    let picky = settings(json!({
        "softTrimRatio": 0, "hardClearRatio": 0, "minPrunableToolChars": 0,
        "tools": {"allow": ["ex*"], "deny": ["exec"]},
    }));
    let tools = [user(1), answer(), result_of("Exec", vec![Block::text("x".repeat(9_000))])];
    let browsed = result_of("Browser", vec![Block::text("x".repeat(9_000))]);
    let messages: Vec<_> = tools.into_iter().chain([browsed]).chain(tail()).collect();
    assert_eq!(pruned(&messages, &picky, 1_000), none);
}

#[test]
fn blocks_are_joined_before_they_are_cut() {
    let tiny = settings(json!({
        "softTrimRatio": 0, "hardClear": {"enabled": false}, "softTrim": {"maxChars": 5, "headChars": 7, "tailChars": 3},
    }));
    let blocks = result_of("exec", vec![Block::text("AAAAA"), Block::text("BBBBB")]);
    let messages: Vec<_> = [user(1), answer(), blocks].into_iter().chain(tail()).collect();
    let sent = trim(&messages, &tiny, 10);
    let expect =
        "AAAAA\nB\n...\nBBB\n\n[Tool result trimmed: kept first 7 chars and last 3 chars of 11 chars.]";
    assert_eq!(text(&sent[0].1), expect);
}

#[test]
fn results_with_an_image_stay_and_count() {
    let eager = settings(json!({"softTrimRatio": 0.3, "hardClearRatio": 0.3, "minPrunableToolChars": 0}));
    let image = Block::Image(ImageBlock::default());
    let seen = result_of("exec", vec![Block::text("x".repeat(9_000)), image]);
    let messages: Vec<_> = [user(1), answer(), seen].into_iter().chain(tail()).collect();
    assert_eq!(pruned(&messages, &eager, 1_000), []);
    // 17,004 characters: just below 0.3 of the window, and above it with a little more.
    let small: Vec<_> = [user(1), answer(), result(90)].into_iter().chain(messages).collect();
    assert_eq!(pruned(&small, &eager, 14_300), [], "17,096 of 57,200");
    assert_eq!(pruned(&small, &eager, 14_200), cleared([2]), "17,096 of 56,800");
}

proptest! {
    /// Only results change, and each keeps its place and its call.
    #[test]
    fn nothing_but_the_text_of_old_results_changes(
        kinds in prop::collection::vec((0_u8..4, 0_usize..6_000), 0..16),
        keep in 0_usize..4,
        window in 1_u64..40_000,
    ) {
        let messages: Vec<Arc<Message>> = kinds
            .iter()
            .enumerate()
            .map(|(at, (kind, chars))| match kind {
                0 => user(*chars),
                1 => answer(),
                _ => Arc::new(Message::ToolResult(ToolResultMessage {
                    tool_call_id: format!("c{at}"),
                    content: vec![Block::text("r".repeat(*chars))],
                    ..ToolResultMessage::default()
                })),
            })
            .collect();
        let config = json!({"keepLastAssistants": keep, "minPrunableToolChars": 0, "softTrim": {"maxChars": 3_200}});
        let sent = trim(&messages, &settings(config), window);
        let last_kept = messages.iter().rposition(|message| matches!(**message, Message::Assistant(_)));
        for (at, replaced) in &sent {
            let (Message::ToolResult(before), Message::ToolResult(after)) = (&*messages[*at], &**replaced) else {
                panic!("not a result at {at}");
            };
            prop_assert_eq!(&before.tool_call_id, &after.tool_call_id);
            prop_assert!(keep == 0 || Some(*at) < last_kept);
        }
        prop_assert!(sent.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order");
    }
}
