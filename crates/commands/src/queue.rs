//! `/queue`: how messages wait during a run of their session (spec `queue.md` §5).

use openclaw_config::settings::{QueueDrop, QueueMode};
use openclaw_journal::intent::Hints;
use openclaw_journal::queue::{QueueSettings, QueueWish};
use openclaw_sessions::SessionEntry;

use super::command::ArgumentMenu;
use super::command::{Category, ChatCommand, Does, Takes};
use super::directive::{Directive, DirectiveReading, DirectiveResult, Settling, Wished};
use super::levels::behind_name;
use super::line::{Hit, cut, skip_colon, slashes};

const NAME: &str = "queue";
const DIRECTIVE: Directive = Directive { take, hint, settle, needs_mention: |_| false };
pub(crate) const COMMAND: ChatCommand = ChatCommand::new(
    NAME,
    Category::Options,
    Does::Directive(DIRECTIVE),
    "Set how messages wait during a run.",
)
.taking(Takes::Level, "[mode] [debounce:<time>] [cap:<n>] [drop:<policy>]")
.offering(ArgumentMenu::Fixed(&["steer", "interrupt", "followup", "collect", "steer-backlog"]));

const MODES: &str = "steer, followup, collect, steer+backlog, interrupt";

/// Request of `/queue`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct QueueRequest {
    wish: QueueWish,
    is_reset: bool,
    /// Error texts for wrong words.
    wrong: Vec<String>,
}

impl QueueRequest {
    /// Reads words up to the first that is none of its own, and how many bytes they take.
    fn read(text: &str) -> (Self, usize) {
        let (mut asked, mut end) = (Self::default(), 0);
        for word in text.split_whitespace() {
            if !asked.take(word) {
                break;
            }
            let at = text.get(end..).and_then(|rest| rest.find(word)).unwrap_or_default();
            end += at + word.len();
            if asked.is_reset {
                break;
            }
        }
        (asked, end)
    }

    /// Reads the words of a directive that is the whole message: any rest should have been a mode.
    fn read_whole(text: &str) -> Self {
        let (mut asked, end) = Self::read(text);
        let rest = text.get(end..).unwrap_or_default().trim();
        if !rest.is_empty() {
            asked.wrong.insert(0, format!("Unrecognized queue mode \"{rest}\". Valid modes: {MODES}."));
        }
        asked
    }

    /// Takes a word, if it is one of its own.
    fn take(&mut self, word: &str) -> bool {
        let lower = word.to_lowercase();
        if let Ok(mode) = QueueMode::parse(&lower) {
            self.wish.mode = Some(mode);
            return true;
        }
        if matches!(lower.as_str(), "default" | "reset" | "clear") {
            self.is_reset = true;
            return true;
        }
        let Some((name, value)) = lower.split_once([':', '=']) else { return false };
        match name {
            "debounce" => match milliseconds(value) {
                Some(ms) => self.wish.debounce_ms = Some(ms),
                None => self.wrong.push(format!(
                    "Invalid debounce \"{value}\". Use ms/s/m (e.g. debounce:1500ms, debounce:2s)."
                )),
            },
            "cap" => match whole(value) {
                Some(cap) => self.wish.cap = Some(cap),
                None => {
                    self.wrong.push(format!("Invalid cap \"{value}\". Use a positive integer (e.g. cap:10)."))
                }
            },
            "drop" => match QueueDrop::parse(value) {
                Some(drop) => self.wish.drop = Some(drop),
                None => self.wrong.push(format!(
                    "Invalid drop policy \"{value}\". Use drop:old, drop:new, or drop:summarize."
                )),
            },
            _ => return false,
        }
        true
    }

