//! Whatever a model writes, its answer is cut into messages that fit, in every platform's markup; nothing of it is lost, whole or as it arrives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openclaw_channel_telegram::html::{Cut, RENDERED_LIMIT, messages};
use openclaw_channels::markdown::render::{SIGNAL, SLACK, WHATSAPP, plain, signal, slack, whatsapp};
use openclaw_channels::markdown::{TableMode, convert_tables, read};
use openclaw_channels::text::discord::{DiscordLimits, chunk_discord};
use openclaw_channels::text::fence::fences;
use openclaw_channels::text::{ChunkMode, LengthUnit, Limit, Markup, chunk, chunk_lines};
use openclaw_config::settings::BreakPreference;
use openclaw_delivery::reply::{BlockChunker, ChunkSettings, Drain};

/// Below it lines of fences have no room, and characters of several units may not fit.
const SMALLEST: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[size, flags, mode], text)) = bytes.split_first_chunk() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let newline = mode & 1 == 1;
    let units = SMALLEST + usize::from(size);
    let mode = if newline { ChunkMode::Newline } else { ChunkMode::Length };
    let unit = [LengthUnit::Utf16, LengthUnit::Bytes, LengthUnit::Chars][usize::from(flags) % 3];
    let limit = Limit::new(units, unit);
    for markup in [Markup::Plain, Markup::Markdown] {
        let parts = chunk(text, limit, mode, markup);
        assert!(parts.iter().all(|part| limit.fits(part) && !part.trim().is_empty()));
        match markup {
            Markup::Plain => assert_eq!(bare(&parts.concat()), bare(text)),
            Markup::Markdown => assert!(has_no_room(text, units) || are_closed(&parts)),
        }
    }
    assert!(chunk_lines(text, limit).iter().all(|part| limit.fits(part)));
    let utf16 = Limit::utf16(units);
    let discord = DiscordLimits { chars: units, lines: 3 + usize::from(flags) };
    let parts = chunk_discord(text, discord, mode);
    assert!(parts.iter().all(|part| utf16.fits(part)) && (has_no_room(text, units) || are_closed(&parts)));

    let tables = [TableMode::Off, TableMode::Bullets, TableMode::Code][usize::from(flags / 3) % 3];
    for words in messages(text, Cut { limit: units, mode, tables }) {
        let html = words.formatted.unwrap_or_default();
        assert!(LengthUnit::Utf16.len(&html) <= RENDERED_LIMIT || html.contains("</"));
        assert!(is_nested(&html));
    }
    let _ = slack(&read(text, SLACK.with_tables(tables)), utf16);
    let _ = whatsapp(&read(text, WHATSAPP.with_tables(tables)), utf16);
    let styled = read(text, SIGNAL.with_tables(tables));
    let _ = plain(&styled);
    assert!(signal(&styled, utf16).iter().all(|message| utf16.fits(&message.text)));
    let _ = convert_tables(text, tables);

    let prefer = [BreakPreference::Paragraph, BreakPreference::Newline, BreakPreference::Sentence];
    let settings = ChunkSettings {
        min: usize::from(flags),
        max: units,
        prefer: prefer[usize::from(flags) % 3],
        by_paragraph: newline,
    };
    let mut chunker = BlockChunker::new(settings);
    let step = 1 + usize::from(size % 7);
    let mut blocks = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    for piece in chars.chunks(step) {
        chunker.append(&piece.iter().collect::<String>());
        blocks.extend(chunker.drain(Drain::Ready));
    }
    blocks.extend(chunker.drain(Drain::All));
    assert!(chunker.is_empty() && blocks.iter().all(|block| utf16.fits(&block.text)));
    assert!(blocks.is_sorted_by_key(|block| block.end) && blocks.iter().all(|block| block.end <= text.len()));
});

fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a line of a fence takes so much of a part that the block can't be closed in it.
fn has_no_room(text: &str, units: usize) -> bool {
    fences(text).iter().any(|fence| 2 * fence.open.line.len() + 16 > units)
}

/// Whether every part but the last closes its blocks.
fn are_closed(parts: &[String]) -> bool {
    let open = |part: &String| fences(part).iter().any(|fence| fence.closed_at.is_none());
    parts.split_last().is_none_or(|(_, others)| !others.iter().any(open))
}

/// Whether every tag is closed by its own, in order.
fn is_nested(html: &str) -> bool {
    let mut open = Vec::new();
    for (tag, _) in html.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
        match tag.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return false,
            Some(_) => {}
            None => open.push(tag.split(' ').next().unwrap_or_default()),
        }
    }
    open.is_empty()
}
