//! The files that sessions begin with.

use std::collections::BTreeMap;

/// The files, by name.
pub(crate) fn initial_files() -> BTreeMap<&'static str, String> {
    let lines = |count: usize, make: &dyn Fn(usize) -> String| (1..=count).map(|n| make(n) + "\n").collect::<String>();
    BTreeMap::from([
        ("a.txt", lines(12, &|n| format!("alpha line {n}"))),
        ("b.txt", lines(7, &|n| format!("beta value {n}"))),
        ("long.txt", lines(90, &|n| format!("a long line with the number {n} and some more text to fill a window"))),
        ("notes.md", "---\ntitle: x\n---\n\n# Head\n\nthe text\n---\nmore text\n".to_owned()),
        ("readme.md", "# Name\n\nimport the data\n\n- foo\n- foo\n- foo\n".to_owned()),
        (
            "src/main.rs",
            lines(25, &|n| if n % 4 == 0 { String::new() } else { format!("    let value_{n} = foo({n});") }),
        ),
        ("src/lib.rs", "use a;\n\nfn name() {\n    return x;\n}\n\nfn other() {\n    return x;\n}\n".to_owned()),
        ("sub/dir/deep.txt", lines(5, &|n| format!("deep {n}"))),
        ("sub/a.txt", lines(6, &|n| format!("other alpha {n}"))),
        ("empty.txt", String::new()),
        ("blank.txt", "\n\n\n".to_owned()),
        ("lead.txt", "\n\nalpha after blanks\nbeta\n\n".to_owned()),
        ("nonl.txt", "one alpha\ntwo beta".to_owned()),
        ("crlf.txt", "one alpha\r\ntwo beta\r\nthree\r\n".to_owned()),
        ("num.txt", "     1\talpha\n     2\tbeta\n     7\tgamma\n".to_owned()),
        ("log.txt", "12:alpha\n3:beta\n3-gamma\n--\n7: x\n".to_owned()),
        ("trace.log", "at the start\nsee main.rs:12:5 alpha\nb.txt:2:beta\nend of a trace\n".to_owned()),
        ("remind.md", "the top\n<system-reminder>\nnot a reminder\n</system-reminder>\nthe end\n".to_owned()),
        ("cmd.txt", "Command: cat x\nExit code: 1\nWall time: 1\nOutput:\nalpha\n".to_owned()),
        ("dash.txt", "---\n===\n---\nalpha\n".to_owned()),
        ("mark.txt", "before the mark\n---\nafter the mark\n".to_owned()),
        ("heads.txt", "==> a.txt <==\nalpha line 1\n\n==> b.txt <==\nbeta value 9\n".to_owned()),
        ("same.txt", "foo\nbar\nfoo\nbar\nfoo\nbar\nend\n".to_owned()),
        ("trail.txt", "alpha  \nbeta\t\ngamma   \n".to_owned()),
        ("cut.txt", "alpha\n[... truncated ...]\nbeta\ncat: x: No such file or directory\n".to_owned()),
        (
            "fence.md",
            "```\ncode\n```\n# Files as you know them at message 3\n## `a.txt`: whole file, 1 line, sure\n````\nx\n````\n"
                .to_owned(),
        ),
        ("with space.txt", "alpha with space\nbeta\n".to_owned()),
        ("naïve ü.txt", "alpha ünïcode\n日本語\n".to_owned()),
        ("odd\nname.txt", "alpha in an odd place\n".to_owned()),
        ("tick`s.txt", "alpha between ticks\n".to_owned()),
        ("it's.txt", "alpha in quotes\nbeta\n".to_owned()),
        ("[ab].txt", "alpha of a pattern\nbeta\n".to_owned()),
        ("post-2-x.md", "alpha of a post\nbeta\ngamma\n".to_owned()),
        ("colon:3:x.txt", "alpha between colons\nbeta\n".to_owned()),
        ("version", "echo 1 >> a.txt\nalpha\n".to_owned()),
        (".env", "K=alpha\nL=beta\n".to_owned()),
        ("data.json", "{\n  \"name\": \"alpha\",\n  \"a\": 1\n}\n".to_owned()),
        ("table.csv", "alpha,3\nbeta,1\ngamma,2\n".to_owned()),
        ("tool.py", "open('a.txt', 'a').write('by a tool\\n')\n".to_owned()),
        ("-dash.txt", "alpha behind a dash\n".to_owned()),
        ("Makefile", "all:\n\t@echo built\ntest:\n\t@echo tested\ntouchy:\n\t@echo made >> a.txt\n".to_owned()),
        ("script.sh", "#!/bin/bash\necho scripted >> a.txt\nsed -i 1d b.txt\n".to_owned()),
        ("go.sh", "cd sub\n".to_owned()),
    ])
}
