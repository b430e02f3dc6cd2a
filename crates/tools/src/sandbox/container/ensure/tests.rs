use std::path::Path;
use std::process::Command;

use openclaw_config::Environment;
use openclaw_config::settings::Config;
use openclaw_protocol::AgentId;

use super::*;
use crate::sandbox::SandboxSettings;

/// A `docker` that writes down what it is told. Its answers are in files beside it.
const FAKE: &str = "#!/bin/sh
dir=$(dirname \"$0\")
echo \"$*\" >> \"$dir/calls\"
[ -f \"$dir/refuse-$1\" ] && { cat \"$dir/refuse-$1\" >&2; exit 1; }
case \"$1 $2\" in
  'inspect -f') case \"$3\" in *Running*) f=state;; *) f=label;; esac
    [ -f \"$dir/$f\" ] && cat \"$dir/$f\" || exit 1;;
  'image inspect') [ -f \"$dir/image\" ] || { echo 'Error: No such image: x' >&2; exit 1; };;
esac
";

struct Fake {
    dir: tempfile::TempDir,
    cli: Cli,
    registry: Registry,
    settings: SandboxSettings,
}

impl Fake {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("docker");
        // Written by a process of its own: a child that another test starts meanwhile would keep the
        // file open for writing, and the system runs no such file ("text file busy").
        let written = Command::new("sh")
            .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""])
            .args([program.as_os_str(), FAKE.as_ref()])
            .status()
            .unwrap();
        assert!(written.success());
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let cli = Cli::new("docker", &Environment::new([("PATH", path.as_str())], "/"));
        let registry = Registry::containers(dir.path());
        let mut settings = SandboxSettings::of(&Config::default(), &AgentId::default());
        settings.docker.setup_command = Some("apt x".into());
        Self { dir, cli, registry, settings }
    }

    fn made(&self) -> ContainerSpec<'_> {
        let settings = &self.settings.docker;
        ContainerSpec {
            name: "N",
            key: "main",
            settings,
            workspace: Path::new("/b"),
            agent_workspace: None,
            covers: &[],
        }
    }

    fn say(&self, file: &str, text: &str) {
        std::fs::write(self.dir.path().join(file), text).unwrap();
    }

    /// The first two words of each call since this was last asked.
    fn calls(&self) -> String {
        let file = self.dir.path().join("calls");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        let calls = text.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "));
        calls.collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn what_is_there_decides_what_is_done() {
    let now = 10 * HOT_MS;
    for (state, is_current, used, expect) in [
        (ContainerState::Missing, false, None, ContainerAction::Create),
        (ContainerState::Missing, true, Some(now), ContainerAction::Create),
        (ContainerState::Running, true, None, ContainerAction::Use),
        (ContainerState::Stopped, true, None, ContainerAction::Start),
        (ContainerState::Running, false, Some(now - 1), ContainerAction::UseOutdated),
        (ContainerState::Running, false, Some(now - HOT_MS), ContainerAction::Recreate),
        (ContainerState::Running, false, None, ContainerAction::Recreate),
        (ContainerState::Stopped, false, Some(now - 1), ContainerAction::Recreate),
    ] {
        assert_eq!(step(&state, is_current, used, now), expect, "{state:?} {is_current} {used:?}");
    }
}

#[tokio::test]
async fn a_container_is_made_once_and_made_anew_for_other_settings() {
    let mut fake = Fake::new();
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(
        fake.calls(),
        "inspect -f, image inspect, pull debian:bookworm-slim, tag debian:bookworm-slim, create --name, start N, exec -i"
    );
    let first = fake.registry.find("N").unwrap();
    assert_eq!(first.config_hash, Some(hash(fake.made())));
    fake.say("image", "");
    fake.say("state", "true\n");
    fake.say("label", &hash(fake.made()));
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(fake.calls(), "inspect -f, inspect -f");
    fake.say("state", "false\n");
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(fake.calls(), "inspect -f, inspect -f, start N");
    // Used just now: it stays, and is known to be outdated.
    fake.settings.docker.network = "bridge".into();
    fake.say("state", "true\n");
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(fake.calls(), "inspect -f, inspect -f");
    assert_eq!(fake.registry.find("N").unwrap().config_hash, first.config_hash);
    fake.say("state", "false\n");
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(fake.calls(), "inspect -f, inspect -f, rm -f, image inspect, create --name, start N, exec -i");
    assert_eq!(fake.registry.find("N").unwrap().config_hash, Some(hash(fake.made())));
}

#[tokio::test]
async fn a_setup_that_failed_or_was_cut_short_is_done_again() {
    let fake = Fake::new();
    fake.say("image", "");
    fake.say("refuse-exec", "no network");
    let error = ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the sandbox's setupCommand failed: no network. It is tried again with the next message"
    );
    assert_eq!(fake.calls(), "inspect -f, image inspect, create --name, start N, exec -i, rm -f");
    assert_eq!(fake.registry.entries(), []);
    // The gateway died in the setup: the container runs, and nothing is noted of it.
    std::fs::remove_file(fake.dir.path().join("refuse-exec")).unwrap();
    fake.say("state", "true\n");
    fake.say("label", &hash(fake.made()));
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(fake.calls(), "inspect -f, inspect -f, rm -f, image inspect, create --name, start N, exec -i");
    ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap();
    assert_eq!(fake.calls(), "inspect -f, inspect -f");
}

