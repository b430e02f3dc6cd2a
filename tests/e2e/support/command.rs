//! The command line beside a gateway under test.

use std::path::Path;

use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; a signal has none.
    pub(crate) code: Option<i32>,
    /// Standard output: data.
    pub(crate) out: String,
    /// Standard error: text for people.
    pub(crate) err: String,
}

impl Ended {
    /// Runs a command to its end.
    pub(crate) async fn of(mut command: Command) -> Self {
        let output = timeout(DEADLINE, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{command:?} does not end")).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Checks that it failed in an orderly way, saying each of these on stderr.
    #[track_caller]
    pub(crate) fn failed(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        for words in words {
            assert!(self.err.contains(words), "no \"{words}\" in:\n{}\nstdout:\n{}", self.err, self.out);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    /// The JSON on stdout of a command that succeeded.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `openclaw` as a user who is not root, to whom everything in the gateway's directory belongs: for what modes forbid.
pub(crate) async fn unprivileged(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    let mut command = gateway.command();
    command.args(args);
    if nix::unistd::geteuid().is_root() {
        give_away(gateway.home());
        command.uid(NOBODY).gid(NOBODY);
    }
    Ended::of(command).await
}

/// The user id that owns nothing.
const NOBODY: u32 = 65_534;

fn give_away(path: &Path) {
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

/// Runs `openclaw` in the gateway's directory, with the port the gateway has or last had, if any.
pub(crate) async fn openclaw(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    let mut command = gateway.command();
    command.args(args);
    if gateway.port() != 0 {
        command.env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
    }
    Ended::of(command).await
}

/// A command without the port of the gateway, which the config does not know.
pub(crate) async fn unaware(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    let mut command = gateway.command();
    command.args(args);
    Ended::of(command).await
}

pub(crate) async fn ok(gateway: &GatewayUnderTest, words: &[&str]) -> String {
    let ended = openclaw(gateway, words).await;
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
    ended.out
}

pub(crate) async fn json_of(gateway: &GatewayUnderTest, words: &[&str]) -> Value {
    let out = ok(gateway, words).await;
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[track_caller]
pub(crate) fn has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "no \"{words}\" in:\n{text}");
    }
}

pub(crate) async fn run(gateway: &GatewayUnderTest, words: &[&str]) -> (i32, String, String) {
    let port = gateway.port().to_string();
    let output = gateway.command().args(words).env("OPENCLAW_GATEWAY_PORT", port).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}
