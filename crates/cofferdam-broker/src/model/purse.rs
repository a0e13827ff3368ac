//! What a run may still spend. A call reserves before it is forwarded, so that parallel calls cannot spend the
//! same money twice; when it is over, what it did not need is given back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cofferdam_core::{Budget, Spent, Vendor};
use tokio::sync::Notify;

use super::most_input::LARGEST_CONTEXT;
use super::usage::dearest_input;
use crate::options::Price;

/// How long an answer is thought to be at most, if the agent does not say.
const USUAL_OUTPUT: u64 = 8192;
/// The same where a budget must hold: then it is also the limit that the vendor is given. Answers longer than
/// this are rare, and a lower limit would cut the thinking of the larger models.
const LIMITED_OUTPUT: u64 = 32_000;
/// The most of anything that is set aside for one call. A million such calls can still be added up in the record.
const MOST_RESERVED: u64 = 1 << 40;

/// The budget of a run, with what is spent and what is reserved.
pub(crate) struct Purse {
    budget: Budget,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    spent: Spent,
    reserved: Spent,
    in_flight: u64,
}

/// What a call may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Want {
    pub vendor: Vendor,
    /// The most that it can be charged as.
    pub input: u64,
    pub max_output: Option<u64>,
    pub least_output: u64,
    pub price: Option<Price>,
    /// What is charged beside the tokens.
    pub fees_micro_usd: u64,
}

/// What was set aside for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub spent: Spent,
    /// How many of the tokens are for the answer.
    pub output: u64,
    /// The limit that the vendor is given, if any.
    pub limit: Option<u64>,
}

/// A budget that has too little left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exhausted {
    /// In the ledger's words.
    pub which: &'static str,
    /// For people.
    pub message: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Fits(Reservation),
    Wait,
    Exhausted(Exhausted),
}

impl Purse {
    pub(crate) fn new(budget: Budget, spent: Spent) -> Self {
        let state = State { spent, ..State::default() };
        Self { budget, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Whether calls must be of models whose price is known.
    pub(crate) fn counts_cost(&self) -> bool {
        self.budget.max_cost_micro_usd.is_some()
    }

    /// Whether what a call can cost has to be known before.
    pub(crate) fn is_limited(&self) -> bool {
        self.budget.max_tokens.is_some() || self.budget.max_cost_micro_usd.is_some()
    }

    /// Reserves for one call, after waiting for calls in flight if only they stand in the way. Nothing is held
    /// while waiting, so the wait can be dropped.
    pub(crate) async fn reserve(&self, want: &Want) -> Result<Hold<'_>, Exhausted> {
        loop {
            // Before looking, so that what changes after the look is not missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let decision = {
                let mut state = self.state();
                let decision = decide(&self.budget, &state, want);
                if let Decision::Fits(reservation) = &decision {
                    state.reserved = sum(state.reserved, reservation.spent);
                    state.in_flight += 1;
                }
                decision
            };
            match decision {
                Decision::Fits(reservation) => return Ok(Hold { purse: self, reservation, kept: false }),
                Decision::Exhausted(exhausted) => return Err(exhausted),
                Decision::Wait => changed.await,
            }
        }
    }

    /// Sets aside more for a call that turns out to cost more than was thought. The next call must not be let through on
    /// money that is gone, even if that is not written down yet.
    pub(crate) fn raise(&self, reservation: &mut Reservation, spent: Spent) {
        let mut state = self.state();
        let raised = larger(reservation.spent, spent);
        state.reserved = sum(difference(state.reserved, reservation.spent), raised);
        reservation.spent = raised;
    }

    /// Replaces a reservation by what was really spent.
    pub(crate) fn settle(&self, reservation: &Reservation, spent: Spent) {
        let mut state = self.state();
        state.reserved = difference(state.reserved, reservation.spent);
        state.spent = sum(state.spent, spent);
        state.in_flight -= 1;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until no call is in flight.
    pub(crate) async fn idle(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.state().in_flight == 0 {
                return;
            }
            changed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reservation that is given back, the call included, unless it is kept.
pub(crate) struct Hold<'p> {
    purse: &'p Purse,
    reservation: Reservation,
    kept: bool,
}

impl Hold<'_> {
    pub(crate) fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// From here on somebody settles it.
    pub(crate) fn keep(mut self) -> Reservation {
        self.kept = true;
        self.reservation
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.purse.settle(&self.reservation, Spent::default());
        }
    }
}

