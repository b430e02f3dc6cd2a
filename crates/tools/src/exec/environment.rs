//! The variables and the shell a command gets (spec `tools.md` §3.1 rows 9 and 10).

use std::path::Path;
use std::time::Duration;

use openclaw_config::variable_rules::runs_code;
use tokio_util::sync::CancellationToken;

use super::settings::ExecSettings;
use crate::command::Launch;
use crate::command::session::{CommandEnding, CommandSpec, Foreground};
use crate::command::sessions::CommandOwner;

/// Time limit for a login shell to print its `PATH`.
const LOGIN_SHELL_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the reason why a variable may not be set on the host, if it may not.
pub(crate) fn forbidden(name: &str) -> Option<String> {
    if name.eq_ignore_ascii_case("PATH") {
        return Some("Security Violation: Custom 'PATH' variable is forbidden during host execution.".into());
    }
    runs_code(name).then(|| {
        format!("Security Violation: Environment variable '{name}' is forbidden during host execution.")
    })
}

/// The configured environment under the call's own variables; `PATH` with the configured and the login shell's entries first.
pub(crate) fn compose(
    settings: &ExecSettings,
    asked: &[(String, String)],
    login_path: Option<&str>,
) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = inherited(settings);
    for (name, value) in asked {
        set(&mut out, name, value.clone());
    }
    let path =
        out.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str()).unwrap_or_default();
    let prepended = settings.path_prepend.iter().map(String::as_str);
    let joined = join_path(prepended.chain(login_path.unwrap_or_default().split(':')).chain(path.split(':')));
    if !joined.is_empty() {
        set(&mut out, "PATH", joined);
    }
    out
}

fn inherited(settings: &ExecSettings) -> Vec<(String, String)> {
    let is_passed = |name: &str| {
        !settings.withheld.contains(name) || settings.pass_env.iter().any(|passed| passed == name)
    };
    let passed = settings.environment.vars().filter(|(name, _)| is_passed(name));
    let mut inherited = passed.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    settings.overlay.lay_over(&mut inherited);
    inherited
}

pub(crate) fn set(variables: &mut Vec<(String, String)>, name: &str, value: String) {
    match variables.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value,
        None => variables.push((name.to_owned(), value)),
    }
}

/// Entries in order, each once.
fn join_path<'a>(entries: impl Iterator<Item = &'a str>) -> String {
    let mut out: Vec<&str> = Vec::new();
    for entry in entries.map(str::trim) {
        if !entry.is_empty() && !out.contains(&entry) {
            out.push(entry);
        }
    }
    out.join(":")
}

/// The shell: `$SHELL`, but not fish, whose language commands are not written in.
pub(crate) fn shell(settings: &ExecSettings) -> String {
    let shell = settings.environment.get_nonblank("SHELL").unwrap_or("sh");
    if Path::new(shell).file_name().is_none_or(|name| name != "fish") {
        return shell.to_owned();
    }
    let path = settings.environment.get("PATH").unwrap_or_default();
    let bash = path.split(':').map(|dir| Path::new(dir).join("bash")).find(|bash| bash.is_file());
    bash.map_or_else(|| "sh".into(), |bash| bash.to_string_lossy().into_owned())
}

/// A command of the shell, outside of any sandbox. `$0` of the command is the shell, as a terminal has it.
pub(crate) fn on_host(
    settings: &ExecSettings,
    command: &str,
    directory: &Path,
    environment: Vec<(String, String)>,
) -> Launch {
    let shell = shell(settings);
    let arguments = ["-c", command, &shell].map(Into::into).to_vec();
    Launch {
        arguments,
        program: shell.into(),
        environment,
        directory: directory.to_owned(),
        ending: Vec::new(),
    }
}

