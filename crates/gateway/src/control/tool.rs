//! Requests of the tool `gateway`: the answers of the methods, as an agent reads them.

use openclaw_agent::host::{ConfigText, ControlAsk, ControlCall, HostError, HostFuture};
use openclaw_config::write::Actor;
use openclaw_config::{config_schema, load};
use openclaw_dispatch::Control;
use openclaw_protocol::SessionKey;
use serde::Serialize;
use serde_json::Value;

use super::config_text::{ConfigChange, ConfigTextError, Method};
use super::{GatewayControl, Notice};

impl Control for GatewayControl {
    fn control(&self, call: ControlCall, session: SessionKey) -> HostFuture<'_, Value> {
        Box::pin(async move {
            let notice = Notice { session: Some(session), note: call.notice.note, delay: call.notice.delay };
            match call.ask {
                ControlAsk::Restart { reason } => answer(&self.restart(reason, notice).await),
                ControlAsk::Update => answer(&self.update(notice).await),
                ControlAsk::ConfigGet => {
                    let environment = self.reload.environment().clone();
                    answer(&on_disk(move || load(&environment).snapshot.redacted()).await?)
                }
                ControlAsk::ConfigSchema => answer(&on_disk(config_schema).await?),
                ControlAsk::ConfigApply(text) => self.written(Method::Apply, text, notice).await,
                ControlAsk::ConfigPatch(text) => self.written(Method::Patch, text, notice).await,
            }
        })
    }
}

impl GatewayControl {
    async fn written(&self, method: Method, text: ConfigText, notice: Notice) -> Result<Value, HostError> {
        let change = ConfigChange::of_agent(method, text.raw, text.base_hash);
        let written = self.change(change, Actor::Agent, notice).await;
        answer(&written.map_err(|error| HostError::Refused(told(&error)))?)
    }
}

/// Error text with each problem, so that the agent can mend it.
fn told(error: &ConfigTextError) -> String {
    let ConfigTextError::Invalid(issues) = error else { return error.to_string() };
    let lines: Vec<String> = issues.iter().map(|issue| format!("\n- {}", issue.line())).collect();
    format!("{error}:{}", lines.concat())
}

async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HostError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| HostError::Unavailable(format!("the config could not be read: {error}")))
}

fn answer(value: &impl Serialize) -> Result<Value, HostError> {
    serde_json::to_value(value).map_err(|error| HostError::Unavailable(error.to_string()))
}
