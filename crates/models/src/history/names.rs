//! Names of tools in recorded calls, as every provider takes them: letters, digits, `_` and `-`, up to 64. Providers refuse the whole
//! request for another one, with every further message.

use std::sync::Arc;

use openclaw_protocol::message::{Block, Message};

const LONGEST: usize = 64;
/// The name of a call that has none.
const UNNAMED: &str = "unknown";

/// Rewrites the names that are not so, in calls and results alike. Only messages that change are copied.
pub(super) fn mend(messages: &mut [Arc<Message>]) {
    for message in messages {
        let is_well = match &**message {
            Message::User(_) => true,
            Message::Assistant(answer) => answer.tool_calls().all(|call| is_name(&call.name)),
            Message::ToolResult(result) => is_name(&result.tool_name),
        };
        if is_well {
            continue;
        }
        match Arc::make_mut(message) {
            Message::User(_) => {}
            Message::Assistant(answer) => {
                for block in &mut answer.content {
                    if let Block::ToolCall(call) = block {
                        rewrite(&mut call.name);
                    }
                }
            }
            Message::ToolResult(result) => rewrite(&mut result.tool_name),
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.chars().all(is_of_name)
}

fn rewrite(name: &mut String) {
    if !is_name(name) {
        let fits = name.trim().chars().map(|c| if is_of_name(c) { c } else { '_' }).take(LONGEST);
        *name = Some(fits.collect())
            .filter(|name: &String| !name.is_empty())
            .unwrap_or_else(|| UNNAMED.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::message::{AssistantMessage, ToolCall, ToolResultMessage};
    use proptest::prelude::*;

    use super::*;

    fn mended(name: &str) -> (String, String) {
        let call = ToolCall { name: name.to_owned(), ..ToolCall::default() };
        let content = vec![Block::ToolCall(call)];
        let answer = Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
        let result = ToolResultMessage { tool_name: name.to_owned(), ..ToolResultMessage::default() };
        let mut messages = vec![Arc::new(answer), Arc::new(Message::ToolResult(result))];
        mend(&mut messages);
        match (&*messages[0], &*messages[1]) {
            (Message::Assistant(answer), Message::ToolResult(result)) => {
                (answer.tool_calls().next().unwrap().name.clone(), result.tool_name.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_that_providers_refuse_is_rewritten_in_call_and_result() {
        let long = "x".repeat(65);
        let rows = [
            ("read", "read"),
            ("", "unknown"),
            ("  ", "unknown"),
            ("functions.read:0", "functions_read_0"),
            ("lire le fichier", "lire_le_fichier"),
            ("öffnen", "_ffnen"),
            (long.as_str(), &long[..64]),
        ];
        for (name, expect) in rows {
            assert_eq!(mended(name), (expect.to_owned(), expect.to_owned()), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_fits(name in "\\PC{0,80}") {
            let (call, result) = mended(&name);
            prop_assert!(is_name(&call));
            prop_assert_eq!(call, result);
        }
    }
}
