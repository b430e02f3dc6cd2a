//! Detects the format of a picture by its first bytes.

/// Number of bytes that suffice to detect the format.
pub const HEAD: usize = 12;

/// The image formats models take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// GIF.
    Gif,
    /// WebP.
    Webp,
}

impl Format {
    const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// The format that these first bytes announce.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    /// The format of this name, such as `image/png`.
    pub(crate) fn named(mime: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.mime().eq_ignore_ascii_case(mime.trim()))
    }

    /// Media type, such as `image/png`.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_first_bytes() {
        for (head, format) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some(Format::Png)),
            (b"\xff\xd8\xff\xe0", Some(Format::Jpeg)),
            (b"GIF89a", Some(Format::Gif)),
            (b"RIFF\0\0\0\0WEBP", Some(Format::Webp)),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"GIF is a word", None),
            (b"", None),
        ] {
            assert_eq!(Format::of(head), format, "{head:?}");
        }
    }

    #[test]
    fn formats_are_found_by_name() {
        for format in Format::ALL {
            assert_eq!(Format::named(&format.mime().to_uppercase()), Some(format));
        }
        assert_eq!(Format::named("image/heic"), None);
    }
}
