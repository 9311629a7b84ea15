"""The properties of every vertex of a topology: a name, a location in the user's program, and upstreams."""

from __future__ import annotations

from dataclasses import dataclass, fields

from potok.errors import Location


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A vertex of the topology. Nodes are compared by identity: two equal filters are two steps."""

    name: str
    at: Location | None

    @property
    def upstreams(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for name in _names_of(self):
            value = getattr(self, name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in value if isinstance(item, Node))
        return tuple(found)

    @property
    def upstream_output(self) -> int | None:
        """The number of the upstream's output that this vertex reads, if the upstream has several."""
        return None

    @property
    def kind(self) -> str:
        """The name of this vertex in descriptions: the class name in the spelling of the DSL."""
        name = type(self).__name__
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")

    @property
    def step(self) -> str:
        """The step that the user declared: all vertices that one DSL method creates share its name."""
        return self.name

    @property
    def stateful(self) -> bool:
        """Whether this vertex is a table that can be read by its name."""
        return False

    @property
    def keeps(self) -> bool:
        """Whether this vertex has cells, as a readable table or as internal state."""
        return self.stateful

    @property
    def timed(self) -> bool:
        """Whether this vertex does something when the watermark advances."""
        return False

    @property
    def gathers(self) -> bool:
        """Whether the records of all upstreams must be on the shard of their key."""
        return False

    @property
    def holds_back_ms(self) -> int:
        """How long a vertex delays records behind their stream time."""
        return 0

    @property
    def leaves_the_log(self) -> bool:
        """Whether this vertex sends records outside the log, where those of a replay would be visible too."""
        return False

    @property
    def is_table(self) -> bool:
        """Whether this vertex yields changes (before, after) rather than records."""
        return False


_names: dict[type[Node], tuple[str, ...]] = {}


def _names_of(node: Node) -> tuple[str, ...]:
    """Return the names of a node's fields, cached per class: every batch walks its topology many times."""
    names = _names.get(type(node))
    if names is None:
        names = _names[type(node)] = tuple(field.name for field in fields(node))
    return names
