//! Services of this machine: which unit runs the gateway, whether it starts by itself, and the commands that start it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use openclaw_gateway::RunningGateway;
use tokio::process::Command;
use tokio::runtime::Builder;

use crate::context::CliContext;
use crate::runtime;

/// Time limit for an answer of `systemctl`.
const LIMIT: Duration = Duration::from_secs(2);

/// File of a service, and the manager that reads it (spec `cli.md` §9.1).
#[derive(Debug)]
pub(crate) struct Service {
    /// Name of the manager, for people.
    pub(crate) label: &'static str,
    /// Name of the unit, without its ending.
    unit: String,
    file: PathBuf,
}

impl Service {
    /// Service of this profile.
    pub(crate) fn of(context: &CliContext, name: &str) -> Self {
        let profile = context.paths().profile();
        let home = context.paths().home();
        if cfg!(target_os = "macos") {
            let unit = format!("ai.openclaw.{}", profile.unwrap_or(name.trim_start_matches("openclaw-")));
            let file = home.join("Library/LaunchAgents").join(format!("{unit}.plist"));
            return Self { label: "LaunchAgent", unit, file };
        }
        let suffix = profile.map(|profile| format!("-{profile}")).unwrap_or_default();
        let unit = format!("{name}{suffix}");
        let file = units(context).join(format!("{unit}.service"));
        Self { label: "systemd", unit, file }
    }

    /// Service of the gateway.
    pub(crate) fn gateway(context: &CliContext) -> Self {
        Self::of(context, "openclaw-gateway")
    }

    /// True if its file is there.
    pub(crate) fn is_installed(&self) -> bool {
        self.file.exists()
    }

    /// True if it starts by itself. The file alone does not make it.
    pub(crate) fn is_enabled(&self) -> bool {
        if !self.is_installed() {
            return false;
        }
        cfg!(target_os = "macos") || self.said_by_systemd().unwrap_or_else(|| self.is_wanted())
    }

    /// Answer of the service manager; `None` if there is none, or none that this user can ask.
    fn said_by_systemd(&self) -> Option<bool> {
        let mut command = Command::new("systemctl");
        command.args(["--user", "is-enabled", &self.unit]);
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let threads = Builder::new_current_thread().enable_all().build().ok()?;
        let asked = async { tokio::time::timeout(LIMIT, command.output()).await };
        let output = runtime::finish(threads, asked).ok()?.ok()?;
        match String::from_utf8_lossy(&output.stdout).trim() {
            "" | "not-found" => None,
            said => Some(said.starts_with("enabled")),
        }
    }

    /// True if a target wants it, which is what `systemctl enable` makes.
    fn is_wanted(&self) -> bool {
        let (Some(dir), Some(name)) = (self.file.parent(), self.file.file_name()) else { return false };
        let targets = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let wants = |target: &PathBuf| {
            target.extension().is_some_and(|end| end == "wants" || end == "requires")
                && target.join(name).symlink_metadata().is_ok()
        };
        targets.into_iter().any(|target| wants(&target))
    }

    /// True if it runs the gateway of this state directory, as far as the directory's place tells.
    fn is_of(&self, context: &CliContext) -> bool {
        let suffix = context.paths().profile().map(|profile| format!("-{profile}")).unwrap_or_default();
        let usual = context.paths().home().join(format!(".openclaw{suffix}"));
        cfg!(target_os = "linux") && self.is_installed() && context.paths().state_dir() == usual
    }

    /// True if a process is this service's.
    fn has(&self, running: RunningGateway) -> bool {
        let unit = format!("{}.service", self.unit);
        let group = running.pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
        group.is_some_and(|group| group.lines().any(|line| line.rsplit('/').next() == Some(unit.as_str())))
    }

    fn command(&self, verb: &str) -> String {
        format!("systemctl --user {verb} {}", self.unit)
    }
}

/// Directory of a user's units.
fn units(context: &CliContext) -> PathBuf {
    let written =
        context.env().get_nonblank("XDG_CONFIG_HOME").map(Path::new).filter(|dir| dir.is_absolute());
    let config = written.map_or_else(|| context.paths().home().join(".config"), Path::to_path_buf);
    config.join("systemd/user")
}

/// ` (pid 7)`, when it is known.
pub(crate) fn process(running: RunningGateway) -> String {
    running.pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

/// Command that starts the gateway of this state directory.
pub(crate) fn start_command(context: &CliContext) -> String {
    let service = Service::gateway(context);
    match service.is_of(context) {
        true => service.command("start"),
        false => context.hint_command("openclaw gateway"),
    }
}

/// Advice, without a full stop, for a running gateway that has to begin anew.
pub(crate) fn restart_advice(context: &CliContext, running: RunningGateway) -> String {
    let service = Service::gateway(context);
    if service.is_of(context) && service.has(running) {
        return format!("restart it: {}", service.command("restart"));
    }
    let which = process(running);
    format!("stop it{which} and start it again: {}", start_command(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn installed(vars: &[(&str, &str)]) -> (tempfile::TempDir, CliContext) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_str().unwrap().to_owned();
        let vars: Vec<(&str, &str)> =
            [("HOME", path.as_str())].into_iter().chain(vars.iter().copied()).collect();
        let context = testing::context("{}", &vars);
        let dir = home.path().join(".config/systemd/user");
        std::fs::create_dir_all(dir.join("default.target.wants")).unwrap();
        std::fs::write(dir.join("openclaw-gateway.service"), "[Service]").unwrap();
        (home, context)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_unit_starts_the_gateway_of_the_usual_directory_alone() {
        let (_home, context) = installed(&[]);
        assert_eq!(start_command(&context), "systemctl --user start openclaw-gateway");
        let (_home, elsewhere) = installed(&[("OPENCLAW_STATE_DIR", "/elsewhere")]);
        assert_eq!(start_command(&elsewhere), "openclaw gateway");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_unit_is_enabled_by_the_target_that_wants_it() {
        let (home, context) = installed(&[]);
        let service = Service::gateway(&context);
        assert!(service.is_installed() && !service.is_wanted());
        let dir = home.path().join(".config/systemd/user");
        let link = dir.join("default.target.wants/openclaw-gateway.service");
        std::os::unix::fs::symlink(dir.join("openclaw-gateway.service"), link).unwrap();
        assert!(service.is_wanted());
    }
}
