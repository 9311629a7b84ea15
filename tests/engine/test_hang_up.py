from __future__ import annotations

import pytest

from potok.engine.hang_up import print_unless_hung_up, show_unless_hung_up


@pytest.mark.parametrize(
    ("error", "printed"), [(BrokenPipeError(), False), (ConnectionResetError(), False), (OSError("disk"), True)]
)
def test_only_a_hang_up_is_not_printed(error: OSError, printed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    show_unless_hung_up(type(error), error, None)
    assert ("disk" in capsys.readouterr().err) == printed
    try:
        raise error
    except OSError:
        print_unless_hung_up()
    assert ("disk" in capsys.readouterr().err) == printed
