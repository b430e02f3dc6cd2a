//! The end of what a command prints, as text that is safe to show (spec `tools.md` §3.1 row 11).

use std::ops::RangeInclusive;

/// Characters of an update while the command runs.
const TAIL: usize = 2000;

/// Invisible characters that steer how text is laid out (Unicode category Cf): they could hide or reorder output.
const FORMAT: [RangeInclusive<char>; 21] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e0001}',
    '\u{e0020}'..='\u{e007f}',
];

/// Pipe from which output came.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Output of both streams in the order in which it arrived; only the last characters are kept.
#[derive(Debug)]
pub(super) struct Output {
    text: String,
    chars: usize,
    cap: usize,
    is_cut: bool,
    /// True if output came since the last look.
    news: bool,
    /// The start of a character whose end has not arrived, for each stream.
    halves: [Vec<u8>; 2],
}

impl Output {
    pub(super) fn new(cap: usize) -> Self {
        Self {
            text: String::new(),
            chars: 0,
            cap,
            is_cut: false,
            news: false,
            halves: [Vec::new(), Vec::new()],
        }
    }

    /// Takes what a stream brought.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let mut all = std::mem::take(self.half(stream));
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.push_text(text);
                    break;
                }
                Err(error) => {
                    let (valid, tail) = rest.split_at(error.valid_up_to());
                    self.push_text(&String::from_utf8_lossy(valid));
                    let Some(length) = error.error_len() else {
                        *self.half(stream) = tail.to_vec();
                        break;
                    };
                    self.push_text("\u{fffd}");
                    rest = tail.get(length..).unwrap_or_default();
                }
            }
        }
        if self.chars > self.cap * 2 {
            self.cut();
        }
    }

    /// Ends the output. A character that never was completed shows as U+FFFD.
    pub(super) fn end(&mut self) {
        for stream in [Stream::Out, Stream::Err] {
            if !self.half(stream).is_empty() {
                self.half(stream).clear();
                self.push_text("\u{fffd}");
            }
        }
    }

    /// Returns all kept output.
    pub(super) fn text(&mut self) -> &str {
        self.cut();
        &self.text
    }

    /// Returns all kept output and forgets it.
    pub(super) fn take(&mut self) -> String {
        self.cut();
        (self.chars, self.news) = (0, false);
        std::mem::take(&mut self.text)
    }

    /// Returns the number of characters that are kept.
    pub(super) fn chars(&self) -> usize {
        self.chars.min(self.cap)
    }

    /// Returns true if output was discarded because there was more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut || self.chars > self.cap
    }

    /// Returns true if output came since [`Self::tail`] was last read.
    pub(super) fn has_news(&self) -> bool {
        self.news
    }

    /// The last characters, for an update.
    pub(super) fn tail(&mut self) -> &str {
        self.news = false;
        last_chars(&self.text, TAIL.min(self.cap))
    }

    fn half(&mut self, stream: Stream) -> &mut Vec<u8> {
        let [out, err] = &mut self.halves;
        match stream {
            Stream::Out => out,
            Stream::Err => err,
        }
    }

    fn push_text(&mut self, text: &str) {
        for c in text.chars().filter(|c| is_shown(*c)) {
            self.text.push(c);
            self.news = true;
            self.chars += 1;
        }
    }

    fn cut(&mut self) {
        if self.chars > self.cap {
            let kept = last_chars(&self.text, self.cap).len();
            self.text.drain(..self.text.len() - kept);
            self.chars = self.cap;
            self.is_cut = true;
        }
    }
}

fn is_shown(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => true,
        ' '..='~' => true,
        c => !c.is_control() && !FORMAT.iter().any(|range| range.contains(&c)),
    }
}

fn last_chars(text: &str, count: usize) -> &str {
    let Some(before) = count.checked_sub(1) else { return "" };
    text.char_indices().rev().nth(before).and_then(|(start, _)| text.get(start..)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn printed(cap: usize, chunks: &[&[u8]]) -> String {
        let mut output = Output::new(cap);
        for chunk in chunks {
            output.push(Stream::Out, chunk);
        }
        output.end();
        output.take()
    }

    #[test]
    fn control_and_format_characters_are_removed() {
        for (bytes, text) in [
            (&b"a\tb\r\nc"[..], "a\tb\r\nc"),
            (b"\x1b[31mred\x07\x00\x7f", "[31mred"),
            ("a\u{202e}b\u{200b}c\u{feff}d\u{ad}\u{e0041}\u{85}".as_bytes(), "abcd"),
            ("é 漢 🦞".as_bytes(), "é 漢 🦞"),
            (b"a\xffb\xc3", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(printed(1000, &[bytes]), text);
        }
    }

    #[test]
    fn the_last_characters_are_kept() {
        assert_eq!(printed(3, &["aé漢🦞".as_bytes()]), "é漢🦞");
        assert_eq!(printed(3, &[b"abc"]), "abc");
        assert_eq!(printed(0, &[b"abc"]), "");
        let mut output = Output::new(10);
        (0..10_000).for_each(|_| output.push(Stream::Out, b"0123456789"));
        assert!(output.text.len() <= 40, "grew to {}", output.text.len());
        assert_eq!(output.tail(), "0123456789");
    }

    /// Spec `tools.md` §3.1 row 11.
    #[test]
    fn an_update_has_the_last_two_thousand_characters() {
        let mut output = Output::new(200_000);
        output.push(Stream::Out, "é".repeat(150_000).as_bytes());
        output.push(Stream::Out, "x".repeat(150_000).as_bytes());
        assert_eq!(output.tail(), "x".repeat(2_000));
        assert_eq!((output.chars(), output.is_cut()), (200_000, true));
        assert_eq!(output.text(), "é".repeat(50_000) + &"x".repeat(150_000));
    }

    #[test]
    fn streams_do_not_break_each_others_characters() {
        let mut output = Output::new(100);
        let e = "é".as_bytes();
        output.push(Stream::Out, &e[..1]);
        output.push(Stream::Err, b"x");
        output.push(Stream::Out, &e[1..]);
        assert_eq!(output.text(), "xé");
    }

    proptest! {
        #[test]
        fn how_output_is_cut_into_chunks_does_not_matter(bytes in prop::collection::vec(any::<u8>(), 0..60), at in any::<prop::sample::Index>(), cap in 0_usize..50) {
            let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
            prop_assert_eq!(printed(cap, &[a, b]), printed(cap, &[&bytes]));
        }

        #[test]
        fn the_cap_holds(text in "\\PC{0,60}", cap in 0_usize..50) {
            let kept = printed(cap, &[text.as_bytes()]);
            let whole = printed(1000, &[text.as_bytes()]);
            prop_assert!(kept.chars().count() == cap.min(whole.chars().count()) && whole.ends_with(&kept));
        }
    }
}
