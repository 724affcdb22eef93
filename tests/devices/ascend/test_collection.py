"""What collectors say that a file lacks: the words and counts are those that the producer's collector writes."""

import pytest

from devices.ascend.helpers import decode, records, stats

#: As a collector writes it that lost nothing.
WHOLE = {
    "run_epoch": 3,
    "session_id": 0,
    "processing_complete": True,
    "metadata_complete": True,
    "not_received_buffers": 0,
    "unpublished_loss": 0,
    "transport_retired": 0,
    "transport_retired_records": 0,
    "unattributable_handoffs": 0,
    "handoff_identity_verified": True,
    "cut_failed_queues": 0,
    "verdict": "published",
}
LOST, BUFFERS, DOUBT = (f"ascend_collection_{name}" for name in ("lost", "buffers_lost", "incomplete"))


def decoded(**metadata):
    return decode(records([[0, 1, 1, 100, 200, 5]], [[0, 1, 90, 210]], metadata=metadata))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, {}),
        ({"unpublished_loss": 7, "verdict": "partial_safe"}, {LOST: 7}),
        ({"transport_retired": 1, "transport_retired_records": 512}, {LOST: 512}),
        ({"not_received_buffers": 3}, {BUFFERS: 3}),
        # The records of one of the three are counted.
        (
            {"not_received_buffers": 3, "transport_retired": 1, "transport_retired_records": 5},
            {LOST: 5, BUFFERS: 2},
        ),
        ({"cut_failed_queues": 2, "processing_complete": False, "verdict": "partial_cut_unknown"}, {DOUBT: 2}),
        ({"metadata_complete": False}, {DOUBT: 1}),
        ({"unattributable_handoffs": 9}, {DOUBT: 1}),
        ({"verdict": "partial_safe"}, {DOUBT: 1}),
        # Buffers without an identity are placed by the records in them: nothing is missing.
        ({"handoff_identity_verified": False}, {}),
        ({"verdict": "new"}, {"ascend_unknown_value": 1}),
        ({"unpublished_loss": -1, "metadata_complete": 0}, {"ascend_unknown_value": 2}),
        ({"unpublished_loss": 1 << 70}, {"ascend_unknown_value": 1}),
    ],
)
def test_what_a_collector_says_is_missing_is_lost(told, expected):
    assert stats(decoded(collection=WHOLE | told)) == expected


def test_a_file_without_a_collection_lacks_nothing():
    assert stats(decoded()) == {}


@pytest.mark.parametrize("told", [[], "published", 1, True])
def test_a_collection_of_another_type_is_an_unknown_value(told):
    assert stats(decoded(collection=told)) == {"ascend_unknown_value": 1}


def test_lost_records_are_accounted():
    trace = decoded(collection=WHOLE | {"unpublished_loss": 7})
    (row,) = [row for row in trace.accounting.rows() if row["unit"] == "collected record"]
    assert (row["scope"], row["total"], row["decoded"], row["lost"]) == ("producer", 9, 2, 7)
