//! The reading itself, character by character.

use std::iter::Peekable;
use std::str::Chars;

use super::{Joint, MAX_BYTES, NotAnalysable, Segment, is_plain, shell_words};

/// Reads a command line.
///
/// # Errors
/// [`NotAnalysable`] when shells could read it in another way, or its words do not say what would run.
pub fn analyse(command: &str) -> Result<Vec<Segment>, NotAnalysable> {
    if command.len() > MAX_BYTES {
        return Err(NotAnalysable::TooLong);
    }
    Scanner::new(command).read()
}

struct Scanner<'c> {
    chars: Peekable<Chars<'c>>,
    segments: Vec<Segment>,
    joint: Joint,
    words: Vec<String>,
    /// Begun and not yet ended. An empty one is a word too: `''`.
    word: Option<String>,
}

impl<'c> Scanner<'c> {
    fn new(command: &'c str) -> Self {
        Self {
            chars: command.chars().peekable(),
            segments: Vec::new(),
            joint: Joint::Start,
            words: Vec::new(),
            word: None,
        }
    }

    fn read(mut self) -> Result<Vec<Segment>, NotAnalysable> {
        while let Some(c) = self.chars.next() {
            match c {
                ' ' | '\t' => self.end_word(),
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => self.escaped()?,
                '|' | '&' | ';' => {
                    let joint = self.operator(c)?;
                    self.end_segment(joint)?;
                }
                // zsh replaces `=name` by the path of that program.
                '=' if self.word.as_deref().is_none_or(str::is_empty) => {
                    return Err(NotAnalysable::Character(c));
                }
                c if is_plain(c) => self.push(c),
                c => return Err(NotAnalysable::Character(c)),
            }
        }
        self.end_segment(Joint::Start)?;
        Ok(self.segments)
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn operator(&mut self, first: char) -> Result<Joint, NotAnalysable> {
        let second = self.chars.peek().copied();
        let joint = match (first, second) {
            ('|', Some('|')) => Joint::Or,
            ('&', Some('&')) => Joint::And,
            (';', _) => return Ok(Joint::Then),
            // `|&` also pipes standard error in some shells.
            ('|', second) if second != Some('&') => return Ok(Joint::Pipe),
            _ => return Err(NotAnalysable::Character('&')),
        };
        self.chars.next();
        Ok(joint)
    }

    fn escaped(&mut self) -> Result<(), NotAnalysable> {
        match self.chars.next() {
            None => Err(NotAnalysable::Unterminated),
            // A newline would continue the line; bytes of other letters are not safe from every bash.
            Some(c) if c.is_control() && c != '\t' || !c.is_ascii() => Err(NotAnalysable::Character(c)),
            Some(c) => {
                self.push(c);
                Ok(())
            }
        }
    }

    fn single_quoted(&mut self) -> Result<(), NotAnalysable> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next() {
                None => return Err(NotAnalysable::Unterminated),
                Some('\'') => return Ok(()),
                Some(c) if c.is_control() && c != '\t' && c != '\n' => {
                    return Err(NotAnalysable::Character(c));
                }
                Some(c) => self.push(c),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), NotAnalysable> {
        self.word.get_or_insert_default();
        loop {
            match self.chars.next() {
                None => return Err(NotAnalysable::Unterminated),
                Some('"') => return Ok(()),
                Some('\\') => {
                    // In double quotes a backslash escapes these only and otherwise stands for itself.
                    let escaped = self.chars.next_if(|c| matches!(c, '$' | '`' | '"' | '\\'));
                    self.push(escaped.unwrap_or('\\'));
                }
                // Expansions, and what looks like history to a shell that keeps one.
                Some(c @ ('$' | '`' | '!')) => return Err(NotAnalysable::Character(c)),
                Some(c) if c.is_control() && c != '\t' => return Err(NotAnalysable::Character(c)),
                Some(c) => self.push(c),
            }
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_segment(&mut self, next: Joint) -> Result<(), NotAnalysable> {
        self.end_word();
        let mut words = std::mem::take(&mut self.words).into_iter();
        let program = words.next().ok_or(NotAnalysable::EmptyPart)?;
        if !is_program(&program) {
            return Err(NotAnalysable::NotAProgram(program));
        }
        self.segments.push(Segment { joint: self.joint, program, arguments: words.collect() });
        self.joint = next;
        Ok(())
    }
}

/// Refuses assignments (also those that bash would not take for one), reserved words, job numbers, and a leading `-`, which
/// is a keyword to zsh.
fn is_program(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(['-', '%'])
        && !word.contains(|c: char| c == '=' || c.is_control())
        && !shell_words::is_reserved(word)
}
