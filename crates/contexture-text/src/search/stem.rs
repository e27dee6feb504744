//! The stemmer for English that M. F. Porter published in 1980.

/// Reduces a word of lower-case ASCII letters to its stem; any other word stays as it is.
pub(super) fn stem(word: &mut String) {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return;
    }
    let mut stemmer = Stemmer(word);
    stemmer.plurals();
    stemmer.past_and_progress();
    stemmer.final_y();
    stemmer.replace_longest(DOUBLE_SUFFIXES, 1);
    stemmer.replace_longest(FULL_SUFFIXES, 1);
    stemmer.drop_suffix();
    stemmer.final_e();
    stemmer.double_l();
}

/// Step 2: suffixes of two parts become one.
const DOUBLE_SUFFIXES: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

/// Step 3.
const FULL_SUFFIXES: &[(&str, &str)] =
    &[("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];

/// Step 4: these are removed if the rest is long enough.
const SUFFIXES: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
];

struct Stemmer<'a>(&'a mut String);

impl Stemmer<'_> {
    fn letter(&self, at: usize) -> u8 {
        self.0.as_bytes()[at]
    }

    /// The part before a suffix, if the word ends with it.
    fn before(&self, suffix: &str) -> Option<usize> {
        // Most suffixes are ruled out by their last letter.
        let may_end = self.0.as_bytes().last() == suffix.as_bytes().last();
        (may_end && self.0.ends_with(suffix)).then(|| self.0.len() - suffix.len())
    }

    fn replace(&mut self, len: usize, ending: &str) {
        self.0.truncate(len);
        self.0.push_str(ending);
    }

    fn is_consonant(&self, at: usize) -> bool {
        match self.letter(at) {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => at == 0 || !self.is_consonant(at - 1),
            _ => true,
        }
    }

    /// How many times vowels are followed by consonants in the first `len` letters.
    fn measure(&self, len: usize) -> usize {
        (1..len).filter(|at| self.is_consonant(*at) && !self.is_consonant(*at - 1)).count()
    }

    fn has_vowel(&self, len: usize) -> bool {
        (0..len).any(|at| !self.is_consonant(at))
    }

    fn ends_doubled(&self) -> bool {
        let len = self.0.len();
        len >= 2 && self.letter(len - 1) == self.letter(len - 2) && self.is_consonant(len - 1)
    }

    /// Whether the first `len` letters end with consonant, vowel and a consonant that is not w, x or y.
    fn ends_short(&self, len: usize) -> bool {
        len >= 3
            && self.is_consonant(len - 3)
            && !self.is_consonant(len - 2)
            && self.is_consonant(len - 1)
            && !matches!(self.letter(len - 1), b'w' | b'x' | b'y')
    }

    /// Step 1a.
    fn plurals(&mut self) {
        for (suffix, ending) in [("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")] {
            if let Some(len) = self.before(suffix) {
                return self.replace(len, ending);
            }
        }
    }

    /// Step 1b.
    fn past_and_progress(&mut self) {
        if let Some(len) = self.before("eed") {
            if self.measure(len) > 0 {
                self.replace(len, "ee");
            }
            return;
        }
        let Some(len) = self.before("ed").or_else(|| self.before("ing")).filter(|len| self.has_vowel(*len)) else {
            return;
        };
        self.0.truncate(len);
        let len = self.0.len();
        if ["at", "bl", "iz"].iter().any(|ending| self.0.ends_with(ending)) {
            self.0.push('e');
        } else if self.ends_doubled() && !matches!(self.letter(len - 1), b'l' | b's' | b'z') {
            self.0.pop();
        } else if self.measure(len) == 1 && self.ends_short(len) {
            self.0.push('e');
        }
    }

    /// Step 1c.
    fn final_y(&mut self) {
        if let Some(len) = self.before("y").filter(|len| self.has_vowel(*len)) {
            self.replace(len, "i");
        }
    }

    /// Replaces the longest suffix of a table that the word has, if the rest is long enough.
    fn replace_longest(&mut self, table: &[(&str, &str)], measure: usize) {
        let found = table.iter().filter(|(suffix, _)| self.before(suffix).is_some());
        let Some((suffix, ending)) = found.max_by_key(|(suffix, _)| suffix.len()) else { return };
        if let Some(len) = self.before(suffix).filter(|len| self.measure(*len) >= measure) {
            self.replace(len, ending);
        }
    }

    /// Step 4.
    fn drop_suffix(&mut self) {
        let found = SUFFIXES.iter().filter(|suffix| self.before(suffix).is_some());
        let Some(suffix) = found.max_by_key(|suffix| suffix.len()) else { return };
        let Some(len) = self.before(suffix).filter(|len| self.measure(*len) > 1) else { return };
        if *suffix != "ion" || self.0[..len].ends_with(['s', 't']) {
            self.0.truncate(len);
        }
    }

    /// Step 5a.
    fn final_e(&mut self) {
        if let Some(len) = self.before("e") {
            let measure = self.measure(len);
            if measure > 1 || (measure == 1 && !self.ends_short(len)) {
                self.0.truncate(len);
            }
        }
    }

    /// Step 5b.
    fn double_l(&mut self) {
        if self.0.ends_with("ll") && self.measure(self.0.len()) > 1 {
            self.0.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    fn stem(word: &str) -> String {
        let mut word = word.to_owned();
        super::stem(&mut word);
        word
    }

    #[test]
    fn words_lose_their_endings_as_published() {
        let cases = "caresses caress, ponies poni, ties ti, caress caress, cats cat, feed feed, agreed agre, \
            plastered plaster, bled bled, motoring motor, sing sing, conflated conflat, troubled troubl, sized size, \
            hopping hop, tanned tan, falling fall, hissing hiss, fizzed fizz, failing fail, filing file, happy happi, \
            sky sky, relational relat, conditional condit, rational ration, valenci valenc, hesitanci hesit, \
            digitizer digit, conformabli conform, radicalli radic, differentli differ, vileli vile, \
            analogousli analog, vietnamization vietnam, predication predic, operator oper, feudalism feudal, \
            decisiveness decis, hopefulness hope, callousness callous, formaliti formal, sensitiviti sensit, \
            sensibiliti sensibl, triplicate triplic, formative form, formalize formal, electriciti electr, \
            electrical electr, hopeful hope, goodness good, revival reviv, allowance allow, inference infer, \
            airliner airlin, gyroscopic gyroscop, adjustable adjust, defensible defens, irritant irrit, \
            replacement replac, adjustment adjust, dependent depend, adoption adopt, homologou homolog, \
            communism commun, activate activ, angulariti angular, homologous homolog, effective effect, \
            bowdlerize bowdler, probate probat, rate rate, cease ceas, controll control, roll roll, \
            generalizations gener, oscillators oscil, is is, at at";
        for case in cases.split(", ") {
            let (word, expected) = case.trim().split_once(' ').unwrap();
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn what_is_no_english_word_stays() {
        for word in ["", "a", "Ponies", "été", "日本", "x86s", "ed", "ing", "ss", "sss"] {
            assert!(stem(word).len() + 1 >= word.len(), "{word}");
        }
        assert_eq!((stem("Ponies"), stem("étés")), ("Ponies".to_owned(), "étés".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn no_word_is_too_odd(word in "[a-z]{0,24}") {
            let stemmed = stem(&word);
            proptest::prop_assert!(stemmed.len() <= word.len() + 1 && (word.is_empty() || !stemmed.is_empty()));
        }
    }
}
