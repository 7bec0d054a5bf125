//! Where a session is among its contexts: what is known of one, and the steps taken since.
//!
//! A step is a text that changes a setting. What a setting becomes depends on that text and on what
//! neither changes within a connection nor goes unseen: the value it is reset to, the catalog. So
//! sessions that took the same steps from the same context are in the same one. And a step that a
//! later one undoes is not kept: whoever goes from tenant to tenant is one step away from where it
//! began, and learns as many ways as there are tenants.

use super::ServerSettings;
use crate::statement::Context;
use std::sync::Arc;

/// What is known of a session in one context.
#[derive(Debug)]
pub(super) struct Known {
    /// The context.
    pub context: Context,
    /// What the settings mean to us.
    pub settings: ServerSettings,
    /// What the settings of extensions begin with that the server has loaded, with commas.
    pub extensions: Arc<str>,
    /// The session listens for changes of the catalog.
    pub listens: bool,
    /// The count of [`Database::contexts`](crate::statement::database::Database::contexts) when it
    /// was asked for.
    pub(super) count: u64,
    /// What the server has reported in it.
    pub(super) reports: Box<[u8]>,
}

impl Known {
    /// Whether the server shows settings that begin with this word.
    pub(super) fn has_extension(&self, first: &[u8]) -> bool {
        let mut known = self.extensions.split(',');
        known.any(|known| first.eq_ignore_ascii_case(known.as_bytes()))
    }
}

/// The most steps that are remembered, and their bytes together.
const MAX_STEPS: usize = 16;
const MAX_BYTES: usize = 2048;

/// Stands for the names of all settings.
const ALL: &[u8] = b"*";

#[derive(Debug, Clone)]
struct Step {
    name: Box<[u8]>,
    to: Box<[u8]>,
}

/// A context that is known, and the steps taken since.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) from: Arc<Known>,
    steps: Arc<Vec<Step>>,
    arrived: Option<Arc<Known>>,
}

impl Place {
    /// In a context that was asked for.
    pub(super) fn at(known: Arc<Known>) -> Self {
        Self {
            arrived: Some(Arc::clone(&known)),
            from: known,
            steps: Arc::default(),
        }
    }

    /// What is known of the context here.
    pub(super) const fn known(&self) -> Option<&Arc<Known>> {
        self.arrived.as_ref()
    }

    /// The context here turns out to be this one.
    pub(super) fn arrive(&mut self, known: Arc<Known>) {
        if known.context == self.from.context {
            self.steps = Arc::default();
        }
        self.arrived = Some(known);
    }

    /// Takes a step. Returns false if there is no room for it.
    pub(super) fn step(&mut self, name: &[u8], to: &[u8]) -> bool {
        let is_identity = |name: &[u8]| matches!(name, b"role" | b"session_authorization");
        let steps = Arc::make_mut(&mut self.steps);
        // A date style is changed in part. Who the session is comes in two parts, of which the one
        // changes the other.
        let is_whole = match name {
            b"datestyle" | b"session_authorization" => false,
            b"role" => !steps
                .iter()
                .any(|step| &*step.name == b"session_authorization"),
            ALL => !steps.iter().any(|step| is_identity(&step.name)),
            _ => !name.contains(&b'.'),
        };
        if is_whole {
            steps.retain(|step| name != ALL && *step.name != *name);
        }
        self.push(name, to)
    }

    /// RESET ALL.
    pub(super) fn reset_all(&mut self) -> bool {
        self.step(ALL, b"r")
    }

    /// DISCARD ALL: nothing is left of any step.
    pub(super) fn discard_all(&mut self) -> bool {
        self.steps = Arc::default();
        self.push(ALL, b"d")
    }

    fn push(&mut self, name: &[u8], to: &[u8]) -> bool {
        let arrived = self.arrived.take();
        let bytes = |steps: &[Step]| -> usize {
            let sizes = steps.iter().map(|step| step.name.len() + step.to.len());
            sizes.sum()
        };
        if self.steps.len() >= MAX_STEPS || bytes(&self.steps) + name.len() + to.len() > MAX_BYTES {
            let Some(arrived) = arrived else {
                return false;
            };
            self.from = arrived;
            self.steps = Arc::default();
        }
        Arc::make_mut(&mut self.steps).push(Step {
            name: name.into(),
            to: to.into(),
        });
        true
    }

    /// Under what the place is found: equal bytes mean equal places, as long as the count of
    /// contexts stays.
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = self.from.context.number().to_be_bytes().to_vec();
        for step in &*self.steps {
            for part in [&step.name, &step.to] {
                key.extend((part.len() as u32).to_be_bytes());
                key.extend_from_slice(part);
            }
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A place this many contexts from the beginning, with these steps taken.
    fn place(steps: &[(&str, &str)]) -> Place {
        let known = Known {
            context: crate::statement::shapes::Shapes::new(1, 1, 1)
                .contexts()
                .intern(&crate::statement::context::Origin::new(1, b"", b""), "")
                .context(),
            settings: ServerSettings::default(),
            extensions: "plpgsql,Mine".into(),
            listens: false,
            count: 0,
            reports: Box::default(),
        };
        let mut place = Place::at(Arc::new(known));
        for (name, to) in steps {
            assert!(place.step(name.as_bytes(), to.as_bytes()));
        }
        place
    }

    #[test]
    fn a_step_that_a_later_one_undoes_makes_no_difference() {
        let same =
            |one: &[(&str, &str)], other: &[(&str, &str)]| place(one).key() == place(other).key();
        assert!(same(
            &[("x", "1"), ("y", "2"), ("x", "3")],
            &[("y", "2"), ("x", "3")]
        ));
        assert!(same(
            &[("x", "1"), ("role", "a"), ("role", "b")],
            &[("x", "1"), ("role", "b")]
        ));
        assert!(same(&[("x", "1"), ("*", "r")], &[("*", "r")]));
        assert!(!same(&[("x", "1"), ("y", "2")], &[("y", "2"), ("x", "1")]));
        assert!(!same(&[("x", "12")], &[("x1", "2")]));
        // A part of it stays, or it changes another.
        for steps in [
            [("datestyle", "SQL"), ("datestyle", "DMY")],
            [
                ("session_authorization", "a"),
                ("session_authorization", "b"),
            ],
            [("my.x", "1"), ("my.x", "2")],
            [("role", "a"), ("*", "r")],
        ] {
            assert!(!same(&steps, &steps[1..]), "{steps:?}");
        }
        let roles = [("role", "a"), ("session_authorization", "b"), ("role", "c")];
        assert!(!same(&roles, &roles[1..]));
        let mut discarded = place(&roles);
        assert!(discarded.discard_all());
        assert_eq!(discarded.key(), place(&[("*", "d")]).key());
    }

    #[test]
    fn steps_are_bounded_and_begin_anew_where_the_session_is_known() {
        let names: Vec<String> = (0..=MAX_STEPS).map(|number| format!("x{number}")).collect();
        let mut far = place(&[]);
        for name in &names[..MAX_STEPS] {
            assert!(far.step(name.as_bytes(), b"1"));
        }
        let mut lost = far.clone();
        assert!(!lost.step(names[MAX_STEPS].as_bytes(), b"1"));
        far.arrived = Some(Arc::clone(&far.from));
        assert!(far.step(names[MAX_STEPS].as_bytes(), b"1"));
        assert_eq!(far.key(), place(&[(&names[MAX_STEPS], "1")]).key());
        let known = &far.from;
        assert!(known.has_extension(b"mine") && !known.has_extension(b"min"));
    }
}
