//! Machine code of a program, read from the section table of an ELF file (System V ABI, "Object Files").

use std::path::Path;

use anyhow::{Context, Result};

/// Machine code in MiB that the debug program may have. Its optimised size follows from it, and takes too long to build
/// for the gate. Memory took it from 66 to 71.
pub(super) const LIMIT: f64 = 71.0;

/// Flag of sections that hold instructions (`SHF_EXECINSTR`).
const EXECUTABLE: u64 = 4;

/// Returns the bytes of all sections of instructions; `None` if the file is no 64-bit little-endian ELF file.
///
/// # Errors
/// When the file can't be read or its section table is torn.
pub(super) fn size(program: &Path) -> Result<Option<u64>> {
    let file = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let sum = sections(&file).with_context(|| format!("{} is torn", program.display()))?;
    Ok(Some(sum))
}

fn sections(file: &[u8]) -> Option<u64> {
    let table = number(file, 0x28, 8)?;
    let (entry, count) = (number(file, 0x3a, 2)?, number(file, 0x3c, 2)?);
    let mut sum = 0;
    for at in (0..count).map(|index| table + index * entry) {
        if number(file, at + 0x08, 8)? & EXECUTABLE != 0 {
            sum += number(file, at + 0x20, 8)?;
        }
    }
    Some(sum)
}

/// Little-endian number of so many bytes at an offset.
fn number(file: &[u8], at: u64, bytes: usize) -> Option<u64> {
    let at = usize::try_from(at).ok()?;
    let bytes = file.get(at..at.checked_add(bytes)?)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_instructions_are_summed() {
        let mut file = vec![0; 0x40 + 3 * 0x40];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x28] = 0x40;
        file[0x3a] = 0x40;
        file[0x3c] = 3;
        for (index, (flags, size)) in [(6, 0x1234_u64), (2, 99), (4, 1)].into_iter().enumerate() {
            let at = 0x40 * (index + 1);
            file[at + 8] = flags;
            file[at + 0x20..at + 0x28].copy_from_slice(&size.to_le_bytes());
        }
        assert_eq!(sections(&file), Some(0x1235));
        file.truncate(0x90);
        assert_eq!(sections(&file), None);
    }
}
