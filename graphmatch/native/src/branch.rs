//! Branches: the triple patterns and filters of one disjunct of a query.
//!
//! Every solution of a query satisfies all patterns and filters of one of its branches. Constants
//! are term ids, after root terms replaced synonyms.

use crate::dictionary::Id;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A place of a triple pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Node {
    Constant(Id),
    /// A variable, numbered from 0 in order of first occurrence in the branch.
    Variable(u16),
}

/// Subject, predicate, object.
pub type Pattern = [Node; 3];

/// Defines an enumeration whose variants have names in SPARQL.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name in SPARQL.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the variant with a name.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

named!(
    /// The comparisons of SPARQL, by value.
    Comparison {
        Equal = "=",
        Unequal = "!=",
        Less = "<",
        LessOrEqual = "<=",
        Greater = ">",
        GreaterOrEqual = ">=",
    }
);

named!(
    /// The string that a filter tests.
    TermPart {
        /// The string literal itself; its language counts.
        Term = "",
        /// The lexical form of a literal, or the IRI.
        Str = "STR",
        /// The language tag of a literal.
        Lang = "LANG",
    }
);

named!(
    /// The case folding before a test.
    Folding {
        None = "",
        Lower = "LCASE",
        Upper = "UCASE",
        /// ASCII letters as in regular expressions with the flag `i`.
        Caseless = "caseless",
    }
);

named!(
    /// The operator of a string test.
    TextOperator {
        Contains = "CONTAINS",
        Starts = "STRSTARTS",
        Ends = "STRENDS",
        /// The same string and language.
        Equals = "=",
        /// The language tag is in a language range.
        Matches = "LANGMATCHES",
    }
);

/// The namespace of graphmatch's own functions.
pub const GM: &str = "urn:graphmatch:";

named!(
    /// The taxonomy operators of G-ToPSS (section 3.2), named in the namespace [`GM`].
    TaxonomyOperator {
        /// The concept or one below it.
        Descendant = "descendantOf",
        /// The concept or one above it.
        Ancestor = "ancestorOf",
        /// A direct child of the concept.
        Child = "childOf",
    }
);

impl TaxonomyOperator {
    /// Returns the operator of a function.
    pub fn of_iri(iri: &str) -> Option<Self> {
        Self::of_name(iri.strip_prefix(GM)?)
    }
}

impl Comparison {
    /// Returns a number above 0 for storage.
    pub fn code(self) -> u16 {
        self as u16 + 1
    }

    /// Returns the comparison of a stored number.
    pub fn of_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code).wrapping_sub(1)).copied()
    }

    /// Returns true if two values in this order satisfy the comparison.
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
}

/// A test of one variable. `C` is a constant's [`Id`] or the number of its slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Filter<C = Id> {
    /// `?v < constant`, by value. A type error is false.
    Compare { operator: Comparison, constant: C },
    /// A string test such as `CONTAINS(LCASE(STR(?v)), "text")`.
    Text {
        operator: TextOperator,
        view: TermPart,
        folding: Folding,
        /// A folded string literal, with or without a language tag.
        argument: C,
    },
    /// A taxonomy test such as `gm:descendantOf(?v, concept)`.
    Taxonomy { operator: TaxonomyOperator, concept: C },
    /// A disjunction by `||` or `IN`. It is never nested; an empty one is false.
    Any(Box<[Filter<C>]>),
}

/// A filter with the number of its variable.
pub type Tested<C = Id> = (u16, Filter<C>);

/// The patterns and filters of one disjunct of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Branch {
    /// Distinct triple patterns in the order of the query.
    pub patterns: Vec<Pattern>,
    /// Filters of variables that occur in the patterns.
    pub filters: Vec<Tested>,
    /// Number of variables.
    pub variables: u16,
}

/// A constant of a filter before constants are put in, by its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Slot {
    /// The constant itself.
    Constant(u32),
    /// The constant in upper or lower case.
    Folded(u32, Folding),
    /// One of several strings of which every match of a regular expression contains one.
    Regex {
        /// The regular expression.
        pattern: u32,
        /// The flags of the expression.
        flags: Option<u32>,
    },
}

impl Branch {
    /// Calls `tell` with each constant.
    pub fn each_constant(&self, tell: &mut impl FnMut(Id)) {
        for node in self.patterns.iter().flatten() {
            if let Node::Constant(id) = node {
                tell(*id);
            }
        }
        self.filters.iter().for_each(|(_, filter)| filter.each_constant(&mut |&id| tell(id)));
    }
}

impl<C> Filter<C> {
    /// Calls `tell` with each constant.
    pub fn each_constant(&self, tell: &mut dyn FnMut(&C)) {
        match self {
            Self::Compare { constant, .. }
            | Self::Text { argument: constant, .. }
            | Self::Taxonomy { concept: constant, .. } => tell(constant),
            Self::Any(filters) => filters.iter().for_each(|filter| filter.each_constant(tell)),
        }
    }
}
