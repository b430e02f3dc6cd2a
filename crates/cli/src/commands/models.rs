//! `openclaw models` (spec `cli.md` §4.2).

mod auth;
mod change;
mod form;
mod list;
mod logins;
mod scan;
mod status;
mod view;

use crate::args::{ModelsArgs, ModelsCommand};
use crate::client::block_on;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use change::Choice;
use form::Form;
use view::View;

pub(super) fn run(args: ModelsArgs, context: &Context) -> Outcome {
    let of_agent = args.agent.as_deref();
    match args.command {
        Some(ModelsCommand::Aliases { command }) => {
            for_all_agents(of_agent)?;
            change::aliases(&command, context)
        }
        Some(ModelsCommand::Auth(auth)) => logins::run(auth, of_agent, context),
        Some(ModelsCommand::Fallbacks { command }) => {
            for_all_agents(of_agent)?;
            change::fallbacks(Choice::Text, &command, context)
        }
        Some(ModelsCommand::ImageFallbacks { command }) => {
            for_all_agents(of_agent)?;
            change::fallbacks(Choice::Image, &command, context)
        }
        Some(ModelsCommand::List { all, local, provider, form }) => {
            let view = with_servers(View::new(context, of_agent)?)?;
            list::run(&view, &list::Filter { all, local, provider }, Form::of(form)?)
        }
        Some(ModelsCommand::Scan(scan)) => {
            for_all_agents(of_agent)?;
            scan::run(&scan, context)
        }
        Some(ModelsCommand::Set { model }) => {
            for_all_agents(of_agent)?;
            change::set(Choice::Text, &model, context)
        }
        Some(ModelsCommand::SetImage { model }) => {
            for_all_agents(of_agent)?;
            change::set(Choice::Image, &model, context)
        }
        Some(ModelsCommand::Status { form, check, agent, probe }) => {
            let ask = status::Ask { form: Form::of(form)?, check, probe: status::Pace::of(&probe)? };
            let view = with_servers(View::new(context, agent.as_deref().or(of_agent))?)?;
            status::run(&view, context, &ask)
        }
        None => {
            let form = crate::args::FormArgs { json: args.status_json, plain: args.status_plain };
            let ask = status::Ask { form: Form::of(form)?, check: false, probe: None };
            status::run(&with_servers(View::new(context, of_agent)?)?, context, &ask)
        }
    }
}

/// Asks local servers and services which models they have, as a run would.
fn with_servers(view: View) -> Result<View, Failure> {
    block_on(async { Ok(view.with_servers().await) })
}

/// Refuses `--agent` for what changes the defaults of all agents.
fn for_all_agents(agent: Option<&str>) -> Result<(), Failure> {
    match agent {
        None => Ok(()),
        Some(_) => {
            Err(Failure::usage("--agent has no effect here: this changes agents.defaults, for all agents.")
                .hint("For one agent set agents.list[n].model with `openclaw config set`."))
        }
    }
}
