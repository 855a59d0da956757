import json

import msgspec
import pytest
from hypothesis import given

from endpointslice.decode import Changed, convert_document, decode_object
from endpointslice.encode import encode_object, encode_snapshot
from endpointslice.snapshot import EMPTY, Snapshot, apply_events
from endpointslice.types import DaemonSet, Object
from tests.builders import a_slice, daemon_set, pod, service, slice_endpoint
from tests.strategies import kind_of, objects, worlds


def without_skipped(snapshot: Snapshot) -> Snapshot:
    return msgspec.structs.replace(snapshot, skipped={})


@given(objects)
def test_decoding_what_was_encoded_gives_the_same_value(value: Object) -> None:
    kind = kind_of(value)
    encoded = encode_object(value)

    from_api = decode_object(kind, json.dumps(encoded).encode())
    (from_folder,) = convert_document(encoded)

    assert (kind, value.name, value) == (from_api.kind, from_api.name, from_api.object)
    assert from_api == from_folder


@given(worlds())
def test_the_events_of_an_encoded_snapshot_lead_back_to_it(world: list[Changed]) -> None:
    snapshot, _touched = apply_events(EMPTY, world)

    changes = convert_document({"apiVersion": "v1", "kind": "List", "items": encode_snapshot(snapshot)})

    assert without_skipped(snapshot) == without_skipped(apply_events(EMPTY, changes)[0])


@given(worlds())
def test_equal_snapshots_are_equal_text(world: list[Changed]) -> None:
    forwards, _touched = apply_events(EMPTY, world)
    backwards, _touched = apply_events(EMPTY, reversed(world))

    assert json.dumps(encode_snapshot(forwards)) == json.dumps(encode_snapshot(backwards))


def test_a_plain_service_reads_as_a_manifest() -> None:
    assert encode_object(service()) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.10",
            "clusterIPs": ["10.96.0.10"],
            "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80}],
            "internalTrafficPolicy": "Cluster",
            "externalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "selector": {"app": "web"},
        },
    }


def test_a_slice_reads_as_a_manifest() -> None:
    assert encode_object(a_slice([slice_endpoint()])) == {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "web-1",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": [
            {"addresses": ["10.244.0.1"], "conditions": {"ready": True, "serving": True, "terminating": False}}
        ],
    }


def test_a_pod_reads_as_a_manifest() -> None:
    assert encode_object(pod("default/agent-abcde", uid="u")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "agent-abcde",
            "namespace": "default",
            "uid": "u",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}],
        },
    }


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        pytest.param("2", 2, id="a number"),
        pytest.param("10%", "10%", id="a percentage"),
        pytest.param("02", "02", id="a number that isn't written as one"),
    ],
)
def test_max_unavailable_is_a_number_or_text(text: str, encoded: object) -> None:
    value: DaemonSet = daemon_set(max_unavailable=text)

    assert encode_object(value)["spec"] == {
        "template": {"metadata": {"labels": {"app": "web"}}},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": encoded}},
    }
