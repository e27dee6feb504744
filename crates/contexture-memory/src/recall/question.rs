//! A question, as it is compared with passages.

use contexture_core::search::TermWeights;
use contexture_text::search::terms;
use contexture_text::words::words;

use super::thesaurus::{is_stop_term, is_stop_word, related};
use super::when::{iso_date, month_of, ordinal};
use contexture_text::date::{MONTHS, civil, days};

/// The weight of related words, next to 1 of the question's own.
const RELATED_WEIGHT: f64 = 0.25;
/// The weight of function words, where they are used at all.
const MINOR_WEIGHT: f64 = 0.1;
/// The most terms that are looked up; every one costs time in a large index.
const MAX_TERMS: usize = 96;
/// The most bytes of a question that are read.
const MAX_BYTES: usize = 8 * 1024;

const DAY_MS: u64 = 86_400_000;

/// A question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Question {
    /// Its words in lower case, to recognise names.
    pub(crate) words: Vec<String>,
    /// The terms that it is about.
    pub(crate) content: Vec<String>,
    /// These and related ones, with weights.
    pub(crate) terms: TermWeights,
    /// The days that it names, in milliseconds since 1970.
    pub(crate) period: Option<(u64, u64)>,
    /// Whether it asks for a time.
    pub(crate) wants_time: bool,
}

impl Question {
    /// Reads a question that is asked at a time.
    pub(crate) fn new(text: &str, now_ms: u64) -> Self {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let lower: Vec<String> = words(text).map(str::to_lowercase).collect();
        let mut content: Vec<String> = Vec::new();
        for word in words(text).filter(|word| !is_stop_word(&word.to_lowercase())) {
            for term in terms(word) {
                if content.len() < MAX_TERMS / 2 && !content.contains(&term) && !is_stop_term(&term) {
                    content.push(term);
                }
            }
        }
        let mut weights: TermWeights = content.iter().map(|term| (term.clone(), 1.0)).collect();
        for other in content.iter().flat_map(|term| related(term)) {
            if weights.len() < MAX_TERMS {
                weights.entry(other.clone()).or_insert(RELATED_WEIGHT);
            }
        }
        let asks = |word: &str| lower.iter().any(|other| other == word);
        let wants_time = asks("when") || asks("date") || (asks("how") && (asks("long") || asks("ago")));
        let period = period(text, &lower, now_ms);
        // Passages have the name of their month among their words, so those of a date in digits are found by it.
        for term in period.iter().flat_map(|(from, _)| terms(&month_and_year(*from))) {
            weights.entry(term).or_insert(RELATED_WEIGHT);
        }
        Self { period, words: lower, content, terms: weights, wants_time }
    }

    /// The same with its function words, for a search that shows as much as it can.
    pub(crate) fn with_minor(mut self) -> Self {
        for term in self.words.iter().flat_map(|word| terms(word)) {
            self.terms.entry(term).or_insert(MINOR_WEIGHT);
        }
        self
    }

    /// Whether it is about nothing that could be found.
    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty()
    }
}

fn month_and_year(at_ms: u64) -> String {
    let (year, month, _) = civil(at_ms / DAY_MS);
    format!("{} {year}", MONTHS.get(month as usize - 1).copied().unwrap_or_default())
}

/// The days that a question names: `on 8 May 2023`, `in May`, `in 2023`, `yesterday`, `last week`.
fn period(text: &str, lower: &[String], now_ms: u64) -> Option<(u64, u64)> {
    let of_days = |from: u64, to: u64| Some((from * DAY_MS, to * DAY_MS));
    if let Some((day, _)) = text.char_indices().find_map(|(at, _)| iso_date(&text[at..])) {
        return of_days(day, day + 1);
    }
    if let Some((from, to)) = date_in_digits(text) {
        return of_days(from, to);
    }
    let today = now_ms / DAY_MS;
    let (this_year, this_month, _) = civil(today);
    let year = lower.iter().filter_map(|word| word.parse::<u64>().ok()).find(|year| (1970..=2999).contains(year));
    if let Some((at, month)) = lower.iter().enumerate().find_map(|(at, word)| named_month(lower, at, word)) {
        // Without a year, the last such month.
        let year = year.unwrap_or(if month > this_month { this_year - 1 } else { this_year });
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        let day = beside.filter_map(|at| ordinal(lower.get(at)?)).find(|day| (1..=31).contains(day));
        let first = days(year, month, day.unwrap_or(1))?;
        let next = if month == 12 { days(year + 1, 1, 1)? } else { days(year, month + 1, 1)? };
        return if day.is_some() { of_days(first, first + 1) } else { of_days(first, next) };
    }
    if let Some(year) = year {
        return of_days(days(year, 1, 1)?, days(year + 1, 1, 1)?);
    }
    let said = |phrase: &[&str]| lower.windows(phrase.len()).any(|window| window == phrase);
    let back = |from: u64, to: u64| of_days(today.saturating_sub(from), today.saturating_sub(to));
    let table: [(&[&str], u64, u64); 6] = [
        (&["yesterday"], 1, 0),
        (&["today"], 0, 0),
        (&["last", "week"], 14, 0),
        (&["this", "week"], 7, 0),
        (&["last", "month"], 62, 0),
        (&["last", "year"], 730, 0),
    ];
    let (_, from, to) = table.into_iter().find(|(phrase, ..)| said(phrase))?;
    if to == 0 && from == 0 { of_days(today, today + 1) } else { back(from, to) }
}

