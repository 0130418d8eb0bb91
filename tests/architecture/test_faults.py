"""What nobody expected is never swallowed where it would be tried again for ever."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.sources import Function, Source, sources

BROAD = {"Exception", "BaseException"}

KNOWN = {
    "deploy/local/stack.py start": "stops what had started, and raises on",
    "engine/runtime/bus_memory.py _answering.answer": "tells the asker, and raises on",
    "engine/runtime/bus_memory.py _settling.settle": "the fact comes again, and is counted",
    "engine/runtime/bus_nats.py serve.answer": "tells the asker, and raises on",
    "engine/runtime/desk.py _work": "one item's fault, told; the others wait for it",
    "engine/runtime/facts_nats.py settling.settle": "the fact comes again, and is counted",
    "engine/runtime/grpc_server.py _is_ready": "who cannot tell is not ready",
    "engine/runtime/intake.py _release": "the fact stays where it is",
    "engine/runtime/intake.py take": "the fact comes again, and is parked after some times",
    "engine/runtime/interceptors.py _serve": "the table of statuses decides",
    "engine/runtime/lifecycle.py _start": "ends the process",
    "engine/runtime/lifecycle.py _stop_last": "the other parts have to be stopped too",
    "engine/service/inspection.py _folded": "is the finding",
    "engine/service/table.py _act_for_the_house": "sets the table aside",
    "engine/service/table.py _apply": "sets the table aside",
    "engine/service/table.py _on_doubt_forgotten": "sets the table aside, and raises on",
    "services/matchmaking/sweeper.py _guarded": "one queue's fault, counted; the others go on",
    "services/table/servicer.py _take_moves": "ends the stream",
}
"""Every place that catches whatever comes, and what it does with it."""


def test_every_place_that_catches_whatever_comes_is_known() -> None:
    found = {f"{source.name} {name}" for source in sources() for name, _ in _broad(source)}

    assert found == KNOWN.keys()


def test_no_loop_that_waits_and_tries_again_catches_whatever_comes() -> None:
    hiding = {
        f"{source.name}:{handler.lineno}"
        for source in sources()
        for loop in ast.walk(source.tree)
        if isinstance(loop, ast.While | ast.For | ast.AsyncFor) and _waits(loop)
        for handler in ast.walk(loop)
        if isinstance(handler, ast.ExceptHandler) and _is_broad(handler) and not _raises(handler)
    }

    assert not hiding


def test_a_loop_that_hides_a_fault_would_be_found() -> None:
    loop = ast.parse("while True:\n try:\n  work()\n except Exception:\n  pass\n await asyncio.sleep(1)").body[0]
    [handler] = [node for node in ast.walk(loop) if isinstance(node, ast.ExceptHandler)]

    assert _waits(loop)
    assert _is_broad(handler)
    assert not _raises(handler)


def _broad(source: Source) -> Iterator[tuple[str, ast.ExceptHandler]]:
    for name, function in _functions(source.tree, ""):
        for node in ast.iter_child_nodes(function):
            yield from ((name, handler) for handler in _handlers(node) if _is_broad(handler))


def _functions(node: ast.AST, outer: str) -> Iterator[tuple[str, Function]]:
    """Every function with its name, one within another as `outer.inner`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            name = f"{outer}.{child.name}" if outer else child.name
            yield name, child
            yield from _functions(child, name)
        else:
            yield from _functions(child, outer)


def _handlers(node: ast.AST) -> Iterator[ast.ExceptHandler]:
    """The handlers of a function's own body, not those of functions within it."""
    if isinstance(node, ast.ExceptHandler):
        yield node
    if not isinstance(node, Function):
        for child in ast.iter_child_nodes(node):
            yield from _handlers(child)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or (isinstance(one, ast.Name) and one.id in BROAD) for one in caught)


def _raises(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


def _waits(loop: ast.AST) -> bool:
    called = (node.func for node in ast.walk(loop) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Attribute) and function.attr == "sleep" for function in called)
