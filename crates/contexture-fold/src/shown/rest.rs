//! Storing the window. Items of the log are stored as positions, and what was made of them as quotes from them.

use std::sync::Arc;

use contexture_core::item::Item;

use super::{HeadItem, ShownItem, WindowContents};
use crate::claims::LinesClaim;
use crate::conversation::{replaced_text, text_of, with_text};
use crate::decision::{Piece, Records, ViewPart};
use contexture_text::packed::{Damaged, Packer, Unpacker};

impl WindowContents {
    /// The positions of items that are shown with another text, which mostly quotes them.
    pub(crate) fn shortened_positions(&self) -> impl Iterator<Item = usize> {
        self.items.iter().filter(|item| !item.is_logged).filter_map(|item| item.position)
    }

    /// Writes all of it.
    pub(crate) fn rest(&self, packer: &mut Packer<'_>) {
        let Self {
            items,
            total: _,
            sent,
            start,
            messages_before,
            head,
            parts,
            marks,
            newest_mark,
            // They are among all items.
            shortened: _,
            pointers,
        } = self;
        let runs: Vec<&[ShownItem]> = items.chunk_by(follows).collect();
        packer.list(runs, rest_run);
        packer.number(*sent);
        packer.number(*start);
        packer.number(*messages_before);
        packer.list(head, rest_head);
        packer.list(parts, rest_part);
        packer.list(marks, |packer, mark| packer.number(*mark));
        packer.number(*newest_mark);
        packer.list(pointers, |packer, (moment, at)| {
            packer.number(*moment);
            packer.number(*at);
        });
    }

    /// Reads it again.
    pub(crate) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let items = unpacker.list(wake_run)?.concat();
        let sent: usize = unpacker.place(items.len() + 1)?;
        let len = unpacker.log().len();
        let start = unpacker.place(len + 1)?;
        let messages_before = unpacker.number()?;
        let head = wake_heads(unpacker, &items)?;
        let parts = unpacker.list(wake_part)?;
        let marks = unpacker.list(Unpacker::number)?;
        let newest_mark = unpacker.number()?;
        let pointers = unpacker.list(|unpacker| Ok((unpacker.number()?, unpacker.place(len)?)))?;
        let is_shortened = |item: &&ShownItem| !item.is_logged && item.position.is_some_and(|at| at >= start);
        let shortened = items.iter().filter(is_shortened).filter_map(|item| Some((item.position?, item.clone())));
        let total = items.iter().try_fold(0_u64, |total, item| total.checked_add(item.tokens)).ok_or(Damaged)?;
        Ok(Self {
            shortened: shortened.collect(),
            total,
            items,
            sent,
            start,
            messages_before,
            head,
            parts,
            marks,
            newest_mark,
            pointers: pointers.into_iter().collect(),
        })
    }
}

/// Whether an item of the log directly follows another one, so that both are written as one run.
fn follows(before: &ShownItem, item: &ShownItem) -> bool {
    let is_next = before.position.map(|at| at + 1) == item.position;
    is_next && before.is_logged && item.is_logged
}

fn rest_run(packer: &mut Packer<'_>, run: &[ShownItem]) {
    let first = &run[0];
    packer.number(if first.is_logged { run.len() } else { 0 });
    packer.optional(first.position);
    if !first.is_logged {
        packer.number(first.tokens);
        packer.long_text(&replaced_text(&first.item).unwrap_or_default());
    }
}

fn wake_run(unpacker: &mut Unpacker<'_>) -> Result<Vec<ShownItem>, Damaged> {
    let log = unpacker.log();
    let (count, position): (usize, Option<usize>) = (unpacker.number()?, unpacker.optional()?);
    if count > 0 {
        let first = position.ok_or(Damaged)?;
        let run = log.get(first..).and_then(|log| log.get(..count)).ok_or(Damaged)?;
        let logged = |(position, (item, tokens)): (usize, &(Arc<Item>, u64))| ShownItem {
            position: Some(position),
            is_logged: true,
            item: item.clone(),
            tokens: *tokens,
        };
        return Ok((first..).zip(run).map(logged).collect());
    }
    let tokens = unpacker.number()?;
    let text = unpacker.long_text()?;
    let item = match position {
        Some(at) => with_text(&log.get(at).ok_or(Damaged)?.0, &text),
        None => Item::developer(text),
    };
    Ok(vec![ShownItem { position, is_logged: false, item: Arc::new(item), tokens }])
}

/// The text of the item is written with the item.
fn rest_head(packer: &mut Packer<'_>, head: &HeadItem) {
    match head {
        HeadItem::Note => packer.number(0_u64),
        HeadItem::Part => packer.number(1_u64),
        HeadItem::Dialogue(Piece::Records(Records { from, to, text: _ })) => {
            packer.number(2_u64);
            packer.number(*from);
            packer.number(to - from);
        }
        HeadItem::Dialogue(_) => packer.number(3_u64),
    }
}

fn wake_heads(unpacker: &mut Unpacker<'_>, items: &[ShownItem]) -> Result<Vec<HeadItem>, Damaged> {
    let mut index = 0;
    unpacker.list(|unpacker| {
        let item = items.get(index).ok_or(Damaged)?;
        index += 1;
        match unpacker.number::<u64>()? {
            0 => Ok(HeadItem::Note),
            1 => Ok(HeadItem::Part),
            2 => {
                let from: usize = unpacker.number()?;
                let to = from.checked_add(unpacker.number()?).ok_or(Damaged)?;
                let text = text_of(&item.item).ok_or(Damaged)?.into();
                Ok(HeadItem::Dialogue(Piece::Records(Records { from, to, text })))
            }
            3 => match HeadItem::of(item) {
                HeadItem::Note => Err(Damaged),
                head => Ok(head),
            },
            _ => Err(Damaged),
        }
    })
}

fn rest_part(packer: &mut Packer<'_>, part: &ViewPart) {
    let ViewPart { mark, lines, bytes, message, claims } = part;
    packer.number(*mark);
    packer.number(*lines);
    packer.number(*bytes);
    packer.number(*message);
    packer.list(claims, |packer, claim| {
        let LinesClaim { file, first, count, hash, first_hash, is_whole, is_changed } = claim;
        packer.number(*file);
        packer.optional(*first);
        packer.number(*count);
        packer.raw(&hash.to_le_bytes());
        packer.raw(&first_hash.to_le_bytes());
        packer.flag(*is_whole);
        packer.flag(*is_changed);
    });
}

fn wake_part(unpacker: &mut Unpacker<'_>) -> Result<ViewPart, Damaged> {
    let claim = |unpacker: &mut Unpacker<'_>| {
        Ok(LinesClaim {
            file: unpacker.number()?,
            first: unpacker.optional()?,
            count: unpacker.number()?,
            hash: u64::from_le_bytes(unpacker.raw()?),
            first_hash: u64::from_le_bytes(unpacker.raw()?),
            is_whole: unpacker.flag()?,
            is_changed: unpacker.flag()?,
        })
    };
    Ok(ViewPart {
        mark: unpacker.number()?,
        lines: unpacker.number()?,
        bytes: unpacker.number()?,
        message: unpacker.number()?,
        claims: unpacker.list(claim)?,
    })
}
