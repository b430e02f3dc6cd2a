//! Directives: commands that may stand among words (spec `messages.md` §4). What is nothing but directives is kept in the session's
//! row, all of it or nothing; among words they are hints for the run of their message.

use openclaw_journal::intent::{Hints, StoredDirective};
use openclaw_models::ModelRef;
use openclaw_sessions::store::Edit;

use super::command::Does;
use super::directive::{Directive, DirectiveReading, DirectiveResult, RowChange, Wished};
use super::model::{ModelWish, choose};
use super::table;
use super::{COMMANDS, CommandContext, CommandError, model, think};

/// The directives among the commands, with their names, in the order of the table.
fn all() -> impl Iterator<Item = (&'static str, &'static Directive)> {
    COMMANDS.iter().filter_map(|command| match &command.does {
        Does::Directive(directive) => Some((command.name, directive)),
        Does::Answers(_) | Does::Shows(_) | Does::Resets | Does::Stops | Does::Compacts | Does::Missing => {
            None
        }
    })
}

/// Cuts all directives out of a text, each from the rest of the one before; returns them with the rest of the text.
pub(crate) fn take_all(
    text: &str,
    reading: DirectiveReading,
    aliases: &[&str],
) -> (Vec<StoredDirective>, String) {
    let mut rest = text.to_owned();
    let mut wishes = Vec::new();
    for (name, directive) in all() {
        let Some((arguments, left)) = (directive.take)(&rest, reading, aliases) else { continue };
        wishes.push(StoredDirective { name: name.to_owned(), arguments });
        rest = left;
    }
    (wishes, rest)
}

/// True if a directive counts only if the agent is addressed.
pub(crate) fn needs_mention(wish: &StoredDirective) -> bool {
    find(&wish.name).is_some_and(|directive| (directive.needs_mention)(&wish.arguments))
}

/// Collects what directives ask for the run of their message.
pub(crate) fn hints(wishes: &[StoredDirective]) -> Hints {
    let mut hints = Hints::default();
    for wish in wishes {
        if let Some(directive) = find(&wish.name) {
            (directive.hint)(&wish.arguments, &mut hints);
        }
    }
    hints
}

fn find(name: &str) -> Option<&'static Directive> {
    all().find(|(of, _)| *of == name).map(|(_, directive)| directive)
}

/// Carries out a message of directives in one change of the session's row, and returns the answer.
/// If one directive can't be done, none is.
pub async fn settle(
    context: &CommandContext<'_>,
    wishes: &[StoredDirective],
) -> Result<String, CommandError> {
    let chosen = chosen_model(context, wishes).await;
    let mut all = Vec::new();
    for StoredDirective { name, arguments } in wishes {
        let command = table::named(name);
        if let Some(refusal) = command.and_then(|command| table::refusal(context, command, arguments)) {
            all.push(DirectiveResult::refused(refusal));
            continue;
        }
        let settled = match command.map(|command| command.does) {
            Some(Does::Directive(directive)) => {
                let wished = Wished { context, argument: arguments, chosen: chosen.as_ref() };
                (directive.settle)(wished).await?
            }
            Some(Does::Answers(run)) => DirectiveResult::told(run(context, arguments).await?),
            Some(Does::Shows(run)) => DirectiveResult::told(run(context, arguments).await?.text),
            Some(Does::Resets | Does::Stops | Does::Compacts | Does::Missing) | None => {
                DirectiveResult::told(table::not_there(name))
            }
        };
        all.push(settled);
    }
    let asks_to_think = wishes.iter().any(|wish| wish.name == think::NAME);
    if let Some(model) = chosen.as_ref().filter(|_| !asks_to_think) {
        all.extend(downgrade(context, model));
    }
    if all.iter().any(|settled| settled.is_refusal) {
        all.retain(|settled| settled.is_refusal);
        return Ok(joined(&all));
    }
    let text = joined(&all);
    let (changes, tells): (Vec<_>, Vec<_>) = all.into_iter().map(|one| (one.change, one.tells)).unzip();
    let changes: Vec<RowChange> = changes.into_iter().flatten().collect();
    if !changes.is_empty() {
        let change = Box::new(move |edit: Edit<'_>| {
            for change in changes {
                change(edit.entry);
            }
            edit.entry.touch(edit.now);
            Ok(())
        });
        context.services.store.update(context.key, change).await?;
    }
    for (text, about) in tells.into_iter().flatten() {
        context.services.models.tell(context.key, &text, &about);
    }
    Ok(text)
}

