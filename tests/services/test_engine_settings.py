import pytest
from pydantic import ValidationError

from engine.service.settings import EngineSettings
from engine.service.shards import LeaseTerms
from engine.service.waits import Spans


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOUJI_POSTGRES_DSN", "host=nowhere")


def settings() -> EngineSettings:
    return EngineSettings()  # type: ignore[call-arg]  # the environment gives what is missing


def test_without_further_settings_the_rule_books_times_hold() -> None:
    terms = settings().terms()

    assert terms.leases == LeaseTerms(ttl_ms=6000, renew_ms=2000, want=256)
    assert terms.spans == Spans()
    assert (terms.spans.turn_ms, terms.spans.window_ms) == (20_000, 5_000)


def test_every_start_has_a_name_of_its_own() -> None:
    assert settings().terms().owner != settings().terms().owner


def test_a_lease_that_one_lost_renewal_would_cost_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOUJI_LEASE_TTL_MS", "3000")

    with pytest.raises(ValidationError, match="two renewals"):
        settings()


@pytest.mark.parametrize(("name", "value"), [("TURN_MS", "0"), ("SHARDS_AT_MOST", "257"), ("MAILBOX", "0")])
def test_a_setting_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"GOUJI_{name}", value)

    with pytest.raises(ValidationError):
        settings()
