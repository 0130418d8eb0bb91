"""Logs: one line an event, JSON where machines read it, colours in a terminal.

Law: configures structlog and routes the standard library's logging into the same lines; called once, by `main.py`. An
event is a short constant English phrase with bound keys. Cards and secrets never get into a line: keys that could hold
them are blanked here, as a last resort.
"""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LogFormat = Literal["auto", "json", "console"]

_UNSPEAKABLE = frozenset(
    {"authorization", "cards", "deck", "dsn", "faces", "hand", "hands", "password", "secret", "seed", "token"}
)


def configure(level: str = "INFO", form: LogFormat = "auto", stream: TextIO = sys.stderr) -> None:
    """Write lines of this level and above to the stream; `auto` is `console` in a terminal and `json` elsewhere."""
    number = logging.getLevelNamesMapping()[level.upper()]
    renderers = _renderers(form, stream)
    structlog.configure(
        processors=[*_shared(), *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(number, renderers, stream)


def bound(**keys: object) -> AbstractContextManager[object]:
    """Add keys, such as `request_id` and `table_id`, to every line within the block, in this task."""
    return structlog.contextvars.bound_contextvars(**keys)


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _blank,
    ]


def _blank(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for key in _UNSPEAKABLE & event.keys():
        event[key] = "…"
    return event


def _renderers(form: LogFormat, stream: TextIO) -> list[Processor]:
    if form == "console" or (form == "auto" and stream.isatty()):
        # The prettier traceback shows every local variable, hands and passwords too.
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]


def _route_standard_logging(level: int, renderers: list[Processor], stream: TextIO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *_shared()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))


def request_id() -> str:
    """Tell the id of the request that this task serves; empty outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
