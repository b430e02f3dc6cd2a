//! Listeners for tool events: the connections that get them, by run (spec `gateway-protocol.md`
//! §7.3).

use std::collections::HashMap;

use openclaw_protocol::RunId;

use crate::connection::ConnId;

/// A registration is forgotten this long after its last use.
const IDLE_MS: i64 = 600_000;
/// … and this long after its run has ended.
const ENDED_MS: i64 = 30_000;

/// Registrations by run. Bounded by forgetting: see [`ToolListeners::sweep`].
#[derive(Debug, Default)]
pub(super) struct ToolListeners {
    runs: HashMap<RunId, Registration>,
}

#[derive(Debug)]
struct Registration {
    connections: Vec<ConnId>,
    forget_at: i64,
    ended: bool,
}

impl ToolListeners {
    /// Registers a connection for a run.
    pub(super) fn add(&mut self, run_id: &RunId, connection: ConnId, now: i64) {
        let registration = self.runs.entry(run_id.clone()).or_insert_with(|| Registration {
            connections: Vec::new(),
            forget_at: now + IDLE_MS,
            ended: false,
        });
        registration.touch(now);
        if !registration.connections.contains(&connection) {
            registration.connections.push(connection);
        }
    }

    /// The connections registered for a run.
    pub(super) fn of(&mut self, run_id: &RunId, now: i64) -> Vec<ConnId> {
        let Some(registration) = self.runs.get_mut(run_id).filter(|run| run.forget_at > now) else {
            return Vec::new();
        };
        registration.touch(now);
        registration.connections.clone()
    }

    /// The run has ended: late tool events still arrive for a while.
    pub(super) fn run_ended(&mut self, run_id: &RunId, now: i64) {
        if let Some(registration) = self.runs.get_mut(run_id) {
            registration.ended = true;
            registration.forget_at = now + ENDED_MS;
        }
    }

    /// Drops entries that are due, and those of connections that are gone.
    pub(super) fn sweep(&mut self, now: i64, is_connected: impl Fn(&ConnId) -> bool) {
        self.runs.retain(|_, registration| {
            registration.connections.retain(&is_connected);
            registration.forget_at > now && !registration.connections.is_empty()
        });
    }
}

impl Registration {
    fn touch(&mut self, now: i64) {
        if !self.ended {
            self.forget_at = now + IDLE_MS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_forgotten_after_ten_idle_minutes_or_half_a_minute_after_its_end() {
        let run = RunId::new("r1");
        let conn = ConnId::random();
        let mut listeners = ToolListeners::default();
        listeners.add(&run, conn.clone(), 0);
        listeners.add(&run, conn.clone(), 1);
        assert_eq!(listeners.of(&run, IDLE_MS), std::slice::from_ref(&conn));
        assert_eq!(listeners.of(&run, 2 * IDLE_MS - 1), std::slice::from_ref(&conn));
        listeners.run_ended(&run, 2 * IDLE_MS);
        assert_eq!(listeners.of(&run, 2 * IDLE_MS + ENDED_MS - 1), [conn]);
        assert_eq!(listeners.of(&run, 2 * IDLE_MS + ENDED_MS), []);
        assert_eq!(listeners.of(&RunId::new("other"), 0), []);
    }

    #[test]
    fn a_sweep_drops_what_nobody_hears() {
        let mut listeners = ToolListeners::default();
        let (here, gone) = (ConnId::random(), ConnId::random());
        listeners.add(&RunId::new("kept"), here.clone(), 0);
        listeners.add(&RunId::new("orphan"), gone, 0);
        listeners.sweep(1, |conn| *conn == here);
        assert_eq!(listeners.runs.keys().map(RunId::as_str).collect::<Vec<_>>(), ["kept"]);
        listeners.sweep(IDLE_MS, |_| true);
        assert!(listeners.runs.is_empty());
    }
}
