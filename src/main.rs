//! The `pgautoprep` program.
fn main() {}
