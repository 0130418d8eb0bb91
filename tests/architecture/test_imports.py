import sys

from importlinter.cli import lint_imports

from tests.architecture.sources import ROOT, sources

PURE = ("engine/rules", "engine/match")
PROTOBUF_FILES = {"wire.py", "codec.py", "servicer.py", "main.py"}


def test_every_import_contract_is_kept() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_the_game_imports_the_standard_library_alone() -> None:
    foreign = {
        f"{source.name}: {module}"
        for source in sources(*PURE)
        for module in source.imported()
        if module.split(".")[0] not in sys.stdlib_module_names
        and not module.startswith(("engine.rules", "engine.match"))
        and module != "engine"
    }

    assert not foreign


def test_protobuf_messages_appear_only_at_the_edges() -> None:
    strays = {
        f"{source.name}: {module}"
        for source in sources()
        for module in source.imported()
        if module.split(".")[0] == "gouji"
        and source.path.name not in PROTOBUF_FILES
        and not source.path.name.endswith("_client.py")
    }

    assert not strays
