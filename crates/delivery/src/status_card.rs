//! Status card of a session (`/status` and `session_status`, spec `messages.md` §9, `tools.md`
//! `session_status`). Pure: known facts go in, lines come out; lines without facts are left out.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use openclaw_agent::user_time::{HourFormat, user_time, zone_name};
use openclaw_models::usage::{dollars, short_count};
use openclaw_sessions::{SessionEntry, SessionKey};

/// Contents of the card.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusCard {
    /// Version of the gateway.
    pub version: String,
    /// Commit that it was built from.
    pub commit: Option<String>,
    /// The user's time, on the card of the tool alone; from [`time_line`].
    pub time: Option<String>,
    /// `provider/model`.
    pub model: String,
    /// Models that are called when that one fails, in order.
    pub fallbacks: Vec<String>,
    /// Authentication of the last call, its key masked: `api-key sk-ant…cdef (profile)`.
    pub auth: Option<String>,
    /// Tokens that the session used.
    pub tokens: SessionTokens,
    /// Cost in US dollars, if somebody pays by the token.
    pub cost: Option<f64>,
    /// Image and audio models, in words.
    pub media: Option<String>,
    /// Windows of the provider's quota, in words.
    pub quota: Option<String>,
    /// Canonical session key.
    pub session_key: String,
    /// Milliseconds since its row changed; `None` without a row.
    pub idle_ms: Option<i64>,
    /// Sub-agents, in words.
    pub sub_agents: Option<String>,
    /// `direct`, `docker/<mode>` or `direct/<mode>`.
    pub runtime: String,
    /// Thinking level.
    pub thinking: String,
    /// `on` or `full` where tool events are shown.
    pub verbose: Option<String>,
    /// Visibility of reasoning, if it is shown.
    pub reasoning: Option<String>,
    /// `on`, `ask` or `full` where commands are elevated.
    pub elevated: Option<String>,
    /// Settings for spoken answers, in words.
    pub voice: Option<String>,
    /// Activation of a group's agent.
    pub activation: Option<String>,
    /// Treatment of messages during a run.
    pub queue: QueueLine,
}

/// Tokens of a session as its row has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTokens {
    /// Tokens of prompts.
    pub input: Option<u64>,
    /// Tokens of answers.
    pub output: Option<u64>,
    /// Tokens of the window that are in use.
    pub total: Option<u64>,
    /// The window.
    pub window: Option<u64>,
    /// Number of times the conversation was compacted.
    pub compactions: u64,
}

/// The queue of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueLine {
    /// `collect` and the like.
    pub mode: String,
    /// Messages that wait.
    pub depth: usize,
    /// `debounce 2s · cap 25 · drop old`, if the session has settings of its own.
    pub details: Option<String>,
}

impl StatusCard {
    /// Adds the facts of the session's row. `now` is in Unix milliseconds.
    pub fn with_row(self, key: &SessionKey, entry: Option<&SessionEntry>, now: i64) -> Self {
        let tokens = entry.map(SessionTokens::of).unwrap_or_default();
        let idle_ms = entry.map(|entry| now - entry.updated_at_ms());
        Self { session_key: key.shown().to_owned(), tokens, idle_ms, ..self }
    }

    /// The card.
    pub fn text(&self) -> String {
        let line = |sign: &str, text: &Option<String>| text.as_ref().map(|text| format!("{sign} {text}"));
        let lines = [
            Some(self.title()),
            line("🕒 Time:", &self.time),
            Some(self.model_line()),
            self.fallbacks_line(),
            self.tokens_line(),
            Some(self.context_line()),
            line("📎 Media:", &self.media),
            line("📊 Usage:", &self.quota),
            Some(self.session_line()),
            line("🤖 Subagents:", &self.sub_agents),
            Some(self.runtime_line()),
            line("🔊 Voice:", &self.voice),
            Some(self.queue_line()),
        ];
        lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn title(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(" ({commit})")).unwrap_or_default();
        format!("🦞 OpenClaw {}{commit}", self.version)
    }

    fn model_line(&self) -> String {
        let auth = self.auth.as_ref().map(|auth| format!(" · 🔑 {auth}")).unwrap_or_default();
        format!("🧠 Model: {}{auth}", self.model)
    }

    fn fallbacks_line(&self) -> Option<String> {
        (!self.fallbacks.is_empty()).then(|| format!("↪️ Fallbacks: {}", self.fallbacks.join(", ")))
    }

