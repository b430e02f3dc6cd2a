use openclaw_journal::intent::{ModelHint, Reasoning};
use openclaw_journal::queue::QueueWish;
use openclaw_models::settings::ListedModel;

use openclaw_config::settings::QueueMode;
use openclaw_models::ThinkingLevel;
use openclaw_sessions::entry::{ElevatedLevel, VerboseLevel};

use super::*;

fn names() -> ModelNames {
    let rows = [("local/llama", "fast"), ("local/other", "status"), ("local/third", "Fresh")];
    let listed = rows.map(|(key, alias)| ListedModel {
        key: key.to_owned(),
        alias: Some(alias.to_owned()),
        ..ListedModel::default()
    });
    ModelNames::new(&listed)
}

fn said(text: &str, attached: bool, may_command: bool) -> Intent {
    read_as(Spoken { attached, may_command, ..Spoken::words(text) })
}

fn read_as(spoken: Spoken<'_>) -> Intent {
    let names = names();
    read(spoken, KnownNames { models: &names, triggers: &["/new", "/fresh"], skills: &[] })
}

fn command(name: &str, arguments: &str) -> Intent {
    Intent::Command { name: name.to_owned(), arguments: arguments.to_owned() }
}

fn with(hints: Hints, text: &str) -> Intent {
    Intent::PromptFor { hints, text: text.to_owned() }
}

fn settings(wishes: &[(&str, &str)]) -> Intent {
    let wish = |(name, arguments): &(&str, &str)| StoredDirective {
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Intent::Settings { wishes: wishes.iter().map(wish).collect() }
}

fn with_shortcut(name: &str, text: &str) -> Intent {
    with(Hints { shortcuts: vec![name.to_owned()], ..Hints::default() }, text)
}

fn with_model(model: &str, text: &str) -> Intent {
    let choice = ModelHint { model: model.to_owned(), profile: None };
    Intent::PromptFor { hints: Hints { model: Some(choice), ..Hints::default() }, text: text.to_owned() }
}

/// Spec `messages.md` §4.
#[test]
fn wishes_alone_are_settings_and_wishes_among_words_are_with_model() {
    let rows = [
        ("/model x/y", command("model", "x/y")),
        (" /model: x ", command("model", "x")),
        ("/fast", command("model", "fast")),
        ("/model", command("model", "")),
        ("/model x do it", with_model("x", "do it")),
        ("do it /fast now", with_model("fast", "do it now")),
        ("/models", command("models", "")),
        ("[Chat Bob] Bob: /models", command("models", "")),
        ("/compact keep [TODO] and Decisions: x", command("compact", "keep [TODO] and Decisions: x")),
        ("/help\nmore", command("help", "")),
        // Wrappings that other programs put around a message are not the sender's words.
        ("[Chat Bob Thu 10:00] /model x", command("model", "x")),
        // Talk about it.
        ("please /model", Intent::Prompt),
        ("what is /model status", Intent::Prompt),
        ("see /models", Intent::Prompt),
        // Names that mean something else.
        ("/status", command("status", "")),
        ("[Chat Bob] Bob: /status", command("status", "")),
        ("/status please", with_shortcut("status", "please")),
        ("/fresh", Intent::Prompt),
        ("/etc/passwd", Intent::Prompt),
        ("no wishes", Intent::Prompt),
        ("a/b", Intent::Prompt),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, true), expect, "{text:?}");
    }
}

#[test]
fn a_message_with_an_image_is_never_for_the_gateway_alone() {
    assert_eq!(said("/model x", true, true), with_model("x", ""));
    assert_eq!(said("/model", true, true), Intent::Prompt);
    assert_eq!(
        said("/think high", true, true),
        with(Hints { thinking: Some(ThinkingLevel::High), ..Hints::default() }, "")
    );
    assert_eq!(said("/models", true, true), Intent::Prompt);
    assert_eq!(said("/help", true, true), with_shortcut("help", ""));
}

#[test]
fn who_may_not_give_commands_has_no_wishes() {
    let rows = [
        ("/model x", Intent::Ignored),
        ("/models", Intent::Ignored),
        ("/help", Intent::Ignored),
        ("/new", Intent::Ignored),
        ("/fresh: hello", Intent::Ignored),
        ("/stop", Intent::Ignored),
        ("/stop\nnow", Intent::Ignored),
        ("/stop now", Intent::Prompt),
        ("stop", Intent::Prompt),
        ("/freshly made", Intent::Prompt),
        ("do it /model x now", Intent::Stripped { text: "do it now".to_owned() }),
        ("do it", Intent::Prompt),
        ("!important news", Intent::Prompt),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, false), expect, "{text:?}");
    }
}

