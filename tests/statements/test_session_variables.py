from __future__ import annotations

from potok.statements.session_variables import SessionVariables
from statements.playing import Play


class Counted(str):
    """A name that counts how often it is looked at."""

    looks = 0

    def upper(self) -> str:
        Counted.looks += 1
        return super().upper()


def test_a_name_has_no_case_and_keeps_its_last_spelling() -> None:
    variables = SessionVariables()
    variables["topic"] = "a"
    variables |= {"Topic": "b", "other": "c"}
    assert variables == {"Topic": "b", "other": "c"}
    variables.discard("TOPIC")
    variables.discard("nothing")
    del variables["other"]
    variables["OTHER"] = "d"
    assert variables == {"OTHER": "d"}


def test_a_variable_is_defined_without_a_look_at_the_others() -> None:
    variables = SessionVariables()
    for number in range(100):
        variables[Counted(f"name{number}")] = "x"
    Counted.looks = 0
    variables["one"] = "more"
    variables.discard("one")
    assert Counted.looks == 0


def test_define_and_undefine_find_a_variable_in_any_case(play: Play) -> None:
    play.session.execute("DEFINE a = '1'; DEFINE A = '2'; DEFINE b = '3';")
    assert play.session.variables == {"A": "2", "b": "3"}
    play.session.execute("UNDEFINE B;")
    assert play.session.variables == {"A": "2"}
