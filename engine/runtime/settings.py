"""Settings from the environment: `GOUJI_<NAME>`, and `GOUJI_<NAME>_FILE` for what is better kept in a file.

Law: read once, in `main.py`, and handed on as plain values. A service joins the parts it needs and adds its own:
`class EngineSettings(ProcessSettings, BusSettings, PostgresSettings)`. A secret is a `SecretStr`: it comes from the
environment or a file, never from a default, and is not shown when settings are printed.
"""

from __future__ import annotations

import os
import ssl
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from engine.runtime.addresses import Network
from engine.runtime.logs import LogFormat

PREFIX = "GOUJI_"


class SettingsFiles(PydanticBaseSettingsSource):
    """Reads a field from the file that `GOUJI_<NAME>_FILE` names, without the line end at its end."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the field's value, its name and that it is no JSON; raises `OSError` when the file is not readable."""
        del field
        path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
        value = Path(path).read_text(encoding="utf-8").rstrip("\r\n") if path else None
        return value, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Collect all fields that have a file."""
        fields = self.settings_cls.model_fields
        values = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in values.items() if value is not None}


class ProcessSettings(BaseSettings):
    """What every process has. `grace`: seconds that a stop may take."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, str_strip_whitespace=True)

    environment: Literal["development", "production"] = "development"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: LogFormat = "auto"
    metrics_host: str = "127.0.0.1"
    metrics_port: int = Field(default=0, ge=0, le=65535)
    grace: float = Field(default=20.0, gt=0)

    @property
    def is_production(self) -> bool:
        """Whether people rely on this process."""
        return self.environment == "production"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let arguments come before the environment, and the environment before files."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, SettingsFiles(settings_cls)


class BusSettings(ProcessSettings):
    """How to reach NATS. `nats_servers` is a comma-separated list; the replicas are those of each stream."""

    nats_servers: str = "nats://127.0.0.1:4222"
    nats_user: str | None = None
    nats_password: SecretStr | None = None
    nats_ca: Path | None = None
    nats_certificate: Path | None = None
    nats_key: Path | None = None
    nats_replicas: int = Field(default=1, ge=1, le=5)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.nats_certificate is None) != (self.nats_key is None):
            raise ValueError("a certificate for the bus needs its key, and a key its certificate")
        if self.nats_certificate is not None and self.nats_ca is None:
            raise ValueError("a certificate for the bus needs the authority of its servers")
        return self

    def nats_tls(self) -> ssl.SSLContext | None:
        """Trust only this authority's servers; None for a plain connection."""
        if self.nats_ca is None:
            return None
        context = ssl.create_default_context(cafile=self.nats_ca)
        if self.nats_certificate is not None:
            context.load_cert_chain(self.nats_certificate, self.nats_key)
        return context


class PostgresSettings(ProcessSettings):
    """How to reach Postgres: a libpq connection string, and the bounds of the pool."""

    postgres_dsn: SecretStr
    postgres_pool_min: int = Field(default=1, ge=0)
    postgres_pool_max: int = Field(default=8, ge=1)


class ListenSettings(ProcessSettings):
    """Where to listen, and with which certificate; what is half set is refused rather than served plainly."""

    grpc_host: str = "127.0.0.1"
    grpc_port: int = Field(default=0, ge=0, le=65535)
    grpc_certificate: Path | None = None
    grpc_key: Path | None = None
    grpc_client_ca: Path | None = None

    @model_validator(mode="after")
    def _has_whole_tls(self) -> Self:
        if (self.grpc_certificate is None) != (self.grpc_key is None):
            raise ValueError("a certificate needs its key, and a key its certificate")
        if self.grpc_client_ca is not None and self.grpc_certificate is None:
            raise ValueError("an authority for clients needs a certificate of our own")
        return self


class GrpcSettings(ListenSettings):
    """How to serve players. Rates are per second; a burst is what may come at once."""

    grpc_max_calls: int = Field(default=10_000, ge=1)
    token_audience: str = "gouji"  # noqa: S105 - a name
    token_public_keys: str
    """PEM blocks of every key that may sign tokens, one after the other."""
    player_rate: float = Field(default=20.0, gt=0)
    player_burst: int = Field(default=40, ge=1)
    trusted_proxies: str = ""
    """Networks (CIDR, comma-separated) whose `x-forwarded-for` is believed."""
    address_rate: float = Field(default=200.0, gt=0)
    address_burst: int = Field(default=400, ge=1)

    def proxies(self) -> tuple[Network, ...]:
        """Read the networks; raises `ValueError`."""
        return tuple(ip_network(text.strip()) for text in self.trusted_proxies.split(",") if text.strip())


def pem_blocks(text: str) -> list[bytes]:
    """Split a text into its PEM blocks."""
    end = "-----END PUBLIC KEY-----"
    return [f"{block}{end}\n".encode() for block in text.split(end)[:-1]]
