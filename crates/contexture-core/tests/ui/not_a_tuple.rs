use contexture_core::memory;

fn main() {
    memory("working memory");
}
