use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(redact(text), expected);
}

// The keys are joined at run time, so that no scanner takes this file for a leak.
fn key(begin: &str, len: usize) -> String {
    let signs = b"aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0";
    begin.chars().chain((0..len).map(|n| char::from(signs[n % signs.len()]))).collect()
}

fn hex(begin: &str, len: usize) -> String {
    begin.chars().chain((0..len).map(|n| char::from(b"0f1e2d3c4b5a69"[n % 14]))).collect()
}

fn upper(begin: &str, len: usize) -> String {
    begin.chars().chain((0..len).map(|n| char::from(b"Q7ZX3WJ5M2KP"[n % 12]))).collect()
}

#[test]
fn keys_of_providers_are_found_wherever_they_are() {
    let keys = [
        (upper("AKIA", 16), "AWS access key"),
        (upper("ASIA", 16), "AWS access key"),
        (key("AIza", 35), "Google API key"),
        (key("ghp_", 36), "GitHub token"),
        (key("github_pat_", 60), "GitHub token"),
        (key("glpat-", 20), "GitLab token"),
        (key("sk-ant-api03-", 90), "Anthropic key"),
        (key("sk-proj-", 48), "API key"),
        (key("sk-", 48), "API key"),
        (key("xoxb-", 40), "Slack token"),
        (key("sk_live_", 24), "Stripe key"),
        (key("npm_", 36), "npm token"),
        (key("pypi-", 80), "PyPI token"),
        (key("hf_", 34), "Hugging Face token"),
        (hex("dop_v1_", 64), "DigitalOcean token"),
        (hex("shpat_", 32), "Shopify token"),
        (key("hvs.", 30), "Vault token"),
        (key("pcsk_", 60), "Pinecone key"),
        (key("123456789:", 35), "bot token"),
        (format!("{}.{}.{}", key("eyJ", 20), key("", 30), key("", 40)), "web token"),
    ];
    for (key, kind) in keys {
        for (before, after) in [
            ("", ""),
            ("use ", ", please"),
            ("x=\"", "\""),
            ("a\\n", "\\nb"),
            ("(", ")."),
            ("url?k%3D", "&b"),
            ("密钥：", "。"),
        ] {
            check(&format!("{before}{key}{after}"), &format!("{before}[redacted: {kind}]{after}"));
        }
    }
}

