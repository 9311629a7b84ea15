"""A target that carries nothing out."""

from __future__ import annotations

from potok.cli.prompt.targets.target import Names, Target
from potok.sql.errors import UnknownName
from potok.sql.syntax import ast
from potok.statements.results import Done, Push, Result


class Recorded(Target):
    """Carries nothing out, and remembers what it was asked; `Push` stands for every query with EMIT."""

    def __init__(self, push: Push | None = None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._push = push
        self.open_dead_letters: dict[str, int] = {}

    def run(self, parsed: ast.Parsed) -> Result:
        self.asked.append(parsed.text)
        match parsed.statement:
            case ast.Drop(name="NOTHING"):
                raise UnknownName("there is no NOTHING", location=parsed.at).in_text(parsed.text)
            case ast.Query() if self._push is not None:
                return self._push
            case ast.Define(name=name, value=str(value)):
                self.variables[name] = value
        return Done("done")

    def names(self) -> Names:
        return Names()

    def status(self) -> str:
        return "nowhere"

    def start(self) -> None:
        self.asked.append("start")

    def settle(self) -> None:
        self.asked.append("settle")

    def dead_letters(self) -> dict[str, int]:
        return dict(self.open_dead_letters)

    def close(self) -> None: ...
