//! Decides what happens after a failed model call (spec `agent-runtime.md` §2.8, `models.md` §5,
//! §9.2, §9.3): another attempt, another thinking level, failover to the next candidate, or the
//! end. The only place that decides this.
//!
//! The budget counts failures in a row: a long run is not ended by its fourth hiccup in an hour.

mod notice;
mod told;

use std::time::Duration;

use openclaw_models::credentials::AgentFlag;
use openclaw_models::failure::user_text;
use openclaw_models::thinking::next_supported;
use openclaw_models::{FailureKind, ModelFailure, ThinkingLevel};

use super::{CandidateFacts, Candidates};
use crate::error_surface::ErrorSurface;

/// First wait; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Number of times a candidate is called again while another candidate is left.
const RETRIES_BEFORE_ANOTHER: u32 = 1;
/// Longest wait a provider may ask for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Position of the run among its candidates.
#[derive(Debug)]
pub(super) struct Attempts {
    candidates: Vec<CandidateFacts>,
    passed_over: Vec<String>,
    agent: AgentFlag,
    error_surface: ErrorSurface,
    candidate: usize,
    thinking: ThinkingLevel,
    tried_levels: Vec<ThinkingLevel>,
    /// Credentials that failed for a reason of their own: no other model is tried with them.
    barred: Vec<String>,
    retried: u32,
    retries: u32,
    /// A model was asked once more because its answer was empty.
    asked_again: bool,
}

/// Next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// Call again, after a wait if given. The candidate and the level are chosen by [`Attempts`].
    Again(Option<Duration>),
    /// No candidate is left.
    GiveUp,
}

impl Attempts {
    pub(super) fn new(candidates: Candidates, retries: u32) -> Self {
        let Candidates { facts, passed_over, agent, error_surface, repeatable: _ } = candidates;
        Self {
            thinking: facts.first().map_or(ThinkingLevel::Off, |first| first.thinking),
            candidates: facts,
            passed_over,
            agent,
            error_surface,
            candidate: 0,
            tried_levels: Vec::new(),
            barred: Vec::new(),
            retried: 0,
            retries,
            asked_again: false,
        }
    }

    /// Returns true if only the text that the candidate puts between tags for its final answer is
    /// shown.
    pub(super) fn is_final_only(&self) -> bool {
        self.current().is_some_and(|candidate| candidate.final_only)
    }

    pub(super) fn candidate(&self) -> usize {
        self.candidate
    }

    pub(super) fn thinking(&self) -> ThinkingLevel {
        self.thinking
    }

    /// A call succeeded: the next failure is a new one.
    pub(super) fn succeeded(&mut self) {
        if self.retried > 0 || self.candidate > 0 {
            tracing::info!(candidate = self.name(), "answered after failures");
        }
        self.retried = 0;
    }

    /// Decides, and moves on to what is tried next. `heard`: some of the answer had arrived.
    pub(super) fn after(&mut self, failure: &ModelFailure, heard: bool) -> RetryDecision {
        let from = self.name();
        let next = self.decide(failure, heard);
        let then = match &next {
            RetryDecision::GiveUp => "giving up".to_owned(),
            RetryDecision::Again(Some(wait)) => format!("once more in {wait:?}"),
            RetryDecision::Again(None) if self.name() == from => format!("with thinking {}", self.thinking),
            RetryDecision::Again(None) => format!("next: {}", self.name()),
        };
        let reason = failure.kind.reason().unwrap_or("unknown");
        tracing::warn!(
            candidate = from, reason, kind = ?failure.kind, status = failure.status, error = %user_text(&failure.message),
            "{from} failed ({reason}); {then}"
        );
        next
    }

