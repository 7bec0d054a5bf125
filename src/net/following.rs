//! What is done when the configuration in force has changed.

use super::environment::Environment;
use super::orders::Order;
use crate::config::{Config, DatabaseMap, Destination, UserLimits};
use std::sync::Arc;

/// Has everybody do what the configuration in force says, whenever it has changed.
pub(super) async fn follow(environment: Arc<Environment>) {
    let mut current = environment.current.clone();
    let mut before = current.get();
    while let Some(config) = current.next().await {
        environment
            .shapes
            .questions()
            .limit(config.oracle_per_second);
        environment.shapes.limit(config.max_shapes);
        environment.warm.follow(&config);
        environment.ways.follow(&config.databases);
        environment.pools.follow(&environment.ways);
        environment.order_all(|| Order::Configure(Arc::clone(&config)));
        let all = vec![None];
        let is_same = before.server_tls == config.server_tls && may_all_stay(&before, &config);
        let renewed = match is_same {
            true => renewed(&before.databases, &config.databases),
            false => all,
        };
        for database in renewed {
            environment.order_all(|| Order::Reconnect(database.clone()));
        }
        before = config;
    }
}

/// Whether all connections may stay that there may have been, by a bound; zero means any.
const fn may_stay(before: usize, after: usize) -> bool {
    (before == 0) == (after == 0) && before <= after
}

/// Whether all may stay that there may have been of each user.
fn may_all_stay(before: &Config, after: &Config) -> bool {
    let users = before.users.all().chain(after.users.all());
    let of_each = users.map(|(name, _)| name.as_bytes()).all(|name| {
        let [one, other] = [before, after].map(|config| {
            let limits = config.users.find(name).copied().unwrap_or_default();
            (limits, config.bounds_of(name).of_user)
        });
        let most = |limits: UserLimits| limits.pool.unwrap_or(usize::MAX);
        one.0.gives_back == other.0.gives_back
            && one.0.pool.is_some() == other.0.pool.is_some()
            && most(one.0) <= most(other.0)
            && one.0.reserve <= other.0.reserve
            && may_stay(one.1, other.1)
    });
    of_each && may_stay(before.bounds.of_user, after.bounds.of_user)
}

/// The databases whose server connections are to be closed as they become free, because new ones
/// would be others: by their names, or all.
fn renewed(before: &DatabaseMap, after: &DatabaseMap) -> Vec<Option<Arc<str>>> {
    let is_like = |one: Option<&Arc<Destination>>, other: Option<&Arc<Destination>>| {
        let both = one.zip(other);
        // More of a pool may come while it has connections.
        let is_like = both.is_some_and(|(one, other)| {
            let (before, after) = (one.sizes, other.sizes);
            one.leads_like(other)
                && before.gives_back == after.gives_back
                && one.is_pooled() == other.is_pooled()
                && may_stay(before.most, after.most)
                && before.pool.unwrap_or(usize::MAX) <= after.pool.unwrap_or(usize::MAX)
                && before.reserve <= after.reserve
        });
        is_like || one.is_none() && other.is_none()
    };
    if !is_like(before.fallback(), after.fallback()) {
        return vec![None];
    }
    let found = |map: &DatabaseMap, name: &str| {
        let mut all = map.named();
        all.find_map(|(known, it)| (known == name).then(|| Arc::clone(it)))
    };
    let names = before.named().chain(after.named()).map(|(name, _)| name);
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let changed = |name: &&str| {
        let [before, after] = [before, after].map(|map| found(map, name));
        !is_like(before.as_ref(), after.as_ref())
    };
    let names = names.into_iter().filter(changed);
    names.map(|name| Some(name.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stay_of_whom_there_may_be_as_many_as_before() {
        let config = |users: &str| {
            let text = format!("upstream = 'h:1'\nmax_user_connections = 5\n{users}");
            Config::from_text(&text).unwrap()
        };
        let usual = config("[users.u]\npool_size = 3\n");
        for (after, expected) in [
            (
                "[users.u]\npool_size = 3\nmax_user_client_connections = 1\n",
                true,
            ),
            (
                "[users.u]\npool_size = 4\n[users.v]\nmax_user_connections = 5\n",
                true,
            ),
            (
                "[users.u]\npool_size = 3\nmax_user_connections = 4\n",
                false,
            ),
            (
                "[users.u]\npool_size = 3\nmax_user_connections = 0\n",
                false,
            ),
            (
                "[users.u]\npool_size = 3\n[users.v]\npool_size = 9\n",
                false,
            ),
            ("[users.u]\npool_size = 3\npool_mode = 'auto'\n", false),
            ("[users.u]\npool_size = 2\n", false),
            ("", false),
        ] {
            assert_eq!(may_all_stay(&usual, &config(after)), expected, "{after}");
        }
    }

    #[test]
    fn what_leads_elsewhere_is_reconnected_and_nothing_else() {
        let map = |text: &str| Config::from_text(text).unwrap().databases;
        let usual = map("[databases.a]\nupstream = 'h:1'\n[databases.b]\nupstream = 'h:1'\n");
        let names = |after: &str| {
            let names = renewed(&usual, &map(after));
            let named = names.iter().map(|name| name.as_deref().unwrap_or("*"));
            named.collect::<Vec<_>>().join(" ")
        };
        let b = "[databases.b]\nupstream = 'h:1'\n";
        for (after, expected) in [
            ("[databases.a]\nupstream = 'h:1'\n", ""),
            ("[databases.a]\nupstream = 'h:2'\n", "a"),
            (
                "[databases.a]\nupstream = 'h:1'\npool_size = 3\npool_mode = 'auto'\n",
                "a",
            ),
            ("[databases.a]\nupstream = 'h:1'\nmin_pool_size = 3\n", "a"),
            ("[databases.c]\nupstream = 'h:1'\n", "a c"),
            ("upstream = 'h:1'\n[databases.a]\n[databases.'*']\n", "*"),
        ] {
            assert_eq!(names(&format!("{after}{b}")), expected, "{after}");
        }
        // There may be more at once. Of fewer nobody knows which are to stay.
        let pooled = "[databases.a]\nupstream = 'h:1'\npool_mode = 'auto'\npool_size = 3\n";
        let other = pooled.replace('3', "4\nmin_pool_size = 2");
        assert!(renewed(&map(pooled), &map(&other)).is_empty());
        assert_eq!(renewed(&map(&other), &map(pooled)).len(), 1);
        let bounded = "[databases.a]\nupstream = 'h:1'\nmax_db_connections = 5\n";
        let sized = format!("{bounded}pool_size = 3\n");
        assert_eq!(renewed(&map(bounded), &map(&sized)).len(), 1);
        assert!(renewed(&map(&sized), &map(bounded)).is_empty());
    }
}
