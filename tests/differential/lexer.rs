//! The lexer against the server's own.
