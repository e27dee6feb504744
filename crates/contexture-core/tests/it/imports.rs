//! Imports between the files of each crate point one way, and so do those between its folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::crates::all_crates;

/// A module by its path: `["engine", "thread"]`.
type Module = Vec<String>;

/// Every file of the crate and what it uses, as whole paths.
#[derive(Default)]
struct Crate(BTreeMap<Module, Vec<(Module, How)>>);

/// How a file uses a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// `use child::name`
    Import,
    /// `pub use child::name`
    Export,
    /// `child::name` or `crate::module::name`, without a `use`.
    Path,
}

/// What counts as an import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counting {
    /// Every import.
    All,
    /// Every import but those from a module to one that it is part of: a file may spread the methods of its type over
    /// children.
    NotFromParts,
}

/// Most re-exports that a name is followed through: a module may have the name of what it exports.
const MAX_EXPORTS: usize = 8;

impl Crate {
    fn read(source: &Path) -> Self {
        let mut files = Vec::new();
        walk(source, &mut Vec::new(), &mut files);
        let uses = |(module, text): (Module, String)| {
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
            let uses = statements(&code).flat_map(|(tree, how)| expand(tree).into_iter().map(move |path| (path, how)));
            let paths = paths_into_children(&code).chain(paths_elsewhere(&code));
            let uses = uses.chain(paths.map(|path| (path, How::Path)));
            let uses = uses.filter_map(|(path, how)| Some((absolute(&module, &path)?, how))).collect();
            (module, uses)
        };
        Self(files.into_iter().map(uses).collect())
    }

    /// The file that a path leads to, through re-exports.
    fn file_of(&self, path: &[String]) -> Module {
        self.file_through(path, MAX_EXPORTS)
    }

    fn file_through(&self, path: &[String], exports_left: usize) -> Module {
        let module = (0..=path.len()).rev().map(|len| &path[..len]).find(|prefix| self.0.contains_key(*prefix));
        let module = module.unwrap_or_default().to_vec();
        let Some(name) = path.get(module.len()) else { return module };
        let mut exports = self.0[&module].iter().filter(|(_, how)| *how == How::Export);
        match exports.find(|(target, _)| target.last() == Some(name) && target.len() > module.len() + 1) {
            Some((target, _)) if exports_left > 0 => self.file_through(target, exports_left - 1),
            _ => module,
        }
    }

    /// The files that a file imports from. A parent that only passes on names of its children does not.
    fn imports(&self, module: &Module, counting: Counting) -> BTreeSet<Module> {
        let own = |target: &Module, how: How| how == How::Export && target.starts_with(module);
        // A parent may always name its children; what they import from it is counted where parts are.
        let counts = |how: How| how != How::Path || counting == Counting::NotFromParts;
        let uses = self.0[module].iter().filter(|(_, how)| counts(*how)).map(|(path, how)| (self.file_of(path), *how));
        let is_part = |file: &Module| counting == Counting::NotFromParts && module.starts_with(file);
        let imports = uses.filter(|(file, how)| file != module && !own(file, *how) && !is_part(file));
        imports.map(|(file, _)| file).collect()
    }

    /// The files of one circle, if there is any.
    fn circle(&self, counting: Counting) -> Option<Vec<Module>> {
        circle_in(self.0.keys().map(|module| (module.clone(), self.imports(module, counting))).collect())
    }

    /// What the children of each folder import from each other, by folder: a child is a file, or a folder with all that
    /// is in it.
    fn siblings(&self) -> BTreeMap<Module, Graph> {
        let mut siblings: BTreeMap<Module, Graph> = BTreeMap::new();
        for module in self.0.keys().filter(|module| !module.iter().any(|name| name == "tests")) {
            for file in self.imports(module, Counting::NotFromParts) {
                let shared = module.iter().zip(&file).take_while(|(one, other)| one == other).count();
                // A folder and what is in it are no siblings.
                if shared < module.len() && shared < file.len() {
                    let graph = siblings.entry(module[..shared].to_vec()).or_default();
                    graph.entry(module[..=shared].to_vec()).or_default().insert(file[..=shared].to_vec());
                }
            }
        }
        siblings
    }
}

/// Modules, each with those that it imports from.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// The modules of one circle, if there is any.
fn circle_in(mut left: Graph) -> Option<Vec<Module>> {
    // Modules that import from none of those that are left cannot be part of a circle.
    while let Some(free) = left.iter().find(|(_, imports)| imports.iter().all(|i| !left.contains_key(i))) {
        let free = free.0.clone();
        left.remove(&free);
    }
    let mut path = vec![left.keys().next()?.clone()];
    loop {
        let last = path.last().expect("a path has a start");
        let next = left[last].iter().find(|import| left.contains_key(*import)).expect("all others were removed");
        if let Some(start) = path.iter().position(|module| module == next) {
            return Some(path.split_off(start));
        }
        path.push(next.clone());
    }
}

