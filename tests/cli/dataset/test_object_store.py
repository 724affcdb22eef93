"""Captures and datasets in an object store: a server of its protocol on this machine."""

from __future__ import annotations

import pytest

from cli.dataset.contents import content
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store

pytest.importorskip("obstore")
moto = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(monkeypatch):
    """The URL of an empty bucket."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        import boto3

        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        client.create_bucket(Bucket="fleet")
        yield "s3://fleet"
    finally:
        server.stop()


@pytest.mark.full
def test_a_dataset_in_a_bucket_is_that_of_a_folder(call, fleet, tmp_path, bucket):
    url = f"{bucket}/datasets/one"
    for where in (url, "local", url):
        assert call("ingest", fleet, "-o", where, "--jobs", "1").status == 0
    assert content(url) == content("local")
    query = "select run, rank, count(*) from slices where rank > 1 group by all order by all"
    assert call("sql", url, "--csv", query) == call("sql", "local", "--csv", query)
    assert call("summary", url, "--csv").out == call("summary", "local", "--csv").out
    assert call("compact", url).status == 0
    assert content(url) == content("local")
    assert len(Catalog(open_store(url)).compacted) == 2


def test_captures_in_a_bucket_are_ingested(call, fleet, bucket):
    store = open_store(f"{bucket}/captures")
    for path in sorted((fleet / "train").glob("r?.json")):
        store.put(f"train/{path.name}", path.read_bytes())
    done = call("ingest", f"{bucket}/captures/train/*.json", "-o", f"{bucket}/dataset", "--jobs", "1")
    assert done.status == 0, done.err
    captures = Catalog(open_store(f"{bucket}/dataset")).captures
    assert [(each.run, each.rank) for each in captures] == [("train", rank) for rank in range(4)]


def test_the_second_of_two_commits_is_refused(bucket):
    store = open_store(f"{bucket}/dataset")
    assert store.put_new("_captures/a.json", b"first")
    assert not store.put_new("_captures/a.json", b"second")
    assert store.get("_captures/a.json") == b"first"


def test_what_cannot_be_reached_is_one_line(call, fleet, bucket):
    done = call("sql", "s3://elsewhere/dataset", "select 1")
    assert done.status == 3
    assert "Traceback" not in done.err
