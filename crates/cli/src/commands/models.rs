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
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use change::Choice;
use form::Form;
use view::ModelView;

pub(super) fn run(args: ModelsArgs, context: &CliContext) -> CommandResult {
    let of_agent = args.agent.as_deref();
    if let (Some(_), Some(command)) = (of_agent, &args.command)
        && changes_all_agents(command)
    {
        return Err(CommandFailure::usage(
            "--agent has no effect here: this changes agents.defaults, for all agents.",
        )
        .hint("For one agent set agents.list[n].model with `openclaw config set`."));
    }
    match args.command {
        Some(ModelsCommand::Aliases { command }) => change::aliases(&command, context),
        Some(ModelsCommand::Auth(auth)) => logins::run(auth, of_agent, context),
        Some(ModelsCommand::Fallbacks { command }) => change::fallbacks(Choice::Text, &command, context),
        Some(ModelsCommand::ImageFallbacks { command }) => {
            change::fallbacks(Choice::Image, &command, context)
        }
        Some(ModelsCommand::List { all, local, provider, form }) => {
            let view = ModelView::new(context, of_agent)?.with_servers()?;
            list::run(&view, &list::Filter { all, local, provider }, Form::of(form)?)
        }
        Some(ModelsCommand::Scan(scan)) => scan::run(&scan, context),
        Some(ModelsCommand::Set { model }) => change::set(Choice::Text, &model, context),
        Some(ModelsCommand::SetImage { model }) => change::set(Choice::Image, &model, context),
        Some(ModelsCommand::Status { form, check, agent, probe }) => {
            let ask = status::StatusFlags {
                form: Form::of(form)?,
                check,
                probe: status::ProbeSettings::of(&probe)?,
            };
            let view = ModelView::new(context, agent.as_deref().or(of_agent))?.with_servers()?;
            status::run(&view, context, &ask)
        }
        None => {
            let form = crate::args::FormArgs { json: args.status_json, plain: args.status_plain };
            let ask = status::StatusFlags { form: Form::of(form)?, check: false, probe: None };
            status::run(&ModelView::new(context, of_agent)?.with_servers()?, context, &ask)
        }
    }
}

/// True if a command changes the defaults that all agents share.
fn changes_all_agents(command: &ModelsCommand) -> bool {
    !matches!(command, ModelsCommand::Auth(_) | ModelsCommand::List { .. } | ModelsCommand::Status { .. })
}