#[test]
fn values_beside_telling_names_are_removed() {
    let random = key("", 24);
    let cases = [
        ("password: hunter2", "password: [redacted: password]"),
        ("my password is Tr0ub4dor&3!", "my password is [redacted: password]!"),
        ("DB_PASSWORD=s3cr3tpw", "DB_PASSWORD=[redacted: password]"),
        (r#"{"password": "correct1horse"}"#, r#"{"password": "[redacted: password]"}"#),
        ("我的密码是 abc12345。", "我的密码是 [redacted: password]。"),
        ("postgres://ada:pa55word@db/app", "postgres://ada:[redacted: password]@db/app"),
        ("mysql --user root --password hunter2xyz9", "mysql --user root --password [redacted: password]"),
        ("machine x login ada password Sup3rS3cret", "machine x login ada password [redacted: password]"),
        (
            "machine x\n  login ada\n  password Sup3rS3cret\n",
            "machine x\n  login ada\n  password [redacted: password]\n",
        ),
        ("DB_PASSWORD_PROD: s3cr3tPw99", "DB_PASSWORD_PROD: [redacted: password]"),
        ("PASSWORD2=s3cr3tPw99", "PASSWORD2=[redacted: password]"),
        ("DB_PASS=s3cr3tPw99", "DB_PASS=[redacted: password]"),
        ("<password>s3cr3tPw99</password>", "<password>[redacted: password]</password>"),
        ("password:\n  s3cr3tPw99\nuser: x", "password:\n  [redacted: password]\nuser: x"),
        ("密码：abc12345", "密码：[redacted: password]"),
        ("パスワードはabc12345です", "パスワードは[redacted: password]です"),
        ("Cookie: theme=dark; session=9f8e7d6c5b4a3928", "Cookie: theme=dark; session=[redacted: cookie]"),
        ("set-cookie: sid=9f8e7d6c5b4a3928; Path=/", "set-cookie: sid=[redacted: cookie]; Path=/"),
        ("AWS_SECRET_ACCESS_KEY=abCD12efGH34ij/KLmn56OPqr78st/UVwx90YZab", "AWS_SECRET_ACCESS_KEY=[redacted: key]"),
        ("SECRET_KEY_BASE=3f9a8c7b6d5e4f3a2b1c0d9e8f7a6b5c4d3e", "SECRET_KEY_BASE=[redacted: key]"),
        ("API_KEY_PROD=9f8e7d6c5b4a39281706f5e4d3c2b1a0", "API_KEY_PROD=[redacted: key]"),
        ("api_key_prod: 9f8e7d6c5b4a39281706f5e4d3c2b1a0", "api_key_prod: [redacted: key]"),
        ("我的API密钥是：9f8e7d6c5b4a39281706f5e4d3c2b1a0", "我的API密钥是：[redacted: key]"),
    ];
    for (text, expected) in cases {
        check(text, expected);
    }
    for name in ["api_key = ", "API-KEY: ", "token=", "Authorization: Bearer ", "client_secret => '", "my api key is "]
    {
        let redacted = redact(&format!("{name}{random}")).into_owned();
        assert!(redacted.starts_with(name) && redacted.contains(MARK) && !redacted.contains(&random), "{redacted}");
    }
}

#[test]
fn private_keys_go_as_a_whole() {
    let body = key("MIIE", 60);
    for title in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let text = format!("a\n-----BEGIN {title}-----\n{body}\n{body}\n-----END {title}-----\nb");
        check(&text, "a\n[redacted: private key]\nb");
        check(&format!("{{\"k\":\"-----BEGIN {title}-----\\n{body}\\n\"}}"), "{\"k\":\"[redacted: private key]\"}");
    }
    for (before, line) in [("> ", "> "), ("1\t", "2 | "), ("+", "+"), ("# ", "# ")] {
        let text = format!("{before}-----BEGIN RSA PRIVATE KEY-----\n{line}{body}\n{line}{body}\n");
        let redacted = redact(&text).into_owned();
        assert!(!redacted.contains("MIIE") && redacted.contains("[redacted: private key]"), "{redacted}");
    }
    let public = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----");
    check(&public, &public);
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let texts = [
        "The password is needed to log in.",
        "Change your password: it is too short.",
        "fn login(password: String, token: &str) -> Token",
        "let token = self.tokens.next_token();",
        "password = get_password()",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "scikit: sk-learn-is-a-library-for-python-users",
        "token: https://example.com/docs/v2/tokens1",
        "TOKEN=$GITHUB_TOKEN_2024_VALUE",
        "http://localhost:8080/a@b",
        "git@github.com:owner/name.git",
        "password: [redacted: password]",
        "The token of appreciation was a 2026 calendar.",
        "AKIA is how they begin; ghp_ too.",
        "密码需要至少八个字符。",
        "PWD=/home/ada1/project",
        "The pwd is /home/ada1/project now",
        "branch sk-1234-fix-the-parser-for-dates",
        "file sk-SK-translations-2024-final.json",
        "class sk-folding-cube-animation-2024 is used",
        "password = config.db.password1",
        "The password is 12-characters long minimum",
        "secret: my-k8s-secret-name-v2-production",
        r#""password": "Passwort1 eingeben""#,
        "PASSWORD_FILE=/run/secrets/db1",
        "password_hash: 12345678",
        "All 12 tests pass: 34 of 34",
        "token: src/auth/tokens2.rs",
        "basic: version-2.0.1-release-2024",
        "Cookie: theme=dark; lang=en",
    ];
    for text in texts {
        check(text, text);
    }
}

/// Anyone can write the words of a mark, and must not switch redaction off with them.
#[test]
fn only_what_was_written_as_a_mark_is_one() {
    let token = key("ghp_", 36);
    for begin in ["[redacted: for details and ", "[redacted: ", "[redacted: GitHub token ", "[redacted: nothing] "] {
        for end in ["", "]", "\n"] {
            let text = format!("{begin}{token}{end}");
            assert!(!redact(&text).contains(&token), "{text}");
        }
    }
    let body = key("MIIE", 60);
    let text = format!("-----BEGIN PRIVATE KEY-----\n{body}\n[redacted: key]\n{body}\n-----END PRIVATE KEY-----");
    check(&text, "[redacted: private key]");
    check("the [redacted: GitHub token] stays", "the [redacted: GitHub token] stays");
}

#[test]
fn a_part_of_a_text_has_no_part_of_a_secret() {
    let text = format!("the key {} and my password is hunter2-Xq9, fine", key("ghp_", 36));
    for start in (0..text.len()).step_by(3) {
        for end in (start..=text.len()).step_by(3) {
            let part = redact_part(&text, start..end);
            let plain = part.replace("[redacted: GitHub token]", "").replace("[redacted: password]", "");
            assert!("the key  and my password is , fine".contains(&plain), "{start}..{end}: {part}");
        }
    }
    for max in 0..80 {
        let start = redacted_start(&text, max);
        assert!(start.len() <= max && !start.contains("ghp_") && !start.ends_with("[redacted"), "{start}");
    }
}

#[test]
fn every_telling_name_is_looked_for() {
    for name in super::named::names() {
        for name in [name.to_owned(), name.to_uppercase()] {
            // Some are telling only in the query of an address, as a whole, in a variable, or with a user's name.
            let upper = name.to_uppercase();
            let text = format!(
                "APP_{upper}=Zq9Xw7Kp3Lm5Nv1Tb8Rd {name}: ada:Zq9Xw7Kp3Lm5Nv1Tb8Rd https://x.example/?x-{name}=Zq9Xw7Kp3Lm5Nv1Tb8Rd \"{name}\": \"Zq9Xw7Kp3Lm5Nv1Tb8Rd\" DB_{name}: Zq9Xw7Kp3Lm5Nv1Tb8Rd"
            );
            assert_ne!(redact(&text), text, "{name}");
        }
    }
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "AKIA[A-Z2-7]{15}[2-7]",
        "gh[pousr]_[A-Za-z0-9]{35}[0-9]",
        "sk-ant-api03-[A-Za-z0-9_]{40}[0-9]",
        "xoxb-[0-9]{10}-[A-Za-z0-9]{24}",
        "glpat-[A-Za-z0-9]{19}[0-9]",
    ]
}

