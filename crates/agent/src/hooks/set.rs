//! The hooks in use: who is asked, and in which order.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openclaw_config::settings::{HookCommand, HookEntry, HookModule};
use openclaw_config::{Config, Secret};

use super::bundled::Bundled;
use super::discover::{Home, Hook, Places, Problem, discover};
use super::event::{EventKind, Subscription};
use super::gate::Gate;
use super::handler::Handler;
use super::point::HookPoint;
use super::program::Program;

/// Action that is done for a hook.
#[derive(Debug, Clone)]
pub enum Action {
    /// Action of the gateway's own.
    BuiltIn(Bundled),
    /// A program is run.
    Program(Arc<Program>),
}

/// Action registered for events or for a hook point.
#[derive(Debug, Clone)]
struct Registered {
    subscription: Subscription,
    priority: f64,
    action: Action,
}

/// All hooks in use. Most gateways have none.
#[derive(Debug, Clone, Default)]
pub struct HookSet {
    /// Handlers of events, in order of registration.
    events: Vec<Registered>,
    /// Handlers of hook points, by priority, then in order of registration.
    points: Vec<Registered>,
}

impl HookSet {
    /// Loads the hooks of a configuration; none where they are off. Says in the log what it uses and what it can't. Blocking.
    pub fn load(config: &Config) -> Self {
        let settings = &config.hooks.internal;
        let mut set = Self::default();
        if !settings.is_on() {
            return set;
        }
        let gate = Gate::new(config);
        let found = discover(&Places::of(config));
        for problem in &found.problems {
            tracing::warn!(path = %problem.path.display(), "hook not loaded: {}", problem.text);
        }
        for hook in &found.hooks {
            set.add_hook(hook, &gate, settings.entries.get(&hook.about.key));
        }
        for handler in &settings.handlers {
            set.add_module(handler, &gate, config.environment().cwd());
        }
        for command in &settings.commands {
            set.add_command(command, &gate, config);
        }
        set.points.sort_by(|a, b| b.priority.total_cmp(&a.priority));
        tracing::info!("loaded {} internal hook handlers", set.events.len() + set.points.len());
        set
    }

    fn add_hook(&mut self, hook: &Hook, gate: &Gate<'_>, entry: Option<&HookEntry>) {
        let about = &hook.about;
        let standing = gate.standing(hook);
        if standing.disabled || !standing.missing.is_empty() {
            tracing::debug!(hook = %about.name, missing = ?standing.missing, "hook is not used");
            return;
        }
        let action = match standing.handler {
            Ok(Handler::BuiltIn(hook)) => Action::BuiltIn(hook),
            Ok(Handler::Command { command, .. }) => {
                let env = entry.map(|entry| entry.env.clone()).unwrap_or_default();
                let dir = match &hook.home {
                    Home::Directory(dir) => dir.clone(),
                    Home::BuiltIn(_) => PathBuf::from("/"),
                };
                Action::program(&about.name, command, dir, env.into_iter().collect())
            }
            Err(problem) => {
                let guard = about.subscriptions.iter().find_map(|subscription| unguarded(*subscription));
                let why = with_guard(problem.to_string(), guard);
                tracing::warn!(hook = %about.name, "hook not loaded: {why}");
                return;
            }
        };
        for unknown in &about.unknown_events {
            tracing::warn!(hook = %about.name, "{unknown}");
        }
        for subscription in &about.subscriptions {
            self.add(*subscription, about.priority, action.clone());
        }
        tracing::info!("Registered hook: {} -> {}", about.name, about.events.join(", "));
    }

    /// `hooks.internal.handlers`, OpenClaw's older way. A relative path is one from where the gateway was started.
    fn add_module(&mut self, given: &HookModule, gate: &Gate<'_>, cwd: &Path) {
        match module(given, gate, cwd) {
            Ok((subscription, command)) => {
                let dir = cwd.join(&given.module).parent().unwrap_or(cwd).to_owned();
                self.add(subscription, 0.0, Action::program(&given.module, command, dir, Vec::new()));
                tracing::info!("Registered hook (legacy): {} -> {}", given.event, given.module);
            }
            Err(why) => {
                tracing::warn!(event = %given.event, module = %given.module, "hook not loaded: {why}")
            }
        }
    }

    /// `hooks.internal.commands`, ours.
    fn add_command(&mut self, given: &HookCommand, gate: &Gate<'_>, config: &Config) {
        match command_line(given, gate, config) {
            Ok((subscription, command)) => {
                let program = given.command.first().map(String::as_str).unwrap_or_default();
                let dir = config.paths().state_dir().to_owned();
                let action = Action::program(program, command, dir, Vec::new());
                self.add(subscription, given.priority.unwrap_or_default(), action);
                tracing::info!("Registered hook: {} -> {program}", given.event);
            }
            Err(why) => {
                tracing::warn!(event = %given.event, "hook not loaded: {}", with_guard(why, guard_of(&given.event)))
            }
        }
    }

