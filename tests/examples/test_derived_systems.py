"""The derived systems of `examples/` follow real servers, and show what their page says."""

from __future__ import annotations

import importlib.util
import uuid
from pathlib import Path
from typing import Any

import pytest

from servers import PostgresServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "derived_systems"


def test_every_system_follows_the_database(
    spark: Any,
    logical_postgres: PostgresServer,
    redis_url: str,
    opensearch_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = importlib.util.spec_from_file_location("derived_systems_example", EXAMPLE / "app.py")
    assert spec is not None and spec.loader is not None
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    shop = logical_postgres.create_database(f"shop_{uuid.uuid4().hex[:8]}")
    urls = {"SHOP_URL": shop, "REDIS_URL": redis_url, "OPENSEARCH_URL": opensearch_url}
    app.main(str(tmp_path / "log"), str(tmp_path / "lake"), urls)
    page = (EXAMPLE / "README.md").read_text()
    assert capsys.readouterr().out == page.partition("```text\n")[2].partition("```")[0]