    /// Returns the answer once it is done.
    fn says(&self) -> String {
        if self.is_reset {
            return "⚙️ Queue mode reset to default.".to_owned();
        }
        let QueueWish { mode, debounce_ms, cap, drop } = self.wish;
        let said = [
            mode.map(|mode| format!("⚙️ Queue mode set to {}.", mode.as_str())),
            debounce_ms.map(|ms| format!("⚙️ Queue debounce set to {ms}ms.")),
            cap.map(|cap| format!("⚙️ Queue cap set to {cap}.")),
            drop.map(|drop| format!("⚙️ Queue drop set to {}.", drop.as_str())),
        ];
        said.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn apply(&self, entry: &mut SessionEntry) {
        if self.is_reset {
            entry.queue_mode = None;
            entry.queue_debounce_ms = None;
            entry.queue_cap = None;
            entry.queue_drop = None;
            return;
        }
        let QueueWish { mode, debounce_ms, cap, drop } = self.wish;
        if let Some(mode) = mode {
            entry.queue_mode = Some(mode.as_str().into());
        }
        entry.queue_debounce_ms = debounce_ms.or(entry.queue_debounce_ms);
        entry.queue_cap = cap.or(entry.queue_cap);
        if let Some(drop) = drop {
            entry.queue_drop = Some(drop.as_str().into());
        }
    }
}

/// Units of a time, the longer names first.
const UNITS: [(&str, f64); 5] =
    [("ms", 1.0), ("s", 1_000.0), ("m", 60_000.0), ("h", 3_600_000.0), ("d", 86_400_000.0)];

/// A time; without a unit it is milliseconds. `0` is none.
fn milliseconds(text: &str) -> Option<u64> {
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (number, factor) =
        unit.map_or((text, 1.0), |(unit, factor)| (text.strip_suffix(unit).unwrap_or(text), *factor));
    let ms = (decimal(number)? * factor).round();
    (ms < MOST).then(|| to_whole(ms))
}

/// Reads a number of at least 1, rounded down.
fn whole(text: &str) -> Option<u64> {
    decimal(text).map(f64::floor).filter(|number| (1.0..MOST).contains(number)).map(to_whole)
}

/// Bound far above any sensible number.
const MOST: f64 = 9.0e15;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was found to be in range")]
fn to_whole(number: f64) -> u64 {
    number as u64
}

/// Digits, with a point among them at most.
fn decimal(text: &str) -> Option<f64> {
    let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|_| is_number)
}

fn take(text: &str, reading: DirectiveReading, _: &[&str]) -> Option<(String, String)> {
    cut(text, |line| find(line, reading))
}

fn find(line: &str, reading: DirectiveReading) -> Option<Hit<String>> {
    slashes(line).find_map(|(from, behind)| {
        let behind = skip_colon(behind_name(behind, &[NAME])?);
        let end = match (QueueRequest::read(behind).1, reading) {
            (0, DirectiveReading::Among) => return None,
            (0, DirectiveReading::Alone) => behind.find(char::is_whitespace).unwrap_or(behind.len()),
            (end, _) => end,
        };
        let value = behind.get(..end).unwrap_or_default().to_owned();
        Some(Hit { from, to: line.len() - behind.len() + end, value })
    })
}

fn hint(words: &str, hints: &mut Hints) {
    let (asked, _) = QueueRequest::read(words);
    hints.queue = Some(asked.wish).filter(|wish| *wish != QueueWish::default() && !asked.is_reset);
}

