import psycopg

from deploy.local.process import ServerFailed
from deploy.local.stack import CALM_S, FIRST_PAUSE_S, PARTITIONS_AGAIN_S, PARTITIONS_S, Upkeep, Watched


class Child:
    """A child that runs until it is told to end."""

    def __init__(self) -> None:
        self.runs = True
        self.starts = 0
        self.is_broken = False

    def is_running(self) -> bool:
        return self.runs

    def start(self) -> None:
        self.starts += 1
        if self.is_broken:
            raise ServerFailed
        self.runs = True


def watched(child: Child) -> Watched:
    return Watched("child", child.is_running, child.start, started_at=0.0)


def test_a_child_that_runs_is_left_alone() -> None:
    child = Child()

    watched(child).look(1.0)

    assert child.starts == 0


def test_a_child_that_ended_is_started_again_after_a_pause() -> None:
    child = Child()
    watch = watched(child)
    child.runs = False

    watch.look(1.0)
    assert child.starts == 0
    watch.look(1.0 + FIRST_PAUSE_S)

    assert child.starts == 1


def test_a_child_that_keeps_ending_waits_longer_each_time() -> None:
    child = Child()
    child.is_broken, child.runs = True, False
    watch = watched(child)

    for tenth in range(100):
        watch.look(tenth / 10)

    assert 3 <= child.starts <= 5
    assert watch.pause_s > FIRST_PAUSE_S * 4


def test_a_child_that_ran_calmly_is_trusted_again() -> None:
    child = Child()
    watch = watched(child)
    watch.pause_s = 16.0
    child.runs = False

    watch.look(CALM_S + 1)

    assert watch.pause_s == FIRST_PAUSE_S


def test_room_in_the_log_is_made_every_hour() -> None:
    made: list[int] = []
    upkeep = Upkeep(lambda: made.append(1), due=PARTITIONS_S)

    for minute in range(60 * 24):
        upkeep.look(minute * 60.0)

    assert len(made) == 23


def test_room_that_could_not_be_made_is_made_as_soon_as_the_database_is_back() -> None:
    tries: list[int] = []

    def out_of_reach() -> None:
        tries.append(1)
        raise psycopg.OperationalError

    upkeep = Upkeep(out_of_reach, due=0.0)
    upkeep.look(0.0)
    upkeep.make_room = lambda: tries.append(2)
    upkeep.look(PARTITIONS_AGAIN_S)

    assert tries == [1, 2]
