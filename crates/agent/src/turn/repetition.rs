//! Noticing a model that goes in circles (spec `agent-runtime.md` §2.4).

use openclaw_protocol::message::{Block, ToolCall};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Counts consecutive identical calls that had the same result: one that is repeated to see what has changed is no circle while something
/// changes.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    last: Option<MadeCall>,
    count: u32,
}

/// A call that was made.
#[derive(Debug, PartialEq)]
struct MadeCall {
    name: String,
    arguments: Value,
    /// Digest of the call's result, which may be large.
    digest: Option<[u8; 32]>,
}

impl Repetition {
    /// Counts a call with its result; how many identical ones there were in a row, this one included.
    pub(super) fn count(&mut self, call: &ToolCall, result: &[Block]) -> u32 {
        let made =
            MadeCall { name: call.name.clone(), arguments: call.arguments.clone(), digest: digest(result) };
        if self.last.as_ref() == Some(&made) {
            self.count += 1;
        } else {
            self.last = Some(made);
            self.count = 1;
        }
        self.count
    }
}

fn digest(result: &[Block]) -> Option<[u8; 32]> {
    let mut digest = Sha256::new();
    // There is no block that can't be written.
    serde_json::to_writer(&mut digest, result).ok()?;
    Some(digest.finalize().into())
}

/// Beginning of the warning.
const WARNING: &str = "[openclaw] This exact call was made";

/// Returns a result without the warning.
pub(super) fn without_warning(result: &[Block]) -> &[Block] {
    match result.split_last() {
        Some((Block::Text(last), before)) if last.text.starts_with(WARNING) => before,
        Some(_) | None => result,
    }
}

/// Returns the warning for the model.
pub(super) fn warning(count: u32) -> String {
    format!(
        "{WARNING} {count} times in a row, with the same result. Doing it again will not change the result: try something else, or tell the user what is in the way."
    )
}
