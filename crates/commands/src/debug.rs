//! `/debug show|set|unset|reset`: settings that lie over the config file until the gateway ends (spec `messages.md` §5).

use openclaw_config::{InvalidConfig, Loaded, Overrides, load};
use openclaw_journal::caller::Right;

use super::command::{Category, ChatCommand, Does, Takes};
use super::config::NO_GATEWAY;
use super::config_words::{ConfigRequest, block, code, read, redacted};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    is_on: |commands| commands.debug,
    ..ChatCommand::new(
        "debug",
        Category::Management,
        Does::Answers(run),
        "Try settings until the next start.",
    )
    .taking(Takes::Words, "show|set|unset|reset")
    .keeping_lines()
    .needing(Right::Administer)
};

const DISABLED: &str = "⚠️ /debug is disabled. Set commands.debug=true to enable.";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        if !context.settings.config.commands.debug {
            return Ok(DISABLED.to_owned());
        }
        let wish = match read("debug", arguments) {
            Ok(wish) => wish,
            Err(what) => return Ok(what),
        };
        let Some(around) = &context.services.surroundings else { return Ok(NO_GATEWAY.to_owned()) };
        let environment = around.environment().clone();
        let loaded = tokio::task::spawn_blocking(move || load(&environment)).await;
        let Ok(loaded) = loaded else {
            return Ok("⚠️ The configuration could not be read: try again.".to_owned());
        };
        let answer = answer(around.overrides(), &loaded, wish);
        around.reread().await;
        Ok(answer)
    })
}

fn answer(overrides: &Overrides, loaded: &Loaded, wish: ConfigRequest) -> String {
    match wish {
        ConfigRequest::Show(_) => match overrides.shown() {
            shown if shown.as_object().is_some_and(serde_json::Map::is_empty) => {
                "⚙️ Debug overrides: (none)".to_owned()
            }
            shown => format!("⚙️ Debug overrides (memory-only):\n{}", block(&redacted(&[], &shown))),
        },
        ConfigRequest::Set(place, value) => {
            let shown = redacted(&place.segments, &value);
            match overrides.set(loaded, &place.segments, value) {
                Ok(()) => format!("⚙️ Debug override set: {}", code(&format!("{}={shown}", place.text))),
                Err(error) => invalid(&error),
            }
        }
        ConfigRequest::Unset(place) if overrides.unset(&place.segments) => {
            format!("⚙️ Debug override removed for {}.", code(&place.text))
        }
        ConfigRequest::Unset(place) => format!("⚙️ No debug override found for {}.", code(&place.text)),
        ConfigRequest::Reset => {
            overrides.reset();
            "⚙️ Debug overrides cleared; using config on disk.".to_owned()
        }
    }
}

fn invalid(InvalidConfig { issues, .. }: &InvalidConfig) -> String {
    match issues.first() {
        Some(issue) if issue.path.is_empty() => format!("⚠️ Config invalid after set ({}).", issue.message),
        Some(issue) => format!("⚠️ Config invalid after set ({}: {}).", issue.path, issue.message),
        None => "⚠️ Config invalid after set.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config_file;

    #[test]
    fn overrides_are_told_one_by_one() {
        let (_home, environment) = config_file("{}");
        let (overrides, loaded) = (Overrides::default(), load(&environment));
        let say = |text: &str| answer(&overrides, &loaded, read("debug", text).unwrap());
        let rows = [
            ("", "⚙️ Debug overrides: (none)"),
            ("set messages.responsePrefix=x", "⚙️ Debug override set: `messages.responsePrefix=\"x\"`"),
            (
                "show",
                "⚙️ Debug overrides (memory-only):\n```json\n{\n  \"messages\": {\n    \"responsePrefix\": \"x\"\n  }\n}\n```",
            ),
            ("unset messages.responsePrefix", "⚙️ Debug override removed for `messages.responsePrefix`."),
            ("unset messages.responsePrefix", "⚙️ No debug override found for `messages.responsePrefix`."),
            ("reset", "⚙️ Debug overrides cleared; using config on disk."),
        ];
        for (text, expect) in rows {
            assert_eq!(say(text), expect, "{text}");
        }
        assert!(
            say("set messages.queue.mode=7")
                .starts_with("⚠️ Config invalid after set (messages.queue.mode: ")
        );
    }
}
