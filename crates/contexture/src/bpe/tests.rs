use proptest::prelude::*;

use super::split::MAX_PIECE_BYTES;
use super::*;

fn reference() -> &'static tiktoken::CoreBpe {
    tiktoken::get_encoding("o200k_base").unwrap()
}

/// Where the tokens of a text end, according to our encoder.
fn our_ends(text: &str) -> Vec<usize> {
    let bpe = Bpe::o200k();
    let mut ends = Vec::new();
    for piece in bpe.pieces(text) {
        let inner = bpe.token_ends(&text[piece.start..piece.end]);
        assert_eq!(inner.len() as u64, piece.tokens, "{:?}", &text[piece.start..piece.end]);
        ends.extend(inner.iter().map(|end| piece.start + end));
    }
    ends
}

fn reference_ends(text: &str) -> Vec<usize> {
    let tokens = reference().encode(text);
    let lengths = tokens.iter().map(|token| reference().decode(&[*token]).len());
    let ends = lengths.scan(0, |at, len| {
        *at += len;
        Some(*at)
    });
    ends.collect()
}

#[track_caller]
fn check(text: &str) {
    assert_eq!(our_ends(text), reference_ends(text), "{text:?}");
}

#[test]
fn tokens_are_those_of_the_reference() {
    let texts = [
        "",
        "a",
        "The quick brown fox jumps over the lazy dog.",
        "fn main() {\n    let x = vec![1, 2, 345678];\n\n\n    println!(\"{x:?}\");\n}\n",
        "\t\tindented\r\n\r\n  twice \n \n x",
        "don't DON'T we'll WE'RE it'S 'tis rock'n'roll o'ſo I'm'd",
        "HTTPServer getHTTPResponse XMLHttpRequest iOS eBay ABCdefGHI",
        "  leading, trailing   ",
        "\u{a0}nbsp\u{a0}\u{a0}x\u{2003}y\u{3000}z\u{2028}w\u{b}v\u{c}u\u{85}t",
        "1234567 12 ½ ² ٣٤٥٦ Ⅷ 一二三",
        "/path//to///file ///\n/// doc\n//\r\n/",
        "naïve café e\u{301}te\u{301} \u{301}\u{302}ABC \u{301}abc -\u{301} !\u{301}\u{301}",
        "Привет, мир! Ελληνικά ՀԱՅԵՐԵՆ",
        "你好世界，这是·一段→文字。日本語ABCのテキストaBc한국어",
        "ǅungla ǅ ǄA ʰaʰA ªº",
        "😀👍🏽👨‍👩‍👧🇩🇪 ✅→★",
        "नमस्ते दुनिया ภาษาไทย العربية עברית",
        "\0\u{1}\u{7f}\u{feff}\u{e000}\u{10ffff}",
        "<|endoftext|> is plain text",
        "====================================================================",
        "x = {'a': \"b\"};\n\n\n\n\n\t\t\t\t\t\t\tdone",
    ];
    texts.into_iter().for_each(check);
}

#[test]
fn long_pieces_are_those_of_the_reference_up_to_the_bound() {
    for unit in ["=", "a", "Z", " ", "\n", "ab", "字", "é", "\u{301}", "xyzzy"] {
        for bytes in [90, 101, 150, 500, 1000] {
            let run = unit.repeat(bytes / unit.len());
            check(&run);
            check(&format!("x{run} y"));
        }
    }
}

#[test]
fn longer_pieces_are_cut_and_differ_by_a_token_for_each_part() {
    for unit in ["=", "a", " ", "字", "ACGTTGCA"] {
        let text = unit.repeat(100_000 / unit.len());
        let (ours, theirs) = (Bpe::o200k().count(&text), reference().count(&text) as u64);
        assert!(ours.abs_diff(theirs) <= (text.len() / MAX_PIECE_BYTES) as u64 + 1, "{unit:?}: {ours} {theirs}");
    }
}

#[track_caller]
fn check_cuts(text: &str, head_tokens: u64, head: &str, tail: &str) {
    let bpe = Bpe::o200k();
    assert_eq!(&text[..bpe.head(text, head_tokens)], head);
    assert_eq!(&text[text.len() - bpe.tail(text, head_tokens)..], tail);
}

#[test]
fn cuts_keep_as_many_tokens_as_they_may() {
    let text = "The quick brown fox jumps over the lazy dog";
    check_cuts(text, 0, "", "");
    check_cuts(text, 1, "The", " dog");
    check_cuts(text, 3, "The quick brown", " the lazy dog");
    check_cuts(text, 9, text, text);
    check_cuts(text, u64::MAX, text, text);
    check_cuts("", 5, "", "");
}

