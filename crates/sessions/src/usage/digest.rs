//! Digest of a transcript's usage, day by day: all that is remembered of it. A pure fold over its
//! lines.

use super::day::{Day, DayRange};
use super::line::{AnswerUsage, Counted, CountedRole, UsageLine};
use super::sums::{Costs, TokenSums};

/// Limit on the models, and tools, that are counted separately on one day of one transcript. More
/// than anyone uses; a file that names thousands must not fill the memory.
const MOST_NAMES: usize = 256;
/// Name that stands for the rest in counts by name.
const OTHERS: &str = "(other)";
/// Longest name that is kept, in characters.
const MOST_CHARS: usize = 200;
/// Answers of a day whose time is kept for the 95th percentile.
const MOST_TIMES: usize = 4096;
/// An answer that seems to have taken longer was not waited for: the gateway was down, or the clock was set.
const LONGEST_ANSWER_MS: i64 = 12 * 3_600_000;

/// Usage of a transcript on each day on which something was said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Digest {
    /// Oldest first.
    days: Vec<DayDigest>,
}

/// Usage on one day.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DayDigest {
    pub(super) day: Day,
    /// Times of the first and last message, Unix milliseconds.
    pub(super) first_at: i64,
    pub(super) last_at: i64,
    pub(super) user: u64,
    pub(super) assistant: u64,
    pub(super) tool_results: u64,
    pub(super) errors: u64,
    pub(super) models: Vec<ModelDigest>,
    /// Calls by name.
    pub(super) tools: Vec<(Box<str>, u64)>,
    pub(super) times: LatencySamples,
}

/// Usage of one model on one day.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ModelDigest {
    pub(super) provider: Option<Box<str>>,
    pub(super) model: Option<Box<str>>,
    /// Answers.
    pub(super) count: u64,
    pub(super) tokens: TokenSums,
    /// Costs of the answers that say what they cost.
    pub(super) costs: Costs,
    /// Tokens of the answers that don't, and their number.
    pub(super) unpriced: TokenSums,
    pub(super) unpriced_count: u64,
}

/// Durations of answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LatencySamples {
    pub(super) count: u64,
    pub(super) sum_ms: u64,
    pub(super) min_ms: u32,
    pub(super) max_ms: u32,
    /// The first of them, unsorted.
    sample: Vec<u32>,
}

impl LatencySamples {
    fn note(&mut self, ms: u32) {
        self.min_ms = if self.count == 0 { ms } else { self.min_ms.min(ms) };
        self.max_ms = self.max_ms.max(ms);
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(u64::from(ms));
        if self.sample.len() < MOST_TIMES {
            self.sample.push(ms);
        }
    }

