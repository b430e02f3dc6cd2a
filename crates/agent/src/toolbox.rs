//! The tools offered to one run.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use openclaw_models::ToolSpec;
use openclaw_protocol::message::ToolCall;
use serde_json::Value;

use crate::tool::{Catalogue, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};

/// The tools that the policy leaves to one run, in the order in which the model is offered them.
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    catalogue: &'static Catalogue,
    /// Tools that this run does not have, and what is said of each when it is called.
    absent: Vec<(String, String)>,
}

impl Toolbox {
    /// A toolbox of these tools; `catalogue` knows their other names, and those of tools that are not offered.
    pub fn new(tools: Vec<Box<dyn Tool>>, catalogue: &'static Catalogue) -> Self {
        let specs = tools.iter().map(|tool| spec(tool.as_ref())).collect();
        Self { tools, specs, catalogue, absent: Vec::new() }
    }

    /// Sets explanations for some tools that are not offered, in place of the message that they do
    /// not exist.
    #[must_use]
    pub fn explaining(mut self, absent: Vec<(String, String)>) -> Self {
        self.absent = absent;
        self
    }

    /// Tools offered to the model, in order.
    pub fn specs(&self) -> &Arc<[ToolSpec]> {
        &self.specs
    }

    /// Runs one call with arguments that fit the tool's schema.
    ///
    /// # Errors
    /// [`ToolError::Unknown`] for a tool that is not offered, or why it is not, [`ToolError::Aborted`] for a call that is cancelled already.
    pub async fn call(&self, name: &str, args: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let tool = self.tool(name).ok_or_else(|| self.missing(name))?;
        if context.cancel.is_cancelled() {
            return Err(ToolError::Aborted);
        }
        tool.run(args, context).await
    }

    /// Short label of a call for people: a path, a command.
    pub fn meta(&self, name: &str, args: &Value) -> Option<String> {
        self.tool(name)?.facts().label(args)
    }

    /// Facts about the offered tools.
    pub(crate) fn facts(&self) -> impl Iterator<Item = &ToolFacts> {
        self.tools.iter().map(|tool| tool.facts())
    }

    /// Facts about all tools, offered or not.
    pub fn catalogue(&self) -> &'static Catalogue {
        self.catalogue
    }

    /// The tools of which a call that a crash cut short is made again.
    pub(crate) fn repeatable(&self) -> Vec<&'static str> {
        self.facts().filter(|facts| facts.repeatable).map(|facts| facts.name).collect()
    }

    /// True if a call changes something outside the conversation.
    pub(crate) fn acts(&self, call: &ToolCall) -> bool {
        self.tool(&call.name).is_some_and(|tool| tool.facts().acts(&call.arguments))
    }

    /// Returns the error for a call of a tool that is not offered.
    pub(crate) fn missing(&self, name: &str) -> ToolError {
        let canonical = self.catalogue.canonical_name(name);
        let told = self.absent.iter().find(|(absent, _)| *absent == canonical).map(|(_, told)| told);
        told.map_or_else(|| ToolError::Unknown(name.to_owned()), |told| ToolError::Failed(told.clone()))
    }

    fn tool(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.facts().name == name).map(Box::as_ref)
    }
}

fn spec(tool: &dyn Tool) -> ToolSpec {
    let (name, description) = (Cow::Borrowed(tool.facts().name), tool.description());
    ToolSpec { name, description, parameters: tool.schema() }
}

impl Default for &Toolbox {
    fn default() -> Self {
        static NO_NAMES: Catalogue = Catalogue::empty();
        static NO_TOOLS: LazyLock<Toolbox> = LazyLock::new(|| Toolbox::new(Vec::new(), &NO_NAMES));
        &NO_TOOLS
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.facts().map(|facts| facts.name)).finish()
    }
}
