//! Late messages: words that were sent while the gateway was offline are answered, but the commands
//! among them are not obeyed (spec `channels.md` §19.3). Text that stands for a command is taken
//! out, wherever it stands, and named.

use openclaw_journal::intent::{Intent, StoredDirective};
use openclaw_sessions::reset;
use openclaw_sessions::reset::trigger::strip_structural_prefixes;

use super::{KnownNames, Spoken, counting, found_among, model_aliases, read, stop};

/// Parts of a late message: its commands, and its words for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Late {
    /// Commands in the message, each once, in the order in which they were found.
    pub commands: Vec<String>,
    /// Text left for the agent.
    pub words: String,
}

/// Takes all commands out of a text.
pub fn without_commands(spoken: Spoken<'_>, names: KnownNames<'_>) -> Late {
    let mut late = Late { commands: Vec::new(), words: spoken.text.to_owned() };
    // The rest may be a command in its turn. Each time it is shorter.
    while let Some((found, words)) = take(Spoken { text: &late.words, ..spoken }, names) {
        for command in found {
            if !late.commands.contains(&command) {
                late.commands.push(command);
            }
        }
        late.words = words;
    }
    late
}

/// Takes the commands out of a text, or takes the text as one; returns them with the rest, or
/// `None` if there are none.
fn take(spoken: Spoken<'_>, names: KnownNames<'_>) -> Option<(Vec<String>, String)> {
    let all_of_it = |command: String| Some((vec![command], String::new()));
    let stripped = strip_structural_prefixes(spoken.text);
    if let Some(found) = reset::find_trigger(names.triggers, spoken.text, &stripped, spoken.may_command) {
        return Some((vec![found.trigger], found.rest));
    }
    if stop::is_stop(spoken.text) {
        return all_of_it(first_word(spoken.text));
    }
    match read(spoken, names) {
        Intent::Command { name, .. } => {
            let written = first_word(spoken.text);
            all_of_it(if written.starts_with('/') { written } else { format!("/{name}") })
        }
        Intent::Settings { wishes } => Some((named(wishes), String::new())),
        Intent::Tool(_) | Intent::Reworded { .. } => all_of_it(first_word(&stripped)),
        Intent::PromptFor { .. } => {
            let (wishes, shortcuts, words) = found_among(spoken, &model_aliases(names));
            let mut commands = named(counting(spoken, wishes));
            commands.extend(shortcuts.iter().map(|name| format!("/{name}")));
            Some((commands, words))
        }
        Intent::Prompt | Intent::Stripped { .. } | Intent::Ignored | Intent::Announcement => None,
    }
}

fn named(wishes: Vec<StoredDirective>) -> Vec<String> {
    wishes.into_iter().map(|wish| format!("/{}", wish.name)).collect()
}

/// Returns the command that a text begins with, as it was written.
pub fn first_word(text: &str) -> String {
    let text = text.trim();
    let end = text.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(text.len());
    text.get(..end).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use openclaw_models::reference::ModelNames;

    use super::*;

    #[test]
    fn commands_are_taken_out_and_words_stay() {
        type Row<'a> = (&'a str, &'a [&'a str], &'a str);
        let rows: [Row<'_>; 20] = [
            ("/model fake/fake-2 tell me a joke", &["/model"], "tell me a joke"),
            ("tell me a joke /model fake/fake-2 please", &["/model"], "tell me a joke please"),
            ("/queue interrupt please", &["/queue"], "please"),
            ("please /status now", &["/status"], "please now"),
            ("/status please", &["/status"], "please"),
            ("/new talk about x", &["/new"], "talk about x"),
            ("/NEW", &["/new"], ""),
            ("/new /think high talk", &["/new", "/think"], "talk"),
            ("/think high /verbose on", &["/think", "/verbose"], ""),
            ("/think high", &["/think"], ""),
            ("/think: high", &["/think"], ""),
            ("/think high stop", &["/think", "stop"], ""),
            ("abort", &["abort"], ""),
            ("/id", &["/id"], ""),
            ("! ls -l", &["/bash"], ""),
            ("/compact keep the numbers", &["/compact"], ""),
            // Words about commands.
            ("what does /think do?", &[], "what does /think do?"),
            ("/restart now", &[], "/restart now"),
            ("hello", &[], "hello"),
            ("", &[], ""),
        ];
        let models = ModelNames::new(&[]);
        let names = KnownNames { models: &models, triggers: &["/new", "/reset"], skills: &[] };
        for (text, commands, words) in rows {
            let late = without_commands(Spoken::words(text), names);
            let found: Vec<&str> = late.commands.iter().map(String::as_str).collect();
            assert_eq!((found.as_slice(), late.words.as_str()), (commands, words), "{text}");
        }
    }
}
