//! The committed table: counts by path, and what they depend on.

use std::error::Error;
use std::fmt::Write as _;
use std::process::Command;

/// Where it is.
pub(crate) const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/table.md");

const HEAD: &str = "\
# Instructions per query

Written by `cargo bench --bench instructions -- --save`; what is counted is said in `main.rs`.

";

/// What the line with the compiler and the processor begins with.
const PLACE: &str = "Counted with ";

/// The counts of one path.
#[derive(Debug)]
pub(crate) struct Row {
    /// The path.
    pub(crate) name: String,
    /// From the client's bytes to the server's.
    pub(crate) query: u64,
    /// From the server's bytes to the client's.
    pub(crate) reply: u64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Table {
    /// The compiler and the processor.
    pub(crate) place: String,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// A table made here.
    pub(crate) fn here(rows: Vec<Row>) -> Result<Self, Box<dyn Error>> {
        let place = place()?;
        Ok(Self { place, rows })
    }

    /// The committed table.
    pub(crate) fn read() -> Result<Self, Box<dyn Error>> {
        let text = std::fs::read_to_string(FILE)?;
        let mut places = text.lines().filter_map(|line| line.strip_prefix(PLACE));
        let place = places.next().unwrap_or_default().trim_end_matches('.');
        Ok(Self {
            place: place.to_owned(),
            rows: text.lines().filter_map(row).collect(),
        })
    }

    /// Makes this the committed table.
    pub(crate) fn write(&self) -> Result<(), Box<dyn Error>> {
        let mut text = format!("{HEAD}{PLACE}{}.\n\n", self.place);
        text += "| path | query | reply |\n|---|---|---|\n";
        for Row { name, query, reply } in &self.rows {
            writeln!(text, "| {name} | {query} | {reply} |")?;
        }
        Ok(std::fs::write(FILE, text)?)
    }
}

/// A line of the table; `None` for its head and for other text.
fn row(line: &str) -> Option<Row> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    Some(Row {
        name: cells.next()?.to_owned(),
        query: cells.next()?.parse().ok()?,
        reply: cells.next()?.parse().ok()?,
    })
}

/// What the counts depend on beside the code.
pub(crate) fn place() -> Result<String, Box<dyn Error>> {
    let output = Command::new("rustc").arg("--version").output()?;
    let version = String::from_utf8(output.stdout)?;
    // "rustc 1.90.0 (1159e78c4 2025-09-14)"
    let version = version.split(" (").next().unwrap_or_default().trim();
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    Ok(format!("{version} on {arch} {os}{}", vectors()))
}

/// The widest vectors that `memchr` looks for when the program runs.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return " with AVX2";
    }
    ""
}