    fn add(&mut self, subscription: Subscription, priority: f64, action: Action) {
        let registered = Registered { subscription, priority, action };
        match subscription {
            Subscription::Point(_) => self.points.push(registered),
            Subscription::Family(_) | Subscription::Event(_) => self.events.push(registered),
        }
    }

    /// Returns true if no handler is registered.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.points.is_empty()
    }

    /// Returns the handlers of an event: first those of its family, then those of the event itself,
    /// each in order of registration.
    pub fn of_event(&self, kind: EventKind) -> impl Iterator<Item = &Action> {
        let families =
            self.events.iter().filter(move |known| known.subscription == Subscription::Family(kind.family()));
        let own = self.events.iter().filter(move |known| known.subscription == Subscription::Event(kind));
        families.chain(own).map(|known| &known.action)
    }

    /// The programs at a point, higher priorities first.
    pub fn at_point(&self, point: HookPoint) -> impl Iterator<Item = &Arc<Program>> {
        let asked = self.points.iter().filter(move |known| known.subscription == Subscription::Point(point));
        asked.filter_map(|known| match &known.action {
            Action::Program(program) => Some(program),
            Action::BuiltIn(_) => None,
        })
    }

    /// Returns true if any handler is subscribed to an event.
    pub fn hears(&self, kind: EventKind) -> bool {
        self.of_event(kind).next().is_some()
    }

    /// Returns true if there is a program at a hook point.
    pub fn asks(&self, point: HookPoint) -> bool {
        self.at_point(point).next().is_some()
    }
}

/// Returns the hooks that somebody wants and that are not loaded, each with the reason; none where hooks are off. Blocking.
pub fn not_loaded(config: &Config) -> Vec<Problem> {
    if !config.hooks.internal.is_on() {
        return Vec::new();
    }
    let gate = Gate::new(config);
    let found = discover(&Places::of(config));
    let of_hook = |hook: &Hook| {
        let standing = gate.standing(hook);
        let is_wanted = !standing.disabled && standing.missing.is_empty();
        let why = standing.handler.err().filter(|_| is_wanted)?.to_string();
        let guard = hook.about.subscriptions.iter().find_map(|subscription| unguarded(*subscription));
        Some(Problem { path: PathBuf::from(&hook.about.name), text: with_guard(why, guard) })
    };
    let hooks: Vec<Problem> = found.hooks.iter().filter_map(of_hook).collect();
    found.problems.into_iter().chain(hooks).chain(problems_of_settings(&gate, config)).collect()
}

/// Text about a hook that could refuse something and is not there to do so.
fn unguarded(subscription: Subscription) -> Option<&'static str> {
    match subscription {
        Subscription::Point(HookPoint::BeforeToolCall) => Some("Until then no tool call is refused by it."),
        Subscription::Point(HookPoint::MessageSending) => Some("Until then no message is kept back by it."),
        Subscription::Point(_) | Subscription::Family(_) | Subscription::Event(_) => None,
    }
}

fn guard_of(event: &str) -> Option<&'static str> {
    Subscription::parse(event).ok().and_then(unguarded)
}

fn with_guard(why: String, guard: Option<&str>) -> String {
    match guard {
        Some(guard) => format!("{why}. {guard}"),
        None => why,
    }
}

/// Returns the problems of programs that `hooks.internal` names without a directory. Blocking.
pub fn problems_of_settings(gate: &Gate<'_>, config: &Config) -> Vec<Problem> {
    let settings = &config.hooks.internal;
    let problem = |list: &str, at: usize, event: &str, why: String| Problem {
        path: PathBuf::from(format!("hooks.internal.{list}.{at}")),
        text: with_guard(why, guard_of(event)),
    };
    let modules = settings.handlers.iter().enumerate().filter_map(|(at, given)| {
        let why = module(given, gate, config.environment().cwd()).err()?;
        Some(problem("handlers", at, &given.event, why))
    });
    let commands = settings.commands.iter().enumerate().filter_map(|(at, given)| {
        let why = command_line(given, gate, config).err()?;
        Some(problem("commands", at, &given.event, why))
    });
    modules.chain(commands).collect()
}

/// Returns the subscription and the command of an entry of `hooks.internal.handlers`.
fn module(given: &HookModule, gate: &Gate<'_>, cwd: &Path) -> Result<(Subscription, Vec<OsString>), String> {
    let subscription = Subscription::parse(&given.event).map_err(|why| why.to_string())?;
    gate.require_private_settings()?;
    let export = given.export.as_deref().unwrap_or("default");
    let command = gate.runtimes.command(&cwd.join(&given.module), export).map_err(|why| why.to_string())?;
    Ok((subscription, command))
}

