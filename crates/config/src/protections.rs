//! Protections that a config asks for and this version can't give: one list, made from the config alone.
//!
//! Features that would rely on a missing protection are refused rather than done without it. The
//! start of a gateway, every run, `exec` and clients of a remote gateway ask this list; the log,
//! `status` and `health` show it. Keys that guard what does not exist yet are named in
//! [`GUARDS_NOTHING_YET`]: every key that tells of a protection is acted on, refused or named
//! there, and a test looks through the schema for one that is none of these.

use std::fmt;

use serde_json::Value;

use crate::Config;
use crate::settings::{Exec, ExecGate, GatewayMode, SandboxMode};

/// A protection that is asked for and missing. Its text says what is refused for it and what to do.
#[derive(Debug, Clone)]
pub struct Unmet {
    /// Path in the config.
    pub key: String,
    /// Value of the key, for people.
    pub value: String,
    /// Operation that is refused.
    pub refuses: Refuses,
    rule: &'static MissingProtection,
}

/// Operation that is refused because a protection is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refuses {
    /// The start of the gateway.
    Start,
    /// Runs in groups and rooms of this chat platform, before they begin.
    GroupRuns(String),
    /// Every call of `exec`; the run itself goes on.
    Exec,
    /// Connections from here to the gateway of `gateway.remote`.
    Connections,
}

impl Unmet {
    /// True if it keeps a run from beginning that belongs to groups of these platforms, by its own
    /// session or by the one that spawned it.
    pub fn refuses_run(&self, group_channels: &[&str]) -> bool {
        matches!(&self.refuses, Refuses::GroupRuns(channel) if group_channels.contains(&channel.as_str()))
    }

    /// Explanation: the missing protection, and what is refused for it.
    pub fn detail(&self) -> String {
        format!("{} is {}, but {}: {}.", self.key, self.value, self.rule.lack, self.rule.effect)
    }

    /// Remedy, for people.
    pub fn remedy(&self) -> &'static str {
        self.rule.remedy
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.detail(), self.remedy())
    }
}

/// All protections that are asked for and missing.
pub fn unmet_protections(config: &Config) -> Vec<Unmet> {
    let of_rule = |rule: &'static MissingProtection| {
        let found = (rule.find)(config);
        found.into_iter().map(move |ProtectionMatch { key, value, refuses }| Unmet {
            key,
            value,
            refuses,
            rule,
        })
    };
    RULES.iter().flat_map(of_rule).collect()
}

/// A kind of protection this version does not have.
#[derive(Debug)]
pub struct MissingProtection {
    /// The keys that ask for it, for people.
    pub keys: &'static str,
    /// Missing protection, as a phrase.
    pub lack: &'static str,
    /// Effect: what is refused then.
    pub effect: &'static str,
    /// Remedy, as a sentence.
    pub remedy: &'static str,
    find: Find,
}

type Find = fn(&Config) -> Vec<ProtectionMatch>;

/// Key and value to which a rule applies.
struct ProtectionMatch {
    key: String,
    value: String,
    refuses: Refuses,
}

/// The protections that are refused rather than ignored. A row goes when the protection comes.
pub const RULES: &[MissingProtection] = &[
    MissingProtection {
        keys: "gateway.tls.enabled",
        lack: "this version does not serve TLS yet",
        effect: "the gateway does not start",
        remedy: "Set it to false and put a TLS proxy or a tunnel in front.",
        find: tls,
    },
    MissingProtection {
        keys: "tools and toolsBySender below channels, but for those of a group",
        lack: "tool policies of servers, rooms and topics are not enforced yet",
        effect: "runs in sessions of that platform's groups do not begin",
        remedy: "Remove it, or use tools.deny, which holds everywhere.",
        find: group_tools,
    },
    MissingProtection {
        keys: "host of tools.exec, agents.list.*.tools.exec",
        lack: "commands run on this host, or in a sandbox where sandbox.mode asks for one, and on no node",
        effect: "exec runs no command there",
        remedy: "Set host to \"gateway\", or agents.defaults.sandbox.mode to \"all\" or \"non-main\".",
        find: exec,
    },
    MissingProtection {
        keys: "gateway.remote.tlsFingerprint",
        lack: "this version can't compare certificates with a fingerprint yet",
        effect: "clients here do not connect to that gateway",
        remedy: "Remove it if the certificate is signed by an authority this host trusts.",
        find: remote_pin,
    },
];

