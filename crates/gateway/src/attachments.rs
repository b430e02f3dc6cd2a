//! Images that come with a message (spec `gateway-protocol.md` §6.3, vectors §16.7). OpenClaw 2026.2.9 drops everything else, and only
//! its log says so. Here the model is told in words, so that it can tell the sender.

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use openclaw_protocol::message::{Block, ImageBlock};
use openclaw_protocol::printable::{excerpt, one_line};
use serde_json::Value;

/// Largest decoded attachment in bytes.
pub(crate) const MAX_BYTES: usize = 5_000_000;

/// Models take these; others are left out like any non-image.
const IMAGE_PREFIX: &str = "image/";

/// Characters of an attachment's name that a model is told.
const LONGEST_NAME: usize = 200;

/// Result of [`decode`]: the usable attachments of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Decoded {
    /// Image blocks in the order given, and words in the place of what is left out.
    pub images: Vec<Block>,
    /// Attachments that were left out or corrected; for the log.
    pub warnings: Vec<String>,
}

/// An attachment that makes the whole message wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AttachmentError {
    /// Too large.
    #[error("Error: attachment {label}: exceeds size limit ({bytes} > {MAX_BYTES} bytes)")]
    TooLarge {
        /// Name of the attachment, for people.
        label: String,
        /// Decoded size in bytes.
        bytes: usize,
    },
    /// The content is not base64.
    #[error("Error: attachment {label}: invalid base64 content")]
    NotBase64 {
        /// Name of the attachment, for people.
        label: String,
    },
}

/// Attachment as the client sent it.
struct ClientAttachment<'a> {
    label: String,
    mime: Option<String>,
    content: &'a str,
}

/// True if anything in the list counts as an attachment.
pub(crate) fn any(items: &[Value]) -> bool {
    attachments(items).next().is_some()
}

/// Decodes and checks attachments. The type found in the bytes wins over the declared one; files
/// that are no images are left out, and so are empty ones.
pub(crate) fn decode(items: &[Value]) -> Result<Decoded, AttachmentError> {
    let mut decoded = Decoded::default();
    let mut attachments = attachments(items);
    for item in items.iter().filter(|item| item.is_object()) {
        match if content(item).is_some() { attachments.next() } else { None } {
            Some(attachment) => decoded.take(&attachment)?,
            None => {
                let label = name(item).unwrap_or("attachment");
                decoded.leave_out(label, "it is empty", format!("attachment {label}: empty, dropping"));
            }
        }
    }
    Ok(decoded)
}

/// Items with content; others are ignored. Labels count the items that are left.
fn attachments(items: &[Value]) -> impl Iterator<Item = ClientAttachment<'_>> {
    let with_content = items.iter().filter_map(|item| Some((item, content(item)?)));
    with_content.enumerate().map(|(index, (item, content))| ClientAttachment {
        label: name(item).map_or_else(|| format!("attachment-{}", index + 1), str::to_owned),
        mime: text(item, "mimeType").map(essence),
        content,
    })
}

fn content(item: &Value) -> Option<&str> {
    item.get("content")?.as_str().filter(|content| !content.trim().is_empty())
}

/// Returns what the client calls an attachment.
fn name(item: &Value) -> Option<&str> {
    text(item, "fileName").or(text(item, "type"))
}

fn text<'a>(item: &'a Value, key: &str) -> Option<&'a str> {
    item.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

impl Decoded {
    fn take(&mut self, attachment: &ClientAttachment<'_>) -> Result<(), AttachmentError> {
        let label = &attachment.label;
        let data: String = payload(attachment.content).split_ascii_whitespace().collect();
        let too_large = |bytes| AttachmentError::TooLarge { label: label.clone(), bytes };
        if data.len() / 4 * 3 > MAX_BYTES + 3 {
            return Err(too_large(data.len() / 4 * 3));
        }
        let bytes = LENIENT.decode(&data).map_err(|_| AttachmentError::NotBase64 { label: label.clone() })?;
        if bytes.len() > MAX_BYTES {
            return Err(too_large(bytes.len()));
        }
        let found = infer::get(&bytes).map(|kind| kind.mime_type());
        match (found, attachment.mime.as_deref()) {
            (Some(found), _) if !found.starts_with(IMAGE_PREFIX) => {
                let warning = format!("attachment {label}: detected non-image ({found}), dropping");
                self.leave_out(label, &format!("{found} is no image"), warning);
            }
            (None, declared) if !declared.is_some_and(|mime| mime.starts_with(IMAGE_PREFIX)) => {
                let warning = format!("attachment {label}: unable to detect image mime type, dropping");
                self.leave_out(label, "it is no image", warning);
            }
            (found, declared) => {
                if let (Some(found), Some(declared)) = (found, declared)
                    && found != declared
                {
                    self.warnings.push(format!(
                        "attachment {label}: mime mismatch ({declared} -> {found}), using detected"
                    ));
                }
                let mime_type = found.or(declared).unwrap_or_default().to_owned();
                self.images.push(Block::Image(ImageBlock { data, mime_type, ..ImageBlock::default() }));
            }
        }
        Ok(())
    }

