//! What is random, and what is a word.

/// Where a path or a name with several words is split.
const SEPARATORS: [char; 4] = ['/', '.', '-', '_'];
/// A part of so many characters is never taken for random: `k8s`, `i18n`.
const SHORT: usize = 5;
/// No word is that long.
const LONG: usize = 20;

/// Whether a part of a name is a word, possibly with a number: letters and digits hardly alternate, as in `tokens2`.
pub(super) fn is_word(part: &str) -> bool {
    part.len() <= SHORT || turns(part) * 4 <= part.len()
}

/// Whether short words are joined by dashes and the like; of a key some part is long or random.
pub(super) fn is_name_of_words(bytes: &[u8]) -> bool {
    let mut parts = bytes.split(|byte| matches!(byte, b'-' | b'_' | b'.' | b'/' | b'='));
    parts.all(|part| part.len() < LONG && std::str::from_utf8(part).is_ok_and(is_word))
}

/// Whether letters, capital letters and digits take turns as often as at random; words of a name do not.
pub(super) fn alternates(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| turns(text) * 10 >= text.len() * 3)
}

/// Whether all parts of a path, a dotted name or a name with dashes are words.
pub(super) fn is_name(value: &str) -> bool {
    let parts = || value.split(SEPARATORS).filter(|part| !part.is_empty());
    let count = parts().count();
    let letters = parts().filter(|part| part.bytes().all(|byte| byte.is_ascii_alphabetic())).count();
    count > 1 && parts().all(is_word) && (value.contains(['/', '.']) || letters * 2 >= count)
}

/// How often letters, capital letters and digits take turns. A capital that begins a word is no turn at its end.
fn turns(part: &str) -> usize {
    let class = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let classes: Vec<u8> = part.bytes().map(class).collect();
    (1..classes.len())
        .filter(|at| {
            let begins_word = classes[*at] == 0 && classes[at - 1] == 1 && (*at < 2 || classes[at - 2] != 1);
            classes[*at] != classes[at - 1] && !begins_word
        })
        .count()
}

/// Shannon entropy, in bits for each byte.
pub(super) fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let len = value.len() as f64;
    let share = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / len);
    share.map(|share| -share * share.log2()).sum()
}
