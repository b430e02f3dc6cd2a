//! Lines that wait to be told to an agent with its next turn (spec `gateway-protocol.md` §6.1
//! `system-event`, `sessions.md` §5.6).
//!
//! A line leaves its queue when the message it is told with is in the transcript: a run that fails
//! before that leaves it to the next one, and a run taken up again after a crash finds it told
//! already.
//!
//! Most lines end with the process, as in OpenClaw 2026.2.9. Lines that an agent was promised
//! ([`openclaw_journal::notices`]) are in the journal from before they are here until the run that told them
//! has ended.

mod command_notices;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use openclaw_agent::user_time::{user_zone, zone_label};
use openclaw_config::settings::AgentDefaults;
use openclaw_journal::frames::framed_words;
use openclaw_journal::journal::{Journal, JournalError, Update};
use openclaw_journal::notices::KeptLine;
use openclaw_protocol::{RunId, SessionKey};
use parking_lot::Mutex;

pub use command_notices::{CommandNotices, Wake};

/// Lines kept for a session; the oldest make room.
const MAX_LINES: usize = 20;
/// Sessions with lines waiting.
const MAX_SESSIONS: usize = 256;

/// The queues, by session.
#[derive(Default)]
pub struct SystemEvents {
    state: Mutex<EventQueues>,
    /// Journal that keeps promised lines; set once the gateway has begun.
    journal: OnceLock<Arc<dyn Journal>>,
}

impl std::fmt::Debug for SystemEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemEvents").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct EventQueues {
    queues: HashMap<SessionKey, Queue>,
    /// Lines that an earlier process put into the transcript with the message of a run that did not end. Its session has them again
    /// if the transcript has lost them.
    told: HashMap<RunId, Vec<SystemLine>>,
    /// Numbers of kept lines that made room, to be taken out of the journal.
    dropped: Vec<i64>,
    /// Number of the last line of any queue.
    last: i64,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<SystemLine>,
    /// Subject of the last line, such as `node:<key>`.
    context: Option<String>,
}

/// A line that waits to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemLine {
    /// Grows from line to line.
    number: i64,
    /// Text of the line.
    text: String,
    /// Unix milliseconds.
    ts: i64,
    /// True if the next heartbeat is to be made for it, whatever it would do otherwise.
    wants_beat: bool,
    /// True if the journal has it.
    is_kept: bool,
}

impl SystemEvents {
    /// Queues a line; a repetition of the last one is not queued. `context` names its subject.
    pub fn enqueue(&self, session_key: &SessionKey, text: &str, context: Option<&str>, ts: i64) {
        self.push(session_key, text, context, ts, false);
    }

    /// [`Self::enqueue`] for a line that the next heartbeat is to tell, in the words of a client: none of them can take the
    /// form of a frame. Returns `false` if there is nothing in it.
    pub fn enqueue_for_beat(&self, session_key: &SessionKey, text: &str, ts: i64) -> bool {
        self.push(session_key, &framed_words(text), None, ts, true);
        !text.trim().is_empty()
    }

    /// True if a line waits that the next heartbeat is to tell.
    pub fn want_beat(&self, session_key: &SessionKey) -> bool {
        self.waiting(session_key).iter().any(|line| line.wants_beat)
    }

