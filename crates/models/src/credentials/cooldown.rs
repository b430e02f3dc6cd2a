//! Usage statistics of a profile, and its cooldown after failures (spec `models.md` §8.5). Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::reference::ProviderId;
use crate::settings::CooldownRules;
use crate::stream::FailureKind;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// First cooldown; each further failure makes it five times longer.
const FIRST_COOLDOWN: i64 = MINUTE;
/// Longest cooldown after failures other than payment.
const LONGEST_COOLDOWN: i64 = HOUR;
/// Tolerance for a stored failure time that lies in the future; if it is exceeded, a clock was set
/// back in the meantime.
const CLOCK_TOLERANCE: i64 = MINUTE;
/// `disabledReason` and the counter of payment failures.
const BILLING: &str = "billing";
/// The counter of refused credentials.
const REFUSED: &str = "auth";
/// The counter of the server's own trouble.
const TROUBLE: &str = "unknown";

/// `usageStats.<profile>`. Times are Unix milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageStats {
    /// The last use.
    pub last_used: Option<i64>,
    /// Failures since the last success.
    pub error_count: u32,
    /// The end of its cooldown after failures.
    pub cooldown_until: Option<i64>,
    /// Time until which the profile is disabled, as after a payment failure.
    pub disabled_until: Option<i64>,
    /// Reason why the profile is disabled.
    pub disabled_reason: Option<String>,
    /// Failures by reason.
    pub failure_counts: BTreeMap<String, u32>,
    /// The last failure.
    pub last_failure_at: Option<i64>,
}

impl CooldownRules {
    fn billing_first(&self, provider: &ProviderId) -> i64 {
        let mut by_provider = self.billing_first_by_provider.iter();
        let own = by_provider.find(|(id, _)| ProviderId::normalize(id) == *provider);
        own.map_or(self.billing_first, |(_, first)| *first)
    }
}

/// The counter a failure is written under; nothing for one that says nothing about the credential.
pub fn failure_reason(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::RateLimit => Some("rate_limit"),
        FailureKind::Auth => Some(REFUSED),
        FailureKind::Timeout => Some("timeout"),
        FailureKind::Billing => Some(BILLING),
        FailureKind::Transient => Some(TROUBLE),
        // The request is at fault, not who sent it: another profile would fail in the same way.
        FailureKind::Unaffordable
        | FailureKind::Format
        | FailureKind::Gone
        | FailureKind::Empty
        | FailureKind::ContextOverflow
        | FailureKind::Other => None,
    }
}

impl UsageStats {
    /// Returns the time until which the profile should not be used; 0 if it may be used. A cooldown
    /// that began in what is now the future was written with another clock and does not count.
    pub fn unusable_until(&self, now: i64) -> i64 {
        let until = self.cooldown_until.unwrap_or(0).max(self.disabled_until.unwrap_or(0));
        let from_the_future = self.last_failure_at.is_some_and(|at| at > now.saturating_add(CLOCK_TOLERANCE));
        if until <= now || from_the_future { 0 } else { until }
    }

    /// Returns true if the profile is in cooldown or disabled.
    pub fn is_cooling_down(&self, now: i64) -> bool {
        self.unusable_until(now) > now
    }

    /// Returns true if the profile is in cooldown for a reason of its own, rather than only for the
    /// server's trouble.
    pub fn is_barred(&self, now: i64) -> bool {
        let only_trouble = self.error_count == 0 && self.failure_counts.contains_key(TROUBLE);
        self.is_cooling_down(now) && (!only_trouble || self.disabled_until.is_some_and(|until| until > now))
    }

    /// Returns the reasons of failures since the last success. The server's own trouble is left out:
    /// it passes by itself, and says nothing of the credential.
    pub fn failures_of_credential(&self) -> Vec<&str> {
        self.failure_counts.keys().map(String::as_str).filter(|reason| *reason != TROUBLE).collect()
    }

    /// Returns true if the provider refused the credential itself since the last success.
    pub fn was_refused(&self) -> bool {
        self.failure_counts.contains_key(REFUSED)
    }

