//! Drafts: the text so far of an answer, on platforms that show it (spec `streaming.md` §10). A
//! machine: its driver shows one draft at a time and reports the result. A draft that can't be
//! shown ends the drafts, never the answer.

use std::time::{Duration, Instant};

use openclaw_channels::text::Limit;

use super::chunker::{BlockChunker, ChunkSettings, Drain};

/// Settings of drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DraftSettings {
    /// The steps in which a draft grows; without them it is the text so far.
    pub blocks: Option<ChunkSettings>,
    /// UTF-16 units of a draft. A longer answer has no more drafts.
    pub limit: usize,
    /// The time between two drafts.
    pub throttle: Duration,
}

impl DraftSettings {
    /// The shortest time between two drafts.
    pub const MIN_THROTTLE: Duration = Duration::from_millis(50);
}

impl Default for DraftSettings {
    fn default() -> Self {
        Self { blocks: None, limit: 4000, throttle: Duration::from_millis(300) }
    }
}

/// Effect that the driver carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DraftEffect {
    /// Show this as the draft, in place of the one before, and report the result by
    /// [`DraftStream::shown`].
    Show(String),
}

/// Returns the number of a draft, made from the id of the message that is answered; never 0.
pub fn draft_id(message: i64) -> i64 {
    message.checked_abs().unwrap_or(i64::MAX).max(1)
}

/// The drafts of one answer.
#[derive(Debug)]
pub struct DraftStream {
    settings: DraftSettings,
    /// Chunker for drafts that grow in steps: holds the text that is not in the draft yet.
    chunker: Option<BlockChunker>,
    so_far: String,
    /// Start of the text so far, in bytes of all that was appended.
    begin: usize,
    /// Bytes of the text so far that are in the draft.
    shown: usize,
    waiting: Option<String>,
    last: Option<String>,
    is_showing: bool,
    next: Option<Instant>,
    /// True if the last draft is known, so that none follows it.
    is_finished: bool,
    is_stopped: bool,
}

impl DraftStream {
    /// Creates the drafts of one answer.
    pub fn new(settings: DraftSettings) -> Self {
        let throttle = settings.throttle.max(DraftSettings::MIN_THROTTLE);
        Self {
            settings: DraftSettings { throttle, ..settings },
            chunker: settings.blocks.map(BlockChunker::new),
            so_far: String::new(),
            begin: 0,
            shown: 0,
            waiting: None,
            last: None,
            is_showing: false,
            next: None,
            is_finished: false,
            is_stopped: false,
        }
    }

    /// Updates the answer's text so far.
    pub fn update(&mut self, now: Instant, text: &str) -> Option<DraftEffect> {
        if self.is_finished {
            return None;
        }
        let draft = match &mut self.chunker {
            None => text.to_owned(),
            Some(chunker) => {
                match text.strip_prefix(self.so_far.as_str()) {
                    Some(new) => chunker.append(new),
                    // Another message, or a correction.
                    None => {
                        chunker.clear();
                        (self.begin, self.shown) = (chunker.appended(), 0);
                        chunker.append(text);
                    }
                }
                text.clone_into(&mut self.so_far);
                self.grow(Drain::Ready)?
            }
        };
        self.show(now, &draft)
    }

    /// Updates the model's reasoning so far, which is shown as it is.
    pub fn reasoning(&mut self, now: Instant, text: &str) -> Option<DraftEffect> {
        if self.is_finished { None } else { self.show(now, text) }
    }