/// Spec `messages.md` §4.
#[test]
fn several_directives_are_settings_alone_and_hints_among_words() {
    let queue = QueueWish { mode: Some(QueueMode::Steer), ..QueueWish::default() };
    let all = Hints {
        model: Some(ModelHint { model: "fast".to_owned(), profile: None }),
        queue: Some(queue),
        thinking: Some(ThinkingLevel::High),
        verbose: Some(VerboseLevel::Full),
        reasoning: Some(Reasoning::On),
        exec: None,
        elevated: None,
        shortcuts: Vec::new(),
    };
    let rows = [
        ("/t high", command("think", "high")),
        ("/think: high", command("think", "high")),
        ("/thinking", command("think", "")),
        ("/think xyz", command("think", "xyz")),
        ("[Chat Bob] Bob: /v on", command("verbose", "on")),
        ("/elevated full", command("elevated", "full")),
        ("/exec host=node ask=off", command("exec", "host=node ask=off")),
        ("/exec hots=gateway", command("exec", "hots=gateway")),
        ("/exec reset", command("exec", "reset")),
        ("/exec ls -la", command("exec", "ls -la")),
        ("/queue steer debounce:2s cap:3", command("queue", "steer debounce:2s cap:3")),
        ("/queue bogus", command("queue", "bogus")),
        ("/v full /t high", settings(&[("think", "high"), ("verbose", "full")])),
        ("/fast /queue steer", settings(&[("model", "fast"), ("queue", "steer")])),
        (
            "/think high and tell me",
            with(Hints { thinking: Some(ThinkingLevel::High), ..Hints::default() }, "and tell me"),
        ),
        ("do /fast /t high /v full /reason on /queue steer it", with(all, "do it")),
        ("/queue reset now", with(Hints::default(), "now")),
        (
            "/elevated full do it",
            with(Hints { elevated: Some(ElevatedLevel::Full), ..Hints::default() }, "do it"),
        ),
        // A word that is no level stays, and so does talk about directives.
        ("/think about it", Intent::Prompt),
        ("what does /think do?", Intent::Prompt),
        ("max, what do you think", Intent::Prompt),
        ("low tide today", Intent::Prompt),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, true), expect, "{text:?}");
    }
    let rows = [
        ("/think high", Intent::Ignored),
        ("/v full /t high", Intent::Ignored),
        ("do /t high it", Intent::Stripped { text: "do it".to_owned() }),
        ("/elevated full do it", Intent::Stripped { text: "do it".to_owned() }),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, false), expect, "{text:?}");
    }
}

/// Checks that a message in a group that does not address the agent can't give more rights.
#[test]
fn a_group_has_to_speak_to_the_agent_for_more_rights() {
    let said = |text| read_as(Spoken { is_addressed: false, ..Spoken::words(text) });
    let rows = [
        ("/elevated full", Intent::Ignored),
        ("/elevated", Intent::Ignored),
        ("/elevated off", command("elevated", "off")),
        ("/exec host=node", Intent::Ignored),
        ("/exec security=deny", command("exec", "security=deny")),
        ("/think high", command("think", "high")),
        ("/think high /elevated full", command("think", "high")),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text), expect, "{text}");
    }
}

/// `commands.text: false` on a platform with a menu of its own.
#[test]
fn without_text_commands_the_menu_and_directives_work() {
    assert_eq!(TextCommands::on("telegram", Some(false)), TextCommands::Native);
    assert_eq!(TextCommands::on("telegram", Some(true)), TextCommands::All);
    assert_eq!(TextCommands::on("telegram", None), TextCommands::All);
    assert_eq!(TextCommands::on("webchat", Some(false)), TextCommands::All);
    let said = |text| read_as(Spoken { commands: TextCommands::Native, ..Spoken::words(text) });
    let rows = [
        ("/allowlist add 5", Intent::Prompt),
        ("/compact", command("compact", "")),
        ("/models", command("models", "")),
        ("/think high", command("think", "high")),
        ("/model x", command("model", "x")),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text), expect, "{text}");
    }
}
