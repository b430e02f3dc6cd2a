//! Typing indicator (spec `streaming.md` §11). A machine: it is told what happens and the time, and
//! says when the channel is to show it once more. Once a turn is over nothing shows it again,
//! whatever comes late.

use std::time::{Duration, Instant};

use openclaw_agent::text::silent::{is_silent, may_become_token};
use openclaw_config::settings::TypingMode;

/// Time for which it is shown when nothing happens.
pub const TTL: Duration = Duration::from_secs(120);
/// No platform forgets sooner that somebody writes.
pub const SHOWN_FOR: Duration = Duration::from_secs(4);
/// Seconds between two signals unless configured.
const INTERVAL_SECONDS: u64 = 6;
/// Signals in a row that may fail.
const MAX_FAILURES: u32 = 3;

/// Events of a turn that matter for the indicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypingSignal<'a> {
    /// The run starts.
    RunStart,
    /// The answer's text so far.
    Text(&'a str),
    /// The model thinks.
    Reasoning,
    /// A tool starts.
    ToolStart,
    /// The run is complete.
    RunComplete,
    /// All of the answer is sent.
    Idle,
}

/// Effect that the driver carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypingEffect {
    /// Asks the channel to show it, and says whether it did by [`Typing::shown`].
    Show,
}

/// Returns the moment at which it starts: never for heartbeats, else as the session or the agents
/// say, else at once if somebody waits for an answer.
pub fn mode(
    is_heartbeat: bool,
    session: Option<TypingMode>,
    agents: Option<TypingMode>,
    is_addressed: bool,
) -> TypingMode {
    let unset = if is_addressed { TypingMode::Instant } else { TypingMode::Message };
    if is_heartbeat { TypingMode::Never } else { session.or(agents).unwrap_or(unset) }
}

/// Returns the time between two signals: the agents', else the session's, else six seconds, and
/// never more than the platform remembers. `None` if the indicator is switched off.
pub fn interval(agents: Option<u64>, session: Option<u64>, platform: Option<Duration>) -> Option<Duration> {
    let seconds = agents.or(session).unwrap_or(INTERVAL_SECONDS);
    let interval = Duration::from_secs(seconds);
    (seconds > 0).then(|| platform.map_or(interval, |longest| interval.min(longest)))
}

/// The signal of one turn.
#[derive(Debug)]
pub struct Typing {
    mode: TypingMode,
    interval: Option<Duration>,
    active: Option<Active>,
    has_text: bool,
    is_complete: bool,
    is_idle: bool,
    failures: u32,
    is_sealed: bool,
}

#[derive(Debug, Clone, Copy)]
struct Active {
    next: Instant,
    ends: Instant,
}

impl Typing {
    /// Creates the indicator of one turn.
    pub fn new(mode: TypingMode, interval: Option<Duration>) -> Self {
        Self {
            mode,
            interval,
            active: None,
            has_text: false,
            is_complete: false,
            is_idle: false,
            failures: 0,
            is_sealed: false,
        }
    }

    /// Handles a signal.
    pub fn on(&mut self, now: Instant, signal: TypingSignal<'_>) -> Option<TypingEffect> {
        match signal {
            TypingSignal::RunComplete => return self.ended(true, self.is_idle),
            TypingSignal::Idle => return self.ended(self.is_complete, true),
            TypingSignal::Text(text) if !is_said(text) => return None,
            TypingSignal::Text(_) => self.has_text = true,
            TypingSignal::RunStart | TypingSignal::Reasoning | TypingSignal::ToolStart => {}
        }
        // A block is on its way: the dispatcher is busy again.
        self.is_idle &= !matches!(signal, TypingSignal::Text(_));
        self.starts(signal).then(|| self.refresh(now)).flatten()
    }

    /// Time at which [`Typing::tick`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.active.map(|active| active.next.min(active.ends))
    }

    /// Shows the indicator again if it is time for that.
    pub fn tick(&mut self, now: Instant) -> Option<TypingEffect> {
        let active = self.active?;
        if now >= active.ends {
            tracing::info!("typing TTL reached (2m); stopping typing indicator");
            self.active = None;
            return None;
        }
        if now < active.next {
            return None;
        }
        self.active = Some(Active { next: now + self.interval?, ..active });
        Some(TypingEffect::Show)
    }

    /// Notes whether the channel showed it. After several failures the channel is not asked any
    /// more.
    pub fn shown(&mut self, result: Result<(), ()>) {
        self.failures = if result.is_ok() { 0 } else { self.failures + 1 };
        if self.failures >= MAX_FAILURES {
            self.seal();
        }
    }

    /// True if it is shown.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Returns the time between two signals, while it is shown.
    pub fn shown_every(&self) -> Option<Duration> {
        self.interval.filter(|_| self.is_active())
    }

    fn starts(&self, signal: TypingSignal<'_>) -> bool {
        if self.is_sealed || self.mode == TypingMode::Never {
            return false;
        }
        match signal {
            TypingSignal::RunStart => self.mode == TypingMode::Instant,
            TypingSignal::Reasoning => self.mode == TypingMode::Thinking && self.has_text,
            TypingSignal::Text(_) | TypingSignal::ToolStart => true,
            TypingSignal::RunComplete | TypingSignal::Idle => false,
        }
    }

    /// Shows the indicator if it is not shown, and extends its time if it is.
    fn refresh(&mut self, now: Instant) -> Option<TypingEffect> {
        let interval = self.interval?;
        let next = self.active.map(|active| active.next);
        self.active = Some(Active { next: next.unwrap_or(now + interval), ends: now + TTL });
        next.is_none().then_some(TypingEffect::Show)
    }

    fn ended(&mut self, is_complete: bool, is_idle: bool) -> Option<TypingEffect> {
        (self.is_complete, self.is_idle) = (is_complete, is_idle);
        if is_complete && is_idle {
            self.seal();
        }
        None
    }

    fn seal(&mut self) {
        self.active = None;
        self.is_sealed = true;
    }
}

