"""One deal as a state machine: seats act, time runs out, the house steps in, in any order Hypothesis can think of."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine import rules
from engine.rules import commands as c
from engine.rules.laws import broken, broken_between
from engine.service.simulation import choose_from, shuffled
from tests.support.play import variants


class DealMachine(RuleBasedStateMachine):
    """Laws hold after every step, whoever made it."""

    @initialize(variant=variants(), seed=st.integers(0, 1 << 32))
    def deal_cards(self, variant: rules.Variant, seed: int) -> None:
        self.chance = random.Random(seed)
        self.deal = rules.open_deal(rules.Setup(variant, shuffled(variant, self.chance)))
        self._does(c.Begin())

    def _does(self, command: c.Command) -> None:
        events = rules.decide(self.deal, command)
        assert not isinstance(events, rules.Refused), (command, events)
        for event in events:
            before, self.deal = self.deal, rules.evolve(self.deal, event)
            assert not list(broken_between(before, event, self.deal))

    def _runs(self) -> bool:
        return not rules.is_over(self.deal)

    def _plays(self) -> bool:
        return self.deal.phase is rules.Phase.PLAY

    @precondition(_runs)
    @rule(times=st.integers(1, 40))
    def seats_act(self, times: int) -> None:
        for _ in range(times):
            if self._runs():
                seat = self.chance.choice(rules.waiting(self.deal))
                self._does(self.chance.choice(choose_from(self.deal, seat, self.chance)))

    @precondition(_runs)
    @rule(pick=st.integers(0, 5))
    def time_runs_out(self, pick: int) -> None:
        seats = rules.waiting(self.deal)
        self._does(c.TimeOut(seats[pick % len(seats)]))

    @precondition(_plays)
    @rule(seat=st.integers(0, 5))
    def the_house_judges_a_seat_last(self, seat: int) -> None:
        if self.deal.standing.active >> seat & 1:
            self._does(c.JudgeLast(seat))

    @precondition(_runs)
    @rule(seat=st.integers(0, 5))
    def the_house_takes_a_turn(self, seat: int) -> None:
        if self.deal.standing.active >> seat & 1:
            self._does(c.Forfeit(seat))

    @precondition(_runs)
    @rule(seat=st.integers(0, 5))
    def a_seat_changes_hands(self, seat: int) -> None:
        self._does(c.Disqualify(seat))

    @precondition(lambda self: not self._runs())
    @rule(seat=st.integers(0, 5))
    def nothing_happens_after_the_end(self, seat: int) -> None:
        refused = rules.decide(self.deal, c.TimeOut(seat))
        assert refused == rules.Refused(rules.Reason.DEAL_OVER)

    @invariant()
    def the_laws_hold(self) -> None:
        assert not list(broken(self.deal))


DealMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
TestDeal = DealMachine.TestCase
