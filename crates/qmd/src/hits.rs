//! From what `qmd` prints to hits. Pure.

use openclaw_memory::{Hit, cut};
use serde::Deserialize;
use serde_json::Value;

/// Text that some versions print in the place of an empty list.
const NOTHING: &str = "no results found";

/// A hit as `qmd` prints it.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct PrintedHit {
    docid: String,
    pub(crate) score: f64,
    pub(crate) snippet: String,
}

impl PrintedHit {
    /// The beginning of the document's hash; `None` if there is none.
    pub(crate) fn hash(&self) -> Option<&str> {
        let hash = self.docid.trim().trim_start_matches('#');
        (!hash.is_empty()).then_some(hash)
    }

    /// First and last line: those that the text's head names, else all that the text has.
    pub(crate) fn lines(&self) -> (u32, u32) {
        if let Some((start, count)) = head(&self.snippet) {
            return (start, start.saturating_add(count.max(1) - 1));
        }
        (1, u32::try_from(self.snippet.split('\n').count()).unwrap_or(u32::MAX))
    }
}

/// Reads a list of hits. Entries that are none are left out.
///
/// # Errors
/// A phrase that says what is wrong with the whole.
pub(crate) fn printed_hits(output: &[u8]) -> Result<Vec<PrintedHit>, String> {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    if text.get(..NOTHING.len()).is_some_and(|start| start.eq_ignore_ascii_case(NOTHING)) {
        return Ok(Vec::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Array(entries)) => {
            let read = entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok());
            Ok(read.filter(|hit: &PrintedHit| hit.score.is_finite()).collect())
        }
        Ok(_) => Err("no list".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Start and number of lines in a head like `@@ -3,2 @@`.
fn head(snippet: &str) -> Option<(u32, u32)> {
    let (_, behind) = snippet.split_once("@@ -")?;
    let (start, rest) = behind.split_once(',')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    Some((start.parse().ok()?, rest.get(..end)?.parse().ok()?))
}

/// Names of collections in what `qmd collection list --json` prints: texts, or objects with a name.
pub(crate) fn listed_names(output: &[u8]) -> Vec<String> {
    let Ok(Value::Array(entries)) = serde_json::from_slice(output) else { return Vec::new() };
    let name = |entry: &Value| entry.as_str().or_else(|| entry.get("name")?.as_str()).map(str::to_owned);
    entries.iter().filter_map(name).collect()
}

/// The best hits, each place once, with texts within these bounds in UTF-16 units.
pub(crate) fn best(mut hits: Vec<Hit>, most: usize, snippet: usize, total: usize) -> Vec<Hit> {
    hits.sort_by(|one, two| two.score.total_cmp(&one.score));
    let mut kept: Vec<Hit> = Vec::new();
    let mut left = total;
    for mut hit in hits {
        let is_known = kept.iter().any(|known| known.path == hit.path && known.start_line == hit.start_line);
        if is_known {
            continue;
        }
        if kept.len() == most || left == 0 {
            break;
        }
        hit.snippet = cut(&hit.snippet, snippet.min(left)).to_owned();
        left = left.saturating_sub(hit.snippet.encode_utf16().count());
        kept.push(hit);
    }
    kept
}

#[cfg(test)]
mod tests {
    use openclaw_memory::Source;

    use super::*;

    #[test]
    fn lines_stand_in_the_head_of_a_text() {
        for (snippet, expect) in [
            ("@@ -3,2 @@ (2 before, 1 after)\n- a\n- b", (3, 4)),
            ("@@ -1,4 @@\n# Team notes", (1, 4)),
            ("@@ -7,0 @@", (7, 7)),
            ("no header line\nsecond", (1, 2)),
            ("@@ -x,2 @@\n", (1, 2)),
            ("@@ -4294967295,9 @@", (u32::MAX, u32::MAX)),
            ("", (1, 1)),
        ] {
            let hit = PrintedHit { snippet: snippet.to_owned(), ..PrintedHit::default() };
            assert_eq!(hit.lines(), expect, "{snippet}");
        }
    }

    #[test]
    fn what_is_no_list_is_an_error_and_what_is_no_hit_is_left_out() {
        let hits =
            printed_hits(br#" [{"docid":"a","score":1}, 3, {"docid":7}, {"score":null}, {"docid":"b"}] "#)
                .unwrap();
        assert_eq!(hits.iter().filter_map(PrintedHit::hash).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(printed_hits(b"No results found.\n"), Ok(Vec::new()));
        for bad in ["", "oops", "{}", "[1", "\u{1f600}"] {
            assert!(printed_hits(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(printed_hits(&[0xff; 20]).is_err());
        assert_eq!(listed_names(br#"["a", {"name": "b", "path": "/x"}, 3, {}]"#), ["a", "b"]);
        assert_eq!(listed_names(b"memory-root"), [""; 0]);
    }

    #[test]
    fn texts_fit_their_bounds() {
        let hit = |path: &str, score, text: &str| Hit {
            path: path.to_owned(),
            start_line: 1,
            end_line: 1,
            score,
            snippet: text.to_owned(),
            source: Source::Memory,
        };
        let all = || {
            vec![
                hit("a", 0.1, "aaaa"),
                hit("b", 0.9, "\u{1f600}bbbbb"),
                hit("c", 0.5, "cccc"),
                hit("b", 0.2, "b"),
            ]
        };
        let texts = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.snippet).collect::<Vec<_>>();
        assert_eq!(texts(best(all(), 6, 5, 100)), ["\u{1f600}bbb", "cccc", "aaaa"]);
        assert_eq!(texts(best(all(), 6, 700, 9)), ["\u{1f600}bbbbb", "cc"]);
        assert_eq!(texts(best(all(), 1, 700, 100)).len(), 1);
    }
}
