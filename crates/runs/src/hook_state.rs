//! State that hooks are run with.

use std::sync::Arc;

use openclaw_agent::hooks::{HookBus, HookTasks};
use openclaw_runtime::setup::Settings;
use parking_lot::Mutex;

use crate::secrets::Shield;

/// State that hooks are run with.
#[derive(Default)]
pub struct Hooks {
    pub(crate) tasks: Arc<HookTasks>,
    /// Made for these settings.
    pub(crate) made: Mutex<Option<MadeHooks>>,
}

/// Hooks that were made for settings and secrets.
pub(crate) struct MadeHooks {
    pub(crate) settings: Arc<Settings>,
    pub(crate) shield: Arc<Shield>,
    pub(crate) bus: HookBus,
}

impl Hooks {
    /// Tasks of hooks that run beside the work.
    pub fn tasks(&self) -> &Arc<HookTasks> {
        &self.tasks
    }
}
