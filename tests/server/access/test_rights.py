"""Every route and every kind of statement, with each role."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from starlette.testclient import TestClient

from potok.patterns.aggregates.client import Sent
from potok.server.access.tokens import Tokens
from potok.server.app import create_app
from potok.server.commands.ids import id_of
from server.access.every_route import SOCKET, routes_of, status_of
from statements.playing import Play

OPEN, SOME, EVERYTHING, NAMED = "needs no token", "any name", "all names", "the name"


class Rule(NamedTuple):
    """What a route needs: one of these scopes, and for which names. `path` and `body` contain the name `mine_x`."""

    scope: str
    of: str
    path: str = ""
    body: str = ""


_SELECT = json.dumps({"sql": "SELECT * FROM mine_x;"})
_SOCKET_QUERY = "/ws/query?request=" + '{"sql":"SELECT * FROM mine_x;"}'

RULES = {
    ("GET", "/livez"): Rule("", OPEN),
    ("GET", "/readyz"): Rule("", OPEN),
    ("GET", "/info"): Rule("", OPEN),
    ("GET", "/healthcheck"): Rule("", OPEN),
    ("GET", "/"): Rule("", OPEN),
    ("GET", "/console"): Rule("", OPEN),
    ("GET", "/console/"): Rule("", OPEN),
    ("GET", "/console/static"): Rule("", OPEN, "/console/static/main.js"),
    ("GET", "/openapi.json"): Rule("", SOME),
    ("GET", "/metrics"): Rule("read", EVERYTHING),
    ("GET", "/clusterStatus"): Rule("read", EVERYTHING),
    ("GET", "/cluster"): Rule("read", EVERYTHING),
    ("GET", "/groups"): Rule("read", EVERYTHING),
    ("GET", "/groups/{name}"): Rule("read", EVERYTHING),
    ("GET", "/gateway"): Rule("read", EVERYTHING),
    ("GET", "/captures"): Rule("read", EVERYTHING),
    ("GET", "/sinks"): Rule("read", EVERYTHING),
    ("GET", "/overview"): Rule("read", SOME),
    ("GET", "/overview/live"): Rule("read", SOME),
    ("GET", "/topics"): Rule("read", SOME),
    ("GET", "/tables"): Rule("read", SOME),
    ("GET", "/streams"): Rule("read", SOME),
    ("GET", "/queries"): Rule("read", SOME),
    ("GET", "/query-tables"): Rule("read", SOME),
    ("GET", "/dead-letters"): Rule("read", SOME),
    ("GET", "/aggregates"): Rule("read", SOME),
    ("GET", "/open-matches"): Rule("read", SOME),
    ("GET", "/sagas"): Rule("read", SOME),
    ("GET", "/commands"): Rule("read", SOME),
    ("GET", "/status"): Rule("read", SOME),
    ("GET", "/status/{command_id:path}"): Rule("read", NAMED, "/status/stream/MINE_X/create"),
    ("GET", "/tables/{name}/{key:row_key}"): Rule("read", NAMED, "/tables/mine_x/k"),
    ("GET", "/tables/{name}"): Rule("read", NAMED),
    ("GET", "/tables/{name}/{key:path}"): Rule("read", NAMED),
    ("GET", "/tables/{name}/changes"): Rule("read", NAMED),
    (SOCKET, "/tables/{name}/changes"): Rule("read", NAMED),
    ("GET", "/streams/{name}"): Rule("read", NAMED),
    (SOCKET, "/streams/{name}"): Rule("read", NAMED),
    ("GET", "/topics/{name}"): Rule("read", NAMED),
    ("GET", "/topics/{name}/records"): Rule("read", NAMED),
    ("POST", "/topics/{name}/records"): Rule("write", NAMED, body="{}"),
    ("POST", "/topics/{name}/events"): Rule("write", NAMED, body="{}"),
    ("GET", "/queries/{query_id}"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/topology"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/figures"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/live"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/state"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/explain"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/tables"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/tables/{table}"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/tables/{table}/history"): Rule(
        "read", NAMED, "/queries/mine_x/tables/t/history?key=k"
    ),
    ("GET", "/queries/{query_id}/tables/{table}/changes"): Rule("read", NAMED),
    ("GET", "/queries/{query_id}/dead-letters"): Rule("read", NAMED),
    ("POST", "/queries/{query_id}/dead-letters/replay"): Rule("write", NAMED),
    ("POST", "/queries/{query_id}/dead-letters/purge"): Rule("write", NAMED),
    ("POST", "/queries/{query_id}/diff"): Rule("admin", NAMED),
    ("POST", "/queries/{query_id}/{action}"): Rule("admin", NAMED, "/queries/mine_x/pause"),
    ("DELETE", "/queries/{query_id}"): Rule("admin", NAMED),
    ("GET", "/sagas/{name}"): Rule("read", NAMED),
    ("GET", "/sagas/{name}/changes"): Rule("read", NAMED),
    ("GET", "/sagas/{name}/{key:path}"): Rule("read", NAMED),
    ("POST", "/sagas/{name}/{key:path}/{action}"): Rule("write", NAMED, "/sagas/mine_x/k/retry"),
    ("GET", "/commands/{command_id}"): Rule("read write", NAMED, f"/commands/{id_of(Sent('mine_x', 'k', 'c', 0, 0))}"),
    ("POST", "/commands/{aggregate}/{id}/{command}"): Rule("write", NAMED, "/commands/mine_x/1/Do", "{}"),
    ("POST", "/sql"): Rule("read", NAMED, body=_SELECT),
    ("POST", "/ksql"): Rule("read", NAMED, body='{"ksql": "DESCRIBE mine_x;"}'),
    ("POST", "/query"): Rule("read", NAMED, body=_SELECT),
    ("POST", "/query-stream"): Rule("read", NAMED, body=_SELECT),
    ("POST", "/close-query"): Rule("read", SOME, body='{"queryId": "x"}'),
    (SOCKET, "/ws/query"): Rule("read", NAMED, _SOCKET_QUERY),
    ("POST", "/inserts-stream"): Rule("write", NAMED, body='{"target": "mine_x"}'),
}
"""Every route of a server. A new one needs a rule here, and the check of its handler."""

ROLES = {
    "reader": ["read"],
    "writer": ["write"],
    "admin": ["admin"],
    "both": ["read", "write"],
    "my-reader": ["read:mine"],
    "my-writer": ["write:mine"],
    "my-admin": ["admin:mine"],
    "other-reader": ["read:other"],
    "other-writer": ["write:other"],
    "other-admin": ["admin:other"],
}
TOKEN_OF = {role: f"the-token-of-{role}" for role in ROLES}
TOKENS = Tokens.load(environ={"POTOK_TOKENS": " ".join(f"{'+'.join(ROLES[role])}={TOKEN_OF[role]}" for role in ROLES)})

SHOP = """
CREATE STREAM mine_orders (id VARCHAR KEY, amount INT) WITH (KAFKA_TOPIC = 'mine-orders', PARTITIONS = 1);
CREATE TABLE mine_totals AS SELECT id, COUNT(*) AS n FROM mine_orders GROUP BY id;
CREATE STREAM secret_orders (id VARCHAR KEY, amount INT) WITH (KAFKA_TOPIC = 'secret-orders', PARTITIONS = 1);
CREATE TABLE secret_totals AS SELECT id, COUNT(*) AS n FROM secret_orders GROUP BY id;
CREATE TABLE mine_of_secrets AS SELECT id, COUNT(*) AS n FROM secret_orders GROUP BY id;
INSERT INTO mine_orders (id, amount) VALUES ('mine-key', 1);
INSERT INTO secret_orders (id, amount) VALUES ('hidden-key', 1);
"""


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    found = Play(tmp_path_factory.mktemp("rights"))
    found.do(SHOP)
    found.run()
    yield found
    found.close()


@pytest.fixture(scope="module")
def client(play: Play) -> TestClient:
    return TestClient(create_app(play.database, tokens=TOKENS), base_url="http://localhost:8088")


def expected(rule: Rule, role: str) -> bool:
    """Whether a role may use a route, by the definition of scopes."""
    if rule.of == OPEN or not rule.scope:
        return True
    granted = [text.partition(":") for text in ROLES[role]]
    prefixes = {prefix for scope, _, prefix in granted if scope in (*rule.scope.split(), "admin")}
    return bool(prefixes) and ("" in prefixes or rule.of == SOME or (rule.of == NAMED and "mine" in prefixes))


def test_every_route_needs_what_is_declared_with_each_role(play: Play) -> None:
    app = create_app(play.database, tokens=TOKENS)
    found = set(routes_of(app))
    assert found == RULES.keys(), "declare new routes in RULES, and remove old ones"

    async def wrong() -> list[str]:
        wrong = []
        for (method, path), rule in RULES.items():
            filled = rule.path or path
            for part in ("{name}", "{query_id}"):
                filled = filled.replace(part, "mine_x")
            filled = filled.replace("{table}", "t").replace("{key:path}", "k")
            anonymous = await status_of(app, method, filled, None, rule.body.encode())
            if (anonymous == 401) != (rule.of != OPEN):
                wrong.append(f"{method} {filled} without a token: {anonymous}")
            for role, token in TOKEN_OF.items():
                status = await status_of(app, method, filled, token, rule.body.encode())
                if (status not in (401, 403)) != expected(rule, role):
                    wrong.append(f"{method} {filled} as {role}: {status}")
        return wrong

    assert asyncio.run(wrong()) == []


LISTS = ["/overview", "/topics?internal=true&sizes=true", "/tables", "/streams", "/queries", "/query-tables", "/status"]
SHOWN = ["SHOW STREAMS;", "SHOW TABLES;", "SHOW TOPICS;", "SHOW ALL TOPICS;", "SHOW QUERIES;"]


@pytest.mark.parametrize("path", LISTS)
def test_lists_contain_only_names_that_the_token_covers(client: TestClient, path: str) -> None:
    mine = client.get(path, headers=bearer("my-reader"))
    assert mine.status_code == 200
    assert "mine" in mine.text.lower()
    assert "secret_" not in mine.text.lower().replace("from secret_orders", "")
    assert "secret" in client.get(path, headers=bearer("reader")).text.lower()


@pytest.mark.parametrize("sql", SHOWN)
@pytest.mark.parametrize(("path", "field"), [("/sql", "sql"), ("/ksql", "ksql")])
def test_statements_list_only_names_that_the_token_covers(client: TestClient, path: str, field: str, sql: str) -> None:
    mine = client.post(path, json={field: sql}, headers=bearer("my-reader"))
    assert mine.status_code == 200
    assert "mine" in mine.text.lower()
    shown = mine.text.lower().replace("from secret_orders", "")
    assert "secret_" not in shown and "secret-" not in shown
    assert "secret" in client.post(path, json={field: sql}, headers=bearer("reader")).text.lower()


@pytest.mark.parametrize(
    ("sql", "role", "allowed"),
    [
        ("SELECT * FROM mine_totals;", "my-reader", True),
        ("SELECT * FROM secret_totals;", "my-reader", False),
        ("SELECT * FROM mine_of_secrets;", "my-reader", True),
        ("SELECT m.id FROM mine_totals m JOIN secret_totals s ON m.id = s.id;", "my-reader", False),
        ("DESCRIBE secret_totals;", "my-reader", False),
        ("DESCRIBE mine_totals EXTENDED;", "my-reader", False),
        ("EXPLAIN SELECT * FROM secret_totals;", "my-reader", False),
        ("EXPLAIN SELECT * FROM mine_totals;", "my-reader", True),
        ("SHOW PROPERTIES;", "my-reader", False),
        ("SHOW STREAMS EXTENDED;", "my-reader", False),
        ("ASSERT TOPIC 'secret-orders';", "my-reader", False),
        ("INSERT INTO secret_orders (id) VALUES ('x');", "my-writer", False),
        ("INSERT INTO mine_orders (id) VALUES ('x');", "my-writer", True),
        ("INSERT INTO mine_orders (id) VALUES ('x');", "my-reader", False),
        ("CREATE STREAM mine_a (id INT) WITH (KAFKA_TOPIC = 'secret-orders');", "my-admin", False),
        ("CREATE SOURCE STREAM mine_a (id INT) WITH (KAFKA_TOPIC = 'secret-orders');", "my-admin", False),
        ("CREATE STREAM other (id INT) WITH (KAFKA_TOPIC = 'mine-orders');", "my-admin", False),
        ("CREATE STREAM mine_a AS SELECT * FROM secret_orders;", "my-admin", False),
        ("CREATE STREAM mine_a WITH (KAFKA_TOPIC = 'secret-a') AS SELECT * FROM mine_orders;", "my-admin", False),
        (
            "SET 'ksql.output.topic.name.prefix' = 'secret-'; CREATE STREAM mine_a AS SELECT * FROM mine_orders;",
            "my-admin",
            False,
        ),
        ("INSERT INTO mine_orders SELECT * FROM secret_orders;", "my-admin", False),
        ("INSERT INTO secret_orders SELECT * FROM mine_orders;", "my-admin", False),
        ("DROP TABLE secret_totals;", "my-admin", False),
        ("TERMINATE ALL;", "my-admin", False),
        ("CREATE TYPE mine_t AS INT;", "my-admin", False),
        ("CREATE SOURCE CONNECTOR mine_c WITH ('kind' = 'webhook');", "my-admin", False),
        ("CREATE STREAM mine_a AS SELECT * FROM mine_orders; DROP STREAM mine_a;", "my-admin", True),
    ],
)
def test_a_statement_needs_all_its_names(client: TestClient, sql: str, role: str, allowed: bool) -> None:
    for path, field in (("/sql", "sql"), ("/ksql", "ksql")):
        if path == "/ksql" and sql.startswith("SELECT"):
            continue
        answer = client.post(path, json={field: sql}, headers=bearer(role))
        assert (answer.status_code != 403) == allowed, answer.text


def test_a_property_of_a_request_cannot_move_the_topic_of_a_stream(client: TestClient) -> None:
    body = {
        "sql": "CREATE STREAM mine_b AS SELECT * FROM mine_orders;",
        "properties": {"ksql.output.topic.name.prefix": "secret-"},
    }
    assert client.post("/sql", json=body, headers=bearer("my-admin")).status_code == 403


def test_rows_and_dead_letters_of_a_query_need_the_topics_that_it_reads(client: TestClient, play: Play) -> None:
    query = play.database.catalog.sources["MINE_OF_SECRETS"].table_of
    assert client.get("/tables/mine_of_secrets/hidden-key", headers=bearer("my-reader")).status_code == 200
    assert client.get(f"/queries/{query}/state", headers=bearer("my-reader")).status_code == 200
    for path in (f"/queries/{query}/dead-letters", f"/queries/{query}/tables/MINE_OF_SECRETS"):
        assert client.get(path, headers=bearer("my-reader")).status_code == 403
    assert client.get(f"/topics/{query}-dead-letters/records", headers=bearer("my-reader")).status_code == 403
    printed = client.post("/query", json={"ksql": f"PRINT '{query}-dead-letters';"}, headers=bearer("my-reader"))
    assert printed.status_code == 403
    figures = client.get(f"/queries/{query}/figures", headers=bearer("my-reader")).json()
    assert "recent_dead_letters" not in figures and figures["total_in"] == 1


def test_a_description_names_only_queries_that_the_token_covers(client: TestClient, play: Play) -> None:
    play.do("CREATE TABLE secret_of_mine AS SELECT id, COUNT(*) AS n FROM mine_orders GROUP BY id;")
    for role, shown in (("my-reader", ["MINE_TOTALS"]), ("reader", ["MINE_TOTALS", "SECRET_OF_MINE"])):
        (entity,) = client.post("/ksql", json={"ksql": "DESCRIBE mine_orders;"}, headers=bearer(role)).json()
        described = entity["sourceDescription"]
        assert sorted(sink for query in described["readQueries"] for sink in query["sinks"]) == shown
        assert described["sourceConstraints"] == shown
    play.do("DROP TABLE secret_of_mine;")


def test_a_stream_over_dead_letters_needs_the_topics_that_the_query_reads(play: Play) -> None:
    query = play.database.catalog.sources["MINE_OF_SECRETS"].table_of
    token = "the-token-of-an-admin-by-id"
    tokens = Tokens.load(environ={"POTOK_TOKENS": f"admin:mine+admin:ctas_mine={token}"})
    app = create_app(play.database, tokens=tokens)
    with TestClient(app, base_url="http://localhost:8088") as limited:
        for kind in ("STREAM", "SOURCE STREAM"):
            sql = f"CREATE {kind} mine_peek (v VARCHAR) WITH (KAFKA_TOPIC = '{query}-dead-letters', PARTITIONS = 1);"
            answer = limited.post("/ksql", json={"ksql": sql}, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 403, answer.text


def test_a_row_by_key_needs_the_name_on_the_fast_path_too(client: TestClient) -> None:
    assert client.get("/tables/MINE_TOTALS/mine-key", headers=bearer("my-reader")).json()["N"] >= 1
    assert client.get("/tables/secret_totals/hidden-key", headers=bearer("my-reader")).status_code == 403
    assert client.get("/tables/secret_totals/hidden-key", headers=bearer("my-writer")).status_code == 403


def bearer(role: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN_OF[role]}"}
