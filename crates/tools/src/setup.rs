//! Settings from which the tools of a run are built.

use openclaw_agent::place::off_limits::OffLimits;
use openclaw_agent::{ToolContext, ToolError};
use openclaw_config::settings::MemoryOff;

use crate::exec::settings::ExecSettings;
use crate::path::{Confinement, Resolver};
use crate::web::WebSettings;

/// Settings from which the tools of a run are built.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Reach of the file tools.
    pub confinement: Confinement,
    /// Settings for running commands.
    pub exec: ExecSettings,
    /// Abilities of the chat platforms; `None` if none is configured.
    pub message: Option<MessageSetup>,
    /// True if `apply_patch` is offered: the result of [`crate::apply_patch::is_offered`], and
    /// `false` if files may only be read.
    pub apply_patch: bool,
    /// Settings of web access.
    pub web: WebSettings,
    /// Settings of the `image` tool; `None` if no model can be asked about images.
    pub image: Option<ImageSetup>,
    /// True if a gateway runs that can be controlled.
    pub has_gateway: bool,
    /// Files that `write` may write, and how.
    pub writes: Writes,
    /// Setting by which the agent has no memory; `None` if it has one.
    pub memory_off: Option<MemoryOff>,
    /// The gateway's own files, which no tool touches.
    pub off_limits: OffLimits,
}

/// Files that `write` may write, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Writes {
    /// `write` makes the content of any file that the run may reach.
    #[default]
    Whole,
    /// `write` adds to Markdown files below `memory/`, and writes no others; `edit` and `apply_patch` change nothing. The
    /// turn is for notes, and what a day's file holds already must not be lost.
    AddToMemory,
}

impl Setup {
    /// Finds the files of a call.
    pub(crate) fn resolver(&self, context: &ToolContext) -> Resolver {
        let (home, workspace) = (self.exec.environment.home(), context.workspace.clone());
        Resolver::of_run(home, workspace, self.confinement.clone(), self.exec.sandbox.as_deref())
            .keeping_off(self.off_limits.clone())
    }

    /// Refuses to change what files hold already in a turn that only adds notes.
    ///
    /// # Errors
    /// A text for the model in such a turn.
    pub(crate) fn allow_changes(&self) -> Result<(), ToolError> {
        match self.writes {
            Writes::Whole => Ok(()),
            Writes::AddToMemory => Err(ToolError::Failed(
                "in this turn notes are only added: use write with a Markdown file below memory/".to_owned(),
            )),
        }
    }
}

/// Abilities of the configured chat platforms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MessageSetup {
    /// The platforms that are configured.
    pub channels: Vec<&'static str>,
    /// Actions that they support, sorted.
    pub actions: Vec<&'static str>,
    /// True if one of them supports buttons.
    pub has_buttons: bool,
    /// Channel of the conversation that is being answered.
    pub current: Option<CurrentChannel>,
}

/// The platform whose conversation is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentChannel {
    /// Channel id.
    pub id: String,
    /// Actions that the channel supports, sorted.
    pub actions: Vec<&'static str>,
    /// True if buttons may be shown in the conversation.
    pub has_buttons: bool,
}

/// Settings from which the `image` tool of a run is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSetup {
    /// True if the run's own model accepts images.
    pub model_sees: bool,
}
