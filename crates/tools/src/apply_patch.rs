//! `apply_patch`: changes several files, all of them or none (spec `tools.md` §2.1).
//!
//! Modules in the order of a call: [`parse`] reads the patch, `plan` reads the files and computes
//! by [`apply`] and `find` what becomes of them, `commit` writes. Files are written only after
//! everything is computed, and earlier changes are undone when a later file can't be written.

pub mod apply;
mod commit;
mod conflict;
mod find;
mod offer;
pub mod parse;
mod plan;

use std::sync::{Arc, LazyLock};

use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::blocking::blocking;
use crate::path::Resolver;
use crate::row::ToolRow;
use crate::setup::Setup;

pub use offer::{absence, is_offered};

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(ApplyPatch(Arc::clone(setup))))
    .aliases(&["apply-patch"])
    .absent_if(|conditions| conditions.apply_patch);

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:fs"],
    description: "Change one or more files with a patch. The input starts with the line *** Begin Patch and ends with \
                  the line *** End Patch. In between: *** Add File: <path>, *** Update File: <path> (may be followed by \
                  *** Move to: <path>) and *** Delete File: <path>. If any part does not fit, no file is changed.",
    summary: "Change several files with one patch",
    prompt_position: 4,
    emoji: "🩹",
    ..ToolFacts::named("apply_patch")
};

struct ApplyPatch(Arc<Setup>);

impl Tool for ApplyPatch {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
            "type": "object",
            "properties": {
                "input": {"description": "The whole patch, from *** Begin Patch to *** End Patch", "type": "string"},
            },
            "required": ["input"],
        })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        let (resolver, args) = (self.0.resolver(&context), Args(args));
        Box::pin(async move {
            self.0.allow_changes()?;
            blocking(move || patch(args.text("input").unwrap_or_default(), &resolver, &context.cancel)).await
        })
    }
}

fn patch(input: &str, resolver: &Resolver, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let hunks = parse::parse(input).map_err(failed)?;
    let plan = plan::plan(hunks, resolver, || cancel.is_cancelled())?;
    // The run may have been stopped while files were read. From here on the patch is applied as a whole.
    if cancel.is_cancelled() {
        return Err(ToolError::Aborted);
    }
    commit::commit(&plan.files, resolver)?;
    Ok(plan.summary.output())
}

/// Converts an error to the text for the model.
fn failed(error: impl std::fmt::Display) -> ToolError {
    ToolError::Failed(error.to_string())
}

#[cfg(test)]
mod tests;
