//! Candidates whose queries call operators: which calls they wait for, and what they give then.

use super::*;
use crate::operators::{Test, holds, key, text_of};

/// What a candidate gives, and the calls that gave nothing and left more open.
type Called = (Option<Answer>, Vec<String>);

/// The arguments of the conditions for one solution, or nothing where one has no value.
type Row = Vec<Option<String>>;

/// What a condition asks of each publication.
fn predicate(condition: &Condition, constants: &[String]) -> String {
    let Condition { operator, arguments, negated, compared, .. } = condition;
    let arguments = arguments.iter().map(|(name, number)| match name.is_empty() {
        true => constants[*number as usize].as_str(),
        false => "?",
    });
    let mut text = key(operator, arguments);
    if *negated {
        text.push_str("\n!");
    }
    if let Some((operator, number)) = compared {
        text.push_str(&format!("\n{} {}", operator.name(), constants[*number as usize]));
    }
    text
}

impl State {
    /// Decides a candidate whose query calls operators, as far as calls are known; notes which are
    /// missing.
    pub(super) fn called(
        &self,
        worker: &mut Worker,
        number: Number,
        kept: &Template,
        now: &Literal,
        answers: &Arc<Answers>,
        matched: &mut Matched,
    ) -> Result<Called, Undecided> {
        let record = self.subscriptions.get(number);
        let (conditions, only_conditions) = kept.conditions();
        let constants: Vec<String> = record
            .filed()
            .iter()
            .map(|&id| String::from_utf8_lossy(&self.dictionary.text(id)).into_owned())
            .collect();
        let once = kept.form == crate::query::Form::Ask;
        let (mut some, mut unknown) = (conditions.is_empty(), Vec::new());
        let mut facts: HashMap<String, bool> = HashMap::new();
        let only_truths = only_conditions && conditions.iter().all(|one| !one.valued);
        let mut waiting: Vec<Vec<(String, &Condition)>> = Vec::new();
        if !some {
            let query = || self.query(record.template(), record.filed());
            let rows = self.rows(worker, number, kept, now, &constants, query)?;
            for row in rows {
                let mut waits = Vec::new();
                let mut left = Vec::new();
                let mut is_false = false;
                for (condition, key) in conditions.iter().zip(row) {
                    let Some(key) = key else { continue };
                    let compared = condition
                        .compared
                        .map(|(operator, number)| (operator, constants[number as usize].as_str()));
                    if only_truths && let Some(truth) = self.fact(worker, &key) {
                        is_false |= truth == condition.negated;
                        facts.insert(key, truth);
                        continue;
                    }
                    match answers.0.get(&key) {
                        None => waits.push((key, condition)),
                        Some(given) => match holds(given, condition.negated, compared) {
                            Some(true) => {}
                            Some(false) => is_false = true,
                            None => left.push(key),
                        },
                    }
                }
                if is_false {
                    continue;
                }
                if !waits.is_empty() {
                    waiting.push(waits);
                } else if left.is_empty() {
                    some = true;
                    if once {
                        break;
                    }
                } else {
                    unknown.extend(left);
                }
            }
        }
        let is_decided = once && some;
        if !waiting.is_empty() && !is_decided {
            let open = &mut matched.open;
            let candidate = open.candidate(record.name(), once);
            for row in waiting {
                let tests: Vec<u32> = row
                    .into_iter()
                    .map(|(key, condition)| {
                        let constant = |number: u32| constants[number as usize].clone();
                        let compared = condition.compared.map(|(o, number)| (o, constant(number)));
                        let predicate = predicate(condition, &constants);
                        let (call, negated) = (open.call(key), condition.negated);
                        open.test(Test { call, negated, compared, predicate })
                    })
                    .collect();
                open.row(candidate, false, tests);
            }
            return Err(Undecided::Waits);
        }
        unknown.sort_unstable();
        unknown.dedup();
        if !some {
            return Ok((None, unknown));
        }
        matched.did.evaluated += 1;
        let asked = Asked::new(Arc::clone(answers)).with_facts(facts);
        let failed = |error: EvaluationError| Undecided::Failed(error);
        let query = self.query(record.template(), record.filed());
        let query = query.map_err(|error| failed(error.into()))?;
        let resting = record.is(RESTING);
        let operators = &self.parameterizer.operators;
        let prepared = Prepared::calling(&query, resting, operators, asked.clone());
        let answer = worker.evaluate(self.context(), &prepared, now, self.limits);
        let answer = answer.map_err(failed)?;
        let wanted = asked.taken();
        if !wanted.missing.is_empty() {
            let open = &mut matched.open;
            let candidate = open.candidate(record.name(), once);
            let tests: Vec<u32> = wanted
                .missing
                .into_iter()
                .map(|key| {
                    let operator = key.split('\n').next().unwrap_or_default();
                    let predicate = operator.to_owned();
                    let (call, negated, compared) = (open.call(key), false, None);
                    open.test(Test { call, negated, compared, predicate })
                })
                .collect();
            open.row(candidate, true, tests);
            return Err(Undecided::Waits);
        }
        if !wanted.unknown.is_empty() && !only_conditions {
            return Err(Undecided::Unknown(wanted.unknown));
        }
        Ok((answer, unknown))
    }

