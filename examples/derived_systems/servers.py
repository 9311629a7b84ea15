"""The servers of the example: those of the environment, or PostgreSQL and Redis of this machine, started for it."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

INSTALL = {
    "SHOP_URL": "PostgreSQL is not installed: sudo apt install postgresql, or set SHOP_URL to a database of yours "
    "with wal_level = logical",
    "REDIS_URL": "Redis is not installed: sudo apt install redis-server, or set REDIS_URL to a server of yours",
}


@contextmanager
def servers(directory: Path) -> Iterator[dict[str, str]]:
    """Return a URL for each server; start those that the environment does not name."""
    with ExitStack() as running:
        urls = {name: os.environ.get(name, "") for name in ("SHOP_URL", "REDIS_URL", "OPENSEARCH_URL")}
        if not urls["OPENSEARCH_URL"]:
            print("OPENSEARCH_URL is not set: there is no search index", file=sys.stderr)
        if not urls["SHOP_URL"]:
            urls["SHOP_URL"] = running.enter_context(_postgres(directory / "postgres"))
        if not urls["REDIS_URL"]:
            urls["REDIS_URL"] = running.enter_context(_redis())
        yield urls


@contextmanager
def _postgres(directory: Path) -> Iterator[str]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, program = _program("initdb", found, "SHOP_URL"), _program("postgres", found, "SHOP_URL")
    user = _unprivileged()
    directory.mkdir()
    directory.parent.chmod(0o755)
    if user:
        os.chown(directory, user["user"], user["group"])
    made = [initdb, "-D", str(directory / "data"), "-U", "shop", "--auth=trust", "--no-sync", "--encoding=UTF8"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=directory, **user)
    port = _free_port()
    words = [program, "-D", str(directory / "data"), "-p", str(port), "-k", str(directory)]
    words += ["-c", "listen_addresses=127.0.0.1", "-c", "wal_level=logical"]
    with _running(words, port, directory, user):
        yield f"postgresql://shop@127.0.0.1:{port}/postgres"


@contextmanager
def _redis() -> Iterator[str]:
    port = _free_port()
    words = [_program("redis-server", [], "REDIS_URL"), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with _running(words, port, Path.cwd(), {}):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def _running(words: list[str], port: int, directory: Path, user: dict[str, Any]) -> Iterator[None]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, cwd=directory, **quiet, **user)
    try:
        for _ in range(300):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        else:
            raise SystemExit(f"{words[0]} did not start")
        time.sleep(1)  # PostgreSQL listens before it lets anybody in.
        yield
    finally:
        process.terminate()
        process.wait()


def _program(name: str, places: list[Path], wanted: str) -> str:
    found = shutil.which(name) or next((str(place / name) for place in places if (place / name).exists()), None)
    if found is None:
        raise SystemExit(INSTALL[wanted])
    return found


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
