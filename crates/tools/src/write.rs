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
use crate::setup::{Setup, Writes};

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
        match self.0.writes {
            Writes::Whole => Box::pin(write(self.0.resolver(&context), Args(args))),
            Writes::AddToMemory => Box::pin(add_to_memory(self.0.resolver(&context), Args(args))),
        }
    }
}

/// Bytes of a file in which a note is looked for that stands there already.
const LOOKED_AT: u64 = 1024 * 1024;

/// Adds a note to a file below `memory/`. One that stands there already is not added once more.
async fn add_to_memory(resolver: Resolver, args: Args) -> Result<ToolOutput, ToolError> {
    let path = args.path()?;
    let content = args
        .text("content")
        .ok_or_else(|| ToolError::Failed("Missing required parameter: content".into()))?;
    let content = content.trim().to_owned();
    if !resolver.is_memory_note(&path) {
        let text = format!("in this turn write only adds to Markdown files below memory/, not to {path}");
        return Err(ToolError::Failed(text));
    }
    blocking(move || {
        let name = resolver.name_of_written(&path);
        let place = resolver.writable(&path).map_err(|error| refused("write", &path, &error))?;
        let before = match place.read_head(LOOKED_AT) {
            Ok(head) => head.bytes,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(refused("write", &path, &error)),
        };
        let before = String::from_utf8_lossy(&before);
        // A model that read the file first may write all of it once more.
        let new = content.strip_prefix(before.trim()).unwrap_or(&content).trim();
        if new.is_empty() || before.contains(new) {
            return Ok(ToolOutput::text(format!("{name} holds this already")));
        }
        let gap = match before.as_ref() {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let added = format!("{gap}{new}\n");
        place.append(added.as_bytes()).map_err(|error| refused("write", &path, &error))?;
        Ok(ToolOutput::text(format!("Added {} bytes to {name}", added.len())))
    })
    .await
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, setup, web};

    async fn add(dir: &std::path::Path, path: &str, content: &str) -> Result<String, String> {
        let setup = Setup {
            writes: Writes::AddToMemory,
            ..setup(web(&openclaw_config::settings::WebTools::default()))
        };
        let write = Write(Arc::new(setup));
        let ran = write.run(json!({"path": path, "content": content}), context(dir.to_owned())).await;
        ran.map(|output| format!("{:?}", output.content)).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn in_a_turn_for_notes_files_below_memory_are_added_to_and_no_others_written() {
        let dir = tempfile::tempdir().unwrap();
        let day = dir.path().join("memory/2026-02-09.md");
        add(dir.path(), "memory/2026-02-09.md", "# Monday\n- tea\n").await.unwrap();
        add(dir.path(), "memory/2026-02-09.md", "- coffee").await.unwrap();
        assert_eq!(std::fs::read_to_string(&day).unwrap(), "# Monday\n- tea\n\n- coffee\n");
        // The model read the file and writes all of it.
        add(dir.path(), "memory/2026-02-09.md", "# Monday\n- tea\n\n- coffee\n- juice\n").await.unwrap();
        add(dir.path(), "memory/2026-02-09.md", "- tea").await.unwrap();
        assert_eq!(std::fs::read_to_string(&day).unwrap(), "# Monday\n- tea\n\n- coffee\n\n- juice\n");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("memory/out")).unwrap();
        for path in ["MEMORY.md", "memory/../AGENTS.md", "memory/x.txt", "/tmp/x.md", "memory/out/x.md"] {
            assert!(add(dir.path(), path, "x").await.unwrap_err().contains("only adds"), "{path}");
        }
        let setup = Setup {
            writes: Writes::AddToMemory,
            ..setup(web(&openclaw_config::settings::WebTools::default()))
        };
        let setup = Arc::new(setup);
        let edit = json!({"path": "memory/2026-02-09.md", "oldText": "- tea", "newText": ""});
        let patch = "*** Begin Patch\n*** Delete File: memory/2026-02-09.md\n*** End Patch";
        let changes = [
            ((crate::edit::ROW.build.unwrap())(&setup), edit),
            ((crate::apply_patch::ROW.build.unwrap())(&setup), json!({"input": patch})),
        ];
        for (tool, args) in changes {
            let error = tool.run(args, context(dir.path().to_owned())).await.unwrap_err().to_string();
            assert!(error.contains("only added"), "{error}");
        }
        assert_eq!(std::fs::read_to_string(&day).unwrap(), "# Monday\n- tea\n\n- coffee\n\n- juice\n");
    }
}