    /// Tells the model and the log of an attachment that is left out.
    fn leave_out(&mut self, label: &str, why: &str, warning: String) {
        let name = one_line(&excerpt(label, LONGEST_NAME)).replace('"', "'");
        self.images.push(Block::text(format!("[Attachment \"{name}\" is not shown to you: {why}.]")));
        self.warnings.push(warning);
    }
}

/// Clients differ in whether they pad.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The base64 of a plain or a data URL content.
fn payload(content: &str) -> &str {
    let content = content.trim();
    let Some(rest) = content.strip_prefix("data:") else { return content };
    rest.split_once(";base64,").map_or(content, |(_, data)| data)
}

/// A media type without parameters, in lower case.
fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";
    const PDF: &[u8] = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n";

    fn summary(items: &Value) -> String {
        match decode(items.as_array().unwrap()) {
            Err(error) => error.to_string(),
            Ok(decoded) => {
                let types: Vec<&str> = decoded
                    .images
                    .iter()
                    .map(|block| match block {
                        Block::Image(image) => image.mime_type.as_str(),
                        Block::Text(told) => told.text.as_str(),
                        other => panic!("{other:?}"),
                    })
                    .collect();
                format!("[{}] {}", types.join(" "), decoded.warnings.join(" | ")).trim_end().to_owned()
            }
        }
    }

    /// Vectors of spec §16.7.
    #[test]
    fn images_are_kept_and_the_rest_is_left_out_in_words_or_refused() {
        let png = STANDARD.encode(PNG);
        let pdf = STANDARD.encode(PDF);
        let unknown = STANDARD.encode(b"just some words");
        let big = STANDARD.encode(vec![0_u8; MAX_BYTES + 1]);
        let rows = [
            (json!([{"type": "image", "mimeType": "image/png", "content": png}]), "[image/png]"),
            (
                json!([{"mimeType": "image/png", "content": format!("data:image/png;base64,{png}")}]),
                "[image/png]",
            ),
            (json!([{"content": "%not-base64%"}]), "Error: attachment attachment-1: invalid base64 content"),
            (
                json!([{"fileName": "big.png", "content": big}]),
                "Error: attachment big.png: exceeds size limit (5000001 > 5000000 bytes)",
            ),
            (json!([{"content": png}]), "[image/png]"),
            (
                json!([{"mimeType": "image/png", "content": pdf}]),
                "[[Attachment \"attachment-1\" is not shown to you: application/pdf is no image.]] \
                 attachment attachment-1: detected non-image (application/pdf), dropping",
            ),
            (
                json!([{"fileName": "a", "mimeType": "image/jpeg", "content": png}]),
                "[image/png] attachment a: mime mismatch (image/jpeg -> image/png), using detected",
            ),
            (
                json!([{"content": unknown, "fileName": "a]\n[b"}]),
                "[[Attachment \"a]\\n[b\" is not shown to you: it is no image.]] \
                 attachment a]\n[b: unable to detect image mime type, dropping",
            ),
            (json!([{"content": unknown, "mimeType": "Image/X-Own; a=b"}]), "[image/x-own]"),
            (
                json!([{"content": png}, {"content": pdf}]),
                "[image/png [Attachment \"attachment-2\" is not shown to you: application/pdf is no image.]] \
                 attachment attachment-2: detected non-image (application/pdf), dropping",
            ),
            (
                json!([5, {"fileName": "a.png", "content": " "}, {"content": png}]),
                "[[Attachment \"a.png\" is not shown to you: it is empty.] image/png] attachment a.png: empty, dropping",
            ),
        ];
        for (items, expect) in rows {
            assert_eq!(summary(&items), expect, "{:.80}", items.to_string());
        }
    }

    #[test]
    fn the_stored_data_is_plain_base64() {
        let png = STANDARD.encode(PNG);
        let unpadded = png.trim_end_matches('=').to_owned();
        let wrapped = format!("data:image/png;base64,{}\n{}", &png[..8], &png[8..]);
        for (content, expect) in [(unpadded.clone(), unpadded), (wrapped, png)] {
            let decoded = decode(&[json!({"content": content})]).unwrap();
            let Some(Block::Image(image)) = decoded.images.first() else { panic!("no image: {decoded:?}") };
            assert_eq!(image.data, expect);
        }
    }

    #[test]
    fn only_items_with_content_count() {
        assert!(any(&[json!({"content": "x"})]));
        assert!(!any(&[json!({"content": " "}), json!({"type": "image"}), json!(null)]));
    }
}
