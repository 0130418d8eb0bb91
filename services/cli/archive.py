"""`gouji archive`: days of the log as files, and room in the database.

Law: runs `engine.store.retention` as the owner and `engine.store.archive` on files, and tells what they did.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.output import ERR, OUT, fail, print_json

if TYPE_CHECKING:
    from engine.store.archive import Header
    from engine.store.retention import Archived

KEPT_DAYS = 30
"""As long as facts stay on the bus."""

DAY = "%Y-%m-%d"

app = typer.Typer(
    help="Days of the log as files: written, proved, and dropped from the database.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for each file.")]


@app.command("write")
def write(
    dsn: Annotated[str, typer.Option(envvar="GOUJI_OWNER_DSN", help="The database, as the owner of its schemas.")],
    to: Annotated[Path, typer.Option(help="The folder of the archives.", exists=True, file_okay=False, writable=True)],
    before: Annotated[
        datetime | None, typer.Option(help="Days before this one (UTC); 30 days ago if left out.", formats=[DAY])
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop each day from the database once it is proved.")] = False,
    as_json: AsJson = False,
) -> None:
    """Archive each settled day; days that are archived already are proved again. Exit 1 when a day was left."""
    import psycopg

    from engine.store import retention

    today = datetime.now(UTC).date()
    limit = before.date() if before else today - timedelta(days=KEPT_DAYS)
    try:
        days = retention.days_before(dsn, limit, today)
        done = [_archive(dsn, day.day, to, drop=drop, as_json=as_json) for day in days]
    except psycopg.OperationalError as failure:
        fail(f"the database did not do it, run this again: {failure}")
    raise typer.Exit(int(not all(done)))


@app.command("verify")
def verify(
    files: Annotated[list[Path], typer.Argument(help="Archives.", exists=True, dir_okay=False)], as_json: AsJson = False
) -> None:
    """Prove archives from themselves: every byte, every table, every hash chain. Exit 1 when one is damaged."""
    wrong = {file: complaint for file in files if (complaint := _complaint(file))}
    for file in files:
        if as_json:
            print_json({"file": str(file), "damage": wrong.get(file)})
        else:
            OUT.print(f"{file}: {wrong.get(file, 'proved')}", markup=False)
    raise typer.Exit(int(bool(wrong)))


@app.command("list")
def list_(
    folder: Annotated[Path, typer.Argument(help="The folder of the archives.", exists=True, file_okay=False)],
    as_json: AsJson = False,
) -> None:
    """What each archive says of itself, unproved, oldest day first."""
    from engine.store.archive import DamagedArchive, files_in, read_header

    is_whole = True
    for path in files_in(folder):
        try:
            with path.open("rb") as file:
                _tell(path, read_header(file), as_json=as_json)
        except DamagedArchive as damage:
            is_whole = False
            ERR.print(f"{path}: {damage}", markup=False)
    raise typer.Exit(int(not is_whole))


def _archive(dsn: str, day: date, folder: Path, *, drop: bool, as_json: bool) -> bool:
    """Whether the day is done; what stands in the way is told."""
    from engine.store.archive import DamagedArchive
    from engine.store.retention import ArchiveDisagrees, NotSettled, archive_day, drop_day

    try:
        archived = archive_day(dsn, day, folder)
        if drop:
            drop_day(dsn, day, folder)
    except (NotSettled, ArchiveDisagrees, DamagedArchive) as reason:
        ERR.print(f"left as it is: {reason}", markup=False)
        return False
    _tell(archived.path, archived.header, as_json=as_json, done=_done(archived, is_dropped=drop))
    return True


def _done(archived: Archived, *, is_dropped: bool) -> str:
    return ("written" if archived.is_new else "proved") + (", dropped" if is_dropped else "")


def _complaint(file: Path) -> str:
    from engine.store.archive import ArchiveReader, DamagedArchive

    try:
        for _ in ArchiveReader.open(file).verify():
            pass
    except DamagedArchive as damage:
        return str(damage)
    return ""


def _tell(path: Path, header: Header, *, as_json: bool, done: str = "") -> None:
    size = path.stat().st_size
    if as_json:
        row = {"file": str(path), "day": header.day, "tables": header.tables, "events": header.events, "bytes": size}
        print_json(row | ({"done": done} if done else {}))
        return
    OUT.print(f"{path}  {header.tables} tables  {header.events} events  {size} bytes  {done}".rstrip(), markup=False)