/// True if a text is something that people will read.
fn is_said(text: &str) -> bool {
    !text.trim().is_empty() && !is_silent(text) && !may_become_token(text)
}

#[cfg(test)]
mod tests {
    use TypingMode::{Instant as AtOnce, Message, Never, Thinking};
    use TypingSignal::{Idle, Reasoning, RunComplete, RunStart, Text, ToolStart};

    use super::*;

    const SIX: Option<Duration> = Some(Duration::from_secs(6));

    /// Returns the first signal at which it is shown.
    fn starts_at<'a>(mode: TypingMode, signals: &[TypingSignal<'a>]) -> Option<TypingSignal<'a>> {
        let mut typing = Typing::new(mode, SIX);
        let now = Instant::now();
        signals.iter().copied().find(|signal| typing.on(now, *signal).is_some())
    }

    #[test]
    fn it_starts_as_its_mode_says() {
        let all = [RunStart, Reasoning, Text("N"), Text("Nice"), Reasoning, ToolStart];
        let rows: [(TypingMode, &[TypingSignal<'_>], Option<TypingSignal<'_>>); 9] = [
            (Never, &all, None),
            (AtOnce, &all, Some(RunStart)),
            (Message, &all, Some(Text("Nice"))),
            (Thinking, &all, Some(Text("Nice"))),
            (Thinking, &[RunStart, Reasoning], None),
            (Message, &[RunStart, ToolStart], Some(ToolStart)),
            (Message, &[Text("NO"), Text("NO_REPLY")], None),
            (Message, &[Text(" "), Text("HEARTBEAT_OK")], None),
            (Message, &[Text("NO"), Text("NO, wait")], Some(Text("NO, wait"))),
        ];
        for (mode, signals, expect) in rows {
            assert_eq!(starts_at(mode, signals), expect, "{mode:?} {signals:?}");
        }
    }

    #[test]
    fn it_goes_on_until_the_answer_is_sent_and_never_starts_again() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut typing = Typing::new(AtOnce, SIX);
        assert_eq!(typing.on(start, RunStart), Some(TypingEffect::Show));
        assert_eq!(typing.on(later(1), Text("hi")), None);
        assert_eq!(typing.due(), Some(later(6)));
        assert_eq!(typing.tick(later(5)), None);
        assert_eq!(typing.tick(later(6)), Some(TypingEffect::Show));
        assert_eq!(typing.on(later(7), RunComplete), None);
        assert!(typing.is_active(), "the dispatcher is busy");
        assert_eq!(typing.tick(later(12)), Some(TypingEffect::Show));
        typing.on(later(13), Idle);
        assert!(!typing.is_active());
        for signal in [RunStart, Text("late"), ToolStart] {
            assert_eq!(typing.on(later(14), signal), None);
        }
        assert_eq!((typing.due(), typing.tick(later(60))), (None, None));
    }

    #[test]
    fn it_ends_when_nothing_happens_and_when_it_cannot_be_shown() {
        let start = Instant::now();
        let mut typing = Typing::new(AtOnce, SIX);
        typing.on(start, RunStart);
        assert_eq!(typing.tick(start + TTL), None);
        assert!(!typing.is_active());
        assert_eq!(typing.on(start + TTL, ToolStart), Some(TypingEffect::Show), "work goes on");
        for result in [Err(()), Err(()), Ok(()), Err(()), Err(())] {
            typing.shown(result);
        }
        assert!(typing.is_active());
        typing.shown(Err(()));
        assert!(!typing.is_active());
        assert_eq!(typing.on(start + TTL, ToolStart), None);
        let mut off = Typing::new(AtOnce, None);
        assert_eq!(off.on(start, RunStart), None);
    }

    #[test]
    fn mode_and_interval_are_looked_up() {
        let rows = [
            (mode(true, Some(AtOnce), None, true), Never),
            (mode(false, Some(Thinking), Some(Never), true), Thinking),
            (mode(false, None, Some(Never), true), Never),
            (mode(false, None, None, true), AtOnce),
            (mode(false, None, None, false), Message),
        ];
        for (found, expect) in rows {
            assert_eq!(found, expect);
        }
        let seconds = |agents, session, platform: Option<u64>| {
            interval(agents, session, platform.map(Duration::from_secs)).map(|interval| interval.as_secs())
        };
        assert_eq!(seconds(None, None, None), Some(6));
        assert_eq!(seconds(Some(3), Some(9), None), Some(3));
        assert_eq!(seconds(None, Some(9), Some(4)), Some(4));
        assert_eq!(seconds(Some(0), Some(9), None), None);
    }
}