    fn push(&self, session_key: &SessionKey, text: &str, context: Option<&str>, ts: i64, wants_beat: bool) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let number = state.next_number();
        let line = SystemLine { number, text: text.to_owned(), ts, wants_beat, is_kept: false };
        state.push(session_key, context, line);
    }

    /// Queues a line that was promised, which the next heartbeat is to tell; a restart does not lose it. `fulfils`: the promise.
    pub async fn notice(&self, session_key: &SessionKey, text: &str, ts: i64, fulfils: Option<&str>) {
        let text = text.trim().to_owned();
        let (number, session_key) = (self.state.lock().next_number(), session_key.clone());
        let line = KeptLine { number, session_key, text, ts, told_by: None };
        // Before anybody can tell it: what was told is marked there.
        self.keep(Update::Notice { line: Some(line.clone()), fulfils: fulfils.map(str::to_owned) }).await;
        self.state.lock().push_kept(line);
        self.forget_dropped().await;
    }

    /// Begins with the lines of an earlier process, and keeps promises in its journal from now on.
    pub fn restore(&self, journal: Arc<dyn Journal>, lines: Vec<KeptLine>) {
        // There is one start.
        let _ = self.journal.set(journal);
        let mut state = self.state.lock();
        for line in lines {
            state.last = state.last.max(line.number);
            match line.told_by.clone() {
                Some(run_id) => state.told.entry(run_id).or_default().push(line.into()),
                None => state.push_kept(line),
            }
        }
    }

    /// Returns the sessions for which promised lines wait.
    pub fn sessions_with_notices(&self) -> Vec<SessionKey> {
        let state = self.state.lock();
        let owed = state.queues.iter().filter(|(_, queue)| queue.lines.iter().any(|line| line.is_kept));
        owed.map(|(key, _)| key.clone()).collect()
    }

    /// Makes an update of the journal; a refusal is logged.
    pub async fn keep(&self, update: Update) {
        let Some(journal) = self.journal.get() else { return };
        match journal.update(update).await {
            // The next start finds what is still promised.
            Ok(_) | Err(JournalError::Closed) => {}
            Err(error) => {
                tracing::warn!(%error, "what an agent is to hear of its commands may be lost by a restart");
            }
        }
    }

    async fn forget_dropped(&self) {
        let dropped = std::mem::take(&mut self.state.lock().dropped);
        if !dropped.is_empty() {
            self.keep(Update::DropLines(dropped)).await;
        }
    }

    /// True if the last line queued was about this.
    pub fn is_last_about(&self, session_key: &SessionKey, context: &str) -> bool {
        let state = self.state.lock();
        let last = state.queues.get(session_key).and_then(|queue| queue.context.as_deref());
        last == Some(context.to_lowercase().as_str())
    }

    /// The texts waiting, for `status`.
    pub fn peek(&self, session_key: &SessionKey) -> Vec<String> {
        self.waiting(session_key).into_iter().map(|line| line.text).collect()
    }

    /// The lines waiting. They stay until they are [`mark_delivered`](Self::mark_delivered).
    pub fn waiting(&self, session_key: &SessionKey) -> Vec<SystemLine> {
        let state = self.state.lock();
        state.queues.get(session_key).map(|queue| queue.lines.iter().cloned().collect()).unwrap_or_default()
    }

    /// Returns the lines that the message of a run is to tell: those that it told before a crash,
    /// and those waiting.
    pub fn waiting_for(&self, session_key: &SessionKey, run_id: &RunId) -> Vec<SystemLine> {
        let mut lines = self.state.lock().told.get(run_id).cloned().unwrap_or_default();
        lines.extend(self.waiting(session_key));
        lines
    }

    /// Notes that the transcript still has the lines that the message of a run told before a crash.
    pub fn were_told(&self, run_id: &RunId) {
        self.state.lock().told.remove(run_id);
    }

    /// Takes out the lines that [`waiting_for`](Self::waiting_for) gave, which are in the
    /// transcript; lines that came since stay.
    pub async fn mark_delivered(&self, session_key: &SessionKey, run_id: &RunId, lines: &[SystemLine]) {
        let Some(last) = lines.last() else { return };
        self.state.lock().take(session_key, run_id, last.number);
        let numbers: Vec<i64> = lines.iter().filter(|line| line.is_kept).map(|line| line.number).collect();
        if !numbers.is_empty() {
            self.keep(Update::Told { run_id: run_id.clone(), numbers }).await;
        }
        self.forget_dropped().await;
    }
}

impl From<KeptLine> for SystemLine {
    fn from(line: KeptLine) -> Self {
        let KeptLine { number, text, ts, .. } = line;
        Self { number, text, ts, wants_beat: true, is_kept: true }
    }
}

impl EventQueues {
    fn next_number(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    fn push_kept(&mut self, line: KeptLine) {
        let session_key = line.session_key.clone();
        self.push(&session_key, None, line.into());
    }

    fn push(&mut self, session_key: &SessionKey, context: Option<&str>, line: SystemLine) {
        self.make_room_for(session_key);
        let queue = self.queues.entry(session_key.clone()).or_default();
        queue.context = context.map(str::to_lowercase);
        if let Some(last) = queue.lines.back_mut().filter(|last| last.text == line.text) {
            last.wants_beat |= line.wants_beat;
            self.dropped.extend(line.is_kept.then_some(line.number));
            return;
        }
        queue.lines.push_back(line);
        while queue.lines.len() > MAX_LINES {
            let oldest = queue.lines.pop_front();
            self.dropped.extend(oldest.filter(|line| line.is_kept).map(|line| line.number));
        }
    }

    fn take(&mut self, session_key: &SessionKey, run_id: &RunId, last: i64) {
        self.told.remove(run_id);
        let Some(queue) = self.queues.get_mut(session_key) else { return };
        queue.lines.retain(|line| line.number > last);
        if queue.lines.is_empty() {
            self.queues.remove(session_key);
        }
    }

    fn make_room_for(&mut self, session_key: &SessionKey) {
        if self.queues.len() < MAX_SESSIONS || self.queues.contains_key(session_key) {
            return;
        }
        let oldest = self.queues.iter().min_by_key(|(_, queue)| queue.lines.back().map(|line| line.ts));
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            let queue = self.queues.remove(&oldest).unwrap_or_default();
            self.dropped.extend(queue.lines.iter().filter(|line| line.is_kept).map(|line| line.number));
        }
    }
}

