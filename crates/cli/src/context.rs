//! Context of every command: the environment, the loaded config, how to print.

use std::path::Path;
use std::sync::Arc;

use openclaw_config::{
    Config, ConfigIssueKind, Environment, Issue, Loaded, Paths, profile, shared_place, unknown_keys,
};
use openclaw_protocol::AgentId;

use crate::failure::CommandFailure;
use crate::output::{self, Style};

/// Settings from the flags and the environment, resolved once.
#[derive(Debug)]
pub(crate) struct CliContext {
    /// Config, paths and environment.
    pub(crate) loaded: Arc<Loaded>,
    process: Environment,
    /// Colour.
    pub(crate) style: Style,
}

/// Reasons why a config can't be used, as people are told.
#[derive(Debug)]
pub(crate) struct Mistakes<'a> {
    /// Mistakes that somebody has to mend.
    pub(crate) issues: Vec<&'a Issue>,
    /// Sentence about keys of older versions, which are moved without anybody's help after that.
    pub(crate) moved: Option<String>,
}

impl<'a> Mistakes<'a> {
    pub(crate) fn of(issues: &'a [Issue]) -> Self {
        let (old, mistakes): (Vec<&Issue>, Vec<&Issue>) = issues.iter().partition(|issue| issue.is_old_key());
        if mistakes.is_empty() || old.is_empty() {
            return Self { issues: issues.iter().collect(), moved: None };
        }
        let names: Vec<&str> = old.iter().map(|issue| issue.path.as_str()).collect();
        let moved = format!("Keys of older versions move by themselves after that: {}.", names.join(", "));
        Self { issues: mistakes, moved: Some(moved) }
    }
}

impl CliContext {
    /// Reads the config of an environment.
    pub(crate) fn new(env: &Environment, no_color: bool) -> Self {
        let loaded = Arc::new(openclaw_config::load(env));
        let style = Style::of(&loaded.environment, no_color);
        Self { loaded, process: env.clone(), style }
    }

    /// Paths of this instance's files.
    pub(crate) fn paths(&self) -> &Paths {
        &self.loaded.paths
    }

    /// The environment as it was given, for a daemon that reads the rest itself.
    pub(crate) fn process(&self) -> &Environment {
        &self.process
    }

    /// The environment, `.env` files applied.
    pub(crate) fn env(&self) -> &Environment {
        &self.loaded.environment
    }

    /// The config for a command that can't do without; variables that are not set here are absent.
    ///
    /// # Errors
    /// The block that names every problem (spec `cli.md` §1.5).
    pub(crate) fn config(&self) -> Result<&Arc<Config>, CommandFailure> {
        self.loaded.config_for_reading().map_err(|_| self.invalid_config())
    }

    /// The agent that a command is about: the one asked for, else the default one.
    ///
    /// # Errors
    /// When the config can't be used or has no such agent.
    pub(crate) fn agent(&self, asked: Option<&str>) -> Result<AgentId, CommandFailure> {
        let config = self.config()?;
        let id = asked.map_or_else(|| config.default_agent(), AgentId::normalize);
        if !config.has_agent(&id) {
            return Err(CommandFailure::new("unknown-agent", format!("Unknown agent id \"{id}\"."))
                .hint("Run `openclaw agents list` for the configured ones."));
        }
        Ok(id)
    }

    /// The config if it is valid, else the defaults, for commands that help to repair it.
    pub(crate) fn config_or_default(&self) -> Arc<Config> {
        self.loaded
            .config_for_reading()
            .cloned()
            .unwrap_or_else(|_| Config::from_json5("{}", self.env()).unwrap_or_default())
    }

    /// Says what was migrated or is odd, on stderr: for the command that tells of everything.
    pub(crate) fn print_warnings(&self) {
        let snapshot = &self.loaded.snapshot;
        if !snapshot.migrated.is_empty() {
            let lines = snapshot.migrated.join("\n- ");
            output::error_line(&self.style.warn(&format!(
                "{} has old keys; they were read as follows (the file is unchanged; `openclaw doctor --fix` rewrites it):\n- {lines}",
                self.short(&snapshot.path),
            )));
        }
        snapshot.warnings.iter().for_each(|warning| self.print_warning(warning));
    }

    /// Prints the warnings about these sections of the config on stderr: a command only tells of
    /// the sections it is about.
    pub(crate) fn print_warnings_about(&self, sections: &[&str]) {
        let is_asked =
            |warning: &&Issue| warning.path.split('.').next().is_some_and(|first| sections.contains(&first));
        self.loaded.snapshot.warnings.iter().filter(is_asked).for_each(|warning| self.print_warning(warning));
    }

