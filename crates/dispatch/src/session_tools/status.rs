//! `session_status` (spec `sessions.md` §8.8): the card of `/status`, with the time on it, and the change of a session's model.

use jiff::Timestamp;
use openclaw_agent::host::{HostError, StatusAnswer, StatusWish};
use openclaw_agent::user_time::{HourFormat, user_zone};
use openclaw_commands::CommandSession;
use openclaw_delivery::status_card::time_line;
use openclaw_journal::inbox::InboxRow;
use openclaw_models::{Choices, SelectError};
use openclaw_sessions::Row as SessionRow;
use openclaw_sessions::store::Edit;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Purpose, ToolCaller, Trouble, VisibleSession, unreadable};

/// The word for the agent's own model.
const DEFAULT: &str = "default";

impl ToolCaller<'_> {
    /// Returns the status of a session, after switching its model if that is asked for.
    pub(crate) async fn status(&self, wish: &StatusWish) -> Result<StatusAnswer, HostError> {
        let mut row = self.row_asked(wish.session.as_deref()).await?;
        let agent = self.settings.config.agent(&self.viewer.owner(&row.key, self.rules()));
        let choices =
            self.family().models.all.choices(&self.settings.models, &agent.id, &agent.agent_dir).await;
        let mut changed = false;
        if let Some(model) = &wish.model {
            (row, changed) = self.switch_model(row, model, &choices).await?;
        }
        let asked = InboxRow::unsaid(&row.key, self.family().clock.now_ms());
        let stop = CancellationToken::new();
        let session =
            CommandSession { settings: &self.settings, key: &row.key, agent: &agent, entry: &row.entry };
        let context = self.family().services.context(session, &asked, &stop);
        let card = openclaw_commands::status_card(&context).await;
        let text = openclaw_delivery::status_card::StatusCard { time: self.time(), ..card }.text();
        let key = self.shown(&row.key);
        let details = json!({"ok": true, "sessionKey": key, "changedModel": changed, "statusText": text});
        Ok(StatusAnswer { text, details })
    }

    /// Returns the session that is asked about: its own, or another that may be looked at.
    async fn row_asked(&self, asked: Option<&str>) -> Result<SessionRow, HostError> {
        let unknown = |kind: &str, text: &str| HostError::Refused(format!("Unknown {kind}: {text}"));
        let own = &self.viewer.key;
        let Some(text) = asked else {
            return self.row(own).await?.ok_or_else(|| unknown("sessionKey", own.shown()));
        };
        let found = match self.resolve(text).await {
            Ok(found) if found.key == *own => found,
            _ => self.find(text, Purpose::Look).await.map_err(|trouble| match trouble {
                Trouble::Host(error) => error,
                Trouble::Refused(super::SessionDenied::Forbidden(text)) => HostError::Refused(text),
                Trouble::Refused(super::SessionDenied::Missing(_)) => unknown("sessionId", text),
            })?,
        };
        let VisibleSession { row, .. } = found;
        row.ok_or_else(|| unknown("sessionKey", text))
    }

    /// Switches the session's model; returns the session. The flag tells if the model is another
    /// than before.
    async fn switch_model(
        &self,
        row: SessionRow,
        model: &str,
        choices: &Choices,
    ) -> Result<(SessionRow, bool), HostError> {
        let chosen = if model.is_empty() || model.eq_ignore_ascii_case(DEFAULT) {
            None
        } else {
            let found = choices.callable(model).map_err(|error| match error {
                SelectError::NotAllowed(model) => {
                    HostError::Refused(format!("Model \"{model}\" is not allowed."))
                }
                SelectError::Invalid(_) | SelectError::Lookup(_) => {
                    HostError::Refused(format!("Unrecognized model \"{model}\"."))
                }
                other => HostError::Unavailable(other.to_string()),
            })?;
            (found != *choices.default_model()).then_some(found)
        };
        let wanted = chosen.as_ref().map(|model| (model.provider.as_str(), model.model.as_str()));
        let before = row.entry.model_override_ref();
        let before = before.map(|(provider, model)| (provider.unwrap_or_default(), model));
        if before == wanted {
            return Ok((row, false));
        }
        let (key, chosen) = (row.key.clone(), chosen.clone());
        let change = Box::new(move |edit: Edit<'_>| {
            let model = chosen.as_ref().map(|model| (model.provider.as_str(), model.model.as_str()));
            edit.entry.switch_model(model, None);
            edit.entry.touch(edit.now);
            Ok(())
        });
        let row = self.family().store.update(&key, change).await.map_err(unreadable)?;
        Ok((row, true))
    }

    /// The user's time.
    fn time(&self) -> Option<String> {
        let at = Timestamp::from_millisecond(self.family().clock.now_ms()).ok()?;
        let (config, defaults) = (&self.settings.config, &self.settings.config.agents.defaults);
        let locale = config.environment().first_nonblank(&["LC_ALL", "LC_TIME", "LANG"]);
        let format = HourFormat::resolve(defaults.time_format, locale);
        Some(time_line(at, &user_zone(self.agent.user_timezone.as_deref()), format))
    }
}
