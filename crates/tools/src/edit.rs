//! `edit`: replaces one passage of a file and touches no other byte of it (spec `tools.md` §2).

mod diff;
mod fold;
mod passage;

use std::io::Read;
use std::sync::{Arc, LazyLock};

use openclaw_agent::place::PlaceError;
use openclaw_agent::place::off_limits::Purpose;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{Args, Either, PATH};
use crate::blocking::blocking;
use crate::path::{Resolver, refused};
use crate::row::ToolRow;
use crate::setup::Setup;
pub(crate) use fold::plain;
use passage::{EditError, replace};

/// Larger files are refused: the search keeps a few copies of the text in memory.
pub(crate) const MAX_FILE: u64 = 32 * 1024 * 1024;

const OLD: Either = Either("oldText", "old_string");
const NEW: Either = Either("newText", "new_string");

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(EditTool(Arc::clone(setup))));

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:fs"],
    description: "Change one passage of a file. The old text must occur exactly once and match the file, white \
                  space included; an empty new text deletes it.",
    summary: "Replace an exact piece of text in a file",
    prompt_position: 3,
    emoji: "📝",
    label_arguments: &[PATH.0, PATH.1],
    ..ToolFacts::named("edit")
};

struct EditTool(Arc<Setup>);

impl Tool for EditTool {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
            "type": "object",
            "properties": {
                "path": {"description": "File to change, absolute or relative to the workspace", "type": "string"},
                "oldText": {"description": "The passage as it stands in the file", "type": "string"},
                "newText": {"description": "What takes its place", "type": "string"},
                "file_path": {"description": "Same as path", "type": "string"},
                "old_string": {"description": "Same as oldText", "type": "string"},
                "new_string": {"description": "Same as newText", "type": "string"},
            },
            "required": [],
        })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            self.0.allow_changes()?;
            run(self.0.resolver(&context), Args(args), context.cancel).await
        })
    }
}

async fn run(resolver: Resolver, args: Args, cancel: CancellationToken) -> Result<ToolOutput, ToolError> {
    let path = args.path()?;
    let old = Some(args.text_of(OLD)?).filter(|old| !old.is_empty()).map(str::to_owned);
    let old = old.ok_or_else(|| {
        ToolError::Failed("Missing required parameter: oldText (oldText or old_string)".into())
    })?;
    let new = args.text_of(NEW)?.to_owned();
    blocking(move || edit(&resolver, &path, (&old, &new), &cancel)).await
}

fn edit(
    resolver: &Resolver,
    path: &str,
    (old, new): (&str, &str),
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let refuse = |error: PlaceError| refused("edit", path, &error);
    let place = resolver.existing(path, Purpose::Write).map_err(refuse)?;
    let file = place.open().map_err(refuse)?;
    let mut before = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut before).map_err(|error| refuse(error.into()))?;
    if before.len() as u64 > MAX_FILE {
        return Err(ToolError::Failed(format!("{path} is larger than 32MB. Use exec to change it.")));
    }
    let after = replace(&before, old, new).map_err(|error| ToolError::Failed(explain(&error, path)))?;
    // The run may have been stopped while the file was read and searched.
    if cancel.is_cancelled() {
        return Err(ToolError::Aborted);
    }
    place.replace(&after).map_err(refuse)?;
    let shown = diff::of(&String::from_utf8_lossy(&before), &String::from_utf8_lossy(&after));
    let name = resolver.name_of_existing(path);
    let mut out = ToolOutput::text(format!("Successfully replaced text in {name}."));
    out.details = Some(json!({"diff": shown.text, "firstChangedLine": shown.first_changed_line}));
    Ok(out)
}

fn explain(error: &EditError, path: &str) -> String {
    match error {
        EditError::NotFound => format!(
            "{path} does not hold the old text. It has to match the file to the letter, white space and line breaks included."
        ),
        EditError::Ambiguous(count) => format!(
            "The old text occurs {count} times in {path} and must be unique. Include more of the lines around it."
        ),
        EditError::NoChange => {
            format!("{path} stays as it is: the new text changes nothing.")
        }
        EditError::NotText => {
            format!("The text found in {path} holds bytes that are not UTF-8. Use exec to change it.")
        }
    }
}
