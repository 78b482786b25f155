//! Candidates whose queries call operators.

use super::*;
use crate::algebra::substitute;
use crate::operators::{CallContext, Prefilter, Test};
use spargebra::term::Variable;
use std::collections::BTreeSet;

impl Engine {
    /// Evaluates a candidate whose query calls operators. If calls are missing, adds a request for
    /// them to `matched`. If failed calls leave solutions undecided, adds these calls.
    pub(super) fn evaluate_calling(
        &self,
        worker: &Worker,
        number: Number,
        progress: &Progress,
        matched: &mut MatchResult,
    ) -> Result<Option<Answer>, EvaluationError> {
        let record = self.subscriptions.get(number);
        let missing = || Fault::new("its template is missing", "Subscribe it again.");
        let template = record.template;
        let algebra = || self.templates.get(template).ok_or_else(missing)?.algebra();
        let query = self.algebra.get(self.templates.text(template), algebra)?;
        let (mut query, constants) = (Query::clone(&query), self.terms(number));
        constants
            .and_then(|all| substitute(&mut query, &|slot| all.get(slot as usize).cloned()))
            .ok_or_else(missing)?;
        let (is_once, resting) = (matches!(query, Query::Ask { .. }), record.is(DELTA_CHECK));
        let prefilter = Prefilter::new(&query, &self.parameterizer.operators);
        let evaluate =
            |prepared: &Prepared| worker.evaluate(self.context(), prepared, progress.now);
        let (mut waiting, mut failed) = (Vec::new(), BTreeSet::new());
        let mut is_certain = prefilter.tests.is_empty();
        let solutions = match is_certain {
            true => Answer::default(),
            false => {
                evaluate(&Prepared::new(prefilter.query.clone(), resting, CallContext::default()))?
                    .unwrap_or_default()
            }
        };
        'solutions: for solution in &solutions.solutions {
            let value = |variable: &Variable| {
                let place = solutions.variables.iter().position(|one| one == variable.as_str())?;
                solution[place].clone()
            };
            let (mut missing, mut open) = (Vec::new(), Vec::new());
            for test in &prefilter.tests {
                let Some(call) = test.call(value) else { continue 'solutions };
                match progress.results.get(&call).map(|result| test.is_passed(result)) {
                    None => missing.push((call, test.clone())),
                    Some(None) => open.push(call),
                    Some(Some(false)) => continue 'solutions,
                    Some(Some(true)) => {}
                }
            }
            if !missing.is_empty() {
                waiting.push(missing);
            } else if open.is_empty() {
                is_certain = true;
            }
            failed.extend(open);
        }
        if !(waiting.is_empty() || is_once && is_certain) {
            for calls in waiting {
                matched.requests.push(number, is_once, calls);
            }
            return Ok(None);
        }
        let mut answer = None;
        if is_certain {
            matched.evaluated += 1;
            let calls = CallContext::new(&self.parameterizer.operators, &progress.results);
            answer = evaluate(&Prepared::new(query, resting, calls.clone()))?;
            let (missing, open) = calls.take_noted();
            if !prefilter.is_complete && !missing.is_empty() {
                let calls = missing.into_iter().map(|call| {
                    let test = Test::of_call(&call);
                    (call, test)
                });
                matched.requests.push(number, is_once, calls.collect());
                return Ok(None);
            }
            if !prefilter.is_complete && !open.is_empty() {
                failed = open.into_iter().collect();
                answer = None;
            }
        }
        if !failed.is_empty() {
            let calls = failed.into_iter().collect();
            matched.undecided.push((number, calls, answer.is_some()));
        }
        Ok(answer)
    }

    /// The operators whose index failed, among those that a subscription needs.
    pub(super) fn failed_indexes(&self, worker: &Worker, number: Number) -> Vec<String> {
        let rows = self.subscriptions.get(number).rows.iter();
        let patterns = rows.flat_map(|&row| self.index.branch(row).patterns);
        let operator = |pattern: Pattern| match pattern[1] {
            Node::Constant(operator) if worker.failed.contains(&operator) => {
                let name = self.dictionary.text(operator);
                Some(String::from_utf8_lossy(&name).trim_matches(['<', '>']).to_owned())
            }
            _ => None,
        };
        patterns.filter_map(operator).collect()
    }
}
