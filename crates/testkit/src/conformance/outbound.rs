//! Conformance tests of outbound messages.

use std::time::Duration;

use openclaw_channels::{
    Account, ActionError, Activity, Address, Answer, AnswerMedia, Button, Content, OutgoingPart, Part,
    RateTurn, Receipt, Repeats, SendAttempt, SendError,
};
use serde_json::json;

use super::{ACCOUNTS, ConformanceScene, Fixture, Meets};

const FIRST: SendAttempt = SendAttempt { number: 1, late: false, may_repeat: false };

async fn send(account: &dyn Account, at: &Address, id: &str, part: &Part) -> Result<Receipt, SendError> {
    while let RateTurn::After(wait) = account.turn(at) {
        tokio::time::sleep(wait).await;
    }
    account.send(OutgoingPart { id, address: at, part }, FIRST).await
}

/// Words, files, questions, buttons, and that somebody writes: all in the thread, whatever comes of them.
pub async fn every_part_keeps_its_thread<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (id, account) = (ACCOUNTS[0], scene.first());
    let Some(at) = scene.fixture.places(id).thread else {
        assert!(!scene.fixture.channel().capabilities().threads, "the fixture names no thread");
        return;
    };
    let file = scene.dir.path().join("note.txt");
    tokio::fs::write(&file, "content").await.unwrap_or_else(|error| panic!("a file: {error}"));
    let answer = Answer {
        text: format!("first {}", "word ".repeat(2000)),
        media: vec![AnswerMedia {
            path: file,
            mime: "text/plain".to_owned(),
            name: "note.txt".to_owned(),
            size: 7,
        }],
        reply_to: Some("11".to_owned()),
        buttons: vec![vec![Button { text: "b".to_owned(), data: "d".to_owned() }]],
        ..Answer::default()
    };
    let mut parts = account.parts(&answer);
    assert!(parts.len() > 1, "a long text and a file: {}", parts.len());
    if scene.fixture.channel().capabilities().poll_options.is_some() {
        let content = Content::Poll {
            question: "q".to_owned(),
            options: vec!["a".to_owned(), "b".to_owned()],
            multiple: false,
            hours: None,
        };
        parts.push(Part { content, ..Part::text("") });
    }
    parts.push(Part::text("an error of the gateway"));
    for (number, part) in parts.iter().enumerate() {
        let sent = send(account.as_ref(), &at, &format!("run:{number}"), part).await;
        assert!(sent.is_ok(), "part {number}: {sent:?}");
    }
    let shown = scene.fixture.shown(id);
    assert!(shown.len() >= parts.len());
    for one in &shown {
        assert_eq!((&one.target, &one.thread), (&at.target, &at.thread), "{one:?}");
    }
    account.show_activity(&at, Activity::Typing).await.unwrap_or_else(|error| panic!("{error}"));
    for place in scene.fixture.activity(id) {
        assert_eq!(place, (at.target.clone(), at.thread.clone()));
    }
}

/// Ten thousand characters with code in them.
pub async fn a_long_answer_arrives_whole_in_parts_that_fit<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (id, account) = (ACCOUNTS[0], scene.first());
    let at = scene.fixture.places(id).direct;
    let lines: Vec<String> = (0..300).map(|line| format!("let value{line} = compute({line});")).collect();
    let text = format!("Here it is:\n\n```rust\n{}\n```\n\nThat was it.", lines.join("\n"));
    let parts = account.parts(&Answer { text: text.clone(), ..Answer::default() });
    for (number, part) in parts.iter().enumerate() {
        let sent = send(account.as_ref(), &at, &format!("run:{number}"), part).await;
        assert!(sent.is_ok(), "part {number} of {}: {sent:?}", parts.len());
    }
    let plain = |text: &str| {
        text.replace("```rust", "").replace("```", "").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let read: Vec<String> = scene.fixture.shown(id).into_iter().map(|one| one.text).collect();
    assert_eq!(plain(&read.join("\n")), plain(&text));
}

/// The platform asks for a pause in one conversation.
pub async fn a_chat_that_waits_holds_up_no_other<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (id, account) = (ACCOUNTS[0], scene.first());
    let places = scene.fixture.places(id);
    scene.fixture.next_send(id, Meets::Slower(30));
    let refused = send(account.as_ref(), &places.direct, "run:1", &Part::text("one")).await;
    let asked = Duration::from_secs(30);
    assert!(
        matches!(refused, Err(SendError::Retry { after: Some(after), .. }) if after == asked),
        "{refused:?}"
    );
    let turn = account.turn(&places.direct);
    assert!(matches!(turn, RateTurn::After(wait) if wait > Duration::from_secs(20)), "{turn:?}");
    assert_eq!(account.turn(&places.other), RateTurn::Now);
    let sent = account
        .send(OutgoingPart { id: "run:2", address: &places.other, part: &Part::text("two") }, FIRST)
        .await;
    assert!(sent.is_ok(), "{sent:?}");
    let shown: Vec<String> = scene.fixture.shown(id).into_iter().map(|one| one.target).collect();
    assert_eq!(shown, [places.other.target], "nothing went to the one that waits");
}

