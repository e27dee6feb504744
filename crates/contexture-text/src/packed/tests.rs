//! What is packed is unpacked as it was, and bytes that nobody packed never lead astray.

use std::sync::Arc;

use contexture_core::item::Item;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn log_of(texts: &[String]) -> Vec<(Arc<Item>, u64)> {
    let item = |(index, text): (usize, &String)| match index % 3 {
        0 => Item::user(text.clone()),
        1 => Item::output("1", text.clone()),
        _ => Item::call("1", "Write", json!({"content": text, "more": [text, 1]}).to_string()),
    };
    texts.iter().enumerate().map(|pair| (Arc::new(item(pair)), 1)).collect()
}

fn text() -> impl Strategy<Value = String> {
    let line =
        prop_oneof!["", "\\}", "[ -~]{0,30}", Just("\tlet 字 = \"é\";\r".to_owned()), "  [0-9]{1,4}→value_[a-c]"];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn numbers_flags_and_texts_come_back(
        numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0..300_u64], 0..20),
        real in any::<f64>(),
        texts in prop::collection::vec("[a-c字]{0,4}", 0..20),
    ) {
        let mut packer = Packer::new(&[]);
        packer.list(&numbers, |packer, number| packer.number(*number));
        packer.list(&numbers, |packer, number| packer.optional(Some(*number).filter(|number| number % 2 == 0)));
        packer.real(real);
        let mut before = "";
        packer.list(&texts, |packer, text| {
            packer.text(text);
            packer.text_after(before, text);
            before = text;
        });
        let bytes = packer.into_bytes();
        let mut unpacker = Unpacker::new(&bytes, &[]);
        prop_assert_eq!(unpacker.list(Unpacker::number::<u64>).unwrap(), numbers.clone());
        let even: Vec<Option<u64>> = numbers.iter().map(|number| Some(*number).filter(|number| number % 2 == 0)).collect();
        prop_assert_eq!(unpacker.list(Unpacker::optional::<u64>).unwrap(), even);
        prop_assert_eq!(unpacker.real().unwrap().to_bits(), real.to_bits());
        let mut before = String::new();
        let read = unpacker.list(|unpacker| {
            let one = unpacker.text()?;
            before = unpacker.text_after(&before)?;
            assert_eq!(*one, *before);
            Ok(before.clone())
        });
        prop_assert_eq!(read.unwrap(), texts);
        prop_assert_eq!(unpacker.finish(), Ok(()));
    }

    #[test]
    fn texts_come_back_whether_they_are_in_the_log_or_not(
        log in prop::collection::vec(text(), 0..6),
        others in prop::collection::vec(text(), 0..4),
    ) {
        let items = log_of(&log);
        let mut packer = Packer::new(&items);
        (0..items.len()).for_each(|position| packer.quote_from(position));
        let texts: Vec<&String> = log.iter().chain(&others).collect();
        packer.list(texts.clone(), |packer, text| packer.long_text(text));
        let bytes = packer.into_bytes();
        let read = Unpacker::new(&bytes, &items).list(Unpacker::long_text).unwrap();
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), texts);
    }

    #[test]
    fn bytes_that_nobody_packed_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), log in prop::collection::vec(text(), 0..3)) {
        let items = log_of(&log);
        let mut unpacker = Unpacker::new(&bytes, &items);
        // Whether each of them can be read does not matter.
        let _ = unpacker.list(Unpacker::long_text);
        let _ = (unpacker.text(), unpacker.text_after("字"), unpacker.number::<u8>(), unpacker.place(3), unpacker.flag());
        let _ = (unpacker.real(), unpacker.optional::<usize>(), unpacker.lines(), unpacker.finish());
    }
}

#[test]
fn lines_of_the_log_are_quoted_without_what_a_tool_put_before_them() {
    let lines: Vec<String> = (8..108).map(|n| format!("    let value_{n} = {n};")).collect();
    let printed: String = (1..).zip(&lines).map(|(n, line): (usize, _)| format!("{n:>4}→{line}\n")).collect();
    let items = [(Arc::new(Item::output("1", printed)), 1)];
    let mut packer = Packer::new(&items);
    packer.quote_from(0);
    packer.long_text(&lines.join("\n"));
    let bytes = packer.into_bytes();
    assert!(bytes.len() < 16, "{} bytes", bytes.len());
    assert_eq!(Unpacker::new(&bytes, &items).long_text(), Ok(lines.join("\n")));
    let other = [(Arc::new(Item::output("1", "another text\n".repeat(200))), 1)];
    assert_eq!(Unpacker::new(&bytes, &other).long_text(), Err(Damaged));
}
