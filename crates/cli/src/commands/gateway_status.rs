//! `openclaw gateway status` (spec `cli.md` §3.4).

use openclaw_config::Issue;
use openclaw_config::gateway_options::gateway_port;
use openclaw_config::settings::BindMode;
use openclaw_gateway::{RunningGateway, running_gateway};
use serde_json::{Value, json};

use super::dashboard;
use super::gateway_probe::{self, ProbeDepth, Probed};
use super::logs::log_file;
use crate::args::TargetArgs;
use crate::client::{self, DEFAULT_TIMEOUT, GatewayTarget, TargetFlags};
use crate::context::CliContext;
use crate::failure::{CommandFailure, CommandResult, ERROR};
use crate::listeners::{self, listeners};
use crate::output;
use crate::service::{Service, process};

/// Tells to connect, or not to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeChoice {
    /// Connect and ask.
    Connect,
    /// `--no-probe`.
    Skip,
}

pub(super) fn run(
    context: &CliContext,
    args: &TargetArgs,
    wanted: ProbeChoice,
    strict: bool,
    json: bool,
) -> CommandResult {
    let config = context.config_or_default();
    let flags = TargetFlags::from(args);
    let target = GatewayTarget::of(&config, context.env(), &flags)?;
    let timeout = client::timeout_of(args.timeout.as_deref(), DEFAULT_TIMEOUT)?;
    let probed = match wanted {
        ProbeChoice::Connect => Some(gateway_probe::ask(context, &target, timeout, ProbeDepth::Nothing)?),
        ProbeChoice::Skip => None,
    };
    let port = gateway_port(&config, context.env())
        .map_err(|error| CommandFailure::new("port", error.to_string()))?;
    let bind = config.gateway.bind.unwrap_or_default();
    let status = document(context, &target, bind, port, probed.as_ref());
    if json {
        output::json(&status);
    } else {
        let dashboard = dashboard::plain_url(context, &config, &target);
        let next = probed.as_ref().and_then(Probed::remedy);
        text(context, &status, &target, &dashboard, next).iter().for_each(|line| output::row(line));
    }
    let is_down = probed.is_some_and(|probed| !probed.ok);
    Ok(if strict && is_down { ERROR } else { 0 })
}

fn document(
    context: &CliContext,
    target: &GatewayTarget,
    bind: BindMode,
    port: u16,
    probed: Option<&Probed>,
) -> Value {
    let service = Service::gateway(context);
    let snapshot = &context.loaded.snapshot;
    let path = snapshot.path.display().to_string();
    let config = json!({ "path": path, "exists": snapshot.exists, "valid": snapshot.valid });
    let mut cli = config.clone();
    if let (false, Some(cli)) = (snapshot.issues.is_empty(), cli.as_object_mut()) {
        let issues: Vec<_> = snapshot.issues.iter().map(Issue::to_wire).collect();
        cli.insert("issues".to_owned(), json!(issues));
    }
    let host = match bind {
        BindMode::Lan => "0.0.0.0",
        BindMode::Auto | BindMode::Loopback | BindMode::Custom | BindMode::Tailnet => "127.0.0.1",
    };
    let listeners = listeners(port);
    let is_busy = !listeners.is_empty() || !listeners::is_free(port);
    let free = || listeners::free_port(port).map_or_else(|| "<port>".to_owned(), |port| port.to_string());
    let hints: Vec<String> = if is_busy {
        let choose = client::choose_port(context, &free());
        vec![format!("The port is in use. If it is not the gateway, use another one: {choose}")]
    } else {
        Vec::new()
    };
    let mut out = json!({
        "service": {
            "label": service.label,
            "loaded": service.is_enabled(),
            "loadedText": "enabled",
            "notLoadedText": if service.is_installed() { "installed, not enabled" } else { "disabled" },
            "command": null,
            "runtime": { "status": "unknown", "detail": "managing services is not implemented yet" },
            "configAudit": { "ok": true, "issues": [] },
        },
        "config": { "cli": cli, "daemon": config },
        "gateway": {
            "bindMode": bind.as_str(),
            "bindHost": host,
            "port": port,
            "portSource": "env/config",
            "probeUrl": target.url,
            "probeNote": probe_note(target, bind),
        },
        "port": {
            "port": port,
            "status": if is_busy { "busy" } else { "free" },
            "listeners": listeners,
            "hints": hints,
        },
    });
    if let Some(out) = out.as_object_mut() {
        if let Some(probed) = probed {
            let mut rpc = json!({ "ok": probed.ok, "url": target.url });
            if let (Some(error), Some(rpc)) = (&probed.error, rpc.as_object_mut()) {
                rpc.insert("error".to_owned(), json!(error));
            }
            out.insert("rpc".to_owned(), rpc);
        }
        out.insert("extraServices".to_owned(), json!([]));
    }
    out
}

