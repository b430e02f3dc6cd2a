//! From stored history to what a provider accepts: a pure function, run before every model call
//! (spec `agent-runtime.md` §9). Nothing here changes the transcript.
//!
//! The order is §9.2's, with the history limit before the merging of roles so that it counts turns as people sent them.

pub mod call_ids;
pub mod caps;
pub mod history;
pub mod pairing;
mod policy;
pub mod roles;

use std::num::NonZeroU32;

use openclaw_protocol::message::Message;
use openclaw_protocol::message::cap::STORED;

#[cfg(test)]
mod tests;

pub use policy::{CallIds, Policy};

/// Prepares a branch for a model.
pub fn prepare(messages: Vec<Message>, policy: &Policy, limit: Option<NonZeroU32>) -> Vec<Message> {
    let mut messages = messages;
    cap_tool_results(&mut messages);
    if policy.drop_blank {
        roles::drop_blank(&mut messages);
    }
    roles::drop_calls_without_arguments(&mut messages);
    let messages = pairing::repair(messages);
    let messages = match limit {
        Some(limit) => history::keep_last_turns(messages, limit),
        None => messages,
    };
    let mut messages = roles::without_failed_answers(messages);
    if policy.merge_assistants {
        messages = roles::merge_assistants(messages);
    }
    messages = roles::merge_users(messages, policy.join);
    match policy.call_ids {
        CallIds::Keep => {}
        CallIds::Strict => call_ids::rewrite(&mut messages, call_ids::Form::Strict),
        CallIds::Strict9 => call_ids::rewrite(&mut messages, call_ids::Form::Strict9),
    }
    messages
}

/// Results of our own tools were cut when they were stored; those of other programs that write transcripts may not be.
fn cap_tool_results(messages: &mut [Message]) {
    for message in messages {
        if let Message::ToolResult(result) = message {
            STORED.apply(result);
        }
    }
}