    fn decide(&mut self, failure: &ModelFailure, heard: bool) -> RetryDecision {
        if failure.kind.bars_credential() {
            self.barred.extend(self.current().and_then(|candidate| candidate.credential.clone()));
        }
        if failure.kind == FailureKind::Empty && !std::mem::replace(&mut self.asked_again, true) {
            return RetryDecision::Again(Some(Duration::ZERO));
        }
        let following = self.following(failure.kind);
        let repeated_already = !heard && self.current().is_some_and(|candidate| candidate.repeats_itself);
        if !repeated_already {
            if let Some(level) = self.supported_level(failure) {
                self.thinking = level;
                return RetryDecision::Again(None);
            }
            if let Some(wait) = self.wait(failure, following.is_some()) {
                self.retried += 1;
                return RetryDecision::Again(Some(wait));
            }
        }
        let Some(next) = following.filter(|_| failure.kind.falls_over()) else {
            return RetryDecision::GiveUp;
        };
        self.candidate = next;
        self.retried = 0;
        self.tried_levels.clear();
        self.thinking = self.current().map_or(ThinkingLevel::Off, |next| next.thinking);
        RetryDecision::Again(None)
    }

    fn current(&self) -> Option<&CandidateFacts> {
        self.candidates.get(self.candidate)
    }

    /// `provider/model [profile]`
    fn name(&self) -> String {
        let Some(candidate) = self.current() else { return "no model".to_owned() };
        match &candidate.credential {
            Some(credential) => format!("{} [{credential}]", candidate.name),
            None => candidate.name.clone(),
        }
    }

    /// The next candidate whose credential is not barred: of another model, where it is the model that failed.
    fn following(&self, failure: FailureKind) -> Option<usize> {
        let is_of_model = matches!(failure, FailureKind::Gone | FailureKind::Empty);
        let failed = self.current().filter(|_| is_of_model).map(|candidate| &candidate.name);
        let is_open = |facts: &CandidateFacts| {
            failed != Some(&facts.name)
                && facts.credential.as_ref().is_none_or(|credential| !self.barred.contains(credential))
        };
        let ahead = self.candidates.iter().enumerate().skip(self.candidate + 1);
        ahead.into_iter().find(|(_, facts)| is_open(facts)).map(|(at, _)| at)
    }

    /// A level the provider named as supported and that was not tried yet.
    fn supported_level(&mut self, failure: &ModelFailure) -> Option<ThinkingLevel> {
        self.tried_levels.push(self.thinking);
        next_supported(&failure.message, &self.tried_levels)
    }

    /// Returns the backoff before the same candidate is called again; `None` if it is not called
    /// again.
    fn wait(&self, failure: &ModelFailure, another: bool) -> Option<Duration> {
        let worth_it = match failure.kind {
            FailureKind::Transient => true,
            // Someone else may answer at once.
            FailureKind::RateLimit => !another,
            FailureKind::Billing
            | FailureKind::Unaffordable
            | FailureKind::Auth
            | FailureKind::Timeout
            | FailureKind::Format
            | FailureKind::Gone
            | FailureKind::Empty
            | FailureKind::ContextOverflow
            | FailureKind::Other => false,
        };
        if !worth_it || self.retried >= self.most_retries(another) {
            return None;
        }
        let asked = failure.retry_after.unwrap_or_default();
        (asked <= MAX_WAIT).then(|| asked.max(FIRST_WAIT * 2_u32.saturating_pow(self.retried)).min(MAX_WAIT))
    }

