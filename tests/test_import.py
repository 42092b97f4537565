"""`surreal import`: it takes the bundle; what it leaves out is found."""

from __future__ import annotations

import base64
import urllib.request

import pytest

from conftest import ROOT, fresh_settings
from surrecall import Database, Settings, _schema, _seed


def surreal_import(settings: Settings, text: str) -> None:
    """Send a file to the endpoint that `surreal import` uses; the embedded engine has none, and reads it as a query."""
    if settings.is_embedded:
        raise AssertionError("the embedded engine has no import endpoint")
    login = base64.b64encode(f"{settings.user}:{settings.password}".encode()).decode()
    request = urllib.request.Request(
        settings.url.replace("ws://", "http://") + "/import",
        data=text.encode(),
        headers={
            "Authorization": f"Basic {login}",
            "surreal-ns": settings.namespace,
            "surreal-db": settings.database,
            "Accept": "application/json",
            "Content-Type": "text/plain",
        },
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test_the_bundle_is_what_apply_defines(pytestconfig: pytest.Config, engine: str) -> None:
    settings = fresh_settings(pytestconfig, engine)
    with Database(settings) as database:
        if settings.is_embedded:
            database.run(_schema.bundle(ROOT))
        else:
            surreal_import(settings, _schema.bundle(ROOT))
        assert _schema.drift(database, ROOT) == []
        _seed.seed(database)
        assert database.value("RETURN fn::evaluate(3)") == {"k": 3, "bm25": 0.771, "vector": 0.875, "hybrid": 0.833}


def test_rows_that_came_by_import_are_checked(pytestconfig: pytest.Config, engine: str) -> None:
    settings = fresh_settings(pytestconfig, engine)
    rows = (
        "OPTION IMPORT;\n"
        "INSERT INTO article { id: article:nine, title: 'Nine', content: 'nine' };\n"
        "INSERT INTO question [{ id: question:text, text: '', relevant: ['article:nine'] },"
        " { id: question:link, text: 'nine', relevant: [article:nine] }];\n"
    )
    with Database(settings) as database:
        _schema.apply(database, ROOT)
        _seed.seed(database)
        if settings.is_embedded:
            database.run(rows)
        else:
            surreal_import(settings, rows)
        told = {(row["subject"], row["problem"]) for row in database.value("RETURN fn::check()")}
    assert ("question:text", "has no text") in told
    assert ("question:text", "has the label article:nine, which is no article") in told
    assert (
        "question:link",
        "has the label article:nine, which nothing keeps from being deleted (the reference was not recorded)",
    ) in told
    assert ("article:nine", "has no embedding, vector search can't find it") in told
