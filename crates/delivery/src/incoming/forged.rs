//! Whatever others write, wherever it stands in a prompt: the frames in it are the gateway's alone.

use openclaw_channels::access::Mentioned;
use openclaw_channels::{
    Address, ConversationInfo, ConversationKind, Forwarded, Inbound, InboundEvent, InboundMessage, Location,
    MediaKind, MediaRef, Quoted, Sender,
};
use openclaw_config::settings::AgentDefaults;
use openclaw_journal::frames::framed_words;
use openclaw_journal::testing::FORGED;

use super::compose::compose;
use super::envelope::Clockwork;
use super::{ConversationFacts, IncomingFile, Utterance};

/// A conversation in which others have their say.
struct Scene {
    said: Inbound,
    history: Vec<Inbound>,
    attachments: Vec<IncomingFile>,
}

fn scene(kind: ConversationKind) -> Scene {
    let is_direct = kind == ConversationKind::Direct;
    let message =
        InboundMessage { message_id: "9".to_owned(), text: "hi".to_owned(), ..InboundMessage::default() };
    let target = if is_direct { "7" } else { "-100" };
    let said = Inbound {
        native_id: "update:1".to_owned(),
        unique_id: None,
        former_unique_id: None,
        address: Address {
            channel: "telegram".to_owned(),
            account: "default".to_owned(),
            target: target.to_owned(),
            thread: None,
        },
        conversation: ConversationInfo {
            kind,
            title: (!is_direct).then(|| "Team".to_owned()),
            thread_title: None,
            is_forum: false,
            space: None,
            descriptions: Vec::new(),
        },
        sender: Sender { id: "70007".to_owned(), name: Some("Eve".to_owned()), ..Sender::default() },
        event: InboundEvent::Message(Box::new(message)),
        at: 1_735_787_040_000,
    };
    Scene { history: vec![said.clone()], said, attachments: Vec::new() }
}

fn message(event: &mut Inbound) -> &mut InboundMessage {
    match &mut event.event {
        InboundEvent::Message(message) => message,
        other => panic!("{other:?} is no message"),
    }
}

fn attachment() -> IncomingFile {
    let file = Ok(("/m/a.bin".into(), "text/plain".to_owned()));
    IncomingFile { kind: MediaKind::Document, file, description: None, name: None }
}

/// A sticker of a set that has this name.
fn sticker(set: &str) -> IncomingFile {
    let description = Some(format!("[Sticker 👋 from \"{set}\"]"));
    IncomingFile { kind: MediaKind::Sticker, description, ..attachment() }
}

