//! Real token counts, by byte-pair encoding.
//!
//! Text is split into pieces by the rules of its vocabulary (`split`), and each piece is one token or is merged from
//! its bytes (`merge`). We do both ourselves, with the vocabulary of the crate `tiktoken`, for two reasons. Its own
//! splitter falls below 0.5 MB/s when a text mixes scripts (Chinese with arrows in it is enough), and smaller slices do
//! not help; ours is linear. And with our own splitter we know where the pieces are, so that cutting a text to a budget
//! reads only what is kept. Tests compare our tokens with those of that crate.

mod class;
mod merge;
mod split;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::sync::LazyLock;

use contexture_core::tokens::{TokenCounter, ceil_boundary, floor_boundary};

use class::Classes;
use merge::Merger;
use vocabulary::Vocabulary;

/// How many bytes a token of ordinary text has. A first guess, corrected by counting.
const BYTES_PER_TOKEN: u64 = 4;

/// When too few bytes were read, at least this many more are.
const MIN_STRETCH_BYTES: u64 = 64;

/// How many cuts inside a piece are tried before the whole piece is left out.
const MAX_CUTS: usize = 4;

/// Counts tokens exactly, as the models of one vocabulary do.
///
/// It is cheap to copy. The vocabulary is loaded on first use, once per process: 12 MB, in one or two tenths of a
/// second. [`load`](Bpe::load) does it ahead of time.
///
/// The count is exact with one exception: a stretch of more than 1024 bytes without any boundary, such as a line of a
/// thousand equal signs, is counted in parts of that length, which can differ by a token for each.
///
/// ```
/// use contexture::bpe::Bpe;
/// use contexture::tokens::TokenCounter;
///
/// let bpe = Bpe::o200k();
/// assert_eq!(bpe.count("The quick brown fox jumps over the lazy dog."), 10);
/// assert_eq!(bpe.head("The quick brown fox", 2), "The quick".len());
/// assert_eq!(bpe.tail("The quick brown fox", 1), " fox".len());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bpe {
    tables: &'static LazyLock<Tables>,
}

/// The constant data of a vocabulary.
struct Tables {
    classes: Classes,
    vocabulary: Vocabulary,
}

/// This is static, although we pass dependencies elsewhere: it is a constant that is too large to write down, the same
/// for everyone, and a second copy would waste 12 MB.
static O200K: LazyLock<Tables> =
    LazyLock::new(|| Tables { classes: Classes::new(), vocabulary: Vocabulary::of(&tiktoken::encoding::o200k_base()) });

impl Bpe {
    /// The vocabulary `o200k_base`, of GPT-4o and later models of OpenAI.
    pub fn o200k() -> Self {
        Self { tables: &O200K }
    }

    /// Loads the vocabulary now, if it is not loaded yet.
    pub fn load(&self) {
        LazyLock::force(self.tables);
    }

    fn pieces<'a>(&self, text: &'a str) -> Pieces<'a> {
        Pieces { tables: self.tables, merger: Merger::default(), text, at: 0 }
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("tokens", &self.vocabulary.len()).finish_non_exhaustive()
    }
}

impl TokenCounter for Bpe {
    fn name(&self) -> &str {
        "o200k"
    }

    fn count(&self, text: &str) -> u64 {
        self.pieces(text).map(|piece| piece.tokens).sum()
    }

    fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        if text.len() as u64 > limit.saturating_mul(self.tables.vocabulary.longest() as u64) {
            return None;
        }
        self.pieces(text).try_fold(0, |count, piece| Some(count + piece.tokens).filter(|count| *count <= limit))
    }

    fn head(&self, text: &str, tokens: u64) -> usize {
        let (mut left, mut before) = (tokens, Piece::default());
        for piece in self.pieces(text) {
            if piece.tokens > left {
                return self.cut_end(text, before, piece, left);
            }
            left -= piece.tokens;
            before = piece;
        }
        text.len()
    }

    fn tail(&self, text: &str, tokens: u64) -> usize {
        let mut suffix = Suffix::default();
        let mut len = tokens.saturating_mul(BYTES_PER_TOKEN).saturating_add(MIN_STRETCH_BYTES);
        loop {
            let start = floor_boundary(text, text.len().saturating_sub(usize::try_from(len).unwrap_or(usize::MAX)));
            suffix = self.extend(text, start, suffix);
            if start == 0 || suffix.tokens() > tokens {
                break;
            }
            // As many as the tokens found so far suggest, with a small margin.
            let scaled = u128::from(len) * u128::from(tokens) / u128::from(suffix.tokens().max(1)) * 9 / 8;
            len = u64::try_from(scaled).unwrap_or(u64::MAX).max(len + MIN_STRETCH_BYTES);
        }
        text.len() - self.cut_start(text, &suffix, tokens)
    }
}

