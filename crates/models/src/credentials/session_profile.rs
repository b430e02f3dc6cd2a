//! Chooses the profile that a session keeps from turn to turn (spec `models.md` §8.6). Pure.

use super::store::AuthStore;
use crate::reference::ProviderId;

/// `authProfileOverride` of a session with what is kept beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The profile.
    pub profile: String,
    /// Author of the choice: `authProfileOverrideSource`.
    pub source: PinSource,
    /// `authProfileOverrideCompactionCount`: compactions of the session when it was chosen by itself.
    pub compactions: Option<u64>,
}

/// Author of the choice of a session's profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinSource {
    /// A person, with `/model name@profile`.
    User,
    /// No person chose it: it was selected automatically.
    Auto,
}

/// The session as a turn begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionState {
    /// True if the session has no history yet.
    pub is_new: bool,
    /// Number of compactions of the session.
    pub compactions: u64,
}

/// The profile of this turn: what the session should keep from now on, nothing when no profile of the provider is in
/// `order` (which [`super::profile_order`] made). A person's choice is the only candidate of a run; one made by itself is
/// only its first.
pub fn pin(
    current: Option<&Pin>,
    session: SessionState,
    provider: &ProviderId,
    order: &[String],
    store: &AuthStore,
    now: i64,
) -> Option<Pin> {
    let is_of = |pin: &&Pin| store.get(&pin.profile).is_some_and(|known| known.provider == *provider);
    let current = current.filter(is_of).filter(|pin| order.contains(&pin.profile));
    if let Some(pin) = current.filter(|pin| pin.source == PinSource::User && !session.is_new) {
        return Some(pin.clone());
    }
    let ready = |id: &&String| !store.usage(id).is_cooling_down(now);
    let first = || order.iter().find(ready).or_else(|| order.first());
    let next = |after: &str| {
        let at = order.iter().position(|id| id == after).unwrap_or(0);
        let mut round = order.iter().cycle().skip(at + 1).take(order.len());
        round.find(ready).or_else(|| order.first())
    };
    let profile = match current {
        Some(pin) if session.is_new => next(&pin.profile),
        Some(pin) if session.compactions > pin.compactions.unwrap_or(session.compactions) => {
            next(&pin.profile)
        }
        Some(pin) if store.usage(&pin.profile).is_cooling_down(now) => first(),
        Some(pin) => Some(&pin.profile),
        None => first(),
    }?;
    let kept = current.filter(|pin| pin.source == PinSource::Auto && pin.profile == *profile);
    let compactions = match kept {
        Some(pin) if !session.is_new && session.compactions <= pin.compactions.unwrap_or(u64::MAX) => {
            pin.compactions.unwrap_or(session.compactions)
        }
        Some(_) | None => session.compactions,
    };
    Some(Pin { profile: profile.clone(), source: PinSource::Auto, compactions: Some(compactions) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_760_000_000_000;
    const OLD: SessionState = SessionState { is_new: false, compactions: 2 };
    const NEW: SessionState = SessionState { is_new: true, compactions: 0 };

    fn auto(profile: &str, compactions: u64) -> Pin {
        Pin { profile: profile.to_owned(), source: PinSource::Auto, compactions: Some(compactions) }
    }

    fn user(profile: &str) -> Pin {
        Pin { profile: profile.to_owned(), source: PinSource::User, compactions: None }
    }

    fn check(current: Option<&Pin>, session: SessionState, cooling_down: &[&str], expect: Option<&Pin>) {
        let key = |provider: &str| json!({"type": "api_key", "provider": provider, "key": "k"});
        let usage: serde_json::Map<_, _> =
            cooling_down.iter().map(|id| ((*id).to_owned(), json!({"cooldownUntil": NOW + 1}))).collect();
        let document = json!({"usageStats": usage, "profiles": {"a": key("groq"), "b": key("groq"),
            "c": key("groq"), "out": key("groq"), "x": key("xai")}});
        let store = AuthStore::parse(document.to_string().as_bytes()).unwrap();
        let order = ["a", "b", "c"].map(str::to_owned);
        let found = pin(current, session, &ProviderId::normalize("groq"), &order, &store, NOW);
        assert_eq!(found.as_ref(), expect, "{current:?} {session:?} {cooling_down:?}");
    }

    #[test]
    fn a_persons_choice_stays_until_the_session_is_new() {
        check(Some(&user("b")), OLD, &["b"], Some(&user("b")));
        check(Some(&user("b")), NEW, &[], Some(&auto("c", 0)));
    }

    #[test]
    fn what_is_gone_foreign_or_out_of_the_order_is_cleared() {
        for pin in [user("gone"), user("x"), user("out"), auto("gone", 2)] {
            check(Some(&pin), OLD, &[], Some(&auto("a", 2)));
        }
    }

    #[test]
    fn a_session_takes_the_first_that_is_ready_and_keeps_it() {
        check(None, OLD, &[], Some(&auto("a", 2)));
        check(None, OLD, &["a"], Some(&auto("b", 2)));
        check(Some(&auto("b", 2)), OLD, &[], Some(&auto("b", 2)));
        check(Some(&auto("c", 2)), OLD, &["c"], Some(&auto("a", 2)));
        check(Some(&auto("c", 2)), OLD, &["a", "b", "c"], Some(&auto("a", 2)));
    }

    #[test]
    fn a_new_session_and_a_compaction_go_on_to_the_next() {
        check(Some(&auto("a", 0)), NEW, &[], Some(&auto("b", 0)));
        check(Some(&auto("c", 0)), NEW, &["a"], Some(&auto("b", 0)));
        check(Some(&auto("a", 1)), OLD, &[], Some(&auto("b", 2)));
        check(Some(&auto("a", 1)), OLD, &["b", "c"], Some(&auto("a", 2)));
    }

    #[test]
    fn without_profiles_there_is_no_choice() {
        let found =
            pin(Some(&user("a")), OLD, &ProviderId::normalize("groq"), &[], &AuthStore::default(), NOW);
        assert_eq!(found, None);
    }
}
