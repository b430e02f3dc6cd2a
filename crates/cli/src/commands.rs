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
mod listeners;
mod local_run;
mod logs;
mod message;
mod models;
mod pairing;
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

use crate::args::{Command, GatewayCommand};
use crate::context::Context;
use crate::failure::Outcome;

/// Runs one command. Those that help to repair an installation run with a broken config too (spec `cli.md` §1.5).
pub(crate) fn run(command: Command, context: &Context) -> Outcome {
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
        Command::Message(args) => message::run(&args, context),
        Command::Models(args) => models::run(args, context),
        Command::Pairing(args) => pairing::run(&args, context),
        Command::Sandbox(args) => sandbox::run(&args, context),
        Command::Sessions(args) => sessions::run(&args, context),
        Command::Setup(args) => setup::run(&args, context),
        Command::Skills(args) => skills::run(&args, context),
        Command::Status(args) => status::run(&args, context),
        Command::System(args) => system::run(&args, context),
        Command::Tools(args) => tools::run(&args, context),
        Command::Trace(args) => trace::run(&args, context),
    }
}
