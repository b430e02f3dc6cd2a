//! Rights of a run. A run has the rights of the least trusted caller whose words it was given as a request (its own message, messages
//! collected with it, messages steered into it), limited further by its session. Whatever the run causes carries those rights along and
//! never gains any (decision 51): pressing a button that a run made grants no more rights than that run has.
//!
//! [`Rights`] are settled once, when a message is accepted ([`mod@settle`]), and stored with it. Later stages ask them and look nothing up
//! again. [`groups`] reads the tool policies of a group, [`elevated`] the gates of elevated commands.

pub mod elevated;
pub mod groups;
pub mod settle;

use openclaw_config::settings::ToolPolicy;
use serde::{Deserialize, Serialize};

/// Trust in a caller, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Trust {
    /// Any other caller, or the gateway by itself: anybody may have been the cause.
    #[default]
    Other,
    /// A run that the owner caused, or a sender who was let in by hand while no owner is named.
    OnBehalf,
    /// The owner's own words.
    Owner,
}

/// Rights of one run. Stored with its message as JSON: fields may be added, and an absent field grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rights {
    trust: Trust,
    /// True if all gates of elevated commands are open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    elevated: bool,
    /// True if the run may work outside a sandbox.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    host: bool,
    /// True if the run is given `MEMORY.md`, in a session that has it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    memory: bool,
    /// Tool policies of groups and their members. All of them apply. Sorted, without duplicates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolPolicy>,
}

/// Rights of a sender who is heard but about whom nothing more is known.
pub static ANYBODY: Rights =
    Rights { trust: Trust::Other, elevated: false, host: true, memory: false, tools: Vec::new() };

/// Maker of a button that says words when it is pressed. A press has no more rights than the maker.
#[derive(Debug, Clone, PartialEq)]
pub enum Maker {
    /// A run, or a client, with these rights.
    Known(Rights),
    /// Unknown: it may have been anybody in the session.
    Unknown,
}

/// Grants nothing but the tools that everybody has, in a sandbox.
impl Default for Rights {
    fn default() -> Self {
        Self { trust: Trust::Other, elevated: false, host: false, memory: false, tools: Vec::new() }
    }
}

impl Rights {
    /// All rights, without any limit.
    pub const ALL: Self =
        Self { trust: Trust::Owner, elevated: true, host: true, memory: true, tools: Vec::new() };

    /// Returns the rights that both `self` and `other` have.
    pub fn least(&self, other: &Self) -> Self {
        let mut tools = self.tools.clone();
        tools.extend(other.tools.iter().cloned());
        tools.sort();
        tools.dedup();
        Self {
            trust: self.trust.min(other.trust),
            elevated: self.elevated && other.elevated,
            host: self.host && other.host,
            memory: self.memory && other.memory,
            tools,
        }
    }

    /// Returns the rights of everything that a run with these rights causes. No person says it, so
    /// its commands are never elevated, and it lacks the tools that only the owner's own words
    /// have.
    pub fn caused(&self) -> Self {
        Self { trust: self.trust.min(Trust::OnBehalf), elevated: false, ..self.clone() }
    }

    /// Returns these rights, confined to a sandbox.
    pub fn in_sandbox(self) -> Self {
        Self { host: false, ..self }
    }

    /// True if `other` grants nothing that `self` does not.
    pub fn cover(&self, other: &Self) -> bool {
        self.least(other) == *other
    }

    /// True if the owner asks.
    pub fn are_owners(&self) -> bool {
        self.trust == Trust::Owner
    }

    /// Tool policies of groups that apply.
    pub fn tool_policies(&self) -> &[ToolPolicy] {
        &self.tools
    }

    /// True if commands may be elevated.
    pub fn may_elevate(&self) -> bool {
        self.elevated
    }

    /// True if the run may work outside a sandbox, unless its session is confined to one.
    pub fn may_use_host(&self) -> bool {
        self.host
    }

    /// True if the run is given `MEMORY.md`, in a session that has it.
    pub fn read_memory(&self) -> bool {
        self.memory
    }

    /// True if the run may read the history and state of sessions that it did not start.
    pub fn see_other_sessions(&self) -> bool {
        self.trust >= Trust::OnBehalf
    }
}

/// Rights for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    /// Rights of a sender who is heard and is not the owner.
    pub use super::ANYBODY as STRANGERS;
    use super::Rights;

    /// Rights of the owner.
    pub static OWNERS: Rights = Rights::ALL;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policies() -> impl Strategy<Value = Vec<ToolPolicy>> {
        let policy = prop::sample::select(vec!["exec", "read", "write"])
            .prop_map(|name| ToolPolicy { deny: Some(vec![name.to_owned()]), ..ToolPolicy::default() });
        prop::collection::btree_set(policy, 0..3).prop_map(|policies| policies.into_iter().collect())
    }

    fn rights() -> impl Strategy<Value = Rights> {
        let trust = prop::sample::select(vec![Trust::Other, Trust::OnBehalf, Trust::Owner]);
        let made = (trust, any::<bool>(), any::<bool>(), any::<bool>(), policies());
        made.prop_map(|(trust, elevated, host, memory, tools)| Rights {
            trust,
            elevated,
            host,
            memory,
            tools,
        })
    }

    proptest! {
        #[test]
        fn the_least_of_two_is_a_meet(a in rights(), b in rights(), c in rights()) {
            prop_assert_eq!(a.least(&b), b.least(&a));
            prop_assert_eq!(a.least(&b).least(&c), a.least(&b.least(&c)));
            prop_assert_eq!(&a.least(&a), &a);
            prop_assert_eq!(&a.least(&Rights::ALL), &a);
        }

        #[test]
        fn the_least_of_two_is_never_more_than_either(a in rights(), b in rights()) {
            let least = a.least(&b);
            prop_assert!(a.cover(&least) && b.cover(&least));
            prop_assert!(least.trust <= a.trust && least.trust <= b.trust);
            prop_assert!(a.tools.iter().chain(&b.tools).all(|policy| least.tools.contains(policy)));
        }

        #[test]
        fn what_is_caused_never_gains(a in rights(), b in rights()) {
            prop_assert!(a.cover(&a.caused()));
            prop_assert_eq!(a.caused().caused(), a.caused());
            prop_assert_eq!(a.least(&b).caused(), a.caused().least(&b.caused()));
            prop_assert!(!a.caused().are_owners() && !a.caused().may_elevate());
        }

        #[test]
        fn stored_rights_are_read_as_they_were(a in rights()) {
            let stored = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<Rights>(&stored).unwrap(), a);
        }
    }

    #[test]
    fn what_is_absent_in_stored_rights_grants_nothing() {
        assert_eq!(serde_json::from_str::<Rights>("{}").unwrap(), Rights::default());
        assert!(testing::STRANGERS.cover(&Rights::default()));
    }
}
