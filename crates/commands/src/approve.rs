//! `/approve ⟨id⟩ allow-once|allow-always|deny`: decides on a command that waits for a person's word.

use openclaw_journal::source::RequestSource;
use openclaw_tools::approvals::{Decision, NotResolved};

use super::command::{Category, ChatCommand, Does, Takes};
use super::{Answering, CommandContext};

pub(crate) const COMMAND: ChatCommand = ChatCommand::new(
    "approve",
    Category::Management,
    Does::Answers(run),
    "Decide about a command that asks first.",
)
.taking(Takes::Words, "<id> allow-once|allow-always|deny");

const USAGE: &str = "Usage: /approve <id> allow-once|allow-always|deny";
const GONE: &str =
    "It was decided, its time is up, or the gateway was started anew since: it forgets what waits then.";
const MAY_NOT: &str = "❌ /approve requires operator.approvals for gateway clients.";

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let Some((id, decision)) = read(arguments) else { return Ok(USAGE.to_owned()) };
        let request = &context.row.payload;
        let by = match &request.source {
            RequestSource::Platform(platform) => {
                let (sender, origin) = (&platform.origin.sender, &platform.origin);
                let name = sender.name.as_deref().or(sender.username.as_deref()).unwrap_or(&sender.id);
                format!("{name} ({})", origin.address.channel)
            }
            RequestSource::Client(client) if client.rights.may_approve => {
                client.name.clone().unwrap_or_else(|| "a client".to_owned())
            }
            _ => return Ok(MAY_NOT.to_owned()),
        };
        Ok(match context.services.approvals.resolve(id, decision, Some(&by)) {
            Ok(_) => format!("✅ Exec approval {} submitted for {id}.", decision.as_str()),
            Err(error @ NotResolved::Unknown) => format!("❌ Failed to submit approval: {error}. {GONE}"),
            Err(error @ (NotResolved::Ambiguous | NotResolved::Forgotten)) => {
                format!("❌ Failed to submit approval: {error}")
            }
        })
    })
}

/// The id and the decision, in either order.
fn read(arguments: &str) -> Option<(&str, Decision)> {
    let mut words = arguments.split_whitespace();
    let (first, second) = (words.next()?, words.next()?);
    let of = |id, word: &str| Some((id, named(word)?));
    of(first, second).or_else(|| of(second, first)).filter(|_| words.next().is_none())
}

fn named(word: &str) -> Option<Decision> {
    match word.to_lowercase().as_str() {
        "allow" | "once" | "allow-once" | "allowonce" => Some(Decision::AllowOnce),
        "always" | "allow-always" | "allowalways" => Some(Decision::AllowAlways),
        "deny" | "reject" | "block" => Some(Decision::Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_and_the_decision_stand_in_either_order() {
        let rows = [
            ("abc allow-once", Some(("abc", Decision::AllowOnce))),
            ("ALLOW abc", Some(("abc", Decision::AllowOnce))),
            ("abc once", Some(("abc", Decision::AllowOnce))),
            ("abc always", Some(("abc", Decision::AllowAlways))),
            ("allow-always abc", Some(("abc", Decision::AllowAlways))),
            ("abc deny", Some(("abc", Decision::Deny))),
            ("reject abc", Some(("abc", Decision::Deny))),
            ("abc block", Some(("abc", Decision::Deny))),
            ("abc maybe", None),
            ("abc", None),
            ("", None),
            ("abc deny now", None),
        ];
        for (arguments, expect) in rows {
            assert_eq!(read(arguments), expect, "{arguments}");
        }
    }
}
