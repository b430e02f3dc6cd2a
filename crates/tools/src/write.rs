//! `write`: makes a file's content (spec `tools.md` §2).

use std::sync::{Arc, LazyLock};

use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use crate::args::{Args, PATH};
use crate::blocking::blocking;
use crate::path::{Resolver, refused};
use crate::row::ToolRow;
use crate::setup::Setup;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(Write(Arc::clone(setup))));

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:fs"],
    description: "Create a file with the given content, or replace everything in an existing one. \
                  Missing directories above it are created.",
    summary: "Create or replace a file",
    prompt_position: 2,
    emoji: "✍️",
    label_arguments: &[PATH.0, PATH.1],
    ..ToolFacts::named("write")
};

struct Write(Arc<Setup>);

impl Tool for Write {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
            "type": "object",
            "properties": {
                "path": {"description": "File to write, absolute or relative to the workspace", "type": "string"},
                "content": {"description": "The whole new content", "type": "string"},
                "file_path": {"description": "Same as path", "type": "string"},
            },
            "required": ["content"],
        })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(write(self.0.resolver(&context), Args(args)))
    }
}

async fn write(resolver: Resolver, args: Args) -> Result<ToolOutput, ToolError> {
    let path = args.path()?;
    let content = args
        .text("content")
        .ok_or_else(|| ToolError::Failed("Missing required parameter: content".into()))?;
    let content = content.to_owned();
    blocking(move || {
        let name = resolver.name_of_written(&path);
        let place = resolver.writable(&path).map_err(|error| refused("write", &path, &error))?;
        place.replace(content.as_bytes()).map_err(|error| refused("write", &path, &error))?;
        Ok(ToolOutput::text(format!("Successfully wrote {} bytes to {name}", content.len())))
    })
    .await
}
