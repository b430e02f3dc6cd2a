use openclaw_models::settings::ListedModel;

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

fn said(text: &str, attached: bool, by: Authority) -> Intent {
    let names = names();
    read(Spoken { text, attached, by }, Names { models: &names, triggers: &["/new", "/fresh"], skills: &[] })
}

fn command(name: &str, arguments: &str) -> Intent {
    Intent::Command { name: name.to_owned(), arguments: arguments.to_owned() }
}

fn with_model(model: &str, text: &str) -> Intent {
    let choice = ModelChoice { model: model.to_owned(), profile: None };
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
        // What other programs wrap a message in is no word of the sender's.
        ("[Chat Bob Thu 10:00] /model x", command("model", "x")),
        // Talk about it.
        ("please /model", Intent::Prompt),
        ("what is /model status", Intent::Prompt),
        ("see /models", Intent::Prompt),
        // Names that mean something else.
        ("/status", command("status", "")),
        ("[Chat Bob] Bob: /status", command("status", "")),
        ("/status please", Intent::Prompt),
        ("/fresh", Intent::Prompt),
        ("/etc/passwd", Intent::Prompt),
        ("no wishes", Intent::Prompt),
        ("a/b", Intent::Prompt),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, Authority::Granted), expect, "{text:?}");
    }
}

#[test]
fn a_message_with_an_image_is_never_for_the_gateway_alone() {
    assert_eq!(said("/model x", true, Authority::Granted), with_model("x", ""));
    assert_eq!(said("/model", true, Authority::Granted), Intent::Prompt);
    assert_eq!(said("/models", true, Authority::Granted), Intent::Prompt);
    assert_eq!(said("/help", true, Authority::Granted), Intent::Prompt);
}

#[test]
fn who_may_not_give_commands_has_no_wishes() {
    let rows = [
        ("/model x", Intent::Ignored),
        ("/models", Intent::Ignored),
        ("/help", Intent::Ignored),
        ("do it /model x now", Intent::Stripped { text: "do it now".to_owned() }),
        ("do it", Intent::Prompt),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, Authority::Denied), expect, "{text:?}");
    }
}
