//! Reads tensors out of a safetensors file: eight bytes with the length of a JSON header, the
//! header, the numbers.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use serde::Deserialize;

use crate::config::required;
use crate::error::ModelError;

/// File with the numbers of a model.
const FILE: &str = "model.safetensors";
/// Largest header that is read: the format's own limit.
const MAX_HEADER: u64 = 100_000_000;
/// Name of the one tensor that every model of the family has.
const WORDS: &str = "embeddings.word_embeddings.weight";

/// Kinds of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dtype {
    F32,
    F16,
    BF16,
}

impl Dtype {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }

    /// Reads numbers; bytes that make no whole number are left out.
    pub(crate) fn decode(self, bytes: &[u8], out: &mut impl Extend<f32>) {
        let half = |pair: &[u8]| match pair {
            [low, high] => u16::from_le_bytes([*low, *high]),
            _ => 0,
        };
        match self {
            Self::F32 => out.extend(bytes.chunks_exact(4).map(|four| match four {
                [a, b, c, d] => f32::from_le_bytes([*a, *b, *c, *d]),
                _ => 0.0,
            })),
            Self::F16 => out.extend(bytes.chunks_exact(2).map(|pair| from_f16(half(pair)))),
            Self::BF16 => {
                out.extend(bytes.chunks_exact(2).map(|pair| f32::from_bits(u32::from(half(pair)) << 16)));
            }
        }
    }
}

