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

/// An enumeration whose variants can be gone through.
pub trait Variants: Copy + 'static {
    /// All of them, in order.
    const ALL: &[Self];

    /// The first for which something holds.
    fn find(is_wanted: impl Fn(Self) -> bool) -> Option<Self> {
        Self::ALL.iter().copied().find(|&one| is_wanted(one))
    }
}

/// Defines an enumeration by what queries call its variants.
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
            /// What a query calls it.
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
    /// SPARQL's comparisons by value.
    Comparison {
        /// `=`
        Equal = "=",
        /// `!=`
        Unequal = "!=",
        /// `<`
        Less = "<",
        /// `<=`
        LessOrEqual = "<=",
        /// `>`
        Greater = ">",
        /// `>=`
        GreaterOrEqual = ">=",
    }
);

named!(
    /// Which text of a term a test looks at.
    View {
        /// That of a string literal, whose language counts.
        Term = "",
        /// The lexical form of a literal, the IRI of an IRI.
        Str = "STR",
        /// The language tag of a literal.
        Lang = "LANG",
    }
);

named!(
    /// What is done with the case of a text before it is looked at.
    Folding {
        /// Nothing.
        None = "",
        /// All letters are made small.
        Lower = "LCASE",
        /// All letters are made capital.
        Upper = "UCASE",
        /// As regular expressions with the flag `i` compare ASCII letters.
        Caseless = "caseless",
    }
);

named!(
    /// How a text is compared with a constant.
    TextOperator {
        /// The constant is in it.
        Contains = "CONTAINS",
        /// It begins with the constant.
        Starts = "STRSTARTS",
        /// It ends with the constant.
        Ends = "STRENDS",
        /// By term: text and language are the same.
        Equals = "=",
        /// It is a language tag within a language range.
        Matches = "LANGMATCHES",
    }
);

/// The namespace of the functions of filters.
pub const GM: &str = "urn:graphmatch:";

named!(
    /// G-ToPSS's is-a operators (section 3.2), by their names in the namespace [`GM`].
    TaxonomyOperator {
        /// The term is the concept, or below it.
        Descendant = "descendantOf",
        /// The term is the concept, or above it.
        Ancestor = "ancestorOf",
        /// The term is right below the concept.
        Child = "childOf",
    }
);

impl TaxonomyOperator {
    /// The one of a function.
    pub fn of_iri(iri: &str) -> Option<Self> {
        let name = iri.strip_prefix(GM)?;
        Self::find(|one| one.name() == name)
    }
}

impl Comparison {
    /// A number for it, above 0.
    pub fn code(self) -> u16 {
        self as u16 + 1
    }

    /// The one of a number.
    #[inline]
    pub fn of_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code).wrapping_sub(1)).copied()
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The triple patterns, distinct, in the order of the query.
    pub patterns: Vec<Pattern>,
    /// Tests of variables that occur in the patterns.
    pub filters: Vec<Tested>,
    /// How many variables there are.
    pub variables: u16,
}

stored!(Branch { patterns, filters, variables });

impl Branch {
    /// Tells its constants.
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
    /// Tells its constants.
    pub fn each_constant(&self, tell: &mut dyn FnMut(&C)) {
        match self {
            Self::Compare { constant, .. }
            | Self::Text { argument: constant, .. }
            | Self::Taxonomy { concept: constant, .. } => tell(constant),
            Self::Any(filters) => filters.iter().for_each(|filter| filter.each_constant(tell)),
        }
    }

    /// Reads a filter that is no disjunction.
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
