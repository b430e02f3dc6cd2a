//! Keys that a person's login shell sets and the service's environment lacks (spec `config.md` §2.2).

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::{Environment, registry};

/// Variables that are taken over, beside those of chat platforms; nothing else of the shell's environment is.
const EXPECTED: &[&str] = &[
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_OAUTH_TOKEN",
    "GEMINI_API_KEY",
    "ZAI_API_KEY",
    "OPENROUTER_API_KEY",
    "AI_GATEWAY_API_KEY",
    "MINIMAX_API_KEY",
    "SYNTHETIC_API_KEY",
    "ELEVENLABS_API_KEY",
    "OPENCLAW_GATEWAY_TOKEN",
    "OPENCLAW_GATEWAY_PASSWORD",
];
const SWITCH: &str = "OPENCLAW_LOAD_SHELL_ENV";
const DEFER: &str = "OPENCLAW_DEFER_SHELL_ENV_FALLBACK";
const TIMEOUT: &str = "OPENCLAW_SHELL_ENV_TIMEOUT_MS";
/// Time limit of the shell, in milliseconds.
const DEFAULT_TIMEOUT: u64 = 15_000;
/// Bytes of the shell's environment that are read.
const MAX_OUTPUT: u64 = 2 * 1024 * 1024;
/// Shell to use if `SHELL` is not set.
const DEFAULT_SHELL: &str = "/bin/sh";

/// True if the file or a variable asks for the keys of the login shell.
pub fn imports_shell_env(environment: &Environment, document: &Value) -> bool {
    let setting = document.pointer("/env/shellEnv/enabled").and_then(Value::as_bool);
    environment.is_truthy(SWITCH) || setting == Some(true)
}

/// Fills the unset keys from a login shell, if the file or a variable asks for it and no key is set yet. The shell is asked
/// once for an environment and its copies, whatever is read how often. A failure is logged and changes nothing.
pub(crate) fn import(environment: &mut Environment, document: &Value) {
    let has_keys = expected_names().any(|name| environment.get_nonblank(name).is_some());
    if !imports_shell_env(environment, document) || has_keys || environment.get_nonblank(DEFER).is_some() {
        return;
    }
    let timeout = document.pointer("/env/shellEnv/timeoutMs").and_then(Value::as_u64);
    let timeout =
        timeout.or_else(|| environment.get_nonblank(TIMEOUT)?.parse().ok()).unwrap_or(DEFAULT_TIMEOUT);
    let asked = environment.shell_answer().get_or_init(|| {
        ask(environment, Duration::from_millis(timeout)).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot import keys from the login shell");
            Vec::new()
        })
    });
    environment.fill_from_shell(&asked.clone());
}

/// Returns the variables that are taken over.
fn expected_names() -> impl Iterator<Item = &'static str> {
    let of_platforms = registry::CHANNELS.iter().flat_map(|channel| channel.shell_credentials);
    EXPECTED.iter().chain(of_platforms).copied()
}

/// The expected variables a login shell has.
fn ask(environment: &Environment, timeout: Duration) -> Result<Vec<(String, String)>, String> {
    let shell = environment.get_nonblank("SHELL").unwrap_or(DEFAULT_SHELL);
    let mut child = Command::new(shell)
        .args(["-l", "-c", "env -0"])
        .env_clear()
        .envs(environment.vars())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{shell}: {error}"))?;
    let answer = read(&mut child, timeout);
    // Of a shell that is still there nothing more is wanted; of one that is gone there is nothing to end.
    let _ = child.kill();
    let status = child.wait().map_err(|error| format!("{shell}: {error}"))?;
    let bytes = answer.ok_or_else(|| format!("{shell} did not answer within {timeout:?}"))?;
    if bytes.is_empty() {
        return Err(format!("{shell} ended with {status}"));
    }
    Ok(expected(&bytes))
}

/// Output of the shell; `None` when it does not end in time.
fn read(child: &mut Child, timeout: Duration) -> Option<Vec<u8>> {
    let mut out = child.stdout.take()?.take(MAX_OUTPUT);
    let (sender, receiver) = mpsc::channel();
    // Ends with the pipe: when the shell does, or is made to.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.read_to_end(&mut bytes).map(|_| bytes);
        let _ = sender.send(read);
    });
    receiver.recv_timeout(timeout).ok()?.ok()
}

fn expected(bytes: &[u8]) -> Vec<(String, String)> {
    let pairs =
        bytes.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='));
    pairs
        // Output of a start-up file stands before the first variable.
        .map(|(name, value)| (name.lines().last().unwrap_or_default(), value))
        .filter(|(name, value)| {
            expected_names().any(|expected| expected == *name) && !value.trim().is_empty()
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use serde_json::json;

    use super::*;

    /// A shell that does this.
    fn shell(dir: &Path, script: &str) -> String {
        let path = dir.join("shell");
        std::fs::write(&path, format!("#!/bin/sh\necho x >> {0}/asked\n{script}\n", dir.display())).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path.display().to_string()
    }

    const PRINTS: &str =
        "echo 'Welcome!'; printf 'OPENAI_API_KEY=sk-1\\0GEMINI_API_KEY= \\0OTHER=x\\0ZAI_API_KEY=z\\nz\\0'";

    fn imported(script: &str, vars: &[(&str, &str)], document: &Value) -> (Vec<(String, String)>, usize) {
        let dir = tempfile::tempdir().unwrap();
        let shell = shell(dir.path(), script);
        let all = [&[("SHELL", shell.as_str()), ("PATH", "/usr/bin:/bin")], vars].concat();
        let mut environment = Environment::new(all, dir.path());
        let mut copy = environment.clone();
        import(&mut environment, document);
        // A copy that was made before asks nobody again.
        import(&mut copy, document);
        let keys = environment.vars().filter(|(name, _)| EXPECTED.contains(name));
        let asked = std::fs::read_to_string(dir.path().join("asked")).unwrap_or_default().lines().count();
        (keys.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), asked)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn keys_are_imported_where_they_are_asked_for_and_missing() {
        let on = json!({"env": {"shellEnv": {"enabled": true}}});
        let off = json!({"env": {"shellEnv": {"enabled": false}}});
        let keys = pairs(&[("OPENAI_API_KEY", "sk-1"), ("ZAI_API_KEY", "z\nz")]);
        let own = [("GEMINI_API_KEY", "mine")];
        assert_eq!(imported(PRINTS, &[], &on), (keys.clone(), 1));
        assert_eq!(imported(PRINTS, &[(SWITCH, "yes")], &off), (keys, 1));
        assert_eq!(imported(PRINTS, &[], &off), (vec![], 0));
        assert_eq!(imported(PRINTS, &[], &json!({})), (vec![], 0));
        assert_eq!(imported(PRINTS, &[(DEFER, "1")], &on), (vec![], 0));
        assert_eq!(imported(PRINTS, &own, &on), (pairs(&own), 0));
    }

    #[test]
    fn a_shell_that_fails_or_hangs_changes_nothing() {
        let on = json!({"env": {"shellEnv": {"enabled": true}}});
        assert_eq!(imported("exit 3", &[], &on), (vec![], 1));
        assert_eq!(imported(PRINTS, &[("SHELL", "/nowhere/sh")], &on).0, vec![]);
        // On a busy machine it is given up before it has begun.
        let soon = json!({"env": {"shellEnv": {"enabled": true, "timeoutMs": 50}}});
        assert_eq!(imported("exec sleep 60", &[], &soon).0, vec![]);
    }
}
