use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use openclaw_config::Environment;
use openclaw_config::settings::Config;
use openclaw_protocol::AgentId;

use super::*;
use crate::sandbox::SandboxSettings;
use crate::sandbox::registry::tests::entry;

/// A `docker` that writes down what it is told. What it answers stands in files beside it.
const FAKE: &str = "#!/bin/sh
dir=$(dirname \"$0\")
echo \"$*\" >> \"$dir/calls\"
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
        std::fs::write(&program, FAKE).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let cli = Cli::new("docker", &Environment::new([("PATH", path.as_str())], "/"));
        let registry = Registry::containers(dir.path());
        let mut settings = SandboxSettings::of(&Config::default(), &AgentId::default());
        settings.docker.setup_command = Some("apt x".into());
        Self { dir, cli, registry, settings }
    }

    fn made(&self) -> Made<'_> {
        let settings = &self.settings.docker;
        Made { name: "N", key: "main", settings, workspace: Path::new("/b"), agent_workspace: None }
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
        (State::Missing, false, None, Step::Create),
        (State::Missing, true, Some(now), Step::Create),
        (State::Running, true, None, Step::Use),
        (State::Stopped, true, None, Step::Start),
        (State::Running, false, Some(now - 1), Step::UseOutdated),
        (State::Running, false, Some(now - HOT_MS), Step::Recreate),
        (State::Running, false, None, Step::Recreate),
        (State::Stopped, false, Some(now - 1), Step::Recreate),
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
async fn what_is_missing_is_said_with_what_to_do() {
    let mut fake = Fake::new();
    fake.settings.docker.image = "mine:1".into();
    let error = ensure(&fake.cli, &fake.registry, fake.made()).await.unwrap_err();
    assert_eq!(error.to_string(), "Sandbox image not found: mine:1. Build or pull it first.");
    let nowhere = Cli::new("docker", &Environment::new([("PATH", "/nowhere")], "/"));
    assert!(fake.cli.is_installed() && !nowhere.is_installed());
    let error = ensure(&nowhere, &fake.registry, fake.made()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "docker is not installed or not on PATH. Install it, or set agents.defaults.sandbox.backend to \"local\" for a \
         sandbox that needs no daemon"
    );
}

#[tokio::test]
async fn idle_containers_are_removed() {
    let fake = Fake::new();
    fake.registry.note(entry("idle", now_ms(), 0)).unwrap();
    fake.registry.note(entry("busy", now_ms(), now_ms())).unwrap();
    prune(&fake.cli, &fake.registry, PruneSettings { idle_hours: 24, max_age_days: 7 }).await;
    assert_eq!(fake.calls(), "rm -f");
    let left: Vec<_> = fake.registry.entries().into_iter().map(|entry| entry.container_name).collect();
    assert_eq!(left, ["busy"]);
}
