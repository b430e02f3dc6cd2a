//! Pictures for tests.

use std::io::Cursor;

use image::{ImageFormat, RgbImage};

/// A black picture.
pub(crate) fn encoded(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    written(&RgbImage::new(width, height), format)
}

pub(crate) fn written(picture: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    picture.write_to(&mut out, format).unwrap();
    out.into_inner()
}

/// A picture that no format makes small.
pub(crate) fn noise(width: u32, height: u32) -> RgbImage {
    let mut noise = 1_u32;
    RgbImage::from_fn(width, height, |_, _| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Rgb(noise.to_be_bytes()[..3].try_into().unwrap())
    })
}

/// A PNG that says it is so large and holds nothing.
pub(crate) fn claimed(width: u32, height: u32) -> Vec<u8> {
    let mut png = encoded(1, 1, ImageFormat::Png);
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc(&png[12..29]);
    png[29..33].copy_from_slice(&checksum.to_be_bytes());
    png
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}