/// A lost answer is not a failure, and a failure not a lost answer.
pub async fn what_may_have_arrived_is_not_called_unsent<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (id, account) = (ACCOUNTS[0], scene.first());
    let at = scene.fixture.places(id).direct;
    scene.fixture.next_send(id, Meets::LostAnswer);
    let lost = send(account.as_ref(), &at, "run:1", &Part::text("lost")).await;
    match account.repeats() {
        Repeats::Doubled => assert!(matches!(lost, Err(SendError::Uncertain { .. })), "{lost:?}"),
        // The account may try again by itself under the same id.
        Repeats::Recognised => assert!(!matches!(lost, Err(SendError::Final { .. })), "{lost:?}"),
    }
    scene.fixture.next_send(id, Meets::Trouble);
    let trouble = send(account.as_ref(), &at, "run:2", &Part::text("trouble")).await;
    assert!(matches!(trouble, Err(SendError::Down { .. })), "{trouble:?}");
    let texts: Vec<String> = scene.fixture.shown(id).into_iter().map(|one| one.text).collect();
    assert_eq!(texts, ["lost"], "what arrived, and nothing else");
}

/// Checks that a final refusal is not retried, and says why, for people.
pub async fn what_was_refused_for_ever_is_not_tried_again<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (id, account) = (ACCOUNTS[0], scene.first());
    let at = scene.fixture.places(id).direct;
    scene.fixture.next_send(id, Meets::NoSuchChat);
    let refused = send(account.as_ref(), &at, "run:1", &Part::text("one")).await;
    assert!(
        matches!(&refused, Err(SendError::Final { reason }) if reason.contains(&at.target)),
        "it names the conversation: {refused:?}"
    );
    assert_eq!(scene.fixture.shown(id), []);
}

/// All of them.
pub async fn receipts_name_what_was_made<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let (id, account) = (ACCOUNTS[0], scene.first());
    let at = scene.fixture.places(id).group;
    let mut ids = Vec::new();
    for number in 0..3 {
        let sent = send(account.as_ref(), &at, &format!("run:{number}"), &Part::text("x")).await;
        let receipt = sent.unwrap_or_else(|error| panic!("{error}"));
        assert!(!receipt.message_ids.is_empty() && receipt.message_ids.iter().all(|id| !id.is_empty()));
        ids.extend(receipt.message_ids);
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "each message has an id of its own");
    assert_eq!(scene.fixture.shown(id).len(), count);
}

/// Both send at once.
pub async fn accounts_do_not_speak_for_each_other<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let [one, two] = ACCOUNTS.map(|id| (id, scene.account(id), scene.fixture.places(id).direct));
    let say = |(id, account, at): &(&'static str, std::sync::Arc<dyn Account>, Address)| {
        let (id, account, at) = (*id, std::sync::Arc::clone(account), at.clone());
        async move {
            for number in 0..3 {
                let part = Part::text(format!("from {id}"));
                let sent = send(account.as_ref(), &at, &format!("{id}:{number}"), &part).await;
                assert!(sent.is_ok(), "{sent:?}");
            }
        }
    };
    tokio::join!(say(&one), say(&two));
    for id in ACCOUNTS {
        let texts: Vec<String> = scene.fixture.shown(id).into_iter().map(|one| one.text).collect();
        assert_eq!(texts, vec![format!("from {id}"); 3]);
    }
}

/// Checks that nothing of an id is lost on the way to a file and back.
pub async fn targets_are_read_as_they_are_written<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let channel = scene.fixture.channel();
    let places = scene.fixture.places(ACCOUNTS[0]);
    for address in [places.direct, places.other, places.group] {
        for written in [address.target.clone(), format!("{}:{}", channel.info().id, address.target)] {
            let read = channel.target(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
            assert_eq!((read.id, read.thread), (address.target.clone(), None), "{written}");
        }
    }
    for written in ["", "  "] {
        let wrong = channel.target(written).err();
        assert!(wrong.is_some_and(|error| !error.0.is_empty()), "{written:?}");
    }
}

/// Sorted, without those that are not there.
pub async fn actions_are_listed_and_others_refused<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let account = scene.first();
    let actions = account.actions();
    let mut sorted = actions.clone();
    sorted.sort_unstable();
    assert_eq!(actions, sorted);
    let refused = account.act("fly", &json!({"to": scene.fixture.places(ACCOUNTS[0]).direct.target})).await;
    assert!(matches!(&refused, Err(ActionError::Unsupported(action)) if action == "fly"), "{refused:?}");
}

/// Checks the answer of a probe in the time that is given.
pub async fn a_probe_tells_good_credentials_from_bad<F: Fixture>() {
    let scene = ConformanceScene::<F>::new().await;
    let account = scene.first();
    let patience = Duration::from_secs(30);
    let good = account.probe(patience).await;
    assert!(good.ok && good.error.is_none(), "{good:?}");
    scene.fixture.revokes(ACCOUNTS[0], true);
    let bad = account.probe(patience).await;
    assert!(!bad.ok && bad.error.is_some_and(|error| !error.is_empty()));
}
