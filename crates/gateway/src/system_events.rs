//! Lines that wait to be told to an agent with its next turn (spec `gateway-protocol.md` §6.1 `system-event`).

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

/// Lines kept for a session; the oldest make room.
const MAX_LINES: usize = 20;
/// Sessions with lines waiting.
const MAX_SESSIONS: usize = 256;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemLine {
    /// What happened.
    pub text: String,
    /// Unix milliseconds.
    pub ts: i64,
}

/// The queues, by canonical session key. In memory, as in OpenClaw 2026.2.9.
#[derive(Debug, Default)]
pub struct SystemEvents {
    queues: Mutex<HashMap<String, Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<SystemLine>,
    /// What the last line was about, such as `node:<key>`.
    context: Option<String>,
}

impl SystemEvents {
    /// Queues a line; a repetition of the last one is not queued. `context` names what it is about.
    pub fn enqueue(&self, session_key: &str, text: &str, context: Option<&str>, ts: i64) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let mut queues = self.queues.lock();
        if queues.len() >= MAX_SESSIONS && !queues.contains_key(session_key) {
            let oldest = queues.iter().min_by_key(|(_, queue)| queue.lines.back().map(|line| line.ts));
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                queues.remove(&oldest);
            }
        }
        let queue = queues.entry(session_key.to_owned()).or_default();
        queue.context = context.map(str::to_lowercase);
        if queue.lines.back().is_some_and(|last| last.text == text) {
            return;
        }
        queue.lines.push_back(SystemLine { text: text.to_owned(), ts });
        while queue.lines.len() > MAX_LINES {
            queue.lines.pop_front();
        }
    }

    /// Whether the last line queued was about this.
    pub fn is_last_about(&self, session_key: &str, context: &str) -> bool {
        let queues = self.queues.lock();
        let last = queues.get(session_key).and_then(|queue| queue.context.as_deref());
        last == Some(context.to_lowercase().as_str())
    }

    /// The lines waiting, for `status`.
    pub fn peek(&self, session_key: &str) -> Vec<String> {
        let queues = self.queues.lock();
        let lines = queues.get(session_key).map(|queue| &queue.lines);
        lines.into_iter().flatten().map(|line| line.text.clone()).collect()
    }

    /// Takes the lines waiting, for the next turn.
    pub fn drain(&self, session_key: &str) -> Vec<SystemLine> {
        self.queues.lock().remove(session_key).map(|queue| queue.lines.into()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wait_in_order_without_blanks_and_repetitions() {
        let events = SystemEvents::default();
        for text in ["a", " a ", "", "b", "a"] {
            events.enqueue("s", text, None, 1);
        }
        assert_eq!(events.peek("s"), ["a", "b", "a"]);
        assert_eq!(events.drain("s").len(), 3);
        assert_eq!(events.peek("s"), [""; 0]);
    }

    #[test]
    fn the_oldest_lines_and_sessions_make_room() {
        let events = SystemEvents::default();
        for n in 0..25 {
            events.enqueue("s", &n.to_string(), None, n);
        }
        assert_eq!(events.peek("s").first().map(String::as_str), Some("5"));
        for n in 0..300 {
            events.enqueue(&format!("other-{n}"), "x", None, 100 + n);
        }
        assert_eq!(events.queues.lock().len(), MAX_SESSIONS);
        assert_eq!(events.peek("s"), [""; 0]);
    }

    #[test]
    fn the_last_context_is_remembered() {
        let events = SystemEvents::default();
        events.enqueue("s", "x", Some("node:Mac"), 0);
        assert!(events.is_last_about("s", "NODE:mac") && !events.is_last_about("s", "node:pc"));
    }
}