fn decide(budget: &Budget, state: &State, want: &Want) -> Decision {
    let used = sum(state.spent, state.reserved);
    if let Some(max) = budget.max_model_calls
        && used.calls >= max
    {
        // A call in flight counts whatever becomes of it, so there is nothing to wait for.
        let message = format!("{} of {max} model calls (--max-model-calls)", used.calls);
        return Decision::Exhausted(exhausted("model calls", &message));
    }
    let limited = budget.max_tokens.is_some() || budget.max_cost_micro_usd.is_some();
    // No model says more than this, whatever it is allowed: an agent that asks for 2^63 tokens and hangs up would make sums that
    // nothing can hold.
    let asked = want.max_output.unwrap_or(if limited { LIMITED_OUTPUT } else { USUAL_OUTPUT });
    let asked = asked.min(LARGEST_CONTEXT);
    let least = want.least_output.min(asked);
    let mut output = asked;
    if let Some(max) = budget.max_tokens {
        output = output.min(max.saturating_sub(used.tokens).saturating_sub(want.input));
        if output < least {
            let message = format!("{} of {max} tokens (--max-tokens)", state.spent.tokens);
            return wait_or(state, exhausted("tokens", &with_rest(&message, state.spent.tokens, max)));
        }
    }
    // The most input decides, since nobody knows yet how much of it is charged.
    let price = want.price.map(|price| price.at(want.input));
    if let (Some(max), Some(price)) = (budget.max_cost_micro_usd, &price) {
        let left = max.saturating_sub(used.cost_micro_usd) as f64;
        let for_output =
            left - want.fees_micro_usd as f64 - want.input as f64 * dearest_input(price, want.vendor);
        let affordable = if price.output > 0.0 { for_output / price.output } else { f64::INFINITY };
        // A negative number becomes 0.
        output = output.min(affordable as u64);
        if output < least || for_output < 0.0 {
            let spent = state.spent.cost_micro_usd;
            let message = format!("${} of ${} (--max-cost-usd)", dollars(spent), dollars(max));
            return wait_or(state, exhausted("cost", &with_rest(&message, spent, max)));
        }
    }
    if output < asked && state.in_flight > 0 {
        // It would be cut short only because of others, who will give some of theirs back.
        return Decision::Wait;
    }
    let cost = price.map_or(0.0, |price| {
        let input = want.input as f64 * dearest_input(&price, want.vendor);
        input + output as f64 * price.output + want.fees_micro_usd as f64
    });
    let spent = Spent {
        cost_micro_usd: (cost.ceil() as u64).min(MOST_RESERVED),
        tokens: want.input.saturating_add(output).min(MOST_RESERVED),
        calls: 1,
    };
    let limit = if limited { Some(output) } else { want.max_output };
    Decision::Fits(Reservation { spent, output, limit })
}

fn wait_or(state: &State, exhausted: Exhausted) -> Decision {
    if state.in_flight > 0 { Decision::Wait } else { Decision::Exhausted(exhausted) }
}

fn exhausted(which: &'static str, how: &str) -> Exhausted {
    Exhausted { which, message: format!("cofferdam: this run's budget is spent: {how}") }
}

/// Says why a budget with something left is spent all the same.
fn with_rest(message: &str, spent: u64, max: u64) -> String {
    if spent < max {
        format!("{message}; what is left is too little for this call")
    } else {
        message.to_owned()
    }
}

fn dollars(micro_usd: u64) -> String {
    let exact = format!("{:.6}", micro_usd as f64 / 1e6);
    let (whole, parts) = exact.split_once('.').unwrap_or((&exact, ""));
    format!("{whole}.{:0<2}", parts.trim_end_matches('0'))
}

/// Whichever is more, of each.
pub(super) fn larger(a: Spent, b: Spent) -> Spent {
    Spent {
        cost_micro_usd: a.cost_micro_usd.max(b.cost_micro_usd),
        tokens: a.tokens.max(b.tokens),
        calls: a.calls.max(b.calls),
    }
}

fn sum(a: Spent, b: Spent) -> Spent {
    Spent {
        cost_micro_usd: a.cost_micro_usd.saturating_add(b.cost_micro_usd),
        tokens: a.tokens.saturating_add(b.tokens),
        calls: a.calls.saturating_add(b.calls),
    }
}

fn difference(a: Spent, b: Spent) -> Spent {
    Spent {
        cost_micro_usd: a.cost_micro_usd.saturating_sub(b.cost_micro_usd),
        tokens: a.tokens.saturating_sub(b.tokens),
        calls: a.calls.saturating_sub(b.calls),
    }
}

#[cfg(test)]
#[path = "purse_tests.rs"]
mod tests;
