//! How fast tokens are counted, and how fast a text is cut to a budget.

use contexture::bpe::Bpe;
use contexture::tokens::{TokenCounter, count_item};
use contexture_bench::synthetic::{code, items, prose};
use contexture_bench::{measure, print_table};
use contexture_measure::random::Rng;

/// The token budget that texts are cut to: half at the start, half at the end.
const TRIM_TOKENS: u64 = 2000;

fn main() {
    let bpe = Bpe::o200k();
    print_table("loading, once", &[measure_once("o200k", || bpe.load())]);

    let texts = texts();
    let counting = texts.iter().map(|(name, text)| measure(name, || bpe.count(text)).of_bytes(text.len()));
    print_table("counting", &counting.collect::<Vec<_>>());

    let trimming = texts.iter().map(|(name, text)| measure(name, || trim(&bpe, text)));
    print_table("cutting to head and tail of 2000 tokens", &trimming.collect::<Vec<_>>());

    let items: Vec<_> = items(1000, 42).collect();
    let per_item = measure("1000 items of 400 bytes", || items.iter().map(|item| count_item(&bpe, item)).sum::<u64>());
    // Few enough to stop early, but too many to decide by the length of the text alone.
    let until = measure("1 MB of code, until 20000", || bpe.count_until(&texts[0].1, 20_000));
    let word = measure("one word", || bpe.count("harbour"));
    print_table("in small", &[per_item.of_bytes(400_000), until, word]);
}

fn trim(bpe: &Bpe, text: &str) -> (usize, usize) {
    (bpe.head(text, TRIM_TOKENS / 2), bpe.tail(text, TRIM_TOKENS / 2))
}

/// Loading happens once per process, so there is only one sample.
fn measure_once(name: &str, run: impl FnOnce()) -> contexture_bench::Measured {
    let begin = std::time::Instant::now();
    run();
    let took = begin.elapsed();
    contexture_bench::Measured { name: name.into(), min: took, median: took, bytes: None }
}

/// Ordinary text of a megabyte each, and inputs that are hard for a splitter or a merger.
fn texts() -> Vec<(&'static str, String)> {
    const BYTES: usize = 1_000_000;
    let fill = |unit: &str| unit.repeat(BYTES / unit.len());
    let mut rng = Rng::new(42);
    vec![
        ("code", code(&mut rng, BYTES)),
        ("prose", prose(&mut rng, BYTES)),
        ("Russian", fill("Кран останавливается, когда груз тяжелее, чем позволяет разрешение. ")),
        ("Hindi", fill("जब भार अनुमति से अधिक होता है तो क्रेन रुक जाती है। ")),
        ("Chinese", fill("货物超过许可证允许的重量时，起重机会停止。")),
        ("Chinese with arrows", fill("货物→超过许可证·允许的重量时，起重机会停止。")),
        ("words of many scripts", scripts(&mut rng, BYTES, 6)),
        ("letters of many scripts", scripts(&mut rng, BYTES, 1)),
        ("any characters", any_characters(&mut rng, BYTES)),
        ("emoji", fill("😀👍🏽👨‍👩‍👧🇩🇪✅")),
        ("base64", base64(&mut rng, BYTES)),
        ("bases", (0..BYTES).map(|_| rng.pick(&['A', 'C', 'G', 'T'])).collect()),
        ("one letter", fill("a")),
        ("spaces", fill(" ")),
        ("line feeds", fill("\n")),
        ("line feeds and spaces", fill("\n ")),
        ("capitals behind a letter without case", fill("字ABCDEFGH")),
    ]
}

/// Random letters that stay in one of many scripts for a few characters.
fn scripts(rng: &mut Rng, bytes: usize, stay: usize) -> String {
    const STARTS: [u32; 24] = [
        0x41, 0x61, 0xC0, 0x100, 0x391, 0x410, 0x430, 0x531, 0x5D0, 0x628, 0x905, 0x985, 0xE01, 0x10A0, 0x1200, 0x13A0,
        0x1E00, 0x1F00, 0x3041, 0x4E00, 0x5E00, 0xAC00, 0x10400, 0x1D400,
    ];
    let mut text = String::new();
    while text.len() < bytes {
        let start = rng.pick(&STARTS);
        text.extend((0..1 + rng.below(stay)).filter_map(|_| char::from_u32(start + rng.below(26) as u32)));
        if stay > 1 || rng.chance(16) {
            text.push(' ');
        }
    }
    text
}

fn any_characters(rng: &mut Rng, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.extend(char::from_u32(rng.below(0x11_0000) as u32));
    }
    text
}

fn base64(rng: &mut Rng, bytes: usize) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes).map(|_| char::from(rng.pick(DIGITS))).collect()
}
