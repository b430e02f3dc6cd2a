//! Noticing a model that goes in circles (spec `agent-runtime.md` §2.4).

use openclaw_protocol::message::ToolCall;
use serde_json::Value;

/// Counts consecutive identical calls.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    last: Option<(String, Value)>,
    count: u32,
}

impl Repetition {
    /// Counts a call; how many identical ones there were in a row, this one included.
    pub(super) fn count(&mut self, call: &ToolCall) -> u32 {
        let same =
            self.last.as_ref().is_some_and(|(name, args)| *name == call.name && *args == call.arguments);
        if same {
            self.count += 1;
        } else {
            self.last = Some((call.name.clone(), call.arguments.clone()));
            self.count = 1;
        }
        self.count
    }
}

/// What the model is told.
pub(super) fn warning(count: u32) -> String {
    format!(
        "[openclaw] This exact call was made {count} times in a row. Doing it again will not change the result: try something else, or tell the user what is in the way."
    )
}
