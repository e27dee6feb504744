//! Writing numbers and texts in few bytes.

use std::collections::HashMap;
use std::sync::Arc;

use contexture_core::item::Item;

use super::quotes::{Quote, Quotes};

/// Writes numbers and texts.
pub struct Packer<'a> {
    bytes: Vec<u8>,
    /// Texts that were written, by their number.
    texts: HashMap<Box<str>, usize>,
    quotes: Quotes<'a>,
    /// Sources that were quoted, in the order in which that happened first.
    quoted: HashMap<usize, usize>,
}

impl<'a> Packer<'a> {
    /// A packer that may quote a log.
    pub fn new(log: &'a [(Arc<Item>, u64)]) -> Self {
        Self { bytes: Vec::new(), texts: HashMap::new(), quotes: Quotes::new(log), quoted: HashMap::new() }
    }

    /// Lets lines be quoted from the item at a position.
    pub fn quote_from(&mut self, position: usize) {
        self.quotes.add(position);
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Writes a number; small ones take fewer bytes.
    pub fn number(&mut self, number: impl TryInto<u64>) {
        let Ok(mut left) = number.try_into() else { unreachable!("no number here is negative or above 64 bits") };
        while left >= 0x80 {
            self.bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.bytes.push(left as u8);
    }

    /// Writes yes or no.
    pub fn flag(&mut self, flag: bool) {
        self.bytes.push(flag.into());
    }

    /// Writes a number that may be absent.
    pub fn optional(&mut self, number: Option<impl TryInto<u64>>) {
        self.flag(number.is_some());
        if let Some(number) = number {
            self.number(number);
        }
    }

    /// Writes a number with a fraction, exactly.
    pub fn real(&mut self, real: f64) {
        self.raw(&real.to_bits().to_le_bytes());
    }

    /// Writes bytes whose count the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes how many values follow, and each of them.
    pub fn list<T>(
        &mut self,
        values: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        let values = values.into_iter();
        self.number(values.len());
        for value in values {
            write(self, value);
        }
    }

    /// Writes a text; one that was written before takes a number.
    pub fn text(&mut self, text: &str) {
        if let Some(number) = self.texts.get(text).copied() {
            return self.number(number + 1);
        }
        self.texts.insert(text.into(), self.texts.len());
        self.number(0_u64);
        self.number(text.len());
        self.raw(text.as_bytes());
    }

    /// Writes a text that may begin like the one before it.
    pub fn text_after(&mut self, before: &str, text: &str) {
        let same = before.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
        let same = text.floor_char_boundary(same);
        self.number(same);
        self.number(text.len() - same);
        self.raw(&text.as_bytes()[same..]);
    }

    /// Writes lines without line feeds; those that can be quoted are not written themselves.
    pub fn lines(&mut self, lines: &[&str]) {
        self.number(lines.len());
        let mut left = lines;
        while let Some(first) = left.first() {
            let count = match self.quotes.find(left) {
                Some(quote) => {
                    self.quote(&quote);
                    quote.count
                }
                None => {
                    self.number(0_u64);
                    self.text(first);
                    1
                }
            };
            left = &left[count..];
        }
    }

    /// Writes a text of any length, quoting what can be quoted.
    pub fn long_text(&mut self, text: &str) {
        self.lines(&text.split('\n').collect::<Vec<_>>());
    }

    fn quote(&mut self, quote: &Quote) {
        let next = self.quoted.len();
        let number = *self.quoted.entry(quote.source).or_insert(next);
        self.number(quote.count);
        self.number(number);
        if number == next {
            let source = self.quotes.source(quote.source);
            let (position, field, check) = (source.position(), source.field(), source.check());
            self.number(position);
            self.number(field);
            self.raw(&check);
        }
        self.number(quote.first);
        self.number(quote.skipped);
    }
}
