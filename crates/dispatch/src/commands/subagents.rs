//! `/subagents`: the agents that a session started (spec `messages.md` §5). None can be started yet.

use super::table::{Category, Command, Does, Takes};
use super::{Answering, Context};

pub(super) const COMMAND: Command =
    Command::new("subagents", Category::Management, Does::Answers(run), "List and steer sub-agents.")
        .taking(Takes::Words, "list|stop <id>|log <id>|info <id>|send <id> <message>|help");

const NONE: &str = "🧭 Subagents: none for this session.";
const HELP: &str = "🧭 Subagents\nUsage:\n- /subagents list\n- /subagents stop <id|#|all>\n- /subagents log <id|#> [limit] [tools]\n\
                    - /subagents info <id|#>\n- /subagents send <id|#> <message>\n\n\
                    Sub-agents can't be started yet in this version, so there are none.";

fn run<'a>(_: &'a Context<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move { Ok(text(arguments)) })
}

fn text(arguments: &str) -> String {
    let mut words = arguments.split_whitespace();
    let action = words.next().unwrap_or("list").to_lowercase();
    match (action.as_str(), words.next()) {
        ("list", _) | ("stop", Some("all")) => NONE.to_owned(),
        ("stop" | "log" | "info" | "send", None) => {
            let more = if action == "send" { " <message>" } else { "" };
            format!("🧭 Usage: /subagents {action} <id|#>{more}")
        }
        ("stop" | "log" | "info" | "send", Some(id)) => {
            format!("⚠️ Unknown subagent id: {id}. Sub-agents can't be started yet in this version.")
        }
        _ => HELP.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_none() {
        for list in ["", "list", "LIST", "stop all"] {
            assert_eq!(text(list), "🧭 Subagents: none for this session.", "{list:?}");
        }
        assert_eq!(text("stop"), "🧭 Usage: /subagents stop <id|#>");
        assert_eq!(text("send"), "🧭 Usage: /subagents send <id|#> <message>");
        assert!(text("log 1").starts_with("⚠️ Unknown subagent id: 1."));
        assert!(text("help").starts_with("🧭 Subagents\nUsage:") && text("what") == text("help"));
    }
}
