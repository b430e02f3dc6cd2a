//! A client comes: TCP, upgrade, challenge, `connect`, `hello-ok`.

#![allow(clippy::unwrap_used, reason = "a benchmark that can't run stops")]

#[allow(dead_code, reason = "each benchmark uses a part")]
mod support;

use divan::Bencher;
use openclaw_testkit::{DeviceIdentity, Login, TOKEN, WsClient};

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn with_the_shared_token(bencher: Bencher<'_, '_>) {
    connect(bencher, &Login::token(TOKEN));
}

/// With a signature to check.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn with_a_device(bencher: Bencher<'_, '_>) {
    connect(bencher, &Login::token(TOKEN).device(DeviceIdentity::from_seed(1)));
}

fn connect(bencher: Bencher<'_, '_>, login: &Login) {
    let bench = support::gateway(0);
    let port = bench.gateway.port();
    // The client is given back, so that saying goodbye is not measured.
    bencher
        .with_inputs(|| login.clone())
        .bench_local_values(|login| bench.runtime.block_on(WsClient::connect(port, login)).unwrap());
}