    fn tokens_line(&self) -> Option<String> {
        let SessionTokens { input, output, .. } = self.tokens;
        if input.is_none() && output.is_none() {
            return None;
        }
        let [input, output] = [input, output].map(|count| short_count(count.unwrap_or(0)));
        let cost = self.cost.filter(|cost| *cost > 0.0);
        let cost = cost.map(|cost| format!(" · 💵 Cost: {}", dollars(cost))).unwrap_or_default();
        Some(format!("🧮 Tokens: {input} in / {output} out{cost}"))
    }

    fn context_line(&self) -> String {
        let SessionTokens { total, window, compactions, .. } = self.tokens;
        let shown = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), short_count);
        let percent = match (total, window) {
            (Some(total), Some(window @ 1..)) => format!(" ({}%)", percent(total, window)),
            _ => String::new(),
        };
        format!("📚 Context: {}/{}{percent} · 🧹 Compactions: {compactions}", shown(total), shown(window))
    }

    fn session_line(&self) -> String {
        let activity = match self.idle_ms {
            Some(ms) => format!("updated {}", ago(ms)),
            None => "no activity".to_owned(),
        };
        format!("🧵 Session: {} • {activity}", self.session_key)
    }

    fn runtime_line(&self) -> String {
        let mut line = format!("⚙️ Runtime: {} · Think: {}", self.runtime, self.thinking);
        let switched = |name: &str, level: &str| match level {
            "on" => format!(" · {name}"),
            level => format!(" · {name}:{level}"),
        };
        let is_on = |level: &&String| *level != "off";
        if let Some(level) = self.verbose.as_ref().filter(is_on) {
            line.push_str(&switched("verbose", level));
        }
        if let Some(level) = self.reasoning.as_ref().filter(is_on) {
            line.push_str(&format!(" · Reasoning: {level}"));
        }
        if let Some(level) = self.elevated.as_ref().filter(is_on) {
            line.push_str(&switched("elevated", level));
        }
        line
    }

    fn queue_line(&self) -> String {
        let activation = self.activation.as_ref().map(|mode| format!("👥 Activation: {mode} · "));
        let QueueLine { mode, depth, details } = &self.queue;
        let details = details.as_ref().map(|details| format!(" · {details}")).unwrap_or_default();
        format!("{}🪢 Queue: {mode} (depth {depth}{details})", activation.unwrap_or_default())
    }
}

impl SessionTokens {
    /// Reads the tokens of a row.
    pub fn of(entry: &SessionEntry) -> Self {
        Self {
            input: entry.input_tokens,
            output: entry.output_tokens,
            total: entry.total_tokens,
            window: entry.context_tokens,
            compactions: entry.compaction_count.unwrap_or_default(),
        }
    }
}

/// The user's time with its zone: `Wednesday, January 28th, 2026 — 20:30 (Europe/Berlin)`.
pub fn time_line(at: Timestamp, zone: &TimeZone, format: HourFormat) -> String {
    format!("{} ({})", user_time(at, zone, format), zone_name(zone))
}

/// Rounded, and never more than three digits.
fn percent(part: u64, whole: u64) -> u64 {
    const MOST: u64 = 999;
    let twice = part.saturating_mul(200) / whole.max(1);
    twice.div_ceil(2).min(MOST)
}

