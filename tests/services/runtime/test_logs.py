"""Log lines, for machines and for people."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from engine.runtime import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield io.StringIO()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_tells_event_level_time_and_bound_keys(stream: io.StringIO) -> None:
    logs.configure(stream=stream)

    with logs.bound(request_id="request-1", table_id="table-1"):
        structlog.get_logger().info("set_laid", seat=3)

    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "set_laid",
        "level": "info",
        "seat": 3,
        "request_id": "request-1",
        "table_id": "table-1",
    }


def test_bound_keys_end_with_the_block(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    with logs.bound(request_id="request-1"):
        assert logs.request_id() == "request-1"

    structlog.get_logger().info("later")

    assert "request_id" not in lines(stream)[0]
    assert logs.request_id() == ""


async def test_tasks_do_not_see_each_others_keys(stream: io.StringIO) -> None:
    logs.configure(stream=stream)

    async def serve(name: str) -> None:
        with logs.bound(request_id=name):
            await asyncio.sleep(0)
            structlog.get_logger().info("served")

    await asyncio.gather(serve("one"), serve("two"))

    assert [line["request_id"] for line in lines(stream)] == ["one", "two"]


def test_what_is_below_the_level_is_not_written(stream: io.StringIO) -> None:
    logs.configure("WARNING", stream=stream)

    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")

    assert [line["event"] for line in lines(stream)] == ["loud"]


@pytest.mark.parametrize("key", ["hand", "cards", "token", "password", "seed", "authorization"])
def test_cards_and_secrets_are_blanked(stream: io.StringIO, key: str) -> None:
    logs.configure(stream=stream)

    structlog.get_logger().info("slip", **{key: "bsAAKK"})

    assert "AAKK" not in stream.getvalue()


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_fault_is_told_without_what_it_held_in_its_hands(stream: io.StringIO, form: logs.LogFormat) -> None:
    logs.configure(form=form, stream=stream)

    def look_at(hand: str) -> int:
        return len(hand) // 0

    try:
        look_at("AAKK"[::-1])
    except ZeroDivisionError:
        structlog.get_logger().exception("failed")

    assert "ZeroDivisionError" in stream.getvalue()
    assert "KKAA" not in stream.getvalue()


def test_an_exception_is_told_in_the_same_line(stream: io.StringIO) -> None:
    logs.configure(stream=stream)
    try:
        int("broken")
    except ValueError:
        structlog.get_logger().exception("failed")

    (line,) = lines(stream)
    assert "ValueError: invalid literal" in line["exception"]


def test_the_standard_librarys_lines_look_the_same(stream: io.StringIO) -> None:
    logs.configure(stream=stream)

    with logs.bound(request_id="request-1"):
        logging.getLogger("some.library").warning("it is %s", "odd")

    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"], line["request_id"]) == (
        "it is odd",
        "warning",
        "some.library",
        "request-1",
    )


def test_people_get_plain_words(stream: io.StringIO) -> None:
    logs.configure(form="console", stream=stream)

    structlog.get_logger().info("set_laid", seat=3)

    assert "set_laid" in stream.getvalue()
    with pytest.raises(json.JSONDecodeError):
        json.loads(stream.getvalue())
