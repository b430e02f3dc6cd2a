//! `read`: a window of a text file, or an image (spec `tools.md` §2).

mod window;

use std::fs::File;
use std::io::{BufReader, Read as _, Seek, SeekFrom};
use std::sync::{Arc, LazyLock};

use openclaw_agent::picture::{Format, HEAD};
use openclaw_agent::place::PlaceError;
use openclaw_agent::place::off_limits::Purpose;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use openclaw_protocol::message::Block;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{Args, PATH};
use crate::blocking::blocking;
use crate::path::{Resolver, refused};
use crate::picture;
use crate::row::ToolRow;
use crate::setup::Setup;
use window::LineRange;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(ReadTool(Arc::clone(setup))));

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:fs"],
    description: "Look into a file. Text comes back up to 2000 lines or 50KB at a time, with a note on how to go \
                  on; ask for a part with offset and limit. Images (png, jpg, gif, webp) come back as pictures.",
    summary: "Read a file",
    prompt_position: 1,
    emoji: "📖",
    label_arguments: &[PATH.0, PATH.1],
    effect: Effect::Looks,
    ..ToolFacts::named("read")
};

struct ReadTool(Arc<Setup>);

impl Tool for ReadTool {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
            "type": "object",
            "properties": {
                "path": {"description": "File to read, absolute or relative to the workspace", "type": "string"},
                "offset": {"description": "First line to read, counted from 1", "type": "number"},
                "limit": {"description": "How many lines to read", "type": "number"},
                "file_path": {"description": "Same as path", "type": "string"},
            },
            "required": [],
        })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(look(self.0.resolver(&context), Args(args), context.cancel))
    }
}

async fn look(resolver: Resolver, args: Args, cancel: CancellationToken) -> Result<ToolOutput, ToolError> {
    let path = args.path()?;
    let ask = LineRange { offset: args.count("offset").unwrap_or(1), limit: args.count("limit") };
    let (label, stop) = (format!("read:{path}"), cancel.clone());
    let found = blocking(move || {
        let file = resolver.existing(&path, Purpose::Read).and_then(|place| place.open());
        let file = file.map_err(|error| refused("read", &path, &error))?;
        read(file, &path, ask, &stop)
    })
    .await?;
    match found {
        OpenedFile::Text(text) => Ok(ToolOutput::text(text)),
        OpenedFile::Picture(file, format) => {
            let note = Block::text(format!("Read image file [{}]", format.mime()));
            let payload = picture::load(file, format, label, cancel).await?;
            Ok(ToolOutput { content: vec![note, payload], ..ToolOutput::default() })
        }
    }
}

/// Kind of a file, detected when it was opened.
enum OpenedFile {
    /// The window that was asked for.
    Text(String),
    /// A picture, of which only the first bytes have been read.
    Picture(File, Format),
}

fn read(
    mut file: File,
    path: &str,
    ask: LineRange,
    cancel: &CancellationToken,
) -> Result<OpenedFile, ToolError> {
    let failed = |error: std::io::Error| refused("read", path, &PlaceError::Io(error));
    let mut head = Vec::with_capacity(HEAD);
    file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    if let Some(format) = Format::of(&head) {
        return Ok(OpenedFile::Picture(file, format));
    }
    match window::cut(BufReader::new(file), ask, || cancel.is_cancelled()) {
        Ok(window) => Ok(OpenedFile::Text(window.render(path)?)),
        Err(window::ScanError::Cancelled) => Err(ToolError::Aborted),
        Err(window::ScanError::Io(error)) => Err(failed(error)),
    }
}
