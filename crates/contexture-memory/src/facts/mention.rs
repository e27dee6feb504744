//! Words that are looked for in texts, to forget what says them.

use contexture_text::block::flat;

use super::fact::hashes;

/// The fewest letters that are looked for anywhere in a text. Fewer are part of too many words.
const MIN_CHARS_WITHIN: usize = 8;
/// The fewest letters and digits that can be looked for.
const MIN_CHARS: usize = 2;
/// From here on are scripts that write no spaces between words.
const WITHOUT_SPACES: char = '\u{2e80}';

/// Whether a text has these words, whatever their case and the white space between them. Fewer than eight letters count
/// only as whole words: `Bo` is not in `bottom`.
///
/// ```
/// use contexture_memory::facts::mentions;
/// assert!(mentions("Ask Bo, he knows.", "bo") && !mentions("It is at the bottom.", "bo"));
/// assert!(mentions("Bartholomew\n Quinces", "bartholomew quince"));
/// ```
pub fn mentions(text: &str, words: &str) -> bool {
    let (text, words) = (flat(text).to_lowercase(), flat(words).to_lowercase());
    if words.chars().count() >= MIN_CHARS_WITHIN {
        return text.contains(&words);
    }
    let is_open = |inner: Option<char>, outer: Option<char>| {
        let is_letter = |letter: char| letter.is_alphanumeric() && letter < WITHOUT_SPACES;
        inner.is_some_and(is_letter) && outer.is_some_and(is_letter)
    };
    !words.is_empty()
        && text.match_indices(&words).any(|(at, found)| {
            let (before, after) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
            !is_open(words.chars().next(), before) && !is_open(words.chars().next_back(), after)
        })
}

/// Whether words tell enough to forget everything that has them: two letters, and not only words that are everywhere.
pub fn can_be_looked_for(words: &str) -> bool {
    words.chars().filter(|letter| letter.is_alphanumeric()).count() >= MIN_CHARS && !hashes(words).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &str, expected: bool) {
        assert_eq!(mentions(text, words), expected, "{words} in {text}");
    }

    #[test]
    fn few_letters_are_whole_words() {
        check("Bo prefers tabs", "Bo", true);
        check("(BO)", "bo", true);
        check("the bottle of Limbo", "Bo", false);
        check("QX-7 and QX7", "QX", true);
        check("QX7", "QX", false);
        check("C++ is used", "C++", true);
        check("他住在北京。", "北京", true);
        check("", "Bo", false);
        check("Bo", "", false);
        check("the landlord's", "landlord", true);
    }

    #[test]
    fn what_is_everywhere_is_not_looked_for() {
        assert!(can_be_looked_for("Bo") && can_be_looked_for("the QX") && can_be_looked_for("北京"));
        assert!(
            !can_be_looked_for("the") && !can_be_looked_for("x") && !can_be_looked_for(" - ") && !can_be_looked_for("")
        );
    }
}
