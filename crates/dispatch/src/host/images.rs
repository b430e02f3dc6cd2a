//! Questions about images, for the tools of one run: the image models of its agent are asked in turn (spec `models.md` §10).

use std::sync::Arc;

use futures_util::StreamExt as _;
use openclaw_agent::host::{HostError, HostFuture, ImageAnswer, ImageAttempt, ImageQuestion, ImagesHost};
use openclaw_agent::text::tags::{TagRules, strip};
use openclaw_models::image_model::{ImageModelsFailed, NoImageModel};
use openclaw_models::select::{ImageCandidate, image_candidates};
use openclaw_models::{CacheRetention, Candidate, ModelEvent, ModelRef, ModelRequest, ThinkingLevel};
use openclaw_protocol::message::{Block, Message, StopReason, UserContent, UserMessage};
use openclaw_sessions::time::now_ms;

use super::ToolHost;

/// Longest answer, in tokens (spec `models.md` §10).
const MAX_TOKENS: u32 = 512;

impl ImagesHost for ToolHost {
    fn look<'a>(&'a self, question: ImageQuestion<'a>) -> HostFuture<'a, ImageAnswer> {
        Box::pin(async move {
            let refused = |error: NoImageModel| HostError::Refused(error.to_string());
            let (settings, agent) = (self.tools().settings.now(), &self.run.agent);
            let (models, settings) = (&self.tools().models, &settings.models);
            let choice = models.image_choice(settings, &agent.id, &agent.agent_dir).await;
            let choice = choice.ok_or_else(|| refused(NoImageModel))?;
            let references = image_candidates(settings, &choice, question.model).map_err(refused)?;
            let candidates =
                models.bind_image_models(settings, &agent.id, &agent.agent_dir, references).await;
            first_answer(candidates, &question).await
        })
    }
}

/// Returns the first answer; if a model fails for any reason, the next is asked.
async fn first_answer(
    candidates: Vec<ImageCandidate>,
    question: &ImageQuestion<'_>,
) -> Result<ImageAnswer, HostError> {
    let mut failed: Vec<(ModelRef, String)> = Vec::new();
    for candidate in candidates {
        let (model, error) = match candidate {
            Err(skipped) => (skipped.model, skipped.error.to_string()),
            Ok(candidate) => match asked(&candidate, question).await {
                Ok(text) => {
                    let attempts = failed.into_iter().map(attempt).collect();
                    return Ok(ImageAnswer { text, model: candidate.reference.to_string(), attempts });
                }
                Err(_) if question.cancel.is_cancelled() => return Err(HostError::Aborted),
                Err(error) => (candidate.reference, error),
            },
        };
        tracing::warn!(%model, %error, "an image model gave no answer");
        failed.push((model, error));
    }
    Err(HostError::Unavailable(ImageModelsFailed(failed).to_string()))
}

fn attempt((model, error): (ModelRef, String)) -> ImageAttempt {
    ImageAttempt { provider: model.provider.to_string(), model: model.model, error }
}

/// Makes one call: one message, no tools, and no caching, because nobody asks the same again. The
/// error is for people.
async fn asked(candidate: &Candidate, question: &ImageQuestion<'_>) -> Result<String, String> {
    let content = vec![Block::text(question.prompt), Block::Image(question.image.clone())];
    let message = UserMessage { content: UserContent::Blocks(content), ..UserMessage::text("", now_ms()) };
    let most = u32::try_from(candidate.model.facts().max_tokens).unwrap_or(u32::MAX);
    let request = ModelRequest {
        messages: Arc::new(vec![Arc::new(Message::User(message))]),
        thinking: ThinkingLevel::Off,
        max_tokens: Some(MAX_TOKENS.min(most)),
        cache: CacheRetention::None,
        ..ModelRequest::default()
    };
    let mut stream = candidate.model.stream(request, question.cancel.clone());
    while let Some(event) = stream.next().await {
        let ModelEvent::Done { message, failure } = event else { continue };
        if let Some(failure) = failure {
            return Err(format!("Image model failed ({}): {}", candidate.reference, failure.message));
        }
        if message.stop_reason == StopReason::Aborted {
            break;
        }
        let text = strip(&message.text(), TagRules { final_only: false, complete: true }).visible;
        return match text.trim() {
            "" => Err(format!("Image model returned no text ({}).", candidate.reference)),
            text => Ok(text.to_owned()),
        };
    }
    Err(format!("Image model failed ({}): the answer broke off", candidate.reference))
}
