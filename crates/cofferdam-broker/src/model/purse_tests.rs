use super::*;

const PRICE: Price = Price { input: 2.0, output: 10.0, cache_read: 0.2, cache_write: 2.5, long_from: None };

fn want(input: u64, max_output: u64) -> Want {
    Want {
        vendor: Vendor::Openai,
        input,
        max_output: Some(max_output),
        least_output: 1024.min(max_output),
        price: Some(PRICE),
        fees_micro_usd: 0,
    }
}

fn tokens(max: u64) -> Budget {
    Budget { max_tokens: Some(max), ..Budget::default() }
}

fn fits(decision: Decision) -> Reservation {
    match decision {
        Decision::Fits(reservation) => reservation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_budget_everything_fits_and_no_limit_is_put_in() {
    let want = Want { max_output: None, ..want(1000, 1) };
    let reservation = fits(decide(&Budget::default(), &State::default(), &want));
    assert_eq!((reservation.limit, reservation.spent.tokens), (None, 1000 + USUAL_OUTPUT));
}

/// The attack: an agent asks for all the tokens that a number can hold and hangs up, so that they are charged.
#[test]
fn what_is_set_aside_can_be_added_up_whatever_is_asked_for() {
    for want in [want(1000, u64::MAX), want(u64::MAX, 1)] {
        let reservation = fits(decide(&Budget::default(), &State::default(), &want));
        assert!(reservation.spent.tokens <= MOST_RESERVED, "{reservation:?}");
        assert!(reservation.spent.cost_micro_usd <= MOST_RESERVED, "{reservation:?}");
        assert_eq!(reservation.limit, want.max_output, "what is forwarded is what was asked for");
    }
}

#[test]
fn under_a_budget_an_answer_without_a_limit_gets_one() {
    let want = Want { max_output: None, least_output: 1024, ..want(1000, 1) };
    let reservation = fits(decide(&tokens(1_000_000), &State::default(), &want));
    assert_eq!(reservation.limit, Some(LIMITED_OUTPUT));
}

#[test]
fn the_last_call_is_cut_to_what_is_left_and_then_the_budget_is_spent() {
    let mut state = State { spent: Spent { tokens: 7000, ..Spent::default() }, ..State::default() };
    assert_eq!(fits(decide(&tokens(10_000), &state, &want(1000, 64_000))).limit, Some(2000));
    state.spent.tokens = 8500;
    let Decision::Exhausted(spent) = decide(&tokens(10_000), &state, &want(1000, 64_000)) else { panic!() };
    assert_eq!(spent.which, "tokens");
    assert_eq!(
        spent.message,
        "cofferdam: this run's budget is spent: 8500 of 10000 tokens (--max-tokens); what is left is too \
         little for this call"
    );
}

#[test]
fn cost_counts_what_the_input_could_cost_at_most() {
    let budget = Budget { max_cost_micro_usd: Some(100_000), ..Budget::default() };
    let reservation = fits(decide(&budget, &State::default(), &want(10_000, 5000)));
    assert_eq!(reservation.spent.cost_micro_usd, 75_000);
    let cut = fits(decide(&budget, &State::default(), &want(10_000, 64_000)));
    assert_eq!((cut.limit, cut.spent.cost_micro_usd), (Some(7500), 100_000));
    let Decision::Exhausted(spent) = decide(&budget, &State::default(), &want(40_000, 100)) else { panic!() };
    assert_eq!(spent.which, "cost");
    assert!(spent.message.contains("$0.00 of $0.10 (--max-cost-usd)"), "{}", spent.message);
}

#[tokio::test]
async fn a_call_waits_for_those_in_flight_and_gets_what_they_give_back() {
    let purse = Purse::new(tokens(10_000), Spent::default());
    let first = purse.reserve(&want(1000, 8000)).await.unwrap().keep();
    let want = want(1000, 4000);
    let mut second = std::pin::pin!(purse.reserve(&want));
    let waits = std::future::poll_fn(|cx| std::task::Poll::Ready(second.as_mut().poll(cx).is_pending()));
    assert!(waits.await);
    purse.settle(&first, Spent { tokens: 1500, calls: 1, cost_micro_usd: 0 });
    assert_eq!(second.await.unwrap().keep().limit, Some(4000));
}

#[tokio::test]
async fn a_wait_that_is_dropped_and_a_hold_that_is_dropped_take_nothing() {
    let purse = Purse::new(Budget { max_model_calls: Some(1), ..tokens(10_000) }, Spent::default());
    drop(purse.reserve(&want(1000, 8000)).await.unwrap());
    let kept = purse.reserve(&want(1000, 8000)).await.unwrap().keep();
    purse.settle(&kept, Spent { calls: 1, ..Spent::default() });
    let spent = purse.reserve(&want(1, 1)).await.err().unwrap();
    assert_eq!(
        spent.message,
        "cofferdam: this run's budget is spent: 1 of 1 model calls (--max-model-calls)"
    );
    purse.idle().await;
}
