//! A thin client of the gateway's WebSocket protocol: one connection, one or a few calls (spec `gateway-protocol.md` §12).

mod connect;
mod elsewhere;
mod identity;
mod target;

use std::time::Duration;

use serde_json::Value;

pub(crate) use connect::{ConnectError, Connection, Wait};
pub(crate) use elsewhere::{elsewhere, process};
pub(crate) use target::{Target, TargetFlags};

use crate::args::TargetArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Time for a call unless asked otherwise (spec `cli.md` §2).
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

impl From<&TargetArgs> for TargetFlags {
    fn from(args: &TargetArgs) -> Self {
        Self { url: args.url.clone(), token: args.token.clone(), password: args.password.clone() }
    }
}

/// One call: connect, ask, close.
///
/// # Errors
/// What went wrong, with the block that says which gateway was meant.
pub(crate) async fn call(
    context: &Context,
    flags: &TargetFlags,
    method: &str,
    params: Value,
    wait: Wait,
    timeout: Duration,
) -> Result<Value, Failure> {
    let target = Target::resolve(context, flags)?;
    let work = async {
        let mut connection = Connection::open(context, &target).await?;
        let answer = connection.call(method, params, wait).await;
        connection.close().await;
        answer
    };
    match tokio::time::timeout(timeout, work).await {
        Ok(Ok(payload)) => Ok(payload),
        Ok(Err(error)) => Err(explain(context, &target, &error)),
        Err(_) => Err(Failure::new(
            "timeout",
            format!("gateway timeout after {}ms\n{}", timeout.as_millis(), target.describe(context)),
        )
        .hint(format!(
            "Look at `{}`, or give it more time with --timeout.",
            context.hint_command("openclaw logs")
        ))),
    }
}

/// The text for people: what happened, to which gateway, what to do.
pub(crate) fn explain(context: &Context, target: &Target, error: &ConnectError) -> Failure {
    if let Some(failure) = elsewhere(context, target, error) {
        return failure;
    }
    let block = target.describe(context);
    let command = |text: &str| context.hint_command(text);
    match error {
        ConnectError::Unreachable { .. } => Failure::new(
            "unreachable",
            format!("gateway closed (1006 abnormal closure (no close frame)): no close reason\n{block}"),
        )
        .hint(format!("{error}. Start a gateway with `{}`.", command("openclaw gateway"))),
        ConnectError::Closed { .. } => Failure::new("closed", format!("{error}\n{block}"))
            .hint(format!("Look at `{}`.", command("openclaw logs"))),
        ConnectError::Refused { message, .. } if message.contains("pairing required") => {
            Failure::new("pairing-required", format!("{message}\n{block}"))
                .hint("Approve this device on the gateway's host: openclaw devices list, openclaw devices approve <id>.")
        }
        ConnectError::Refused { message, .. } => Failure::new("refused", format!("{message}\n{block}")).hint(format!(
            "Check gateway.auth with `{}`; a running gateway uses the token it was started with.",
            command("openclaw config get gateway.auth.mode")
        )),
        ConnectError::Unprotected { detail, remedy } => {
            Failure::new("protection-missing", format!("{detail}\n{block}")).hint(*remedy)
        }
        ConnectError::Answer { code: _, message } => Failure::new("request", message.clone()),
        ConnectError::Identity { .. } | ConnectError::Protocol { .. } | ConnectError::Url { .. } => {
            Failure::new("client", format!("{error}\n{block}"))
        }
    }
}

/// Runs a future to its end on a runtime of one thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    openclaw_models::install_tls();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new("runtime", format!("could not start: {error}")))?;
    crate::runtime::finish(runtime, future)
}

/// A positive number of milliseconds from a flag.
///
/// # Errors
/// In the reference's words.
pub(crate) fn timeout_of(flag: Option<&str>, default: Duration) -> Result<Duration, Failure> {
    match flag {
        None => Ok(default),
        Some(text) => text
            .trim()
            .parse::<u64>()
            .ok()
            .filter(|milliseconds| *milliseconds > 0)
            .map(Duration::from_millis)
            .ok_or_else(|| Failure::usage("--timeout must be a positive integer (milliseconds)")),
    }
}
