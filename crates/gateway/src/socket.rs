//! The socket of one client: from its upgrade through the handshake and its requests to its end.
//!
//! `driver` is its task, `requests` starts a handler for each frame, `frame_gate` holds it to what
//! it may send, and `batch` puts together what is written to it.

mod batch;
pub(crate) mod driver;
mod frame_gate;
mod frame_progress;
mod hello;
mod requests;
pub(crate) mod upgrade;
pub(crate) mod work_budget;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::frame_budget::FrameBudget;
use crate::current_settings::CurrentSettings;
use crate::entrance::Entrance;
use crate::fan_out::EventHub;
use crate::health::HealthMonitor;
use crate::methods::Methods;
use crate::pairing::DeviceStore;
use crate::presence::Presence;
use work_budget::WorkBudget;

/// Parts of the gateway that the sockets of clients share.
pub(crate) struct SocketParts {
    /// Decides who comes in.
    pub(crate) entrance: Arc<Entrance>,
    /// Paired devices.
    pub(crate) devices: DeviceStore,
    /// Facts of `hello-ok` that do not change.
    pub(crate) about: About,
    pub(crate) settings: CurrentSettings,
    pub(crate) health: Arc<HealthMonitor>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) events: Arc<EventHub>,
    pub(crate) methods: Arc<Methods>,
    pub(crate) frame_budget: FrameBudget,
    pub(crate) work_budget: WorkBudget,
    /// Owns requests.
    pub(crate) tasks: TaskTracker,
    pub(crate) stopping: CancellationToken,
}

/// Facts about this gateway that its clients are told.
pub(crate) struct About {
    /// Name of this host.
    pub(crate) host: String,
    /// Path of the config file.
    pub(crate) config_path: PathBuf,
    /// Directory of the state.
    pub(crate) state_dir: PathBuf,
    /// Time of the gateway's start.
    pub(crate) started: Instant,
}
