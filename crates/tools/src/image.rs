//! `image`: asks the image model about a picture (spec `tools.md` §6, `models.md` §10). The gateway asks the model; this file finds the
//! picture and makes it small enough.
//!
//! [`reference`](mod@reference) says what the model named, [`load`] gets it.

pub(crate) mod load;
pub(crate) mod reference;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use openclaw_agent::host::{HostError, ImageAnswer, ImageQuestion};
use openclaw_agent::picture::MAX_BYTES;
use openclaw_agent::tool::ToolFuture;
use openclaw_agent::{Effect, Tool, ToolContext, ToolError, ToolFacts, ToolOutput};
use openclaw_models::ToolSchema;
use serde_json::{Value, json};

use crate::absence::Absence;
use crate::args::Args;
use crate::row::ToolRow;
use crate::setup::Setup;
use load::{LoadedImage, Loader};
use reference::Reference;

pub(crate) const ROW: ToolRow = ToolRow::built_in(FACTS, |setup| Box::new(Image(Arc::clone(setup))))
    .absent_if(|conditions| (!conditions.has_image_model).then_some(Absence::NoImageModel));

const FOR_THE_BLIND: &str =
    "Ask the image model about a picture: give a path or an address, and say what you want to know.";
const FOR_THE_SEEING: &str = "Ask the image model about a picture that is not in the conversation yet. Pictures that came with a message \
                              are visible to you already.";

const FACTS: ToolFacts = ToolFacts {
    groups: &["group:openclaw"],
    description: FOR_THE_BLIND,
    summary: "Look at an image with the image model",
    prompt_position: 23,
    emoji: "🖼️",
    label_arguments: &["prompt", "image"],
    repeatable: true,
    effect: Effect::Looks,
    ..ToolFacts::named("image")
};

/// Question to ask if the model asks none.
const DEFAULT_PROMPT: &str = "Describe the image.";
const MEGABYTE: f64 = 1_048_576.0;

struct Image(Arc<Setup>);

impl Tool for Image {
    fn facts(&self) -> &ToolFacts {
        &FACTS
    }

    fn description(&self) -> Cow<'static, str> {
        let sees = self.0.image.is_some_and(|setup| setup.model_sees);
        Cow::Borrowed(if sees { FOR_THE_SEEING } else { FOR_THE_BLIND })
    }

    fn schema(&self) -> ToolSchema {
        static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
            json!({
                "type": "object",
                "properties": {
                    "prompt": {"description": "What to find out; a description if absent", "type": "string"},
                    "image": {
                        "description": "A path, a file:// or data: URL, or an http(s) address",
                        "type": "string",
                    },
                    "model": {"description": "provider/model to ask in place of the configured one", "type": "string"},
                    "maxBytesMb": {"description": "The picture is made smaller than this", "type": "number"},
                },
                "required": ["image"],
            })
            .into()
        });
        SCHEMA.clone()
    }

    fn run(&self, args: Value, context: ToolContext) -> ToolFuture<'_> {
        Box::pin(look(&self.0, Args(args), context))
    }
}

async fn look(setup: &Setup, args: Args, context: ToolContext) -> Result<ToolOutput, ToolError> {
    let written = args.required("image")?;
    let Some(reference) = Reference::read(written) else { return Ok(unsupported(written)) };
    let loader = Loader { setup, context: &context, max_bytes: max_bytes(&args) };
    let LoadedImage { picture, name, rewritten_from } = tokio::select! { biased;
        () = context.cancel.cancelled() => return Err(ToolError::Aborted),
        loaded = loader.load(&reference) => loaded?,
    };
    let images = context
        .host
        .images()
        .ok_or_else(|| ToolError::Failed("no gateway is there to ask an image model".to_owned()))?;
    let question = ImageQuestion {
        prompt: args.word("prompt").unwrap_or(DEFAULT_PROMPT),
        image: picture.into_block(),
        model: args.word("model"),
        cancel: &context.cancel,
    };
    let answer = images.look(question).await.map_err(|error| match error {
        HostError::Aborted => ToolError::Aborted,
        error => ToolError::Failed(error.to_string()),
    })?;
    let details = details(&name, rewritten_from, &answer);
    Ok(ToolOutput { details: Some(details), ..ToolOutput::text(answer.text) })
}

/// OpenClaw's words: they are a result, so that the model does not take them for a failure of the tool.
fn unsupported(written: &str) -> ToolOutput {
    let text = format!(
        "Unsupported image reference: {written}. Use a file path, a file:// URL, a data: URL, or an http(s) URL."
    );
    let details = json!({"error": "unsupported_image_reference", "image": written});
    ToolOutput { details: Some(details), ..ToolOutput::text(text) }
}

/// Bytes that may be sent: what the model asks for, and no more than providers take.
fn max_bytes(args: &Args) -> usize {
    let asked = args.number("maxBytesMb").filter(|megabytes| *megabytes > 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "above zero, saturates above"
    )]
    let asked = asked.map(|megabytes| (megabytes * MEGABYTE) as usize);
    asked.unwrap_or(MAX_BYTES).clamp(1, MAX_BYTES)
}

fn details(image: &str, rewritten_from: Option<String>, answer: &ImageAnswer) -> Value {
    let attempts: Vec<Value> = answer
        .attempts
        .iter()
        .map(|attempt| json!({"provider": attempt.provider, "model": attempt.model, "error": attempt.error}))
        .collect();
    match rewritten_from {
        None => json!({"model": answer.model, "image": image, "attempts": attempts}),
        Some(from) => {
            json!({"model": answer.model, "image": image, "rewrittenFrom": from, "attempts": attempts})
        }
    }
}

#[cfg(test)]
mod tests;
