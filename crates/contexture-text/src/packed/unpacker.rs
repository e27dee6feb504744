//! Reading numbers and texts that were written in few bytes.

use std::sync::Arc;

use contexture_core::item::Item;

use super::quotes::SourceText;

/// Bytes that nobody wrote like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Reads what a [`Packer`](super::Packer) wrote, in the same order.
///
/// Whatever the bytes are, it does not panic: what cannot be read is [`Damaged`].
pub struct Unpacker<'a> {
    bytes: &'a [u8],
    texts: Vec<Arc<str>>,
    log: &'a [(Arc<Item>, u64)],
    sources: Vec<SourceText<'a>>,
}

impl<'a> Unpacker<'a> {
    /// A reader of what quotes a log.
    pub fn new(bytes: &'a [u8], log: &'a [(Arc<Item>, u64)]) -> Self {
        Self { bytes, texts: Vec::new(), log, sources: Vec::new() }
    }

    /// The log that is quoted.
    pub fn log(&self) -> &'a [(Arc<Item>, u64)] {
        self.log
    }

    /// Ends reading.
    pub fn finish(self) -> Result<(), Damaged> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Damaged) }
    }

    fn byte(&mut self) -> Result<u8, Damaged> {
        let (byte, rest) = self.bytes.split_first().ok_or(Damaged)?;
        self.bytes = rest;
        Ok(*byte)
    }

    /// Reads a number.
    pub fn number<N: TryFrom<u64>>(&mut self) -> Result<N, Damaged> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return Err(Damaged);
            }
            number |= part << shift;
            if byte < 0x80 {
                return N::try_from(number).map_err(|_| Damaged);
            }
        }
        Err(Damaged)
    }

    /// Reads the place of something among so many.
    pub fn place(&mut self, count: usize) -> Result<usize, Damaged> {
        self.number().and_then(|place| if place < count { Ok(place) } else { Err(Damaged) })
    }

    /// Reads yes or no.
    pub fn flag(&mut self) -> Result<bool, Damaged> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }

    /// Reads a number that may be absent.
    pub fn optional<N: TryFrom<u64>>(&mut self) -> Result<Option<N>, Damaged> {
        if self.flag()? { self.number().map(Some) } else { Ok(None) }
    }

    /// Reads a number with a fraction.
    pub fn real(&mut self) -> Result<f64, Damaged> {
        Ok(f64::from_bits(u64::from_le_bytes(self.raw()?)))
    }

    /// Reads so many bytes.
    pub fn raw<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (bytes, rest) = self.bytes.split_first_chunk().ok_or(Damaged)?;
        self.bytes = rest;
        Ok(*bytes)
    }

    /// Reads a list of values, each of which takes at least one byte.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Damaged>) -> Result<Vec<T>, Damaged> {
        let count: usize = self.number()?;
        if count > self.bytes.len() {
            return Err(Damaged);
        }
        (0..count).map(|_| read(self)).collect()
    }

    fn str(&mut self) -> Result<&'a str, Damaged> {
        let len = self.number()?;
        let (text, rest) = self.bytes.split_at_checked(len).ok_or(Damaged)?;
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| Damaged)
    }

    /// Reads a text.
    pub fn text(&mut self) -> Result<Arc<str>, Damaged> {
        match self.number::<usize>()?.checked_sub(1) {
            Some(number) => self.texts.get(number).cloned().ok_or(Damaged),
            None => {
                let text: Arc<str> = self.str()?.into();
                self.texts.push(text.clone());
                Ok(text)
            }
        }
    }

    /// Reads a text that may begin like the one before it.
    pub fn text_after(&mut self, before: &str) -> Result<String, Damaged> {
        let same: usize = self.number()?;
        let start = before.get(..same).ok_or(Damaged)?;
        Ok(start.to_owned() + self.str()?)
    }

    /// Reads lines.
    pub fn lines(&mut self) -> Result<Vec<Arc<str>>, Damaged> {
        let count: usize = self.number()?;
        let mut lines = Vec::new();
        while lines.len() < count {
            let quoted: usize = self.number()?;
            if quoted == 0 {
                lines.push(self.text()?);
                continue;
            }
            let source = self.source()?;
            let (first, skipped): (usize, usize) = (self.number()?, self.number()?);
            let end = first.checked_add(quoted).filter(|_| quoted <= count - lines.len()).ok_or(Damaged)?;
            lines.reserve(quoted.min(self.sources[source].len()));
            for line in first..end {
                let line = self.sources[source].line(line).and_then(|line| line.get(skipped..)).ok_or(Damaged)?;
                lines.push(line.into());
            }
        }
        Ok(lines)
    }

    /// Reads a text of any length.
    pub fn long_text(&mut self) -> Result<String, Damaged> {
        Ok(self.lines()?.join("\n"))
    }

    /// Reads which source is quoted.
    fn source(&mut self) -> Result<usize, Damaged> {
        let number: usize = self.number()?;
        if number == self.sources.len() {
            let (position, field) = (self.number()?, self.number()?);
            let source = SourceText::read(self.log, position, field).ok_or(Damaged)?;
            if source.check() != self.raw()? {
                return Err(Damaged);
            }
            self.sources.push(source);
        }
        if number < self.sources.len() { Ok(number) } else { Err(Damaged) }
    }
}
