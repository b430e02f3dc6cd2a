//! The fan-out: from one event to the queues of all connections that get it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use openclaw_dispatch::api::{Audience, Broadcast};
use openclaw_protocol::RunId;
use openclaw_protocol::frame::StateVersion;
use openclaw_protocol::params::connect::ConnectParams;
use parking_lot::{Mutex, RwLock};

use super::rules;
use super::tool_listeners::ToolListeners;
use crate::clock::now_ms;
use crate::connection::{ConnId, Connection};
use crate::events::{EncodedEvent, GatewayEvent, OfRun};
use crate::handshake::close::Closing;

/// Knows every authenticated connection and gives it its events. Never waits: a queue that is full drops or closes
/// by the slow-consumer policy.
#[derive(Debug, Default)]
pub struct EventHub {
    connections: RwLock<HashMap<ConnId, Arc<Connection>>>,
    tool_listeners: Mutex<ToolListeners>,
    presence_version: AtomicU64,
    health_version: AtomicU64,
}

impl EventHub {
    /// A hub without connections; both state versions start at 1.
    pub fn new() -> Self {
        let hub = Self::default();
        hub.presence_version.store(1, Ordering::Relaxed);
        hub.health_version.store(1, Ordering::Relaxed);
        hub
    }

    /// Adds a connection. `greet` runs while no event can pass: what it queues is the connection's first frame.
    pub(crate) fn admit(&self, connection: &Arc<Connection>, greet: impl FnOnce()) {
        let mut connections = self.connections.write();
        greet();
        connections.insert(connection.info().conn_id.clone(), Arc::clone(connection));
    }

    /// Forgets a connection.
    pub(crate) fn remove(&self, conn_id: &ConnId) {
        self.connections.write().remove(conn_id);
    }

