//! Matching of people with entries of lists: by id, by telephone number, or by a name that the
//! platform resolved to an id at the start (decisions 21 and 53). Display names count for nothing:
//! anybody may choose another person's id or name as their display name, or take over a name that
//! was given up.

use crate::Sender;

/// A person with the ids and names by which lists know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedPerson<'a> {
    /// The person as the platform describes them.
    pub sender: &'a Sender,
    /// Names in lists that were resolved at the start and mean the person.
    pub names: &'a [String],
}

impl<'a> ListedPerson<'a> {
    /// Returns everything that the person is known by: the id first, then the telephone number and names.
    pub fn known_by(self) -> impl Iterator<Item = &'a str> {
        let numbers = [Some(&self.sender.id), self.sender.phone.as_ref()];
        numbers.into_iter().flatten().chain(self.names).map(String::as_str)
    }

    /// True if the entry of a list names the person. `*` names nobody here: each list decides what that means.
    pub fn is_named(self, entry: &str, channel: &str) -> bool {
        self.known_by().any(|known| is_same(entry, known, channel))
    }
}

/// True if an entry of a list equals what somebody is known by. `telegram:@Ada` equals `ada`.
pub fn is_same(entry: &str, known: &str, channel: &str) -> bool {
    let (entry, known) = (plain(entry, channel), plain(known, channel));
    !known.is_empty() && known != "*" && entry == known
}

/// True if an entry of a list means everybody.
pub fn is_everybody(entry: &str, channel: &str) -> bool {
    plain(entry, channel) == "*"
}

fn plain(name: &str, channel: &str) -> String {
    let lower = name.trim().to_lowercase();
    let bare = lower.strip_prefix(channel).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&lower);
    bare.trim_start_matches('@').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_known_by_ids_and_looked_up_names_and_by_nothing_they_call_themselves() {
        let sender = Sender {
            id: "7".to_owned(),
            phone: Some("+1555".to_owned()),
            username: Some("eve".to_owned()),
            name: Some("1111".to_owned()),
            ..Sender::default()
        };
        let names = ["@ada".to_owned()];
        let listed = ListedPerson { sender: &sender, names: &names };
        for (entry, expect) in [
            ("7", true),
            (" telegram:7 ", true),
            ("+1555", true),
            ("@ADA", true),
            ("telegram:ada", true),
            ("1111", false),
            ("@eve", false),
            ("eve", false),
            ("*", false),
            ("", false),
        ] {
            assert_eq!(listed.is_named(entry, "telegram"), expect, "{entry}");
        }
        let nobody = Sender::default();
        assert!(!ListedPerson { sender: &nobody, names: &[] }.is_named("", "telegram"));
    }
}
