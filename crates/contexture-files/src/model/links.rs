//! Pairs of names that may lead to the same file or directory.

use std::ops::Deref;

use crate::path::folded;

/// Links that were made, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    pairs: Vec<(String, String)>,
    /// The same names as systems compare them that ignore letter case: every change of a file asks for them.
    folded: Vec<[String; 2]>,
}

impl Links {
    /// Adds a link.
    pub(super) fn push(&mut self, (one, other): (String, String)) {
        self.folded.push([&one, &other].map(|name| folded(name).into_owned()));
        self.pairs.push((one, other));
    }

    /// Each pair, with its names as they are compared.
    pub(super) fn compared(&self) -> impl Iterator<Item = (&(String, String), &[String; 2])> {
        self.pairs.iter().zip(&self.folded)
    }
}

impl Deref for Links {
    type Target = [(String, String)];

    fn deref(&self) -> &[(String, String)] {
        &self.pairs
    }
}

impl FromIterator<(String, String)> for Links {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(pairs: T) -> Self {
        let mut links = Self::default();
        pairs.into_iter().for_each(|pair| links.push(pair));
        links
    }
}