/// Text that is put before a message: the lines worth telling, each with its time, and a blank
/// line. Empty without any.
pub fn block(lines: &[SystemLine], zone: &TimeZone) -> String {
    let mut block: String = lines
        .iter()
        .filter_map(|line| {
            // One line each, so that text behind a line break can't pass for the user's own words.
            let text = worth_telling(&line.text)?.split_whitespace().collect::<Vec<_>>().join(" ");
            let at = Timestamp::from_millisecond(line.ts).ok()?.to_zoned(zone.clone());
            Some(format!("System: [{} {}] {text}\n", at.strftime("%Y-%m-%d %H:%M:%S"), zone_label(&at)))
        })
        .collect();
    if !block.is_empty() {
        block.push('\n');
    }
    block
}

/// The part of a line that an agent should hear: routine lines not at all, beacons without the idle time of their keyboard.
fn worth_telling(text: &str) -> Option<String> {
    const ROUTINE: [&str; 3] = ["reason periodic", "heartbeat poll", "heartbeat wake"];
    const IDLE: &str = " · last input ";
    let lower = text.to_lowercase();
    if ROUTINE.iter().any(|routine| lower.contains(routine)) || lower.starts_with("read heartbeat.md") {
        return None;
    }
    let told = match text.split_once(IDLE).filter(|_| text.starts_with("Node:")) {
        Some((before, after)) => match after.split_once(" · ") {
            Some((_, rest)) => format!("{before} · {rest}"),
            None => before.to_owned(),
        },
        None => text.to_owned(),
    };
    Some(told.trim().to_owned()).filter(|told| !told.is_empty())
}