    fn print_warning(&self, warning: &Issue) {
        output::error_line(&self.style.warn(&format!("config warning: {}", warning.line())));
    }

    /// Failure for a config that can't be used.
    pub(crate) fn invalid_config(&self) -> CommandFailure {
        let snapshot = &self.loaded.snapshot;
        let Mistakes { issues, moved } = Mistakes::of(&snapshot.issues);
        let are_old = issues.first().is_some_and(|issue| issue.is_old_key());
        let heading = if are_old { "Legacy config keys detected" } else { "Problem" };
        let lines: Vec<String> = issues.iter().map(|issue| format!("  - {}", issue.line())).collect();
        let text =
            format!("Config invalid\nFile: {}\n{heading}:\n{}", self.short(&snapshot.path), lines.join("\n"));
        let moved = moved.map(|told| format!(" {told}")).unwrap_or_default();
        CommandFailure::new("config-invalid", text)
            .hint(format!("\n{}, then run the command again.{moved}", self.config_fix()))
    }

    /// Remedy that makes the config usable, without a full stop.
    pub(crate) fn config_fix(&self) -> String {
        let snapshot = &self.loaded.snapshot;
        let path = snapshot.path.display();
        if self.is_config_readable() {
            let is_empty = snapshot.raw.as_ref().is_some_and(|text| text.trim().is_empty());
            let fix = match snapshot.is_parsable() {
                true => self.fix_of_issues(),
                false if is_empty => format!("Remove the empty file {path} and run `openclaw setup`"),
                false => format!("Fix the text at that line in {path}"),
            };
            let fix = if snapshot.is_parsable() && !unknown_keys(&snapshot.parsed).is_empty() {
                format!(
                    "{fix}, or take unknown keys out with `{}`",
                    self.hint_command("openclaw doctor --remove-unknown")
                )
            } else {
                fix
            };
            return fix + &self.or_put_back();
        }
        match shared_place::open(&snapshot.path) {
            Err(error)
                if error.kind() == std::io::ErrorKind::PermissionDenied
                    && !shared_place::is_not_ours(&error) =>
            {
                format!(
                    "Let this user read {path} (as its owner: chmod 600 {path}; else, if you know what is in it: sudo chown $USER {path})"
                )
            }
            Ok(_) | Err(_) => format!("Put a readable config file at {path}"),
        }
    }

    /// Remedy for a config that can be parsed, without a full stop.
    fn fix_of_issues(&self) -> String {
        let snapshot = &self.loaded.snapshot;
        let path = snapshot.path.display();
        let are_all = |kind| snapshot.issues.iter().all(|issue| issue.kind == kind);
        if are_all(ConfigIssueKind::MissingVariable) {
            let env_file = self.paths().state_dir().join(".env");
            return format!(
                "Set what is named above in the environment or in {}, or write the value into {path}",
                env_file.display()
            );
        }
        if are_all(ConfigIssueKind::Include) {
            return format!("Put the included file in order, or correct its $include in {path}");
        }
        format!("Fix what is named above in {path}")
    }

    /// Clause about the copy of the config from before its last change; empty if there is none.
    pub(crate) fn or_put_back(&self) -> String {
        let backup = self.loaded.snapshot.path.with_added_extension("bak");
        let told = || format!(", or put back {} (what it was before the last change)", backup.display());
        backup.exists().then(told).unwrap_or_default()
    }

    /// True if the text of the config could be read; a config that does not exist is an empty one.
    pub(crate) fn is_config_readable(&self) -> bool {
        !self.loaded.snapshot.exists || self.loaded.snapshot.raw.is_some()
    }

    /// Clause that says that the config can't be used, with the first reason: for a sentence to go
    /// on with.
    pub(crate) fn unusable_config(&self) -> String {
        let snapshot = &self.loaded.snapshot;
        let why =
            Issue::foremost(&snapshot.issues).map(|issue| format!(" ({})", issue.line())).unwrap_or_default();
        format!("The config {} cannot be used{why}", self.short(&snapshot.path))
    }

    /// The same instance with its files read anew, after a command has changed them.
    pub(crate) fn reread(&self) -> Self {
        let loaded = Arc::new(openclaw_config::load(&self.process));
        Self { loaded, process: self.process.clone(), style: self.style }
    }

    /// A path with `~` for the home directory.
    pub(crate) fn short(&self, path: &Path) -> String {
        self.env().with_tilde(path)
    }

    /// A command as this user has to type it.
    pub(crate) fn hint_command(&self, command: &str) -> String {
        profile::command_hint(command, self.env())
    }
}
