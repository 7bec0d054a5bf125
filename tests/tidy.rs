//! The rules of the house as a test: who may import what, and how files must look.
//!
//! Each rule is a function from a file, or from all of them, to its complaints, so that it can be
//! tried on small bad inputs; two tests apply all of them to the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The longest a file may be, its tests not counted, in lines.
const MAX_FILE_LINES: usize = 500;

/// The longest a line may be, in characters.
const MAX_LINE_CHARS: usize = 100;

/// The only names at the top of the repository, besides dotfiles.
const TOP_LEVEL: [&str; 9] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "benches",
    "config.example.toml",
    "packaging",
    "src",
    "tests",
];

/// The modules that may name any other.
const TOP_MODULES: [&str; 3] = ["main", "lib", "cli"];

/// Which modules of ours each of the other modules may name.
const LAYERS: [(&str, &[&str]); 19] = [
    ("manual", &[]),
    ("ids", &[]),
    ("reason", &[]),
    ("wire", &["reason"]),
    ("sql", &["reason"]),
    ("error", &["wire", "reason", "auth"]),
    ("metrics", &["sql", "reason"]),
    ("config", &[]),
    ("statement", &["sql", "reason"]),
    ("standing", &["wire", "statement", "sql", "reason"]),
    (
        "convert",
        &["wire", "statement", "sql", "reason", "standing", "metrics"],
    ),
    (
        "oracle",
        &[
            "wire",
            "statement",
            "sql",
            "reason",
            "standing",
            "convert",
            "metrics",
        ],
    ),
    (
        "upstream",
        &[
            "wire",
            "statement",
            "sql",
            "reason",
            "standing",
            "convert",
            "ids",
        ],
    ),
    ("client", &["wire", "statement", "reason", "convert", "ids"]),
    ("auth", &["wire", "reason"]),
    ("admin", &["metrics", "reason", "sql", "statement", "wire"]),
    (
        "hub",
        &[
            "wire",
            "statement",
            "sql",
            "reason",
            "standing",
            "convert",
            "oracle",
            "upstream",
            "client",
            "ids",
            "metrics",
        ],
    ),
    ("lab", &["wire", "config"]),
    (
        "net",
        &[
            "wire",
            "statement",
            "reason",
            "error",
            "convert",
            "client",
            "ids",
            "metrics",
            "hub",
            "config",
            "auth",
            "admin",
        ],
    ),
];

/// Names that may stand only in files whose path begins with one of these.
const CONFINED: [(&str, &[&str]); 20] = [
    ("tokio::", SHELL),
    ("mio::", &["src/net/"]),
    ("rustls::", &["src/net/tls/"]),
    ("hyper::", &["src/net/http/"]),
    ("Instant::now", SHELL),
    ("SystemTime::now", SHELL),
    ("TcpStream", SHELL),
    ("TcpListener", SHELL),
    ("UnixStream", SHELL),
    ("UnixListener", SHELL),
    (
        "env::",
        &[
            "src/main",
            "src/cli/",
            "src/net/",
            "src/lab/",
            "src/config/",
        ],
    ),
    ("sqlparser::", &["src/sql/eligible"]),
    ("dashmap::", &["src/statement/"]),
    ("pgwire::", &["src/wire/"]),
    ("base64::", &["src/auth/", "src/admin/page/"]),
    ("hmac::", &["src/auth/"]),
    ("md5::", &["src/auth/"]),
    ("stringprep::", &["src/auth/"]),
    ("subtle::", &["src/auth/"]),
    ("serde::", &["src/lab/demo/", "src/lab/bench/"]),
];

/// The parts that may touch sockets, clocks and the operating system.
const SHELL: &[&str] = &["src/main", "src/cli/", "src/net/", "src/lab/", "benches/"];

/// Modules of programs of their own, whose types may have the names of the proxy's.
const APART: [&str; 2] = ["cli", "lab"];

/// Types through which a `static` could change.
const MUTABLE_TYPES: [&str; 9] = [
    "Atomic",
    "Cell<",
    "DashMap",
    "LazyCell",
    "LazyLock",
    "Mutex",
    "Once",
    "RwLock",
    "UnsafeCell",
];

/// A Rust file of the repository, or one made up to try a rule.
struct Source {
    /// The path from the top of the repository, with `/`.
    path: String,
    /// The text as it stands.
    text: String,
    /// The text with comments and the insides of literals blanked out, without the tests.
    code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let code = if is_test_file(path) {
            String::new()
        } else {
            without_tests(&blank(text))
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    /// A complaint about the line at `index`, counted from 0.
    fn complaint(&self, index: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, index + 1)
    }

    /// The path of the module in the crate: `wire::frame` for `src/wire/frame.rs`.
    fn path_in_crate(&self) -> Vec<&str> {
        let inside = self.path.strip_prefix("src/").unwrap_or("");
        let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        inside.split('/').collect()
    }

    /// Whether the rules about files among each other are for this one.
    fn is_in_a_room(&self) -> bool {
        self.path.starts_with("src/")
    }

