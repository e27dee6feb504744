//! Reads a recording of any known format.

use std::io::{BufRead, Cursor, Read};

use super::layout::{self, RecordLayout};
use super::reading::{ReadError, RecordingReading, Report};
use super::{Record, document};

/// Reads a recording and passes its records to `sink` one by one, oldest first.
///
/// The format is recognised by the content. Broken records are reported and skipped. If a recording has one record per
/// line, only the newest few are held in memory; if it is one JSON document, one at a time.
///
/// # Errors
///
/// When the reader fails, or when there is nothing in it, or nothing that belongs to a known format.
pub fn read(mut reader: impl BufRead, sink: &mut impl FnMut(Record)) -> Result<Report, ReadError> {
    let (layout, prefix) = layout::layout(&mut reader)?;
    if prefix.trim_ascii().is_empty() && reader.fill_buf()?.is_empty() {
        return Err(ReadError::Empty);
    }
    let reader = Cursor::new(prefix).chain(reader);
    let mut reading = RecordingReading::new(sink);
    match layout {
        RecordLayout::Lines => reading.lines(reader)?,
        RecordLayout::Document => document::read(reader, &mut reading)?,
    }
    reading.finish()
}
