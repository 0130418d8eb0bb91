import tomllib
from urllib.parse import urlsplit

from tests.architecture.sources import ROOT

FILES = "files.pythonhosted.org"
INDEX = "https://pypi.org/simple"


def test_the_lock_names_the_public_index_alone() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    sources = [package["source"] for package in packages if package["name"] != "gouji"]
    files = [file for package in packages for file in [package.get("sdist", {}), *package.get("wheels", [])] if file]

    assert {source.get("registry") for source in sources} == {INDEX}
    assert {urlsplit(file["url"]).netloc for file in files} == {FILES}
