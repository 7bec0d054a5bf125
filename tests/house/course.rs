//! A setting of the model's, on which depends what its statements say: by its value when they were
//! parsed, as the names in a text mean what the search path said then.

/// What a savepoint leads back to; the first of a transaction is its start.
#[derive(Debug, Clone)]
struct Mark {
    name: String,
    state: State,
    undo: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    session: usize,
    local: Option<usize>,
}

/// The setting `x`, and how its transaction has come to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Course {
    state: State,
    marks: Vec<Mark>,
}

/// The value that `x` cannot have.
const WRONG: usize = 9;

impl Course {
    /// The value.
    pub(crate) fn x(&self) -> usize {
        self.state.local.unwrap_or(self.state.session)
    }

    /// A transaction begins.
    pub(crate) fn begin(&mut self) {
        self.marks.clear();
        self.savepoint("", 0);
    }

    /// A transaction ends, and stays.
    pub(crate) fn commit(&mut self) {
        self.state.local = None;
        self.marks.clear();
    }

    /// A transaction ends as if it had never been.
    pub(crate) fn rollback(&mut self) {
        if let Some(start) = self.marks.first() {
            self.state = start.state;
        }
        self.marks.clear();
    }

    /// A savepoint, with so many writes before it.
    pub(crate) fn savepoint(&mut self, name: &str, undo: usize) {
        self.marks.push(Mark {
            name: name.to_owned(),
            state: self.state,
            undo,
        });
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.marks.iter().rposition(|mark| mark.name == name)
    }

    /// Back to a savepoint; how many writes there were before it, if there is one.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Option<usize> {
        let at = self.find(name)?;
        self.marks.truncate(at + 1);
        self.state = self.marks[at].state;
        Some(self.marks[at].undo)
    }

    /// A savepoint and all behind it are there no more.
    pub(crate) fn release(&mut self, name: &str) -> Option<()> {
        let at = self.find(name)?;
        self.marks.truncate(at);
        Some(())
    }

    /// Sets `x`, if it can be that.
    pub(crate) fn set(&mut self, to: usize, is_local: bool) -> Option<()> {
        if to == WRONG {
            return None;
        }
        match is_local {
            true => self.state.local = Some(to),
            false => {
                self.state = State {
                    session: to,
                    local: None,
                }
            }
        }
        Some(())
    }
}
