use super::*;

#[track_caller]
fn check(name: &str, row: &str, context: u64, dollars: Option<(f64, f64)>, is_guess: bool) {
    let known = Models::builtin().find(name);
    let found = (known.model.name.as_str(), known.model.context, known.model.dollars(1_000), known.window.is_guess());
    assert_eq!(found, (row, context, dollars, is_guess), "{name}");
}

#[test]
fn a_model_is_found_by_its_exact_name_and_guessed_by_its_family() {
    check("claude-opus-4-8", "claude-opus-4-8", 1_000_000, Some((5.0, 25.0)), false);
    check("claude-opus-4-8[1m]", "claude-opus-4-8", 1_000_000, Some((5.0, 25.0)), false);
    check("us.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8", 1_000_000, Some((5.0, 25.0)), false);
    check("anthropic/claude-opus-4.8", "claude-opus-4-8", 1_000_000, Some((5.0, 25.0)), false);
    check("claude-opus-4-20250514", "claude-opus-4", 200_000, Some((15.0, 75.0)), false);
    check("claude-opus-4-80", "claude-opus-5-5", 1_000_000, Some((4.0, 20.0)), true);
    check("claude-opus-9", "claude-opus-5-5", 1_000_000, Some((4.0, 20.0)), true);
    check("gpt-6.1-sol", "gpt-6.1-sol", 272_000, Some((2.0, 10.0)), false);
    check("gpt-6.1-sol-2026-09-29", "gpt-6.1-sol", 272_000, Some((2.0, 10.0)), false);
    check("gpt-7", "gpt-6.1-sol", 272_000, Some((2.0, 10.0)), true);
    check("gemini-9", "gemini-4-argon", 1_048_576, Some((2.0, 10.0)), true);
    check("models/gemini-2.5-pro", "gemini-2.5-pro", 1_048_576, Some((1.25, 10.0)), false);
    check("gemini-3.1-pro-preview-customtools", "gemini-3.1-pro-preview", 1_048_576, Some((2.0, 12.0)), false);
    check("", "", 128_000, None, true);
    check("日本-20250101", "", 128_000, None, true);
}

#[test]
fn a_window_is_what_the_request_and_the_provider_say() {
    let asked = |name: &str, asks: Asks| {
        let known = Models::builtin().find(name).asked(&asks);
        (known.model.context, known.window)
    };
    let beta = || Asks { betas: vec!["context-1m-2025-08-07".to_owned()], ..Asks::default() };
    let by_beta = || Source::Asked("context-1m-2025-08-07".to_owned());
    assert_eq!(asked("claude-opus-4-8", beta()), (1_000_000, by_beta()));
    assert_eq!(asked("claude-opus-4-8", Asks { is_login: true, ..beta() }), (1_000_000, by_beta()));
    assert_eq!(asked("claude-opus-4-8", Asks { is_login: true, ..Asks::default() }).0, 200_000);
    assert_eq!(asked("claude-sonnet-4-5", beta()), (1_000_000, by_beta()));
    assert_eq!(asked("claude-sonnet-4-5", Asks::default()).0, 200_000);
    assert_eq!(asked("claude-opus-4-5", beta()).0, 200_000, "the beta is not for it");
    let own = ModelEntry { name: "x".to_owned(), context: Some(9_000), ..ModelEntry::default() };
    let models = Models::builtin().knowing([own]);
    models.note_window("y/Z", 8_192);
    models.note_window("x-1", 1);
    let said = models.find("z").asked(&Asks { is_login: true, ..Asks::default() });
    assert_eq!((said.model.context, said.window), (8_192, Source::Provider));
    let known = models.find("x-1").asked(&Asks::default());
    assert_eq!((known.model.context, known.window), (9_000, Source::Configured));
}

#[test]
fn large_requests_cost_what_large_requests_cost() {
    let model = Models::builtin().get("gpt-6.1-sol");
    assert_eq!((model.dollars(272_000), model.dollars(272_001)), (Some((2.0, 10.0)), Some((4.0, 15.0))));
}

#[test]
fn the_gaps_of_the_table_are_those_that_are_known() {
    let models = Models::builtin();
    let gaps = models.gaps(agent_models());
    // What nobody publishes, as far as was found.
    let expected = [("gpt-6-pro", "no price")];
    assert_eq!(gaps, expected.map(|(name, gap)| (name.to_owned(), gap)));
    assert_eq!(models.gaps(["claude-opus-9"]), [("claude-opus-9".to_owned(), "no row")]);
    for row in &models.model {
        assert!(models.family.iter().any(|family| family.name == row.family && !row.family.is_empty()), "{}", row.name);
        assert_eq!(plain(&row.name), row.name, "a name without date and seller");
    }
}
