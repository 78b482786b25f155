//! Branches: the triple patterns and filters of one disjunct of a query.
//!
//! Every solution of a query satisfies all patterns and filters of one of its branches. Constants
//! are term ids, after root terms replaced synonyms.

use crate::dictionary::Id;
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check, damaged, stored};
use std::cmp::Ordering;

/// A place of a triple pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    Constant(Id),
    /// A variable, numbered from 0 in order of first occurrence in the branch.
    Variable(u16),
}

/// Subject, predicate, object.
pub type Pattern = [Node; 3];

/// An enumeration with a list of its variants.
pub trait Variants: Copy + 'static {
    const ALL: &[Self];

    /// Returns the first variant that satisfies a condition.
    fn find(is_wanted: impl Fn(Self) -> bool) -> Option<Self> {
        Self::ALL.iter().copied().find(|&one| is_wanted(one))
    }
}

/// Defines an enumeration whose variants have names in SPARQL.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl Variants for $type {
            const ALL: &[Self] = &[$(Self::$variant,)*];
        }

        impl $type {
            /// Returns the name in SPARQL.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        stored!(enum $type { $($variant,)* });
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
    View {
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
        let name = iri.strip_prefix(GM)?;
        Self::find(|one| one.name() == name)
    }
}

impl Comparison {
    /// Returns a number above 0 for storage.
    pub fn code(self) -> u16 {
        self as u16 + 1
    }

    /// Returns the comparison of a stored number.
    #[inline]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Filter<C = Id> {
    /// `?v < constant`, by value. A type error is false.
    Compare { operator: Comparison, constant: C },
    /// A string test such as `CONTAINS(LCASE(STR(?v)), "text")`.
    Text {
        operator: TextOperator,
        view: View,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Branch {
    /// Distinct triple patterns in the order of the query.
    pub patterns: Vec<Pattern>,
    /// Filters of variables that occur in the patterns.
    pub filters: Vec<Tested>,
    /// Number of variables.
    pub variables: u16,
}

stored!(Branch { patterns, filters, variables });

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

impl Default for Node {
    fn default() -> Self {
        Self::Variable(0)
    }
}

/// One byte for small numbers, which most variables and slots are.
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

impl<C: Stored> Stored for Filter<C> {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Compare { operator, .. } => (0_u8, *operator).save(to),
            Self::Text { operator, view, folding, .. } => {
                (1_u8, *operator).save(to);
                (*view, *folding).save(to);
            }
            Self::Taxonomy { operator, .. } => (2_u8, *operator).save(to),
            Self::Any(filters) => (3_u8, filters.len()).save(to),
        }
        match self {
            Self::Compare { constant, .. }
            | Self::Text { argument: constant, .. }
            | Self::Taxonomy { concept: constant, .. } => constant.save(to),
            Self::Any(filters) => filters.iter().for_each(|filter| filter.save(to)),
        }
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        match u8::load(from)? {
            3 => {
                let count = usize::load(from)?;
                let simple = (0..count).map(|_| Self::load_simple(u8::load(from)?, from));
                Ok(Self::Any(simple.collect::<Result<_, _>>()?))
            }
            kind => Self::load_simple(kind, from),
        }
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

    /// Reads a filter that is not a disjunction.
    fn load_simple(kind: u8, from: &mut Loader) -> Result<Self, SnapshotError>
    where
        C: Stored,
    {
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
