"""Events as stored bytes, and the one fingerprint of a state.

Law: the only place that knows how an event is laid out in protobuf. A plan is derived once for each event type from its
fields and their type hints: names are equal in the dataclass and in the message of the same name. An event's shape is
never edited; an old one is brought up by `_upcast`, and a sample of it is kept with the tests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import partial
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from google.protobuf.message import DecodeError, Message
from gouji.game.v1 import action_pb2, event_pb2, variant_pb2, view_pb2

from engine.match.events import Event, Faces, MatchEvent
from engine.rules.cards import Cards, NotCards, faces_text, parse, parse_faces, text
from engine.rules.events import DealEvent, Hands
from engine.rules.variant import PerRank
from engine.store.port import NewEvent

SCHEMA = 1
"""The schema version that new events are stored with."""

EVENT_TYPES: tuple[type[Any], ...] = (*get_args(MatchEvent), *get_args(DealEvent))

_PROTO_FILES = (event_pb2, variant_pb2, view_pb2, action_pb2)
_PLANS: dict[type, _Plan] = {}
_PAIR = tuple[int, int]


class UnknownEvent(Exception):
    """The log holds an event that this version does not know: set the table aside, its log is intact."""


class _Form(NamedTuple):
    """How one type travels: into a field's value, and back."""

    to: Callable[[Any], Any]
    back: Callable[[Any], Any]


class _Slot(NamedTuple):
    """One field of an event: its name, its form, and whether it may be absent."""

    name: str
    form: _Form
    optional: bool


class _Plan(NamedTuple):
    make: Callable[..., Any]
    message: type[Message]
    slots: tuple[_Slot, ...]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def type_of(event_type: type[Any]) -> str:
    """The name under which an event type is stored and written: `SetLaid` is `set_laid`."""
    return _snake(event_type.__name__)


TYPES: dict[str, type[Any]] = {type_of(one): one for one in EVENT_TYPES}
_NAMES: dict[type[Any], str] = {one: name for name, one in TYPES.items()}


def name_of(event: Event) -> str:
    """The name of this event: `set_laid`."""
    return _NAMES[type(event)]


def encode(event: Event) -> NewEvent:
    """The event as it is stored. The same event always gives the same bytes."""
    payload = to_message(event).SerializeToString(deterministic=True)
    return NewEvent(_NAMES[type(event)], SCHEMA, payload)


def decode(type_: str, schema: int, payload: bytes) -> Event:
    """The event that was stored; raises `UnknownEvent` for a type, schema or payload that cannot be read."""
    type_, payload = _upcast(type_, schema, payload)
    event_type = TYPES.get(type_)
    if event_type is None:
        raise UnknownEvent(type_)
    plan = _plan(event_type)
    try:
        event: Event = _from_message(plan, plan.message.FromString(payload))
    except (DecodeError, NotCards, KeyError) as error:
        raise UnknownEvent(type_) from error
    return event


def to_message(value: Any) -> Any:
    """A dataclass or named tuple as the protobuf message of the same name, whose type the caller knows."""
    return _to_message(_plan(type(value)), value)


def from_message(value_type: type[Any], message: Message) -> Any:
    """The value of this type that a message of the same name carries."""
    return _from_message(_plan(value_type), message)


def state_hash(state: object) -> str:
    """A fingerprint of a frozen value, the same in every process and Python version."""
    return hashlib.sha256(repr(_canonical(state)).encode()).hexdigest()


def _upcast(type_: str, schema: int, payload: bytes) -> tuple[str, bytes]:
    """Bring an old shape up to the present one. There is only one shape so far."""
    if schema != SCHEMA:
        raise UnknownEvent(f"{type_} schema {schema}")
    return type_, payload


def _to_message(plan: _Plan, value: Any) -> Message:
    filled: dict[str, Any] = {}
    for name, form, optional in plan.slots:
        content = getattr(value, name)
        # An empty value is what an absent field means, unless absence itself means something.
        if content or (optional and content is not None):
            filled[name] = content if form.to is _same else form.to(content)
    return plan.message(**filled)


def _from_message(plan: _Plan, message: Message) -> Any:
    return plan.make(
        *[
            None if optional and not message.HasField(name) else form.back(getattr(message, name))
            for name, form, optional in plan.slots
        ]
    )