    /// Time at which [`DraftStream::tick`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.next.filter(|_| self.waiting.is_some() && !self.is_showing && !self.is_stopped)
    }

    /// Shows the waiting draft if the time between two drafts is over.
    pub fn tick(&mut self, now: Instant) -> Option<DraftEffect> {
        if self.is_stopped || self.is_showing || self.next.is_some_and(|next| now < next) {
            return None;
        }
        let text = self.waiting.take()?;
        self.next = Some(now + self.settings.throttle);
        self.is_showing = true;
        self.last = Some(text.clone());
        Some(DraftEffect::Show(text))
    }

    /// Notes that a draft was shown, or could not be.
    pub fn shown(&mut self, now: Instant, result: Result<(), ()>) -> Option<DraftEffect> {
        self.is_showing = false;
        self.is_stopped |= result.is_err();
        self.tick(now)
    }

    /// Ends the drafts, as the final message comes: the last draft is all of the text, and no other
    /// follows. It is shown at once, or after the one on its way.
    pub fn finish(&mut self, now: Instant) -> Option<DraftEffect> {
        let rest = self.chunker.is_some().then(|| self.grow(Drain::All)).flatten();
        let effect = match rest {
            Some(draft) => self.show(now, &draft),
            None => None,
        };
        self.next = None;
        self.is_finished = true;
        effect.or_else(|| self.tick(now))
    }

    /// True if no more drafts are shown.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped || self.is_finished
    }

    /// Returns the draft with the steps that are ready; `None` if there are none. The draft is the
    /// text as far as the steps go: between two of them there may be a blank line, or nothing but a
    /// blank.
    fn grow(&mut self, drain: Drain) -> Option<String> {
        let last = self.chunker.as_mut()?.drain(drain).pop()?;
        self.shown = last.end.saturating_sub(self.begin).max(self.shown);
        let end = self.so_far.floor_char_boundary(self.shown);
        self.so_far.get(..end).map(str::to_owned)
    }

    fn show(&mut self, now: Instant, draft: &str) -> Option<DraftEffect> {
        let draft = draft.trim_end();
        if self.is_stopped || draft.is_empty() {
            return None;
        }
        if !Limit::utf16(self.settings.limit).fits(draft) {
            self.is_stopped = true;
            self.waiting = None;
            return None;
        }
        if self.last.as_deref() == Some(draft) {
            self.waiting = None;
            return None;
        }
        self.waiting = Some(draft.to_owned());
        self.tick(now)
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::BreakPreference;

    use super::*;

    fn shows(text: &str) -> Option<DraftEffect> {
        Some(DraftEffect::Show(text.to_owned()))
    }

    fn ms(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn only_the_newest_text_is_shown_and_not_too_often() {
        let start = Instant::now();
        let mut drafts = DraftStream::new(DraftSettings::default());
        assert_eq!(drafts.update(start, "a"), shows("a"));
        assert_eq!(drafts.update(ms(start, 10), "ab"), None);
        assert_eq!(drafts.shown(ms(start, 20), Ok(())), None);
        assert_eq!(drafts.due(), Some(ms(start, 300)));
        assert_eq!(drafts.update(ms(start, 30), "abc"), None);
        assert_eq!(drafts.tick(ms(start, 299)), None);
        assert_eq!(drafts.tick(ms(start, 300)), shows("abc"));
        assert_eq!(drafts.update(ms(start, 700), "abcd"), None, "one is on its way");
        assert_eq!(drafts.shown(ms(start, 800), Ok(())), shows("abcd"));
        assert_eq!(drafts.shown(ms(start, 810), Ok(())), None);
        assert_eq!(drafts.update(ms(start, 2000), "abcd \n"), None, "the same");
        assert_eq!(drafts.due(), None);
    }

    #[test]
    fn a_draft_that_fails_or_is_too_long_is_the_last() {
        let start = Instant::now();
        let mut drafts = DraftStream::new(DraftSettings::default());
        assert!(drafts.update(start, "a").is_some());
        assert_eq!(drafts.shown(start, Err(())), None);
        assert_eq!(drafts.update(ms(start, 1000), "ab"), None);
        assert!(drafts.is_stopped());
        let mut drafts = DraftStream::new(DraftSettings { limit: 3, ..DraftSettings::default() });
        assert_eq!(drafts.update(start, "abcd"), None);
        assert!(drafts.is_stopped());
    }

    #[test]
    fn a_draft_grows_by_blocks() {
        let start = Instant::now();
        let chunk =
            ChunkSettings { min: 5, max: 20, prefer: BreakPreference::Paragraph, by_paragraph: false };
        let mut drafts = DraftStream::new(DraftSettings { blocks: Some(chunk), ..DraftSettings::default() });
        assert_eq!(drafts.update(start, "First"), None);
        assert_eq!(drafts.update(start, "First part\n\nSec"), shows("First part"));
        assert_eq!(drafts.shown(start, Ok(())), None);
        assert_eq!(drafts.update(ms(start, 400), "Other text\n\nx"), shows("Other text"));
        assert_eq!(drafts.shown(ms(start, 400), Ok(())), None);
        assert_eq!(drafts.finish(ms(start, 410)), shows("Other text\n\nx"));
        assert_eq!(drafts.update(ms(start, 900), "Other text\n\nxy"), None);
    }

    #[test]
    fn what_waits_is_shown_before_the_final_message() {
        let start = Instant::now();
        let mut drafts = DraftStream::new(DraftSettings::default());
        assert!(drafts.update(start, "a").is_some());
        assert_eq!(drafts.shown(start, Ok(())), None);
        assert_eq!(drafts.update(ms(start, 10), "ab"), None);
        assert_eq!(drafts.finish(ms(start, 20)), shows("ab"));
        assert_eq!(drafts.reasoning(ms(start, 900), "thinking"), None);
    }

    #[test]
    fn the_last_draft_comes_behind_one_that_is_on_its_way() {
        let start = Instant::now();
        let mut drafts = DraftStream::new(DraftSettings::default());
        assert!(drafts.update(start, "a").is_some());
        assert_eq!(drafts.update(ms(start, 10), "ab"), None);
        assert_eq!(drafts.finish(ms(start, 20)), None, "one is on its way");
        assert!(drafts.is_stopped());
        assert_eq!(drafts.update(ms(start, 30), "late"), None);
        assert_eq!(drafts.shown(ms(start, 40), Ok(())), shows("ab"), "at once");
        assert_eq!(drafts.shown(ms(start, 50), Ok(())), None);
        assert_eq!(drafts.due(), None);
        let mut drafts = DraftStream::new(DraftSettings::default());
        assert!(drafts.update(start, "a").is_some());
        assert_eq!((drafts.update(start, "ab"), drafts.finish(start)), (None, None));
        assert_eq!(drafts.shown(start, Err(())), None, "nor after one that could not be shown");
    }

    /// Spec `streaming.md` §10: the steps are appended.
    #[test]
    fn a_draft_in_steps_is_the_text_as_it_is_written() {
        let start = Instant::now();
        let chunk =
            ChunkSettings { min: 10, max: 24, prefer: BreakPreference::Paragraph, by_paragraph: false };
        let mut drafts = DraftStream::new(DraftSettings { blocks: Some(chunk), ..DraftSettings::default() });
        let text = "One sentence that goes on for long.\n\n```rs\nlet a = 1;\nlet b = 2;\n```\nEnd";
        let mut at = start;
        let mut last = String::new();
        for (end, _) in text.char_indices().skip(1) {
            at += Duration::from_secs(1);
            if let Some(DraftEffect::Show(draft)) = drafts.update(at, &text[..end]) {
                assert!(text.starts_with(&draft) && draft.len() > last.len(), "{draft:?}");
                last = draft;
                assert_eq!(drafts.shown(at, Ok(())), None);
            }
        }
        assert!(!last.is_empty());
        assert_eq!(drafts.update(at, text), None);
        assert_eq!(drafts.finish(at), shows(text));
    }

    #[test]
    fn drafts_have_a_number() {
        let rows = [(5, 5), (-7, 7), (0, 1), (i64::MIN, i64::MAX)];
        for (message, expect) in rows {
            assert_eq!(draft_id(message), expect);
        }
    }
}
