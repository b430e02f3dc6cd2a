use proptest::prelude::*;

use super::*;

fn key(text: &str) -> SessionKey {
    SessionKey::parse(text).unwrap()
}

/// Vectors of `sessions.md` §1.2.
#[test]
fn agent_keys_are_split_as_the_reference_splits_them() {
    let rows = [
        ("agent:main:main", Some(("main", "main"))),
        ("AGENT:main:main", None),
        ("agent::main", None),
        ("agent:main", None),
        ("agent:main::x", Some(("main", "x"))),
        ("agent:main:a::b", Some(("main", "a:b"))),
        ("  agent:x:y ", Some(("x", "y"))),
        ("agent:Main:Foo:Bar", Some(("Main", "Foo:Bar"))),
    ];
    for (input, expect) in rows {
        let got = AgentKey::parse(input);
        assert_eq!(got.as_ref().map(|k| (k.agent.as_str(), k.rest.as_str())), expect, "{input:?}");
    }
}

#[test]
fn shapes_tell_malformed_keys_from_aliases() {
    let rows = [
        ("", KeyShape::Missing),
        ("  ", KeyShape::Missing),
        ("agent:main:x", KeyShape::Agent),
        ("AGENT:main:x", KeyShape::Agent),
        ("agent:main", KeyShape::MalformedAgent),
        ("agent::", KeyShape::MalformedAgent),
        ("main", KeyShape::LegacyOrAlias),
        ("discord:group:1", KeyShape::LegacyOrAlias),
    ];
    for (input, expect) in rows {
        assert_eq!(KeyShape::of(input), expect, "{input:?}");
    }
}

#[test]
fn thread_parents_are_cut_at_the_last_mark() {
    let rows = [
        ("agent:main:telegram:group:-1:topic:5", Some("agent:main:telegram:group:-1")),
        ("a:thread:1:topic:2", Some("a:thread:1")),
        ("main", None),
        (":topic:1", None),
    ];
    for (input, expect) in rows {
        assert_eq!(thread_parent(input), expect, "{input:?}");
    }
}

#[test]
fn threads_get_a_suffix() {
    let base = SessionKey::parse("agent:main:slack:channel:c1").unwrap();
    let thread = base.with_thread(" 17.A ").unwrap();
    assert_eq!(thread.as_str(), "agent:main:slack:channel:c1:thread:17.a");
    assert_eq!((thread.thread_id(), thread.thread_parent()), (Some("17.a"), Some(base.clone())));
    assert_eq!(base.with_thread(" "), Ok(base.clone()));
    assert_eq!(base.thread_id(), None);
    assert_eq!(SessionKey::global().with_thread("1"), Ok(SessionKey::global()));
    assert_eq!(base.with_thread(&"t".repeat(5_000)).unwrap_err(), KeyError::TooLong(5_035));
}

