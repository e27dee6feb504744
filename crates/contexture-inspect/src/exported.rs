//! What an export says of windows, and the table of words for it.

use std::collections::HashMap;

use serde::Serialize;

use super::view::{BlockState, FileGrade};

/// A block of a window: its id, its state, the reason, its grade, the reason for that, and the block that it replaces.
/// Reasons are indices into a list of words; 0 means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExportRow(pub u32, pub BlockState, pub usize, pub Option<FileGrade>, pub usize, pub u32);

/// A window, stored as its difference from that of the previous request.
#[derive(Clone, Debug, Serialize)]
pub struct ExportedWindow {
    /// Leading rows that are the same as in the previous request.
    keep: usize,
    /// The rows after them.
    rows: Vec<ExportRow>,
    /// The index of the first difference.
    first: Option<usize>,
    /// The cache boundary.
    boundary: Option<usize>,
}

/// The windows of a conversation in one form.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct ExportedWindows {
    told: Vec<ExportedWindow>,
    #[serde(skip)]
    newest: Vec<ExportRow>,
}

impl ExportedWindows {
    /// Adds the window of the next request.
    pub fn add(&mut self, rows: Vec<ExportRow>, first: Option<usize>, boundary: Option<usize>) {
        let keep = rows.iter().zip(&self.newest).take_while(|(now, before)| now == before).count();
        self.told.push(ExportedWindow { keep, rows: rows[keep..].to_vec(), first, boundary });
        self.newest = rows;
    }
}

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
