//! Whatever comes over a connection is answered as HTTP or not at all, and the connection ends with it.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use openclaw_config::Environment;
use openclaw_gateway::fuzzing::Http;
use openclaw_gateway::{LogTarget, RunOptions, run};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

struct Gateway {
    runtime: Runtime,
    http: Http,
    _home: tempfile::TempDir,
}

static GATEWAY: LazyLock<Gateway> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().to_str().expect("a path in UTF-8");
    let environment =
        Environment::new([("HOME", path), ("TMPDIR", path), ("OPENCLAW_LOCAL_MODELS", "off")], path);
    let (ready, told) = oneshot::channel();
    let loaded = Arc::new(openclaw_config::load(&environment));
    let mut options =
        RunOptions { log: LogTarget::Existing, ready: Some(ready), ..RunOptions::new(environment, loaded) };
    options.flags.port = Some(0);
    options.flags.token = Some("the-token-of-this-gateway".to_owned().into());
    options.flags.allow_unconfigured = true;
    runtime.spawn(async { run(options).await.expect("the gateway runs") });
    let http = Http::of(&runtime.block_on(told).expect("the gateway starts").state);
    Gateway { runtime, http, _home: home }
});

fuzz_target!(|bytes: &[u8]| {
    let Gateway { runtime, http, .. } = &*GATEWAY;
    let answer = runtime.block_on(http.answer(bytes)).expect("the connection ends");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", String::from_utf8_lossy(&answer));
});
