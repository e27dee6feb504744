//! Vectors of texts, so that passages are found that say the same in other words.

use contexture_core::error::BoxError;
use futures_util::future::BoxFuture;
use serde_json::Value;

/// The most numbers of a vector that are kept: more would not fit beside a passage.
const MAX_NUMBERS: usize = 4_096;

/// Turns texts into vectors: texts that mean the same have similar ones.
pub trait Embedder: Send + Sync {
    /// Returns the vectors of texts, in their order and all of the same length.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, BoxError>>;
}

/// A vector as it is kept beside a passage: each number as two hexadecimal digits.
pub(super) fn written(vector: &[f32]) -> Option<String> {
    let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    if vector.is_empty() || vector.len() > MAX_NUMBERS || !largest.is_normal() {
        return None;
    }
    // From -127 to 127; the direction is all that matters.
    let bytes = vector.iter().map(|number| (number / largest * 127.0).round() as i8 as u8);
    Some(bytes.map(|byte| format!("{byte:02x}")).collect())
}

/// Reads a vector that was kept.
pub(super) fn read(metadata: &Value) -> Option<Vec<f32>> {
    let text = metadata.get("vector")?.as_str()?;
    let numbers = text.as_bytes().chunks_exact(2).map(|pair| {
        let byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        Some(f32::from(byte as i8))
    });
    numbers.collect()
}

/// The cosine of the angle between two vectors; 0 if they cannot be compared.
pub(super) fn cosine(one: &[f32], other: &[f32]) -> f64 {
    if one.len() != other.len() {
        return 0.0;
    }
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { dot(one, other) / lengths } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn vectors_keep_their_direction(numbers in proptest::collection::vec(-9.0_f32..9.0, 2..64)) {
            prop_assume!(numbers.iter().any(|number| number.abs() > 0.5));
            let kept = read(&json!({ "vector": written(&numbers).unwrap() })).unwrap();
            prop_assert!(cosine(&kept, &numbers) > 0.99);
        }
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        assert_eq!(written(&[]), None);
        assert_eq!(written(&[0.0, 0.0]), None);
        assert_eq!(written(&[f32::NAN]), None);
        assert_eq!(read(&json!({ "vector": "zz" })), None);
        assert_eq!(read(&json!({})), None);
        assert_eq!(cosine(&[1.0], &[1.0, 2.0]), 0.0);
    }
}
