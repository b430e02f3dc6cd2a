//! Keys that the product acts on. All others of OpenClaw are accepted and reported once at start,
//! never silently ignored.

use serde_json::Value;

use crate::Loaded;
use crate::check::schema::join;
use crate::check::structure;
use crate::legacy;

/// Prefixes of the paths that the product acts on; `*` is any key or index. A line is added when a feature is;
/// `cargo xtask config-reads` compares them with what is read.
const SUPPORTED: &[&str] = &[
    "$schema",
    "meta",
    "wizard",
    "env.vars",
    "env.shellEnv",
    "env.*",
    "logging",
    "diagnostics.cacheTrace.enabled",
    "diagnostics.cacheTrace.filePath",
    "diagnostics.cacheTrace.includeMessages",
    "diagnostics.cacheTrace.includeSystem",
    "auth.profiles.*.provider",
    "auth.profiles.*.mode",
    "auth.order",
    "auth.cooldowns",
    "models.mode",
    "models.providers",
    "models.bedrockDiscovery",
    "agents.defaults.elevatedDefault",
    "agents.defaults.imageModel",
    "agents.defaults.model",
    "agents.defaults.models",
    "agents.defaults.workspace",
    "agents.defaults.repoRoot",
    "agents.defaults.skipBootstrap",
    "agents.defaults.bootstrapMaxChars",
    "agents.defaults.userTimezone",
    "agents.defaults.envelopeTimezone",
    "agents.defaults.envelopeTimestamp",
    "agents.defaults.envelopeElapsed",
    "agents.defaults.typingIntervalSeconds",
    "agents.defaults.typingMode",
    "agents.defaults.blockStreamingBreak",
    "agents.defaults.blockStreamingChunk",
    "agents.defaults.blockStreamingCoalesce",
    "agents.defaults.blockStreamingDefault",
    "agents.defaults.humanDelay",
    "agents.defaults.contextTokens",
    "agents.defaults.timeFormat",
    "agents.defaults.timeoutSeconds",
    "agents.defaults.mediaMaxMb",
    "agents.defaults.maxConcurrent",
    "agents.defaults.maxToolRounds",
    "agents.defaults.contextPruning",
    "agents.defaults.compaction",
    "agents.defaults.thinkingDefault",
    "agents.defaults.heartbeat",
    "agents.defaults.verboseDefault",
    "agents.defaults.subagents",
    "agents.defaults.sandbox.mode",
    "agents.defaults.sandbox.backend",
    "agents.defaults.sandbox.scope",
    "agents.defaults.sandbox.perSession",
    "agents.defaults.sandbox.workspaceAccess",
    "agents.defaults.sandbox.workspaceRoot",
    "agents.defaults.sandbox.sessionToolsVisibility",
    "agents.defaults.sandbox.docker",
    "agents.defaults.sandbox.prune",
    "agents.list.*.id",
    "agents.list.*.default",
    "agents.list.*.name",
    "agents.list.*.workspace",
    "agents.list.*.agentDir",
    "agents.list.*.model",
    "agents.list.*.skills",
    "agents.list.*.identity",
    "agents.list.*.humanDelay",
    "agents.list.*.groupChat.mentionPatterns",
    "agents.list.*.heartbeat",
    "agents.list.*.sandbox.mode",
    "agents.list.*.sandbox.backend",
    "agents.list.*.sandbox.scope",
    "agents.list.*.sandbox.perSession",
    "agents.list.*.sandbox.workspaceAccess",
    "agents.list.*.sandbox.workspaceRoot",
    "agents.list.*.sandbox.sessionToolsVisibility",
    "agents.list.*.sandbox.docker",
    "agents.list.*.sandbox.prune",
    "agents.list.*.subagents",
    "agents.list.*.tools.allow",
    "agents.list.*.tools.alsoAllow",
    "agents.list.*.tools.deny",
    "agents.list.*.tools.profile",
    "agents.list.*.tools.byProvider",
    "agents.list.*.tools.sandbox.tools",
    "agents.list.*.tools.exec.host",
    "agents.list.*.tools.exec.security",
    "agents.list.*.tools.exec.ask",
    "agents.list.*.tools.exec.timeoutSec",
    "agents.list.*.tools.exec.pathPrepend",
    "agents.list.*.tools.exec.passEnv",
    "agents.list.*.tools.elevated",
    "agents.list.*.tools.exec.backgroundMs",
    "agents.list.*.tools.exec.safeBins",
    "agents.list.*.tools.exec.approvalRunningNoticeMs",
    "agents.list.*.tools.exec.cleanupMs",
    "agents.list.*.tools.exec.notifyOnExit",
    "agents.list.*.tools.exec.applyPatch",
    "skills.allowBundled",
    "skills.load",
    "skills.install",
    "skills.entries.*.enabled",
    "skills.entries.*.apiKey",
    "skills.entries.*.env",
    "tools.agentToAgent",
    "tools.allow",
    "tools.alsoAllow",
    "tools.deny",
    "tools.profile",
    "tools.byProvider",
    "tools.subagents.tools",
    "tools.sandbox.tools",
    "tools.exec.host",
    "tools.exec.security",
    "tools.exec.ask",
    "tools.exec.timeoutSec",
    "tools.exec.pathPrepend",
    "tools.exec.passEnv",
    "tools.elevated",
    "tools.exec.approvalRunningNoticeMs",
    "tools.exec.backgroundMs",
    "tools.exec.safeBins",
    "tools.exec.cleanupMs",
    "tools.exec.notifyOnExit",
    "tools.exec.applyPatch",
    "tools.loopGuard",
    "tools.message",
    "approvals.exec",
    "tools.web",
    "bindings",
    "commands.text",
    "commands.bash",
    "commands.bashForegroundMs",
    "commands.config",
    "commands.debug",
    "commands.restart",
    "commands.native",
    "commands.nativeSkills",
    "commands.useAccessGroups",
    "commands.ownerAllowFrom",
    "messages.groupChat",
    "messages.inbound",
    "messages.ackReaction",
    "messages.ackReactionScope",
    "messages.removeAckAfterReply",
    "messages.queue",
    "messages.responsePrefix",
    "messages.mediaAllowHosts",
    "session.typingIntervalSeconds",
    "session.typingMode",
    "plugins.enabled",
    "plugins.allow",
    "plugins.deny",
    "plugins.entries.telegram.enabled",
    "channels.telegram.enabled",
    "channels.telegram.name",
    "channels.telegram.botToken",
    "channels.telegram.tokenFile",
    "channels.telegram.customCommands",
    "channels.telegram.commands",
    "channels.telegram.configWrites",
    "channels.telegram.dmPolicy",
    "channels.telegram.allowFrom",
    "channels.telegram.groupAllowFrom",
    "channels.telegram.groupPolicy",
    "channels.telegram.groups.*.enabled",
    "channels.telegram.groups.*.requireMention",
    "channels.telegram.groups.*.groupPolicy",
    "channels.telegram.groups.*.allowFrom",
    "channels.telegram.groups.*.skills",
    "channels.telegram.groups.*.systemPrompt",
    "channels.telegram.groups.*.errorPolicy",
    "channels.telegram.groups.*.tools",
    "channels.telegram.groups.*.toolsBySender",
    "channels.telegram.groups.*.topics.*.enabled",
    "channels.telegram.groups.*.topics.*.requireMention",
    "channels.telegram.groups.*.topics.*.groupPolicy",
    "channels.telegram.groups.*.topics.*.allowFrom",
    "channels.telegram.groups.*.topics.*.skills",
    "channels.telegram.groups.*.topics.*.systemPrompt",
    "channels.telegram.groups.*.topics.*.errorPolicy",
    "channels.telegram.errorPolicy",
    "channels.telegram.silentErrorReplies",
    "channels.telegram.historyLimit",
    "channels.telegram.replyToMode",
    "channels.telegram.textChunkLimit",
    "channels.telegram.chunkMode",
    "channels.telegram.blockStreaming",
    "channels.telegram.blockStreamingCoalesce",
    "channels.telegram.streamMode",
    "channels.telegram.draftChunk",
    "channels.telegram.mediaMaxMb",
    "channels.telegram.timeoutSeconds",
    "channels.telegram.retry",
    "channels.telegram.network",
    "channels.telegram.proxy",
    "channels.telegram.webhookUrl",
    "channels.telegram.webhookSecret",
    "channels.telegram.webhookPath",
    "channels.telegram.webhookHost",
    "channels.telegram.webhookPort",
    "channels.telegram.apiRoot",
    "channels.telegram.actions",
    "channels.telegram.reactionNotifications",
    "channels.telegram.reactionLevel",
    "channels.telegram.linkPreview",
    "channels.telegram.capabilities",
    "channels.telegram.markdown",
    "channels.telegram.responsePrefix",
    "channels.telegram.accounts.*.enabled",
    "channels.telegram.accounts.*.name",
    "channels.telegram.accounts.*.botToken",
    "channels.telegram.accounts.*.tokenFile",
    "channels.telegram.accounts.*.customCommands",
    "channels.telegram.accounts.*.commands",
    "channels.telegram.accounts.*.configWrites",
    "channels.telegram.accounts.*.dmPolicy",
    "channels.telegram.accounts.*.allowFrom",
    "channels.telegram.accounts.*.groupAllowFrom",
    "channels.telegram.accounts.*.groupPolicy",
    "channels.telegram.accounts.*.groups.*.enabled",
    "channels.telegram.accounts.*.groups.*.requireMention",
    "channels.telegram.accounts.*.groups.*.groupPolicy",
    "channels.telegram.accounts.*.groups.*.allowFrom",
    "channels.telegram.accounts.*.groups.*.skills",
    "channels.telegram.accounts.*.groups.*.systemPrompt",
    "channels.telegram.accounts.*.groups.*.errorPolicy",
    "channels.telegram.accounts.*.groups.*.tools",
    "channels.telegram.accounts.*.groups.*.toolsBySender",
    "channels.telegram.accounts.*.groups.*.topics.*.enabled",
    "channels.telegram.accounts.*.groups.*.topics.*.requireMention",
    "channels.telegram.accounts.*.groups.*.topics.*.groupPolicy",
    "channels.telegram.accounts.*.groups.*.topics.*.allowFrom",
    "channels.telegram.accounts.*.groups.*.topics.*.skills",
    "channels.telegram.accounts.*.groups.*.topics.*.systemPrompt",
    "channels.telegram.accounts.*.groups.*.topics.*.errorPolicy",
    "channels.telegram.accounts.*.errorPolicy",
    "channels.telegram.accounts.*.silentErrorReplies",
    "channels.telegram.accounts.*.historyLimit",
    "channels.telegram.accounts.*.replyToMode",
    "channels.telegram.accounts.*.textChunkLimit",
    "channels.telegram.accounts.*.chunkMode",
    "channels.telegram.accounts.*.blockStreaming",
    "channels.telegram.accounts.*.blockStreamingCoalesce",
    "channels.telegram.accounts.*.streamMode",
    "channels.telegram.accounts.*.draftChunk",
    "channels.telegram.accounts.*.mediaMaxMb",
    "channels.telegram.accounts.*.timeoutSeconds",
    "channels.telegram.accounts.*.retry",
    "channels.telegram.accounts.*.network",
    "channels.telegram.accounts.*.proxy",
    "channels.telegram.accounts.*.webhookUrl",
    "channels.telegram.accounts.*.webhookSecret",
    "channels.telegram.accounts.*.webhookPath",
    "channels.telegram.accounts.*.webhookHost",
    "channels.telegram.accounts.*.webhookPort",
    "channels.telegram.accounts.*.apiRoot",
    "channels.telegram.accounts.*.actions",
    "channels.telegram.accounts.*.reactionNotifications",
    "channels.telegram.accounts.*.reactionLevel",
    "channels.telegram.accounts.*.linkPreview",
    "channels.telegram.accounts.*.capabilities",
    "channels.telegram.accounts.*.markdown",
    "channels.telegram.accounts.*.responsePrefix",
    "channels.defaults.groupPolicy",
    "channels.*.dmHistoryLimit",
    "channels.*.dms.*.historyLimit",
    "channels.*.accounts.*.dmHistoryLimit",
    "channels.*.accounts.*.dms.*.historyLimit",
    "hooks.internal.enabled",
    "hooks.internal.handlers",
    "hooks.internal.commands",
    "hooks.internal.entries",
    "hooks.internal.load",
    "hooks.internal.installs",
    "channels.*.accounts.*.heartbeat",
    "channels.*.heartbeat",
    "session.agentToAgent",
    "session.scope",
    "session.dmScope",
    "session.identityLinks",
    "session.store",
    "session.mainKey",
    "session.sendPolicy",
    "session.reset",
    "session.resetByType",
    "session.resetByChannel",
    "session.resetTriggers",
    "session.idleMinutes",
    "session.maintenance",
    "ui.assistant",
    "gateway.port",
    "gateway.mode",
    "gateway.bind",
    "gateway.customBindHost",
    "gateway.auth",
    "gateway.trustedProxies",
    "gateway.remote.url",
    "gateway.remote.token",
    "gateway.remote.password",
    "gateway.remote.tlsFingerprint",
    "gateway.reload",
    "gateway.controlUi.enabled",
    "gateway.controlUi.basePath",
    "gateway.controlUi.root",
    "gateway.controlUi.allowedOrigins",
    "gateway.controlUi.allowInsecureAuth",
    "gateway.controlUi.dangerouslyDisableDeviceAuth",
];

