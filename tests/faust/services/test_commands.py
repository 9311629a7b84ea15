"""What a worker says of itself."""

from __future__ import annotations

from typing import Any

import pytest

import potok.faust as faust
from potok.faust.services import commands


@pytest.fixture(autouse=True)
def no_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logs of the tests stay as they are."""
    monkeypatch.setattr(commands, "write_logs", lambda level: None)


def test_a_worker_says_what_it_does_at_any_level(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    app = faust.App("shop", broker=f"file:{tmp_path}")

    @app.timer(3600.0)
    async def look() -> None: ...

    @app.task
    async def begin() -> None: ...

    app.main(["worker", "-l", "critical", "--until-end", "--without-web"])
    assert capsys.readouterr().err.splitlines() == [
        f'app "shop" starts on file:{tmp_path}',
        'app "shop" runs (1 timer, 1 task); Ctrl-C stops it',
        'app "shop" has read all records',
    ]


def test_a_worker_interrupted_at_start_exits_silently(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "started", interrupted)
    app = faust.App("shop", broker=f"file:{tmp_path}")
    with pytest.raises(SystemExit) as ended:
        app.main(["worker", "--without-web"])
    assert ended.value.code == 130
    assert len(capsys.readouterr().err.splitlines()) == 1
