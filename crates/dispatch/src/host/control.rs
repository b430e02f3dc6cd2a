//! The gateway itself, for the tools of one run: whether it may be started again, and which session is told of it.

use openclaw_agent::host::{ControlAsk, ControlCall, ControlHost, HostError, HostFuture};
use openclaw_protocol::SessionKey;
use openclaw_runtime::surroundings::Control;
use openclaw_sessions::store::spelled;
use serde_json::Value;

use super::ToolHost;

const NO_RESTART: &str = "Gateway restart is disabled. Set commands.restart=true to enable.";
const NO_GATEWAY: &str = "This run is made without a gateway.";

impl ControlHost for ToolHost {
    fn control(&self, call: ControlCall) -> HostFuture<'_, Value> {
        Box::pin(async move {
            let settings = self.tools().settings.now();
            let is_restart = matches!(call.ask, ControlAsk::Restart { .. } | ControlAsk::Update);
            if is_restart && !settings.config.commands.restart {
                return Err(HostError::Refused(NO_RESTART.to_owned()));
            }
            let session = self.told(call.notice.session.as_deref()).await?;
            let control = self.gateway().ok_or_else(|| HostError::Unavailable(NO_GATEWAY.to_owned()))?;
            control.control(call, session).await
        })
    }
}

impl ToolHost {
    /// Returns the control interface of the gateway, if one runs.
    pub(super) fn gateway(&self) -> Option<&dyn Control> {
        self.tools().surroundings.as_ref()?.control()
    }

    /// Returns the session that is told: the named one, or else that of the run.
    async fn told(&self, named: Option<&str>) -> Result<SessionKey, HostError> {
        let Some(named) = named else { return Ok(self.run.turn.session_key.clone()) };
        let store = &*self.tools().store;
        let key = store.rules().canonical_for(named, &self.run.agent.id);
        let key = key.map_err(|error| HostError::Refused(format!("sessionKey: {error}")))?;
        Ok(spelled(store, key).await)
    }
}