    /// The module of ours that the file belongs to: `wire` for `src/wire/frame.rs`.
    fn module(&self) -> &str {
        let inside = self.path.strip_prefix("src/").unwrap_or("");
        inside.split(['/', '.']).next().unwrap_or("")
    }
}

/// Files that are tests as a whole.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || path.contains("/tests/")
        || path.starts_with("tests/")
}

/// `text` with the insides of comments, strings and characters replaced by spaces.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            'r' if begins_a_word(&out) => raw_string(rest),
            '\'' => character(rest),
            _ => 0,
        };
        let taken = hidden.max(first.len_utf8());
        let visible = |c: char| if hidden == 0 || c == '\n' { c } else { ' ' };
        out.extend(rest[..taken].chars().map(visible));
        rest = &rest[taken..];
    }
    out
}

/// Whether what follows `before` is no rest of a word; `br` and `cr` begin raw strings too.
fn begins_a_word(before: &str) -> bool {
    !before
        .trim_end_matches(['b', 'c'])
        .ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The length of the comment that `rest` begins with; such comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(_) => at += 1,
            None => return rest.len(),
        }
        if depth == 0 {
            return at;
        }
    }
}

/// The length of the string literal that `rest` begins with.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of the raw string literal that `rest` begins with, or 0.
fn raw_string(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let start = 1 + hashes;
    if !rest[start..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    rest[start + 1..]
        .find(&end)
        .map_or(rest.len(), |at| start + 1 + at + end.len())
}

/// The length of the character literal that `rest` begins with; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => rest[escaped + 1..]
            .find('\'')
            .map_or(0, |at| escaped + 1 + at + 1),
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 0,
    }
}

/// `code` up to its tests, which stand last.
fn without_tests(code: &str) -> String {
    code.find("\n#[cfg(test)]\nmod tests")
        .map_or(code, |at| &code[..=at])
        .to_owned()
}

/// Rule: the first line begins a module comment whose first paragraph is a full sentence.
fn begins_with_a_sentence(source: &Source) -> Vec<String> {
    let paragraph: Vec<_> = source
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//! "))
        .flat_map(str::split_whitespace)
        .collect();
    let is_sentence = paragraph.len() >= 4
        && paragraph[0].starts_with(|c: char| c.is_uppercase() || "`[0123456789".contains(c))
        && paragraph.iter().any(|word| word.ends_with('.'));
    let what = "begin the file with a `//!` that says in a full sentence what it is";
    if is_sentence {
        Vec::new()
    } else {
        vec![source.complaint(0, what)]
    }
}

/// Rule: neither lines nor files are too long.
fn is_short(source: &Source) -> Vec<String> {
    let long = |(_, line): &(usize, &str)| line.chars().count() > MAX_LINE_CHARS;
    let lines = source.text.lines().enumerate().filter(long);
    let mut complaints: Vec<_> = lines
        .map(|(index, _)| source.complaint(index, "longer than 100 characters"))
        .collect();
    if source.code.lines().count() > MAX_FILE_LINES {
        complaints.push(source.complaint(MAX_FILE_LINES, "more than 500 lines; divide the file"));
    }
    complaints
}

/// Rule: a module names only the modules below it.
fn names_only_lower_modules(source: &Source) -> Vec<String> {
    if !source.path.starts_with("src/") || TOP_MODULES.contains(&source.module()) {
        return Vec::new();
    }
    let Some((_, allowed)) = LAYERS.iter().find(|(module, _)| *module == source.module()) else {
        return vec![source.complaint(0, "say in tests/tidy.rs what this module may know")];
    };
    let lower = |name: &str| name == source.module() || allowed.contains(&name);
    crate_names(source)
        .into_iter()
        .filter(|(_, name)| !lower(name))
        .map(|(index, name)| {
            let what = format!("`{}` may not know `{name}`", source.module());
            source.complaint(index, &what)
        })
        .collect()
}

/// Each name taken from the top of the crate, by `crate::` or enough `super::`, and its line.
fn crate_names(source: &Source) -> Vec<(usize, String)> {
    let inside = source
        .path
        .trim_start_matches("src/")
        .trim_end_matches(".rs");
    let depth = inside.trim_end_matches("/mod").split('/').count();
    let mut found = Vec::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in source.code.match_indices(&root) {
            let before = &source.code[..at];
            if before.ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let line = before.matches('\n').count();
            let names = first_names(&source.code[at + root.len()..]);
            found.extend(names.into_iter().map(|name| (line, name)));
        }
    }
    found
}

/// The first name of each path in `a::b`, or in `{a::b, c::{d, e}}`.
fn first_names(path: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name = |text: &str| {
        text.trim_start()
            .chars()
            .take_while(|c| is_name(*c))
            .collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let (mut depth, mut names, mut start) = (0_usize, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name: &String| !name.is_empty());
    names
}

/// Rule: libraries, sockets, clocks and the environment stay where they belong.
fn names_only_its_libraries(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, homes) in CONFINED {
        if !source.path.starts_with("src/") || homes.iter().any(|home| at_home(source, home)) {
            continue;
        }
        for (index, line) in source.code.lines().enumerate() {
            let outside = |(at, _): (usize, &str)| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            };
            if line.match_indices(name).any(outside) {
                complaints.push(source.complaint(index, &format!("`{name}` has no place here")));
            }
        }
    }
    complaints
}

