//! Arguments of `docker` and `podman`: pure functions.

use std::fmt::Display;
use std::path::Path;

use crate::sandbox::active::Inside;
use crate::sandbox::settings::DockerSettings;

/// Parameters from which a container is created.
#[derive(Debug, Clone, Copy)]
pub(in crate::sandbox) struct ContainerSpec<'a> {
    pub(in crate::sandbox) name: &'a str,
    /// Scope key of those who share the container.
    pub(in crate::sandbox) key: &'a str,
    pub(in crate::sandbox) settings: &'a DockerSettings,
    pub(in crate::sandbox) workspace: &'a Path,
    pub(in crate::sandbox) agent_workspace: Option<&'a Path>,
    /// Mounts over what the others must not show.
    pub(in crate::sandbox) covers: &'a [String],
}

pub(super) fn create(made: ContainerSpec<'_>, now_ms: i64, hash: &str) -> Vec<String> {
    let docker = made.settings;
    let mut out = DockerArgs::of(["create", "--name", made.name]);
    out.option("--label", &"openclaw.sandbox=1");
    out.option("--label", &format!("openclaw.sessionKey={}", made.key));
    out.option("--label", &format!("openclaw.createdAtMs={now_ms}"));
    out.option("--label", &format!("openclaw.configHash={hash}"));
    out.0.extend(docker.read_only_root.then(|| "--read-only".to_owned()));
    out.options("--tmpfs", &docker.tmpfs);
    out.option("--network", &docker.network);
    out.options("--user", &docker.user);
    out.options("--cap-drop", &docker.cap_drop);
    out.option("--security-opt", &"no-new-privileges");
    out.options("--security-opt", docker.seccomp_profile.iter().map(|file| format!("seccomp={file}")));
    out.options("--security-opt", docker.apparmor_profile.iter().map(|name| format!("apparmor={name}")));
    out.options("--dns", &docker.dns);
    out.options("--add-host", &docker.extra_hosts);
    out.options("--pids-limit", docker.pids_limit);
    out.options("--memory", &docker.memory);
    out.options("--memory-swap", &docker.memory_swap);
    out.options("--cpus", docker.cpus);
    out.options("--ulimit", docker.ulimits.iter().map(|(name, limit)| format!("{name}={limit}")));
    out.options("-v", &docker.binds);
    out.option("--workdir", &docker.workdir);
    out.option("-v", &format!("{}:{}", made.workspace.display(), docker.workdir));
    out.options("-v", made.agent_workspace.map(|dir| format!("{}:/agent:ro", dir.display())));
    out.options("-v", made.covers);
    out.0.extend([docker.image.clone(), "sleep".to_owned(), "infinity".to_owned()]);
    out.0
}

/// A variable that a command and all it starts has, and nobody else: by it they are found when the command is to end. The death of a
/// `docker exec` leaves its command running.
#[derive(Debug)]
pub(super) struct CommandMark(String);

impl CommandMark {
    pub(super) fn new() -> Self {
        Self(format!("OPENCLAW_COMMAND={}", uuid::Uuid::new_v4().simple()))
    }
}

/// Kills what carries the mark `$1`, until nothing does: a program may be forked while the others are looked through.
const END: &str = "n=0; while [ $n -lt 20 ]; do n=$((n+1)); found=0
for p in /proc/[0-9]*; do grep -q \"$1\" \"$p/environ\" 2>/dev/null && found=1 && kill -KILL \"${p#/proc/}\"; done
[ $found = 1 ] || exit 0; done";

/// Ends a command and what it started.
pub(super) fn end(name: &str, mark: &CommandMark) -> Vec<String> {
    ["exec", name, "sh", "-c", END, "sh", &mark.0].map(str::to_owned).to_vec()
}

pub(super) fn exec(name: &str, inside: Inside<'_>, mark: &CommandMark) -> Vec<String> {
    let mut out = DockerArgs::of(["exec", "-i"]);
    out.0.extend(inside.in_terminal.then(|| "-t".to_owned()));
    out.option("-w", &inside.directory.display());
    out.options("-e", inside.environment.iter().map(|(name, value)| format!("{name}={value}")));
    out.option("-e", &mark.0);
    out.0.extend([name, "sh", "-lc", inside.command].map(str::to_owned));
    out.0
}

