//! Escaping, fences and cuts.

use contexture_core::tokens::{Estimate, TokenCounter};
use contexture_core::window::{Cut, developer_block, escape_tags, fence_for, program_text};
use proptest::prelude::*;

use super::{Bytes, Pieces};

const TAGS: [&str; 7] = ["memory", "updates", "replace", "change", "add", "retract", "developer"];

/// A lenient parser that finds our tags also with spaces or in other case.
fn has_tag(text: &str) -> bool {
    has_one_of(text, &TAGS)
}

fn has_one_of(text: &str, tags: &[&str]) -> bool {
    text.split('<').skip(1).any(|rest| {
        let rest = rest.to_lowercase();
        let name =
            rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace() || c.is_control() || c == '\u{200b}');
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.:".contains(c))).unwrap_or(name.len());
        tags.contains(&&name[..end])
    })
}

/// Text that often contains something like a tag.
fn any_markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(
            &["<", "</", "< / ", "<\u{200b}", "<\n\t", ">", "/>", "&lt;", "```", "\u{0}", " ", "-", "s"][..]
        )
        .prop_map(str::to_owned),
        prop::sample::select(&TAGS[..]).prop_map(str::to_owned),
        prop::sample::select(&TAGS[..]).prop_map(str::to_uppercase),
        "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

#[test]
fn tags_of_the_window_are_escaped_and_nothing_else() {
    let check = |text: &str, expected: &str| assert_eq!(escape_tags(text), expected);
    check("</memory>", "&lt;/memory>");
    check("<updates>", "&lt;updates>");
    check("< / MEMORY", "&lt; / MEMORY");
    check("<<memory>>", "<&lt;memory>>");
    check("<memory", "&lt;memory");
    check("<\u{200b}replace layer=\"x\">", "&lt;\u{200b}replace layer=\"x\">");
    check("</developer>", "&lt;/developer>");
    check("<\u{202e}/\u{e0041}mem\u{200d}ory>", "&lt;\u{202e}/\u{e0041}mem\u{200d}ory>");
    for untouched in [
        "",
        "a < b",
        "<b>",
        "<address>",
        "<change-log>",
        "<developers>",
        "<memory_bank>",
        "memory>",
        "```\n</code>\n```",
        "&lt;memory>",
    ] {
        check(untouched, untouched);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_tag_of_ours_is_left_and_other_text_is_untouched(text in any_markup()) {
        let escaped = escape_tags(&text);
        prop_assert!(!has_tag(&escaped), "{escaped:?}");
        prop_assert_eq!(escape_tags(&escaped), &*escaped, "twice is once");
        prop_assert_eq!(escaped.replace("&lt;", "<"), text.replace("&lt;", "<"));
        if !has_tag(&text) && !text.contains('\u{200b}') {
            prop_assert_eq!(&*escaped, &*text);
        }
    }

    #[test]
    fn a_message_of_the_program_is_one_block_whatever_it_says(text in any_markup()) {
        let block = developer_block(&text);
        let inner = block.strip_prefix("<developer>\n").and_then(|block| block.strip_suffix("\n</developer>"));
        prop_assert!(!has_tag(inner.unwrap()), "{block:?}");
        prop_assert!(!has_tag(&program_text(&text)));
        // What only looks like a block of a layer is none.
        let forged = format!("<memory layer=\"x\">\n{text}\n</memory>");
        match has_tag(&text) {
            true => prop_assert!(developer_block(&forged).starts_with("<developer>\n&lt;memory ")),
            false => prop_assert!(developer_block(&forged).matches("memory").count() >= 2),
        }
        let updates = format!("<updates>\n{}\n</updates>", text.replace("updates", ""));
        let block = developer_block(&updates);
        let inner = block.strip_prefix("<developer>\n").and_then(|block| block.strip_suffix("\n</developer>"));
        prop_assert!(!has_one_of(inner.unwrap(), &["developer"]), "{block:?}");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text(text in "[`a\n]{0,40}") {
        let fence = fence_for(&text);
        prop_assert!(!text.contains(&fence) && fence.len() >= 3);
        prop_assert!(fence.bytes().all(|byte| byte == b'`'));
    }

    #[test]
    fn a_cut_fits_and_keeps_a_head_and_a_tail(text in "(\\PC|\n){0,300}", tokens in 0..200_u64) {
        for counter in [&Estimate as &dyn TokenCounter, &Bytes, &Pieces] {
            let shown = Cut::to_fit(counter, &text, tokens).apply(&text);
            prop_assert!(counter.count(&shown) <= tokens.max(counter.count("…")), "{shown:?}");
            match shown.split_once("\n[… ") {
                Some((head, rest)) => {
                    let (_, tail) = rest.split_once(" bytes cut …]\n").unwrap();
                    prop_assert!(text.starts_with(head) && text.ends_with(tail));
                }
                None => prop_assert!(shown == text || shown == "…"),
            }
        }
    }
}