fn probe_note(target: &GatewayTarget, bind: BindMode) -> &'static str {
    if target.bind.is_none() {
        return "A gateway elsewhere; the service, the port and its listeners are those of this machine.";
    }
    match bind {
        BindMode::Loopback => "Loopback-only gateway; only local clients can connect.",
        BindMode::Lan => "Reachable from the local network.",
        BindMode::Tailnet => "Reachable from the tailnet.",
        BindMode::Auto | BindMode::Custom => "Reachability depends on the address.",
    }
}

fn text(
    context: &CliContext,
    status: &Value,
    target: &GatewayTarget,
    dashboard: &str,
    next: Option<&str>,
) -> Vec<String> {
    let style = context.style;
    let text = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is = |pointer: &str| status.pointer(pointer) == Some(&Value::Bool(true));
    let loaded =
        if is("/service/loaded") { text("/service/loadedText") } else { text("/service/notLoadedText") };
    let port = status.pointer("/gateway/port").and_then(Value::as_u64).unwrap_or_default();
    let url = text("/gateway/probeUrl");
    let path = context.short(&context.loaded.snapshot.path);
    let mut lines = vec![
        format!("Service: {} ({loaded})", text("/service/label")),
        file_logs(context),
        String::new(),
        format!("Config (cli): {path}"),
    ];
    lines.extend(
        context.loaded.snapshot.issues.iter().map(|issue| style.error(&format!("  {}", issue.line()))),
    );
    lines.extend([
        format!("Config (service): {}", context.short(text("/config/daemon/path").as_ref())),
        String::new(),
        match target.bind {
            None => format!("Gateway: {url} ({})", target.source),
            Some(_) => format!(
                "Gateway: bind={} ({}), port={port} (env/config)",
                text("/gateway/bindMode"),
                text("/gateway/bindHost")
            ),
        },
        format!("Probe target: {url}"),
        format!("Dashboard: {dashboard}"),
        format!("Probe note: {}", text("/gateway/probeNote")),
        String::new(),
        format!("Runtime: {} ({})", text("/service/runtime/status"), text("/service/runtime/detail")),
    ]);
    match status.get("rpc") {
        None => {}
        Some(_) if is("/rpc/ok") => lines.push(format!("RPC probe: {}", style.success("ok"))),
        Some(_) => {
            lines.push(format!("RPC probe: {}", style.error("failed")));
            lines.push(format!("  {}", text("/rpc/error")));
            lines.extend(next.map(|next| format!("Next: {next}")));
        }
    }
    lines.push(String::new());
    lines.extend(listening(status, port));
    lines
}

/// Path of the log, for people. A gateway of another program, which does not say its port, keeps
/// its own elsewhere.
fn file_logs(context: &CliContext) -> String {
    let ours = context.short(&log_file(context));
    match running_gateway(&context.loaded) {
        Some(running @ RunningGateway { port: None, .. }) => {
            format!("File logs: {ours} is not that of the gateway that runs{}", process(running))
        }
        Some(_) | None => format!("File logs: {ours}"),
    }
}

/// Processes that hold the port, one line for each address.
fn listening(status: &Value, port: u64) -> Vec<String> {
    let found = status.pointer("/port/listeners").and_then(Value::as_array).into_iter().flatten();
    let lines: Vec<String> = found
        .map(|listener| {
            let part = |name: &str| listener.get(name).and_then(Value::as_str).unwrap_or("unknown");
            let address = part("address");
            match listener.get("pid").and_then(Value::as_u64) {
                Some(pid) => {
                    format!("Listening: {address} (pid {pid}, {}, {})", part("command"), part("user"))
                }
                None => format!("Listening: {address}"),
            }
        })
        .collect();
    match (lines.is_empty(), status.pointer("/port/status").and_then(Value::as_str)) {
        (false, _) => lines,
        (true, Some("busy")) => vec![format!("Listening: port {port} is in use; by whom is not known")],
        (true, _) => vec![format!("Listening: nobody on port {port}")],
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn keys_are_those_of_the_reference() {
        let runs: Value =
            serde_json::from_str(include_str!("../../tests/golden/cli-gateway-status.json")).unwrap();
        let golden = &runs["stdoutJson"];
        let home = tempfile::tempdir().unwrap();
        let env = Environment::new([("HOME", home.path().to_str().unwrap())], home.path());
        let context = CliContext::new(&env, true);
        let target =
            GatewayTarget::of(&context.config_or_default(), context.env(), &TargetFlags::default()).unwrap();
        let probed = Probed { ok: true, ..Probed::default() };
        let ours = document(&context, &target, BindMode::Loopback, 18789, Some(&probed));
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&ours), keys(golden));
        for part in ["service", "config", "gateway", "port", "rpc"] {
            assert_eq!(keys(&ours[part]), keys(&golden[part]), "{part}");
        }
    }
}