    /// All of these together.
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut out = Self::default();
        for times in all.filter(|times| times.count > 0) {
            out.min_ms = if out.count == 0 { times.min_ms } else { out.min_ms.min(times.min_ms) };
            out.max_ms = out.max_ms.max(times.max_ms);
            out.count += times.count;
            out.sum_ms = out.sum_ms.saturating_add(times.sum_ms);
            out.sample.extend(&times.sample);
        }
        out
    }

    /// The time that 19 of 20 answers did not exceed.
    pub(super) fn p95_ms(&self) -> u32 {
        let mut sorted = self.sample.clone();
        sorted.sort_unstable();
        let rank = sorted.len().saturating_mul(19).div_ceil(20);
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

impl Digest {
    /// The days of a range, oldest first.
    pub(super) fn within(&self, range: DayRange) -> impl Iterator<Item = &DayDigest> + Clone {
        self.days.iter().filter(move |digest| range.contains(digest.day))
    }

    fn day(&mut self, day: Day, at: i64) -> Option<&mut DayDigest> {
        let place = match self.days.binary_search_by_key(&day, |digest| digest.day) {
            Ok(place) => place,
            Err(place) => {
                self.days.insert(place, DayDigest::new(day, at));
                place
            }
        };
        self.days.get_mut(place)
    }
}

impl DayDigest {
    fn new(day: Day, at: i64) -> Self {
        Self {
            day,
            first_at: at,
            last_at: at,
            user: 0,
            assistant: 0,
            tool_results: 0,
            errors: 0,
            models: Vec::new(),
            tools: Vec::new(),
            times: LatencySamples::default(),
        }
    }

    fn answer(&mut self, answer: &AnswerUsage<'_>) {
        self.assistant += 1;
        self.errors += u64::from(answer.failed);
        for name in &answer.tools {
            self.tool(name);
        }
        self.used(answer);
    }

    fn used(&mut self, answer: &AnswerUsage<'_>) {
        if let (Some(tokens), true) = (&answer.tokens, answer.is_of_a_model()) {
            self.model(answer, tokens);
        }
    }

    fn tool(&mut self, name: &str) {
        let name = short(name);
        let known = |tools: &[(Box<str>, u64)], name: &str| tools.iter().position(|(own, _)| **own == *name);
        let name = match known(&self.tools, name) {
            None if self.tools.len() >= MOST_NAMES => OTHERS,
            Some(_) | None => name,
        };
        let at = known(&self.tools, name);
        match at.and_then(|at| self.tools.get_mut(at)) {
            Some((_, count)) => *count += 1,
            None => self.tools.push((name.into(), 1)),
        }
    }

    fn model(&mut self, answer: &AnswerUsage<'_>, tokens: &TokenSums) {
        let names = (answer.provider.as_deref().map(short), answer.model.as_deref().map(short));
        let known = |models: &[ModelDigest], names: (Option<&str>, Option<&str>)| {
            models.iter().position(|own| (own.provider.as_deref(), own.model.as_deref()) == names)
        };
        let names = match known(&self.models, names) {
            None if self.models.len() >= MOST_NAMES => (Some(OTHERS), Some(OTHERS)),
            Some(_) | None => names,
        };
        let at = known(&self.models, names);
        match at.and_then(|at| self.models.get_mut(at)) {
            Some(model) => model.note(tokens, answer.costs.as_ref()),
            None => {
                let (provider, model) = (names.0.map(Box::from), names.1.map(Box::from));
                let mut model = ModelDigest { provider, model, ..ModelDigest::default() };
                model.note(tokens, answer.costs.as_ref());
                self.models.push(model);
            }
        }
    }
}

impl ModelDigest {
    fn note(&mut self, tokens: &TokenSums, costs: Option<&Costs>) {
        self.count += 1;
        self.tokens.add(tokens);
        match costs {
            Some(costs) => self.costs.add(costs),
            // An answer without usage costs nothing.
            None if tokens.total == 0 => {}
            None => {
                self.unpriced.add(tokens);
                self.unpriced_count += 1;
            }
        }
    }
}

fn short(name: &str) -> &str {
    name.char_indices().nth(MOST_CHARS).and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}

/// Counting in progress: what was counted, and what the next line has to know of those before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Counting {
    pub(super) digest: Digest,
    /// The time of the message before; one that does not say counts as said then.
    last_at: Option<i64>,
    /// Time since which an answer is waited for: that of the last message of a person or a tool.
    asked_at: Option<i64>,
    /// Time at which the file was forked: older lines are copies and count where they were said.
    forked_at: Option<i64>,
}

impl Counting {
    /// Counts one line. `fallback` is the time of what never says one: that of the file.
    pub(super) fn line(&mut self, line: &UsageLine<'_>, fallback: i64) {
        match line {
            UsageLine::ForkHeader(made_at) => self.forked_at = *made_at,
            UsageLine::Message(message) => self.message(message, fallback),
            UsageLine::Other => {}
        }
    }

    /// The time of a message that is counted: when it was written, as an answer is when it is complete.
    pub(super) fn time_of(&mut self, message: &Counted<'_>, fallback: i64) -> Option<i64> {
        let copied = self.forked_at.is_some_and(|forked_at| {
            message.said_at.or(message.written_at).is_some_and(|said_at| said_at < forked_at)
        });
        if copied {
            return None;
        }
        let at = message.written_at.or(message.said_at).or(self.last_at).unwrap_or(fallback);
        self.last_at = Some(at);
        Some(at)
    }

