//! What is known of all shapes, for people.
//!
//! It is gathered on the thread of whoever wants to see it. A worker may have to wait only when it
//! is about to add a shape or a statement, and only while the entries of one part of the table are
//! counted up: what is known of each is read afterwards.

use super::Shapes;
use crate::reason::{Reason, Stay};
use crate::statement::routes::{Pair, Route};
use crate::statement::story::ToldEpisode;
use crate::statement::switches::Off;
use crate::statement::{Footprint, Plans, Recipe, Statement, Verdict};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where a shape stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShapeStage {
    /// It was met, and the server was not asked about it yet.
    Seen,
    /// The server is being asked.
    Asking,
    /// It is sent as it comes.
    Declined,
    /// It runs as a prepared statement.
    Prepared,
}

impl ShapeStage {
    /// What it is called.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Asking => "asking",
            Self::Declined => "declined",
            Self::Prepared => "prepared",
        }
    }
}

/// What is known of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeFacts {
    /// Its number, which it keeps as long as it is remembered.
    pub id: u64,
    /// Its text, with `?` for its literals.
    pub text: String,
    /// How many literals it has.
    pub literals: usize,
    /// Where it stands.
    pub stage: ShapeStage,
    /// Why it, or some of its statements, are sent as they come.
    pub reason: Option<Reason>,
    /// How often it was met by connections that did not hold a statement of it.
    pub sightings: u64,
    /// How often statements of it were looked up to be run.
    pub executions: u64,
    /// How many statements there are of it: in each context, for each value that stays inline.
    pub statements: usize,
    /// Those that may run on other sessions' server connections.
    pub travelling: usize,
    /// Why others, or the last of them, stay on the server connection of their own session.
    pub stays: Option<Stay>,
    /// Those that the server plans for their values each time.
    pub custom: usize,
    /// Those that are sent as they come because they take longer as prepared statements.
    pub slower: usize,
    /// Those that run prepared on the server connection of their own session.
    pub at_home: usize,
    /// Microseconds by either route: the medians of the statement that was run most of those of
    /// which enough was measured.
    pub times: Option<Pair>,
    /// Microseconds that were saved by the executions, each by the difference of the times that was
    /// known when it ran; negative if they were lost, `None` if nothing was measured.
    pub saved: Option<i64>,
    /// The server's memory that the largest of the statements takes on a connection, as it is
    /// estimated, in bytes.
    pub memory: usize,
    /// Where it passes through by order.
    pub off: Off,
    /// What was decided about it lately, the last first.
    pub history: Vec<ToldEpisode>,
    /// For how many executions the times are.
    timed: u32,
}

impl ShapeFacts {
    fn new(recipe: &Recipe) -> Self {
        let reason = recipe.known_judgement().and_then(Result::err);
        Self {
            id: recipe.family,
            text: recipe.shape.text_for_display(),
            literals: recipe.shape.literal_count(),
            stage: match reason {
                Some(_) => ShapeStage::Declined,
                None => ShapeStage::Seen,
            },
            reason,
            sightings: recipe.sightings.load(Ordering::Relaxed).into(),
            executions: 0,
            statements: 0,
            travelling: 0,
            stays: None,
            custom: 0,
            slower: 0,
            at_home: 0,
            times: None,
            saved: None,
            memory: 0,
            off: recipe.off.clone(),
            history: recipe.story.told(),
            timed: 0,
        }
    }

    /// The routes that its executions take now, as people are told.
    #[must_use]
    pub const fn route(&self) -> &'static str {
        match (
            matches!(self.stage, ShapeStage::Prepared),
            self.at_home > 0,
            self.travelling > 0,
            self.slower > 0,
        ) {
            (true, true, false, false) => "prepared",
            (true, false, true, false) => "shared",
            (true, true, true, false) => "prepared, shared",
            (true, true, false, true) => "prepared, passed",
            (true, false, true, true) => "shared, passed",
            (true, true, true, true) => "prepared, shared, passed",
            _ => "passed",
        }
    }

    /// As it is told: statements of a shape that was switched off are still there, unused.
    fn settled(mut self) -> Self {
        if self.off == Off::Everywhere {
            (self.stage, self.reason) = (ShapeStage::Declined, Some(Reason::SwitchedOff));
        }
        self
    }

    fn add(&mut self, statement: &Statement) {
        let executions = statement.executions();
        self.statements += 1;
        self.executions += u64::from(executions);
        let stage = match statement.verdict() {
            Verdict::Unasked | Verdict::Specific { .. } => ShapeStage::Seen,
            Verdict::Asking(_) => ShapeStage::Asking,
            Verdict::Declined { reason, .. } => {
                self.reason = Some(reason);
                ShapeStage::Declined
            }
            Verdict::Trusted { footprint, .. } => {
                self.memory = self.memory.max(statement.known_memory());
                self.custom += usize::from(statement.plans() == Plans::Custom);
                let (travels, is_slower) = (
                    footprint == Footprint::Travels,
                    statement.routes().usual() == Route::Original,
                );
                self.travelling += usize::from(travels);
                self.slower += usize::from(is_slower);
                self.at_home += usize::from(!travels && !is_slower);
                if let Footprint::Stays(stay) = footprint {
                    self.stays = Some(stay);
                }
                ShapeStage::Prepared
            }
        };
        self.stage = self.stage.max(stage);
        if let Some(saved) = statement.routes().saved(executions) {
            self.saved = Some(self.saved.unwrap_or_default().saturating_add(saved));
        }
        if let Some(times) = statement.routes().medians()
            && (self.times.is_none() || executions > self.timed)
        {
            (self.times, self.timed) = (Some(times), executions);
        }
    }
}

impl Shapes {
    /// The text of the shape of this number, with `?` for its literals.
    #[must_use]
    pub fn text(&self, id: u64) -> Option<String> {
        let is_it = |recipe: &Arc<Recipe>| recipe.family == id;
        let mut shapes = self.recipes.iter().filter(|it| is_it(it));
        let shape = shapes.next().map(|it| Arc::clone(&it.shape));
        drop(shapes);
        Some(shape?.text_for_display())
    }

    /// What is known of each shape, those first that were met most.
    #[must_use]
    pub fn overview(&self) -> Vec<ShapeFacts> {
        // Only counted up here: this holds a lock that a worker may want.
        let recipes: Vec<Arc<Recipe>> = self.recipes.iter().map(|it| Arc::clone(&it)).collect();
        let statements: Vec<Arc<Statement>> =
            self.statements.iter().map(|it| Arc::clone(&it)).collect();
        let mut all: HashMap<u64, ShapeFacts> = HashMap::with_capacity(recipes.len());
        for recipe in recipes {
            all.insert(recipe.family, ShapeFacts::new(&recipe));
        }
        for statement in statements {
            if let Some(facts) = all.get_mut(&statement.recipe().family) {
                facts.add(&statement);
            }
        }
        let mut all: Vec<_> = all.into_values().map(ShapeFacts::settled).collect();
        let key = |facts: &ShapeFacts| (facts.executions + facts.sightings, facts.id);
        all.sort_unstable_by_key(|facts| std::cmp::Reverse(key(facts)));
        all
    }
}
