//! `openclaw gateway [run]`: resolves the flags and hands over to the daemon (spec `cli.md` §9.5).

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use openclaw_config::gateway_options::{GatewayFlags, StartRefusal};
use openclaw_config::settings::{AuthKind, BindMode, GatewayMode, TailscaleMode};
use openclaw_gateway::signals::{self, Signals};
use openclaw_gateway::{ExitStatus, LogTarget, RunOptions, StartError};
use secrecy::SecretString;

use crate::args::RunArgs;
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult};
use crate::{client, listeners, output, runtime};

/// Threads for files and other work that blocks; what more there is waits for one.
const BLOCKING_THREADS: usize = 64;

/// The flags of `run`, those given before the word `run` filling its gaps.
pub(super) fn merge(own: RunArgs, parent: RunArgs) -> RunArgs {
    RunArgs {
        port: own.port.or(parent.port),
        bind: own.bind.or(parent.bind),
        token: own.token.or(parent.token),
        auth: own.auth.or(parent.auth),
        password: own.password.or(parent.password),
        tailscale: own.tailscale.or(parent.tailscale),
        tailscale_reset_on_exit: own.tailscale_reset_on_exit || parent.tailscale_reset_on_exit,
        allow_unconfigured: own.allow_unconfigured || parent.allow_unconfigured,
        dev: own.dev || parent.dev,
        reset: own.reset || parent.reset,
        force: own.force || parent.force,
        verbose: own.verbose || parent.verbose,
        ws_log: if own.ws_log == "auto" { parent.ws_log } else { own.ws_log },
        compact: own.compact || parent.compact,
        claude_cli_logs: own.claude_cli_logs || parent.claude_cli_logs,
        raw_stream: own.raw_stream || parent.raw_stream,
        raw_stream_path: own.raw_stream_path.or(parent.raw_stream_path),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the arguments end here")]
pub(super) fn run(args: RunArgs, context: &CliContext) -> CommandResult {
    // Before a thread is started: each would have a heap of its own.
    openclaw_heap::share_one();
    let flags = flags(&args)?;
    let cannot_start = |error| CommandFailure::new("runtime", format!("could not start: {error}"));
    // Signals are heard before there are threads that they could end.
    let first = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
    let listen = || first.block_on(async { Signals::listen() }).map_err(cannot_start);
    let (heard, mut heard_late) = (listen()?, listen()?);
    signals::let_through();
    if args.claude_cli_logs {
        output::error_line(
            "gateway --claude-cli-logs: not implemented yet in this version; starting without it",
        );
    }
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(cannot_start)?;
    let options = RunOptions {
        flags,
        force: args.force,
        signals: Some(heard),
        log: LogTarget::Process { verbose: args.verbose, no_colour: context.style == output::Style::PLAIN },
        ..run_options(&args, context)
    };
    openclaw_tls::install_provider();
    match runtime::finish(threads, openclaw_gateway::run(options)) {
        Ok(ExitStatus::Stopped | ExitStatus::OutOfTime) => Ok(0),
        Ok(ExitStatus::Restart) => {
            signals::hold();
            let is_stopped = first.block_on(heard_late.was_told_to_stop());
            if is_stopped { Ok(0) } else { Err(start_again()) }
        }
        Err(StartError::InvalidConfig(_)) => Err(context.invalid_config()),
        Err(StartError::Refused(refusal @ StartRefusal::NotConfigured { .. })) => {
            Err(not_configured(context, &refusal))
        }
        Err(error @ StartError::PortTaken { port, .. }) => {
            let failure = CommandFailure::new("gateway-start", error.to_string());
            let Some(free) = listeners::free_port(port) else { return Err(failure) };
            let choose = match args.port {
                Some(_) => format!("pass --port {free}"),
                None => client::choose_port(context, &free.to_string()),
            };
            Err(failure.hint(format!("Port {free} is free: {choose}")))
        }
        Err(error) => Err(CommandFailure::new("gateway-start", error.to_string())),
    }
}

/// The environment of the gateway and its config; the flags on the raw stream stand for variables.
fn run_options(args: &RunArgs, context: &CliContext) -> RunOptions {
    let mut environment = context.process().clone();
    let path = args.raw_stream_path.as_deref().map(|path| (RAW_STREAM_PATH, path));
    let variables: Vec<(&str, &str)> =
        args.raw_stream.then_some((RAW_STREAM, "1")).into_iter().chain(path).collect();
    if variables.is_empty() {
        return RunOptions::new(environment, Arc::clone(&context.loaded));
    }
    for (name, value) in variables {
        environment.set(name, value);
    }
    let loaded = Arc::new(openclaw_config::load(&environment));
    RunOptions::new(environment, loaded)
}

/// Variables by which what models say is logged, piece by piece.
const RAW_STREAM: &str = "OPENCLAW_RAW_STREAM";
const RAW_STREAM_PATH: &str = "OPENCLAW_RAW_STREAM_PATH";

/// Runs this program once more in the same process, with the same arguments and the signals that are held back; after an update that is the
/// new one. Comes back only when that fails.
fn start_again() -> CommandFailure {
    let own = std::env::current_exe().map(|path| {
        // Linux marks the path of a program that was replaced.
        let replaced = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
        replaced.unwrap_or(path)
    });
    let error = match own {
        Ok(program) => std::process::Command::new(program).args(std::env::args_os().skip(1)).exec(),
        Err(error) => error,
    };
    CommandFailure::new("gateway-restart", format!("could not start again: {error}"))
        .hint("Start it: openclaw gateway")
}

/// `gateway.mode` is not `local`. Plain `openclaw setup` keeps a mode that is set.
fn not_configured(context: &CliContext, refusal: &StartRefusal) -> CommandFailure {
    let text = refusal.to_string();
    let is_remote = context.config_or_default().gateway.mode == Some(GatewayMode::Remote);
    let what = text.lines().next().filter(|_| is_remote).unwrap_or(&text);
    let failure = CommandFailure::new("gateway-start", what);
    if !is_remote {
        return failure;
    }
    failure.hint(format!(
        "The config is for a gateway elsewhere; `{}` asks it. To run one here: {}",
        context.hint_command("openclaw gateway probe"),
        context.hint_command("openclaw setup --mode local")
    ))
}

/// Threads that run tasks. A gateway waits far more than it computes, what takes long or touches the disk runs on threads of its
/// own, and of two threads each wakes the other for every message that is handed on.
const WORKERS: usize = 1;

/// Checks the flags in the order of the reference.
fn flags(args: &RunArgs) -> Result<GatewayFlags, CommandFailure> {
    if args.reset && !args.dev {
        return Err(CommandFailure::usage("Use --reset with --dev."));
    }
    if !matches!(args.ws_log.as_str(), "auto" | "full" | "compact") {
        return Err(CommandFailure::usage("Invalid --ws-log (use \"auto\", \"full\", \"compact\")"));
    }
    if args.dev {
        return Err(CommandFailure::usage("gateway --dev: not implemented yet in this version")
            .hint("Use a profile of its own instead: openclaw --dev setup, then openclaw --dev gateway."));
    }
    // 0 lets the system choose; tests use it.
    let port = args.port.as_deref().map(|text| {
        text.trim().parse::<u16>().map_err(|_| {
            CommandFailure::usage("Invalid port")
                .hint("Use a number from 1 to 65535, or 0 for any free port.")
        })
    });
    let auth = args.auth.as_deref().map(|text| match text {
        "token" => Ok(AuthKind::Token),
        "password" => Ok(AuthKind::Password),
        _ => Err(CommandFailure::usage("Invalid --auth (use \"token\" or \"password\")")),
    });
    let (port, auth) = (port.transpose()?, auth.transpose()?);
    let tailscale = match args.tailscale.as_deref() {
        None => None,
        Some("off") => Some(TailscaleMode::Off),
        Some("serve" | "funnel") => {
            return Err(CommandFailure::usage("gateway --tailscale: not implemented yet in this version")
                .hint("Run `tailscale serve` yourself, with gateway.bind=loopback."));
        }
        Some(_) => {
            return Err(CommandFailure::usage("Invalid --tailscale (use \"off\", \"serve\", or \"funnel\")"));
        }
    };
    let bind = args.bind.as_deref().map(|text| {
        BindMode::parse(text).ok_or_else(|| {
            CommandFailure::usage(
                "Invalid --bind (use \"loopback\", \"lan\", \"tailnet\", \"auto\", or \"custom\")",
            )
        })
    });
    let secret = |text: &Option<String>| text.clone().map(SecretString::from);
    Ok(GatewayFlags {
        port,
        bind: bind.transpose()?,
        auth,
        token: secret(&args.token),
        password: secret(&args.password),
        tailscale,
        allow_unconfigured: args.allow_unconfigured,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> RunArgs {
        RunArgs { ws_log: "auto".to_owned(), ..RunArgs::default() }
    }

    #[test]
    fn wrong_flags_are_refused_in_the_words_of_the_reference() {
        let text = |value: &str| Some(value.to_owned());
        let rows = [
            (RunArgs { reset: true, ..args() }, "Use --reset with --dev."),
            (
                RunArgs { ws_log: "x".to_owned(), ..args() },
                "Invalid --ws-log (use \"auto\", \"full\", \"compact\")",
            ),
            (RunArgs { port: text("abc"), ..args() }, "Invalid port"),
            (RunArgs { port: text("70000"), ..args() }, "Invalid port"),
            (RunArgs { port: text("-1"), ..args() }, "Invalid port"),
            (RunArgs { auth: text("none"), ..args() }, "Invalid --auth (use \"token\" or \"password\")"),
            (
                RunArgs { tailscale: text("on"), ..args() },
                "Invalid --tailscale (use \"off\", \"serve\", or \"funnel\")",
            ),
            (
                RunArgs { bind: text("public"), ..args() },
                "Invalid --bind (use \"loopback\", \"lan\", \"tailnet\", \"auto\", or \"custom\")",
            ),
        ];
        for (args, expect) in rows {
            assert_eq!(flags(&args).unwrap_err().message, expect);
        }
    }

    #[test]
    fn flags_before_the_word_run_count_too() {
        let parent = RunArgs { port: Some("1".to_owned()), verbose: true, ..args() };
        let own = RunArgs { port: Some("2".to_owned()), force: true, ..args() };
        let merged = merge(own, parent);
        assert_eq!((merged.port.as_deref(), merged.verbose, merged.force), (Some("2"), true, true));
        assert_eq!(flags(&merged).unwrap().port, Some(2));
    }
}
