import tomllib
from ipaddress import ip_address
from urllib.parse import urlsplit

from tests.architecture.sources import ROOT


def test_the_lock_names_one_public_index_and_its_files_alone() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    sources = {package["source"].get("registry") for package in packages if package["name"] != "gouji"}
    files = [file for package in packages for file in [package.get("sdist", {}), *package.get("wheels", [])] if file]
    hosts = {urlsplit(file["url"]).netloc for file in files}

    assert len(sources) == 1
    assert len(hosts) == 1
    assert all(_is_public(url) for url in (*sources, *(file["url"] for file in files)))


def _is_public(url: str) -> bool:
    """Over https, at a name of the public net: no port, no address, no bare host."""
    parts = urlsplit(url)
    return parts.scheme == "https" and parts.port is None and "." in parts.netloc and not _is_address(parts.netloc)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
