"""Every shape that was ever stored is still read, and means what it meant."""

from pathlib import Path

import pytest

from engine.service import codec

SAMPLES = sorted((Path(__file__).parent / "stored").glob("schema_*.txt"))
LINES = [line for file in SAMPLES for line in file.read_text().splitlines()]


@pytest.mark.parametrize("line", LINES, ids=[" ".join(line.split()[:2]) for line in LINES])
def test_a_stored_event_means_what_it_meant(line: str) -> None:
    type_, schema, payload, fingerprint = line.split()

    event = codec.decode(type_, int(schema), b"" if payload == "-" else bytes.fromhex(payload))

    assert codec.state_hash(event) == fingerprint


def test_every_kind_of_event_has_a_sample_of_its_present_shape() -> None:
    sampled = {tuple(line.split()[:2]) for line in LINES}

    assert {(type_, str(codec.SCHEMA)) for type_ in codec.TYPES} <= sampled
