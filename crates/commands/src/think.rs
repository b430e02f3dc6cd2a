//! `/think`: how much the model thinks before it answers.

use openclaw_journal::intent::Hints;
use openclaw_models::{Ask, AskedThinking, ModelRef, SelectError, ThinkingLevel, thinking};

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::{CommandError, levels};

pub(crate) const NAME: &str = "think";
const ALIASES: &[&str] = &["thinking", "t"];
const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention: |_| false };
pub(crate) const COMMAND: ChatCommand =
    ChatCommand::new(NAME, Category::Options, Does::Directive(DIRECTIVE), "Set how much the model thinks.")
        .called(ALIASES)
        .taking(Takes::Level, "[level]")
        .offering(ArgumentMenu::Here(|context| {
            Box::pin(async {
                let model = context.current(&context.choices().await).await.0;
                options(&model).split(", ").map(str::to_owned).collect()
            })
        }));

const LEVELS: &str = "off, minimal, low, medium, high";
/// Provider whose models either think or don't, without levels.
const ON_OR_OFF: &str = "zai";

fn take(text: &str, reading: DirectiveReading, _: &[&str]) -> Option<(String, String)> {
    levels::take(text, &["thinking", "think", "t"], reading, |word| levels::thinking(word).is_some())
}

fn hint(argument: &str, hints: &mut Hints) {
    hints.thinking = levels::thinking(argument);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let model = wished.model().await;
        let Some(level) = levels::thinking(wished.argument) else {
            let options = options(&model);
            return Ok(match wished.argument {
                "" => {
                    let effective = effective(&wished, &model, stored(&wished)).await?;
                    let level = stored(&wished).unwrap_or(effective);
                    let note = without_effect(&model, level, effective).map(|note| format!("\n{note}"));
                    let note = note.unwrap_or_default();
                    DirectiveResult::told(format!(
                        "Current thinking level: {level}.\nOptions: {options}.{note}"
                    ))
                }
                other => DirectiveResult::refused(format!(
                    "Unrecognized thinking level \"{other}\". Valid levels: {options}."
                )),
            });
        };
        if level == ThinkingLevel::XHigh && !has_xhigh(&model) {
            return Ok(DirectiveResult::refused(format!(
                "Thinking level \"xhigh\" is only supported for {}.",
                spoken(&thinking::xhigh_models())
            )));
        }
        let says = match level {
            ThinkingLevel::Off => "Thinking disabled.".to_owned(),
            level => {
                // If the effect can't be told, the level is set all the same.
                let effective = effective(&wished, &model, Some(level)).await.unwrap_or(level);
                let note = without_effect(&model, level, effective).map(|note| format!(" {note}"));
                format!("Thinking level set to {level}.{}", note.unwrap_or_default())
            }
        };
        // Stored in words: nothing is the default, which may be more than none.
        Ok(DirectiveResult::changed(says, move |entry| entry.thinking_level = Some(level.as_str().into())))
    })
}

/// Returns the level that was set for the session.
fn stored(wished: &Wished<'_>) -> Option<ThinkingLevel> {
    wished.context.entry.thinking_level.as_deref().and_then(|level| level.parse().ok())
}

/// Returns a note if the level has no effect because the model does not think.
fn without_effect(model: &ModelRef, level: ThinkingLevel, effective: ThinkingLevel) -> Option<String> {
    let is_lost = level != ThinkingLevel::Off && effective == ThinkingLevel::Off;
    is_lost.then(|| format!("{model} does not think: it has no effect there."))
}

/// Returns the level that the session's next run has if this one is asked for.
async fn effective(
    wished: &Wished<'_>,
    model: &ModelRef,
    asked: Option<ThinkingLevel>,
) -> Result<ThinkingLevel, CommandError> {
    let context = wished.context;
    let reference = model.to_string();
    let ask = Ask {
        model: Some(&reference),
        thinking: asked.map_or(AskedThinking::Default, AskedThinking::Stored),
        ..Ask::new(&context.agent.id, &context.agent.agent_dir)
    };
    match context.services.models.all.describe(&context.settings.models, &ask).await {
        Ok(described) => Ok(described.thinking),
        Err(SelectError::NoXHigh) => Ok(ThinkingLevel::High),
        Err(error) => Err(error.into()),
    }
}

/// Lists the levels of a model, for people.
pub(crate) fn options(model: &ModelRef) -> String {
    match model.provider.as_str() {
        ON_OR_OFF => "off, on".to_owned(),
        _ if has_xhigh(model) => format!("{LEVELS}, xhigh"),
        _ => LEVELS.to_owned(),
    }
}

/// True if a model has the highest level.
pub(crate) fn has_xhigh(model: &ModelRef) -> bool {
    thinking::has_xhigh(model.provider.as_str(), model.model.as_str())
}

/// `a, b or c`
fn spoken(list: &str) -> String {
    list.rsplit_once(", ").map_or_else(|| list.to_owned(), |(most, last)| format!("{most} or {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `models.md` §5, `messages.md` §4.
    #[test]
    fn a_model_has_its_levels() {
        let rows = [
            ("zai/glm-4.7", "off, on"),
            ("openai/gpt-5.2", "off, minimal, low, medium, high, xhigh"),
            ("openai-codex/gpt-5.1-codex", "off, minimal, low, medium, high, xhigh"),
            ("github-copilot/gpt-5.2", "off, minimal, low, medium, high, xhigh"),
            ("fake/fake-1", LEVELS),
        ];
        for (model, expect) in rows {
            let (provider, id) = model.split_once('/').unwrap();
            let model =
                ModelRef { provider: openclaw_models::ProviderId::normalize(provider), model: id.to_owned() };
            assert_eq!(options(&model), expect);
        }
        assert_eq!(
            (spoken("a"), spoken("a, b"), spoken("a, b, c")),
            ("a".into(), "a or b".into(), "a, b or c".into())
        );
    }
}