/// Asks a login shell for its `PATH`; nothing if it does not say.
pub(crate) async fn login_path(settings: &ExecSettings, cancel: &CancellationToken) -> Option<String> {
    let command = "exec \"$0\" -lc 'printf \"\\n%s\" \"$PATH\"'";
    let order = CommandSpec {
        launch: on_host(settings, command, Path::new("/"), inherited(settings)),
        command: command.into(),
        timeout: Some(LOGIN_SHELL_TIMEOUT),
        max_output_chars: settings.max_output_chars,
        max_pending_chars: settings.max_pending_chars,
        cwd: "/".into(),
        is_fed: false,
        in_terminal: false,
        lock: settings.lock.clone(),
    };
    let owner = CommandOwner { scope: String::new(), is_elevated: false, told: None, kept: settings.kept };
    let session = settings.sessions.start("login-path", &owner, order).ok()?;
    let _foreground = Foreground(&session);
    cancel.run_until_cancelled(session.ended()).await?;
    // The profile may print; the path is the last line.
    let printed = session.printed();
    let has_succeeded = session.end()?.ending == CommandEnding::Exited(0);
    let path = printed.lines().last().filter(|_| has_succeeded)?.trim();
    path.contains('/').then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn names_that_change_what_code_runs_are_refused() {
        for name in "LD_PRELOAD LD_ANY ld_library_path DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONHOME RUBYLIB \
                     PERL5LIB BASH_ENV ENV env GCONV_PATH IFS SSLKEYLOGFILE"
            .split_whitespace()
        {
            let text = format!(
                "Security Violation: Environment variable '{name}' is forbidden during host execution."
            );
            assert_eq!(forbidden(name), Some(text));
        }
        let path = "Security Violation: Custom 'PATH' variable is forbidden during host execution.";
        assert_eq!(forbidden("Path").as_deref(), Some(path));
        for name in ["HOME", "ENVIRONMENT", "NODE_ENV"] {
            assert_eq!(forbidden(name), None);
        }
    }

    fn settings(environment: &[(&str, &str)], prepend: &[&str]) -> ExecSettings {
        let config = openclaw_config::settings::Exec {
            path_prepend: Some(prepend.iter().map(|entry| (*entry).to_owned()).collect()),
            ..Default::default()
        };
        ExecSettings::new(&config, openclaw_config::Environment::new(environment.iter().copied(), "/"))
    }

    #[test]
    fn credentials_of_the_gateway_are_inherited_only_where_they_are_passed() {
        let mut settings = settings(&[("BOT_TOKEN", "1"), ("API_KEY", "2"), ("GITHUB_TOKEN", "3")], &[]);
        settings.withheld = Arc::new(["API_KEY", "BOT_TOKEN"].map(str::to_owned).into());
        settings.pass_env = vec!["API_KEY".into(), "NEVER_SET".into()];
        let names = |asked: &[(String, String)]| {
            compose(&settings, asked, None).into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&[]), "API_KEY GITHUB_TOKEN");
        assert_eq!(names(&[("BOT_TOKEN".into(), "own".into())]), "API_KEY GITHUB_TOKEN BOT_TOKEN");
    }

    #[test]
    fn path_entries_are_prepended_once_each() {
        let compose = |prepend: &[&str], asked: Option<&str>, login| {
            let asked: Vec<_> = asked.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect();
            let out = compose(&settings(&[("A", "1"), ("PATH", "/usr/bin:/bin")], prepend), &asked, login);
            out.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(compose(&[], None, None), "A=1 PATH=/usr/bin:/bin");
        assert_eq!(compose(&["/x", "/bin", " "], None, None), "A=1 PATH=/x:/bin:/usr/bin");
        assert_eq!(compose(&["/x"], Some("/y"), None), "A=1 PATH=/x:/y");
        assert_eq!(compose(&["/x"], None, Some("/l:/usr/bin")), "A=1 PATH=/x:/l:/usr/bin:/bin");
    }

    #[test]
    fn the_shell_is_the_owners_unless_it_is_fish() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("bash"), "").unwrap();
        let bin = dir.path().to_str().unwrap();
        for (environment, expect) in [
            (vec![], "sh".to_owned()),
            (vec![("SHELL", "/bin/zsh")], "/bin/zsh".into()),
            (vec![("SHELL", "/usr/bin/fish"), ("PATH", "/nowhere")], "sh".into()),
            (vec![("SHELL", "/usr/bin/fish"), ("PATH", bin)], format!("{bin}/bash")),
        ] {
            assert_eq!(shell(&settings(&environment, &[])), expect);
        }
    }
}
