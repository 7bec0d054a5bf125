//! What is known of all shapes, for people.
//!
//! It is gathered on the thread of whoever wants to see it. A worker may have to wait only when it
//! is about to add a shape or a statement, and only while the entries of one part of the table are
//! counted up: what is known of each is read afterwards.

use super::Shapes;
use crate::reason::{Reason, Stay};
use crate::sql::stays::{Blame, InlineCause};
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

/// What is known of one literal of a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiteralFacts {
    /// Where it stands in the shape's text.
    pub at: usize,
    /// The number of the parameter that it becomes, from one on, if it becomes one.
    pub parameter: Option<usize>,
    /// Why it stays in the text, if that was found out.
    pub stays: Option<InlineCause>,
    /// It has had several values, as far as that was looked at.
    pub varied: bool,
}

/// What is known of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeFacts {
    /// Its number, which it keeps as long as it is remembered.
    pub id: u64,
    /// Its text, with `?` for its literals.
    pub text: String,
    /// A text like those of clients, with values that nobody has sent.
    pub sample: String,
    /// Its literals.
    pub literals: Vec<LiteralFacts>,
    /// Where it stands.
    pub stage: ShapeStage,
    /// Why it, or some of its statements, are sent as they come.
    pub reason: Option<Reason>,
    /// What of it is to blame for that, as far as it is about a part.
    pub blame: Blame,
    /// Its texts are sent as they come that have further values of literals that stay in the text.
    pub is_full: bool,
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

/// What is known of the literals of this recipe, which stand at these places.
fn literals(recipe: &Recipe, places: &[usize]) -> Vec<LiteralFacts> {
    let lifted = recipe.eligible().map(|eligible| &*eligible.arguments);
    let lifted = lifted.unwrap_or_default();
    let causes = recipe.stays().map(|stays| &*stays.causes);
    let (causes, varied) = (causes.unwrap_or_default(), recipe.varied());
    let mut parameters = 0;
    let fact = |(index, at): (usize, &usize)| {
        let is_lifted = lifted.get(index).is_some_and(|lifted| *lifted);
        parameters += usize::from(is_lifted);
        LiteralFacts {
            at: *at,
            parameter: is_lifted.then_some(parameters),
            stays: causes.get(index).copied().flatten(),
            varied: varied.get(index).is_some_and(|varied| *varied),
        }
    };
    places.iter().enumerate().map(fact).collect()
}

impl ShapeFacts {
    fn new(recipe: &Recipe) -> Self {
        let reason = recipe.known_judgement().and_then(Result::err);
        let (text, places) = recipe.shape.shown();
        Self {
            id: recipe.family,
            text,
            sample: recipe.shape.sample(),
            literals: literals(recipe, &places),
            blame: recipe.stays().map(|stays| stays.blame).unwrap_or_default(),
            is_full: recipe.has_all_variants(),
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
            Verdict::Declined { reason, blame, .. } => {
                (self.reason, self.blame) = (Some(reason), blame);
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
