"""Draw the pictures of the documentation: time axes with records, and diagrams of boxes and arrows.

`python -m docs.drawings` writes them; a test compares the files with this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
WIDTH, LEFT, ROW = 720, 110, 30

STYLE = """
text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2937 }
.small { font-size: 11px; fill: #6b7280 }
.axis { stroke: #9ca3af } .bar { fill: #dbeafe; stroke: #2563eb } .over { fill: #e5e7eb; stroke: #9ca3af }
.dot { fill: #2563eb } .other { fill: #d97706 } .late { stroke: #dc2626; stroke-width: 2 }
.link { stroke: #059669; fill: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .small { fill: #9ca3af } .bar { fill: #1e3a8a; stroke: #60a5fa }
  .over { fill: #374151; stroke: #6b7280 } .dot { fill: #60a5fa } .other { fill: #fbbf24 }
}
"""


@dataclass
class Drawing:
    """A time axis in seconds from left to right, and rows below each other."""

    title: str
    seconds: int
    rows: int
    parts: list[str] = field(default_factory=list)

    def x(self, second: float) -> float:
        return LEFT + second * (WIDTH - LEFT - 30) / self.seconds

    def y(self, row: float) -> float:
        return 34 + row * ROW

    def label(self, row: float, text: str) -> None:
        self.parts.append(f'<text x="8" y="{self.y(row) + 4:.0f}">{text}</text>')

    def record(self, row: float, second: float, text: str, kind: str = "dot") -> None:
        x, y = self.x(second), self.y(row)
        self.parts.append(f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="6"/>')
        self.parts.append(f'<text class="small" x="{x + 9:.0f}" y="{y + 4:.0f}">{text}</text>')

    def late(self, row: float, second: float, text: str) -> None:
        x, y = self.x(second), self.y(row)
        cross = f"M{x - 5:.0f} {y - 5:.0f}l10 10m0-10l-10 10"
        self.parts.append(f'<path class="late" d="{cross}"/>')
        self.parts.append(f'<text class="small" x="{x + 9:.0f}" y="{y + 4:.0f}">{text}</text>')

    def bar(self, row: float, start: float, end: float, text: str, kind: str = "bar") -> None:
        x, y, width = self.x(start), self.y(row) - 10, self.x(end) - self.x(start)
        self.parts.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{max(width, 4):.0f}" height="20" rx="4"/>'
        )
        self.parts.append(f'<text class="small" x="{x + 6:.0f}" y="{y + 14:.0f}">{text}</text>')

    def link(self, row: float, second: float, to_row: float, to_second: float) -> None:
        begin, end = f"{self.x(second):.0f} {self.y(row):.0f}", f"{self.x(to_second):.0f} {self.y(to_row):.0f}"
        self.parts.append(f'<path class="link" d="M{begin}L{end}"/>')

    def svg(self) -> str:
        height = self.y(self.rows) + 14
        axis = self.y(self.rows - 0.4)
        step = 5 if self.seconds <= 45 else 10
        ticks = "".join(
            f'<path class="axis" d="M{self.x(s):.0f} {axis:.0f}v5"/>'
            f'<text class="small" x="{self.x(s) - 6:.0f}" y="{axis + 17:.0f}">{s}</text>'
            for s in range(0, self.seconds + 1, step)
        )
        line = f'<path class="axis" d="M{LEFT} {axis:.0f}H{WIDTH - 20}"/>'
        body = "\n".join([f'<text x="8" y="18" font-weight="600">{self.title}</text>', *self.parts, line, ticks])
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
        return f"{head}\n<title>{self.title}</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n"


def tumbling() -> Drawing:
    d = Drawing("Tumbling windows of 10 s: the fourth record comes too late for its window", 35, 4)
    _five(d, 0, late_at=3)
    d.label(1.5, "per window")
    d.bar(1.5, 0, 10, "2")
    d.bar(1.5, 10, 20, "1")
    d.bar(1.5, 30, 35, "1")
    d.label(2.6, "stream time")
    for x, text in ((1, "1"), (4, "4"), (12, "12: closes [0, 10)"), (31, "31")):
        d.record(2.6, x, text, "other")
    return d


def hopping() -> Drawing:
    d = Drawing("Hopping windows of 10 s every 5 s: each record counts in two", 30, 6)
    for second, name in ((6, "6 s"), (8, "8 s"), (12, "12 s"), (14, "14 s"), (17, "17 s")):
        d.record(0.3, second, name)
    d.label(0.3, "records")
    for row, (start, end, n) in enumerate(((0, 10, 2), (5, 15, 4), (10, 20, 3), (15, 25, 1))):
        d.bar(1.5 + row, start, end, f"[{start}, {end}): {n}")
    return d


def sessions() -> Drawing:
    d = Drawing("Sessions with a gap of 5 s: the last record joins two of them into one", 35, 4)
    for second, name in ((2, "1st"), (5, "2nd"), (14, "3rd"), (25, "4th"), (9, "5th")):
        d.record(0.3, second, name, "other" if second == 9 else "dot")
    d.label(0.3, "records")
    d.label(1.5, "before the 5th")
    for start, end, n in ((2, 5, 2), (14, 14, 1), (25, 25, 1)):
        d.bar(1.5, start, end + 0.4, str(n), "over")
    d.label(2.7, "after")
    for start, end, n in ((2, 14, 4), (25, 25, 1)):
        d.bar(2.7, start, end + 0.4, str(n))
    return d


def changes() -> Drawing:
    d = Drawing("A stream becomes a table, and its changes a stream again", 30, 4)
    d.label(0.3, "stream")
    for second, name in ((2, "ann: 1"), (7, "bob: 5"), (12, "ann: 2"), (18, "bob: gone"), (24, "ann: 3")):
        d.record(0.3, second, name)
    d.label(1.5, "table, ann")
    for start, end, n in ((2, 12, 1), (12, 24, 2), (24, 30, 3)):
        d.bar(1.5, start, end, str(n))
    d.label(2.6, "table, bob")
    d.bar(2.6, 7, 18, "5")
    return d


def stream_join() -> Drawing:
    d = Drawing("Orders left-joined with payments within 5 s: who stays alone comes out when nobody can come", 40, 5)
    d.label(0.3, "orders")
    for second, name in ((2, "o1"), (10, "o2"), (14, "o3")):
        d.record(0.3, second, name)
    d.label(1.7, "payments")
    for second, name in ((4, "o1"), (12, "o3")):
        d.record(1.7, second, name, "other")
    d.link(0.3, 2, 1.7, 4)
    d.link(0.3, 14, 1.7, 12)
    d.label(3, "results")
    d.record(3, 4, "o1 paid")
    d.record(3, 14, "o3 paid")
    d.late(3, 20, "o2 without a payment")
    return d


def watermark() -> Drawing:
    d = Drawing("Stream time is per partition; the slower one decides what closes", 35, 5)
    d.label(0.3, "partition 0")
    for second, name in ((1, "1 s"), (12, "12 s"), (31, "31 s")):
        d.record(0.3, second, name)
    d.label(1.4, "partition 1")
    for second, name in ((3, "3 s"), (14, "14 s")):
        d.record(1.4, second, name, "other")
    d.label(2.6, "windows")
    d.bar(2.6, 0, 10, "closed: both are past 10", "over")
    d.bar(2.6, 10, 20, "open: partition 1 is at 14")
    d.bar(2.6, 30, 35, "open")
    return d


@dataclass
class Diagram:
    """Boxes with a title and lines of text, and arrows between points."""

    title: str
    height: int
    parts: list[str] = field(default_factory=list)

    def box(self, x: int, y: int, width: int, height: int, title: str, *lines: str, kind: str = "bar") -> None:
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>')
        self.parts.append(f'<text x="{x + 10}" y="{y + 20}" font-weight="600">{title}</text>')
        for number, line in enumerate(lines):
            self.parts.append(f'<text class="small" x="{x + 10}" y="{y + 38 + 15 * number}">{line}</text>')

    def arrow(self, x: int, y: int, to_x: int, to_y: int) -> None:
        self.parts.append(f'<path class="link" marker-end="url(#tip)" d="M{x} {y}L{to_x} {to_y}"/>')

    def note(self, x: int, y: int, text: str) -> None:
        self.parts.append(f'<text class="small" x="{x}" y="{y}">{text}</text>')

    def svg(self) -> str:
        tip = '<marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        tip += '<path d="M0 0L8 4L0 8z" fill="#059669"/></marker>'
        body = "\n".join([f"<defs>{tip}</defs>", *self.parts])
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">'
        return f"{head}\n<title>{self.title}</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n"


def batch() -> Diagram:
    d = Diagram("The life of a batch", 372)
    steps = (
        ("plan", "end offsets", "of the batch"),
        ("intend", "record them,", "if needed"),
        ("execute", "one job,", "tasks report"),
        ("publish", "output, and", "external sinks"),
        ("commit", "ledger, in one", "transaction"),
    )
    d.note(20, 18, "driver process: runtime/")
    for number, (title, *lines) in enumerate(steps):
        x = 20 + 140 * number
        d.box(x, 26, 116, 78, title, *lines)
        if number:
            d.arrow(x - 24, 65, x - 3, 65)
    d.arrow(338, 104, 338, 146)
    d.arrow(378, 146, 378, 107)
    d.note(232, 130, "tasks, as bytes")
    d.note(388, 130, "reports: counts, staged output")
    d.note(20, 142, "Spark executors: spark/, operators/")
    d.box(
        20,
        150,
        330,
        92,
        "level 0: one task per range of offsets",
        "read and decode columns",
        "stateless steps",
        "pre-aggregate per key",
    )
    d.box(390, 150, 310, 92, "level 1: one task per shard", "merge into state, join, window", "encode and stage output")
    d.arrow(352, 196, 387, 196)
    d.note(330, 258, "shuffle blocks")
    d.box(20, 284, 216, 72, "log", "topics, dead letters", "embedded directory or Kafka", kind="over")
    d.box(252, 284, 216, 72, "metadata", "ledger, catalog, progress", "compare-and-set", kind="over")
    d.box(484, 284, 216, 72, "state", "fenced cells by shard", "LMDB, Redis, PostgreSQL", kind="over")
    d.arrow(110, 284, 110, 245)
    d.arrow(560, 245, 560, 281)
    d.arrow(620, 281, 620, 245)
    return d


ROOMS = (
    ("cli", "commands"),
    ("testing  demo", "test drivers; the demo"),
    ("sources", "listeners of the gateway; captures of databases"),
    ("faust", "Faust-style programs"),
    ("server", "HTTP"),
    ("statements", "SQL catalog, pull and push queries"),
    ("spark", "the only room that imports pyspark"),
    ("runtime", "planning, batch loop, ledger, recovery"),
    ("dead_letters", "reading, replaying and purging dead letters"),
    ("snapshots", "reading tables at a committed batch"),
    ("dsl  sql  operators", "front ends; what a node does to a chunk"),
    ("patterns", "aggregates, sagas, patterns over events"),
    ("topology  log  state", "frozen nodes; broker protocol; fenced cells"),
    ("sinks  metadata", "external destinations; compare-and-set store"),
    ("events", "event classes, envelopes, personal data"),
    ("expressions  backends  storage", "traced lambdas; servers; checked files"),
    ("records  compat  monitoring", "formats; Java patterns; metrics"),
    ("errors  settings  duration  clock  retry", "foundation"),
)
"""From the top down, each with what it holds."""


def rooms() -> Diagram:
    d = Diagram("The rooms of the package, each importing only those below it", 26 + 36 * len(ROOMS))
    for number, (names, contents) in enumerate(ROOMS):
        y = 14 + 36 * number
        d.box(20, y, 640, 30, names, kind="bar" if number % 2 == 0 else "over")
        d.note(370, y + 20, contents)
    d.arrow(690, 20, 690, 8 + 36 * len(ROOMS))
    return d


def _five(d: Drawing, row: float, late_at: int) -> None:
    d.label(row + 0.3, "records")
    for index, second in enumerate((1, 4, 12, 9, 31)):
        (d.late if index == late_at else d.record)(row + 0.3, second, ("1st", "2nd", "3rd", "4th", "5th")[index])


PICTURES = {
    "tumbling": tumbling,
    "hopping": hopping,
    "sessions": sessions,
    "changes": changes,
    "stream-join": stream_join,
    "watermark": watermark,
    "batch": batch,
    "rooms": rooms,
}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (HERE / f"{name}.svg").write_text(draw().svg())
