//! The commands, one module each.

mod agent;
mod agents;
mod approvals;
mod audit;
mod channels;
mod config;
mod config_pickup;
mod damaged_store;
mod dashboard;
mod default_models;
mod doctor;
mod gateway_ask;
mod gateway_probe;
mod gateway_run;
mod gateway_status;
mod health;
mod hooks;
mod local_run;
mod logs;
mod memory;
mod message;
mod models;
mod pairing;
mod piped;
mod questions;
mod sandbox;
mod sessions;
mod setup;
mod skills;
mod status;
mod status_text;
mod system;
mod tools;
mod trace;
mod usage;

use crate::args::{CliCommand, GatewayCommand, SecurityArgs, SecurityCommand};
use crate::context::CliContext;
use crate::failure::CommandResult;

/// Runs one command. Commands that help to repair an installation run with a broken config too
/// (spec `cli.md` §1.5).
pub(crate) fn run(command: CliCommand, context: &CliContext) -> CommandResult {
    if !runs_a_gateway(&command) {
        // Signals that `main` holds back for a gateway end every other command.
        openclaw_gateway::signals::let_through();
    }
    match command {
        CliCommand::Agent(args) => {
            context.config()?;
            agent::run(&args, context)
        }
        CliCommand::Agents(args) => agents::run(&args, context),
        CliCommand::Approvals(args) => approvals::run(&args, context),
        CliCommand::Channels(args) => channels::run(&args, context),
        CliCommand::Config(args) => config::run(args, context),
        CliCommand::Dashboard(args) => dashboard::run(&args, context),
        CliCommand::Doctor(args) => doctor::run(&args, context),
        CliCommand::Gateway(args) => match args.command {
            None => gateway_run::run(args.run, context),
            Some(GatewayCommand::Run(run)) => gateway_run::run(gateway_run::merge(run, args.run), context),
            Some(other) => gateway_ask::run(other, &args.run, context),
        },
        CliCommand::Health(args) => health::run(&args, context),
        CliCommand::Hooks(args) => hooks::run(&args, context),
        CliCommand::Logs(args) => logs::run(&args, context),
        CliCommand::Memory(args) => memory::run(&args, context),
        CliCommand::Message(mut args) => message::run(&mut args, context),
        CliCommand::Models(args) => models::run(args, context),
        CliCommand::Pairing(args) => pairing::run(&args, context),
        CliCommand::Sandbox(args) => sandbox::run(&args, context),
        CliCommand::Security(SecurityArgs { command: SecurityCommand::Audit(args) }) => {
            audit::command::run(&args, context)
        }
        CliCommand::Sessions(args) => sessions::run(&args, context),
        CliCommand::Setup(args) => setup::run(&args, context),
        CliCommand::Skills(args) => skills::run(&args, context),
        CliCommand::Status(args) => status::run(&args, context),
        CliCommand::System(args) => system::run(&args, context),
        CliCommand::Tools(args) => tools::run(&args, context),
        CliCommand::Trace(args) => trace::run(&args, context),
    }
}

fn runs_a_gateway(command: &CliCommand) -> bool {
    let CliCommand::Gateway(args) = command else { return false };
    matches!(args.command, None | Some(GatewayCommand::Run(_)))
}