/// Keys that guard what this version does not have, and why nothing can go wrong meanwhile. A test sees to it that nothing below
/// them is acted on, so that no row outlives what it says.
pub const GUARDS_NOTHING_YET: &[(&[&str], &str)] = &[
    (
        &[
            "channels.bluebubbles",
            "channels.discord",
            "channels.feishu",
            "channels.googlechat",
            "channels.imessage",
            "channels.line",
            "channels.mattermost",
            "channels.msteams",
            "channels.nextcloud-talk",
            "channels.signal",
            "channels.slack",
            "channels.whatsapp",
            "channels.zalo",
            "channels.zalouser",
        ],
        "this version does not have these platforms: nobody's message comes in there",
    ),
    (&["agents.defaults.sandbox.browser", "agents.list.*.sandbox.browser"], "a sandbox has no browser"),
    (&["hooks.token", "hooks.mappings", "hooks.gmail"], "no webhook is served"),
    (
        &[
            "plugins.entries.google-antigravity-auth",
            "plugins.entries.google-gemini-cli-auth",
            "plugins.entries.llm-task",
            "plugins.entries.minimax-portal-auth",
            "plugins.entries.qwen-portal-auth",
            "plugins.entries.signal",
            "plugins.entries.voice-call",
        ],
        "no plugin is loaded",
    ),
    (&["auth.profiles.*.email"], "it is a name to show, and nobody is let in by it"),
    (&["gateway.tls"], "TLS is not served: where it is asked for, the gateway does not start"),
    (&["gateway.tailscale"], "nothing is published; allowTailscale lets nobody in"),
    (&["gateway.http"], "these HTTP APIs are not served"),
    (&["gateway.nodes", "nodeHost"], "no command is sent to a node"),
    (
        &["gateway.remote.sshTarget", "gateway.remote.sshIdentity"],
        "clients connect to gateway.remote.url and to nothing else",
    ),
    (&["browser"], "there is none"),
    (&["diagnostics.cacheTrace.includePrompt"], "prompts are not written to a trace apart from the messages"),
    (&["messages.tts"], "speech does not exist"),
    (&["tools.links", "tools.media"], "these tools do not exist"),
];

fn tls(config: &Config) -> Vec<ProtectionMatch> {
    let asked = config.gateway.tls.enabled;
    let found = || ProtectionMatch {
        key: "gateway.tls.enabled".to_owned(),
        value: asked.to_string(),
        refuses: Refuses::Start,
    };
    asked.then(found).into_iter().collect()
}

/// Finds each platform that has such a policy anywhere.
fn group_tools(config: &Config) -> Vec<ProtectionMatch> {
    let channels = config.document().get("channels").and_then(Value::as_object);
    let found = |(channel, section): (&String, &Value)| {
        let key = tool_policy_below(section, &format!("channels.{channel}"))?;
        let refuses = Refuses::GroupRuns(channel.clone());
        Some(ProtectionMatch { key, value: "set".to_owned(), refuses })
    };
    channels.into_iter().flatten().filter_map(found).collect()
}

fn tool_policy_below(section: &Value, path: &str) -> Option<String> {
    section.as_object()?.iter().find_map(|(key, value)| {
        let path = format!("{path}.{key}");
        let is_policy = matches!(key.as_str(), "tools" | "toolsBySender");
        let has_rules = value.as_object().is_some_and(|rules| !rules.is_empty());
        if is_policy && is_of_group(&path) {
            return None;
        }
        if is_policy && has_rules { Some(path) } else { tool_policy_below(value, &path) }
    })
}

/// `channels.<id>[.accounts.<id>].groups.<id>.tools`, which runs of that group are held to.
fn is_of_group(path: &str) -> bool {
    let mut names = path.split('.').skip(2);
    match names.next() {
        Some("groups") => names.count() == 2,
        Some("accounts") => names.nth(1) == Some("groups") && names.count() == 2,
        Some(_) | None => false,
    }
}

/// The shared settings, then those of agents that change them.
fn exec(config: &Config) -> Vec<ProtectionMatch> {
    let shared = &config.tools.exec;
    let own = config.agents.list.iter().enumerate().filter_map(|(at, entry)| {
        let own = &entry.tools.exec;
        let says_something = own.host.is_some() || own.security.is_some() || own.ask.is_some();
        says_something.then(|| (format!("agents.list.{at}.tools.exec"), own.over(shared)))
    });
    let has_sandbox = config.agents.defaults.sandbox.mode.is_some_and(|mode| mode != SandboxMode::Off)
        || config
            .agents
            .list
            .iter()
            .any(|entry| entry.sandbox.mode.is_some_and(|mode| mode != SandboxMode::Off));
    let found = |(key, exec): (String, Exec)| match exec.gate() {
        // A denial lacks no protection.
        ExecGate::Open | ExecGate::Denied | ExecGate::NeedsApproval => None,
        // Sessions outside a sandbox are refused.
        ExecGate::NeedsSandbox if has_sandbox => None,
        ExecGate::NeedsSandbox | ExecGate::NeedsNode => {
            Some(ProtectionMatch { key, value: exec.rules(), refuses: Refuses::Exec })
        }
    };
    std::iter::once(("tools.exec".to_owned(), shared.clone())).chain(own).filter_map(found).collect()
}

fn remote_pin(config: &Config) -> Vec<ProtectionMatch> {
    let gateway = &config.gateway;
    let pin = gateway.remote.tls_fingerprint.as_deref().map(str::trim).filter(|pin| !pin.is_empty());
    let pin = pin.filter(|_| gateway.mode == Some(GatewayMode::Remote));
    let found = |_| ProtectionMatch {
        key: "gateway.remote.tlsFingerprint".to_owned(),
        value: "set".to_owned(),
        refuses: Refuses::Connections,
    };
    pin.map(found).into_iter().collect()
}

#[cfg(test)]
mod tests;
