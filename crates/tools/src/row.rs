//! Row of the table of tools.

use std::sync::Arc;

use openclaw_agent::Tool;
use openclaw_agent::tool::{Reach, ToolFacts};

use crate::absence::{Absence, Conditions};
use crate::path::Confinement;
use crate::setup::Setup;

type Build = fn(&Arc<Setup>) -> Box<dyn Tool>;

/// Tool of the table.
#[derive(Debug, Clone, Copy)]
pub struct ToolRow {
    pub(crate) facts: ToolFacts,
    pub(crate) build: Option<Build>,
    absence: fn(&Conditions<'_>) -> Option<Absence>,
}

impl ToolRow {
    /// A tool that this gateway has.
    pub(crate) const fn built_in(facts: ToolFacts, build: Build) -> Self {
        Self { facts, build: Some(build), absence: |_| None }
    }

    /// Withholds the tool where `absence` gives a reason: where it is switched off, or could do
    /// nothing although its description is long.
    pub(crate) const fn absent_if(mut self, absence: fn(&Conditions<'_>) -> Option<Absence>) -> Self {
        self.absence = absence;
        self
    }

    pub(crate) fn absence(&self, conditions: &Conditions<'_>) -> Option<Absence> {
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
