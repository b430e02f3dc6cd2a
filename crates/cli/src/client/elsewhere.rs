//! The gateway that was meant runs, but not where the command asked.

use openclaw_config::gateway_options::{PortSource, gateway_port_source};
use openclaw_gateway::{RunningGateway, running_gateway};

use super::connect::ConnectError;
use super::target::GatewayTarget;
use crate::context::CliContext;
use crate::failure::CommandFailure;
use crate::service::{self, process};

/// Failure that says where the gateway of this state directory listens and what to pass, when the
/// command asked another port.
pub(crate) fn elsewhere(
    context: &CliContext,
    target: &GatewayTarget,
    error: &ConnectError,
) -> Option<CommandFailure> {
    let is_refused = match error {
        ConnectError::Unreachable { .. } => true,
        // Another program may have answered.
        ConnectError::Closed { .. } | ConnectError::Refused { .. } | ConnectError::Protocol { .. } => false,
        ConnectError::UnknownHost { .. }
        | ConnectError::Answer { .. }
        | ConnectError::UnknownMethod { .. }
        | ConnectError::Identity { .. }
        | ConnectError::Unprotected { .. }
        | ConnectError::Url { .. } => return None,
    };
    let asked = target.local_port()?;
    let running = running_gateway(&context.loaded)?;
    let source = gateway_port_source(&context.config_or_default(), context.env());
    let whose = format!("The gateway of this state directory{}", process(running));
    let asked_for = format!("this command asked {} ({})", target.url, described(context, source));
    match running.port {
        Some(port) if port != asked => {
            let failure =
                CommandFailure::new("other-port", format!("{whose} listens on port {port}; {asked_for}."));
            Some(failure.hint(advice(context, running, port, source)))
        }
        None if is_refused => {
            let failure =
                CommandFailure::new("no-port", format!("{whose} does not answer there: {asked_for}."));
            Some(failure.hint("If it listens on another port, pass it: OPENCLAW_GATEWAY_PORT=<port>."))
        }
        Some(_) | None => None,
    }
}

/// Source of the port number, for people.
fn described(context: &CliContext, source: PortSource) -> String {
    match source {
        PortSource::Variable(name) => format!("port from {name}"),
        PortSource::Config => "port from gateway.port".to_owned(),
        PortSource::Default if context.config().is_ok() => "the default port".to_owned(),
        PortSource::Default => "the default port, because the config cannot be used".to_owned(),
    }
}

fn advice(context: &CliContext, running: RunningGateway, port: u16, source: PortSource) -> String {
    let pass = format!("Pass OPENCLAW_GATEWAY_PORT={port} to this command");
    match source {
        PortSource::Variable(_) => format!("{pass}."),
        PortSource::Config | PortSource::Default if context.config().is_ok() => {
            let restart = service::restart_advice(context, running);
            format!("{pass}. If gateway.port was changed since the gateway started, {restart}")
        }
        PortSource::Config | PortSource::Default => {
            format!("{pass}, or mend the config: {}", context.hint_command("openclaw doctor"))
        }
    }
}