    /// What an index says of a call, if it was asked.
    fn fact(&self, worker: &Worker, key: &str) -> Option<bool> {
        let mut lines = key.split('\n');
        let operator = format!("<{}>", lines.next()?);
        let operator = self.dictionary.get(operator.as_bytes())?;
        let (argument, constants) = (lines.next()?, lines.collect::<Vec<_>>());
        let constant = match constants[..] {
            [constant] => self.dictionary.get(constant.as_bytes())?,
            _ => self.dictionary.get(&crate::query::composed_text(&constants))?,
        };
        self.indexed.with_constant(operator, constant)?;
        let dictionary = &self.dictionary;
        let hash = dictionary.hash(argument.as_bytes());
        let local = &worker.publication.local;
        let argument = dictionary
            .get_hashed(argument.as_bytes(), hash)
            .or_else(|| local.get_hashed(argument.as_bytes(), hash))?;
        let is_asked = worker.asked.contains(&(operator, argument));
        is_asked.then(|| worker.graph.contains([argument, operator, constant]))
    }

    /// The calls of the conditions for each solution of a candidate's guard, each row of calls once.
    /// A condition of which a variable is bound by other calls has none.
    fn rows(
        &self,
        worker: &mut Worker,
        number: Number,
        kept: &Template,
        now: &Literal,
        constants: &[String],
        query: impl FnOnce() -> Result<spargebra::Query, QueryError>,
    ) -> Result<Vec<Row>, Undecided> {
        let record = self.subscriptions.get(number);
        let (conditions, _) = kept.conditions();
        let arguments = conditions.iter().flat_map(|condition| &condition.arguments);
        let mut names: Vec<&str> = arguments.map(|(name, _)| &**name).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        let solutions: Vec<Vec<Option<String>>> = match record.rows() {
            &[row] if record.is(GUARDED) => {
                let all = kept.names(0);
                let places: Vec<Option<usize>> =
                    names.iter().map(|name| all.iter().position(|one| one == name)).collect();
                let mut seen: HashSet<Vec<Id>> = HashSet::new();
                let mut found: Vec<Vec<Id>> = Vec::new();
                worker.solutions(self.context(), &self.index, row, |terms| {
                    let ids: Vec<Id> = places
                        .iter()
                        .map(|place| place.and_then(|place| terms.get(place)).map_or(ANY, |&id| id))
                        .collect();
                    if seen.insert(ids.clone()) {
                        found.push(ids);
                    }
                    found.len() <= self.limits.solutions
                });
                if worker.rows.patterns.is_late() {
                    return Err(Undecided::Failed(EvaluationError::late(self.limits.time)));
                }
                if found.len() > self.limits.solutions {
                    return Err(Undecided::Failed(EvaluationError::many(self.limits.solutions)));
                }
                names.retain(|name| all.contains(name));
                let terms = worker.terms(self.context());
                let text = |id: Id| String::from_utf8_lossy(&terms.text(id)).into_owned();
                let known = |ids: Vec<Id>| {
                    ids.into_iter().filter(|&id| id != ANY).map(|id| Some(text(id))).collect()
                };
                found.into_iter().map(known).collect()
            }
            _ => {
                let failed = |error: EvaluationError| Undecided::Failed(error);
                let query = query().map_err(|error| failed(error.into()))?;
                let guard = operators::guard(query, &self.parameterizer.operators);
                let prepared = Prepared::new(&guard, record.is(RESTING));
                let answer = worker.evaluate(self.context(), &prepared, now, self.limits);
                let answer = answer.map_err(failed)?.unwrap_or_default();
                let place = |name: &&str| answer.variables.iter().position(|one| one == name);
                names.retain(|name| place(name).is_some());
                let places: Vec<usize> = names.iter().filter_map(place).collect();
                let value =
                    |row: &Vec<Option<oxrdf::Term>>, place: usize| row[place].as_ref().map(text_of);
                let rows = answer.solutions.iter();
                rows.map(|row| places.iter().map(|&place| value(row, place)).collect()).collect()
            }
        };
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        'solutions: for solution in solutions {
            let mut row = Vec::with_capacity(conditions.len());
            for Condition { operator, arguments, .. } in conditions {
                let mut texts: Vec<&str> = Vec::with_capacity(arguments.len());
                let mut is_known = true;
                for (name, constant) in arguments {
                    if name.is_empty() {
                        texts.push(&constants[*constant as usize]);
                        continue;
                    }
                    match names.iter().position(|one| **one == **name) {
                        Some(place) => match &solution[place] {
                            Some(text) => texts.push(text),
                            None => continue 'solutions, // an error
                        },
                        None => is_known = false,
                    }
                }
                let is_blank = |text: &&str| text.starts_with("_:");
                if self.parameterizer.operators.generates(operator) && texts.iter().any(is_blank) {
                    continue 'solutions; // a table of results cannot name it
                }
                row.push(is_known.then(|| key(operator, texts)));
            }
            if seen.insert(row.clone()) {
                rows.push(row);
            }
        }
        Ok(rows)
    }

    /// Takes out what was found only because an index failed, and every constant counted as met.
    pub(super) fn without_failed(
        &self,
        worker: &Worker,
        found: &mut Vec<u64>,
        matched: &mut Matched,
    ) {
        found.retain(|&one| {
            let number = one as Number;
            let rows = self.subscriptions.get(number).rows();
            let mut failed = Vec::new();
            for pattern in rows.iter().flat_map(|&row| self.index.branch(row).patterns) {
                if let Node::Constant(operator) = pattern[1]
                    && worker.failed.contains(&operator)
                {
                    let name = self.dictionary.text(operator);
                    let name = String::from_utf8_lossy(&name);
                    failed.push(name.trim_matches(['<', '>']).to_owned());
                }
            }
            let is_known = failed.is_empty();
            if !is_known {
                matched.unknown.push((number, failed, false));
            }
            is_known
        });
        let numbers: HashSet<Number> = found.iter().map(|&one| one as Number).collect();
        matched.answers.retain(|(number, _)| numbers.contains(number));
    }
}
