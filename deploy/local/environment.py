"""What each process of a local installation is told: addresses, accounts and secrets, as environment variables.

Law: the only place that spells the settings of services for embedded servers. A service is given what its role needs and
no other's secret.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy import schemas
from deploy.local.nats_server import NatsServer
from deploy.local.postgres_server import PostgresServer
from deploy.local.process import LOOPBACK, free_port
from deploy.local.secrets_file import kept, kept_text, write_private
from engine.runtime.identity import new_keys, public_key_of

SERVICES = ("engine", "table", "matchmaking", "ranking")
TOGETHER = "together"
"""The process that is table service and engine in one: at the table service's address, with the engine's accounts."""
DATABASE = "gouji"
OPERATOR = "operator.env"
TOKEN_KEY = "token_key.pem"  # noqa: S105 -- a file's name

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHASHSEED", "TMPDIR", "VIRTUAL_ENV")
_OWN_SETTINGS = "GOUJI_"


def token_key(folder: Path) -> bytes:
    """The private key (PEM) that signs this installation's tokens, made when first asked for."""
    return kept_text(folder / TOKEN_KEY, _new_token_key).encode()


def _new_token_key() -> str:
    private, _ = new_keys()
    return private.decode()


@dataclass(frozen=True, slots=True)
class Installation:
    """One installation in one folder. `addresses`: host and port by service, `processes`: what serves them."""

    folder: Path
    postgres: PostgresServer
    nats: NatsServer
    addresses: Mapping[str, str]
    database_passwords: Mapping[str, str]
    token_public_key: str
    settings: Mapping[str, str]
    processes: tuple[str, ...] = SERVICES

    @classmethod
    def of(
        cls,
        folder: Path,
        postgres: PostgresServer,
        nats: NatsServer,
        ports: Mapping[str, int],
        settings: Mapping[str, str],
        *,
        together: bool = False,
    ) -> Installation:
        """Read the folder's secrets, make those it lacks, and choose a port for each service that is given none."""
        addresses = {name: f"{LOOPBACK}:{ports.get(name) or free_port()}" for name in SERVICES}
        processes: tuple[str, ...] = SERVICES
        if together:
            addresses["engine"] = addresses["table"]
            processes = (TOGETHER, *(name for name in SERVICES if name not in ("engine", "table")))
        passwords = kept(folder / "database_passwords.json", schemas.SCHEMAS)
        public_key = public_key_of(token_key(folder)).decode()
        return cls(folder, postgres, nats, addresses, passwords, public_key, settings, processes)

    def database(self) -> str:
        """The dsn of the installation's database as its owner, made when there is none."""
        self.postgres.ensure_database(DATABASE)
        return self.postgres.dsn(DATABASE)

    def address_of(self, process: str) -> str:
        """Where this process listens."""
        return self.addresses["table" if process == TOGETHER else process]

    def settings_of(self, process: str) -> dict[str, str]:
        """The whole environment of a process."""
        account = "engine" if process == TOGETHER else process
        inherited = {name: value for name, value in os.environ.items() if _is_inherited(name)}
        listening = self._listening(self.address_of(process))
        return inherited | listening | self._bus(account) | self._postgres(account) | dict(self.settings)

    def write_operator_settings(self) -> None:
        """Leave what an operator's commands need in `operator.env`, for a shell to read."""
        values = {
            "GOUJI_OWNER_DSN": self.database(),
            "GOUJI_NATS_SERVERS": self.nats.address,
            "GOUJI_NATS_USER": "operator",
            "GOUJI_NATS_PASSWORD": self.nats.password("operator"),
        }
        lines = [f"{name}={shlex.quote(value)}\n" for name, value in (values | self._postgres("engine")).items()]
        write_private(self.folder / OPERATOR, "".join(lines))

    def _listening(self, address: str) -> dict[str, str]:
        host, port = address.split(":")
        return {
            "GOUJI_LOG_FORMAT": "json",
            "GOUJI_GRPC_HOST": host,
            "GOUJI_GRPC_PORT": port,
            "GOUJI_TOKEN_PUBLIC_KEYS": self.token_public_key,
        }

    def _bus(self, account: str) -> dict[str, str]:
        return {
            "GOUJI_NATS_SERVERS": self.nats.address,
            "GOUJI_NATS_USER": account,
            "GOUJI_NATS_PASSWORD": self.nats.password(account),
        }

    def _postgres(self, service: str) -> dict[str, str]:
        if service not in self.database_passwords:
            return {}
        password = self.database_passwords[service]
        return {"GOUJI_POSTGRES_DSN": self.postgres.dsn(DATABASE, user=schemas.role(service), password=password)}


def _is_inherited(name: str) -> bool:
    return name in _INHERITED or name.startswith((_OWN_SETTINGS, "GRPC_"))