pub(super) fn setup(name: &str, command: &str) -> Vec<String> {
    ["exec", "-i", name, "sh", "-lc", command].map(str::to_owned).to_vec()
}

struct DockerArgs(Vec<String>);

impl DockerArgs {
    fn of<const N: usize>(first: [&str; N]) -> Self {
        Self(first.map(str::to_owned).to_vec())
    }

    fn option(&mut self, name: &str, value: &dyn Display) {
        self.0.extend([name.to_owned(), format!("{value}")]);
    }

    fn options<T: Display>(&mut self, name: &str, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|value| self.option(name, &value));
    }
}

#[cfg(test)]
mod tests {
    use openclaw_config::settings::Config;
    use openclaw_protocol::AgentId;

    use super::*;
    use crate::sandbox::SandboxSettings;

    fn defaults() -> DockerSettings {
        SandboxSettings::of(&Config::default(), &AgentId::default()).docker
    }

    fn created(settings: &DockerSettings, agent: Option<&str>) -> String {
        let made = ContainerSpec {
            name: "N",
            key: "main",
            settings,
            workspace: Path::new("/boxes/a"),
            agent_workspace: agent.map(Path::new),
            covers: &[],
        };
        create(made, 1, "H").join(" ")
    }

    const HEAD: &str = "create --name N --label openclaw.sandbox=1 --label openclaw.sessionKey=main --label \
                        openclaw.createdAtMs=1 --label openclaw.configHash=H";
    const MEMORY: &str = "--tmpfs /tmp --tmpfs /var/tmp --tmpfs /run";
    const TAIL: &str = "openclaw-sandbox:bookworm-slim sleep infinity";

    #[test]
    fn a_container_is_created_as_the_reference_does() {
        assert_eq!(
            created(&defaults(), None),
            format!(
                "{HEAD} --read-only {MEMORY} --network none --cap-drop ALL --security-opt no-new-privileges --workdir \
                 /workspace -v /boxes/a:/workspace {TAIL}"
            )
        );
        let list = |text: &str| vec![text.to_owned()];
        let all = DockerSettings {
            read_only_root: false,
            user: Some("1000:1000".into()),
            network: "bridge".into(),
            seccomp_profile: Some("/s.json".into()),
            apparmor_profile: Some("ours".into()),
            dns: list("1.1.1.1"),
            extra_hosts: list("db:10.0.0.1"),
            pids_limit: Some(64),
            memory: Some("512m".into()),
            memory_swap: Some("1g".into()),
            cpus: Some(1.5),
            ulimits: vec![("nofile".into(), "1024:2048".into())],
            binds: list("/data:/data:ro"),
            ..defaults()
        };
        assert_eq!(
            created(&all, Some("/ws")),
            format!(
                "{HEAD} {MEMORY} --network bridge --user 1000:1000 --cap-drop ALL --security-opt no-new-privileges \
                 --security-opt seccomp=/s.json --security-opt apparmor=ours --dns 1.1.1.1 --add-host db:10.0.0.1 \
                 --pids-limit 64 --memory 512m --memory-swap 1g --cpus 1.5 --ulimit nofile=1024:2048 -v /data:/data:ro \
                 --workdir /workspace -v /boxes/a:/workspace -v /ws:/agent:ro {TAIL}"
            )
        );
    }

    #[test]
    fn a_command_is_executed_in_the_container() {
        let environment = [("PATH".to_owned(), "/bin".to_owned()), ("A".to_owned(), "b c".to_owned())];
        for (in_terminal, first) in [(false, vec!["exec", "-i"]), (true, vec!["exec", "-i", "-t"])] {
            let inside = Inside {
                command: "echo hi",
                directory: Path::new("/workspace/x"),
                environment: &environment,
                in_terminal,
            };
            let mark = CommandMark::new();
            let rest = [
                "-w",
                "/workspace/x",
                "-e",
                "PATH=/bin",
                "-e",
                "A=b c",
                "-e",
                &mark.0,
                "N",
                "sh",
                "-lc",
                "echo hi",
            ];
            assert_eq!(exec("N", inside, &mark), [first, rest.to_vec()].concat());
            assert_eq!(end("N", &mark), ["exec", "N", "sh", "-c", END, "sh", &mark.0]);
        }
        assert_eq!(setup("N", "apt x"), ["exec", "-i", "N", "sh", "-lc", "apt x"]);
    }
}