/// A half-precision number.
fn from_f16(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = u32::from(bits >> 10 & 0x1f);
    let fraction = u32::from(bits & 0x3ff);
    match exponent {
        // Multiples of 2^-24.
        0 => f32::from_bits(sign | (f32::from(bits & 0x3ff) * 2.0_f32.powi(-24)).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

/// Place of a tensor in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorPlace {
    pub(crate) dtype: Dtype,
    shape: Vec<usize>,
    /// Position of its first byte in the file.
    pub(crate) start: u64,
    length: usize,
}

#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

/// An open file of tensors.
#[derive(Debug)]
pub(crate) struct Weights {
    file: File,
    path: PathBuf,
    tensors: HashMap<String, TensorPlace>,
    /// Prefix of the names of all tensors, such as `bert.`.
    prefix: String,
    /// Header of the file, as it is.
    pub(crate) header: Vec<u8>,
    pub(crate) length: u64,
}

impl Weights {
    /// Opens the file of a model directory and reads its header.
    pub(crate) fn open(dir: &Path) -> Result<Self, ModelError> {
        if dir.join("model.safetensors.index.json").is_file() && !dir.join(FILE).is_file() {
            let path = dir.join("model.safetensors.index.json");
            return Err(ModelError::unsupported(&path, "a model in several files is not supported"));
        }
        let path = required(dir, FILE)?;
        let file = File::open(&path).map_err(|error| ModelError::read(&path, error))?;
        let length = file.metadata().map_err(|error| ModelError::read(&path, error))?.len();
        let damaged = |what: &str| ModelError::damaged(&path, what);
        let mut size = [0_u8; 8];
        read_at(&file, &mut size, 0).map_err(|_| damaged("it has no header"))?;
        let size = u64::from_le_bytes(size);
        let data = size.checked_add(8).filter(|data| size <= MAX_HEADER && *data <= length);
        let data = data.ok_or_else(|| damaged("its header is longer than the file"))?;
        let mut header = vec![0_u8; usize::try_from(size).unwrap_or(0)];
        read_at(&file, &mut header, 8).map_err(|error| ModelError::read(&path, error))?;
        let tensors = places(&header, data, length).map_err(|what| ModelError::damaged(&path, what))?;
        let prefix = tensors.keys().find_map(|name| name.strip_suffix(WORDS)).map(str::to_owned);
        let prefix = prefix.ok_or_else(|| {
            ModelError::unsupported(&path, format!("it has no tensor \"{WORDS}\", so it is no BERT model"))
        })?;
        Ok(Self { file, path, tensors, prefix, header, length })
    }

    /// Finds a tensor of two dimensions, without reading it.
    pub(crate) fn matrix_place(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<TensorPlace, ModelError> {
        self.place(&[name], &[rows, columns])
    }

    /// Reads a tensor of two dimensions.
    pub(crate) fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, ModelError> {
        let numbers = self.numbers(&self.matrix_place(name, rows, columns)?)?;
        Array2::from_shape_vec((rows, columns), numbers)
            .map_err(|error| ModelError::damaged(&self.path, format!("tensor \"{name}\": {error}")))
    }

    /// Reads a tensor of one dimension that goes by one of these names.
    pub(crate) fn vector(&self, names: &[&str], length: usize) -> Result<Vec<f32>, ModelError> {
        self.numbers(&self.place(names, &[length])?)
    }

    /// Reads bytes of a tensor.
    pub(crate) fn read(&self, place: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        read_at(&self.file, bytes, place)
    }

    fn place(&self, names: &[&str], shape: &[usize]) -> Result<TensorPlace, ModelError> {
        let found = names.iter().find_map(|name| self.tensors.get(&format!("{}{name}", self.prefix)));
        let name = names.first().copied().unwrap_or_default();
        let place =
            found.ok_or_else(|| ModelError::damaged(&self.path, format!("it has no tensor \"{name}\"")))?;
        if place.shape != shape {
            let what =
                format!("tensor \"{name}\" has the shape {:?}, and config.json says {shape:?}", place.shape);
            return Err(ModelError::damaged(&self.path, what));
        }
        Ok(place.clone())
    }

    fn numbers(&self, place: &TensorPlace) -> Result<Vec<f32>, ModelError> {
        let mut bytes = vec![0_u8; place.length];
        self.read(place.start, &mut bytes).map_err(|error| ModelError::read(&self.path, error))?;
        let mut numbers = Vec::with_capacity(place.length / place.dtype.bytes());
        place.dtype.decode(&bytes, &mut numbers);
        Ok(numbers)
    }
}

/// The tensors of a header. Tensors of other kinds of numbers are left out: some files have
/// position ids of whole numbers, which nothing needs.
fn places(header: &[u8], data: u64, length: u64) -> Result<HashMap<String, TensorPlace>, String> {
    let raw: HashMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|error| format!("its header is no JSON: {error}"))?;
    let mut tensors = HashMap::new();
    for (name, value) in raw {
        if name == "__metadata__" {
            continue;
        }
        let raw: RawTensor =
            serde_json::from_value(value).map_err(|error| format!("tensor \"{name}\": {error}"))?;
        let dtype = match raw.dtype.as_str() {
            "F32" => Dtype::F32,
            "F16" => Dtype::F16,
            "BF16" => Dtype::BF16,
            _ => continue,
        };
        let (begin, end) = raw.data_offsets;
        let count = raw.shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size));
        let bytes = count.and_then(|count| count.checked_mul(dtype.bytes()));
        let is_within = begin <= end && data.checked_add(end).is_some_and(|end| end <= length);
        let fits = bytes.is_some_and(|bytes| u64::try_from(bytes).ok() == end.checked_sub(begin));
        match bytes.filter(|_| is_within && fits) {
            Some(length) => {
                let place = TensorPlace { dtype, shape: raw.shape, start: data + begin, length };
                tensors.insert(name, place);
            }
            None => return Err(format!("tensor \"{name}\" does not lie within the file")),
        }
    }
    Ok(tensors)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes = bytes.get_mut(read..).unwrap_or_default();
        at += read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_are_read() {
        let rows = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, expect) in rows {
            assert_eq!(from_f16(bits), expect, "{bits:#06x}");
        }
        assert!(from_f16(0x7e00).is_nan());
        assert_eq!(from_f16(0x8000).to_bits(), (-0.0_f32).to_bits());
    }

    #[test]
    fn tensors_that_lie_outside_of_the_file_are_refused() {
        let check = |tensor: &str| places(format!("{{\"x\":{tensor}}}").as_bytes(), 10, 50);
        assert!(check(r#"{"dtype":"F32","shape":[2,5],"data_offsets":[0,40]}"#).is_ok());
        assert!(check(r#"{"dtype":"I64","shape":[1],"data_offsets":[0,8]}"#).unwrap().is_empty());
        let bad = [
            r#"{"dtype":"F32","shape":[2,5],"data_offsets":[4,44]}"#,
            r#"{"dtype":"F32","shape":[2,5],"data_offsets":[0,36]}"#,
            r#"{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}"#,
            r#"{"dtype":"F32","shape":[10],"data_offsets":[40,0]}"#,
            r#"{"dtype":"F32","shape":[10],"data_offsets":[18446744073709551576,18446744073709551615]}"#,
            r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}"#,
            "7",
        ];
        for tensor in bad {
            assert!(check(tensor).is_err(), "{tensor}");
        }
        assert!(places(b"not json", 10, 50).is_err());
    }
}
