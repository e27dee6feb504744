//! What is a reference and what is not, and what rewriting leaves alone.

use contexture::reference::{LineRange, find, rewrite};
use proptest::prelude::*;

fn is_file_name(name: &str) -> bool {
    ["Dockerfile", "Makefile", "README", "LICENSE"].contains(&name)
}

/// The references of a text, each as `path` or `path:first-last`, joined by blanks.
fn found(text: &str) -> String {
    let references = find(text, is_file_name);
    let written = references.iter().map(|reference| match reference.lines {
        Some(LineRange { first, last }) => format!("{}:{first}-{last}", reference.path),
        None => reference.path.to_owned(),
    });
    written.collect::<Vec<_>>().join(" ")
}

fn slug(path: &str) -> String {
    path.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn rewritten(text: &str) -> String {
    let references = find(text, is_file_name);
    rewrite(text, &references, |reference| Some(slug(reference.path))).into_owned()
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(found(text), expected, "{text:?}");
    let once = rewritten(text);
    assert_eq!(rewritten(&once), once, "rewriting twice: {text:?}");
    if expected.is_empty() {
        assert_eq!(once, text);
    }
}

#[test]
fn paths_that_look_like_files_are_references() {
    check("#src/index.ts", "src/index.ts");
    check("Look at #src/index.ts and #package.json", "src/index.ts package.json");
    check("#a.rs", "a.rs");
    check("#Cargo.toml", "Cargo.toml");
    check("#a/b/c/d/e.py", "a/b/c/d/e.py");
    check("#./a.rs", "./a.rs");
    check("#../a.rs", "../a.rs");
    check("#a/../b.rs", "a/../b.rs");
    check("#my-file_v2.test.tsx", "my-file_v2.test.tsx");
    check("#archive.tar.gz", "archive.tar.gz");
    check("#types.d.ts", "types.d.ts");
    check("#a.c++", "a.c++");
    check("#song.mp3", "song.mp3");
    check("#x.7z", "x.7z");
    check("#page.html5", "page.html5");
    check("#@types/node.d.ts", "@types/node.d.ts");
    check("#~/notes.md", "~/notes.md");
    check("#notes.md~", "notes.md~");
    check("#+page.svelte", "+page.svelte");
    check("#1.md", "1.md");
    check("#2024-01-01.log", "2024-01-01.log");
    check("#docs/v1.2/guide.md", "docs/v1.2/guide.md");
    check("#_.py", "_.py");
    check("#a..rs", "a..rs");
}

#[test]
fn known_names_and_dotfiles_are_references() {
    check("#Dockerfile", "Dockerfile");
    check("#Makefile", "Makefile");
    check("#src/Makefile", "src/Makefile");
    check("see #README.", "README");
    check("#LICENSE, please", "LICENSE");
    check("#.gitignore", ".gitignore");
    check("#web/.eslintrc", "web/.eslintrc");
    check("#.github/workflows/ci.yml", ".github/workflows/ci.yml");
    check("#.env.local", ".env.local");
    check("#Makefile()", "Makefile");
    check("#dockerfile", "");
    check("#Makefiles", "");
    check("#src/main", "");
}

#[test]
fn quotes_make_anything_a_reference() {
    check("#\"my notes.md\"", "my notes.md");
    check("#\"docs/my file.md\" and more", "docs/my file.md");
    check("(#\"a b.txt\")", "a b.txt");
    check("#\"LICENSES\"", "LICENSES");
    check("#\"a/b\"", "a/b");
    check("#“my notes.md”", "my notes.md");
    check("#\"a]b.md\"", "a]b.md");
    check("#\"a[b.md\"", "a[b.md");
    check("#\"a\\b.md\"", "a\\b.md");
    check("#\"a\0b.md\"", "a\0b.md");
    // An odd number of backslashes must not become an even one, or the bracket behind them opens a tag.
    check("#\"a\\<b.md\" [#c.rs >", "a\\<b.md c.rs");
    check("#\"/etc/passwd\"", "/etc/passwd");
    check("#\"C:\\a.txt\"", "C:\\a.txt");
    check("#\"émoji 🦀.rs\":3", "émoji 🦀.rs:3-3");
    check("#\"\"", "");
    check("#\" a.md\"", "");
    check("#\"a.md", "");
    check("#\"a\nb.md\"", "");
    check("the \"#\" sign and \"x\"", "");
}

#[test]
fn any_script_will_do() {
    check("#docs/日本.md", "docs/日本.md");
    check("#日本.日本", "日本.日本");
    check("请看 #docs/日本.md。", "docs/日本.md");
    check("これ #a.mdを見て", "a.md");
    check("#привет.txt!", "привет.txt");
    check("#über/größe.rs", "über/größe.rs");
    check("#cafe\u{301}.md", "cafe\u{301}.md");
    check("#हिन्दी.txt।", "हिन्दी.txt");
    check("#ภาษาไทย.md", "ภาษาไทย.md");
    check("（#a.rs）", "a.rs");
    check("「#a.rs」", "a.rs");
}

#[test]
fn brackets_belong_to_a_path_in_pairs() {
    check("#src/[id]/page.tsx", "src/[id]/page.tsx");
    check("#[id].tsx", "[id].tsx");
    check("#[...slug].tsx", "[...slug].tsx");
    check("#[[...slug]].tsx", "[[...slug]].tsx");
    check("#app/(group)/page.tsx", "app/(group)/page.tsx");
    check("#(group)/page.tsx", "(group)/page.tsx");
    check("#copy(1).txt", "copy(1).txt");
    check("(#a.rs)", "a.rs");
    check("[#a.rs]", "a.rs");
    check("{#a.rs}", "a.rs");
    check("<#a.rs>", "a.rs");
    check("(see #src/[id]/page.tsx)", "src/[id]/page.tsx");
    check("#a.rs)", "a.rs");
    check("#a.rs]", "a.rs");
    check("#a.rs).", "a.rs");
    check("#a.rs(line 3)", "a.rs");
    check("#main.rs()", "main.rs");
    check("#a.rs[0]", "a.rs");
    check("#a(b]c).rs", "");
    check("((#a.rs))", "a.rs");
    check("#[derive(Debug)]", "");
    check("#[cfg(feature = \"x.y\")]", "");
    check("#[serde(rename.all)]", "");
    check("#![allow(x.y)]", "");
}

#[test]
fn punctuation_stays_outside() {
    check("#a.rs.", "a.rs");
    check("#a.rs...", "a.rs");
    check("#a.rs,", "a.rs");
    check("#a.rs, #b.rs; #c.rs: #d.rs! #e.rs?", "a.rs b.rs c.rs d.rs e.rs");
    check("\"#a.rs\"", "a.rs");
    check("'#a.rs'", "a.rs");
    check("“#a.rs”", "a.rs");
    check("«#a.rs»", "a.rs");
    check("#main.rs's parser", "main.rs");
    check("- #a.rs\n- #b.rs\n", "a.rs b.rs");
    check("> #a.rs", "a.rs");
    check("| #a.rs | #b.rs |", "a.rs b.rs");
    check("\t#a.rs here", "");
    check("first\n#a.rs\r\n#b.rs", "a.rs b.rs");
    check("a\u{a0}#a.rs", "a.rs");
}

#[test]
fn lines_narrow_a_reference() {
    check("#a.rs:10", "a.rs:10-10");
    check("#a.rs:10-20", "a.rs:10-20");
    check("#a.rs:10–20", "a.rs:10-20");
    check("#a.rs:20-10", "a.rs:10-20");
    check("#a.rs:0-5", "a.rs:1-5");
    check("#a.rs:10-20.", "a.rs:10-20");
    check("#a.rs:10-20, #b.rs:3", "a.rs:10-20 b.rs:3-3");
    check("#a.rs:10:5", "a.rs:10-10");
    check("#a.rs#L10", "a.rs:10-10");
    check("#a.rs#L10-L40", "a.rs:10-40");
    check("#a.rs#L10-40", "a.rs:10-40");
    check("#Makefile:3", "Makefile:3-3");
    check("#a.rs:99999999999-1", "a.rs:1-4294967295");
    check("#a.rs: the first", "a.rs");
    check("#a.rs:first", "a.rs");
    check("#a.rs:10px", "a.rs");
    check("#a.rs:10-", "a.rs:10-10");
    check("#a.rs#section", "a.rs");
}

#[test]
fn what_is_not_a_file_is_no_reference() {
    for text in [
        "#hashtag",
        "#123",
        "#region",
        "#endregion",
        "#v1.2",
        "#v1.2.3",
        "#1.2",
        "#1.2.3-beta.1",
        "#v2.x",
        "#2.0.0+build",
        "#",
        "##",
        "# Title",
        "## a.rs",
        "#.",
        "#..",
        "#...",
        "#/",
        "#src/",
        "#a/",
        "#/a",
        "#fff",
        "#ff00aa",
        "#include <stdio.h>",
        "#!/bin/sh",
        "#define X",
        "#TODO",
        "#a b.rs",
        "C#",
        "C# a.rs",
        "F#.",
        "#$ref.x",
        "#-",
        "#a.",
        "#.5",
        "#1.5",
        "#/components/schemas/Pet",
        "{\"$ref\": \"#/definitions/User\"}",
        "color: #333;",
        "#if 0",
        "#a,b.rs",
        "#\\a.rs",
        "#tag.",
        "We're #1.",
        "",
    ] {
        check(text, "");
    }
}

#[test]
fn a_reference_stands_apart() {
    check("issue#12.3", "");
    check("issue#a.rs", "");
    check("x.y#a.rs", "");
    check("##a.rs", "");
    check("/#a.rs", "");
    check("\\#a.rs", "");
    check("a\\#a.rs", "");
    check("*#a.rs*", "");
    check("a.rs#b.rs", "");
    check("#a.rs#b.rs", "a.rs");
    check("-#a.rs", "");
}

#[test]
fn absolute_paths_are_seen_so_that_they_can_be_refused() {
    check("#/etc/passwd", "/etc/passwd");
    check("#/etc/hosts.conf", "/etc/hosts.conf");
    check("#/home/me/a.rs", "/home/me/a.rs");
    check("#/dev/zero", "/dev/zero");
    check("#/etc", "");
    check("#/etc/", "/etc/");
}

#[test]
fn code_is_left_alone() {
    check("`#a.rs`", "");
    check("``#a.rs ` #b.rs``", "");
    check("`a` #a.rs `b`", "a.rs");
    check("` #a.rs", "a.rs");
    check("`` #a.rs `", "a.rs");
    check("`#a.rs\n#b.rs`", "");
    check("` #a.rs\n\n #b.rs `", "a.rs b.rs");
    check("\\`#a.rs `", "");
    check("\\` #a.rs \\`", "a.rs");
    check("```\n#a.rs\n```", "");
    check("```rust\n#a.rs\n```\n#b.rs", "b.rs");
    check("~~~\n#a.rs\n~~~\n#b.rs", "b.rs");
    check("```\n#a.rs\n~~~\n#b.rs\n```", "");
    check("````\n```\n#a.rs\n```\n````\n#b.rs", "b.rs");
    check("```\n#a.rs", "");
    check("``` #a.rs ``` #b.rs", "b.rs");
    check("> ```\n> #a.rs\n> ```\n#b.rs", "b.rs");
    check("> ```\n> #a.rs\n#b.rs", "b.rs");
    check("- ```\n  #a.rs\n  ```\n- #b.rs", "b.rs");
    check("1. ```\n   #a.rs\n   ```\n#b.rs", "b.rs");
    check("text\n\n    #a.rs\n\nmore #b.rs", "b.rs");
    check("    #a.rs", "");
    check("- item\n\n    #a.rs", "a.rs");
    check("text\n    #a.rs", "a.rs");
}

#[test]
fn links_urls_and_tags_are_left_alone() {
    check("https://x.y/z#sec.tion", "");
    check("https://x.y/(#sec.tion)", "");
    check("see https://x.y/z?a=[#b.rs] #c.rs", "c.rs");
    check("www.x.y/(#sec.tion) #c.rs", "c.rs");
    check("<https://x.y/#a.rs>", "");
    check("http:// #a.rs", "a.rs");
    check("[#src/index.ts](#src-index-ts)", "");
    check("[see #a.rs](https://x.y)", "");
    check("[x](#a.rs)", "");
    check("[x]( #a.rs )", "");
    check("![#a.rs](b.png)", "");
    check("[#a.rs][x]", "");
    check("[x][#a.rs]", "");
    check("[x]: #a.rs", "");
    check("[x] (#a.rs)", "a.rs");
    check("[a [b] #a.rs](x)", "");
    check("[a](b) #a.rs [c](d)", "a.rs");
    check("[x](unclosed #a.rs", "a.rs");
    check("\\[x](#a.rs)", "a.rs");
    check("<a href=\"#sec.tion\">#a.rs</a>", "");
    check("<a href=\"#sec.tion\"> #a.rs </a>", "a.rs");
    check("<!-- #a.rs -->", "");
    check("a < b #a.rs > c", "a.rs");
}

#[test]
fn references_become_links() {
    let same = |text: &str, expected: &str| assert_eq!(rewritten(text), expected);
    same(
        "Look at #src/index.ts and #package.json",
        "Look at [#src/index.ts](#src-index-ts) and [#package.json](#package-json)",
    );
    same("(#a.rs:10-20).", "([#a.rs:10-20](#a-rs)).");
    same("#a.rs#L3", "[#a.rs#L3](#a-rs)");
    same("#\"my notes.md\"!", "[#\"my notes.md\"](#my-notes-md)!");
    same("#\"a]b.md\"", "[#\"a\\]b.md\"](#a-b-md)");
    same("#src/[id]/page.tsx", "[#src/[id]/page.tsx](#src-id-page-tsx)");
    same("[#a.rs]", "[[#a.rs](#a-rs)]");
}

#[test]
fn a_reference_without_an_anchor_stays_as_it_is() {
    let text = "#a.rs #b.rs";
    let references = find(text, is_file_name);
    let rewritten = rewrite(text, &references, |reference| (reference.path == "b.rs").then(|| "b".into()));
    assert_eq!(rewritten, "#a.rs [#b.rs](#b)");
}

#[test]
fn a_megabyte_of_any_markup_is_read_in_reasonable_time() {
    for piece in
        ["`", "[", "](", "](#", "<a", "#\"", "://", "#a.rs", "```\n", "> ", "\\", "#[(", "x `` y ` z\n", "w", "# a/"]
    {
        let text = piece.repeat(1_000_000 / piece.len());
        let start = std::time::Instant::now();
        find(&text, is_file_name);
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{piece:?} took {:?}", start.elapsed());
    }
}

/// Text full of what matters here.
fn markup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "#a.rs",
        "#src/[id]/x.ts",
        "#\"my file.md\"",
        "#Dockerfile",
        "#b.rs:10-20",
        "#c.rs#L3-L4",
        "#hashtag",
        "#",
        "`",
        "``",
        "```",
        "~~~",
        "\n",
        "\n\n",
        "\n```\n",
        "\n    ",
        " ",
        "  ",
        "[",
        "]",
        "(",
        ")",
        "](",
        "][",
        "]:",
        "<",
        ">",
        "<a href=\"",
        "\"",
        "'",
        "\\",
        "https://x.y/",
        "www.",
        "> ",
        "- ",
        "1. ",
        "日本",
        "word",
        ".",
        ",",
        ":",
        "é",
        "!",
        "“",
        "”",
        "/",
        "\t",
        "\r\n",
        "#\"a]b\"",
        "#\"",
        "\"",
        "\\<x",
        "#\"a<b.md\"",
        "#(x)/y.rs",
    ]);
    prop::collection::vec(prop_oneof![9 => pieces.prop_map(str::to_owned), 1 => ".{0,4}"], 0..40)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn rewriting_twice_is_rewriting_once(text in markup()) {
        let once = rewritten(&text);
        prop_assert_eq!(rewritten(&once), once.clone());
        prop_assert_eq!(found(&once), "");
    }

    #[test]
    fn text_without_references_is_untouched(text in markup()) {
        if found(&text).is_empty() {
            prop_assert_eq!(rewritten(&text), text);
        }
    }

    #[test]
    fn everything_outside_references_is_untouched(text in markup()) {
        let references = find(&text, is_file_name);
        let rewritten = rewrite(&text, &references, |_| Some("@".into()));
        let (mut left, mut copied) = (&*rewritten, 0);
        for reference in &references {
            prop_assert!(reference.range.start >= copied, "in order, not overlapping");
            prop_assert!(text[reference.range.clone()].starts_with('#'));
            left = left.strip_prefix(&text[copied..reference.range.start]).expect("what stands before");
            left = left.split_once("](#@)").expect("a link").1;
            copied = reference.range.end;
        }
        prop_assert_eq!(left, &text[copied..]);
    }

    #[test]
    fn nothing_in_fences_or_spans_is_a_reference(text in "[a-z#./ ]{0,40}") {
        let fenced = format!("```\n{text}\n```\n");
        prop_assert_eq!(rewritten(&fenced), fenced.clone());
        let span = format!("`{text}`");
        prop_assert_eq!(rewritten(&span), span.clone());
        let link = format!("[{text}](x)");
        prop_assert_eq!(rewritten(&link), link.clone());
        let url = format!("https://x.y/{}", text.replace(' ', "("));
        prop_assert_eq!(rewritten(&url), url.clone());
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        rewritten(&text);
    }
}
