//! What subscriptions are made of: triple patterns, filters of one variable, branches.
//!
//! Every solution of a query satisfies all patterns and filters of one of its branches. Everything
//! here is about term ids; constants are those of the query after root terms were put in.

use crate::dictionary::Id;
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check, damaged, stored};
use std::cmp::Ordering;

/// A place of a triple pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// A term.
    Constant(Id),
    /// A variable, by its number in the branch, counted from 0 in order of first occurrence.
    Variable(u16),
}

/// Subject, predicate, object.
pub type Pattern = [Node; 3];

/// SPARQL's comparisons by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    const ALL: [Self; 6] = [
        Self::Equal,
        Self::Unequal,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
    ];

    /// A number for it, above 0.
    pub fn code(self) -> u16 {
        self as u16 + 1
    }

    /// The one of a number.
    #[inline]
    pub fn of_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code).wrapping_sub(1)).copied()
    }

    /// The one that a query writes so.
    pub fn of_sign(sign: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| operator.sign() == sign)
    }

    /// Whether it is true of two values in an order.
    pub fn is_met(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }

    /// As a query writes it.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// Which text of a term a test looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// That of a string literal, whose language counts.
    Term,
    /// `STR`: the lexical form of a literal, the IRI of an IRI.
    Str,
    /// `LANG`: the language tag of a literal.
    Lang,
}

/// What is done with the case of a text before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Folding {
    /// Nothing.
    None,
    /// `LCASE`
    Lower,
    /// `UCASE`
    Upper,
    /// As regular expressions with the flag `i` compare ASCII letters.
    Caseless,
}

/// How a text is compared with a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextOperator {
    /// `CONTAINS`
    Contains,
    /// `STRSTARTS`
    Starts,
    /// `STRENDS`
    Ends,
    /// `=` of texts, by term: text and language are the same.
    Equals,
    /// `LANGMATCHES`
    Matches,
}

/// G-ToPSS's is-a operators (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaxonomyOperator {
    /// `gm:descendantOf`
    Descendant,
    /// `gm:ancestorOf`
    Ancestor,
    /// `gm:childOf`
    Child,
}

/// A test of one variable. `C` is how a constant is said: [`Id`], or the number of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Filter<C = Id> {
    /// `?v < constant`, by value; a type error is not true.
    Compare {
        /// The comparison, with the variable on its left.
        operator: Comparison,
        /// The constant on its right.
        constant: C,
    },
    /// `CONTAINS(LCASE(STR(?v)), "text")` and its kin.
    Text {
        /// How the texts are compared.
        operator: TextOperator,
        /// Which text of the variable's term.
        view: View,
        /// What is done with its case.
        folding: Folding,
        /// The constant: a string literal, with a language tag or without, folded already.
        argument: C,
    },
    /// `gm:descendantOf(?v, concept)` and its kin.
    Taxonomy {
        /// The operator.
        operator: TaxonomyOperator,
        /// The concept.
        concept: C,
    },
    /// At least one of these holds: `||`, or `IN`. Never nested; empty is false.
    Any(Box<[Filter<C>]>),
}

/// A filter and the variable that it tests, by its number in the branch.
pub type Tested<C = Id> = (u16, Filter<C>);

/// A basic graph pattern with filters: one way for a query to have a solution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The triple patterns, distinct, in the order of the query.
    pub patterns: Vec<Pattern>,
    /// Tests of variables that occur in the patterns.
    pub filters: Vec<Tested>,
    /// How many variables there are.
    pub variables: u16,
}

stored!(
    enum Comparison {
        Equal,
        Unequal,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual,
    }
);
stored!(
    enum View {
        Term,
        Str,
        Lang,
    }
);
stored!(
    enum Folding {
        None,
        Lower,
        Upper,
        Caseless,
    }
);
stored!(
    enum TextOperator {
        Contains,
        Starts,
        Ends,
        Equals,
        Matches,
    }
);
stored!(
    enum TaxonomyOperator {
        Descendant,
        Ancestor,
        Child,
    }
);
stored!(Branch { patterns, filters, variables });

impl Branch {
    /// Tells its constants.
    pub fn each_constant(&self, tell: &mut impl FnMut(Id)) {
        for node in self.patterns.iter().flatten() {
            if let Node::Constant(id) = node {
                tell(*id);
            }
        }
        self.filters.iter().for_each(|(_, filter)| filter.each_constant(tell));
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::Variable(0)
    }
}

/// Mostly small numbers, of variables or of a template's constants: a byte each.
impl Stored for Node {
    fn save(&self, to: &mut Saver) {
        match *self {
            Self::Constant(id) => (id as usize) << 1,
            Self::Variable(number) => usize::from(number) << 1 | 1,
        }
        .save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let number = usize::load(from)?;
        let (rest, is_variable) = (number >> 1, number & 1 == 1);
        let fits =
            if is_variable { u16::try_from(rest).is_ok() } else { u32::try_from(rest).is_ok() };
        check(fits, "a place of a pattern")?;
        Ok(if is_variable { Self::Variable(rest as u16) } else { Self::Constant(rest as Id) })
    }
}

impl Stored for Filter {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Compare { operator, constant } => (0_u8, *operator, *constant).save(to),
            Self::Text { operator, view, folding, argument } => {
                (1_u8, *operator, *view).save(to);
                (*folding, *argument).save(to);
            }
            Self::Taxonomy { operator, concept } => (2_u8, *operator, *concept).save(to),
            Self::Any(filters) => {
                3_u8.save(to);
                filters.save(to);
            }
        }
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        match u8::load(from)? {
            3 => {
                let count = usize::load(from)?;
                let mut filters = Vec::new();
                for _ in 0..count {
                    let kind = u8::load(from)?;
                    filters.push(Self::load_simple(kind, from)?);
                }
                Ok(Self::Any(filters.into()))
            }
            kind => Self::load_simple(kind, from),
        }
    }
}

impl Filter {
    /// Tells its constants.
    pub fn each_constant(&self, tell: &mut impl FnMut(Id)) {
        match self {
            Self::Compare { constant: id, .. }
            | Self::Text { argument: id, .. }
            | Self::Taxonomy { concept: id, .. } => tell(*id),
            Self::Any(filters) => filters.iter().for_each(|filter| filter.each_constant(tell)),
        }
    }

    /// Reads a filter that is no disjunction.
    fn load_simple(kind: u8, from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok(match kind {
            0 => Self::Compare { operator: Stored::load(from)?, constant: Stored::load(from)? },
            1 => Self::Text {
                operator: Stored::load(from)?,
                view: Stored::load(from)?,
                folding: Stored::load(from)?,
                argument: Stored::load(from)?,
            },
            2 => Self::Taxonomy { operator: Stored::load(from)?, concept: Stored::load(from)? },
            _ => return damaged("a filter that there is not"),
        })
    }
}
