//! Compressed request bodies.

use std::io::Read;

use axum::http::{HeaderMap, header};
use bytes::Bytes;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Most frames of one body. Each frame needs its own set-up, so many small ones would take long.
const MAX_FRAMES: usize = 64;

/// Largest window that a frame may claim, however short its text: the size that every decoder should support.
const MAX_WINDOW: u64 = 8 << 20;

/// How the body of a request is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Not compressed.
    None,
    /// With zstd.
    Zstd,
    /// With an unknown encoding.
    Unknown,
}

/// Why a body is forwarded without being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unread {
    /// It has more bytes than are read.
    #[error("the request is too large to be looked into")]
    TooLarge,
    /// It cannot be decompressed.
    #[error("its compression is broken")]
    Broken,
    /// Its encoding is not known.
    #[error("it is compressed in a way that is not known")]
    UnknownCoding,
}

impl Coding {
    /// Reads the encoding from the headers of a request.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut codings = headers.get_all(header::CONTENT_ENCODING).iter().map(|value| value.as_bytes().trim_ascii());
        match (codings.next(), codings.next()) {
            (None, _) => Self::None,
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"identity") => Self::None,
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"zstd") => Self::Zstd,
            _ => Self::Unknown,
        }
    }

    /// Returns the decoded body, which has at most `most` bytes.
    ///
    /// # Errors
    /// The body cannot be read, so it is forwarded unchanged.
    pub async fn text(self, body: &Bytes, most: usize) -> Result<Bytes, Unread> {
        match self {
            Self::None if body.len() > most => Err(Unread::TooLarge),
            Self::None => Ok(body.clone()),
            Self::Unknown => Err(Unread::UnknownCoding),
            Self::Zstd => {
                let body = body.clone();
                let text = tokio::task::spawn_blocking(move || unpacked(&body, most)).await;
                text.unwrap_or(Err(Unread::Broken)).map(Bytes::from)
            }
        }
    }

    /// Encodes a text for sending.
    pub async fn packed(self, text: Bytes) -> Bytes {
        if self != Self::Zstd {
            return text;
        }
        let packed = tokio::task::spawn_blocking({
            let text = text.clone();
            move || packed(&text)
        });
        match packed.await {
            Ok(Some(packed)) => packed.into(),
            // A frame that stores the text uncompressed: larger, but too simple to be wrong.
            _ => compress_to_vec(&*text, CompressionLevel::Uncompressed).into(),
        }
    }
}

/// Decodes a compressed body. Never holds more than `most` bytes, whatever the body claims.
fn unpacked(mut body: &[u8], most: usize) -> Result<Vec<u8>, Unread> {
    let mut text = Vec::new();
    for _ in 0..MAX_FRAMES {
        if body.is_empty() {
            return Ok(text);
        }
        if let Some(rest) = after_skipped(body)? {
            body = rest;
            continue;
        }
        let mut decoder = FrameDecoder::new();
        // A single-segment frame claims a window of its whole size.
        decoder.set_max_window_size(MAX_WINDOW.max(most as u64));
        let mut frame = StreamingDecoder::new_with_decoder(&mut body, decoder).map_err(|_| Unread::Broken)?;
        let room = most - text.len();
        frame.by_ref().take(room as u64 + 1).read_to_end(&mut text).map_err(|_| Unread::Broken)?;
        if text.len() > most {
            return Err(Unread::TooLarge);
        }
        let (written, counted) = (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
        if written.is_some() && written != counted {
            return Err(Unread::Broken);
        }
    }
    if body.is_empty() { Ok(text) } else { Err(Unread::Broken) }
}

/// Returns what follows a skippable frame, if the body begins with one.
fn after_skipped(body: &[u8]) -> Result<Option<&[u8]>, Unread> {
    let Some((head, rest)) = body.split_first_chunk::<8>() else { return Ok(None) };
    let [a, b, c, d, size @ ..] = *head;
    if u32::from_le_bytes([a, b, c, d]) & 0xFFFF_FFF0 != 0x184D_2A50 {
        return Ok(None);
    }
    rest.get(u32::from_le_bytes(size) as usize..).map(Some).ok_or(Unread::Broken)
}

/// Compresses a text. Returns `None` if it does not decompress to the same text.
fn packed(text: &[u8]) -> Option<Vec<u8>> {
    let packed = compress_to_vec(text, CompressionLevel::Fastest);
    (unpacked(&packed, text.len()).ok()? == text).then_some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| b"some text that repeats, "[at % 24] ^ (at / 997) as u8 & 1).collect()
    }

    #[test]
    fn what_is_packed_can_be_read_again_within_the_limit() {
        for length in [0, 1, 100, 131_072, 131_073, 1_000_000] {
            let text = text(length);
            let packed = packed(&text).expect("it can be read again");
            assert_eq!(unpacked(&packed, length).as_deref(), Ok(&*text), "{length}");
            if length > 0 {
                assert_eq!(unpacked(&packed, length - 1), Err(Unread::TooLarge), "{length}");
            }
        }
    }

    #[test]
    fn several_frames_and_skipped_ones_are_one_text() {
        let mut body = packed(b"one ").unwrap();
        body.extend([0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        body.extend(packed(b"two").unwrap());
        assert_eq!(unpacked(&body, 100).as_deref(), Ok(&b"one two"[..]));
        assert_eq!(unpacked(&packed(b"").unwrap().repeat(MAX_FRAMES + 1), 100), Err(Unread::Broken));
    }

    #[test]
    fn what_is_broken_is_told_and_never_panics() {
        let whole = packed(&text(50_000)).unwrap();
        for cut in 1..whole.len().min(400) {
            assert_eq!(unpacked(&whole[..cut], 100_000), Err(Unread::Broken), "{cut}");
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x40;
            // It may also decode to something else, which is then not a valid request.
            let _ = unpacked(&broken, 100_000);
        }
        assert_eq!(unpacked(b"{\"model\":\"m\"}", 100), Err(Unread::Broken));
    }
}
