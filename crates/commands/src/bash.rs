//! `/bash ⟨command⟩`, `! ⟨command⟩`: a shell command on this host, without the agent (spec `messages.md` §5).

use openclaw_journal::caller::Right;
use std::time::Duration;

use openclaw_journal::rights::elevated::refusal;
use openclaw_tools::Elevated;
use openclaw_tools::by_person::{self, NotRun, PersonsCommand, PersonsEnd};

use super::command::{BASH, Category, ChatCommand, Does, Offered, Takes};
use super::elevated::asked;
use super::{Answering, CommandContext, CommandError};

pub(crate) const COMMAND: ChatCommand = ChatCommand {
    offered: Offered::Text,
    is_on: |commands| commands.bash,
    ..ChatCommand::new(BASH, Category::Tools, Does::Answers(run), "Run a shell command here.")
        .taking(Takes::Words, "<command>|poll [id]|stop [id]|help")
        .keeping_lines()
        .needing(Right::Administer)
};

/// Time for which a command is awaited, in milliseconds (spec `messages.md` §5).
const FOREGROUND_MS: u64 = 2_000;
const LONGEST_FOREGROUND_MS: u64 = 30_000;
/// Characters of the output that are shown, the last ones.
const SHOWN: usize = 4_000;

const USAGE: &str = "⚙️ bash runs a shell command on this machine, without the agent.\n- ! <command> (or /bash <command>)\n\
                     - !poll [id] shows what it printed\n- !stop [id] ends it";
const DISABLED: &str = "⚠️ bash is disabled. Set commands.bash=true to enable.";
const NONE: &str = "⚙️ No active bash job.";
const INTERRUPTED: &str =
    "⚠️ The gateway stopped while this command ran, and ended it. Write it again if it did not finish.";

/// Request of a `/bash` command.
#[derive(Debug, PartialEq, Eq)]
enum BashRequest<'a> {
    Help,
    Poll(Option<&'a str>),
    Stop(Option<&'a str>),
    Run(&'a str),
}

impl<'a> BashRequest<'a> {
    fn read(arguments: &'a str) -> Self {
        let mut words = arguments.split_whitespace();
        let (first, id, more) = (words.next(), words.next(), words.next());
        match (first.map(str::to_lowercase).as_deref(), id, more) {
            (None, ..) | (Some("help"), None, _) => Self::Help,
            (Some("poll"), id, None) => Self::Poll(id),
            (Some("stop"), id, None) => Self::Stop(id),
            _ => Self::Run(arguments.trim()),
        }
    }
}

fn run<'a>(context: &'a CommandContext<'a>, arguments: &'a str) -> Answering<'a> {
    Box::pin(async move {
        let config = &context.settings.config;
        if !config.commands.bash {
            return Ok(DISABLED.to_owned());
        }
        if let Some(refusal) = refusal(config, asked(context)) {
            return Ok(format!("⚠️ {}", Elevated::unavailable(context.is_sandboxed(), &refusal)));
        }
        let sessions = &context.services.command_sessions;
        let said = match BashRequest::read(arguments) {
            BashRequest::Help => USAGE.to_owned(),
            BashRequest::Poll(id) => {
                by_person::find(sessions, id).map_or_else(|| unknown(id), |job| polled(&job))
            }
            BashRequest::Stop(id) => match by_person::find(sessions, id).filter(|job| job.end.is_none()) {
                None => unknown(id),
                Some(job) => by_person::stop(sessions, Some(&job.id))
                    .await
                    .as_ref()
                    .map_or_else(|| unknown(id), stopped),
            },
            // The effects of the earlier process's command are unknown.
            BashRequest::Run(_) if context.was_begun => INTERRUPTED.to_owned(),
            BashRequest::Run(command) => begin(context, command).await?,
        };
        context.services.host.redacted(context.settings, &said).map_err(CommandError::Prompt)
    })
}

