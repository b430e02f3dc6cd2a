//! Reasons why a run is not offered a tool, whatever the policy says.

use std::fmt;

use openclaw_config::settings::{MemoryOff, WebTools};

use crate::path::Confinement;
use crate::setup::Setup;

/// Conditions that decide if a run is offered a tool that it may use.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// Reach of the file tools.
    pub confinement: &'a Confinement,
    /// True if commands run in a sandbox.
    pub has_sandbox: bool,
    /// True if a chat platform is configured.
    pub has_channel: bool,
    /// Reason why `apply_patch` is not offered ([`crate::apply_patch::absence`]).
    pub apply_patch: Option<Absence>,
    /// `tools.web`.
    pub web: &'a WebTools,
    /// True if a model can be asked about images.
    pub has_image_model: bool,
    /// True if a gateway runs that can be controlled.
    pub has_gateway: bool,
    /// Reason why the agent has no memory ([`memory_absence`]).
    pub memory: Option<Absence>,
}

impl<'a> From<&'a Setup> for Conditions<'a> {
    fn from(setup: &'a Setup) -> Self {
        Self {
            confinement: &setup.confinement,
            has_sandbox: setup.exec.sandbox.is_some(),
            has_channel: setup.message.is_some(),
            // A setup was decided on already, and nobody asks it for the reason.
            apply_patch: (!setup.apply_patch).then_some(Absence::OtherModels),
            web: &setup.web.config,
            has_image_model: setup.image.is_some(),
            has_gateway: setup.has_gateway,
            memory: memory_absence(setup.memory_off.as_ref()),
        }
    }
}

/// Reason why a tool is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// OpenClaw has it, this gateway does not.
    NotBuiltIn,
    /// The run is held to a directory, and nothing would hold this tool.
    NotConfinable,
    /// The sandbox of the run may only read its workspace.
    ReadOnlySandbox,
    /// No chat platform is configured to which messages could be sent.
    NoChannel,
    /// A setting switches it off.
    SwitchedOff {
        /// Config path of the setting.
        setting: &'static str,
    },
    /// No model can be asked about images.
    NoImageModel,
    /// A key of `plugins` switches memory off.
    NoMemoryPlugin,
    /// The run is made without a gateway.
    NoGateway,
    /// The tool is only for models of certain other providers.
    OtherProviders,
    /// The tool is only for certain other models.
    OtherModels,
}

impl Absence {
    /// The kind of reason, for programs.
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotBuiltIn => "not-built-in",
            Self::NotConfinable => "not-confinable",
            Self::ReadOnlySandbox => "read-only-sandbox",
            Self::NoChannel => "no-channel",
            Self::SwitchedOff { .. } => "switched-off",
            Self::NoImageModel => "no-image-model",
            Self::NoMemoryPlugin => "no-memory-plugin",
            Self::NoGateway => "no-gateway",
            Self::OtherProviders => "other-providers",
            Self::OtherModels => "other-models",
        }
    }

    /// The setting that says so, if one does.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Self::SwitchedOff { setting } => Some(setting),
            Self::OtherModels => Some("tools.exec.applyPatch.allowModels"),
            Self::NoImageModel => Some("agents.defaults.imageModel"),
            Self::NoMemoryPlugin => Some("plugins.slots.memory"),
            Self::ReadOnlySandbox => Some("agents.defaults.sandbox.workspaceAccess"),
            Self::NotBuiltIn
            | Self::NotConfinable
            | Self::NoChannel
            | Self::NoGateway
            | Self::OtherProviders => None,
        }
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuiltIn => f.write_str("this version does not have it yet"),
            Self::NotConfinable => f.write_str("it can't be held to the directory of the sandbox"),
            Self::ReadOnlySandbox => f.write_str("the sandbox may only read its workspace"),
            Self::NoChannel => f.write_str("no chat platform is configured"),
            Self::SwitchedOff { setting } => write!(f, "switched off: {setting} is not true"),
            Self::NoImageModel => f.write_str("no model that takes images is connected"),
            Self::NoMemoryPlugin => f.write_str("the memory plugin is switched off in plugins"),
            Self::NoGateway => f.write_str("the run is made without a gateway"),
            Self::OtherProviders => f.write_str("only for models of openai and openai-codex"),
            Self::OtherModels => f.write_str("this model is not in tools.exec.applyPatch.allowModels"),
        }
    }
}

/// Returns the reason why an agent is not offered the tools of memory.
pub fn memory_absence(off: Option<&MemoryOff>) -> Option<Absence> {
    match off? {
        MemoryOff::Search => Some(Absence::SwitchedOff { setting: "agents.defaults.memorySearch.enabled" }),
        MemoryOff::Plugin { .. } => Some(Absence::NoMemoryPlugin),
    }
}