/// The paths of the file that are accepted but not acted on yet, the shortest that says it. Keys
/// that nobody knows are none of them: no later version will act on them.
pub fn unsupported(loaded: &Loaded) -> Vec<String> {
    let is_sound = loaded.snapshot.issues.is_empty();
    let unknown: fn(&Value) -> Vec<Vec<String>> =
        if is_sound { |_| Vec::new() } else { structure::unknown_keys };
    unsupported_in(&loaded.snapshot.parsed, unknown)
}

fn unsupported_in(document: &Value, unknown_keys: fn(&Value) -> Vec<Vec<String>>) -> Vec<String> {
    let mut found = Vec::new();
    // Keys that are moved in memory are judged by their new place.
    let moved = legacy::migrate(document).map(|(moved, _)| moved);
    let document = moved.as_ref().unwrap_or(document);
    walk(document, &unknown_keys(document), &mut Vec::new(), &mut found);
    found
}

/// True if the product acts on the key at this path of the schema, where any key or index is `*`.
pub fn acts_on(path: &[String]) -> bool {
    support_of(path) == Support::Full
}

/// True if anything below is acted on; paths that are not go to `found`, but for `unknown` ones.
fn walk(value: &Value, unknown: &[Vec<String>], path: &mut Vec<String>, found: &mut Vec<String>) -> bool {
    let mut any = false;
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, each)| (key.clone(), each)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, each)| (at.to_string(), each)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    for (key, each) in children.into_iter().filter(|(key, _)| key != "$include") {
        path.push(key);
        match support_of(path) {
            Support::Full => any = true,
            // An empty value asks for nothing.
            Support::Partial if is_empty(each) => {}
            Support::Partial => {
                let before = found.len();
                let is_acted_on = walk(each, unknown, path, found);
                // A platform of which nothing is acted on gets one line, not one for each of its
                // keys.
                let asks_for_something = found.len() > before;
                let is_channel = path.first().is_some_and(|section| section == "channels");
                if !is_acted_on && asks_for_something && is_channel {
                    found.truncate(before);
                    found.push(dotted(path));
                }
                any |= is_acted_on;
            }
            Support::None if unknown.contains(path) => {}
            Support::None => found.push(dotted(path)),
        }
        path.pop();
    }
    any
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn dotted(path: &[String]) -> String {
    path.iter().fold(String::new(), |text, part| join(&text, part))
}

