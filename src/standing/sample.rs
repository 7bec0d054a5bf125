//! A session for tests.

use super::Standing;
use crate::statement::context::Origin;
use crate::statement::mirror::Capacity;
use crate::statement::shapes::Shapes;

/// A session of which nothing is known yet.
pub(super) fn session(shapes: &Shapes) -> Standing {
    let capacity = Capacity {
        statements: 8,
        bytes: 1 << 20,
    };
    let origin = Origin::new(1, b"db", b"packet");
    Standing::new(origin, capacity, shapes.tag())
}
