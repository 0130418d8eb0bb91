"""An engine that can reach its database but not the bus must not sit on its shards."""

from pathlib import Path

import psycopg
import pytest

from tests.chaos.harness.crews import Club
from tests.chaos.harness.site import Site
from tests.support.engine_bench import eventually

pytestmark = pytest.mark.timeout(300)


def leaders(site: Site) -> int:
    with psycopg.connect(site.dsn) as owner:
        ((count,),) = owner.execute("select count(distinct owner) from engine.lease where until > now()").fetchall()
    return int(count)


async def test_the_tables_of_an_engine_that_is_cut_off_from_the_bus_move_to_the_other(folder: Path) -> None:
    async with Site(folder) as site:
        await site.start()
        club = Club(site, seed=1)
        club.come(4)

        async def both_lead() -> bool:
            return leaders(site) == 2 and len(club.book.said) > 50

        async def one_leads() -> bool:
            return leaders(site) == 1

        async def play_goes_on() -> bool:
            return len(club.book.said) > said + 200

        await eventually(both_lead, 60)
        site.proxies["engine1>nats"].swallow()
        await eventually(one_leads, 30)
        said = len(club.book.said)
        await eventually(play_goes_on, 60)
        assert leaders(site) == 1

        site.proxies["engine1>nats"].heal()
        await eventually(both_lead, 30)
        await club.leave()
        assert site.outcries() == []