#[tokio::test]
async fn what_is_missing_is_said_with_what_to_do() {
    const LOCAL: &str = "set agents.defaults.sandbox.backend to \"local\"";
    // The command that refuses, its words, and the message to the owner.
    for (command, words, told) in [
        (
            "inspect",
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            [
                "docker is installed, but its daemon does not answer (Cannot connect",
                "systemctl start docker",
                LOCAL,
            ],
        ),
        (
            "inspect",
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
            ["the gateway's user may not use docker (permission denied", "usermod -aG docker", LOCAL],
        ),
        (
            "pull",
            "Get \"https://registry-1.docker.io/v2/\": no such host",
            [
                "the sandbox's image is missing, and debian:bookworm-slim, which it is made from, can't be pulled: Get",
                "no such host",
                "agents.defaults.sandbox.docker.image",
            ],
        ),
        (
            "create",
            "invalid memory: x",
            ["docker create failed: invalid memory: x", "If docker can't be used here", LOCAL],
        ),
        ("start", "no space left on device", ["docker start failed: no space left on device", "", LOCAL]),
        (
            "exec",
            "sh: apt: not found",
            ["the sandbox's setupCommand failed: sh: apt: not found", "tried again", ""],
        ),
    ] {
        let fake = Fake::new();
        fake.say(&format!("refuse-{command}"), words);
        let error = ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap_err().to_string();
        assert!(told.iter().all(|told| error.contains(told)), "{command}: {error}");
        assert_eq!(fake.registry.entries(), [], "{command}");
    }
    let mut fake = Fake::new();
    fake.settings.docker.image = "mine:1".into();
    let error = ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap_err().to_string();
    assert!(error.starts_with("Sandbox image not found: mine:1. Build or pull it first."), "{error}");
    assert!(error.contains("docker pull mine:1"), "{error}");
    let nowhere = Cli::new("docker", &Environment::new([("PATH", "/nowhere")], "/"));
    assert!(fake.cli.is_installed() && !nowhere.is_installed());
    let error = ensure(&nowhere, &fake.registry, fake.made()).await.unwrap_err().to_string();
    assert!(
        error.starts_with("docker is not installed or not on PATH. Install it, or ") && error.contains(LOCAL)
    );
}

#[tokio::test]
async fn a_container_that_is_gone_already_is_removed() {
    let fake = Fake::new();
    fake.say("refuse-rm", "Error response from daemon: No such container: N");
    remove(&fake.cli, "N").await.unwrap();
    fake.say("refuse-rm", "Error response from daemon: driver failed");
    assert!(remove(&fake.cli, "N").await.is_err());
}