proptest! {
    #[test]
    fn no_secret_survives(before in "(\\PC{0,40}[ =:\"\n])?", secret in secret(), after in "([ \n\",;)]\\PC{0,40})?") {
        let redacted = redact(&format!("{before}{secret}{after}")).into_owned();
        prop_assert!(!redacted.contains(&secret), "{redacted}");
    }

    #[test]
    fn redacting_again_changes_nothing(
        text in "(\\PC{0,30}|password[:= ]|token is |-----BEGIN PRIVATE KEY-----|AKIA[A-Z2-7]{16}|[a-z0-9]{6,30}| ){0,8}",
    ) {
        let once = redact(&text).into_owned();
        prop_assert_eq!(redact(&once).into_owned(), once);
    }

    #[test]
    fn prose_without_digits_is_never_changed(text in "([a-z]{1,12}[ .,]){0,40}") {
        prop_assert_eq!(redact(&text).into_owned(), text);
    }

    #[test]
    fn secrets_are_in_order_and_within_the_text(text in "(\\PC{0,20}|password=|sk-[a-z0-9]{24}|日本|[0-9]{9}:[a-zA-Z0-9]{35}){0,10}") {
        let mut at = 0;
        for secret in secrets(&text) {
            prop_assert!(at <= secret.range.start && secret.range.start < secret.range.end);
            prop_assert!(text.get(secret.range.clone()).is_some());
            at = secret.range.end;
        }
    }
}

/// Texts in which a form begins at every place. Each search has a bound on how far it reads from one beginning; without
/// one this test would run for minutes.
#[test]
fn secrets_are_found_after_very_many_beginnings() {
    let parts = [
        "password=",
        "password",
        "sk-",
        "eyJ-",
        "eyJa.",
        "-----BEGIN PRIVATE KEY-----!",
        "cookie:",
        "[redacted: ",
        "mysql ",
        "curl -u ",
        "mnemonic-",
        "password: \"",
        "IDENTIFIED BY '",
        "a.b.",
        "http://a:",
        "token is ",
        "echo x|",
        "ATATT3AAAA",
        ".atlasv1.",
        "Q~",
        "p_",
        "AAAAAAAAAAAAAAAAAAAA%",
        "psk=",
        "密码",
    ];
    for part in parts {
        let text = format!("{} {}", part.repeat(100_000 / part.len()), key("ghp_", 36));
        assert!(!redact(&text).contains("ghp_"), "{part}");
    }
}

#[test]
fn passwords_in_commands_are_found_in_scripts_sentences_and_json() {
    let cases = [
        ("mysql -phunter2", "mysql -p[redacted: password]"),
        ("run `curl -u user:pass https://x`", "run `curl -u user:[redacted: password] https://x`"),
        (r#"{"cmd":"mysql -u root -phunter2 app\nls"}"#, r#"{"cmd":"mysql -u root -p[redacted: password] app\nls"}"#),
        (r#"["sshpass","-p","toor","ssh"]"#, r#"["sshpass","-p","[redacted: password]","ssh"]"#),
        ("bash -lc \"redis-cli -a foobared ping\"", "bash -lc \"redis-cli -a [redacted: password] ping\""),
        ("docker login \\\n  -u ada \\\n  -p swordfish", "docker login \\\n  -u ada \\\n  -p [redacted: password]"),
        ("docker login; docker run -p 8080:80 x", "docker login; docker run -p 8080:80 x"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[redacted: password]"),
        ("password: letmein", "password: [redacted: password]"),
    ];
    for (text, expected) in cases {
        check(text, expected);
    }
}

/// A key that a rule is about, with nothing more than it asks for.
fn sample(table::KeyFormat(begin, characters, least, _): &table::KeyFormat) -> String {
    let all = b"7%Qz4Xw9Kd2Lb5Ye8Hc1Vf3Ta6Jn0Ms+".iter().cycle();
    let fitting = all.flat_map(|sign| [*sign, sign.to_ascii_lowercase()]).filter(|sign| characters.has(*sign));
    begin.chars().chain(fitting.take(*least).map(char::from)).collect()
}

#[test]
fn every_rule_of_a_key_finds_its_sample() {
    assert!(table::FORMATS.len() > 250);
    for rule in &*table::FORMATS {
        let text = format!("use {} please", sample(rule));
        let found = secrets(&text);
        assert!(matches!(&*found, [one] if one.range == (4..text.len() - 7)), "{}: {text}: {found:?}", rule.3);
    }
}