    /// Counts a failure and begins a cooldown. Says whether anything changed: a failure that is the request's fault
    /// changes nothing.
    pub fn record_failure(
        &mut self,
        kind: FailureKind,
        provider: &ProviderId,
        rules: &CooldownRules,
        now: i64,
    ) -> bool {
        let Some(reason) = failure_reason(kind) else { return false };
        self.forget_old(rules, now);
        self.last_failure_at = Some(now);
        let count = self.failure_counts.entry(reason.to_owned()).or_default();
        *count = count.saturating_add(1);
        let same = *count;
        match kind {
            FailureKind::Billing => {
                self.error_count = self.error_count.saturating_add(1);
                self.disabled_until = Some(now.saturating_add(billing_cooldown(same, provider, rules)));
                self.disabled_reason = Some(BILLING.to_owned());
            }
            // The server's trouble passes by itself: a short cooldown that does not grow.
            FailureKind::Transient => self.cooldown_until = Some(now.saturating_add(FIRST_COOLDOWN)),
            FailureKind::RateLimit
            | FailureKind::Auth
            | FailureKind::Timeout
            | FailureKind::Unaffordable
            | FailureKind::Format
            | FailureKind::Gone
            | FailureKind::Empty
            | FailureKind::ContextOverflow
            | FailureKind::Other => {
                self.error_count = self.error_count.saturating_add(1);
                self.cooldown_until = Some(now.saturating_add(cooldown(self.error_count)));
            }
        }
        true
    }

    /// Forgets every failure.
    pub fn record_success(&mut self, now: i64) {
        *self = Self { last_used: Some(now), ..Self::default() };
    }

    fn forget_old(&mut self, rules: &CooldownRules, now: i64) {
        let old = self.last_failure_at.is_some_and(|at| {
            now.saturating_sub(at) > rules.window || at > now.saturating_add(CLOCK_TOLERANCE)
        });
        if old {
            *self = Self { last_used: self.last_used, ..Self::default() };
        }
    }

    /// Reads what is written; what is odd counts as absent.
    pub(super) fn read(stats: &Map<String, Value>) -> Self {
        let count = |value: &Value| u32::try_from(millis(value)?).ok();
        let time = |name: &str| stats.get(name).and_then(millis).filter(|at| *at > 0);
        let counts = stats.get("failureCounts").and_then(Value::as_object).into_iter().flatten();
        Self {
            last_used: time("lastUsed"),
            error_count: stats.get("errorCount").and_then(count).unwrap_or(0),
            cooldown_until: time("cooldownUntil"),
            disabled_until: time("disabledUntil"),
            disabled_reason: stats.get("disabledReason").and_then(Value::as_str).map(str::to_owned),
            failure_counts: counts
                .filter_map(|(reason, value)| Some((reason.clone(), count(value)?)))
                .collect(),
            last_failure_at: time("lastFailureAt"),
        }
    }

    /// Writes it over what is there; fields of others stay.
    pub(super) fn write(&self, stats: &mut Map<String, Value>) {
        let counts = (!self.failure_counts.is_empty()).then(|| json!(self.failure_counts));
        let reset = self.error_count > 0 || stats.contains_key("errorCount") || self.last_used.is_some();
        let fields = [
            ("lastUsed", self.last_used.map(Value::from)),
            ("errorCount", reset.then(|| json!(self.error_count))),
            ("cooldownUntil", self.cooldown_until.map(Value::from)),
            ("disabledUntil", self.disabled_until.map(Value::from)),
            ("disabledReason", self.disabled_reason.clone().map(Value::from)),
            ("failureCounts", counts),
            ("lastFailureAt", self.last_failure_at.map(Value::from)),
        ];
        for (name, value) in fields {
            match value {
                Some(value) => drop(stats.insert(name.to_owned(), value)),
                None => drop(stats.shift_remove(name)),
            }
        }
    }
}

/// 1, 5, 25 and then 60 minutes.
fn cooldown(errors: u32) -> i64 {
    let steps = errors.saturating_sub(1).min(3);
    LONGEST_COOLDOWN.min(FIRST_COOLDOWN.saturating_mul(5_i64.saturating_pow(steps)))
}

/// Twice as long each time: 5, 10, 20 and then 24 hours unless configured otherwise.
fn billing_cooldown(count: u32, provider: &ProviderId, rules: &CooldownRules) -> i64 {
    let steps = count.saturating_sub(1).min(10);
    let cooldown = rules.billing_first(provider).saturating_mul(2_i64.saturating_pow(steps));
    cooldown.min(rules.billing_longest)
}