    /// All authenticated connections.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.connections.read().values().cloned().collect()
    }

    /// The state versions as of now.
    pub fn state_version(&self) -> StateVersion {
        StateVersion {
            presence: self.presence_version.load(Ordering::Relaxed),
            health: self.health_version.load(Ordering::Relaxed),
        }
    }

    /// The presence list has changed.
    pub fn presence_changed(&self) {
        self.presence_version.fetch_add(1, Ordering::Relaxed);
    }

    /// The health snapshot was made anew.
    pub fn health_refreshed(&self) {
        self.health_version.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends an event to everyone who gets it.
    pub fn publish(&self, event: GatewayEvent) {
        self.send(event.encode(None), |_| true);
    }

    /// Sends `health`, which carries the state versions.
    pub(crate) fn publish_health(&self, event: GatewayEvent) {
        self.send(event.encode(Some(self.state_version())), |_| true);
    }

    /// Sends `presence`, which carries the state versions; not to those who have this list from their `hello-ok`.
    pub(crate) fn publish_presence(&self, event: GatewayEvent) {
        let version = self.state_version();
        self.send(event.encode(Some(version)), |connection| !connection.knows_presence(version.presence));
    }

    fn send(&self, event: EncodedEvent, wanted: impl Fn(&Connection) -> bool) {
        let event = Arc::new(event);
        for connection in self.connections.read().values() {
            if wanted(connection) && rules::admits(connection.info(), event.name()) {
                connection.broadcast(&event);
            }
        }
    }

    /// Registers a connection for the tool events of a run.
    pub(crate) fn listen_to_tools(&self, run_id: &RunId, conn_id: ConnId) {
        self.tool_listeners.lock().add(run_id, conn_id, now_ms());
    }

    /// Passes on what a run says.
    pub fn forward(&self, broadcast: Broadcast) {
        let Broadcast { name, payload, run_id, audience, droppable, ends_run, growing, .. } = broadcast;
        let of_run = OfRun { id: run_id.clone(), growing };
        let event = GatewayEvent::new(name, payload, droppable).of_run(of_run);
        match audience {
            Audience::All => self.publish(event),
            Audience::ToolListeners => {
                let listeners = self.tool_listeners.lock().of(&run_id, now_ms());
                self.send_tool_event(event, &listeners);
            }
            Audience::ToolWatchers => self.send_tool_event(event, &[]),
        }
        if ends_run {
            self.tool_listeners.lock().run_ended(&run_id, now_ms());
        }
    }

    /// Sends an event to `listeners`, and to everyone who watches the activity of tools.
    fn send_tool_event(&self, event: GatewayEvent, listeners: &[ConnId]) {
        let gets = |connection: &&Arc<Connection>| {
            let info = connection.info();
            listeners.contains(&info.conn_id)
                || (info.has_cap(ConnectParams::TOOL_ACTIVITY) && rules::admits(info, event.name()))
        };
        let connections = self.connections.read();
        let getting: Vec<_> = connections.values().filter(gets).collect();
        if getting.is_empty() {
            return;
        }
        let event = Arc::new(event.encode(None));
        for connection in getting {
            connection.target(&event);
        }
    }

    /// Forgets registrations that are due. Called on every tick.
    pub(crate) fn sweep(&self, now: i64) {
        let connections = self.connections.read();
        self.tool_listeners.lock().sweep(now, |conn_id| connections.contains_key(conn_id));
    }

    /// Closes every connection after what is queued for it.
    pub(crate) fn close_all(&self, closing: &Closing) {
        for connection in self.connections.read().values() {
            connection.close(closing.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::outbound::{Outbound, OutboundFrame, OutboundStep};
    use crate::connection::tests::{connection, with_caps};
    use openclaw_protocol::access::{ADMIN, Role};
    use openclaw_protocol::{AgentId, SessionKey};
    use serde_json::{Value, json};

    struct Client {
        connection: Arc<Connection>,
        outbound: Arc<Outbound>,
    }

    impl Client {
        fn join(hub: &EventHub, role: Role, caps: &[&str]) -> Self {
            let outbound = Arc::new(Outbound::default());
            let info = with_caps(connection(role, &[ADMIN]), caps);
            let connection = Arc::new(Connection::new(info, Arc::clone(&outbound)));
            hub.admit(&connection, || {});
            Self { connection, outbound }
        }

        /// `name#seq` of everything queued.
        fn received(&self) -> Vec<String> {
            let mut frames = Vec::new();
            while let OutboundStep::Write(OutboundFrame { text, bytes }) = self.outbound.take() {
                self.outbound.written(bytes);
                let frame: Value = serde_json::from_str(&text.to_string()).unwrap();
                frames.push(format!("{}#{}", frame["event"].as_str().unwrap(), frame["seq"]));
            }
            frames
        }
    }

    fn said(run: &RunId, audience: Audience) -> Broadcast {
        Broadcast {
            name: "agent",
            payload: json!({}).into(),
            run_id: run.clone(),
            session_key: SessionKey::main(&AgentId::default(), "main"),
            audience,
            droppable: false,
            ends_run: false,
            growing: None,
        }
    }

    #[test]
    fn every_connection_counts_its_own_events() {
        let hub = EventHub::new();
        let early = Client::join(&hub, Role::Operator, &[]);
        hub.publish(GatewayEvent::named("tick", json!({"ts": 1}).into()));
        let late = Client::join(&hub, Role::Operator, &[]);
        let node = Client::join(&hub, Role::Node, &[]);
        hub.presence_changed();
        late.connection.greeted_with(hub.state_version().presence);
        hub.publish_presence(GatewayEvent::named("presence", json!({}).into()));
        hub.publish(GatewayEvent::named("tick", json!({"ts": 2}).into()));
        assert_eq!(early.received(), ["tick#1", "presence#2", "tick#3"]);
        assert_eq!(late.received(), ["tick#1"]);
        assert_eq!(node.received(), ["tick#1"]);
    }

    #[test]
    fn tool_events_reach_only_who_started_the_run_and_asked_for_them() {
        let hub = EventHub::new();
        let asker = Client::join(&hub, Role::Operator, &["tool-events"]);
        let other = Client::join(&hub, Role::Operator, &["tool-events"]);
        let run = RunId::new("r1");
        hub.listen_to_tools(&run, asker.connection.info().conn_id.clone());
        hub.forward(said(&run, Audience::ToolListeners));
        hub.forward(said(&run, Audience::All));
        hub.forward(said(&RunId::new("r2"), Audience::ToolListeners));
        assert_eq!(asker.received(), ["agent#null", "agent#1"]);
        assert_eq!(other.received(), ["agent#1"]);
    }

    #[test]
    fn who_watches_tools_gets_the_tool_events_of_every_run_at_every_level() {
        let hub = EventHub::new();
        let watcher = Client::join(&hub, Role::Operator, &["tool-activity"]);
        let asker = Client::join(&hub, Role::Operator, &["tool-events"]);
        let node = Client::join(&hub, Role::Node, &["tool-activity"]);
        let run = RunId::new("r1");
        hub.listen_to_tools(&run, asker.connection.info().conn_id.clone());
        hub.forward(said(&run, Audience::ToolWatchers));
        hub.forward(said(&run, Audience::ToolListeners));
        assert_eq!(watcher.received(), ["agent#null", "agent#null"]);
        assert_eq!(asker.received(), ["agent#null"]);
        assert!(node.received().is_empty());
    }
}
