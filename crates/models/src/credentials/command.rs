//! Keys that a shell command prints: `"apiKey": "!pass show anthropic"`.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::io::AsyncReadExt;

use crate::variables::Variables;

/// Time limit of a key command; a command may ask a password manager, never a person.
const DEADLINE: Duration = Duration::from_secs(10);
/// Largest size of a key in bytes.
const MAX_KEY: u64 = 64 * 1024;

/// Cache of the outputs of key commands, kept for the life of the process. Failures are not kept.
#[derive(Clone, Default)]
pub(crate) struct KeyCommands {
    printed: Arc<Mutex<HashMap<String, SecretString>>>,
}

impl std::fmt::Debug for KeyCommands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyCommands")
    }
}

impl KeyCommands {
    /// Runs a command, or returns what it printed before. The error says what is wrong, without what was printed.
    pub(crate) async fn run(&self, command: &str, variables: &Variables) -> Result<SecretString, String> {
        if let Some(known) = self.printed.lock().get(command) {
            return Ok(known.clone());
        }
        let key = tokio::time::timeout(DEADLINE, print(command, variables))
            .await
            .map_err(|_| format!("took longer than {DEADLINE:?}"))??;
        self.printed.lock().insert(command.to_owned(), key.clone());
        Ok(key)
    }
}

async fn print(command: &str, variables: &Variables) -> Result<SecretString, String> {
    let mut child = tokio::process::Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(variables.iter())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("could not be started: {error}"))?;
    let mut printed = String::new();
    if let Some(stdout) = child.stdout.take() {
        let read = stdout.take(MAX_KEY).read_to_string(&mut printed).await;
        read.map_err(|_| "printed something that is no text".to_owned())?;
    }
    let status = child.wait().await.map_err(|error| format!("was lost: {error}"))?;
    let key = printed.trim();
    if !status.success() {
        Err(format!("failed with {status}"))
    } else if key.is_empty() {
        Err("printed nothing".to_owned())
    } else {
        Ok(SecretString::from(key))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[tokio::test]
    async fn a_command_runs_once_and_its_output_is_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let variables: Variables =
            [("PATH", "/usr/bin:/bin"), ("DIR", dir.path().to_str().unwrap())].into_iter().collect();
        let commands = KeyCommands::default();
        let count = "echo x >> $DIR/ran; echo ' sk-1 '";
        for _ in 0..2 {
            assert_eq!(commands.run(count, &variables).await.unwrap().expose_secret(), "sk-1");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("ran")).unwrap(), "x\n");
    }

    #[tokio::test]
    async fn failures_are_told_apart_and_tell_no_secret() {
        let variables: Variables = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        let commands = KeyCommands::default();
        let failed = commands.run("echo sk-secret; exit 3", &variables).await.unwrap_err();
        assert_eq!(failed, "failed with exit status: 3");
        assert_eq!(commands.run("true", &variables).await.unwrap_err(), "printed nothing");
    }
}