/// Every row of the table in `sessions.md` §1.1, made and read.
#[test]
fn every_form_of_a_key_is_made_and_read() {
    use KeyForm::{Channel, CronRun, Direct, Group, Named, Opened};
    let agent = AgentId::default();
    let rows = [
        ("agent:main:main", Named("main")),
        ("agent:main:dm:+1555", Direct { channel: None, account: None, peer: "+1555" }),
        ("agent:main:telegram:dm:7", Direct { channel: Some("telegram"), account: None, peer: "7" }),
        (
            "agent:main:telegram:tasks-bot:dm:7",
            Direct { channel: Some("telegram"), account: Some("tasks-bot"), peer: "7" },
        ),
        ("agent:main:whatsapp:group:1@g.us", Group { channel: "whatsapp", id: "1@g.us" }),
        ("agent:main:slack:channel:c1", Channel { channel: "slack", id: "c1" }),
        ("agent:main:telegram:group:-100:topic:9", Group { channel: "telegram", id: "-100:topic:9" }),
        ("agent:main:subagent:u-1", Opened(Opener::Subagent, "u-1")),
        ("agent:main:acp:u-1", Opened(Opener::Acp, "u-1")),
        ("agent:main:cron:job", Opened(Opener::Cron, "job")),
        ("agent:main:cron:job:run:s-1", CronRun { job: "job", run: "s-1" }),
        ("agent:main:hook:gmail:m1", Opened(Opener::Hook, "gmail:m1")),
        ("agent:main:node-n1", Opened(Opener::Node, "n1")),
        ("agent:main:openai:u-1", Opened(Opener::OpenAi, "u-1")),
        ("agent:main:openai-user:al", Opened(Opener::OpenAiUser, "al")),
        ("agent:main:openresponses:u-1", Opened(Opener::OpenResponses, "u-1")),
        ("agent:main:openresponses-user:al", Opened(Opener::OpenResponsesUser, "al")),
        ("agent:main:telegram:slash:7", Named("telegram:slash:7")),
        ("agent:main:subagent", Named("subagent")),
        ("agent:main:cron:job:run", Opened(Opener::Cron, "job:run")),
    ];
    for (text, form) in rows {
        let key = SessionKey::of(&agent, form).unwrap();
        assert_eq!((key.as_str(), key.form()), (text, form));
    }
    let thread = SessionKey::parse("agent:main:slack:channel:c1:thread:17.2").unwrap();
    assert_eq!((thread.form(), thread.thread_id()), (Channel { channel: "slack", id: "c1" }, Some("17.2")));
    assert_eq!(SessionKey::global().form(), Named("global"));
}

#[test]
fn a_form_with_a_blank_part_has_no_key() {
    let agent = AgentId::default();
    let blank = [
        KeyForm::Named(" "),
        KeyForm::Opened(Opener::Hook, " : "),
        KeyForm::Group { channel: "", id: "1" },
        KeyForm::CronRun { job: "j", run: "" },
        KeyForm::Direct { channel: Some("x"), account: None, peer: "" },
    ];
    for form in blank {
        assert_eq!(SessionKey::of(&agent, form), Err(KeyError::Missing), "{form:?}");
    }
    let long = "x".repeat(10_000);
    assert!(matches!(
        SessionKey::of(&agent, KeyForm::Opened(Opener::OpenAiUser, &long)),
        Err(KeyError::TooLong(_))
    ));
}

#[test]
fn direct_chats_know_their_other_spelling() {
    let key = SessionKey::parse("agent:main:telegram:acct:direct:7:thread:3").unwrap();
    assert_eq!(key.as_str(), "agent:main:telegram:acct:dm:7:thread:3");
    assert_eq!(key.direct_spelling().as_deref(), Some("agent:main:telegram:acct:direct:7:thread:3"));
    assert!(key.has_spellings());
    for other in ["agent:main:main", "agent:main:telegram:group:dm:7", "agent:main:subagent:dm:7", "global"] {
        let key = SessionKey::parse(other).unwrap();
        assert_eq!((key.direct_spelling(), key.has_spellings()), (None, false), "{other}");
    }
}

/// Decision 1: a key is told as it is stored, and both spellings are one session.
#[test]
fn a_key_is_told_as_it_is_spelled_and_is_the_same_in_either_spelling() {
    let (dm, direct) = (key("agent:main:telegram:dm:7"), key(" Agent:main:Telegram:direct:7"));
    let spelled = "agent:main:telegram:direct:7";
    assert_eq!((direct.as_str(), direct.rest(), direct.spelled()), (dm.as_str(), "telegram:dm:7", spelled));
    assert_eq!((dm.spelled(), key("agent:main:main").spelled()), (dm.as_str(), "agent:main:main"));
    assert_eq!((&dm, dm.cmp(&direct)), (&direct, std::cmp::Ordering::Equal));
    let both: std::collections::HashSet<SessionKey> = [dm.clone(), direct.clone()].into_iter().collect();
    assert_eq!(both.len(), 1);

    assert_eq!((direct.to_string().as_str(), direct.shown()), (spelled, spelled));
    let json = serde_json::to_string(&direct).unwrap();
    assert_eq!(json, format!("\"{spelled}\""));
    let read: SessionKey = serde_json::from_str(&json).unwrap();
    assert_eq!((&read, read.spelled()), (&dm, spelled));
    assert_eq!(direct.spelled_anew().spelled(), dm.as_str());
}

