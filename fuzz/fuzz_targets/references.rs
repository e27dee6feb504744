//! Any text: references are found without panic, in order, and rewriting twice is rewriting once.

#![no_main]

use contexture::reference::anchor::slug;
use contexture::reference::{find, rewrite};
use libfuzzer_sys::fuzz_target;

fn is_file_name(name: &str) -> bool {
    name == "Dockerfile"
}

fn rewritten(text: &str) -> String {
    let references = find(text, is_file_name);
    let mut end = 0;
    for reference in &references {
        assert!(reference.range.start >= end && text[reference.range.clone()].starts_with('#'));
        end = reference.range.end;
    }
    rewrite(text, &references, |reference| Some(slug(reference.path))).into_owned()
}

fuzz_target!(|text: &str| {
    let once = rewritten(text);
    assert_eq!(rewritten(&once), once);
});
