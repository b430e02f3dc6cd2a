//! Tests that the kept request changes no byte of the next one, whatever happened to the
//! conversation in between.

use std::sync::Arc;

use openclaw_models::KeptRequest;
use openclaw_models::replay::{gone_on, shown};
use proptest::sample::Index;

use super::*;

/// Generates odd messages, as other programs, crashes and people leave them in a transcript.
fn odd() -> impl Strategy<Value = Value> {
    let id = || prop::sample::select(vec!["call_1", "call_2|fc_2", "never_called"]);
    let call = |arguments: Value| json!({"type": "toolCall", "id": "call_1", "name": "read", "arguments": arguments});
    prop_oneof![
        said().prop_map(|content| json!({"role": "user", "content": content, "timestamp": 1})),
        (id(), text())
            .prop_map(|(id, text)| json!({"role": "toolResult", "toolCallId": id, "toolName": "read",
            "content": [{"type": "text", "text": text}], "isError": false, "timestamp": 3})),
        prop::sample::select(vec![
            json!([]),
            json!([call(Value::Null)]),
            json!([call(json!({})), call(Value::Null)])
        ])
        .prop_map(
            |content| json!({"role": "assistant", "content": content, "whose": 0, "stopReason": "toolUse",
                "timestamp": 2, "usage": {}})
        ),
        answer(Vec::new()),
    ]
}

/// Change before the next request.
#[derive(Debug, Clone)]
enum Change {
    /// Appends this number of messages.
    Grown(usize),
    /// Replaces the system prompt.
    System(String),
    /// Replaces the model.
    Model((&'static str, &'static str)),
    /// A message is another one.
    Edited(Index, Value),
    /// A message is gone.
    Removed(Index),
    /// Removes the last messages.
    Cut(Index),
    /// The transcript was read anew.
    Read,
    /// The last request is still being sent.
    Held,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        12 => (1..4_usize).prop_map(Change::Grown),
        1 => prop::sample::select(vec!["", "The rules.", "Other rules."]).prop_map(|text| Change::System(text.into())),
        1 => prop::sample::select(MODELS.to_vec()).prop_map(Change::Model),
        1 => (any::<Index>(), odd()).prop_map(|(at, message)| Change::Edited(at, message)),
        1 => any::<Index>().prop_map(Change::Removed),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => Just(Change::Read),
        2 => Just(Change::Held),
    ]
}

proptest! {
    #[test]
    fn a_request_that_goes_on_from_the_last_is_the_one_that_is_written_anew(
        said in prop::collection::vec(prop_oneof![3 => turn(), 1 => odd().prop_map(|one| vec![one])], 1..8),
        changes in prop::collection::vec(change(), 1..20),
        which in prop::sample::select(MODELS.to_vec()),
        offers_tools in any::<bool>(),
    ) {
        let mut model = spec(which);
        let mut coming = messages(&model, &said.concat()).into_iter().map(Arc::new);
        let mut conversation: Vec<Arc<Message>> = coming.next().into_iter().collect();
        let mut system = "The rules.".to_owned();
        let kept = KeptRequest::default();
        let mut held = Vec::new();
        for change in changes {
            match change {
                Change::Grown(most) => conversation.extend(coming.by_ref().take(most)),
                Change::System(other) => system = other,
                Change::Model(other) => model = spec(other),
                Change::Edited(at, message) if !conversation.is_empty() => {
                    let at = at.index(conversation.len());
                    conversation[at] = messages(&model, &[message]).remove(0).into();
                }
                Change::Removed(at) if !conversation.is_empty() => {
                    conversation.remove(at.index(conversation.len()));
                }
                Change::Cut(at) => conversation.truncate(at.index(conversation.len() + 1)),
                Change::Read => {
                    for message in &mut conversation {
                        *message = Arc::new(Message::clone(message));
                    }
                }
                Change::Held => {
                    let body = held.last().map(|(body, _): &(bytes::Bytes, Vec<u8>)| body.clone());
                    held.extend(body.map(|body| (body.clone(), body.to_vec())));
                }
                Change::Edited(..) | Change::Removed(_) => {}
            }
            let tools = vec![tool(); usize::from(offers_tools)];
            let request = ModelRequest {
                messages: conversation.clone().into(),
                kept: kept.clone(),
                ..request(&system, tools)
            };
            let anew = shown(&model, &request).unwrap();
            let anew = ModelRequest { messages: anew.into(), ..request.clone() };
            let expect = posted(&model, &SecretString::from(KEY), &anew).unwrap().unwrap();
            let found = gone_on(&model, &request).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expect));
            held.retain(|(body, as_sent)| {
                assert_eq!(body, as_sent, "what is being sent stays as it is");
                body.len() % 2 == 0
            });
            held.push((found, expect));
        }
    }
}