def _plan(value_type: type) -> _Plan:
    found = _PLANS.get(value_type)
    if found is None:
        found = _PLANS[value_type] = _made_plan(value_type)
    return found


def _made_plan(value_type: type) -> _Plan:
    message = _message_named(value_type.__name__)
    hints = get_type_hints(value_type)
    slots = tuple(
        _slot(name, hints[name], message.DESCRIPTOR.fields_by_name[name]) for name in _field_names(value_type)
    )
    return _Plan(value_type, message, slots)


def _field_names(value_type: Any) -> tuple[str, ...]:
    if is_dataclass(value_type):
        return tuple(one.name for one in fields(value_type))
    return tuple(value_type._fields)


def _message_named(name: str) -> type[Message]:
    found: type[Message] = next(getattr(file, name) for file in _PROTO_FILES if hasattr(file, name))
    return found


def _slot(name: str, hint: Any, field: Any) -> _Slot:
    inner = _without_none(hint)
    optional = inner is not hint
    if optional and get_origin(inner) is tuple:
        return _Slot(name, _wrapped(inner, field.message_type), optional)
    return _Slot(name, _form(inner, field), optional)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in {Union, UnionType}:
        return hint
    rest = [one for one in get_args(hint) if one is not NoneType]
    return rest[0] if len(rest) == 1 else hint


def _form(hint: Any, field: Any) -> _Form:
    if hint is Cards:
        return _Form(text, parse)
    if hint is Faces:
        return _Form(faces_text, _parse_faces)
    if get_origin(hint) is tuple:
        return _sequence(hint, field)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enum(hint, field.enum_type)
    if field.message_type is not None:
        plan = _plan(hint)
        return _Form(partial(_to_message, plan), partial(_from_message, plan))
    return _Form(_same, _same)


def _same(value: Any) -> Any:
    return value


def _parse_faces(written: str) -> Faces:
    return Faces(parse_faces(written))


def _sequence(hint: Any, field: Any) -> _Form:
    item = get_args(hint)[0]
    if item == _PAIR:
        return _Form(_to_counts, _from_counts)
    if _without_none(item) is not item:
        return _Form(_to_hands, _from_hands)
    form = _form(item, field)
    if form.to is _same:
        return _Form(list, tuple)
    return _Form(lambda many: [form.to(one) for one in many], lambda many: tuple([form.back(one) for one in many]))


def _to_counts(pairs: PerRank) -> list[Message]:
    return [variant_pb2.RankCount(rank=rank, count=count) for rank, count in pairs]


def _from_counts(counts: Any) -> PerRank:
    return tuple((one.rank, one.count) for one in counts)


def _to_hands(hands: Hands) -> list[Message]:
    return [event_pb2.Hand() if hand is None else event_pb2.Hand(cards=text(hand)) for hand in hands]


def _from_hands(hands: Any) -> Hands:
    return tuple([parse(hand.cards) if hand.HasField("cards") else None for hand in hands])


def _wrapped(hint: Any, descriptor: Any) -> _Form:
    """A sequence that may be absent travels in a message with one repeated field."""
    message = _message_named(descriptor.name)
    (field,) = descriptor.fields
    form = _form(hint, field)
    return _Form(
        lambda many: message(**{field.name: form.to(many)}),
        lambda wrapper: form.back(getattr(wrapper, field.name)),
    )


def _enum(enum: type[StrEnum], descriptor: Any) -> _Form:
    """A word travels as the protobuf number of the same name."""
    prefix = _snake(descriptor.name).upper()
    numbers = {one: descriptor.values_by_name[f"{prefix}_{one.name}"].number for one in enum}
    words = {number: one for one, number in numbers.items()}
    return _Form(numbers.__getitem__, words.__getitem__)


def _canonical(value: object) -> object:
    if isinstance(value, StrEnum):
        return str(value)
    if is_dataclass(value):
        return (type(value).__name__, *(_canonical(getattr(value, one.name)) for one in fields(value)))
    if isinstance(value, tuple):
        return tuple(_canonical(one) for one in value)
    if isinstance(value, frozenset | dict):
        pairs = value.items() if isinstance(value, dict) else value
        return tuple(sorted(_canonical(one) for one in pairs))  # type: ignore[type-var]
    return value