/// Whether the file is in `home`, which as a directory may also be one file of that name.
fn at_home(source: &Source, home: &str) -> bool {
    source.path.starts_with(home) || source.path == format!("{}.rs", home.trim_end_matches('/'))
}

/// Rule: no state that belongs to nobody.
fn has_no_mutable_static(source: &Source) -> Vec<String> {
    let is_mutable = |line: &str| {
        let Some((before, after)) = line.split_once("static ") else {
            return line.contains("thread_local!");
        };
        let declares = before.is_empty() || before.ends_with(' ');
        let held = after.split_once('=').map_or(after, |(held, _)| held);
        declares && (after.starts_with("mut ") || MUTABLE_TYPES.iter().any(|t| held.contains(t)))
    };
    let lines = source
        .code
        .lines()
        .enumerate()
        .filter(|(_, line)| is_mutable(line));
    lines
        .map(|(index, _)| source.complaint(index, "a static that can change"))
        .collect()
}

/// Rule: nothing unfinished is left behind, and no lint is switched off without a reason.
fn is_finished(source: &Source) -> Vec<String> {
    let all = blank(&source.text);
    let mut complaints = Vec::new();
    for (index, (line, code)) in source.text.lines().zip(all.lines()).enumerate() {
        let mut complain = |what| complaints.push(source.complaint(index, what));
        let comment = line.len() > code.trim_end().len();
        if comment
            && ["FIXME", "TODO", "XXX"]
                .iter()
                .any(|mark| line.contains(mark))
        {
            complain("finish it, or write down elsewhere that it is missing");
        }
        if ["dbg!", "todo!", "unimplemented!"]
            .iter()
            .any(|name| code.contains(name))
        {
            complain("a macro for unfinished work");
        }
        if code.contains("[allow(") || code.contains(" allow(") {
            complain("use `#[expect(lint, reason = …)]` instead of `allow`");
        }
        if is_code_in_a_comment(line) {
            complain("code in a comment; the history keeps it");
        }
    }
    for (index, line) in source.code.lines().enumerate() {
        if line.contains(" as char") {
            complaints.push(source.complaint(index, "use `char::from`, which takes only a byte"));
        }
    }
    complaints
}

/// Whether a line is a comment that could be a statement.
fn is_code_in_a_comment(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("// ") else {
        return false;
    };
    let begins = [
        "let ", "use ", "pub ", "fn ", "if ", "for ", "match ", "return ", "self.",
    ];
    begins.iter().any(|begin| comment.starts_with(begin)) && comment.ends_with([';', '{'])
}

/// Rule: a fidelity rule is cited by its number in the manual, not by another one.
fn cites_rules_by_their_numbers(source: &Source) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    let cites = |line: &str| {
        let pieces = line.match_indices("(rule");
        let rest = pieces.map(|(at, piece)| line[at + piece.len()..].trim_start_matches('s'));
        rest.map(str::trim_start)
            .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    lines
        .filter(|(_, line)| cites(line))
        .map(|(index, _)| source.complaint(index, "cite the rule as src/manual/fidelity.md does"))
        .collect()
}

/// The fidelity rules that `text` names, such as number 10, each with its line counted from 0.
fn rules_named(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (at, prefix) in line.match_indices("H-") {
            let digits: String = line[at + prefix.len()..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let is_word = line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if !digits.is_empty() && !is_word {
                found.push((index, format!("{prefix}{digits}")));
            }
        }
    }
    found
}

/// The fidelity rules that have a heading of their own in `manual`.
fn rules_explained(manual: &str) -> Vec<String> {
    let headings = manual.lines().filter_map(|line| line.strip_prefix("### "));
    let names = headings.filter_map(|heading| rules_named(heading).into_iter().next());
    names.map(|(_, name)| name).collect()
}

/// Rule: each fidelity rule that a source or a chapter names is explained in `manual`, once, and
/// each that is explained there is cited by a source.
fn fidelity_rules_are_cited_and_explained(
    manual: &str,
    sources: &[Source],
    chapters: &[Source],
) -> Vec<String> {
    let explained = rules_explained(manual);
    let mut complaints = Vec::new();
    for source in sources.iter().chain(chapters) {
        for (index, name) in rules_named(&source.text) {
            if !explained.contains(&name) {
                let what = format!("{name} is not explained in src/manual/fidelity.md");
                complaints.push(source.complaint(index, &what));
            }
        }
    }
    let cited = sources.iter().flat_map(|source| rules_named(&source.text));
    let cited: BTreeSet<_> = cited.map(|(_, name)| name).collect();
    for (index, name) in explained.iter().enumerate() {
        if !cited.contains(name) {
            complaints.push(format!("src/manual/fidelity.md: nothing cites {name}"));
        }
        if explained[..index].contains(name) {
            complaints.push(format!("src/manual/fidelity.md: {name} is explained twice"));
        }
    }
    complaints
}

