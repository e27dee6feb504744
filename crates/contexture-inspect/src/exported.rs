//! What an export says of a block, and the table of words for it.

use std::collections::HashMap;

use serde::Serialize;

/// A block of a window: its id, its state, the reason, its grade, the reason for that, and the block that it replaces.
/// Reasons and grades are indices into a list of words; 0 means none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExportRow(pub u32, pub String, pub usize, pub usize, pub usize, pub u32);

/// A table of repeated strings.
#[derive(Default)]
pub struct ExportedWords {
    /// In the order of their indices.
    pub all: Vec<String>,
    places: HashMap<String, usize>,
}

impl ExportedWords {
    /// The index of a string, from 1; 0 if there is none.
    pub fn place(&mut self, word: Option<String>) -> usize {
        let Some(word) = word else { return 0 };
        if let Some(place) = self.places.get(&word) {
            return *place;
        }
        self.all.push(word.clone());
        self.places.insert(word, self.all.len());
        self.all.len()
    }
}