/// One piece of a text.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    start: usize,
    end: usize,
    tokens: u64,
}

/// The pieces of a text, starting at a position. Where the next piece ends does not depend on what is before it.
struct Pieces<'a> {
    tables: &'static Tables,
    merger: Merger,
    text: &'a str,
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.at == self.text.len() {
            return None;
        }
        let start = self.at;
        self.at = split::piece_end(&self.tables.classes, self.text, start);
        let bytes = &self.text.as_bytes()[start..self.at];
        let tokens = match self.tables.vocabulary.rank(bytes) {
            Some(_) => 1,
            None => self.merger.merge(&self.tables.vocabulary, bytes).len() as u64,
        };
        Some(Piece { start, end: self.at, tokens })
    }
}

/// The pieces of the end of a text, each with the tokens from its start to the end of the text.
///
/// Counting the text from the start of any of them gives exactly that number, since no piece depends on what is before
/// it.
#[derive(Default)]
struct Suffix(Vec<Piece>);

impl Suffix {
    fn tokens(&self) -> u64 {
        self.0.first().map_or(0, |piece| piece.tokens)
    }
}

impl Bpe {
    /// Where to cut so that `piece`, which has more than `left` tokens, adds at most `left` to what is before it.
    ///
    /// Text that ends where a piece ends has the same pieces as before. A cut inside a piece can change that piece, and
    /// white space before it, so the piece before is counted again.
    fn cut_end(&self, text: &str, before: Piece, piece: Piece, left: u64) -> usize {
        let allowed = before.tokens + left;
        let fits = |end: &usize| self.count_until(&text[before.start..*end], allowed).is_some();
        let ends = self.token_ends(&text[piece.start..piece.end]);
        let candidates = ends[..left as usize].iter().rev().take(MAX_CUTS);
        let mut cuts = candidates.map(|end| floor_boundary(text, piece.start + end)).filter(|cut| *cut > piece.start);
        cuts.find(fits).unwrap_or(piece.start)
    }

    /// Where to cut so that the rest of the text has at most `tokens` tokens.
    fn cut_start(&self, text: &str, suffix: &Suffix, tokens: u64) -> usize {
        let index = suffix.0.partition_point(|piece| piece.tokens > tokens);
        let (start, rest) = suffix.0.get(index).map_or((text.len(), 0), |piece| (piece.start, piece.tokens));
        let Some(piece) = index.checked_sub(1).map(|before| suffix.0[before]) else { return start };
        let ends = self.token_ends(&text[piece.start..piece.end]);
        // The last `tokens - rest` tokens of the piece begin where the one before them ends.
        let candidates = ends[ends.len() - 1 - (tokens - rest) as usize..ends.len() - 1].iter().take(MAX_CUTS);
        let mut cuts = candidates.map(|end| ceil_boundary(text, piece.start + end)).filter(|cut| *cut < piece.end);
        cuts.find(|cut| self.extend_tokens(text, *cut, suffix) <= tokens).unwrap_or(start)
    }

    /// The tokens from `start` to the end of the text, some of whose pieces are known.
    fn extend_tokens(&self, text: &str, start: usize, known: &Suffix) -> u64 {
        let (new, rest) = self.pieces_until_known(text, start, known);
        new.iter().map(|piece| piece.tokens).sum::<u64>() + known.0.get(rest).map_or(0, |piece| piece.tokens)
    }

    /// The pieces from `start` to the end of the text, some of which are known.
    fn extend(&self, text: &str, start: usize, mut known: Suffix) -> Suffix {
        let (mut new, rest) = self.pieces_until_known(text, start, &known);
        let mut after = known.0.get(rest).map_or(0, |piece| piece.tokens);
        for piece in new.iter_mut().rev() {
            after += piece.tokens;
            piece.tokens = after;
        }
        new.extend(known.0.drain(rest..));
        Suffix(new)
    }

    /// The pieces from `start` up to one that begins where a known one begins, and the index of that.
    fn pieces_until_known(&self, text: &str, start: usize, known: &Suffix) -> (Vec<Piece>, usize) {
        let mut new = Vec::new();
        let mut rest = 0;
        let mut pieces = self.pieces(text);
        pieces.at = start;
        loop {
            while known.0.get(rest).is_some_and(|piece| piece.start < pieces.at) {
                rest += 1;
            }
            if known.0.get(rest).is_some_and(|piece| piece.start == pieces.at) {
                return (new, rest);
            }
            match pieces.next() {
                Some(piece) => new.push(piece),
                None => return (new, rest),
            }
        }
    }

    /// Where the tokens of one piece end.
    fn token_ends(&self, piece: &str) -> Vec<usize> {
        Merger::default().merge(&self.tables.vocabulary, piece.as_bytes()).to_vec()
    }
}
