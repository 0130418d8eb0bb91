"""Tokens: who may sign them, whom they name, how long they hold."""

from __future__ import annotations

import asyncio

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from engine.runtime import identity
from engine.runtime.clock import ManualClock
from engine.runtime.faults import PermissionDenied, Unauthenticated
from engine.runtime.identity import Identity, Minter, Role, Verifier, new_keys, public_key_of
from engine.runtime.uuid7 import uuid7

MINUTE_MS = 60_000
PRIVATE, PUBLIC = new_keys()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def minted(clock: ManualClock, role: Role = Role.PLAYER, subject: str = "ann") -> str:
    return Minter(PRIVATE, "gouji", clock).mint(subject, role, MINUTE_MS)


def refusal(token: str, clock: ManualClock, *keys: bytes) -> str:
    return refusal_of(Verifier(keys or [PUBLIC], "gouji", clock), token)


def refusal_of(verifier: Verifier, token: str) -> str:
    with pytest.raises(Unauthenticated) as refused:
        verifier.verify(token)
    return refused.value.reason


def forged(clock: ManualClock, **changes: object) -> str:
    """A token with a true signature and other claims; a claim that is None is left out."""
    token = minted(clock)
    claims = jwt.decode(token, options={"verify_signature": False}) | changes
    key = load_pem_private_key(PRIVATE, password=None)
    assert isinstance(key, Ed25519PrivateKey)
    kept = {name: claim for name, claim in claims.items() if claim is not None}
    return jwt.encode(kept, key, algorithm="EdDSA", headers={"kid": jwt.get_unverified_header(token)["kid"]})


@pytest.mark.parametrize("role", Role)
def test_a_token_names_its_bearer_and_his_role(clock: ManualClock, role: Role) -> None:
    who = Verifier([PUBLIC], "gouji", clock).verify(minted(clock, role))

    assert (who.subject, who.role, who.expires_at_ms) == ("ann", role, clock.now_ms() + MINUTE_MS)


def test_two_tokens_have_two_ids(clock: ManualClock) -> None:
    verifier = Verifier([PUBLIC], "gouji", clock)

    assert verifier.verify(minted(clock)).token_id != verifier.verify(minted(clock)).token_id


async def test_a_token_holds_until_it_expires(clock: ManualClock) -> None:
    token, verifier = minted(clock), Verifier([PUBLIC], "gouji", clock)

    await clock.advance(64)
    assert verifier.verify(token).subject == "ann"
    await clock.advance(2)
    assert refusal_of(verifier, token) == refusal(token, clock) == "TOKEN_EXPIRED"


def test_a_token_that_comes_again_is_not_read_again(clock: ManualClock) -> None:
    token, verifier = minted(clock), Verifier([PUBLIC], "gouji", clock)

    assert verifier.verify(token) is verifier.verify(token)


def test_old_and_new_keys_are_trusted_side_by_side(clock: ManualClock) -> None:
    private, public = new_keys()
    verifier = Verifier([PUBLIC, public], "gouji", clock)

    for key in (PRIVATE, private):
        assert verifier.verify(Minter(key, "gouji", clock).mint("ann", Role.PLAYER, MINUTE_MS)).subject == "ann"


def test_a_key_that_is_not_trusted_signs_nothing(clock: ManualClock) -> None:
    _, public = new_keys()

    assert refusal(minted(clock), clock, public) == "TOKEN_INVALID"


def test_a_token_for_another_audience_is_not_valid(clock: ManualClock) -> None:
    token = Minter(PRIVATE, "elsewhere", clock).mint("ann", Role.PLAYER, MINUTE_MS)

    assert refusal(token, clock) == "TOKEN_INVALID"


@pytest.mark.parametrize(
    "changes",
    [
        {"role": "owner"},
        {"role": None},
        {"role": 7},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": 10**400},
        {"aud": None},
        {"iss": "else"},
        {"sub": ""},
        {"sub": "x" * 129},
        {"sub": None},
        {"jti": "one"},
        {"jti": None},
    ],
    ids=str,
)
def test_a_signed_token_with_odd_claims_is_not_valid(clock: ManualClock, changes: dict[str, object]) -> None:
    assert refusal(forged(clock, **changes), clock) == "TOKEN_INVALID"


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é.é.é", "." * 1000, "eyJhbGciOiJub25lIn0.e30."])
def test_what_is_no_token_is_not_valid(clock: ManualClock, token: str) -> None:
    assert refusal(token, clock) == "TOKEN_INVALID"


def test_the_signature_cannot_be_left_out_or_made_with_the_public_key(clock: ManualClock) -> None:
    claims = jwt.decode(minted(clock), options={"verify_signature": False})
    key_id = jwt.get_unverified_header(minted(clock))["kid"]
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": key_id})
    by_public_key = jwt.encode(claims, "a shared secret of enough length", algorithm="HS256", headers={"kid": key_id})

    assert refusal(unsigned, clock) == "TOKEN_INVALID"
    assert refusal(by_public_key, clock) == "TOKEN_INVALID"


def test_any_changed_letter_breaks_a_token(clock: ManualClock) -> None:
    token = minted(clock)
    places = range(0, len(token) - 1, 7)  # the last letter has spare bits

    for place in places:
        other = "A" if token[place] != "A" else "B"
        assert refusal(token[:place] + other + token[place + 1 :], clock) == "TOKEN_INVALID"


def test_the_public_key_can_be_told_from_the_private_one() -> None:
    assert public_key_of(PRIVATE) == PUBLIC


async def test_the_identity_belongs_to_the_task_that_entered_it() -> None:
    async def serve(subject: str) -> str:
        identity.enter(Identity(subject, Role.PLAYER, uuid7(), 0))
        await asyncio.sleep(0)
        return identity.current().subject

    served = await asyncio.gather(*(asyncio.create_task(serve(subject)) for subject in ("ann", "bob")))

    assert served == ["ann", "bob"]
    with pytest.raises(Unauthenticated):
        identity.current()


async def test_a_role_that_is_required_must_be_held() -> None:
    async def serve() -> None:
        identity.enter(Identity("ann", Role.PLAYER, uuid7(), 0))
        assert identity.require(Role.PLAYER, Role.ADMIN).subject == "ann"
        with pytest.raises(PermissionDenied):
            identity.require(Role.ADMIN)

    await asyncio.create_task(serve())