#[test]
fn cuts_go_inside_a_piece_that_is_many_tokens() {
    let bpe = Bpe::o200k();
    for text in
        ["ACGTTGCATTAGC".repeat(70), "記憶力時間文字列".repeat(30), "z".repeat(5000), "e\u{301}\u{302}".repeat(90)]
    {
        for tokens in [1, 5, 20] {
            let head = &text[..bpe.head(&text, tokens)];
            let tail = &text[text.len() - bpe.tail(&text, tokens)..];
            assert!((1..=tokens).contains(&bpe.count(head)), "head {tokens} of {text:?}");
            assert!((1..=tokens).contains(&bpe.count(tail)), "tail {tokens} of {text:?}");
        }
    }
}

#[test]
fn counting_stops_at_the_limit() {
    let bpe = Bpe::o200k();
    assert_eq!(bpe.count_until("The quick brown fox", 4), Some(4));
    assert_eq!(bpe.count_until("The quick brown fox", 3), None);
    assert_eq!(bpe.count_until("", 0), Some(0));
    assert_eq!(bpe.count_until(&"x ".repeat(1_000_000), 10), None);
    assert_eq!(bpe.count_until("The quick brown fox", u64::MAX), Some(4));
}

/// Text that exercises every rule of splitting, often at awkward places.
fn any_text() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        6 => prop::char::range('a', 'z'),
        3 => prop::char::range('A', 'Z'),
        3 => prop::char::range('0', '9'),
        6 => prop::sample::select(vec![' ', ' ', '\n', '\r', '\t', '\'', '/', '.', '(', '_', '-', '\u{a0}', '\u{2028}']),
        3 => prop::sample::select(vec!['é', 'É', 'ß', 'ſ', 'ǅ', 'ʰ', 'ª', 'Ж', 'ж', '字', 'の', '한', '\u{301}', '\u{903}']),
        2 => prop::sample::select(vec!['½', '٣', 'Ⅷ', '→', '·', '，', '😀', '\u{200d}', '\u{fe0f}', '\0']),
        1 => any::<char>(),
    ];
    let stretch = prop_oneof![
        6 => prop::collection::vec(character.clone(), 0..20).prop_map(String::from_iter),
        1 => (character, 0..200_usize).prop_map(|(character, count)| String::from(character).repeat(count)),
        2 => prop::sample::select(vec!["don't", "We'RE", "HTTPServer", "\n\n  ", "   ", "1234567", "//\n/", "の字ABc"])
            .prop_map(String::from),
    ];
    prop::collection::vec(stretch, 0..12).prop_map(|stretches| stretches.concat())
}

/// Text whose pieces are below the limit, above which they are cut and may have other tokens: runs that are beside each
/// other by chance can be one piece.
fn any_short_text() -> impl Strategy<Value = String> {
    any_text().prop_map(|mut text| {
        text.truncate(text.floor_char_boundary(MAX_PIECE_BYTES - 1));
        text
    })
}

/// Text that also has pieces longer than the limit.
fn any_long_text() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec!["a", "=", " ", "\n", "字", "\u{301}", "aB", "é"]);
    let run = (unit, 0..2000_usize).prop_map(|(unit, count)| unit.repeat(count));
    (any_text(), run, any_text()).prop_map(|(before, run, after)| before + &run + &after)
}

proptest! {
    #[test]
    fn any_tokens_are_those_of_the_reference(text in any_short_text()) {
        prop_assert_eq!(our_ends(&text), reference_ends(&text));
    }

    #[test]
    fn a_head_has_at_most_its_tokens(text in any_long_text(), tokens in 0..200_u64) {
        let bpe = Bpe::o200k();
        let head = &text[..bpe.head(&text, tokens)];
        prop_assert!(bpe.count(head) <= tokens);
        prop_assert!(head.len() == text.len() || bpe.count(&text) > tokens);
    }

    #[test]
    fn a_tail_has_at_most_its_tokens(text in any_long_text(), tokens in 0..200_u64) {
        let bpe = Bpe::o200k();
        let tail = &text[text.len() - bpe.tail(&text, tokens)..];
        prop_assert!(bpe.count(tail) <= tokens);
        prop_assert!(tail.len() == text.len() || bpe.count(&text) > tokens);
    }

    #[test]
    fn a_head_has_every_piece_that_fits(text in any_text(), tokens in 0..100_u64) {
        let bpe = Bpe::o200k();
        let ends = bpe.pieces(&text).scan(0, |count, piece| {
            *count += piece.tokens;
            (*count <= tokens).then_some(piece.end)
        });
        prop_assert!(bpe.head(&text, tokens) >= ends.last().unwrap_or(0));
    }

    #[test]
    fn counting_until_agrees_with_counting(text in any_long_text(), limit in 0..2000_u64) {
        let bpe = Bpe::o200k();
        let count = bpe.count(&text);
        prop_assert_eq!(bpe.count_until(&text, limit), (count <= limit).then_some(count));
    }
}
