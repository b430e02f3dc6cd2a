//! Sub-agents, for the tools of one run.

use openclaw_agent::host::{HostFuture, SpawnCall, SubagentsHost};
use serde_json::Value;

use super::ToolHost;
use crate::subagents::Spawner;

impl SubagentsHost for ToolHost {
    fn spawn<'a>(&'a self, call: SpawnCall<'a>) -> HostFuture<'a, Value> {
        Box::pin(async move {
            let turn = &self.run.turn;
            let spawner = Spawner {
                parts: &self.parts,
                key: &turn.session_key,
                agent: &self.run.agent,
                origin: self.asked_in(),
                lineage: self.run.lineage,
                rights: &self.run.rights,
                call: turn.delivery_id(call.call_id, call.args),
            };
            Ok(spawner.spawn(call).await)
        })
    }
}