/// One file names another of its room, or what lies below that.
struct Arrow<'a> {
    source: &'a Source,
    line: usize,
    /// The path of the room, and the two in it.
    room: Vec<&'a str>,
    from: &'a str,
    to: String,
}

/// Rule: the files of a room name each other in one direction. A comment that begins with `Circle:`
/// above the name, or beside it, says why one must not.
fn goes_in_no_circle(sources: &[Source]) -> Vec<String> {
    let in_rooms = || sources.iter().filter(|source| source.is_in_a_room());
    let modules: BTreeSet<_> = in_rooms().map(Source::path_in_crate).collect();
    let arrows: Vec<_> = in_rooms()
        .flat_map(|source| arrows(source, &modules))
        .collect();
    let mut next: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for arrow in &arrows {
        let from = next.entry((&arrow.room, arrow.from)).or_default();
        from.insert(&*arrow.to);
    }
    let comes_back = |arrow: &&Arrow<'_>| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![&*arrow.to]);
        while let Some(at) = left.pop() {
            if seen.insert(at) {
                left.extend(next.get(&(&arrow.room, at)).into_iter().flatten());
            }
        }
        seen.contains(arrow.from)
    };
    let found = arrows.iter().filter(comes_back).map(|arrow| {
        let (from, to) = (arrow.from, &arrow.to);
        let what = format!("`{from}` names `{to}`, which leads back to it");
        arrow.source.complaint(arrow.line, &what)
    });
    // Of one file, a line may name several things.
    found.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What a file names of the rooms it is in, except for what is excused.
fn arrows<'a>(source: &'a Source, modules: &BTreeSet<Vec<&str>>) -> Vec<Arrow<'a>> {
    let here = source.path_in_crate();
    let lines: Vec<_> = source.text.lines().collect();
    let is_excused = |line: usize| {
        let above = lines[..line].iter().rev();
        let above = above.take_while(|line| line.trim_start().starts_with("//"));
        let mut near = above.chain(lines.get(line));
        near.any(|line| line.contains("// Circle: "))
    };
    let mut found = Vec::new();
    for (line, path) in crate_paths(source) {
        let pairs = here.iter().zip(&path);
        let common = pairs.take_while(|(here, there)| here == there).count();
        let (Some(from), Some(to)) = (here.get(common), path.get(common)) else {
            continue;
        };
        let there: Vec<_> = path[..=common].iter().map(String::as_str).collect();
        if modules.contains(&there) && !is_excused(line) {
            found.push(Arrow {
                source,
                line,
                room: here[..common].to_vec(),
                from,
                to: to.clone(),
            });
        }
    }
    found
}

/// Each path that begins with `crate::` or `super::`, from the top of the crate, and its line.
fn crate_paths(source: &Source) -> Vec<(usize, Vec<String>)> {
    let here = source.path_in_crate();
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in source.code.match_indices(root) {
            let before = &source.code[..at];
            if before.ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c)) {
                continue;
            }
            let (mut rest, mut base) = (&source.code[at..], here.as_slice());
            while let Some(above) = rest.strip_prefix("super::") {
                (rest, base) = (above, &base[..base.len().saturating_sub(1)]);
            }
            if let Some(below) = rest.strip_prefix("crate::") {
                (rest, base) = (below, &[]);
            }
            let base: Vec<_> = base.iter().map(|&name| name.to_owned()).collect();
            let line = before.matches('\n').count();
            let paths = all_paths(rest).into_iter();
            found.extend(paths.map(|path| (line, [&base[..], &path].concat())));
        }
    }
    found
}

/// Every path in `a::b`, or in `a::{b, c::{d, e}}`.
fn all_paths(text: &str) -> Vec<Vec<String>> {
    let Some(group) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let mut paths = rest.strip_prefix("::").map_or_else(Vec::new, all_paths);
        if paths.is_empty() {
            paths.push(Vec::new());
        }
        for path in &mut paths {
            path.insert(0, name.to_owned());
        }
        return paths;
    };
    let (mut depth, mut paths, mut start) = (0_usize, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let part = group[start..at].trim();
                if !part.is_empty() {
                    paths.extend(all_paths(part));
                }
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    paths
}

/// Rule: secrets are kept in types that neither print nor compare them. `Zeroizing` does both, so
/// only the types that hide it hold it.
fn hides_its_secrets(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut derived = "";
    for (index, line) in source.code.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("#[derive") {
            derived = line;
        } else if line.contains("Zeroizing<") && !line.contains("fn ") && !line.contains("->") {
            if line.contains("type ") {
                complaints.push(source.complaint(index, "an alias of a type that prints secrets"));
            }
            for way in ["Debug", "PartialEq"] {
                if derived.contains(way) {
                    let what = format!("a type with a secret derives `{way}`; hold a `Wiped`");
                    complaints.push(source.complaint(index, &what));
                }
            }
        } else if line == "}" || line.is_empty() {
            derived = "";
        }
    }
    complaints
}

