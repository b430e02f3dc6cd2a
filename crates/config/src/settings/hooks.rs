//! `hooks.internal.*`: programs that are told what happens in the gateway (spec `agent-runtime.md` §8).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Secret;

/// `hooks`. Settings of webhooks are not read yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hooks {
    /// Hooks that run in or below the gateway.
    pub internal: InternalHooks,
}

/// `hooks.internal`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InternalHooks {
    /// Switch of all hooks; off unless it says `true`.
    pub enabled: Option<bool>,
    /// Single handlers, OpenClaw's older way to name them.
    pub handlers: Vec<HookModule>,
    /// Programs for hook points, ours.
    pub commands: Vec<HookCommand>,
    /// Settings by hook.
    pub entries: BTreeMap<String, HookEntry>,
    /// Further directories to look in.
    pub load: HooksLoad,
}

/// `hooks.internal.handlers[]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookModule {
    /// Such as `command:new`.
    pub event: String,
    /// The file.
    pub module: String,
    /// Name of the export to call; default `default`.
    pub export: Option<String>,
}

/// `hooks.internal.commands[]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookCommand {
    /// A hook point, such as `before_tool_call`, or an event, such as `command:new`.
    pub event: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Higher ones run first; default 0.
    pub priority: Option<f64>,
}

/// `hooks.internal.entries.<hook>`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookEntry {
    /// `false` switches it off.
    pub enabled: Option<bool>,
    /// Variables of its handler; values may be secrets.
    pub env: BTreeMap<String, Secret>,
    /// Settings that only the hook itself knows.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// `hooks.internal.load`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HooksLoad {
    /// Directories of further hooks.
    pub extra_dirs: Vec<String>,
}

impl InternalHooks {
    /// True if hooks are wanted.
    pub fn is_on(&self) -> bool {
        self.enabled == Some(true)
    }
}
