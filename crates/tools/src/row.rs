//! A row of the table of tools, and the toolbox that is made from the rows a run may use.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use openclaw_agent::tool::{Catalogue, Reach, ToolFacts};
use openclaw_agent::{Tool, ToolContext, ToolError, Toolbox};

use crate::TOOLS;
use crate::absence::{Absence, Conditions};
use crate::exec::settings::ExecSettings;
use crate::image::ImageSetup;
use crate::message::MessageSetup;
use crate::path::Resolver;
use crate::web::WebSettings;

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
    /// Whether `apply_patch` is offered: what [`crate::apply_patch::is_offered`] says, and `false` where files may only be read.
    pub apply_patch: bool,
    /// How the web is used.
    pub web: WebSettings,
    /// What the `image` tool is made from; `None` where no model can be asked about images.
    pub image: Option<ImageSetup>,
    /// Whether a gateway runs that can be controlled.
    pub has_gateway: bool,
}

impl Setup {
    /// Finds the files of a call.
    pub(crate) fn resolver(&self, context: &ToolContext) -> Resolver {
        let (home, workspace) = (self.exec.environment.home(), context.workspace.clone());
        Resolver::of_run(home, workspace, self.confinement.clone(), self.exec.sandbox.as_deref())
    }
}

type Build = fn(&Arc<Setup>) -> Box<dyn Tool>;

/// One tool of the table.
#[derive(Debug, Clone, Copy)]
pub struct ToolRow {
    facts: ToolFacts,
    build: Option<Build>,
    absence: fn(&Conditions<'_>) -> Option<Absence>,
}

impl ToolRow {
    /// A tool that this gateway has.
    pub(crate) const fn built_in(facts: ToolFacts, build: Build) -> Self {
        Self { facts, build: Some(build), absence: |_| None }
    }

    /// Not offered where this gives a reason: there it is switched off, or could do nothing and is long to read.
    pub(crate) const fn absent_if(mut self, absence: fn(&Conditions<'_>) -> Option<Absence>) -> Self {
        self.absence = absence;
        self
    }

    fn absence(&self, conditions: &Conditions<'_>) -> Option<Absence> {
        let is_held = *conditions.confinement == Confinement::Host || conditions.has_sandbox;
        let is_loose = self.facts.reach == Reach::Sandboxed && !is_held;
        match self.build {
            None => Some(Absence::NotBuiltIn),
            Some(_) if is_loose => Some(Absence::NotConfinable),
            Some(_) => (self.absence)(conditions),
        }
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
    ToolRow { facts, build: None, absence: |_| Some(Absence::NotBuiltIn) }
}

/// The facts of the tools that this gateway has, in the order in which a model is offered them.
pub fn built_in() -> impl Iterator<Item = &'static ToolFacts> {
    TOOLS.iter().filter(|row| row.build.is_some()).map(|row| &row.facts)
}

/// Every tool by name, and why a run under these conditions is not offered it, if it is not.
pub fn absences<'a>(
    conditions: &'a Conditions<'_>,
) -> impl Iterator<Item = (&'static ToolFacts, Option<Absence>)> + 'a {
    TOOLS.iter().map(|row| (&row.facts, row.absence(conditions)))
}

/// The tools that `allowed` names, in the order of the table. Where the run is confined, only those that can be held to it.
pub fn toolbox(setup: Setup, allowed: &[String]) -> Toolbox {
    let setup = Arc::new(setup);
    let conditions = Conditions::from(&*setup);
    let is_allowed = |facts: &ToolFacts| allowed.iter().any(|name| name == facts.name);
    let rows = TOOLS.iter().filter(|row| is_allowed(&row.facts) && row.absence(&conditions).is_none());
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
