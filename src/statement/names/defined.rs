//! What a definition does to the names that are known to have hazards.

use super::{Names, Others};
use crate::sql::define::{Definition, Name};
use crate::sql::hazard::Hazards;
use crate::sql::survey::Known as _;
use crate::sql::touched::Touched;
use foldhash::fast::RandomState;
use std::collections::HashSet;

/// What a definition does to what is known of names.
#[derive(Debug)]
pub enum Defined {
    /// No name gets a hazard that it has not had.
    Same,
    /// Some names get hazards.
    More {
        /// The names now.
        names: Names,
        /// Whether others get any than what was defined.
        beyond: bool,
    },
    /// Some names get hazards, and it is not known what uses them.
    Lost,
}

/// The most names with hazards that are copied to add a few.
const MAX_COPIED: usize = 4096;
/// The most names to which one definition adds hazards.
const MAX_ADDED: usize = 256;

impl Names {
    /// What `definition` does to these names. `others` are definitions that are not in the catalog
    /// that the names follow from.
    #[must_use]
    pub fn define(&self, definition: &Definition, others: Others<'_>) -> Defined {
        let hazards = self.hazards_of(definition);
        if hazards.is_none() {
            return Defined::Same;
        }
        let Some(of) = &definition.of else {
            return Defined::Lost;
        };
        let inherited = hazards.without(Hazards::OF_PARENTS);
        let children = match inherited.is_none() {
            true => Some(HashSet::default()),
            false => self.family(of, others),
        };
        let Some(children) = children else {
            return Defined::Lost;
        };
        let children = children.into_iter().map(|name| (name, inherited));
        let own = of.iter().map(|name| (name.clone(), hazards));
        let all: Vec<_> = own.chain(children).collect();
        if all
            .iter()
            .all(|(name, hazards)| hazards.without(self.of(name)).is_none())
        {
            return Defined::Same;
        }
        match self.with(all, (of, others)) {
            Some((names, beyond)) => Defined::More { names, beyond },
            None => Defined::Lost,
        }
    }

    /// The names `of` with those of all their partitions and children, which may take on what is
    /// defined for a parent. `None` if it is not known which these are.
    fn family(&self, of: &[Name], others: Others<'_>) -> Option<HashSet<Name, RandomState>> {
        let mut all = HashSet::<Name, RandomState>::default();
        let mut next = of.to_vec();
        while let Some(name) = next.pop() {
            if all.contains(&name) {
                continue;
            }
            if self.of(&name).has(Hazards::PARTITIONED) {
                next.extend(self.used.children(&name)?.cloned());
                for other in others
                    .mentioning(&name)
                    .filter(|other| other.is_family(&name))
                {
                    next.extend(other.of.as_ref()?.iter().cloned());
                }
            }
            all.insert(name);
            if all.len() > MAX_ADDED || next.len() > MAX_COPIED {
                return None;
            }
        }
        Some(all)
    }

    /// These names with more hazards for some, and for all that use them, and whether the latter
    /// are others than were defined; `None` if it is not known what uses them.
    fn with(
        &self,
        all: Vec<(Name, Hazards)>,
        (of, others): (&[Name], Others<'_>),
    ) -> Option<(Self, bool)> {
        if self.hazards.len() > MAX_COPIED {
            return None;
        }
        let mut names = self.clone();
        let (mut next, mut added, mut beyond) = (all, 0, false);
        while let Some((name, hazards)) = next.pop() {
            if hazards.without(names.of(&name)).is_none() {
                continue;
            }
            added += 1;
            beyond |= !of.contains(&name);
            if added > MAX_ADDED || next.len() > MAX_COPIED {
                return None;
            }
            // What uses it may be a function that the planner runs.
            let passed_on = match hazards.has(Hazards::OF_RUNS) {
                true => hazards | Hazards::PLANS,
                false => hazards,
            };
            let users = self.used.of(&name)?;
            next.extend(users.map(|user| (user.clone(), passed_on)));
            for other in others.mentioning(&name).filter(|other| other.uses(&name)) {
                let of = other.of.as_ref()?.iter();
                next.extend(of.map(|user| (user.clone(), passed_on)));
            }
            names.any |= hazards;
            *names.hazards.entry(name).or_default() |= hazards;
        }
        Some((names, beyond))
    }

    /// What is touched, with the names of all partitions and users if these are: everything if it
    /// is not known which they are. `others` was defined since.
    #[must_use]
    pub fn resolved(&self, touched: &Touched, others: Others<'_>) -> Touched {
        let names = match touched {
            Touched::Names(_) | Touched::Refused => return touched.clone(),
            Touched::Unsaid | Touched::Everything => None,
            Touched::Families(of) => self.family(of, others).map(|all| all.into_iter().collect()),
            Touched::Users(of) => self.users(of, others),
        };
        names.map_or(Touched::Everything, Touched::names)
    }

    /// These names with those of their partitions and children, and of all that uses one of them;
    /// `None` if it is not known what does.
    #[must_use]
    pub fn users(&self, of: &[Name], others: Others<'_>) -> Option<Vec<Name>> {
        let mut all = HashSet::<Name, RandomState>::default();
        let mut next: Vec<Name> = self.family(of, others)?.into_iter().collect();
        while let Some(name) = next.pop() {
            if all.contains(&name) {
                continue;
            }
            next.extend(self.used.of(&name)?.cloned());
            for other in others.mentioning(&name).filter(|other| other.uses(&name)) {
                next.extend(other.of.as_ref()?.iter().cloned());
            }
            all.insert(name);
            if all.len() > MAX_ADDED || next.len() > MAX_COPIED {
                return None;
            }
        }
        Some(all.into_iter().collect())
    }

    /// Whether what has one of these names may be a view of relations of users'.
    #[must_use]
    pub fn read(&self, of: &[Name], others: Others<'_>) -> bool {
        let reads = |name: &Name| self.used.reads(name) || others.make(name);
        of.iter().any(reads)
    }

    /// The hazards of the object that `definition` defines.
    #[must_use]
    pub fn hazards_of(&self, definition: &Definition) -> Hazards {
        let mentioned = definition.mentions.iter().map(|name| self.of(name));
        let mut hazards = mentioned.fold(definition.hazards, |all, one| all | one);
        if definition
            .mentions
            .iter()
            .any(|name| self.volatile.contains(name))
        {
            hazards |= Hazards::NOISY;
        }
        if definition.by_writing {
            hazards = hazards.without(Hazards::NOISY);
        }
        if definition.is_planned && hazards.has(Hazards::OF_RUNS) {
            hazards |= Hazards::PLANS;
        }
        hazards
    }
}
