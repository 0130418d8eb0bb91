"""A standby that has every commit before it is acknowledged, and takes over when its primary is dead.

Law: PostgreSQL's own streaming replication, set up as its manual says; nothing of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import psycopg

from deploy.local import unprivileged
from deploy.local.postgres_server import PostgresServer, binaries
from deploy.local.process import POLL_S

PASSWORD_FILE = "owner_password"
BACKUP_S = 60


def follow(primary: PostgresServer, primary_folder: Path, folder: Path) -> PostgresServer:
    """Start a server in this folder that follows the primary, which from now on waits for it at every commit."""
    account = unprivileged.account()
    unprivileged.own_folder(folder, account)
    programs = unprivileged.reachable_binaries(binaries(), folder / "programs", account)
    backup = (programs / "pg_basebackup", "--dbname", primary.dsn(), "--pgdata", folder / "cluster")
    subprocess.run(
        [*backup, "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"],
        check=True,
        timeout=BACKUP_S,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
    )
    shutil.copy(primary_folder / PASSWORD_FILE, folder / PASSWORD_FILE)
    if account is not None:
        os.chown(folder / PASSWORD_FILE, account.uid, account.gid)
    standby = PostgresServer(folder)
    standby.start()
    _wait_for_standby(primary)
    return standby


def promote(standby: PostgresServer) -> None:
    """Let it take over."""
    with psycopg.connect(standby.dsn(), autocommit=True) as connection:
        assert connection.execute("select pg_promote()").fetchone() == (True,)


def _wait_for_standby(primary: PostgresServer) -> None:
    """Only from here on: a primary that already waits would wait for ever for what is still to come."""
    with psycopg.connect(primary.dsn(), autocommit=True) as connection:
        connection.execute("alter system set synchronous_standby_names = '*'")
        connection.execute("select pg_reload_conf()")
        while connection.execute("select sync_state from pg_stat_replication").fetchall() != [("sync",)]:
            time.sleep(POLL_S)
