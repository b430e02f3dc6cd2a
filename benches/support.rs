//! What the benchmarks share: a gateway of the real binary with a store of a given size.

use openclaw_testkit::many_sessions::{self, Skills};
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewaySetup, GatewayUnderTest, WsClient};
use tokio::runtime::Runtime;

/// A gateway, a client of it, and the runtime they live on.
pub(crate) struct Bench {
    /// Drives the client.
    pub(crate) runtime: Runtime,
    /// Logged in.
    pub(crate) client: WsClient,
    /// The real binary.
    pub(crate) gateway: GatewayUnderTest,
    _model: ModelServer,
}

/// Starts a gateway whose model answers at once, with this many sessions on disk.
pub(crate) fn gateway(sessions: usize) -> Bench {
    gateway_with(sessions, || Reply::text("hello to you too"))
}

/// The same with another answer.
pub(crate) fn gateway_with(sessions: usize, answer: impl Fn() -> Reply + Send + Sync + 'static) -> Bench {
    let runtime = Runtime::new().unwrap();
    let (gateway, client, model) = runtime.block_on(async {
        let model = ModelServer::answering(move |_| answer()).await;
        let setup = GatewaySetup::new(env!("CARGO_BIN_EXE_openclaw")).fake_model(&model.v1());
        let mut gateway = setup.prepare().unwrap();
        many_sessions::write(&gateway.state_dir(), sessions, Skills::Some).unwrap();
        gateway.start().await.unwrap();
        let client = gateway.client().await.unwrap();
        (gateway, client, model)
    });
    Bench { runtime, client, gateway, _model: model }
}
