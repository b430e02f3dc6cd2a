//! The table of tools, and the toolbox that is made from the rows a run may use.

use std::sync::{Arc, LazyLock};

use openclaw_agent::Toolbox;
use openclaw_agent::tool::{Catalogue, ToolFacts};

use crate::TOOLS;
use crate::absence::{Absence, Conditions};
use crate::exec_tool;
use crate::setup::Setup;

/// Facts about every tool in the table.
pub static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| TOOLS.iter().map(|row| row.facts).collect());

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

/// The tools that `allowed` names, in the order of the table. If the run is confined, only those
/// that can be held to the directory.
pub fn toolbox(setup: Setup, allowed: &[String]) -> Toolbox {
    let is_allowed = |facts: &ToolFacts| allowed.iter().any(|name| name == facts.name);
    let mut setup = setup;
    // Nothing is run from where a sandbox may write.
    if setup.exec.sandbox.is_some() || is_allowed(&exec_tool::FACTS) && setup.exec.runs_anything() {
        setup.off_limits = setup.off_limits.with_hooks();
    }
    let setup = Arc::new(setup);
    let conditions = Conditions::from(&*setup);
    let rows = TOOLS.iter().filter(|row| is_allowed(&row.facts) && row.absence(&conditions).is_none());
    Toolbox::new(rows.filter_map(|row| Some(row.build?(&setup))).collect(), &CATALOGUE)
}

#[cfg(test)]
mod tests;
