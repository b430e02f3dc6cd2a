//! Writes down which characters look like one of ASCII, as the library `decancer` knows it (`src/frames/glyph.rs`). The library itself is
//! not a part of the program: all that is used of it is this table.

use std::path::PathBuf;
use std::{env, fs, io};

use decancer::{Translation, cure_char};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let rows = (0x80..=u32::from(char::MAX)).filter_map(char::from_u32).filter_map(|c| match cure_char!(c) {
        Translation::Character(same) if same.is_ascii() => Some(u32::from(c) << 8 | u32::from(same)),
        Translation::Character(_) | Translation::String(_) | Translation::None => None,
    });
    let table: Vec<u8> = rows.flat_map(u32::to_le_bytes).collect();
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(PathBuf::from(out).join("look_alikes.bin"), table)
}