/// The zone of the lines' times: `agents.defaults.envelopeTimezone`, else the host's.
pub fn zone(defaults: &AgentDefaults) -> TimeZone {
    let asked = defaults.envelope_timezone.as_deref().map(str::trim).unwrap_or_default();
    match asked.to_lowercase().as_str() {
        "utc" | "gmt" => TimeZone::UTC,
        "" | "local" | "host" => user_zone(None),
        "user" => user_zone(defaults.user_timezone.as_deref()),
        _ => user_zone(Some(asked)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionKey {
        SessionKey::parse(&format!("agent:main:{name}")).unwrap()
    }

    fn run() -> RunId {
        RunId::new("r1")
    }

    #[test]
    fn lines_wait_in_order_without_blanks_and_repetitions() {
        let events = SystemEvents::default();
        for text in ["a", " a ", "", "b", "a"] {
            events.enqueue(&session("s"), text, None, 1);
        }
        assert_eq!(events.peek(&session("s")), ["a", "b", "a"]);
        assert_eq!(events.peek(&session("other")), [""; 0]);
    }

    #[tokio::test]
    async fn what_was_told_is_gone_and_what_came_meanwhile_is_not() {
        let events = SystemEvents::default();
        for text in ["a", "b"] {
            events.enqueue(&session("s"), text, None, 1);
        }
        let told = events.waiting(&session("s"));
        events.enqueue(&session("s"), "c", None, 2);
        assert_eq!(events.peek(&session("s")), ["a", "b", "c"], "nothing is lost by looking");
        events.mark_delivered(&session("s"), &run(), &told).await;
        events.mark_delivered(&session("s"), &run(), &[]).await;
        assert_eq!(events.peek(&session("s")), ["c"]);
    }

    #[test]
    fn the_oldest_lines_and_sessions_make_room() {
        let events = SystemEvents::default();
        for n in 0..25 {
            events.enqueue(&session("s"), &n.to_string(), None, n);
        }
        assert_eq!(events.peek(&session("s")).first().map(String::as_str), Some("5"));
        for n in 0..300 {
            events.enqueue(&session(&format!("other-{n}")), "x", None, 100 + n);
        }
        assert_eq!(events.state.lock().queues.len(), MAX_SESSIONS);
        assert_eq!(events.peek(&session("s")), [""; 0]);
    }

    #[test]
    fn kept_lines_that_make_room_are_to_leave_the_journal() {
        let mut state = EventQueues::default();
        let line = |number, text: &str| KeptLine {
            number,
            session_key: session("s"),
            text: text.to_owned(),
            ts: number,
            told_by: None,
        };
        state.push_kept(line(1, "a"));
        state.push_kept(line(2, "a"));
        assert_eq!(state.dropped, [2], "a repetition");
        for number in 3..24 {
            state.push_kept(line(number, &number.to_string()));
        }
        assert_eq!(state.dropped, [2, 1, 3]);
        for n in 0..300 {
            let line = SystemLine {
                number: 100 + n,
                text: "x".to_owned(),
                ts: 100 + n,
                wants_beat: false,
                is_kept: false,
            };
            state.push(&session(&format!("other-{n}")), None, line);
        }
        assert_eq!(state.dropped.len(), 23, "the session made room");
    }

    #[tokio::test]
    async fn a_line_that_wants_a_beat_is_known_until_it_was_told() {
        let events = SystemEvents::default();
        events.enqueue(&session("s"), "a", None, 1);
        assert!(!events.want_beat(&session("s")));
        assert!(!events.enqueue_for_beat(&session("s"), " ", 2));
        assert!(events.enqueue_for_beat(&session("s"), "a", 2), "the same words, but now they are wanted");
        assert!(events.want_beat(&session("s")) && !events.want_beat(&session("other")));
        events.mark_delivered(&session("s"), &run(), &events.waiting(&session("s"))).await;
        assert!(!events.want_beat(&session("s")));
    }

    #[test]
    fn the_last_context_is_remembered() {
        let events = SystemEvents::default();
        events.enqueue(&session("s"), "x", Some("node:Mac"), 0);
        assert!(
            events.is_last_about(&session("s"), "NODE:mac")
                && !events.is_last_about(&session("s"), "node:pc")
        );
    }

    /// Vectors of `sessions.md` §5.6.
    #[test]
    fn lines_are_told_with_their_time_and_without_routine() {
        let rows = [
            ("plain operator note", "plain operator note"),
            ("two\n\nSystem: lines", "two System: lines"),
            ("Node: Mac (1.2.3.4) · last input 12s ago · mode ui", "Node: Mac (1.2.3.4) · mode ui"),
            ("Node: Mac · last input 12s ago", "Node: Mac"),
            ("Mac · last input 12s ago", "Mac · last input 12s ago"),
            ("Node: Mac · Reason Periodic", ""),
            ("Heartbeat wake: cron", ""),
            ("heartbeat poll: none", ""),
            ("Read HEARTBEAT.md and go on", ""),
        ];
        for (text, expected) in rows {
            // 2026-01-29T01:30:05Z
            let (number, text, wants_beat) = (1, text.to_owned(), false);
            let line =
                SystemLine { number, text: text.clone(), ts: 1_769_650_205_000, wants_beat, is_kept: false };
            let told = block(&[line], &TimeZone::get("America/New_York").unwrap());
            let expected = match expected {
                "" => String::new(),
                text => format!("System: [2026-01-28 20:30:05 EST] {text}\n\n"),
            };
            assert_eq!(told, expected, "{text}");
        }
    }

    #[test]
    fn times_are_in_the_zone_of_envelopes() {
        let defaults = |zone: Option<&str>| AgentDefaults {
            envelope_timezone: zone.map(str::to_owned),
            user_timezone: Some("Asia/Tokyo".to_owned()),
            ..AgentDefaults::default()
        };
        let rows = [
            ("utc", "UTC"),
            ("GMT", "UTC"),
            ("user", "Asia/Tokyo"),
            ("America/New_York", "America/New_York"),
        ];
        for (asked, expected) in rows {
            assert_eq!(zone(&defaults(Some(asked))).iana_name(), Some(expected), "{asked}");
        }
        for asked in [None, Some("local"), Some(" Host ")] {
            assert_eq!(zone(&defaults(asked)), user_zone(None), "{asked:?}");
        }
    }
}
