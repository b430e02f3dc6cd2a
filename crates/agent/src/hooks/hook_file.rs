//! `HOOK.md`: what a hook says of itself (spec `agent-runtime.md` §8.1).

use serde::Serialize;

use super::event::{Subscription, UnknownEvent};
use crate::frontmatter::{FrontmatterError, Manifest, MarkdownDocument};
use crate::requirements::{Requirements, Strictness};

/// Content of a `HOOK.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct HookFile {
    /// Name from the frontmatter, or the directory's name.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// Emoji for people.
    pub emoji: Option<String>,
    /// Homepage for people.
    pub homepage: Option<String>,
    /// Key of the hook below `hooks.internal.entries`.
    pub key: String,
    /// The names of what it wants to be told of, as written.
    pub events: Vec<String>,
    /// Subscriptions to known events.
    pub subscriptions: Vec<Subscription>,
    /// Names of unknown events.
    pub unknown_events: Vec<UnknownEvent>,
    /// Priority at hook points: higher ones run first.
    pub priority: f64,
    /// Requirements of the hook.
    pub requirements: Requirements,
    /// Strictness with which the requirements are checked.
    pub strictness: Strictness,
    /// Export of the handler that is called, where the handler is JavaScript.
    pub export: String,
    /// Ways to obtain the hook.
    pub install: Vec<Install>,
}

/// A way to have a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Install {
    /// Name of the way to obtain the hook.
    pub id: String,
    /// `bundled`, `npm` or `git`.
    pub kind: String,
    /// Label for people.
    pub label: String,
    /// Programs it brings.
    pub bins: Vec<String>,
}

/// Error in a `HOOK.md`. The hook is reported and not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookFileError {
    /// The frontmatter can't be read.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// The file does not list any events.
    #[error("it names no events (metadata.openclaw.events)")]
    NoEvents,
    /// The name could be taken for something else.
    #[error("its name has control characters or is longer than {MAX_NAME} characters")]
    Name,
}

const MAX_NAME: usize = 128;

impl HookFile {
    /// Reads the text of a `HOOK.md` that lies in a directory of this name.
    ///
    /// # Errors
    /// [`HookFileError`].
    pub fn parse(text: &str, directory: &str) -> Result<Self, HookFileError> {
        let frontmatter = MarkdownDocument::parse(text)?.frontmatter;
        let manifest = frontmatter.manifest()?.unwrap_or_default();
        let name = frontmatter.text("name").unwrap_or(directory).to_owned();
        if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(HookFileError::Name);
        }
        let events = manifest.list("events");
        if events.is_empty() {
            return Err(HookFileError::NoEvents);
        }
        let (known, unknown): (Vec<_>, Vec<_>) =
            events.iter().map(|name| Subscription::parse(name)).partition(Result::is_ok);
        let text = |key: &str| manifest.text(key).map(str::to_owned);
        Ok(Self {
            key: text("hookKey").unwrap_or_else(|| name.clone()),
            description: frontmatter.text("description").unwrap_or_default().to_owned(),
            emoji: text("emoji").or_else(|| frontmatter.text("emoji").map(str::to_owned)),
            homepage: text("homepage").or_else(|| frontmatter.text("homepage").map(str::to_owned)),
            events,
            subscriptions: known.into_iter().filter_map(Result::ok).collect(),
            unknown_events: unknown.into_iter().filter_map(Result::err).collect(),
            priority: manifest.number("priority").unwrap_or_default(),
            requirements: manifest.requirements(),
            strictness: Strictness::of_always(manifest.switch("always")),
            export: text("export").unwrap_or_else(|| "default".to_owned()),
            install: manifest.objects("install").iter().enumerate().filter_map(install).collect(),
            name,
        })
    }
}

fn install((at, given): (usize, &Manifest)) -> Option<Install> {
    let kind = given.text("kind").filter(|kind| matches!(*kind, "bundled" | "npm" | "git"))?.to_owned();
    let label = match kind.as_str() {
        "bundled" => "Bundled with OpenClaw",
        "npm" => "Install from npm",
        _ => "Install from a git repository",
    };
    Some(Install {
        id: given.text("id").map_or_else(|| format!("{kind}-{at}"), str::to_owned),
        label: given.text("label").unwrap_or(label).to_owned(),
        bins: given.list("bins"),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::super::event::{CommandAction, EventKind};
    use super::super::point::HookPoint;
    use super::*;

    fn hook(metadata: &str) -> Result<HookFile, HookFileError> {
        HookFile::parse(&format!("---\ndescription: d\nmetadata: {metadata}\n---\n"), "dir")
    }

    #[test]
    fn a_hook_says_what_it_wants_and_needs() {
        let file = hook(
            "{openclaw: {events: ['command:new', 'tool:done', 'after_tool_call'], hookKey: 'k', priority: 2.5, always: true,
              requires: {bins: ['git']}, export: 'run', install: [{kind: 'npm'}, {kind: 'curl'}]}}",
        )
        .unwrap();
        assert_eq!((file.name.as_str(), file.key.as_str(), file.export.as_str()), ("dir", "k", "run"));
        assert_eq!(
            file.subscriptions,
            [
                Subscription::Event(EventKind::Command(CommandAction::New)),
                Subscription::Point(HookPoint::AfterToolCall)
            ]
        );
        assert_eq!(file.unknown_events, [UnknownEvent::Unknown("tool:done".into())]);
        assert_eq!((file.priority, file.strictness), (2.5, Strictness::PlatformOnly));
        assert_eq!(file.requirements.bins, ["git"]);
        assert_eq!(file.install.len(), 1);
        assert_eq!(file.install[0].id, "npm-0");
    }

    #[test]
    fn what_is_no_hook_says_why() {
        assert_eq!(hook("{openclaw: {}}"), Err(HookFileError::NoEvents));
        assert_eq!(HookFile::parse("# Notes", "dir"), Err(HookFileError::NoEvents));
        assert!(matches!(hook("{openclaw: {"), Err(HookFileError::Frontmatter(_))));
        let long =
            format!("---\nname: {}\nmetadata: {{openclaw: {{events: 'command'}}}}\n---", "n".repeat(200));
        assert_eq!(HookFile::parse(&long, "dir"), Err(HookFileError::Name));
    }

    #[test]
    fn the_bundled_ones_are_hooks() {
        for (hook, name, text) in super::super::bundled::ALL {
            let file = HookFile::parse(text, "other").unwrap();
            assert_eq!((file.name.as_str(), file.key.as_str(), hook.name()), (name, name, name));
            assert!(file.unknown_events.is_empty() && file.emoji.is_some() && file.install.len() == 1);
        }
    }
}