/// Rule: what a type can do stands where the type does, or in the folder that is named after it.
fn keeps_types_together(sources: &[Source]) -> Vec<String> {
    let mut homes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for source in sources {
        for (_, _, name) in types(source) {
            homes.entry(name).or_default().push(&*source.path);
        }
    }
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| source.is_in_a_room()) {
        let is_at_home = |home: &&str| {
            let folder = home.trim_end_matches(".rs").trim_end_matches("/mod");
            source.path == *home || source.path.starts_with(&format!("{folder}/"))
        };
        for (index, line) in source.code.lines().enumerate() {
            let Some(name) = inherent_impl(line) else {
                continue;
            };
            let homes = homes.get(name).map(Vec::as_slice).unwrap_or_default();
            if !homes.iter().any(is_at_home) {
                let what = format!("an `impl` of `{name}`, which is defined elsewhere");
                complaints.push(source.complaint(index, &what));
            }
        }
    }
    complaints
}

/// The type whose inherent `impl` begins on this line.
fn inherent_impl(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        rest = rest.get(end? + 1..)?;
    }
    let rest = rest.strip_prefix(' ')?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c)))?;
    let is_inherent = !rest.contains(" for ") && rest.ends_with(['{', '}', '>']);
    is_inherent.then(|| rest[..end].rsplit("::").next().unwrap_or_default())
}

/// The line, the visibility and the name of each type that a file defines.
fn types(source: &Source) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (index, line) in source.code.lines().enumerate() {
        for word in ["struct ", "enum ", "trait "] {
            let Some((before, after)) = line.split_once(word) else {
                continue;
            };
            let before = before.trim();
            let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            if before.is_empty() || before == "pub" || before.starts_with("pub(") {
                found.push((index, before, &after[..end.unwrap_or(after.len())]));
            }
        }
    }
    found
}

/// Rule: no two types that are seen outside their rooms have one name. Each room may have its
/// `Error`.
fn names_each_type_once(sources: &[Source]) -> Vec<String> {
    let mut seen: BTreeMap<_, &str> = BTreeMap::from([("Error", "")]);
    let mut complaints = Vec::new();
    let is_core = |source: &&Source| source.is_in_a_room() && !APART.contains(&source.module());
    for source in sources.iter().filter(is_core) {
        let types = types(source).into_iter();
        let open = types.filter(|(_, seen, _)| matches!(*seen, "pub" | "pub(crate)"));
        for (index, _, name) in open {
            match seen.get(name) {
                Some(&"") => {}
                Some(other) => {
                    let what = format!("`{name}` is a type of {other}, too");
                    complaints.push(source.complaint(index, &what));
                }
                None => {
                    seen.insert(name, &source.path);
                }
            }
        }
    }
    complaints
}

/// Every complaint about the files beside each other.
fn complaints_about_all(sources: &[Source]) -> Vec<String> {
    let rules = [
        goes_in_no_circle,
        keeps_types_together,
        names_each_type_once,
    ];
    rules.iter().flat_map(|rule| rule(sources)).collect()
}

/// Every complaint about one file.
fn complaints(source: &Source) -> Vec<String> {
    let rules = [
        begins_with_a_sentence,
        is_short,
        names_only_lower_modules,
        names_only_its_libraries,
        has_no_mutable_static,
        is_finished,
        cites_rules_by_their_numbers,
        hides_its_secrets,
    ];
    rules.iter().flat_map(|rule| rule(source)).collect()
}

/// The top of the repository.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `directory` whose name ends in a dot and `kind`.
fn files(directory: &Path, kind: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("a readable directory").path();
        if path.is_dir() {
            found.extend(files(&path, kind));
        } else if path.extension().is_some_and(|extension| extension == kind) {
            found.push(path);
        }
    }
    found
}

/// The files of one kind below these directories of the repository.
fn sources(roots: &[&str], kind: &str) -> Vec<Source> {
    let files = roots.iter().flat_map(|root| files(&top().join(root), kind));
    let source = |file: PathBuf| {
        let path = file.strip_prefix(top()).expect("below the top");
        let text = fs::read_to_string(&file).expect("a readable file");
        Source::new(&path.to_string_lossy().replace('\\', "/"), &text)
    };
    files.map(source).collect()
}

