//! Sets of pages and queries, read from unpacked packages of Debian.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::man;

const PACKAGES: &[&str] = &[
    "manpages",
    "manpages-dev",
    "manpages-ja",
    "manpages-zh",
    "debian-faq",
    "debian-faq-ja",
    "debian-faq-ko",
    "debian-faq-ru",
    "debian-faq-zh-cn",
];

/// Set, and the directory of its manual pages.
const MANUALS: &[(&str, &str)] =
    &[("man en", "usr/share/man"), ("man ja", "usr/share/man/ja"), ("man zh", "usr/share/man/zh_CN")];

/// Set, the directory of its chapters, and how their names end.
const QUESTIONS: &[(&str, &str, &str)] = &[
    ("faq en", "", ".en.html"),
    ("faq ja", "ja", ".ja.html"),
    ("faq ko", "ko", ".ko.html"),
    ("faq ru", "ru", ".ru.html"),
    ("faq zh-cn", "zh-cn", ".zh-cn.html"),
];

/// A question, and the page that answers it.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) page: String,
}

/// Pages of one language and what is asked about them.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    pub(crate) name: String,
    /// Names and texts.
    pub(crate) pages: Vec<(String, String)>,
    pub(crate) queries: Vec<Question>,
}

impl Collection {
    pub(crate) fn is_english(&self) -> bool {
        self.name.ends_with(" en")
    }

    /// Returns about `pages` pages at even distances, and what is asked about them.
    pub(crate) fn part(&self, pages: usize) -> Self {
        let step = self.pages.len().div_ceil(pages.max(1)).max(1);
        let pages: Vec<_> = self.pages.iter().step_by(step).cloned().collect();
        let names: HashSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        let queries = self.queries.iter().filter(|query| names.contains(query.page.as_str()));
        Self { name: self.name.clone(), queries: queries.cloned().collect(), pages }
    }
}

/// Returns the directory of the unpacked packages. They are fetched if it does not exist.
pub(crate) fn unpacked(cache: &Path) -> io::Result<PathBuf> {
    let unpacked = cache.join("packages");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let archives = cache.join("archives");
    std::fs::create_dir_all(&archives)?;
    run(Command::new("apt-get").arg("download").args(PACKAGES).current_dir(&archives))?;
    let partial = cache.join("packages.partial");
    for archive in sorted(&archives)? {
        run(Command::new("dpkg").arg("-x").arg(archive).arg(&partial))?;
    }
    let manuals = partial.join("usr/share/man");
    // Links are further names of pages.
    run(Command::new("find").arg(&manuals).args(["-type", "l", "-delete"]))?;
    run(Command::new("gunzip").arg("-r").arg(&manuals))?;
    std::fs::rename(partial, &unpacked)?;
    Ok(unpacked)
}

fn run(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?}: {status}"))) }
}

fn sorted(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Reads all sets.
pub(crate) fn read_all(unpacked: &Path) -> io::Result<Vec<Collection>> {
    let mut sets = Vec::new();
    for (name, dir) in MANUALS {
        sets.push(manual(name, &unpacked.join(dir))?);
    }
    for (name, dir, end) in QUESTIONS {
        sets.push(questions(name, &unpacked.join("usr/share/doc/debian/FAQ").join(dir), end)?);
    }
    Ok(sets)
}

fn manual(name: &str, dir: &Path) -> io::Result<Collection> {
    let mut set = Collection { name: name.to_owned(), pages: Vec::new(), queries: Vec::new() };
    for section in 1..=8 {
        let section = dir.join(format!("man{section}"));
        if !section.is_dir() {
            continue;
        }
        for path in sorted(&section)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let page = man::read(&String::from_utf8_lossy(&std::fs::read(&path)?));
            if page.text.trim().is_empty() {
                continue;
            }
            if let Some(text) = page.purpose {
                set.queries.push(Question { text, page: name.clone() });
            }
            set.pages.push((name, page.text));
        }
    }
    Ok(set)
}

/// Reads the chapters of a book as DocBook makes them: each section without its title is a page.
fn questions(name: &str, dir: &Path, end: &str) -> io::Result<Collection> {
    let mut set = Collection { name: name.to_owned(), pages: Vec::new(), queries: Vec::new() };
    for path in sorted(dir)? {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !file.ends_with(end) || file.starts_with("index.") {
            continue;
        }
        let html = std::fs::read_to_string(&path)?;
        let html = html.split("<div class=\"navfooter\">").next().unwrap_or_default();
        for (at, section) in html.split("<h2 class=\"title\">").skip(1).enumerate() {
            let Some((title, body)) = section.split_once("</h2>") else { continue };
            let (title, body) = (without_tags(title), without_tags(body));
            let page = format!("{}-{at}", file.trim_end_matches(end));
            let number = |letter: char| letter.is_ascii_digit() || letter == '.' || letter.is_whitespace();
            let text = title.trim_start_matches(number).trim().to_owned();
            set.queries.push(Question { text, page: page.clone() });
            set.pages.push((page, body));
        }
    }
    Ok(set)
}

fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#160;", " "), ("&nbsp;", " "), ("&amp;", "&")];
    named.iter().fold(text, |text, (name, letter)| text.replace(name, letter))
}