/// A whole number, which a file may write as `1.0`.
pub(super) fn millis(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "as saturates")]
    let whole = |number: f64| number.is_finite().then_some(number as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: i64 = 1_760_000_000_000;

    fn provider() -> ProviderId {
        ProviderId::normalize("anthropic")
    }

    fn fail(stats: &mut UsageStats, kind: FailureKind, now: i64) -> bool {
        stats.record_failure(kind, &provider(), &CooldownRules::default(), now)
    }

    #[test]
    fn each_further_failure_has_a_longer_cooldown_up_to_an_hour() {
        for kind in [FailureKind::RateLimit, FailureKind::Auth, FailureKind::Timeout] {
            let mut stats = UsageStats::default();
            let cooldowns: Vec<i64> = (0..6)
                .map(|_| {
                    fail(&mut stats, kind, NOW);
                    (stats.unusable_until(NOW) - NOW) / MINUTE
                })
                .collect();
            assert_eq!(cooldowns, [1, 5, 25, 60, 60, 60], "{kind:?}");
            assert_eq!(stats.failure_counts.values().collect::<Vec<_>>(), [&6]);
        }
    }

    #[test]
    fn failures_of_the_credential_are_told_until_it_succeeds() {
        let mut stats = UsageStats::default();
        fail(&mut stats, FailureKind::Transient, NOW);
        assert_eq!(stats.failures_of_credential(), [""; 0], "the server's own trouble");
        fail(&mut stats, FailureKind::Billing, NOW);
        fail(&mut stats, FailureKind::Auth, NOW);
        assert_eq!(stats.failures_of_credential(), ["auth", "billing"]);
        stats.record_success(NOW);
        assert_eq!(stats.failures_of_credential(), [""; 0]);
    }

    #[test]
    fn payment_failures_disable_for_hours() {
        let mut stats = UsageStats::default();
        let cooldowns: Vec<i64> = (0..5)
            .map(|_| {
                fail(&mut stats, FailureKind::Billing, NOW);
                (stats.unusable_until(NOW) - NOW) / HOUR
            })
            .collect();
        assert_eq!(cooldowns, [5, 10, 20, 24, 24]);
        assert_eq!((stats.disabled_reason.as_deref(), stats.cooldown_until), (Some("billing"), None));
    }

    #[test]
    fn the_configuration_sets_the_hours_of_payment_failures() {
        let config = openclaw_config::settings::AuthCooldowns {
            billing_backoff_hours: Some(1.0),
            billing_backoff_hours_by_provider: [("Anthropic".to_owned(), 0.5), ("groq".to_owned(), -1.0)]
                .into(),
            billing_max_hours: Some(2.0),
            failure_window_hours: Some(f64::NAN),
        };
        let rules = CooldownRules::from(&config);
        assert_eq!(rules.window, 24 * HOUR);
        let hour = openclaw_config::settings::AuthCooldowns { failure_window_hours: Some(1.0), ..config };
        let mut stats = UsageStats::default();
        for (at, minutes) in [(NOW, 1), (NOW + HOUR, 5), (NOW + 2 * HOUR + 1, 1)] {
            stats.record_failure(FailureKind::Auth, &provider(), &CooldownRules::from(&hour), at);
            assert_eq!(stats.unusable_until(at) - at, minutes * MINUTE);
        }
        for (id, expect) in [("anthropic", [30, 60, 120, 120]), ("groq", [60, 120, 120, 120])] {
            let mut stats = UsageStats::default();
            let cooldowns = expect.map(|_| {
                stats.record_failure(FailureKind::Billing, &ProviderId::normalize(id), &rules, NOW);
                (stats.unusable_until(NOW) - NOW) / MINUTE
            });
            assert_eq!(cooldowns, expect, "{id}");
        }
    }

    #[test]
    fn a_success_clears_what_failures_left() {
        let mut stats = UsageStats::default();
        fail(&mut stats, FailureKind::Billing, NOW);
        fail(&mut stats, FailureKind::RateLimit, NOW);
        stats.record_success(NOW + 1);
        assert_eq!(stats, UsageStats { last_used: Some(NOW + 1), ..UsageStats::default() });
        assert!(!stats.is_cooling_down(NOW + 1));
    }

    #[test]
    fn a_request_at_fault_never_cools_a_profile_down() {
        use FailureKind::{ContextOverflow, Empty, Format, Gone, Other, Unaffordable};
        for kind in [Format, ContextOverflow, Other, Gone, Empty, Unaffordable] {
            let mut stats = UsageStats::default();
            assert!(!fail(&mut stats, kind, NOW), "{kind:?}");
            assert_eq!(stats, UsageStats::default(), "{kind:?}");
        }
    }

    #[test]
    fn a_servers_trouble_is_a_cooldown_of_a_minute_however_often_it_comes() {
        let mut stats = UsageStats::default();
        for _ in 0..5 {
            fail(&mut stats, FailureKind::Transient, NOW);
        }
        assert_eq!((stats.unusable_until(NOW) - NOW, stats.error_count), (MINUTE, 0));
    }

    #[test]
    fn failures_are_forgotten_after_the_window_and_by_success() {
        let mut stats = UsageStats { last_used: Some(7), ..UsageStats::default() };
        for _ in 0..3 {
            fail(&mut stats, FailureKind::RateLimit, NOW);
        }
        let mut later = stats.clone();
        fail(&mut later, FailureKind::RateLimit, NOW + 24 * HOUR + 1);
        assert_eq!((later.error_count, later.last_used), (1, Some(7)));
        fail(&mut stats, FailureKind::RateLimit, NOW + 24 * HOUR);
        assert_eq!(stats.error_count, 4);
        stats.record_success(NOW);
        assert_eq!(stats, UsageStats { last_used: Some(NOW), ..UsageStats::default() });
    }

    #[test]
    fn a_rest_ends_to_the_millisecond() {
        let mut stats = UsageStats::default();
        fail(&mut stats, FailureKind::RateLimit, NOW);
        let rows = [(NOW, true), (NOW + MINUTE - 1, true), (NOW + MINUTE, false)];
        assert_eq!(rows.map(|(now, _)| (now, stats.is_cooling_down(now))), rows);
    }

    #[test]
    fn a_clock_set_back_by_an_hour_lets_nobody_rest_for_it() {
        let mut stats = UsageStats::default();
        fail(&mut stats, FailureKind::RateLimit, NOW);
        assert!(!stats.is_cooling_down(NOW - HOUR));
        assert!(stats.is_cooling_down(NOW - 1_000), "small corrections of the clock change nothing");
        fail(&mut stats, FailureKind::RateLimit, NOW - HOUR);
        assert_eq!((stats.error_count, stats.unusable_until(NOW - HOUR)), (1, NOW - HOUR + MINUTE));
        // Set forward: the cooldown is over early, and one failure more begins the next.
        assert!(!stats.is_cooling_down(NOW));
    }

    #[test]
    fn what_others_wrote_is_read_and_kept() {
        let written = json!({"lastUsed": 5.0, "errorCount": 2, "cooldownUntil": "soon", "later": [1],
            "failureCounts": {"auth": 1, "odd": {}}});
        let mut map = written.as_object().unwrap().clone();
        let mut stats = UsageStats::read(&map);
        assert_eq!(stats.failure_counts, [("auth".to_owned(), 1)].into());
        stats.record_success(9);
        stats.write(&mut map);
        assert_eq!(Value::Object(map), json!({"lastUsed": 9, "errorCount": 0, "later": [1]}));
    }

    proptest! {
        #[test]
        fn no_cooldown_is_longer_than_its_cap(kinds in prop::collection::vec(0..4_usize, 1..40), step in 0..HOUR) {
            let mut stats = UsageStats::default();
            let mut now = NOW;
            for kind in kinds {
                let kind = [FailureKind::RateLimit, FailureKind::Billing, FailureKind::Transient, FailureKind::Format][kind];
                let before = stats.unusable_until(now);
                fail(&mut stats, kind, now);
                let until = stats.unusable_until(now);
                prop_assert!(until <= now + 24 * HOUR);
                prop_assert!(kind == FailureKind::Format && until == before || until > now || failure_reason(kind).is_none());
                let mut map = Map::new();
                stats.write(&mut map);
                prop_assert_eq!(&UsageStats::read(&map), &stats);
                now += step;
            }
        }
    }
}