async fn begin(context: &CommandContext<'_>, command: &str) -> Result<String, CommandError> {
    let window = context.settings.config.commands.bash_foreground_ms.unwrap_or(FOREGROUND_MS);
    let window = Duration::from_millis(window.min(LONGEST_FOREGROUND_MS));
    let exec = context.services.host.exec_of_person(context).map_err(CommandError::Prompt)?;
    // The first run makes the workspace.
    let workspace = &context.agent.workspace;
    let home = exec.environment.home();
    let directory = if tokio::fs::metadata(workspace).await.is_ok_and(|found| found.is_dir()) {
        workspace
    } else {
        &home
    };
    Ok(match by_person::run(exec, command, directory, window, context.stop).await {
        Ok(job) if job.end.is_none() => format!(
            "⚙️ bash started (session {}). Still running; use !poll / !stop (or /bash poll / /bash stop).",
            job.id
        ),
        Ok(job) => format!("⚙️ bash: {}\n{}", job.command, ended(&job)),
        Err(NotRun::Busy(id)) => {
            format!(
                "⚠️ A bash job is already running (session {id}). Use !poll / !stop (or /bash poll / /bash stop)."
            )
        }
        Err(NotRun::Failed(why)) => format!("⚠️ bash: {why}"),
    })
}

fn unknown(id: Option<&str>) -> String {
    id.map_or_else(|| NONE.to_owned(), |id| format!("⚙️ No bash session found for {id}."))
}

fn polled(job: &PersonsCommand) -> String {
    let id = &job.id;
    match &job.end {
        None => {
            format!(
                "⚙️ bash still running (session {id}, {}s).\n{}",
                job.runtime.as_secs(),
                block(&job.printed)
            )
        }
        Some(_) => format!("⚙️ bash finished (session {id}).\n{}", ended(job)),
    }
}

fn stopped(job: &PersonsCommand) -> String {
    format!("⚙️ bash stopped (session {}).\n{}", job.id, block(&job.printed))
}

fn ended(job: &PersonsCommand) -> String {
    let how = match &job.end {
        Some(PersonsEnd::Exited(code)) => code.to_string(),
        Some(PersonsEnd::Killed(why)) => why.clone(),
        None => "still running".to_owned(),
    };
    format!("Exit: {how}\n{}", block(&job.printed))
}

/// Returns the end of the output, fenced so that nothing in it ends the fence.
fn block(printed: &str) -> String {
    let printed = printed.trim_matches('\n').trim_end();
    if printed.is_empty() {
        return "(no output)".to_owned();
    }
    let from = printed.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
    let shown = printed.get(from..).unwrap_or_default();
    let cut = if from > 0 { format!("(the last {SHOWN} characters)\n") } else { String::new() };
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{cut}{fence}txt\n{shown}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_more_than_an_id_makes_it_a_command() {
        let rows = [
            ("", BashRequest::Help),
            (" help ", BashRequest::Help),
            ("help me", BashRequest::Run("help me")),
            ("poll", BashRequest::Poll(None)),
            ("POLL warm-sea", BashRequest::Poll(Some("warm-sea"))),
            ("stop", BashRequest::Stop(None)),
            ("stop warm-sea", BashRequest::Stop(Some("warm-sea"))),
            ("stop the music", BashRequest::Run("stop the music")),
            ("  ls -la  \"a  b\"\n pwd ", BashRequest::Run("ls -la  \"a  b\"\n pwd")),
        ];
        for (arguments, expect) in rows {
            assert_eq!(BashRequest::read(arguments), expect, "{arguments:?}");
        }
    }

    #[test]
    fn what_was_printed_does_not_end_its_own_fence() {
        let long = format!("{}{}", "x".repeat(SHOWN), "é");
        let rows = [
            ("", "(no output)".to_owned()),
            ("\n \n", "(no output)".to_owned()),
            ("  a\nb\n", "```txt\n  a\nb\n```".to_owned()),
            ("a\n```\nb", "````txt\na\n```\nb\n````".to_owned()),
            (
                long.as_str(),
                format!("(the last {SHOWN} characters)\n```txt\n{}é\n```", "x".repeat(SHOWN - 1)),
            ),
        ];
        for (printed, expect) in rows {
            assert_eq!(block(printed), expect);
        }
    }

    #[test]
    fn each_end_is_told() {
        let job = |end| PersonsCommand {
            id: "warm-sea".into(),
            command: "ls".into(),
            end,
            runtime: Duration::from_millis(3_900),
            printed: "a".into(),
        };
        let rows = [
            (None, "⚙️ bash still running (session warm-sea, 3s).\n```txt\na\n```"),
            (Some(PersonsEnd::Exited(2)), "⚙️ bash finished (session warm-sea).\nExit: 2\n```txt\na\n```"),
            (
                Some(PersonsEnd::Killed("SIGKILL".into())),
                "⚙️ bash finished (session warm-sea).\nExit: SIGKILL\n```txt\na\n```",
            ),
        ];
        for (end, expect) in rows {
            assert_eq!(polled(&job(end)), expect);
        }
    }
}
