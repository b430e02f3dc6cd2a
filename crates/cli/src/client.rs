//! A thin client of the gateway's WebSocket protocol: one connection, one or a few calls (spec `gateway-protocol.md` §12).

mod connect;
mod elsewhere;
mod explain;
mod gateway_url;
pub(crate) mod identity;
mod target;

use std::time::Duration;

use openclaw_protocol::Call;
use serde_json::Value;

pub(crate) use connect::{AwaitedResponse, ConnectError, GatewayConnection, ReceivedEvent};
pub(crate) use elsewhere::elsewhere;
pub(crate) use explain::{another_program, choose_port, explain};
pub(crate) use gateway_url::problem as url_problem;
pub(crate) use target::{GatewayTarget, TargetFlags};

use crate::args::{TargetArgs, positive};
use crate::context::CliContext;
use crate::failure::CommandFailure;

/// Time for a call unless asked otherwise (spec `cli.md` §2).
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl From<&TargetArgs> for TargetFlags {
    fn from(args: &TargetArgs) -> Self {
        Self { url: args.url.clone(), token: args.token.clone(), password: args.password.clone() }
    }
}

/// Makes one call: connects, asks, closes.
///
/// # Errors
/// Returns the failure, with the block that says which gateway was meant.
pub(crate) async fn call(
    context: &CliContext,
    flags: &TargetFlags,
    method: &str,
    params: Value,
    wait: AwaitedResponse,
    timeout: Duration,
) -> Result<Value, CommandFailure> {
    call_hearing(context, flags, method, params, wait, timeout, &mut |_| {}).await
}

/// Makes one call as [`call`] does, and gives `hear` the events that come before the answer.
///
/// # Errors
/// As [`call`].
pub(crate) async fn call_hearing(
    context: &CliContext,
    flags: &TargetFlags,
    method: &str,
    params: Value,
    wait: AwaitedResponse,
    timeout: Duration,
    hear: &mut (dyn FnMut(ReceivedEvent<'_>) + Send),
) -> Result<Value, CommandFailure> {
    let target = GatewayTarget::resolve(context, flags)?;
    let work = async {
        let mut connection = GatewayConnection::open(context, &target).await?;
        let answer = connection.call_hearing(method, params, wait, hear).await;
        connection.close().await;
        answer
    };
    match tokio::time::timeout(timeout, work).await {
        Ok(Ok(payload)) => Ok(payload),
        Ok(Err(error)) => Err(explain(context, &target, &error)),
        Err(_) => Err(CommandFailure::new(
            "timeout",
            format!("gateway timeout after {}ms\n{}", timeout.as_millis(), target.describe(context)),
        )
        .hint(when_silent(context, &target))),
    }
}

/// Returns the hint for a gateway that takes the connection and does not answer in time.
fn when_silent(context: &CliContext, target: &GatewayTarget) -> String {
    let logs = context.hint_command("openclaw logs");
    another_program(context, target)
        .unwrap_or_else(|| format!("Look at `{logs}`, or give it more time with --timeout."))
}

/// Reads the answer to a method.
///
/// # Errors
/// When it is none: the gateway is another version, or no gateway.
pub(crate) fn read<C: Call>(answer: Value, what: &str) -> Result<C::Output, CommandFailure> {
    let text =
        |error: serde_json::Error| format!("the gateway's answer to {} is no {what}: {error}", C::NAME);
    serde_json::from_value(answer).map_err(|error| CommandFailure::new("protocol", text(error)))
}

/// Runs a future to its end on a runtime of one thread.
pub(crate) fn block_on<T>(
    future: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    openclaw_tls::install_provider();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandFailure::new("runtime", format!("could not start: {error}")))?;
    crate::runtime::finish(runtime, future)
}

/// A positive number of milliseconds from a flag.
///
/// # Errors
/// In the reference's words.
pub(crate) fn timeout_of(flag: Option<&str>, default: Duration) -> Result<Duration, CommandFailure> {
    match flag {
        None => Ok(default),
        Some(text) => {
            positive(text, "--timeout must be a positive integer (milliseconds)").map(Duration::from_millis)
        }
    }
}
