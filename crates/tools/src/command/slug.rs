//! Two-word names of exec sessions, such as `mellow-meadow` (spec `tools.md` §3.2).

use std::hash::{DefaultHasher, Hash, Hasher};

const FIRST: [&str; 16] = [
    "amber", "brisk", "calm", "dapper", "early", "fair", "gentle", "hardy", "ivory", "jolly", "keen",
    "lucid", "mellow", "nimble", "quiet", "swift",
];
const SECOND: [&str; 16] = [
    "brook", "canyon", "dune", "fjord", "grove", "harbor", "inlet", "lagoon", "meadow", "orchard", "prairie",
    "reef", "shore", "tide", "valley", "willow",
];

/// A name for the command of a call that nobody has yet.
pub(super) fn free(call_id: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = of(call_id);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}

/// The name that the command of a call has where it is free.
pub(crate) fn of(call_id: &str) -> String {
    let mut hasher = DefaultHasher::new();
    call_id.hash(&mut hasher);
    let hash = hasher.finish();
    let word = |words: [&'static str; 16], bits: u64| {
        words.into_iter().cycle().nth((bits % 16) as usize).unwrap_or("calm")
    };
    format!("{}-{}", word(FIRST, hash), word(SECOND, hash >> 8))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_call_has_one_name_of_two_words() {
        assert_eq!(super::of("toolu_1"), super::of("toolu_1"));
        assert_eq!(super::of("toolu_1").split('-').count(), 2);
        let name = super::of("toolu_1");
        assert_eq!(super::free("toolu_1", |_| false), name);
        let third = super::free("toolu_1", |taken| taken == name || taken == format!("{name}-2"));
        assert_eq!(third, format!("{name}-3"));
    }
}
