//! Inline code: what stands between two runs of as many backticks, in one paragraph.

use std::collections::HashMap;

/// Finds inline code in a text, from its beginning to its end. Each paragraph is looked through once, however many backticks it has.
pub(crate) struct CodeSpans<'a> {
    text: &'a str,
    /// End of the paragraph whose runs are known.
    end: usize,
    /// Starts of backtick runs, by their length.
    runs: HashMap<usize, Vec<usize>>,
}

impl<'a> CodeSpans<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, end: 0, runs: HashMap::new() }
    }

    /// Returns the end of the code span that the backtick run at a place opens; `None` if no other
    /// run closes it.
    pub(crate) fn end_of(&mut self, at: usize, run: usize) -> Option<usize> {
        self.read_paragraph(at);
        let places = self.runs.get(&run)?;
        let next = places.partition_point(|place| *place <= at);
        places.get(next).map(|place| place + run)
    }

    /// Returns true if the paragraph of a place extends to the end of the text.
    pub(crate) fn is_in_last_paragraph(&mut self, at: usize) -> bool {
        self.read_paragraph(at);
        self.end == self.text.len()
    }

    fn read_paragraph(&mut self, at: usize) {
        if at < self.end {
            return;
        }
        let rest = self.text.get(at..).unwrap_or_default();
        let paragraph = rest.get(..rest.find("\n\n").unwrap_or(rest.len())).unwrap_or_default();
        self.end = at + paragraph.len();
        self.runs.clear();
        let mut from = 0;
        while let Some(start) =
            paragraph.get(from..).and_then(|rest| rest.find('`')).map(|found| from + found)
        {
            let run = backticks(paragraph.get(start..).unwrap_or_default());
            self.runs.entry(run).or_default().push(at + start);
            from = start + run;
        }
    }
}

/// Returns the number of backticks at the start of a text.
pub(crate) fn backticks(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_with_as_many_backticks_as_it_began_with() {
        let rows = [
            ("`a` b", 0, Some(3)),
            ("``a` b`` c", 0, Some(8)),
            ("`a", 0, None),
            ("`a\n\nb`", 0, None),
            ("`a\nb`", 0, Some(5)),
            ("x `a` `b`", 6, Some(9)),
            ("a\n\n`b`", 3, Some(6)),
        ];
        for (text, at, expect) in rows {
            let run = backticks(&text[at..]);
            assert_eq!(CodeSpans::new(text).end_of(at, run), expect, "{text:?}");
        }
        let mut spans = CodeSpans::new("`a`\n\n`b");
        assert_eq!((spans.is_in_last_paragraph(0), spans.end_of(0, 1)), (false, Some(3)));
        assert_eq!((spans.is_in_last_paragraph(5), spans.end_of(5, 1)), (true, None));
    }
}
