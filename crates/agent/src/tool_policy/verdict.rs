//! Verdict of the chain on a tool, with the rule that decided.

use std::fmt;

use openclaw_config::settings::ToolProfile;

/// Verdict on a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolVerdict<'a> {
    /// Tool name.
    pub name: &'a str,
    /// The first rule that removed it; `None` where all of them kept it.
    pub removed: Option<Removal>,
}

/// The rule that removed a tool. A step is named by its config path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// The sender is not the owner.
    OwnerOnly,
    /// The profile does not hold it.
    NotInProfile {
        /// Config path of the step that names the profile.
        step: &'static str,
        /// Profile that does not contain the tool.
        profile: ToolProfile,
    },
    /// The step allows others only.
    NotAllowed {
        /// Config path of the step.
        step: &'static str,
    },
    /// The step denies it.
    Denied {
        /// Config path of the step.
        step: &'static str,
        /// The entry of its list, as it is configured.
        entry: String,
    },
    /// No sub-agent has it.
    NotForSubagents,
    /// Needs another tool, which was removed.
    Needs {
        /// Name of the tool.
        tool: String,
    },
}

impl Removal {
    /// The kind of rule, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::OwnerOnly => "owner-only",
            Self::NotInProfile { .. } => "not-in-profile",
            Self::NotAllowed { .. } => "not-allowed",
            Self::Denied { .. } => "denied",
            Self::NotForSubagents => "not-for-subagents",
            Self::Needs { .. } => "needs-another",
        }
    }

    /// Config path of the rule; `None` for rules that every config has.
    pub fn step(&self) -> Option<&'static str> {
        match self {
            Self::NotInProfile { step, .. } | Self::NotAllowed { step } | Self::Denied { step, .. } => {
                Some(step)
            }
            Self::OwnerOnly | Self::NotForSubagents | Self::Needs { .. } => None,
        }
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnerOnly => f.write_str("only the owner has it"),
            Self::NotInProfile { step, profile } => write!(f, "not in {step} \"{}\"", profile.as_str()),
            Self::NotAllowed { step } => write!(f, "not in {step}.allow"),
            Self::Denied { step, entry } => write!(f, "denied by \"{entry}\" in {step}.deny"),
            Self::NotForSubagents => f.write_str("no sub-agent has it"),
            Self::Needs { tool } => write!(f, "needs {tool}, which it has not"),
        }
    }
}
