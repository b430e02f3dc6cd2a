//! Lines on stderr while a run waits for a model that does not answer.

use openclaw_protocol::event::{AgentEvent, AgentStream, Lifecycle};

use crate::output;

/// Prints the line of a model call that failed and behind which run `run_id` goes on, if the event tells of one. An event of
/// another shape is a newer gateway's, and nobody's mistake.
pub(in crate::commands) fn tell<E>(run_id: &str, event: Result<AgentEvent<'_>, E>) {
    if let Some(text) = event.ok().as_ref().and_then(|event| text(run_id, event)) {
        output::error_line(text);
    }
}

fn text<'e>(run_id: &str, event: &'e AgentEvent<'_>) -> Option<&'e str> {
    if event.run_id.as_str() != run_id {
        return None;
    }
    match &event.stream {
        AgentStream::Lifecycle(Lifecycle::Retry { text, .. } | Lifecycle::Fallback { text, .. }) => {
            Some(text)
        }
        AgentStream::Lifecycle(Lifecycle::Start { .. } | Lifecycle::End { .. } | Lifecycle::Error { .. })
        | AgentStream::Assistant(_)
        | AgentStream::Tool(_)
        | AgentStream::Compaction(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_failed_calls_of_the_own_run_are_told() {
        let retry = json!({"phase": "retry", "provider": "p", "model": "m", "attempt": 2, "maxAttempts": 4,
            "delayMs": 2000, "error": "down", "text": "p/m does not answer"});
        let fallback = json!({"phase": "fallback", "fromProvider": "p", "fromModel": "m", "toProvider": "q",
            "toModel": "n", "error": "down", "text": "asking q/n"});
        let rows = [
            ("own", "lifecycle", retry.clone(), Some("p/m does not answer")),
            ("own", "lifecycle", fallback, Some("asking q/n")),
            ("other", "lifecycle", retry, None),
            ("own", "lifecycle", json!({"phase": "start", "startedAt": 1}), None),
            ("own", "assistant", json!({"text": "hi", "delta": "hi"}), None),
        ];
        for (run, stream, data, expect) in rows {
            let event = json!({"runId": run, "stream": stream, "data": data, "seq": 1, "ts": 1}).to_string();
            let event: AgentEvent<'_> = serde_json::from_str(&event).unwrap();
            assert_eq!(text("own", &event), expect, "{event:?}");
        }
    }
}