/// The days of the first date of digits: `2023-5-8`, `5/8/2023`, `8.5.2023`, `2023年5月8日`, `2023年5月`.
fn date_in_digits(text: &str) -> Option<(u64, u64)> {
    let mut numbers: Vec<(&str, Option<char>)> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        numbers.push((&rest[..end], rest[end..].chars().next()));
        rest = &rest[end..];
    }
    (0..numbers.len()).find_map(|at| {
        let number = |offset: usize| numbers.get(at + offset)?.0.parse::<u64>().ok();
        let is_year = |offset: usize| numbers.get(at + offset).is_some_and(|(digits, _)| digits.len() == 4);
        let separators = [0, 1, 2].map(|offset| numbers.get(at + offset).and_then(|(_, after)| *after));
        let (year, month, day) = match separators {
            [Some('年'), Some('月'), after] if is_year(0) => {
                (number(0), number(1), number(2).filter(|_| matches!(after, Some('日' | '号'))))
            }
            [Some('-'), Some('-'), _] if is_year(0) => (number(0), number(1), number(2)),
            // Month or day first: as it must be, or as in America.
            [Some('/'), Some('/'), _] if is_year(2) && number(0)? > 12 => (number(2), number(1), number(0)),
            [Some('/'), Some('/'), _] if is_year(2) => (number(2), number(0), number(1)),
            [Some('.'), Some('.'), _] if is_year(2) => (number(2), number(1), number(0)),
            _ => return None,
        };
        let (year, month) = (year?, month?);
        match day {
            Some(day) => days(year, month, day).map(|day| (day, day + 1)),
            None if month == 12 => Some((days(year, 12, 1)?, days(year + 1, 1, 1)?)),
            None => Some((days(year, month, 1)?, days(year, month + 1, 1)?)),
        }
    })
}

/// A month, unless the word is more likely `may` or `march` in another sense.
fn named_month(lower: &[String], at: usize, word: &str) -> Option<(usize, u64)> {
    let month = month_of(word).filter(|_| word.len() > 3 || word == "may")?;
    let before = at.checked_sub(1).and_then(|at| lower.get(at)).map(String::as_str);
    let is_word = matches!(word, "may" | "march")
        && !before.is_some_and(|before| {
            matches!(before, "in" | "of" | "last" | "since" | "during" | "until" | "early" | "late" | "mid" | "by")
                || ordinal(before).is_some()
        })
        && lower.get(at + 1).and_then(|next| ordinal(next)).is_none();
    (!is_word).then_some((at, month))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-06-15.
    const NOW: u64 = 1_718_409_600_000;

    #[test]
    fn function_words_are_left_out_and_related_ones_weigh_less() {
        let question = Question::new("What instruments does Ann's mother play?", NOW);
        assert_eq!(question.content, terms("instruments Ann mother play"));
        assert_eq!(question.terms.get("guitar"), Some(&RELATED_WEIGHT));
        assert_eq!(question.terms.get(&terms("mother")[0]), Some(&1.0));
        assert!(Question::new("What is it that you did?", NOW).is_empty());
    }

    #[test]
    fn the_days_that_a_question_names_are_known() {
        let named = |text: &str| {
            let (from, to) = Question::new(text, NOW).period?;
            let day = |ms: u64| contexture_text::date::day(std::time::Duration::from_millis(ms));
            Some((day(from), day(to)))
        };
        let cases = [
            ("What happened in May 2023?", Some(("2023-05-01", "2023-06-01"))),
            ("Where did we go in August?", Some(("2023-08-01", "2023-09-01"))),
            ("And on 8 May 2023?", Some(("2023-05-08", "2023-05-09"))),
            ("And on December 31st, 2022?", Some(("2022-12-31", "2023-01-01"))),
            ("Which book in 2022?", Some(("2022-01-01", "2023-01-01"))),
            ("What did I say yesterday?", Some(("2024-06-14", "2024-06-15"))),
            ("the log of 2024-02-29", Some(("2024-02-29", "2024-03-01"))),
            ("and on 2024-2-9?", Some(("2024-02-09", "2024-02-10"))),
            ("What was said on 04/01/2024?", Some(("2024-04-01", "2024-04-02"))),
            ("am 31.12.2023", Some(("2023-12-31", "2024-01-01"))),
            ("我们在2024年3月4日做了什么", Some(("2024-03-04", "2024-03-05"))),
            ("2023年12月发生了什么", Some(("2023-12-01", "2024-01-01"))),
            ("version 1.2.3 and 10/20/30", None),
            ("What may I do?", None),
            ("Did they march for it?", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(from, to)| (from.to_owned(), to.to_owned()));
            assert_eq!(named(text), expected, "{text}");
        }
    }
}