#[derive(Debug, PartialEq, Eq)]
enum Support {
    Full,
    /// Something below is acted on.
    Partial,
    None,
}

fn support_of(path: &[String]) -> Support {
    let mut partial = false;
    for pattern in SUPPORTED {
        let parts: Vec<&str> = pattern.split('.').collect();
        let fits = parts.iter().zip(path).all(|(part, key)| *part == "*" || part == key);
        if fits && parts.len() <= path.len() {
            return Support::Full;
        }
        partial |= fits;
    }
    if partial { Support::Partial } else { Support::None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_moved_on_load_is_named_by_its_new_place() {
        let rows = [
            (json!({"telegram": {"botToken": "t"}}), vec![]),
            (json!({"telegram": {"botToken": "t", "x": 1}}), vec!["channels.telegram.x"]),
            (json!({"telegram": {"botToken": "t"}, "channels": {"telegram": {"enabled": true}}}), vec![]),
            (json!({"slack": {"botToken": "t"}}), vec!["channels"]),
        ];
        for (document, expect) in rows {
            assert_eq!(unsupported_in(&document, |_| Vec::new()), expect, "{document}");
        }
    }

    #[test]
    fn misspelt_keys_are_none_that_a_later_version_will_act_on() {
        let document = json!({
            "gatway": {"port": 1},
            "gateway": {"prot": 1, "tls": {"enabled": true}},
            "telegram": {"botTokn": "t"},
            "agents": {"defaults": {"thinking": "low", "imageModel": {"primary": "a/b"}}},
        });
        assert_eq!(unsupported_in(&document, structure::unknown_keys), ["gateway.tls"]);
    }

    #[test]
    fn the_shortest_unsupported_path_is_named_once() {
        let document = json!({
            "gateway": {"port": 1, "tls": {"enabled": true, "certPath": "x"}},
            "env": {"FOO": "1", "shellEnv": {"enabled": true}},
            "agents": {"list": [{"id": "a", "groupChat": {"historyLimit": 5}}]},
            "cron": {"enabled": true},
            "channels": {"discord": {"token": "t"}},
        });
        let mut found = Vec::new();
        walk(&document, &[], &mut Vec::new(), &mut found);
        assert_eq!(found, ["gateway.tls", "agents.list.0.groupChat.historyLimit", "cron", "channels"]);
        let telegram = json!({"botToken": "t", "x": {"y": 1}, "accounts": {"a": {"name": "A", "z": {"5": {"historyLimit": 1}}}, "default": {}}});
        let document = json!({"channels": {"telegram": telegram, "slack": {"botToken": "t", "dms": {}}}});
        found.clear();
        walk(&document, &[], &mut Vec::new(), &mut found);
        let expect = ["channels.telegram.x", "channels.telegram.accounts.a.z", "channels.slack"];
        assert_eq!(found, expect);
        // Keys that OpenClaw 2026.2.9 refuses and that are acted on here are not listed.
        let groups = json!({"-1": {"errorPolicy": "silent", "topics": {"5": {"errorPolicy": "once"}}}});
        let telegram =
            json!({"botToken": "t", "errorPolicy": "once", "silentErrorReplies": true, "groups": groups});
        found.clear();
        walk(&json!({"channels": {"telegram": telegram}}), &[], &mut Vec::new(), &mut found);
        assert_eq!(found, [""; 0]);
    }
}