#[test]
fn a_key_takes_the_spelling_of_its_row_alone() {
    let rows = [
        ("agent:main:telegram:direct:7", "agent:main:telegram:direct:7"),
        ("agent:main:telegram:dm:7", "agent:main:telegram:dm:7"),
        ("agent:main:Telegram:direct:7", "agent:main:telegram:dm:7"),
        ("agent:main:telegram:direct:8", "agent:main:telegram:dm:7"),
        ("telegram:direct:7", "agent:main:telegram:dm:7"),
        ("", "agent:main:telegram:dm:7"),
    ];
    for (stored, expect) in rows {
        for spelling in ["dm", "direct"] {
            let key = key(&format!("agent:main:telegram:{spelling}:7")).spelled_as(&Arc::from(stored));
            assert_eq!(key.spelled(), expect, "{stored}");
        }
    }
    let main = SessionKey::global().spelled_as(&Arc::from("agent:main:main"));
    assert_eq!(main.spelled(), "global");
}

#[test]
fn what_a_key_says_of_its_session_is_told_by_where_the_word_stands() {
    assert!(key("agent:main:SubAgent:1-2").is_subagent() && key("agent:main:subagent:group:1").is_subagent());
    for other in [
        "agent:main:discord:group:subagent",
        "agent:main:discord:group:subagent:1",
        "agent:main:telegram:dm:subagent:1",
        "agent:subagent:main",
        "agent:main:subagent",
        "agent:main:main",
        "global",
    ] {
        assert!(!key(other).is_subagent(), "{other}");
    }
    assert!(key("agent:main:cron:j:run:5").is_cron_run() && !key("agent:main:cron:j").is_cron_run());
    assert!(!key("agent:main:slack:channel:cron:j:run:5").is_cron_run());
    let kinds = |text| (key(text).is_group(), key(text).is_room());
    assert_eq!(kinds("agent:main:slack:channel:c"), (true, true));
    assert_eq!(kinds("agent:main:telegram:group:1:topic:2"), (true, false));
    assert_eq!(kinds("agent:main:telegram:dm:1"), (false, false));
}

#[test]
fn only_the_main_session_and_direct_chats_are_private() {
    let rows = [
        ("agent:main:main", true),
        ("agent:work:main", true),
        ("agent:main:dm:123", true),
        ("agent:main:telegram:dm:123", true),
        ("agent:main:telegram:direct:123", true),
        ("agent:main:telegram:acc:dm:group", true),
        ("agent:main:telegram:dm:123:thread:9", false),
        ("agent:main:telegram:group:1", false),
        ("agent:main:telegram:group:dm:1", false),
        ("agent:main:slack:channel:c1", false),
        ("agent:main:side", false),
        ("agent:main:subagent:x", false),
        ("agent:main:subagent:dm:1", false),
        ("agent:main:cron:job", false),
        ("agent:main:cron:dm:1", false),
        ("agent:main:hook:gmail:m1", false),
        ("agent:main:node-abc", false),
        ("global", false),
    ];
    for (text, expect) in rows {
        assert_eq!(key(text).is_private("main"), expect, "{text}");
    }
    assert!(key("agent:main:work").is_private("Work") && !key("agent:main:main").is_private("work"));
    assert!(!SessionKey::global().is_private("global"), "everybody shares it");
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = SessionKey::parse(&text);
        let _ = thread_parent(&text);
        let _ = KeyShape::of(&text);
    }
}