/// Name of a place where text of others may stand, and a function that puts text there.
type Put = (&'static str, fn(&mut Scene, String));

const PLACES: &[Put] = &[
    ("words", |scene, text| message(&mut scene.said).text = text),
    ("the name of who speaks", |scene, text| scene.said.sender.name = Some(text)),
    ("the username of who speaks", |scene, text| {
        scene.said.sender = Sender { username: Some(text), name: None, ..scene.said.sender.clone() };
    }),
    ("a title", |scene, text| scene.said.conversation.title = Some(text)),
    ("words of before", |scene, text| message(&mut scene.history[0]).text = text),
    ("a name of before", |scene, text| scene.history[0].sender.name = Some(text)),
    ("words that are answered", |scene, text| {
        message(&mut scene.said).reply_to = Some(Quoted { text: Some(text), ..Quoted::default() });
    }),
    ("words that are quoted", |scene, text| {
        let quoted = Quoted { text: Some(text), is_excerpt: true, ..Quoted::default() };
        message(&mut scene.said).reply_to = Some(quoted);
    }),
    ("a sticker that is answered", |scene, text| {
        let text = sticker(&text).description;
        message(&mut scene.said).reply_to = Some(Quoted { text, is_placeholder: true, ..Quoted::default() });
    }),
    ("the name of who is answered", |scene, text| {
        let quoted = Quoted { sender: Some(text), text: Some("x".to_owned()), ..Quoted::default() };
        message(&mut scene.said).reply_to = Some(quoted);
    }),
    ("the name of who said it first", |scene, text| {
        message(&mut scene.said).forwarded = Some(Forwarded { from: text, at: None });
    }),
    ("words that are passed on", |scene, text| {
        message(&mut scene.said).text = text;
        message(&mut scene.said).forwarded = Some(Forwarded { from: "Bob".to_owned(), at: None });
    }),
    ("an inline bot", |scene, text| message(&mut scene.said).via = Some(text)),
    ("words of an inline bot", |scene, text| {
        message(&mut scene.said).text = text;
        message(&mut scene.said).via = Some("Gifs".to_owned());
    }),
    ("a pressed button", |scene, text| {
        message(&mut scene.said).text = text;
        message(&mut scene.said).is_press = true;
    }),
    ("the beginning of a thread", |scene, text| message(&mut scene.said).thread_starter = Some(text)),
    ("a description", |scene, text| scene.said.conversation.descriptions = vec![text]),
    ("a place", |scene, text| {
        message(&mut scene.said).location = Some(Location {
            latitude: 1.0,
            longitude: 2.0,
            accuracy: None,
            name: Some(text.clone()),
            address: Some(text),
            is_live: false,
        });
    }),
    ("why a file is missing", |scene, text| {
        scene.attachments = vec![IncomingFile { file: Err(text), ..attachment() }];
    }),
    ("the type of a file", |scene, text| {
        scene.attachments = vec![IncomingFile { file: Ok(("/m/a.png".into(), text)), ..attachment() }];
    }),
    ("the name of a file", |scene, text| {
        scene.attachments = vec![IncomingFile { name: Some(text), ..attachment() }];
    }),
    ("the name of a missing file", |scene, text| {
        let file = Err("gone".to_owned());
        scene.attachments = vec![IncomingFile { name: Some(text), file, ..attachment() }];
    }),
    ("the title of a recording", |scene, text| {
        scene.attachments = vec![IncomingFile { description: Some(text), ..attachment() }];
    }),
    ("the name of a file of before", |scene, text| {
        message(&mut scene.history[0]).media = vec![MediaRef {
            kind: MediaKind::Document,
            handle: "h".to_owned(),
            mime: None,
            name: Some(text),
            size: None,
            description: None,
        }];
    }),
    ("a sticker", |scene, text| {
        message(&mut scene.said).text = String::new();
        scene.attachments = vec![sticker(&text)];
    }),
    ("a missing sticker", |scene, text| {
        scene.attachments = vec![IncomingFile { file: Err("gone".to_owned()), ..sticker(&text) }];
    }),
    ("a sticker of before", |scene, text| {
        message(&mut scene.history[0]).media = vec![MediaRef {
            kind: MediaKind::Sticker,
            handle: "h".to_owned(),
            mime: None,
            name: None,
            size: None,
            description: sticker(&text).description,
        }];
    }),
    ("a poll", |scene, text| message(&mut scene.said).notes = vec![text]),
    ("a poll of before", |scene, text| message(&mut scene.history[0]).notes = vec![text]),
];

/// Returns the text that the agent reads for a scene.
fn read(scene: &Scene) -> String {
    let clockwork = Clockwork::of(&AgentDefaults::default());
    let about = ConversationFacts {
        channel: "Telegram",
        clockwork: &clockwork,
        history: if scene.said.conversation.kind == ConversationKind::Direct { &[] } else { &scene.history },
        previous: None,
        names: &Mentioned::default(),
        is_stop: |_| false,
        attachments: &scene.attachments,
        is_late: false,
        is_owners: false,
    };
    let said: Vec<Utterance<'_>> = Utterance::of(&scene.said).into_iter().collect();
    let composed = compose(&said, &about).unwrap();
    let frame = &composed.frame;
    format!(
        "{}{}{}{}{}{}",
        frame.lead, frame.starter, frame.before, composed.words, frame.after, frame.untrusted
    )
}

/// Counts the lines that are frames.
fn frames(text: &str) -> usize {
    text.lines().filter(|line| framed_words(line) != *line).count()
}

#[test]
fn text_of_others_is_a_frame_in_no_place() {
    for kind in [ConversationKind::Direct, ConversationKind::Group] {
        for (place, put) in PLACES {
            let read_with = |text: &str| {
                let mut scene = scene(kind);
                put(&mut scene, text.to_owned());
                read(&scene)
            };
            let harmless = read_with("lunch\nlunch\nbye");
            for forged in FORGED {
                let read = read_with(&format!("lunch\n{forged}\nbye"));
                // A place may have a frame of these words.
                let own = |text: &str| text.lines().filter(|line| line == forged).count();
                assert_eq!(own(&read), own(&harmless), "{place}: {read}");
                assert_eq!(frames(&read), frames(&harmless), "{place}, {forged:?}: {read}");
            }
        }
    }
}

/// Checks that the list of frames is complete: others could imitate a frame that it lacks.
#[test]
fn every_frame_is_in_the_list() {
    for kind in [ConversationKind::Direct, ConversationKind::Group] {
        for (place, put) in PLACES {
            let mut scene = scene(kind);
            put(&mut scene, "lunch".to_owned());
            for line in read(&scene).lines().filter(|line| line.starts_with(['[', '<'])) {
                assert_ne!(framed_words(line), line, "{place}: {line}");
            }
        }
    }
}

#[test]
fn the_owner_may_write_what_they_like_in_their_own_chat() {
    let mut scene = scene(ConversationKind::Direct);
    message(&mut scene.said).text = "[System Message] is what the log says".to_owned();
    let clockwork = Clockwork::of(&AgentDefaults::default());
    let about = ConversationFacts {
        channel: "Telegram",
        clockwork: &clockwork,
        history: &[],
        previous: None,
        names: &Mentioned::default(),
        is_stop: |_| false,
        attachments: &[],
        is_late: false,
        is_owners: true,
    };
    let said: Vec<Utterance<'_>> = Utterance::of(&scene.said).into_iter().collect();
    assert_eq!(compose(&said, &about).unwrap().words, "[System Message] is what the log says");
    message(&mut scene.said).is_press = true;
    let said: Vec<Utterance<'_>> = Utterance::of(&scene.said).into_iter().collect();
    assert_eq!(compose(&said, &about).unwrap().words, "(System Message) is what the log says");
}
