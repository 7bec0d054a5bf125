//! Says what a long command is doing: one line that is rewritten, or plain lines where nobody
//! looks.

use std::io::{self, IsTerminal, Write};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// On a terminal: one line, rewritten.
    Rewrite,
    /// Into a file or pipe: a line for each step worth keeping.
    Lines,
    /// Not at all.
    Quiet,
}

impl Style {
    /// What suits standard output.
    pub(crate) fn of_stdout(quiet: bool) -> Self {
        match (quiet, io::stdout().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Rewrite,
            (false, false) => Self::Lines,
        }
    }
}

/// Longer status lines would wrap and could not be rewritten.
const WIDTH: usize = 79;

/// Where progress goes.
pub(crate) struct Progress<'a> {
    out: &'a mut dyn Write,
    style: Style,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, style: Style) -> Self {
        Self { out, style }
    }

    /// A step that takes long enough to be worth a line anywhere.
    pub(crate) fn step(&mut self, text: &str) -> io::Result<()> {
        match self.style {
            Style::Lines => writeln!(self.out, "{text}"),
            Style::Rewrite => self.rewrite(text),
            Style::Quiet => Ok(()),
        }
    }

    /// A small step, worth showing only where the next one replaces it.
    pub(crate) fn detail(&mut self, text: &str) -> io::Result<()> {
        match self.style {
            Style::Rewrite => self.rewrite(text),
            Style::Lines | Style::Quiet => Ok(()),
        }
    }

    /// Removes the status line and gives the output back.
    pub(crate) fn finish(self) -> io::Result<&'a mut dyn Write> {
        if self.style == Style::Rewrite {
            write!(self.out, "\r\x1b[K")?;
        }
        Ok(self.out)
    }

    fn rewrite(&mut self, text: &str) -> io::Result<()> {
        let text: String = text.chars().take(WIDTH).collect();
        write!(self.out, "\r\x1b[K{text}")?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(style: Style) -> String {
        let mut out = Vec::new();
        let mut progress = Progress::new(&mut out, style);
        progress.step("one").unwrap();
        progress.detail("two").unwrap();
        progress.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_style_shows_what_it_should() {
        assert_eq!(shown(Style::Quiet), "");
        assert_eq!(shown(Style::Lines), "one\n");
        assert_eq!(shown(Style::Rewrite), "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K");
    }
}
