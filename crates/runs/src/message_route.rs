//! Route of a message: to the agent, with the model that it asks for, or to the gateway itself.

use openclaw_journal::inbox::InboxRow;
use openclaw_journal::intent::Intent;
use openclaw_models::Models;
use openclaw_runtime::session_model::RequestedModel;
use openclaw_runtime::setup::Settings;

/// Destination of a message's words.
pub(super) enum MessageRoute {
    /// Words for the agent.
    Agent(Option<RequestedModel>),
    /// Words for the gateway alone: it carries out the request and answers, or tells why that can't
    /// be granted.
    Gateway { refusal: Option<String> },
}

/// Returns the destination of a message's words. Reads the available models if it asks for one.
pub(super) async fn route(models: &Models, settings: &Settings, row: &InboxRow) -> MessageRoute {
    let asked = match row.payload.to_gateway() {
        // Done already, whatever the settings say by now.
        _ if row.answered.is_some() => return MessageRoute::Gateway { refusal: None },
        Intent::Prompt | Intent::Stripped { .. } | Intent::Reworded { .. } => {
            return MessageRoute::Agent(model_of_beat(models, settings, row).await);
        }
        Intent::Command { .. }
        | Intent::Settings { .. }
        | Intent::Ignored
        | Intent::Announcement
        | Intent::Tool(_) => return MessageRoute::Gateway { refusal: None },
        Intent::PromptFor { hints, .. } => match &hints.model {
            Some(choice) => choice,
            None => return MessageRoute::Agent(None),
        },
    };
    let key = &row.session_key;
    let agent = settings.config.agent(&key.agent_or(&settings.sessions.default_agent()));
    let choices = models.choices(&settings.models, &agent.id, &agent.agent_dir).await;
    match openclaw_commands::model::choose(models, &choices, &agent, asked).await {
        Ok(chosen) => {
            MessageRoute::Agent(Some(RequestedModel { model: chosen.model, profile: asked.profile.clone() }))
        }
        Err(refusal) => MessageRoute::Gateway { refusal: Some(refusal) },
    }
}

/// Returns the model that is configured for a heartbeat. A model that does not exist is
/// reported in the log, and the session's own is used.
async fn model_of_beat(models: &Models, settings: &Settings, row: &InboxRow) -> Option<RequestedModel> {
    let asked = row.payload.source.beat()?.model.as_deref()?;
    let agent = settings.config.agent(&row.payload.agent_id.clone()?);
    let choices = models.choices(&settings.models, &agent.id, &agent.agent_dir).await;
    match choices.find(asked) {
        Ok(chosen) => Some(RequestedModel { model: chosen.model, profile: None }),
        Err(error) => {
            tracing::warn!(agent = %agent.id, model = asked, %error, "heartbeat.model can't be used; the session's own is");
            None
        }
    }
}