fn settle(wished: Wished<'_>) -> Settling<'_> {
    Box::pin(async move {
        let asked = QueueRequest::read_whole(wished.argument);
        if !asked.wrong.is_empty() {
            return Ok(DirectiveResult::refused(asked.wrong.join(" ")));
        }
        if asked == QueueRequest::default() {
            let context = wished.context;
            let queue = &context.settings.config.messages.queue;
            let own = Some(context.entry);
            return Ok(DirectiveResult::told(shown(QueueSettings::of(
                QueueWish::default(),
                own,
                queue,
                context.channel(),
            ))));
        }
        let says = asked.says();
        Ok(DirectiveResult::changed(says, move |entry| asked.apply(entry)))
    })
}

fn shown(settings: QueueSettings) -> String {
    let QueueSettings { mode, debounce_ms, cap, drop } = settings;
    format!(
        "Current queue settings: mode={}, debounce={debounce_ms}ms, cap={cap}, drop={}.\nOptions: modes {MODES}; \
         debounce:<ms|s|m>, cap:<n>, drop:old|new|summarize.",
        mode.as_str(),
        drop.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(mode: Option<QueueMode>, debounce_ms: Option<u64>, cap: Option<u64>) -> QueueWish {
        QueueWish { mode, debounce_ms, cap, drop: None }
    }

    /// Vectors of `queue.md` §5, with the cases that it calls better.
    #[test]
    fn words_are_read_up_to_the_first_that_is_none() {
        use QueueMode::{Collect, Interrupt, Steer, SteerBacklog};
        let none = QueueWish::default();
        let summarize =
            QueueWish { drop: Some(QueueDrop::Summarize), ..wish(Some(Collect), Some(2000), Some(25)) };
        let old = QueueWish { drop: Some(QueueDrop::Old), ..wish(None, None, Some(2)) };
        let rows: [(&str, &str, QueueWish, bool, usize); 19] = [
            ("/queue", "", none, false, 0),
            ("/queue collect", "", wish(Some(Collect), None, None), false, 0),
            ("/queue collect debounce:2s cap:25 drop:summarize", "", summarize, false, 0),
            ("hello /queue steer world", "hello world", wish(Some(Steer), None, None), false, 0),
            ("/queue: steer+backlog", "", wish(Some(SteerBacklog), None, None), false, 0),
            ("/queue reset", "", none, true, 0),
            ("/queue default", "", none, true, 0),
            ("/queue default collect", "collect", none, true, 0),
            // The answer says that there is no such mode.
            ("/queue bogus", "", none, false, 1),
            ("/queue debounce=500 cap=0", "", wish(None, Some(500), None), false, 1),
            ("/queue collect bogus", "bogus", wish(Some(Collect), None, None), false, 0),
            (
                "please /queue steer-backlog debounce:bad x",
                "please x",
                wish(Some(SteerBacklog), None, None),
                false,
                1,
            ),
            (
                "text /queue collect debounce:1m more text",
                "text more text",
                wish(Some(Collect), Some(60_000), None),
                false,
                0,
            ),
            ("/queue drop:oldest cap:2.9", "", old, false, 0),
            // No waiting at all.
            ("/queue debounce:0", "", wish(None, Some(0), None), false, 0),
            ("/queue cap:abc", "", none, false, 1),
            ("/QUEUE Interrupt", "", wish(Some(Interrupt), None, None), false, 0),
            ("/queue debounce:1.5s", "", wish(None, Some(1500), None), false, 0),
            ("/queue debounce:-1", "", none, false, 1),
        ];
        for (text, rest, wish, is_reset, wrong) in rows {
            let (words, left) = take(text, DirectiveReading::Alone, &[]).unwrap();
            let asked = QueueRequest::read_whole(&words);
            assert_eq!(
                (left.as_str(), asked.wish, asked.is_reset, asked.wrong.len()),
                (rest, wish, is_reset, wrong),
                "{text}"
            );
        }
        for text in ["/queuex", "no queue", "a/queue collect"] {
            assert_eq!(take(text, DirectiveReading::Alone, &[]), None, "{text}");
        }
        assert_eq!(take("what does /queue do?", DirectiveReading::Among, &[]), None);
    }

    #[test]
    fn what_is_said_is_exact() {
        let says = |words: &str| QueueRequest::read_whole(words).says();
        assert_eq!(
            says("steer+backlog debounce:2s cap:25 drop:old"),
            "⚙️ Queue mode set to steer-backlog. ⚙️ Queue debounce set to 2000ms. ⚙️ Queue cap set to 25. ⚙️ Queue drop set to old."
        );
        assert_eq!(says("reset"), "⚙️ Queue mode reset to default.");
        let wrong = QueueRequest::read_whole("debounce:x cap:0 drop:all").wrong.join(" ");
        assert_eq!(
            wrong,
            "Invalid debounce \"x\". Use ms/s/m (e.g. debounce:1500ms, debounce:2s). Invalid cap \"0\". Use a positive \
             integer (e.g. cap:10). Invalid drop policy \"all\". Use drop:old, drop:new, or drop:summarize."
        );
        assert_eq!(
            QueueRequest::read_whole("bogus").wrong,
            [
                "Unrecognized queue mode \"bogus\". Valid modes: steer, followup, collect, steer+backlog, interrupt."
            ]
        );
        let settings = QueueSettings {
            mode: QueueMode::Collect,
            debounce_ms: 1000,
            cap: 20,
            drop: QueueDrop::Summarize,
        };
        assert_eq!(
            shown(settings),
            "Current queue settings: mode=collect, debounce=1000ms, cap=20, drop=summarize.\nOptions: modes steer, \
             followup, collect, steer+backlog, interrupt; debounce:<ms|s|m>, cap:<n>, drop:old|new|summarize."
        );
    }

    #[test]
    fn a_reset_among_words_does_nothing() {
        let mut hints = Hints::default();
        hint("reset", &mut hints);
        assert_eq!(hints, Hints::default());
        hint("steer cap:3", &mut hints);
        assert_eq!(hints.queue, Some(wish(Some(QueueMode::Steer), None, Some(3))));
    }
}