#[test]
fn the_house_is_tidy() {
    let sources = sources(&["src", "tests", "benches"], "rs");
    assert!(sources.len() > 10, "the files were not found");
    let mut found: Vec<_> = sources.iter().flat_map(complaints).collect();
    found.extend(complaints_about_all(&sources));
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_fidelity_rule_is_cited_and_explained() {
    let manual = fs::read_to_string(top().join("src/manual/fidelity.md")).expect("a readable file");
    assert!(
        rules_explained(&manual).len() > 10,
        "the rules were not found"
    );
    let code = sources(&["src", "tests", "benches"], "rs");
    let chapters = sources(&["src/manual"], "md");
    let found = fidelity_rules_are_cited_and_explained(&manual, &code, &chapters);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn nothing_else_lies_at_the_top() {
    let names: BTreeSet<_> = fs::read_dir(top())
        .expect("a readable directory")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert!(
        names.contains("src") && names.contains("config.example.toml"),
        "{names:?}"
    );
    let allowed =
        |name: &str| name.starts_with('.') || name == "target" || TOP_LEVEL.contains(&name);
    let others: Vec<_> = names.iter().filter(|name| !allowed(name)).collect();
    assert!(others.is_empty(), "not allowed at the top: {others:?}");
}

mod the_rules {
    //! Each rule, tried on what it must refuse and on what it must not.

    use super::*;

    /// How often `rule` complains about a file at `path` that holds `text`.
    fn count(rule: fn(&Source) -> Vec<String>, path: &str, text: &str) -> usize {
        rule(&Source::new(path, text)).len()
    }

    #[test]
    fn comments_and_literals_are_blanked_out() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (
                r#"f("x\"y", 'z', '\'', b'\\')"#,
                "f(      ,    ,     , b    )",
            ),
            ("r#\"a\"b\"# c", "         c"),
            ("br\"\\\" c", "b     c"),
            ("for\"x\"", "for   "),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("'ä' x", "    x"),
        ] {
            assert_eq!(blank(text), expected, "{text}");
        }
    }

    #[test]
    fn a_file_says_what_it_is() {
        let rule = begins_with_a_sentence;
        assert_eq!(count(rule, "src/a.rs", "//! What this file is about.\n"), 0);
        assert_eq!(
            count(
                rule,
                "src/a.rs",
                "//! It is long: so long that it\n//! wraps.\n"
            ),
            0
        );
        assert_eq!(count(rule, "src/a.rs", "//! Frames.\n"), 1);
        assert_eq!(count(rule, "src/a.rs", "//! no full sentence at all\n"), 1);
        assert_eq!(
            count(rule, "src/a.rs", "use std::fmt;\n//! What this is.\n"),
            1
        );
        assert_eq!(count(rule, "src/a.rs", ""), 1);
    }

    #[test]
    fn length_is_counted_in_characters_and_without_tests() {
        let lines = "x\n".repeat(500);
        assert_eq!(count(is_short, "src/a.rs", &lines), 0);
        assert_eq!(count(is_short, "src/a.rs", &format!("{lines}x\n")), 1);
        let tested = format!("{lines}#[cfg(test)]\nmod tests {{\n{lines}}}\n");
        assert_eq!(count(is_short, "src/a.rs", &tested), 0);
        assert_eq!(count(is_short, "src/a/tests.rs", &lines.repeat(2)), 0);
        assert_eq!(count(is_short, "src/a.rs", &"ä".repeat(100)), 0);
        assert_eq!(count(is_short, "src/a.rs", &"x".repeat(101)), 1);
    }

    #[test]
    fn a_module_knows_only_those_below_it() {
        let rule = names_only_lower_modules;
        assert_eq!(
            count(rule, "src/sql/mod.rs", "use crate::reason::Reason;"),
            0
        );
        assert_eq!(count(rule, "src/sql/scan.rs", "use crate::sql::shape;"), 0);
        assert_eq!(count(rule, "src/sql/scan.rs", "use crate::wire::Frame;"), 1);
        assert_eq!(
            count(
                rule,
                "src/sql/scan.rs",
                "use crate::{reason::Reason, wire};"
            ),
            1
        );
        assert_eq!(
            count(rule, "src/sql/scan.rs", "use crate::{sql::{a, wire}, net};"),
            1
        );
        assert_eq!(
            count(rule, "src/wire/mod.rs", "fn f(x: crate::sql::Shape) {}"),
            1
        );
        assert_eq!(
            count(rule, "src/wire/frame.rs", "use super::super::sql;"),
            1
        );
        assert_eq!(count(rule, "src/wire/frame.rs", "use super::sql;"), 0);
        assert_eq!(count(rule, "src/wire/mod.rs", "use super::sql;"), 1);
        assert_eq!(count(rule, "src/wire.rs", "use super::sql;"), 1);
        assert_eq!(count(rule, "src/wire/mod.rs", "// see crate::sql"), 0);
        assert_eq!(
            count(rule, "src/hub/mod.rs", "use crate::{upstream, client};"),
            0
        );
        assert_eq!(count(rule, "src/upstream/mod.rs", "use crate::client;"), 1);
        assert_eq!(count(rule, "src/cli/serve.rs", "use crate::net;"), 0);
        assert_eq!(count(rule, "src/novel.rs", ""), 1);
        let test = "\n#[cfg(test)]\nmod tests {\n    use crate::wire;\n}\n";
        assert_eq!(count(rule, "src/sql/mod.rs", test), 0);
    }

    #[test]
    fn libraries_stay_where_they_belong() {
        let rule = names_only_its_libraries;
        assert_eq!(
            count(rule, "src/net/mod.rs", "use tokio::net::TcpListener;"),
            0
        );
        assert_eq!(
            count(rule, "src/hub/mod.rs", "use tokio::net::TcpListener;"),
            2
        );
        assert_eq!(count(rule, "src/sql/eligible.rs", "use sqlparser::ast;"), 0);
        assert_eq!(
            count(rule, "src/sql/eligible/walk.rs", "use sqlparser::ast;"),
            0
        );
        assert_eq!(count(rule, "src/sql/scan.rs", "use sqlparser::ast;"), 1);
        assert_eq!(count(rule, "src/net/mod.rs", "use dashmap::DashMap;"), 1);
        assert_eq!(count(rule, "src/metrics.rs", "use serde::Serialize;"), 1);
        assert_eq!(
            count(rule, "src/client/mod.rs", "let now = Instant::now();"),
            1
        );
        assert_eq!(count(rule, "src/client/mod.rs", "std::env::var(name)"), 1);
        assert_eq!(count(rule, "src/config.rs", "std::env::var(name)"), 0);
        assert_eq!(count(rule, "src/main.rs", "std::env::args()"), 0);
        assert_eq!(count(rule, "src/client/mod.rs", "fn no_env(my_env::x)"), 0);
        assert_eq!(count(rule, "tests/suite/main.rs", "use tokio::net;"), 0);
    }

    #[test]
    fn a_static_cannot_change() {
        let rule = has_no_mutable_static;
        assert_eq!(
            count(rule, "src/a.rs", "static A: AtomicU64 = AtomicU64::new(0);"),
            1
        );
        assert_eq!(
            count(rule, "src/a.rs", "pub static A: LazyLock<u8> = x();"),
            1
        );
        assert_eq!(count(rule, "src/a.rs", "static mut A: u8 = 0;"), 1);
        assert_eq!(count(rule, "src/a.rs", "thread_local! {}"), 1);
        assert_eq!(count(rule, "src/a.rs", "static A: [u8; 2] = [1, 2];"), 0);
        assert_eq!(count(rule, "src/a.rs", "fn f(x: &'static Mutex<u8>) {}"), 0);
    }

    #[test]
    fn secrets_are_hidden() {
        let of = |derived: &str, field: &str| {
            let text =
                format!("#[derive({derived})]\nstruct S {{\n    a: u8,\n    s: {field},\n}}\n");
            count(hides_its_secrets, "src/auth/s.rs", &text)
        };
        assert_eq!(of("Debug, Clone, PartialEq, Eq", "Zeroizing<Vec<u8>>"), 2);
        assert_eq!(of("Clone, Debug", "Option<zeroize::Zeroizing<Vec<u8>>>"), 1);
        assert_eq!(of("Clone", "Zeroizing<Vec<u8>>"), 0);
        assert_eq!(of("Debug, PartialEq", "Vec<u8>"), 0);
        let alias = "type S = Zeroizing<Vec<u8>>;\n";
        assert_eq!(count(hides_its_secrets, "src/auth/s.rs", alias), 1);
        let apart = "#[derive(Debug)]\nstruct A;\n\nstruct S(Zeroizing<u8>);\n";
        assert_eq!(count(hides_its_secrets, "src/auth/s.rs", apart), 0);
    }

    #[test]
    fn nothing_unfinished_is_left_behind() {
        let mark = ["FIX", "ME"].concat();
        for bad in [
            &format!("// {mark}: later"),
            "dbg!(x);",
            "todo!()",
            "#[allow(dead_code)]",
            "#![allow(dead_code)]",
            "#[cfg_attr(x, allow(dead_code))]",
            "// let x = 1;",
            "    // if x {",
            "let c = b as char;",
        ] {
            assert_eq!(count(is_finished, "src/a.rs", bad), 1, "{bad}");
        }
        for good in [
            "#[expect(dead_code, reason = \"x\")]",
            "// use the first; the second is for later",
            "let text = \"dbg!\";",
            "/// let x = 1;",
        ] {
            assert_eq!(count(is_finished, "src/a.rs", good), 0, "{good}");
        }
    }

    #[test]
    fn a_rule_has_one_number() {
        let rule = cites_rules_by_their_numbers;
        for word in ["(rule", "(rules"] {
            assert_eq!(
                count(rule, "src/a.rs", &format!("/// As it was {word} 4).")),
                1
            );
        }
        assert_eq!(count(rule, "src/a.rs", "/// A (rule of thumb), rule 4."), 0);
    }

    #[test]
    fn rules_are_found_by_their_names() {
        let name = |number: &str| ["H", number].join("-");
        let text = format!("a\n({}, {} to {})", name("02"), name("30"), name("34"));
        let expected = ["02", "30", "34"].map(|number| (1, name(number)));
        assert_eq!(rules_named(&text), expected);
        assert!(rules_named("UTH-8, H-, H-nn").is_empty());
    }

    #[test]
    fn rules_are_cited_and_explained() {
        let name = |number: &str| ["H", number].join("-");
        let source = |path: &str, numbers: &[&str]| {
            let names: Vec<_> = numbers.iter().map(|number| name(number)).collect();
            Source::new(path, &names.join("\n"))
        };
        let manual = format!(
            "text {}\n### {} One\n### {} Two\n",
            name("3"),
            name("1"),
            name("2")
        );
        let count = |code: &[&str], chapter: &[&str]| {
            let (code, chapter) = (source("src/a.rs", code), source("src/b.md", chapter));
            fidelity_rules_are_cited_and_explained(&manual, &[code], &[chapter]).len()
        };
        assert_eq!(count(&["1", "2", "1"], &["1"]), 0);
        assert_eq!(count(&["1"], &["2"]), 1, "only a chapter cites the second");
        assert_eq!(count(&["1", "2", "3"], &[]), 1, "the third has no heading");
        assert_eq!(count(&["1", "2"], &["4"]), 1, "the fourth is nowhere");
        let twice = format!("{manual}### {} Again\n", name("2"));
        let code = source("src/a.rs", &["1", "2"]);
        let found = fidelity_rules_are_cited_and_explained(&twice, &[code], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    /// How often `rule` complains about these files.
    fn count_all(rule: fn(&[Source]) -> Vec<String>, files: &[(&str, &str)]) -> usize {
        let sources = files.iter().map(|(path, text)| Source::new(path, text));
        rule(&sources.collect::<Vec<_>>()).len()
    }

    #[test]
    fn files_of_a_room_name_each_other_in_one_direction() {
        let rule = goes_in_no_circle;
        let (a, b, c) = ("src/sql/a.rs", "src/sql/b.rs", "src/sql/c.rs");
        let to_a = (c, "use crate::sql::a;");
        assert_eq!(count_all(rule, &[(a, "use super::b::B;"), (b, "")]), 0);
        let two = [(a, "use super::b::B;"), (b, "fn f(x: super::a::A) {}")];
        assert_eq!(count_all(rule, &two), 2);
        let three = [(a, "use super::{b::B, d};"), (b, "use super::c;"), to_a];
        assert_eq!(count_all(rule, &three), 3);
        let excuse = "// Circle: each is half of the other.\nuse super::c;";
        assert_eq!(
            count_all(rule, &[(a, "use super::b;"), (b, excuse), to_a]),
            0
        );
        let beside = "use super::c; // Circle: each is half of the other.";
        assert_eq!(
            count_all(rule, &[(a, "use super::b;"), (b, beside), to_a]),
            0
        );
        // What is below a file belongs to it; the face of a room may be named from within.
        let below = ("src/sql/b/d.rs", "use super::super::c;");
        assert_eq!(
            count_all(rule, &[(a, "use super::b;"), (b, ""), below, to_a]),
            3
        );
        let face = ("src/sql/mod.rs", "use self::a::A;\nuse super::reason;");
        assert_eq!(count_all(rule, &[face, (a, "use super::Scan;")]), 0);
        let test = "\n#[cfg(test)]\nmod tests {\n    use super::super::a;\n}\n";
        assert_eq!(count_all(rule, &[(a, "use super::b;"), (b, test)]), 0);
        let rooms = [
            ("src/wire/mod.rs", "use crate::sql;"),
            ("src/sql/mod.rs", "use crate::wire;"),
        ];
        assert_eq!(count_all(rule, &rooms), 2);
    }

    #[test]
    fn what_a_type_can_do_stands_with_it() {
        let rule = keeps_types_together;
        let defined = |path| (path, "pub struct A<'a>(&'a u8);\nimpl<'a> A<'a> {}");
        let other = ("src/sql/b.rs", "impl<T: Into<u8>> super::A<T> {\n}");
        assert_eq!(count_all(rule, &[defined("src/sql/b.rs")]), 0);
        assert_eq!(count_all(rule, &[defined("src/sql/a.rs"), other]), 1);
        assert_eq!(count_all(rule, &[defined("src/sql/mod.rs"), other]), 0);
        let below = ("src/sql/a/c.rs", "impl A<'_> {");
        assert_eq!(count_all(rule, &[defined("src/sql/a.rs"), below]), 0);
        let of_a_trait = (
            "src/sql/b.rs",
            "impl From<u8> for A<'_> {\nfn f() -> impl Iterator {",
        );
        assert_eq!(count_all(rule, &[defined("src/sql/a.rs"), of_a_trait]), 0);
    }

    #[test]
    fn a_type_has_a_name_of_its_own() {
        let rule = names_each_type_once;
        let (first, second) = (("src/sql/a.rs", "pub struct A;"), "src/wire/b.rs");
        assert_eq!(
            count_all(rule, &[first, (second, "pub(crate) enum A {")]),
            1
        );
        assert_eq!(
            count_all(rule, &[first, (second, "pub(super) enum A {")]),
            0
        );
        assert_eq!(count_all(rule, &[first, (second, "struct A;")]), 0);
        assert_eq!(
            count_all(rule, &[first, ("src/lab/b.rs", "pub struct A;")]),
            0
        );
        let error = "pub enum Error {";
        assert_eq!(
            count_all(rule, &[("src/sql/a.rs", error), (second, error)]),
            0
        );
    }
}