/// Time since something, in words.
pub fn ago(ms: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const TWO_DAYS: i64 = 48 * HOUR;
    let seconds = ms.div_euclid(1_000);
    match seconds {
        ..0 => "unknown".to_owned(),
        0..30 => "just now".to_owned(),
        // Rounded to minutes, as hours and days are cut off.
        30..HOUR => match (seconds + MINUTE / 2) / MINUTE {
            60 => "1h ago".to_owned(),
            minutes => format!("{minutes}m ago"),
        },
        HOUR..TWO_DAYS => format!("{}h ago", seconds / HOUR),
        _ => format!("{}d ago", seconds / (24 * HOUR)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> StatusCard {
        StatusCard {
            version: "2026.2.9".into(),
            model: "mock/m1".into(),
            runtime: "direct".into(),
            thinking: "off".into(),
            queue: QueueLine { mode: "collect".into(), ..QueueLine::default() },
            ..StatusCard::default()
        }
    }

    fn key() -> SessionKey {
        SessionKey::parse("agent:main:main").unwrap()
    }

    /// Checks the card that was observed (spec `messages.md` §9).
    #[test]
    fn a_session_in_use_is_told_as_observed() {
        let mut entry = SessionEntry::new(openclaw_protocol::SessionId::new("s"), 1_000);
        entry.input_tokens = Some(169);
        entry.output_tokens = Some(10);
        entry.total_tokens = Some(169);
        entry.context_tokens = Some(200_000);
        let card = StatusCard {
            commit: Some("33c75cb".into()),
            auth: Some("api-key k…k (models.json)".into()),
            ..card()
        };
        assert_eq!(
            card.with_row(&key(), Some(&entry), 2_000).text(),
            "🦞 OpenClaw 2026.2.9 (33c75cb)\n🧠 Model: mock/m1 · 🔑 api-key k…k (models.json)\n🧮 Tokens: 169 in / 10 out\n📚 Context: 169/200k (0%) · 🧹 Compactions: 0\n🧵 Session: agent:main:main • updated just now\n⚙️ Runtime: direct · Think: off\n🪢 Queue: collect (depth 0)"
        );
    }

    #[test]
    fn everything_has_its_place() {
        let full = StatusCard {
            time: Some("now (UTC)".into()),
            fallbacks: vec!["mock/m2".into(), "other/x".into()],
            tokens: SessionTokens {
                input: Some(9_999),
                output: Some(1_234),
                total: Some(32_000),
                window: Some(64_000),
                compactions: 2,
            },
            cost: Some(12.345),
            media: Some("image ok (p/m)".into()),
            quota: Some("5h 80% left".into()),
            session_key: "agent:main:main".into(),
            idle_ms: Some(60_000),
            sub_agents: Some("1 active".into()),
            verbose: Some("full".into()),
            reasoning: Some("stream".into()),
            elevated: Some("on".into()),
            voice: Some("always".into()),
            activation: Some("mention".into()),
            queue: QueueLine {
                mode: "steer".into(),
                depth: 3,
                details: Some("debounce 2s · cap 25 · drop old".into()),
            },
            ..card()
        };
        assert_eq!(
            full.text(),
            "🦞 OpenClaw 2026.2.9\n🕒 Time: now (UTC)\n🧠 Model: mock/m1\n↪️ Fallbacks: mock/m2, other/x\n🧮 Tokens: 10.0k in / 1.2k out · 💵 Cost: $12.35\n📚 Context: 32k/64k (50%) · 🧹 Compactions: 2\n📎 Media: image ok (p/m)\n📊 Usage: 5h 80% left\n🧵 Session: agent:main:main • updated 1m ago\n🤖 Subagents: 1 active\n⚙️ Runtime: direct · Think: off · verbose:full · Reasoning: stream · elevated\n🔊 Voice: always\n👥 Activation: mention · 🪢 Queue: steer (depth 3 · debounce 2s · cap 25 · drop old)"
        );
    }

    #[test]
    fn what_is_not_known_is_left_out_or_a_question_mark() {
        let text = card().with_row(&key(), None, 0).text();
        assert!(
            text.contains("📚 Context: ?/? · 🧹 Compactions: 0\n🧵 Session: agent:main:main • no activity\n"),
            "{text}"
        );
        assert!(!text.contains("Tokens") && !text.contains("🔑") && !text.contains("Time"), "{text}");
        let tokens = SessionTokens { window: Some(200_000), ..SessionTokens::default() };
        assert!(StatusCard { tokens, ..card() }.text().contains("Context: ?/200k · "));
    }

    #[test]
    fn shares_and_times_are_short() {
        let rows = [(0, 200_000, 0), (169, 200_000, 0), (1, 200, 1), (50, 100, 50), (1_000_000, 1, 999)];
        for (part, whole, expect) in rows {
            assert_eq!(percent(part, whole), expect, "{part}/{whole}");
        }
        let rows = [
            (-1, "unknown"),
            (0, "just now"),
            (29_999, "just now"),
            (30_000, "1m ago"),
            (60_000, "1m ago"),
            (59 * 60_000, "59m ago"),
            (60 * 60_000, "1h ago"),
            (47 * 3_600_000, "47h ago"),
            (48 * 3_600_000, "2d ago"),
        ];
        for (ms, expect) in rows {
            assert_eq!(ago(ms), expect, "{ms}");
        }
    }

    /// `timeFormat` and `userTimezone` (spec `agent-runtime.md` §5.1).
    #[test]
    fn the_time_is_the_users() {
        let at: Timestamp = "2026-01-28T19:30:00Z".parse().unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let line = |format| time_line(at, &zone, format);
        assert_eq!(line(HourFormat::TwentyFour), "Wednesday, January 28th, 2026 — 20:30 (Europe/Berlin)");
        assert_eq!(line(HourFormat::Twelve), "Wednesday, January 28th, 2026 — 8:30 PM (Europe/Berlin)");
    }
}
