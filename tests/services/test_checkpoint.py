"""What was signed once shows every later change of the log, also one that is chained anew."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import pytest

from engine.runtime.identity import new_keys
from engine.store import checkpoint
from engine.store.chain import first_break
from engine.store.checkpoint import Mark, NotSigned, Verdict
from engine.store.memory import MemoryEventStore
from tests.support.streams import append, event, table_id

PRIVATE, PUBLIC = new_keys()
AT_MS = 1_800_000_000_000


@dataclass
class House:
    """A log of three tables, and what was signed of it."""

    store: MemoryEventStore
    tables: list[UUID]
    text: str

    async def verdicts(self) -> list[Verdict]:
        found = checkpoint.read(self.text, PUBLIC)
        return [finding.verdict for finding in await checkpoint.compare(self.store, found)]


async def told(store: MemoryEventStore, table: UUID, *payloads: bytes) -> None:
    for version, payload in enumerate(payloads):
        await store.append(append(table, version, event(payload), command_id=UUID(int=version + 1)))


@pytest.fixture
async def house() -> House:
    store, tables = MemoryEventStore(), sorted(table_id() for _ in range(3))
    for table in tables:
        await told(store, table, b"one", b"two", b"three")
    return House(store, tables, checkpoint.signed(await checkpoint.marks(store), AT_MS, PRIVATE))


async def test_a_log_that_only_grows_is_the_same(house: House) -> None:
    await house.store.append(append(house.tables[0], 3))
    await house.store.append(append(house.tables[1], 3, closes=True))
    await house.store.append(append(table_id()))

    assert await house.verdicts() == [Verdict.SAME] * 3


async def test_a_history_that_was_chained_anew_is_found(house: House) -> None:
    forged = MemoryEventStore()
    for table, payloads in zip(house.tables, ((b"one", b"TWO", b"three"), (b"one", b"two"), ()), strict=True):
        await told(forged, table, *payloads)
    assert first_break(await forged.read(house.tables[0])) is None
    house.store = forged

    assert await house.verdicts() == [Verdict.CHANGED, Verdict.SHORTER, Verdict.MISSING]


async def test_a_change_below_what_came_since_is_found(house: House) -> None:
    forged = MemoryEventStore()
    await told(forged, house.tables[0], b"one", b"TWO", b"three", b"four")
    house.store, house.text = forged, checkpoint.signed(checkpoint.read(house.text, PUBLIC)[:1], AT_MS, PRIVATE)

    assert await house.verdicts() == [Verdict.CHANGED]


async def test_a_day_that_left_the_database_is_said_to_be_in_its_archive(house: House) -> None:
    house.store._streams[house.tables[1]].events.clear()

    assert await house.verdicts() == [Verdict.SAME, Verdict.ARCHIVED, Verdict.SAME]


async def test_a_checkpoint_is_read_as_it_was_written(house: House) -> None:
    heads = [await house.store.head(table) for table in house.tables]

    assert checkpoint.read(house.text, PUBLIC) == [Mark(head.table_id, head.version, head.hash) for head in heads]


@pytest.mark.parametrize("change", ["a digit", "a line less", "a line more", "no signature", "nothing"])
async def test_a_checkpoint_that_was_changed_is_not_believed(house: House, change: str) -> None:
    lines = house.text.splitlines(keepends=True)
    changed = {
        "a digit": house.text.replace(" 3 ", " 2 ", 1),
        "a line less": "".join([*lines[:2], *lines[3:]]),
        "a line more": "".join([*lines[:-1], lines[2], lines[-1]]),
        "no signature": "".join(lines[:-1]),
        "nothing": "",
    }[change]

    with pytest.raises(NotSigned):
        checkpoint.read(changed, PUBLIC)


async def test_a_checkpoint_of_another_key_is_not_believed(house: House) -> None:
    with pytest.raises(NotSigned):
        checkpoint.read(house.text, new_keys()[1])
    with pytest.raises(NotSigned):
        checkpoint.read(house.text, b"no key")