    fn message(&mut self, message: &Counted<'_>, fallback: i64) {
        let Some(at) = self.time_of(message, fallback) else { return };
        let asked_at = self.asked_at;
        let Some(today) = Day::of(at).and_then(|day| self.digest.day(day, at)) else { return };
        today.first_at = today.first_at.min(at);
        today.last_at = today.last_at.max(at);
        match &message.said {
            CountedRole::User => {
                today.user += 1;
                self.asked_at = Some(at);
            }
            CountedRole::ToolResult { failed } => {
                today.tool_results += 1;
                today.errors += u64::from(*failed);
                self.asked_at = Some(at);
            }
            CountedRole::Summary(answer) => today.used(answer),
            CountedRole::Assistant(answer) => {
                today.answer(answer);
                if answer.is_of_a_model() {
                    let took = asked_at.map(|asked_at| at.saturating_sub(asked_at).max(0));
                    if let Some(took) = took.filter(|took| *took <= LONGEST_ANSWER_MS) {
                        today.times.note(u32::try_from(took).unwrap_or(u32::MAX));
                    }
                    self.asked_at = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::line;

    fn counted(lines: &[&str]) -> Counting {
        let mut counting = Counting::default();
        lines.iter().for_each(|text| counting.line(&line::read(text.as_bytes()), 86_400_000 * 3));
        counting
    }

    fn message(at: i64, message: &str) -> String {
        let stamp = crate::time::iso(at);
        format!(r#"{{"type":"message","timestamp":"{stamp}","message":{message}}}"#)
    }

    const USER: &str = r#"{"role":"user","content":"x"}"#;
    const TOOL: &str = r#"{"role":"toolResult","isError":true}"#;

    fn answer(model: &str, total: u64) -> String {
        format!(r#"{{"role":"assistant","provider":"p","model":"{model}","usage":{{"total":{total}}}}}"#)
    }

    #[test]
    fn an_answer_takes_the_time_since_the_last_word_of_another() {
        let call =
            r#"{"role":"assistant","content":[{"type":"toolCall","name":"exec"}],"usage":{"total":1}}"#;
        let lines = [
            message(1_000, USER),
            message(1_400, call),
            message(2_000, TOOL),
            message(2_100, &answer("m", 1)),
            // An answer to no question.
            message(9_000, &answer("m", 1)),
            message(10_000, USER),
            message(10_000 + LONGEST_ANSWER_MS + 1, &answer("m", 1)),
        ];
        let counting = counted(&lines.each_ref().map(String::as_str));
        let today = &counting.digest.days[0];
        let times = (today.times.count, today.times.sum_ms, today.times.min_ms, today.times.max_ms);
        assert_eq!(times, (2, 500, 100, 400));
        assert_eq!((today.user, today.assistant, today.tool_results, today.errors), (2, 4, 1, 1));
        assert_eq!(today.tools, [("exec".into(), 1)]);
    }

    #[test]
    fn words_put_into_its_mouth_are_no_answer_of_a_model() {
        let injected = r#"{"role":"assistant","provider":"openclaw","model":"gateway-injected","usage":{"totalTokens":0}}"#;
        let lines = [message(1_000, USER), message(1_100, injected), message(1_500, &answer("m", 3))];
        let counting = counted(&lines.each_ref().map(String::as_str));
        let today = &counting.digest.days[0];
        assert_eq!((today.assistant, today.models.len(), today.times.sum_ms), (2, 1, 500));
    }

    #[test]
    fn messages_without_a_time_count_when_the_one_before_was_said() {
        let bare = |message: &str| format!(r#"{{"type":"message","message":{message}}}"#);
        let lines = [bare(USER), message(1_000, USER), bare(&answer("m", 5))];
        let counting = counted(&lines.each_ref().map(String::as_str));
        let days: Vec<(String, u64)> =
            counting.digest.days.iter().map(|digest| (digest.day.to_string(), digest.assistant)).collect();
        assert_eq!(days, [("1970-01-01".into(), 1), ("1970-01-04".into(), 0)]);
    }

    #[test]
    fn what_a_fork_copied_counts_where_it_was_said() {
        let said = |said_at: i64| {
            let message = format!(r#"{{"role":"user","timestamp":{said_at}}}"#);
            // Copies are written when the fork is made.
            self::message(90_000, &message)
        };
        let header = r#"{"type":"session","parentSession":"/p.jsonl","timestamp":"1970-01-01T00:01:20Z"}"#;
        let lines = [header.to_owned(), said(1_000), said(79_999), said(80_000)];
        assert_eq!(counted(&lines.each_ref().map(String::as_str)).digest.days[0].user, 1);
    }

    #[test]
    fn a_file_of_thousands_of_names_stays_small() {
        let mut counting = Counting::default();
        let long = "é".repeat(500);
        for n in 0..2_000 {
            let call = format!(
                r#"{{"role":"assistant","model":"{n}{long}","content":[{{"type":"toolCall","name":"{n}{long}"}}],"usage":{{"total":1}}}}"#
            );
            counting.line(&line::read(message(1_000, &call).as_bytes()), 0);
        }
        let today = &counting.digest.days[0];
        assert_eq!((today.tools.len(), today.models.len()), (MOST_NAMES + 1, MOST_NAMES + 1));
        assert_eq!(today.tools.iter().map(|(_, count)| count).sum::<u64>(), 2_000);
        assert_eq!(today.models.iter().map(|model| model.count).sum::<u64>(), 2_000);
        assert!(today.tools.iter().all(|(name, _)| name.chars().count() <= MOST_CHARS));
    }

    #[test]
    fn the_95th_percentile_is_the_nearest_rank() {
        let rows: &[(u32, u32)] = &[(1, 1), (4, 4), (5, 5), (19, 19), (20, 19), (21, 20), (100, 95)];
        for (count, expect) in rows {
            let mut times = LatencySamples::default();
            (1..=*count).rev().for_each(|ms| times.note(ms));
            assert_eq!(times.p95_ms(), *expect, "{count}");
        }
        assert_eq!(LatencySamples::default().p95_ms(), 0);
    }
}
