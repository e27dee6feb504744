//! English forms that no ending tells.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The forms with their bases.
static FORMS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| rows().collect());

fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("irregular.tsv").lines().filter_map(|row| row.split_once('\t'))
}

/// The base of an irregular form in lower case: `bought` is of `buy`, `mice` of `mouse`.
pub(super) fn base(form: &str) -> Option<&'static str> {
    FORMS.get(form).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_found_and_no_base_is_a_form() {
        assert!(rows().is_sorted_by(|(one, _), (other, _)| one < other));
        assert_eq!(rows().count(), 205);
        for (form, of) in rows() {
            assert_eq!(base(form), Some(of));
            assert_eq!(base(of), None, "{of}");
        }
    }
}
