//! What a query may do to the session or the catalogs, as [`super::survey`] finds it in the text.

/// What a query may do, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Nothing that a prepared statement could notice.
    #[default]
    None,
    /// Begins, ends or marks a transaction.
    Transaction,
    /// Makes a transaction serializable.
    Isolation,
    /// Changes settings of the session or drops its statements.
    Session,
    /// Creates a temporary object.
    LocalCatalog,
    /// Anything this session may do to itself: what is not understood, or runs what is not. What it
    /// may do to others is theirs to notice, as if it had been done past the proxy.
    Unknown,
    /// Changes a catalog that others see.
    Catalog,
}
