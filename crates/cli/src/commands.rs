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

use crate::args::{Command, GatewayCommand, SecurityArgs, SecurityCommand};
use crate::context::Context;
use crate::failure::Outcome;

/// Runs one command. Commands that help to repair an installation run with a broken config too
/// (spec `cli.md` §1.5).
pub(crate) fn run(command: Command, context: &Context) -> Outcome {
    if !runs_a_gateway(&command) {
        // Signals that `main` holds back for a gateway end every other command.
        openclaw_gateway::signals::let_through();
    }
    match command {
        Command::Agent(args) => {
            context.config()?;
            agent::run(&args, context)
        }
        Command::Agents(args) => agents::run(&args, context),
        Command::Approvals(args) => approvals::run(&args, context),
        Command::Channels(args) => channels::run(&args, context),
        Command::Config(args) => config::run(args, context),
        Command::Dashboard(args) => dashboard::run(&args, context),
        Command::Doctor(args) => doctor::run(&args, context),
        Command::Gateway(args) => match args.command {
            None => gateway_run::run(args.run, context),
            Some(GatewayCommand::Run(run)) => gateway_run::run(gateway_run::merge(run, args.run), context),
            Some(other) => gateway_ask::run(other, &args.run, context),
        },
        Command::Health(args) => health::run(&args, context),
        Command::Hooks(args) => hooks::run(&args, context),
        Command::Logs(args) => logs::run(&args, context),
        Command::Message(mut args) => message::run(&mut args, context),
        Command::Models(args) => models::run(args, context),
        Command::Pairing(args) => pairing::run(&args, context),
        Command::Sandbox(args) => sandbox::run(&args, context),
        Command::Security(SecurityArgs { command: SecurityCommand::Audit(args) }) => {
            audit::command::run(&args, context)
        }
        Command::Sessions(args) => sessions::run(&args, context),
        Command::Setup(args) => setup::run(&args, context),
        Command::Skills(args) => skills::run(&args, context),
        Command::Status(args) => status::run(&args, context),
        Command::System(args) => system::run(&args, context),
        Command::Tools(args) => tools::run(&args, context),
        Command::Trace(args) => trace::run(&args, context),
    }
}

fn runs_a_gateway(command: &Command) -> bool {
    let Command::Gateway(args) = command else { return false };
    matches!(args.command, None | Some(GatewayCommand::Run(_)))
}
