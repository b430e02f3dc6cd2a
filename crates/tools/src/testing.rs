//! Context of a call in tests.

use std::path::PathBuf;
use std::sync::Arc;

use openclaw_agent::ToolContext;
use openclaw_agent::host::Host;
use openclaw_agent::place::off_limits::OffLimits;
use openclaw_config::Environment;
use openclaw_config::settings::{Exec as ExecConfig, WebTools};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::exec::settings::ExecSettings;
use crate::path::Confinement;
use crate::setup::Setup;
use crate::web::{WebSettings, WebShared};

/// Host for tools that ask nothing of the gateway.
struct NoHost;

impl Host for NoHost {}

/// A call in this workspace that nobody listens to.
pub(crate) fn context(workspace: PathBuf) -> ToolContext {
    ToolContext {
        call_id: "c".to_owned(),
        workspace,
        cancel: CancellationToken::new(),
        updates: mpsc::channel(1).0,
        host: Arc::new(NoHost),
    }
}

/// The web with these settings, and no key in the environment.
pub(crate) fn web(config: &WebTools) -> WebSettings {
    WebSettings::new(config, &Environment::default(), WebShared::default())
}

/// The tools of an unconfined run that uses the web so.
pub(crate) fn setup(web: WebSettings) -> Setup {
    let exec = ExecSettings::new(&ExecConfig::default(), Environment::default());
    Setup {
        confinement: Confinement::Host,
        exec,
        message: None,
        apply_patch: false,
        web,
        image: None,
        has_gateway: false,
        writes: crate::setup::Writes::default(),
        memory_off: None,
        off_limits: OffLimits::default(),
    }
}
