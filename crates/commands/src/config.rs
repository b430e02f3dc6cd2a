//! `/config show|get|set|unset`: the config file from a chat (spec `messages.md` §5). Secrets are not shown.

use openclaw_config::write::{Actor, WriteError, set_value, unset_value};
use openclaw_config::{Environment, Issue, Loaded, load, value_path};
use openclaw_journal::caller::Right;

use super::command::{Category, ChatCommand, Does, Takes};
use super::config_words::{ConfigPath, ConfigRequest, block, code, read, redacted};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    is_on: |commands| commands.config,
    ..ChatCommand::new(
        "config",
        Category::Management,
        Does::Answers(run),
        "Show or change the configuration.",
    )
    .taking(Takes::Words, "show|get|set|unset")
    .keeping_lines()
    .needing(Right::Administer)
};

const DISABLED: &str = "⚠️ /config is disabled. Set commands.config=true to enable.";
pub(crate) const NO_GATEWAY: &str = "⚠️ The configuration can be changed from chats where a gateway runs.";
const GONE: &str = "⚠️ The configuration could not be read: try again.";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        if !context.settings.config.commands.config {
            return Ok(DISABLED.to_owned());
        }
        let wish = match read("config", arguments) {
            Ok(wish) => wish,
            Err(what) => return Ok(what),
        };
        if let Some(refusal) = matches!(wish, ConfigRequest::Set(..) | ConfigRequest::Unset(_))
            .then(|| context.writes_refused())
            .flatten()
        {
            return Ok(refusal);
        }
        let Some(around) = &context.services.surroundings else { return Ok(NO_GATEWAY.to_owned()) };
        let answer = on_disk(around.environment(), move |loaded| answer(loaded, wish)).await;
        around.reread().await;
        Ok(answer)
    })
}

/// Does something with the current config file, on a thread where waiting for the disk blocks
/// nobody.
pub(crate) async fn on_disk(
    environment: &Environment,
    work: impl FnOnce(&Loaded) -> String + Send + 'static,
) -> String {
    let environment = environment.clone();
    let work = move || work(&load(&environment));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| GONE.to_owned())
}

fn answer(loaded: &Loaded, wish: ConfigRequest) -> String {
    match wish {
        ConfigRequest::Show(place) => show(loaded, place),
        ConfigRequest::Set(place, value) => {
            let shown = redacted(&place.segments, &value);
            match set_value(loaded, &place.segments, value, Actor::Channel) {
                Ok(_) => format!("⚙️ Config updated: {}", code(&format!("{}={shown}", place.text))),
                Err(error) => refused("set", &error),
            }
        }
        ConfigRequest::Unset(place) => match unset_value(loaded, &place.segments, Actor::Channel) {
            Ok(Some(_)) => format!("⚙️ Config updated: {} removed.", code(&place.text)),
            Ok(None) => format!("⚙️ No config value found for {}.", code(&place.text)),
            Err(error) => refused("unset", &error),
        },
        ConfigRequest::Reset => String::new(),
    }
}

fn show(loaded: &Loaded, place: Option<ConfigPath>) -> String {
    let document = &loaded.snapshot.parsed;
    let Some(ConfigPath { text, segments }) = place else {
        return format!("⚙️ Config (raw):\n{}", block(&redacted(&[], document)));
    };
    match value_path::get(document, &segments) {
        Some(value) => format!("⚙️ Config {}:\n{}", code(&text), block(&redacted(&segments, value))),
        None => format!("⚙️ No config value found for {}.", code(&text)),
    }
}

pub(crate) fn refused(verb: &str, error: &WriteError) -> String {
    match error {
        WriteError::Invalid { issues } => match Issue::foremost(issues) {
            Some(issue) if issue.path.is_empty() => {
                format!("⚠️ Config invalid after {verb} ({}).", issue.message)
            }
            Some(issue) => format!("⚠️ Config invalid after {verb} ({}: {}).", issue.path, issue.message),
            None => format!("⚠️ Config invalid after {verb}."),
        },
        other => format!("⚠️ {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config_file;

    #[test]
    fn values_are_set_shown_and_taken_away_and_secrets_are_not_told() {
        let (_home, environment) = config_file(r#"{"messages": {"responsePrefix": "a"}}"#);
        let say = |text: &str| answer(&load(&environment), read("config", text).unwrap());
        let rows = [
            ("get messages.responsePrefix", "⚙️ Config `messages.responsePrefix`:\n```json\n\"a\"\n```"),
            ("set messages.responsePrefix=\"b\"", "⚙️ Config updated: `messages.responsePrefix=\"b\"`"),
            ("show messages.responsePrefix", "⚙️ Config `messages.responsePrefix`:\n```json\n\"b\"\n```"),
            ("set messages.queue.cap=1", "⚙️ Config updated: `messages.queue.cap=1`"),
            ("unset messages.queue.cap", "⚙️ Config updated: `messages.queue.cap` removed."),
            ("unset messages.queue.cap", "⚙️ No config value found for `messages.queue.cap`."),
            ("get no.such", "⚙️ No config value found for `no.such`."),
            (
                "set agents.defaults.models[openai/gpt-5.2].alias=gpt",
                "⚙️ Config updated: `agents.defaults.models[openai/gpt-5.2].alias=\"gpt\"`",
            ),
            (
                r"get agents.defaults.models.openai/gpt-5\.2.alias",
                "⚙️ Config `agents.defaults.models.openai/gpt-5\\.2.alias`:\n```json\n\"gpt\"\n```",
            ),
        ];
        for (text, expect) in rows {
            assert_eq!(say(text), expect, "{text}");
        }
        let wrong = say("set messages.queue.mode=7");
        assert!(wrong.starts_with("⚠️ Config invalid after set (messages.queue.mode: "), "{wrong}");
        let secret = say("set channels.telegram.botToken=123:abcdefgh");
        assert!(
            !secret.contains("abcdefgh") && secret.contains("`channels.telegram.botToken=\"__"),
            "{secret}"
        );
        assert!(!say("show").contains("abcdefgh"));
        assert!(!say("get channels.telegram.botToken").contains("abcdefgh"));
    }
}