    /// Returns the maximum number of repeated calls of a candidate; `another` is true if there is another candidate to try.
    fn most_retries(&self, another: bool) -> u32 {
        if another { self.retries.min(RETRIES_BEFORE_ANOTHER) } else { self.retries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{CandidateFailure, NO_ANSWER, RunErrorKind};
    use crate::retry_notice::NextTry;
    use crate::turn::Sizes;

    const AFTER_ALL: &str = "`openclaw models status --probe` shows which of them answer; `openclaw models fallbacks add \
                             <provider>/<model>` names another.";

    fn failure(kind: FailureKind) -> ModelFailure {
        ModelFailure { kind, status: None, retry_after: None, message: "boom".into() }
    }

    fn attempts(candidates: usize) -> Attempts {
        let facts = |at: usize| CandidateFacts {
            name: format!("p/m{at}"),
            thinking: ThinkingLevel::Low,
            credential: None,
            repeats_itself: false,
            final_only: false,
        };
        Attempts::new(Candidates { facts: (0..candidates).map(facts).collect(), ..Candidates::default() }, 3)
    }

    fn secs(n: u64) -> RetryDecision {
        RetryDecision::Again(Some(Duration::from_secs(n)))
    }

    #[test]
    fn a_hiccup_is_tried_four_times_then_given_up() {
        let mut one = attempts(1);
        let seen: Vec<RetryDecision> =
            (0..4).map(|_| one.after(&failure(FailureKind::Transient), false)).collect();
        assert_eq!(seen, [secs(2), secs(4), secs(8), RetryDecision::GiveUp]);
        one.succeeded();
        assert_eq!(one.after(&failure(FailureKind::RateLimit), false), secs(2));
    }

    #[test]
    fn a_rate_limit_goes_to_the_next_candidate_at_once() {
        let mut two = attempts(2);
        assert_eq!(
            (two.after(&failure(FailureKind::RateLimit), false), two.candidate()),
            (RetryDecision::Again(None), 1)
        );
        assert_eq!((two.after(&failure(FailureKind::RateLimit), false), two.candidate()), (secs(2), 1));
    }

    /// Returns the notice that each failure of a row leads to; `None` for a failure that is not told.
    fn told(attempts: &mut Attempts, failures: &[FailureKind]) -> Vec<Option<NextTry>> {
        let notices = failures.iter().map(|kind| {
            let (failure, from) = (failure(*kind), attempts.candidate());
            let next = attempts.after(&failure, false);
            attempts.notice(from, &next, &failure, false)
        });
        notices.map(|notice| notice.map(|notice| notice.next)).collect()
    }

    fn again(attempt: u32, attempts: u32, seconds: u64) -> Option<NextTry> {
        Some(NextTry::Again { attempt, attempts, wait: Duration::from_secs(seconds) })
    }

    #[test]
    fn each_further_try_is_told_with_its_number() {
        use FailureKind::{Auth, Empty, Format, RateLimit, Transient};
        let other = || Some(NextTry::Fallback { provider: "p".into(), model: "m1".into() });
        let alone = told(&mut attempts(1), &[Transient, Transient, RateLimit, Transient]);
        assert_eq!(alone, [again(2, 4, 2), again(3, 4, 4), again(4, 4, 8), None]);
        let rows: [(&[FailureKind], Vec<Option<NextTry>>); 4] = [
            (&[Transient, Transient], vec![again(2, 2, 2), other()]),
            (&[RateLimit, RateLimit], vec![other(), again(2, 4, 2)]),
            (&[Auth, Format], vec![other(), None]),
            (&[Empty, Empty, Empty], vec![again(2, 2, 0), other(), None]),
        ];
        for (failures, expect) in rows {
            assert_eq!(told(&mut attempts(2), failures), expect, "{failures:?}");
        }
    }

    #[test]
    fn another_way_of_asking_the_same_model_is_not_told() {
        let refused = ModelFailure {
            message: "Unsupported value: 'low'. Supported values are: 'medium'.".into(),
            ..failure(FailureKind::Format)
        };
        let mut one = attempts(1);
        let next = one.after(&refused, false);
        assert_eq!((one.notice(0, &next, &refused, false), next), (None, RetryDecision::Again(None)));
    }

    #[test]
    fn the_providers_wait_is_honoured_up_to_a_minute() {
        let asked =
            |n| ModelFailure { retry_after: Some(Duration::from_secs(n)), ..failure(FailureKind::RateLimit) };
        assert_eq!(attempts(1).after(&asked(17), false), secs(17));
        assert_eq!(attempts(1).after(&asked(1), false), secs(2));
        assert_eq!(attempts(1).after(&asked(61), false), RetryDecision::GiveUp);
    }

    #[test]
    fn what_another_candidate_may_not_have_moves_on_and_the_rest_ends_the_run() {
        use FailureKind::{Auth, Billing, ContextOverflow, Format, Gone, Other, Timeout, Unaffordable};
        for kind in [Auth, Billing, Timeout, Format, Gone, Unaffordable] {
            assert_eq!(attempts(2).after(&failure(kind), false), RetryDecision::Again(None), "{kind:?}");
            assert_eq!(attempts(1).after(&failure(kind), false), RetryDecision::GiveUp, "{kind:?}");
        }
        for kind in [ContextOverflow, Other] {
            assert_eq!(attempts(2).after(&failure(kind), false), RetryDecision::GiveUp, "{kind:?}");
        }
    }

    #[test]
    fn an_empty_answer_is_asked_for_once_more_then_of_another_model() {
        let rows = [("p/big", "p:a"), ("p/big", "p:b"), ("q/m", "")];
        let mut all = with_credentials(&rows, &[]);
        let empty = failure(FailureKind::Empty);
        assert_eq!(
            (all.after(&empty, true), all.candidate()),
            (RetryDecision::Again(Some(Duration::ZERO)), 0)
        );
        assert_eq!((all.after(&empty, true), all.candidate()), (RetryDecision::Again(None), 2));
        assert_eq!(all.after(&empty, true), RetryDecision::GiveUp);
        let seen = |kind| CandidateFailure { candidate: 0, kind, message: "boom".into() };
        let told = |kinds: [FailureKind; 2]| all.error(&kinds.map(seen), &empty).message;
        let nothing = told([FailureKind::Empty; 2]);
        assert!(
            nothing.starts_with(&format!(
                "{NO_ANSWER}\nThe answer was empty, also when asked again: p/big, q/m."
            )),
            "{nothing}"
        );
        assert!(
            told([FailureKind::Billing, FailureKind::Empty])
                .starts_with("All models failed (2): p/big: boom")
        );
    }

    #[test]
    fn a_model_that_is_gone_is_not_asked_with_another_credential() {
        let mut all = with_credentials(&[("p/big", "p:a"), ("p/big", "p:b"), ("p/small", "p:a")], &[]);
        assert_eq!(
            (all.after(&failure(FailureKind::Gone), false), all.candidate()),
            (RetryDecision::Again(None), 2)
        );
    }

    #[test]
    fn a_candidate_that_repeats_by_itself_is_called_again_only_when_its_answer_broke_off() {
        let facts = CandidateFacts {
            name: "p/m".into(),
            thinking: ThinkingLevel::Low,
            credential: None,
            repeats_itself: true,
            final_only: false,
        };
        let mut one = Attempts::new(Candidates { facts: vec![facts], ..Candidates::default() }, 3);
        assert_eq!(one.after(&failure(FailureKind::Transient), true), secs(2));
        assert_eq!(one.after(&failure(FailureKind::Transient), false), RetryDecision::GiveUp);
    }

    #[test]
    fn an_unsupported_thinking_level_is_replaced_by_a_supported_one() {
        let refused = ModelFailure {
            message: "Unsupported value: 'low'. Supported values are: 'medium', 'high'.".into(),
            ..failure(FailureKind::Format)
        };
        let mut one = attempts(1);
        assert_eq!(
            (one.after(&refused, false), one.thinking()),
            (RetryDecision::Again(None), ThinkingLevel::Medium)
        );
        assert_eq!(
            (one.after(&refused, false), one.thinking()),
            (RetryDecision::Again(None), ThinkingLevel::High)
        );
        assert_eq!(one.after(&refused, false), RetryDecision::GiveUp);
    }

    #[test]
    fn the_error_names_every_model_that_was_tried() {
        let mut two = attempts(2);
        two.after(&failure(FailureKind::Auth), false);
        two.after(&failure(FailureKind::Billing), false);
        let seen = |candidate, kind| CandidateFailure { candidate, kind, message: "boom".into() };
        let failures = [seen(0, FailureKind::Auth), seen(1, FailureKind::Billing)];
        let error = two.error(&failures, &failure(FailureKind::Billing));
        let list = "All models failed (2): p/m0: boom (auth) | p/m1: boom (billing)";
        assert_eq!(error.message, format!("{list}\n{AFTER_ALL}"));
        // Each has one line, whatever its provider's words are.
        let page = CandidateFailure { message: "500 <a>\nb".into(), ..seen(0, FailureKind::Transient) };
        let said = two.error(&[page, seen(1, FailureKind::Billing)], &failure(FailureKind::Billing)).message;
        assert_eq!(said.lines().count(), 2, "{said}");
        let alone = attempts(1).error(&failures[..1], &failure(FailureKind::Auth));
        assert_eq!(alone.kind, RunErrorKind::Auth);
        assert!(alone.message.starts_with("boom\nThis came of asking p (model m0). "), "{}", alone.message);
    }

    #[test]
    fn the_error_names_the_provider_that_refused_or_broke_down_and_what_to_do() {
        let rows = [
            (
                FailureKind::Auth,
                Some(401),
                "\nThis is the answer of openai (model gpt, credential openai:me). Set OPENAI_API_KEY in \
                 ~/.openclaw/.env or in the environment of the gateway's service and restart the gateway; or, \
                 without a restart, run \
                 `openclaw models auth paste-token --provider openai`. `openclaw models status` shows which credential is \
                 used.",
            ),
            (
                FailureKind::Transient,
                Some(500),
                "\nThis is the answer of openai (model gpt, credential openai:me). Try again in a moment; `openclaw models \
                 status --probe` shows whether it answers.",
            ),
            (FailureKind::Transient, Some(529), ""),
            (
                FailureKind::Transient,
                None,
                "\nThis came of asking openai (model gpt, credential openai:me). Try again in a moment; `openclaw models \
                 status --probe` shows whether it answers.",
            ),
            // An error inside an answer comes without a status.
            (
                FailureKind::Auth,
                None,
                "\nThis came of asking openai (model gpt, credential openai:me). Set OPENAI_API_KEY in \
                 ~/.openclaw/.env or in the environment of the gateway's service and restart the gateway; or, \
                 without a restart, run `openclaw models \
                 auth paste-token --provider openai`. `openclaw models status` shows which credential is used.",
            ),
            (
                FailureKind::Auth,
                Some(403),
                "\nThis is the answer of openai (model gpt, credential openai:me). It knows the credential and does not permit \
                 this: check the plan, the rights and the region at the provider. /model <provider>/<model> asks another \
                 model. Another credential may be permitted. Set OPENAI_API_KEY in ~/.openclaw/.env or in the \
                 environment of the gateway's service and restart the gateway; or, without a restart, run \
                 `openclaw models auth paste-token \
                 --provider openai`. `openclaw models status` shows which credential is used.",
            ),
            (
                FailureKind::Other,
                Some(418),
                "\nThis is the answer of openai (model gpt, credential openai:me). /model <provider>/<model> asks another \
                 model; `openclaw models status --probe` shows what answers.",
            ),
            (
                FailureKind::Other,
                None,
                "\nThis came of asking openai (model gpt, credential openai:me). /model <provider>/<model> asks another \
                 model; `openclaw models status --probe` shows what answers.",
            ),
            (
                FailureKind::Timeout,
                None,
                "\nThis came of asking openai (model gpt, credential openai:me). Try again in a moment; `openclaw models \
                 status --probe` shows whether it answers.",
            ),
            (
                FailureKind::Format,
                Some(400),
                "\nThis is the answer of openai (model gpt, credential openai:me). It refuses the request as it is: \
                 /model <provider>/<model> asks another model, /new begins a conversation without this history.",
            ),
            (
                FailureKind::Billing,
                Some(402),
                "\nThis is the answer of openai (model gpt, credential openai:me). `openclaw models status` shows which \
                 credential is used.",
            ),
            (
                FailureKind::Timeout,
                Some(408),
                "\nThis is the answer of openai (model gpt, credential openai:me). Try again in a moment; `openclaw models \
                 status --probe` shows whether it answers.",
            ),
        ];
        for (kind, status, expect) in rows {
            let last = ModelFailure { status, ..failure(kind) };
            let one = with_credentials(&[("openai/gpt", "openai:me")], &[]);
            assert_eq!(one.error(&[], &last).message, format!("boom{expect}"), "{kind:?} {status:?}");
        }
        let rows = [
            (FailureKind::Gone, 404, "`openclaw models list --all --provider openai`"),
            (FailureKind::Gone, 302, "models.providers.openai.baseUrl is the address"),
            (FailureKind::RateLimit, 429, "`openclaw models fallbacks add <provider>/<model>`"),
        ];
        for (kind, status, advice) in rows {
            let last = ModelFailure { status: Some(status), ..failure(kind) };
            let told = with_credentials(&[("openai/gpt", "openai:me")], &[]).error(&[], &last).message;
            let whose = "boom\nThis is the answer of openai (model gpt, credential openai:me). It ";
            assert!(told.starts_with(whose) && told.contains(advice), "{told}");
        }
    }

    #[test]
    fn advice_is_for_the_agent_whose_credentials_were_used() {
        let settings = openclaw_models::ModelSettings::default();
        let agent = AgentFlag::of(&settings, &openclaw_protocol::AgentId::normalize("work"));
        let mut one = with_credentials(&[("openai/gpt", "openai:me")], &[]);
        one.agent = agent;
        let told = |kind| one.error(&[], &ModelFailure { status: Some(401), ..failure(kind) }).message;
        for part in [
            "run `openclaw models auth --agent work paste-token --provider openai`",
            "`openclaw models status --agent work` shows which credential is used",
        ] {
            assert!(told(FailureKind::Auth).contains(part), "{}", told(FailureKind::Auth));
        }
        let told = told(FailureKind::Timeout);
        assert!(told.contains("`openclaw models status --agent work --probe`"), "{told}");
    }

    #[test]
    fn advice_names_commands_that_work_where_it_is_read() {
        let ordering =
            ModelFailure { message: "400 roles must alternate".into(), ..failure(FailureKind::Format) };
        let nothing = failure(FailureKind::Empty);
        let empty = CandidateFailure { candidate: 0, kind: FailureKind::Empty, message: String::new() };
        let told = |surface| {
            let mut one = with_credentials(&[("openai/gpt", "openai:me")], &[]);
            one.error_surface = surface;
            let kinds = [FailureKind::Format, FailureKind::Other, FailureKind::Gone].map(failure);
            let denied = ModelFailure { status: Some(403), ..failure(FailureKind::Auth) };
            let no_tools =
                ModelFailure { message: "gpt does not support tools".into(), ..failure(FailureKind::Format) };
            let all = kinds.into_iter().chain([denied, no_tools, ordering.clone()]);
            let mut told: Vec<String> = all.map(|last| one.error(&[], &last).message).collect();
            told.push(one.error(std::slice::from_ref(&empty), &nothing).message);
            let sizes = Sizes { window: 9, fixed: 1, messages: 1, pictures: 2 };
            told.extend(one.too_large(sizes));
            told.join("\n")
        };
        let chat = told(ErrorSurface::Chat);
        assert_eq!(
            (chat.matches("/model <provider>").count(), chat.matches("/new").count()),
            (6, 3),
            "{chat}"
        );
        assert!(!chat.contains("openclaw models set") && !chat.contains("--session-id"), "{chat}");
        let terminal = told(ErrorSurface::CommandLine);
        assert!(!terminal.contains("/model <"), "{terminal}");
        assert_eq!(terminal.matches("`openclaw models set <provider>/<model>`").count(), 6, "{terminal}");
        assert_eq!(terminal.matches("`openclaw agent --session-id <new id>`").count(), 3, "{terminal}");
        assert!(terminal.contains("Send fewer or smaller pictures; "), "{terminal}");
    }

    #[test]
    fn a_model_without_tools_comes_with_two_ways_out() {
        let refused =
            ModelFailure { message: "gemma does not support tools".into(), ..failure(FailureKind::Format) };
        let told = with_credentials(&[("ollama/gemma", "")], &[]).error(&[], &refused).message;
        for part in ["/model <provider>/<model>", "tools.byProvider[\"ollama/gemma\"].deny: [\"*\"]"] {
            assert!(told.contains(part), "{told}");
        }
    }

    /// `name credential` a candidate.
    fn with_credentials(rows: &[(&str, &str)], passed_over: &[&str]) -> Attempts {
        let facts = |(name, credential): &(&str, &str)| CandidateFacts {
            name: (*name).to_owned(),
            thinking: ThinkingLevel::Low,
            credential: Some((*credential).to_owned()).filter(|name| !name.is_empty()),
            repeats_itself: true,
            final_only: false,
        };
        let passed_over = passed_over.iter().map(|line| (*line).to_owned()).collect();
        Attempts::new(
            Candidates { facts: rows.iter().map(facts).collect(), passed_over, ..Candidates::default() },
            3,
        )
    }

    #[test]
    fn a_credential_that_is_barred_is_not_tried_with_other_models() {
        let rows = [("p/big", "p:a"), ("p/big", "p:b"), ("p/small", "p:a"), ("p/small", "p:b"), ("q/m", "")];
        for kind in [FailureKind::RateLimit, FailureKind::Auth, FailureKind::Billing, FailureKind::Timeout] {
            let mut all = with_credentials(&rows, &[]);
            let order: Vec<usize> = (0..3)
                .map(|_| {
                    all.after(&failure(kind), false);
                    all.candidate()
                })
                .collect();
            assert_eq!(order, [1, 4, 4], "{kind:?}");
        }
        // The server's trouble says nothing about the credential.
        let mut all = with_credentials(&rows, &[]);
        all.after(&failure(FailureKind::Transient), false);
        all.after(&failure(FailureKind::Transient), false);
        assert_eq!(all.candidate(), 2);
    }

    #[test]
    fn the_list_has_a_line_a_model_and_those_that_were_left_out() {
        let mut all = with_credentials(
            &[("p/big", "p:a"), ("p/small", "p:a"), ("q/m", "")],
            &["r/m: Unknown model: r/m"],
        );
        let limited = failure(FailureKind::RateLimit);
        all.after(&limited, false);
        assert_eq!(all.after(&limited, false), RetryDecision::GiveUp);
        let seen = |candidate| CandidateFailure { candidate, kind: limited.kind, message: "boom".into() };
        assert_eq!(
            all.error(&[seen(0), seen(2)], &limited).message,
            "All models failed (4): r/m: Unknown model: r/m | p/big: boom (rate_limit) | p/small: Provider p is in \
             cooldown (all profiles unavailable) (rate_limit) | q/m: boom (rate_limit)\n"
                .to_owned()
                + AFTER_ALL
        );
        let two_profiles = with_credentials(&[("p/m", "p:a"), ("p/m", "p:b")], &[]);
        let told = two_profiles.error(&[seen(0), seen(1)], &limited).message;
        assert!(told.starts_with("boom\nThis came of asking p (model m, credential p:a). "), "{told}");
    }
}
