//! A row of the table of tools, and the toolbox that is made from the rows a run may use.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use openclaw_agent::tool::{Catalogue, Reach, ToolFacts};
use openclaw_agent::{Tool, ToolContext, ToolError, Toolbox};

use crate::TOOLS;
use crate::exec::settings::ExecSettings;
use crate::message::MessageSetup;
use crate::path::Resolver;

/// What is known of every tool in the table.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| TOOLS.iter().map(|row| row.facts).collect());

/// How far the file tools reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// Any file this process may touch.
    Host,
    /// Nothing outside this directory, symbolic links included. Tools that can't be held to it are not offered.
    Within(PathBuf),
}

/// What the tools of a run are made from.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How far the file tools reach.
    pub confinement: Confinement,
    /// How commands run.
    pub exec: ExecSettings,
    /// What can be sent to chat platforms; `None` where none is configured.
    pub message: Option<MessageSetup>,
}

impl Setup {
    /// Finds the files of a call.
    pub(crate) fn resolver(&self, context: &ToolContext) -> Resolver {
        let Some(sandbox) = &self.exec.sandbox else {
            return Resolver::new(
                self.exec.environment.home(),
                context.workspace.clone(),
                self.confinement.clone(),
            );
        };
        let root = sandbox.workspace().to_owned();
        Resolver::new(root.clone(), root, self.confinement.clone()).with_inner(sandbox.inner_workspace())
    }
}

type Build = fn(&Arc<Setup>) -> Box<dyn Tool>;

/// One tool of the table.
#[derive(Debug, Clone, Copy)]
pub struct ToolRow {
    facts: ToolFacts,
    build: Option<Build>,
    needs_channel: bool,
}

impl ToolRow {
    /// A tool that this gateway has.
    pub(crate) const fn built_in(facts: ToolFacts, build: Build) -> Self {
        Self { facts, build: Some(build), needs_channel: false }
    }

    /// Not offered where no chat platform is configured: it could do nothing, and is long to read.
    pub(crate) const fn needs_channel(mut self) -> Self {
        self.needs_channel = true;
        self
    }

    pub(crate) const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.facts.aliases = aliases;
        self
    }

    pub(crate) const fn owner_only(mut self) -> Self {
        self.facts.owner_only = true;
        self
    }

    pub(crate) const fn not_for_subagents(mut self) -> Self {
        self.facts.for_subagents = false;
        self
    }
}

/// A tool of OpenClaw that this gateway does not have: policies may name it, and its groups hold it.
pub(crate) const fn name_only(
    name: &'static str,
    groups: &'static [&'static str],
    prompt_position: u8,
    summary: &'static str,
) -> ToolRow {
    let facts = ToolFacts { groups, prompt_position, summary, ..ToolFacts::named(name) };
    ToolRow { facts, build: None, needs_channel: false }
}

/// The facts of the tools that this gateway has, in the order in which a model is offered them.
pub fn built_in() -> impl Iterator<Item = &'static ToolFacts> {
    TOOLS.iter().filter(|row| row.build.is_some()).map(|row| &row.facts)
}

/// The tools that `allowed` names, in the order of the table. Where the run is confined, only those that can be held to it.
pub fn toolbox(setup: Setup, allowed: &[String]) -> Toolbox {
    let setup = Arc::new(setup);
    let may_run = |facts: &ToolFacts| match facts.reach {
        Reach::Confinable => true,
        Reach::Sandboxed => setup.confinement == Confinement::Host || setup.exec.sandbox.is_some(),
    };
    let offered = |facts: &ToolFacts| allowed.iter().any(|name| name == facts.name) && may_run(facts);
    let has_channel = setup.message.is_some();
    let rows = TOOLS.iter().filter(|row| offered(&row.facts) && (has_channel || !row.needs_channel));
    Toolbox::new(rows.filter_map(|row| Some(row.build?(&setup))).collect(), &CATALOGUE)
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
