//! Command tags: what ran, whoever has sent or prepared it (`cmdtaglist.h`).

use super::effect::Effect;

/// Whether a statement with this command tag may change who is a member of which role, or what a
/// role may do everywhere: that is the cluster's, and the server's cached plans do not hear of it.
#[must_use]
pub fn is_about_roles(tag: &[u8]) -> bool {
    const TAGS: [&[u8]; 9] = [
        b"GRANT",
        b"REVOKE",
        b"GRANT ROLE",
        b"REVOKE ROLE",
        b"CREATE ROLE",
        b"ALTER ROLE",
        b"DROP ROLE",
        b"DROP OWNED",
        b"REASSIGN OWNED",
    ];
    TAGS.contains(&tag)
}

/// The effect of a statement by the command tag of `cmdtaglist.h` it completed with. Tags of
/// statements that leave settings and catalogs alone are listed; everything else counts.
#[must_use]
pub fn effect(tag: &[u8]) -> Effect {
    const HARMLESS: [&[u8]; 32] = [
        b"SELECT",
        b"INSERT",
        b"UPDATE",
        b"DELETE",
        b"MERGE",
        b"FETCH",
        b"MOVE",
        b"COPY",
        b"BEGIN",
        b"COMMIT",
        b"ROLLBACK",
        b"START",
        b"SAVEPOINT",
        b"RELEASE",
        b"PREPARE",
        b"LISTEN",
        b"UNLISTEN",
        b"NOTIFY",
        b"SHOW",
        b"EXPLAIN",
        b"DECLARE",
        b"CLOSE",
        b"LOCK",
        b"VACUUM",
        b"ANALYZE",
        b"CHECKPOINT",
        b"SET",
        b"RESET",
        b"DEALLOCATE",
        b"DISCARD",
        b"TRUNCATE",
        // Taken for anything by its text.
        b"LOAD",
    ];
    match tag {
        b"DO" | b"CALL" => return Effect::Unknown,
        b"COMMIT PREPARED" => return Effect::Catalog,
        b"DISCARD TEMP" => return Effect::LocalCatalog,
        _ => {}
    }
    let end = tag.iter().position(|byte| *byte == b' ');
    let word = tag.get(..end.unwrap_or(tag.len())).unwrap_or_default();
    if HARMLESS.contains(&word) {
        Effect::None
    } else {
        Effect::Catalog
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_tell_effects() {
        assert_eq!(effect(b"INSERT 0 1"), Effect::None);
        assert_eq!(effect(b"CREATE TABLE"), Effect::Catalog);
        assert_eq!(effect(b"DROP FUNCTION"), Effect::Catalog);
        assert_eq!(effect(b"TRUNCATE TABLE"), Effect::None);
        assert_eq!(effect(b"DO"), Effect::Unknown);
        assert_eq!(effect(b"COMMIT"), Effect::None);
        assert_eq!(effect(b"COMMIT PREPARED"), Effect::Catalog);
    }
}
