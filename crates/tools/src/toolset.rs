//! Which tools there are, and who runs a call.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use openclaw_agent::{ToolContext, ToolError, ToolOutput, Toolbox};
use openclaw_models::ToolSpec;
use serde_json::Value;

use crate::args::Args;
use crate::exec::Exec;
use crate::exec::settings::ExecSettings;
use crate::path::Resolver;
use crate::{edit, exec, read, write};

/// The names this crate implements, in the order in which a model is offered them (spec `tools.md` §1).
pub const CORE_TOOLS: [&str; 4] = ["read", "edit", "write", "exec"];

/// How far the file tools reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Any file this process may touch.
    Host,
    /// Nothing outside this directory, symbolic links included. `exec` is not offered then: nothing would confine it.
    Within(PathBuf),
}

/// What a [`CoreTools`] is built from.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How far the file tools reach.
    pub confinement: Confinement,
    /// How commands run.
    pub exec: ExecSettings,
    /// Names the tool policy lets through, in the default order; names of other toolsets are passed over.
    pub allowed: Vec<String>,
}

/// `read`, `edit`, `write` and `exec`, as far as they are allowed.
#[derive(Debug)]
pub struct CoreTools {
    specs: Vec<ToolSpec>,
    home: PathBuf,
    confinement: Confinement,
    exec: Exec,
}

/// The tools as a closed set; a name is parsed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Read,
    Edit,
    Write,
    Exec,
}

impl Tool {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Self::Read),
            "edit" => Some(Self::Edit),
            "write" => Some(Self::Write),
            "exec" => Some(Self::Exec),
            _ => None,
        }
    }

    fn spec(self) -> ToolSpec {
        match self {
            Self::Read => read::spec(),
            Self::Edit => edit::spec(),
            Self::Write => write::spec(),
            Self::Exec => exec::spec(),
        }
    }
}

impl CoreTools {
    /// A toolset of those core tools that `setup.allowed` names.
    pub fn new(setup: Setup) -> Self {
        let Setup { confinement, exec, allowed } = setup;
        let home = exec.environment.home();
        let specs = allowed
            .iter()
            .filter_map(|name| Tool::parse(name))
            .filter(|tool| *tool != Tool::Exec || confinement == Confinement::Host)
            .map(Tool::spec)
            .collect();
        Self { specs, home, confinement, exec: Exec::new(exec) }
    }

    async fn run(&self, name: &str, args: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let offered = self.specs.iter().any(|spec| spec.name == name);
        let tool =
            Tool::parse(name).filter(|_| offered).ok_or_else(|| ToolError::Unknown(name.to_owned()))?;
        if context.cancel.is_cancelled() {
            return Err(ToolError::Aborted);
        }
        let args = Args(args);
        match tool {
            Tool::Read => read::run(self.resolver(&context), args, context.cancel).await,
            Tool::Edit => edit::run(self.resolver(&context), args, context.cancel).await,
            Tool::Write => write::run(self.resolver(&context), args).await,
            Tool::Exec => self.exec.run(&args, &self.resolver(&context), context).await,
        }
    }

    fn resolver(&self, context: &ToolContext) -> Resolver {
        Resolver::new(self.home.clone(), context.workspace.clone(), self.confinement.clone())
    }
}

impl Toolbox for CoreTools {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        args: Value,
        context: ToolContext,
    ) -> Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>> {
        Box::pin(self.run(name, args, context))
    }

    fn meta(&self, name: &str, args: &Value) -> Option<String> {
        let key =
            |key: &str| args.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let label = match Tool::parse(name)? {
            Tool::Read | Tool::Edit | Tool::Write => key("path").or_else(|| key("file_path")),
            Tool::Exec => key("command"),
        };
        label.map(str::to_owned)
    }
}

/// Runs file work on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::Failed(format!("tool stopped: {error}"))),
    }
}

#[cfg(test)]
mod tests;
