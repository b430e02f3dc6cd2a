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

fn said(text: &str, attached: bool, by: Authority) -> Said {
    let names = names();
    read(Spoken { text, attached, by }, Names { models: &names, triggers: &["/new", "/fresh"] })
}

fn choose(model: &str) -> Wishes {
    Wishes { model: ModelWish::Choose { model: model.to_owned(), profile: None } }
}

fn hints(model: &str, text: &str) -> Said {
    Said::Hints { wishes: choose(model), text: text.to_owned() }
}

/// Spec `messages.md` §4.
#[test]
fn wishes_alone_are_settings_and_wishes_among_words_are_hints() {
    let show = Said::Settings(Wishes { model: ModelWish::Show });
    let rows = [
        ("/model x/y", Said::Settings(choose("x/y"))),
        (" /model: x ", Said::Settings(choose("x"))),
        ("/fast", Said::Settings(choose("fast"))),
        ("/model", show),
        ("/model x do it", hints("x", "do it")),
        ("do it /fast now", hints("fast", "do it now")),
        ("/models", Said::Models(PageAsked::default())),
        ("[Chat Bob] Bob: /models", Said::Models(PageAsked::default())),
        // What other programs wrap a message in is no word of the sender's.
        ("[Chat Bob Thu 10:00] /model x", Said::Settings(choose("x"))),
        // Talk about it.
        ("please /model", Said::Words),
        ("what is /model status", Said::Words),
        ("see /models", Said::Words),
        // Names that mean something else.
        ("/status", Said::NotThere("status")),
        ("[Chat Bob] Bob: /status", Said::NotThere("status")),
        ("/status please", Said::Words),
        ("/fresh", Said::Words),
        ("/etc/passwd", Said::Words),
        ("no wishes", Said::Words),
        ("a/b", Said::Words),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, Authority::Granted), expect, "{text:?}");
    }
}

#[test]
fn a_message_with_an_image_is_never_for_the_gateway_alone() {
    assert_eq!(said("/model x", true, Authority::Granted), hints("x", ""));
    assert_eq!(said("/model", true, Authority::Granted), Said::Words);
    assert_eq!(said("/models", true, Authority::Granted), Said::Words);
    assert_eq!(said("/help", true, Authority::Granted), Said::Words);
}

#[test]
fn who_may_not_give_commands_has_no_wishes() {
    let rows = [
        ("/model x", Said::Ignored),
        ("/models", Said::Ignored),
        ("/help", Said::Ignored),
        ("do it /model x now", Said::Stripped("do it now".to_owned())),
        ("do it", Said::Words),
    ];
    for (text, expect) in rows {
        assert_eq!(said(text, false, Authority::Denied), expect, "{text:?}");
    }
}
