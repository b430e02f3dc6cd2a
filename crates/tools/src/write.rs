//! `write`: makes a file's content (spec `tools.md` §2).

use openclaw_agent::{ToolError, ToolOutput};
use openclaw_models::ToolSpec;
use serde_json::json;

use crate::args::Args;
use crate::path::{Resolver, refused};
use crate::toolset::blocking;

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: "write".into(),
        description: "Create a file with the given content, or replace everything in an existing one. \
                      Missing directories above it are created."
            .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"description": "File to write, absolute or relative to the workspace", "type": "string"},
                "content": {"description": "The whole new content", "type": "string"},
                "file_path": {"description": "Same as path", "type": "string"},
            },
            "required": ["content"],
        }).into(),
    }
}

pub(crate) async fn run(resolver: Resolver, args: Args) -> Result<ToolOutput, ToolError> {
    let path = args.path()?;
    let content = args
        .text("content")
        .ok_or_else(|| ToolError::Failed("Missing required parameter: content".into()))?;
    let content = content.to_owned();
    blocking(move || {
        let place = resolver.writable(&path).map_err(|error| refused("write", &path, &error))?;
        place.replace(content.as_bytes()).map_err(|error| refused("write", &path, &error))?;
        Ok(ToolOutput::text(format!("Successfully wrote {} bytes to {path}", content.len())))
    })
    .await
}
