//! The checks of roles, which formats have in common.

use super::rule::{Broken, Check, Rule, at};

/// Whether the roles of a request break a rule.
pub(super) fn roles_broken(rule: &'static Rule, roles: &[&str]) -> Option<Broken> {
    let wrong = |found: Option<usize>| found.and_then(|message| at(rule, message));
    match rule.check {
        Check::NotEmpty => roles.is_empty().then_some(Broken { rule, at: None }),
        Check::Roles(known) => wrong(roles.iter().position(|role| !known.contains(role))),
        Check::First(known) => wrong(roles.first().filter(|role| !known.contains(role)).map(|_| 0)),
        Check::Last(known) => wrong(roles.last().filter(|role| !known.contains(role)).map(|_| roles.len() - 1)),
        Check::Alternate => wrong((1..roles.len()).find(|at| roles[*at] == roles[*at - 1])),
        Check::After(role, known) => {
            let is_wrong =
                |at: usize| roles[at] == role && at.checked_sub(1).is_none_or(|before| !known.contains(&roles[before]));
            wrong((0..roles.len()).find(|at| is_wrong(*at)))
        }
        Check::Before(role, known) => {
            let is_wrong = |at: usize| roles[at] == role && roles.get(at + 1).is_some_and(|next| !known.contains(next));
            wrong((0..roles.len()).find(|at| is_wrong(*at)))
        }
        _ => None,
    }
}