#[expect(clippy::disallowed_methods, reason = "the files of the crate itself are what is tested")]
fn walk(directory: &Path, parents: &mut Module, files: &mut Vec<(Module, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            parents.push(name);
            walk(&path, parents, files);
            parents.pop();
        } else if path.extension().is_none_or(|extension| extension != "rs") {
            // Data that a file includes imports nothing.
        } else if name == "lib" {
            files.push((Vec::new(), fs::read_to_string(&path).unwrap()));
        } else {
            let module = parents.iter().cloned().chain([name]).collect();
            files.push((module, fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The trees of all `use` statements; those with a visibility are exports.
fn statements(code: &str) -> impl Iterator<Item = (&str, How)> {
    let line_starts = std::iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1));
    line_starts.filter_map(|start| {
        let line = code[start..].trim_start();
        let statement = if line.starts_with("pub") { line.split_once(' ')?.1 } else { line };
        let tree = statement.strip_prefix("use ")?.split(';').next()?;
        Some((tree, if line.starts_with("pub") { How::Export } else { How::Import }))
    })
}

/// The paths that lead into a child module without a `use`: `child::name`.
fn paths_into_children(code: &str) -> impl Iterator<Item = String> {
    let declared = code.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = if line.starts_with("pub") { line.split_once(' ')?.1 } else { line };
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    declared.flat_map(move |child| {
        code.match_indices(child).filter_map(move |(at, _)| {
            let is_longer = code[..at].ends_with(|c| is_word(c) || c == ':');
            let rest = code[at + child.len()..].strip_prefix("::")?;
            let name = rest.split(|c| !is_word(c)).next().filter(|name| !name.is_empty())?;
            (!is_longer).then(|| format!("self::{child}::{name}"))
        })
    })
}

/// The paths that lead into any module of the crate without a `use`: `crate::module::name`, `super::module::name`.
fn paths_elsewhere(code: &str) -> impl Iterator<Item = String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_code = |line: &&str| {
        let line = line.trim_start();
        let item = if line.starts_with("pub") { line.split_once(' ').map_or(line, |(_, item)| item) } else { line };
        !line.starts_with("//") && !item.starts_with("use ")
    };
    code.lines().filter(is_code).flat_map(move |line| {
        ["crate::", "super::"].into_iter().flat_map(move |start| {
            line.match_indices(start).filter_map(move |(at, _)| {
                let is_longer = line[..at].ends_with(|c| is_word(c) || c == ':' || c == '$');
                let path = line[at..].split(|c| !is_word(c) && c != ':').next()?;
                (!is_longer).then(|| path.trim_end_matches(':').to_owned())
            })
        })
    })
}

/// `a::{b, c::{d}}` as `a::b` and `a::c::d`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.trim_end_matches("::self").to_owned()];
    };
    let inner = rest.trim_end().strip_suffix('}').unwrap();
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expand(&format!("{prefix}{}", part.trim()))).collect()
}

/// A path from the root of the crate; `None` if it leads into another crate.
fn absolute(module: &Module, path: &str) -> Option<Module> {
    let mut names: Vec<&str> = path.split("::").map(str::trim).collect();
    let mut base = module.clone();
    match *names.first()? {
        "crate" => base.clear(),
        "super" => {
            base.pop()?;
        }
        "self" => {}
        // Either a child of this module or another crate; only re-exports matter, and they are of children.
        _ => names.insert(0, "self"),
    }
    names.remove(0);
    while names.first() == Some(&"super") {
        base.pop()?;
        names.remove(0);
    }
    base.extend(names.into_iter().map(str::to_owned));
    Some(base)
}

fn source_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

#[test]
fn no_file_imports_from_a_file_that_imports_from_it() {
    use Counting::{All, NotFromParts};
    for (name, least_files, counting) in [
        ("contexture-core", 50, All),
        ("contexture-text", 8, NotFromParts),
        ("contexture-files", 30, NotFromParts),
        ("contexture-fold", 30, NotFromParts),
        ("contexture-wire", 20, NotFromParts),
        ("contexture-memory", 20, NotFromParts),
        ("contexture-store", 10, NotFromParts),
        ("contexture", 30, NotFromParts),
        ("contexture-gateway", 40, NotFromParts),
        ("contexture-inspect", 15, NotFromParts),
        ("contexture-measure", 10, NotFromParts),
        ("contexture-terminal", 5, NotFromParts),
        ("contexture-cli", 20, NotFromParts),
    ] {
        let files = Crate::read(&source_of(name));
        assert!(files.0.len() > least_files, "the files of {name} were found");
        assert_eq!(files.circle(counting), None, "in {name}");
    }
}

#[test]
fn no_folder_imports_from_a_folder_that_imports_from_it() {
    for name in all_crates() {
        for (folder, siblings) in Crate::read(&source_of(name)).siblings() {
            assert_eq!(circle_in(siblings), None, "in {folder:?} of {name}");
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the files of the crate itself are what is tested")]
fn folders_of_the_gateway_import_only_from_those_that_are_declared_above_them() {
    let source = source_of("contexture-gateway");
    let root = fs::read_to_string(source.join("lib.rs")).unwrap();
    let declared: Vec<&str> =
        root.lines().filter_map(|line| line.strip_suffix(';')?.split_once("mod ")).map(|(_, name)| name).collect();
    let place = |module: &Module| declared.iter().position(|name| *name == module[0]).expect("it is declared");
    let folders = &Crate::read(&source).siblings()[&Module::new()];
    for (folder, imports) in folders {
        let above: Vec<&Module> = imports.iter().filter(|import| place(import) > place(folder)).collect();
        assert!(above.is_empty(), "{folder:?} imports from {above:?}");
    }
}
