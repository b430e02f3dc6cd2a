//! Quotations in answers (spec `messages.md` §8.2, `channels.md` §5.3). Threads are no quotations:
//! they are part of the address.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openclaw_agent::{ReplyPayload, ReplyTo};
use openclaw_config::settings::ReplyToMode;

/// Flag that a turn has quoted already. Clones share the flag: blocks, final payloads and tools use
/// the same one.
#[derive(Debug, Clone, Default)]
pub struct Quoted(Arc<AtomicBool>);

impl Quoted {
    /// True if it has quoted.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Marks that it has quoted.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets payloads quote as far as the mode allows. One for a turn: blocks and final payloads share what is quoted once.
#[derive(Debug, Clone)]
pub struct ReplyFilter {
    mode: ReplyToMode,
    /// True if tags count although nothing is to be quoted; Slack.
    keeps_tags: bool,
    quoted: Quoted,
}

impl ReplyFilter {
    /// Creates the filter of a turn.
    pub fn new(mode: ReplyToMode, keeps_tags: bool) -> Self {
        Self::sharing(mode, keeps_tags, Quoted::default())
    }

    /// Creates the filter of a turn in which others quote too.
    pub fn sharing(mode: ReplyToMode, keeps_tags: bool, quoted: Quoted) -> Self {
        Self { mode, keeps_tags, quoted }
    }

    /// Returns the payload, with `current` in place of the message that is answered, and without
    /// quotations that the mode does not allow.
    pub fn apply(&mut self, payload: ReplyPayload, current: Option<&str>) -> ReplyPayload {
        let id = match payload.reply_to {
            Some(ReplyTo::Current) => current.map(str::to_owned),
            Some(ReplyTo::Id(id)) => Some(id),
            None => None,
        };
        let may = match self.mode {
            ReplyToMode::Off => self.keeps_tags,
            ReplyToMode::First => !self.quoted.get(),
            ReplyToMode::All => true,
        };
        let reply_to = id.filter(|_| may).map(ReplyTo::Id);
        if reply_to.is_some() {
            self.quoted.set();
        }
        ReplyPayload { reply_to, ..payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec `messages.md` §8.2.
    #[test]
    fn a_mode_says_what_is_quoted() {
        use ReplyToMode::{All, First, Off};
        let tag = |id: &str| Some(ReplyTo::Id(id.to_owned()));
        let rows = [
            (Off, false, vec![tag("1")], vec![None]),
            (Off, true, vec![tag("1")], vec![tag("1")]),
            (First, false, vec![None, tag("1"), tag("1")], vec![None, tag("1"), None]),
            (All, false, vec![tag("1"), tag("1")], vec![tag("1"), tag("1")]),
            (All, false, vec![Some(ReplyTo::Current), None], vec![tag("9"), None]),
        ];
        for (mode, keeps_tags, given, expect) in rows {
            let mut filter = ReplyFilter::new(mode, keeps_tags);
            let quoted: Vec<_> = given
                .into_iter()
                .map(|reply_to| {
                    filter.apply(ReplyPayload { reply_to, ..ReplyPayload::default() }, Some("9")).reply_to
                })
                .collect();
            assert_eq!(quoted, expect, "{mode:?}");
        }
        let mut filter = ReplyFilter::new(All, false);
        let current = ReplyPayload { reply_to: Some(ReplyTo::Current), ..ReplyPayload::default() };
        assert_eq!(filter.apply(current, None).reply_to, None);
    }
}