/// Returns the model that a message of directives chooses, if it chooses one.
async fn chosen_model(context: &CommandContext<'_>, wishes: &[StoredDirective]) -> Option<ModelRef> {
    let wish = wishes.iter().find(|wish| wish.name == model::NAME)?;
    let ModelWish::Choose(asked) = ModelWish::of(&wish.arguments) else { return None };
    let choices = context.choices().await;
    let chosen = choose(&context.services.models.all, &choices, context.agent, &asked).await;
    chosen.ok().map(|chosen| chosen.model)
}

/// Lowers the session's level to the nearest one that the chosen model has.
fn downgrade(context: &CommandContext<'_>, model: &ModelRef) -> Option<DirectiveResult> {
    let is_lost = context.entry.thinking_level.as_deref() == Some("xhigh") && !think::has_xhigh(model);
    let says = format!("Thinking level set to high (xhigh not supported for {model}).");
    is_lost.then(|| DirectiveResult::changed(says, |entry| entry.thinking_level = Some("high".into())))
}

/// Joins all answers: on one line, unless one of them has several lines.
fn joined(all: &[DirectiveResult]) -> String {
    let texts: Vec<&str> = all.iter().map(|settled| settled.says.as_str()).collect();
    let has_lines = texts.iter().any(|text| text.contains('\n'));
    texts.join(if has_lines { "\n\n" } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of the rows is that of OpenClaw: what one directive leaves is the text of the next.
    #[test]
    fn directives_are_cut_out_in_a_fixed_order() {
        let names: Vec<&str> = all().map(|(name, _)| name).collect();
        assert_eq!(names, ["think", "verbose", "reasoning", "elevated", "exec", "model", "queue"]);
    }

    /// Vectors of `messages.md` §4.
    #[test]
    fn directives_are_cut_out() {
        let rows = [
            ("please /think:high do", "please do", vec![("think", "high")]),
            ("/t medium", "", vec![("think", "medium")]),
            ("/think", "", vec![("think", "")]),
            ("/think xyz", "", vec![("think", "xyz")]),
            ("/think max stop", "stop", vec![("think", "max")]),
            ("/think x-high", "", vec![("think", "x-high")]),
            ("/think extra high", "", vec![("think", "extra high")]),
            ("/v offline", "", vec![("verbose", "offline")]),
            ("/reason on please", "please", vec![("reasoning", "on")]),
            ("/elev full", "", vec![("elevated", "full")]),
            ("/elevated ask x", "x", vec![("elevated", "ask")]),
            ("/exec host=bogus", "", vec![("exec", "host=bogus")]),
            ("please /exec now", "please now", vec![("exec", "")]),
            ("/model gpt-5@work:profile hi", "hi", vec![("model", "gpt-5@work:profile")]),
            ("hey /model: opus please", "hey please", vec![("model", "opus")]),
            ("say /opus hello", "say hello", vec![("model", "opus")]),
            (
                "/queue steer /think high /v full",
                "",
                vec![("think", "high"), ("verbose", "full"), ("queue", "steer")],
            ),
            ("/think low and /think high", "and", vec![("think", "low")]),
            ("/THINK HIGH", "", vec![("think", "HIGH")]),
        ];
        for (text, left, expect) in rows {
            let (wishes, rest) = take_all(text, DirectiveReading::Alone, &["opus"]);
            let wishes: Vec<_> =
                wishes.iter().map(|wish| (wish.name.as_str(), wish.arguments.as_str())).collect();
            assert_eq!((wishes, rest.as_str()), (expect, left), "{text}");
        }
        for text in ["/thinkstuff", "prefix/think high", "think high", "max", "on we go", "/t/high", ""] {
            assert_eq!(
                take_all(text, DirectiveReading::Alone, &["opus"]),
                (Vec::new(), text.to_owned()),
                "{text}"
            );
        }
    }

    /// Checks that a word that is no level stays with the agent.
    #[test]
    fn among_words_only_what_can_be_done_is_cut_out() {
        let rows = [
            ("/think about it", "/think about it"),
            ("what does /think do?", "what does /think do?"),
            ("/think on it", "it"),
            ("/v offline please", "/v offline please"),
            ("please /model", "please /model"),
            ("what is /model status", "what is /model status"),
            ("/queue default collect", "collect"),
            ("/queue is full", "/queue is full"),
            ("/exec run ls", "/exec run ls"),
        ];
        for (text, expect) in rows {
            assert_eq!(take_all(text, DirectiveReading::Among, &[]).1, expect, "{text}");
        }
    }
}
