//! Pressed buttons of the gateway's own lists: the message below which a button is shows another
//! page, in place. Nothing is kept of a press: pressed once more, the button does the same.

use openclaw_channels::Button;
use openclaw_journal::inbox::InboxRow;
use openclaw_journal::request::RunRequest;
use openclaw_protocol::{RunId, SessionKey};
use openclaw_sessions::SessionEntry;
use openclaw_sessions::entry::new_session_id;
use serde_json::{Value, json};

use super::gate::Admitted;
use crate::handle::Dispatch;
use openclaw_commands::{CommandResponse, CommandSession, buttons};

/// Shows the page that the button asks for. A failure is logged, and the message stays as it was.
pub(super) async fn turn(dispatch: &Dispatch, admitted: &Admitted) {
    let Some((message_id, press)) = admitted.press() else { return };
    let parts = dispatch.arrivals();
    let settings = parts.settings.now();
    let key = &admitted.route.session_key;
    let agent = settings.config.agent(&admitted.route.agent_id);
    let entry = parts.rows.entry_or_none(key).await;
    let (none, row) = (SessionEntry::default(), unnumbered(key));
    let entry = entry.as_deref().unwrap_or(&none);
    let session = CommandSession { settings: &settings, key, agent: &agent, entry };
    let context = parts.services.context(session, &row, &parts.kill);
    let response = match buttons::answer(&context, press).await {
        Ok(Some(response)) => response,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, "a list could not be turned");
            return;
        }
    };
    let address = &admitted.event.address;
    let account = parts.platforms.account(&settings.config, &address.channel, &address.account);
    let Some(account) = account else { return };
    let params = params(&address.target, message_id, &response);
    if let Err(error) = account.act("replace", &params).await {
        tracing::warn!(channel = %address.channel, %error, "a list could not be turned");
    }
}

/// Parameters of the action that the platform is asked for.
fn params(target: &str, message_id: &str, response: &CommandResponse) -> Value {
    let button = |button: &Button| json!({"text": button.text, "callback_data": button.data});
    let rows: Vec<Vec<Value>> = response.buttons.iter().map(|row| row.iter().map(button).collect()).collect();
    json!({"to": target, "messageId": message_id, "message": response.text, "buttons": rows})
}

/// Returns a message that stands for the pressed button: it is not kept.
fn unnumbered(key: &SessionKey) -> InboxRow {
    InboxRow {
        run_id: RunId::new(""),
        session_key: key.clone(),
        payload: RunRequest::default(),
        accepted_at: 0,
        entry_id: String::new(),
        fresh_id: new_session_id(),
        session_id: None,
        abort: None,
        answered: None,
        recovered: false,
        gathering: None,
    }
}
