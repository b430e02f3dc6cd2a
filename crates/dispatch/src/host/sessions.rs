//! Other sessions, for the tools of one run.

use openclaw_agent::host::{
    HistoryWish, HostFuture, ListWish, SendCall, SendWish, SessionsHost, StatusAnswer, StatusWish,
};
use openclaw_journal::request::WEBCHAT;
use openclaw_sessions::access::Viewer;
use serde_json::Value;

use super::ToolHost;
use crate::session_tools::{ToolCaller, sight};

impl ToolHost {
    fn caller(&self) -> ToolCaller<'_> {
        let settings = self.tools().settings.now();
        let run = &self.run;
        let key = &run.turn.session_key;
        let sight = sight(&settings, &run.agent, key, !run.rights.may_use_host());
        let channel = match (&run.origin, &run.place) {
            (Some(origin), _) => Some(origin.address.channel.clone()),
            (None, Some(_)) => Some(WEBCHAT.to_owned()),
            // A client: where it says it speaks, else where its session is answered.
            (None, None) => {
                let bound = || run.turn.bound.as_ref().map(|bound| bound.address.channel.clone());
                run.caller.channel.clone().or_else(bound)
            }
        };
        ToolCaller {
            parts: &self.parts,
            settings,
            agent: &run.agent,
            viewer: Viewer { agent: run.agent.id.clone(), key: key.clone(), sight },
            channel,
            turn: &run.turn,
            lineage: run.lineage,
            rights: &run.rights,
            place: run.place.as_deref(),
        }
    }
}

impl SessionsHost for ToolHost {
    fn list<'a>(&'a self, wish: &'a ListWish) -> HostFuture<'a, Value> {
        Box::pin(async move { self.caller().list(wish).await })
    }

    fn history<'a>(&'a self, wish: &'a HistoryWish) -> HostFuture<'a, Value> {
        Box::pin(async move { self.caller().history(wish).await })
    }

    fn send<'a>(&'a self, wish: &'a SendWish, call: SendCall<'a>) -> HostFuture<'a, Value> {
        Box::pin(async move { self.caller().send(wish, call).await })
    }

    fn agents(&self) -> HostFuture<'_, Value> {
        Box::pin(async move { Ok(self.caller().list_agents()) })
    }

    fn status<'a>(&'a self, wish: &'a StatusWish) -> HostFuture<'a, StatusAnswer> {
        Box::pin(async move { self.caller().status(wish).await })
    }
}