/// Returns the subscription and the command of an entry of `hooks.internal.commands`.
fn command_line(
    given: &HookCommand,
    gate: &Gate<'_>,
    config: &Config,
) -> Result<(Subscription, Vec<OsString>), String> {
    let subscription = Subscription::parse(&given.event).map_err(|why| why.to_string())?;
    gate.require_private_settings()?;
    let (program, arguments) =
        given.command.split_first().ok_or("its command is empty; name a program and its arguments")?;
    let file = match program.contains('/') || program.starts_with('~') {
        true => config.environment().expand_path(program),
        false => gate.bins().find(program).ok_or_else(|| {
            format!("there is no program {program} on PATH; install it, or write its whole path")
        })?,
    };
    let mut command = gate.runtimes.command(&file, "default").map_err(|why| why.to_string())?;
    // An interpreter runs what an argument names.
    let scripts = arguments.iter().map(|argument| config.paths().state_dir().join(argument));
    for script in scripts.filter(|script| script.exists()) {
        gate.bins().sandboxes().refuse(&script).map_err(|why| why.to_string())?;
    }
    command.extend(arguments.iter().map(OsString::from));
    Ok((subscription, command))
}

impl Action {
    fn program(hook: &str, command: Vec<OsString>, dir: PathBuf, env: Vec<(String, Secret)>) -> Self {
        Self::Program(Arc::new(Program { hook: hook.to_owned(), command, dir, env }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use openclaw_config::Environment;

    use super::*;
    use crate::hooks::event::CommandAction;

    /// A set of programs that are never started, named by their first word.
    pub(in crate::hooks) fn set(rows: &[(&str, &str, f64)]) -> HookSet {
        let mut set = HookSet::default();
        for (event, name, priority) in rows {
            let action = Action::program(name, vec![OsString::from(name)], "/".into(), Vec::new());
            set.add(Subscription::parse(event).unwrap(), *priority, action);
        }
        set.points.sort_by(|a, b| b.priority.total_cmp(&a.priority));
        set
    }

    fn names<'a>(programs: impl Iterator<Item = &'a Arc<Program>>) -> String {
        programs.map(|program| program.hook.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn families_come_first_and_priorities_order_points() {
        let set = set(&[
            ("command:new", "a", 9.0),
            ("command", "b", 0.0),
            ("command:new", "c", 99.0),
            ("before_tool_call", "low", -1.5),
            ("before_tool_call", "first", 0.0),
            ("before_tool_call", "second", 0.0),
            ("before_tool_call", "high", 10.0),
            ("agent_end", "other", 100.0),
        ]);
        let told = |kind| {
            let programs = set.of_event(kind).map(|action| match action {
                Action::Program(program) => program,
                Action::BuiltIn(hook) => panic!("{hook:?}"),
            });
            names(programs)
        };
        assert_eq!(told(EventKind::Command(CommandAction::New)), "b a c");
        assert_eq!(told(EventKind::Command(CommandAction::Stop)), "b");
        assert_eq!(names(set.at_point(HookPoint::BeforeToolCall)), "high first second low");
        assert!(!set.hears(EventKind::AgentBootstrap) && !set.asks(HookPoint::GatewayStop));
    }

    fn loaded(hooks: &str) -> HookSet {
        let environment = Environment::new([("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")], "/");
        HookSet::load(
            &Config::from_json5(&format!("{{hooks: {{internal: {hooks}}}}}"), &environment).unwrap(),
        )
    }

    #[test]
    fn hooks_are_off_until_they_are_switched_on() {
        assert!(loaded("{}").is_empty());
        assert!(loaded("{enabled: false, commands: [{event: 'agent_end', command: ['true']}]}").is_empty());
        let set = loaded("{enabled: true}");
        let built_in = |kind| {
            let hooks = set.of_event(kind).filter_map(|action| match action {
                Action::BuiltIn(hook) => Some(hook.name()),
                Action::Program(_) => None,
            });
            hooks.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(built_in(EventKind::Command(CommandAction::New)), "command-logger session-memory");
        assert_eq!(built_in(EventKind::GatewayStartup), "boot-md");
        assert_eq!(built_in(EventKind::AgentBootstrap), "", "soul-evil wants to be switched on");
        let set =
            loaded("{enabled: true, entries: {'soul-evil': {enabled: true}, 'boot-md': {enabled: false}}}");
        assert!(set.hears(EventKind::AgentBootstrap) && !set.hears(EventKind::GatewayStartup));
    }

    #[test]
    fn programs_of_the_configuration_are_found_or_named_in_the_log() {
        let set = loaded(
            "{enabled: true, commands: [
                {event: 'agent_end', command: ['sh', '-c', 'cat'], priority: 1},
                {event: 'agent_end', command: ['/no/such/file']},
                {event: 'agent_end', command: ['no-such-program']},
                {event: 'agent_ends', command: ['sh']},
            ], handlers: [{event: 'command:new', module: 'no-such.js'}, {event: 'x', module: '/bin/sh'}]}",
        );
        let programs: Vec<_> = set.at_point(HookPoint::AgentEnd).collect();
        assert_eq!(programs.len(), 1);
        assert_eq!(programs[0].command[1..], ["-c", "cat"]);
        assert_eq!(set.events.len(), 3, "the built-in ones alone");
    }
}
