"""Who is asking: signed tokens (JWT, EdDSA) and the identity of the call that is being served.

Law: tokens and roles only; no transport. A token names one audience, expires soon and carries one role; a role may do
what it is named for and nothing else. Several keys may be trusted at once, so that keys can be changed without signing
anybody out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import UUID

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from engine.runtime.clock import Clock
from engine.runtime.faults import PermissionDenied, Unauthenticated
from engine.runtime.uuid7 import uuid7

_ALGORITHM = "EdDSA"
_ISSUER = "gouji"
_LEEWAY_MS = 5_000
_LONGEST_SUBJECT = 128
_LATEST_EXPIRY = 1 << 35
_REMEMBERED = 4096
_CLAIMS = ["sub", "aud", "exp", "iat", "iss", "jti", "role"]


class Role(StrEnum):
    """What a token lets its bearer do."""

    PLAYER = "player"
    SERVICE = "service"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller: an opaque id, and the token that says so."""

    subject: str
    role: Role
    token_id: UUID
    expires_at_ms: int


_current: ContextVar[Identity | None] = ContextVar("identity", default=None)


def current() -> Identity:
    """Tell who makes the call that is being served; raises `Unauthenticated` outside of one."""
    identity = _current.get()
    if identity is None:
        raise Unauthenticated
    return identity


def enter(identity: Identity) -> None:
    """Serve the rest of this task on behalf of the caller."""
    _current.set(identity)


def require(*roles: Role) -> Identity:
    """Tell who makes the call; raises `PermissionDenied` unless his role is one of these."""
    identity = current()
    if identity.role not in roles:
        raise PermissionDenied(reason="ROLE_REQUIRED", metadata={"roles": ",".join(roles)})
    return identity


class Minter:
    """Signs tokens with a private key (PEM, Ed25519)."""

    def __init__(self, private_key: bytes, audience: str, clock: Clock) -> None:
        key = load_pem_private_key(private_key, password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise TypeError("the signing key is not Ed25519")
        self._key = key
        self._key_id = _key_id(key.public_key())
        self._audience = audience
        self._clock = clock

    def mint(self, subject: str, role: Role, lifetime_ms: int) -> str:
        """Sign a token that is valid from now on for so many milliseconds."""
        now_ms = self._clock.now_ms()
        claims = {
            "iss": _ISSUER,
            "sub": subject,
            "aud": self._audience,
            "role": role.value,
            "iat": now_ms // 1000,
            "exp": (now_ms + lifetime_ms) // 1000,
            "jti": str(uuid7(now_ms)),
        }
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM, headers={"kid": self._key_id})


class Verifier:
    """Reads tokens that one of the public keys (PEM, Ed25519) has signed for this audience.

    A caller shows the same token with every call: what it says, and that it is signed, is remembered; its expiry is not.
    """

    def __init__(self, public_keys: Sequence[bytes], audience: str, clock: Clock) -> None:
        keys = [_public_key(pem) for pem in public_keys]
        self._keys = {_key_id(key): key for key in keys}
        self._audience = audience
        self._clock = clock
        self._signed = lru_cache(_REMEMBERED)(self._read)

    def verify(self, token: str) -> Identity:
        """Tell whom the token names; raises `Unauthenticated` with the reason `TOKEN_EXPIRED` or `TOKEN_INVALID`."""
        identity = self._signed(token)
        if identity.expires_at_ms + _LEEWAY_MS <= self._clock.now_ms():
            raise Unauthenticated("The token has expired.", reason="TOKEN_EXPIRED")
        return identity

    def _read(self, token: str) -> Identity:
        claims = self._claims(token)
        try:
            return _identity(claims)
        except (KeyError, TypeError, ValueError, OverflowError) as malformed:
            raise Unauthenticated("The token is not valid.", reason="TOKEN_INVALID") from malformed

    def _claims(self, token: str) -> Mapping[str, Any]:
        try:
            key = self._keys[jwt.get_unverified_header(token)["kid"]]
            return jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=self._audience,
                issuer=_ISSUER,
                # Expiry is judged by our own clock, see `verify`.
                options={"require": _CLAIMS, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
            )
        except (jwt.InvalidTokenError, KeyError, TypeError) as invalid:
            raise Unauthenticated("The token is not valid.", reason="TOKEN_INVALID") from invalid


def new_keys() -> tuple[bytes, bytes]:
    """Make a key pair: private and public key as PEM."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_key_of(private_key: bytes) -> bytes:
    """Tell the public key (PEM) that belongs to a private one."""
    key = load_pem_private_key(private_key, password=None)
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _identity(claims: Mapping[str, Any]) -> Identity:
    subject = claims["sub"]
    expires_at = int(claims["exp"])
    if not (0 < len(subject) <= _LONGEST_SUBJECT and 0 <= expires_at < _LATEST_EXPIRY):
        raise ValueError("claims")
    return Identity(subject, Role(claims["role"]), UUID(claims["jti"]), expires_at * 1000)


def _public_key(pem: bytes) -> Ed25519PublicKey:
    key = load_pem_public_key(pem)
    if not isinstance(key, Ed25519PublicKey):
        raise TypeError("the verifying key is not Ed25519")
    return key


def _key_id(key: Ed25519PublicKey) -> str:
    return sha256(key.public_bytes_raw()).hexdigest()[:16]
