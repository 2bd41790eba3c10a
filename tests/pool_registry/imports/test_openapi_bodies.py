"""Bodies that hold files and texts, and arguments that a document composes: what arrives at a server that records."""

from __future__ import annotations

import email
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pool_registry.actions import Status
from pool_registry.imports import Offer
from pool_registry.kinds import load_config, open_worker
from pool_registry.network.multipart import Part, write_multipart
from pool_registry.wants import list_wants
from tests.pool_registry.support.recorder import Recorder, call, read_offer

TEXT = {"type": "string"}
FILE = {"type": "string", "format": "binary"}
NULLABLE = {"type": "object", "nullable": True}
PNG = b"\x89PNG\r\n\x1a\n\0--x\r\n"
NAMES = ["report.pdf", "pictures/dot.png", "notes.unknown", "data.csv"]


@pytest.fixture
def folder(tmp_path):
    files = tmp_path / "files"
    (files / "pictures").mkdir(parents=True)
    for name in NAMES:
        (files / name).write_bytes(PNG)
    (files / ".hidden").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (files / "link.txt").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(files / "pipe")
    return files


def parts_of(recorder: Recorder) -> list[tuple[str, str | None, str | None, bytes]]:
    """Name, file name, content type and content of each part that arrived last, read by Python's own parser."""
    head = f"content-type: {recorder.headers[-1]['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + recorder.bodies[-1])
    return [
        (
            str(part.get_param("name", header="content-disposition")),
            part.get_filename(),
            part["content-type"],
            part.get_payload(decode=True),
        )
        for part in message.get_payload()
    ]


def upload(
    media_type: str, media: dict[str, Any], recorder: Recorder, folder: Any = "", version: str = "3.0.3"
) -> Offer:
    operation = {"requestBody": {"required": True, "content": {media_type: media}}}
    offer = read_offer("/x", "post", operation, recorder.address, version)
    assert not offer.problem, offer.problem
    return Offer(offer.spec.model_copy(update={"config": {**offer.spec.config, "files": str(folder)}}))


def form(properties: dict[str, Any], encoding: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    media = {"schema": {"type": "object", "properties": properties, **more}}
    return media if encoding is None else {**media, "encoding": encoding}


@pytest.mark.parametrize(
    ("rule", "encoding", "value", "parts"),
    [
        (TEXT, None, "grüße\r\n--x", [("c", None, None, "grüße\r\n--x".encode())]),
        ({"type": "boolean"}, None, True, [("c", None, None, b"true")]),
        ({"type": "array", "items": TEXT}, None, ["a", "b"], [("c", None, None, b"a"), ("c", None, None, b"b")]),
        ({"type": "object"}, None, {"a": [1]}, [("c", None, "application/json", b'{"a": [1]}')]),
        ({}, {"contentType": "application/ld+json"}, {"a": 1}, [("c", None, "application/ld+json", b'{"a": 1}')]),
        (TEXT, {"contentType": "application/sdp"}, "v=0", [("c", None, "application/sdp", b"v=0")]),
        ({"anyOf": [FILE, {"type": "array", "items": FILE}]}, None, ["data.csv"], [("c", "data.csv", "text/csv", PNG)]),
        (TEXT, {"contentType": "text/csv"}, "a,b", [("c", None, "text/csv", b"a,b")]),
        (FILE, None, "data.csv", [("c", "data.csv", "text/csv", PNG)]),
        (FILE, None, "pictures/dot.png", [("c", "dot.png", "image/png", PNG)]),
        (FILE, None, "notes.unknown", [("c", "notes.unknown", "application/octet-stream", PNG)]),
        (FILE, {"contentType": "image/gif, image/*"}, "pictures/dot.png", [("c", "dot.png", "image/png", PNG)]),
        (TEXT, {"contentType": "application/pdf"}, "report.pdf", [("c", "report.pdf", "application/pdf", PNG)]),
        (
            {"type": "array", "items": FILE},
            None,
            ["report.pdf", "data.csv"],
            [("c", "report.pdf", "application/pdf", PNG), ("c", "data.csv", "text/csv", PNG)],
        ),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_parts_of_a_form(recorder, folder, rule, encoding, value, parts, whole):
    media = form({"c": rule}, encoding and {"c": encoding}, additionalProperties=whole)
    offer = upload("multipart/form-data", media, recorder, folder)
    assert call(offer, {"body": {"c": value}} if whole else {"c": value}).ok
    assert parts_of(recorder) == parts


@pytest.mark.parametrize(
    ("rule", "encoding", "value", "parts"),
    [
        ({}, None, "report.pdf", [("c", "report.pdf", "application/octet-stream", PNG)]),
        ({**TEXT, "contentMediaType": "image/png"}, None, "pictures/dot.png", [("c", "dot.png", "image/png", PNG)]),
        ({"anyOf": [FILE, {"type": "null"}]}, None, "data.csv", [("c", "data.csv", "text/csv", PNG)]),
        ({"anyOf": [FILE, {"type": "null"}]}, None, None, []),
        ({"type": ["string", "null"]}, None, None, []),
        ({**TEXT, "contentEncoding": "base64"}, None, "aGk=", [("c", None, None, b"aGk=")]),
        ({"type": "object"}, {"style": "deepObject"}, {"a": {"b": "x"}}, [("c[a][b]", None, None, b"x")]),
        ({"type": "array"}, {"style": "form", "explode": False}, ["a b", "c"], [("c", None, None, b"a b,c")]),
    ],
)
def test_parts_of_a_form_in_openapi_31(recorder, folder, rule, encoding, value, parts):
    media = form({"c": rule, "note": TEXT}, encoding and {"c": encoding})
    offer = upload("multipart/form-data", media, recorder, folder, "3.1.0")
    assert call(offer, {"c": value, "note": "n"}).ok
    assert parts_of(recorder) == [*parts, ("note", None, None, b"n")]


@pytest.mark.parametrize(
    ("media_type", "schema", "arguments", "sent", "content"),
    [
        ("application/octet-stream", FILE, {"file": "data.csv"}, "application/octet-stream", PNG),
        ("application/octet-stream", None, {"file": "notes.unknown"}, "application/octet-stream", PNG),
        ("image/*", None, {"file": "pictures/dot.png"}, "image/png", PNG),
        ("application/pdf", TEXT, {"file": "report.pdf"}, "application/pdf", PNG),
        ("*/*", FILE, {"file": "report.pdf"}, "application/pdf", PNG),
        ("text/csv", FILE, {"file": "data.csv"}, "text/csv", PNG),
        ("text/csv", TEXT, {"body": "a,ü"}, "text/csv; charset=utf-8", "a,ü".encode()),
        ("application/sdp", TEXT, {"body": "v=0"}, "application/sdp; charset=utf-8", b"v=0"),
        ("application/xml", TEXT, {"body": "<a/>"}, "application/xml; charset=utf-8", b"<a/>"),
        ("text/csv; charset=latin-1", TEXT, {"body": "ü"}, "text/csv; charset=latin-1", b"\xfc"),
        ("application/json", {"type": "string", "nullable": True}, {"body": None}, "application/json", b"null"),
        ("application/x-www-form-urlencoded", NULLABLE, {"body": None}, None, b""),
        ("text/plain", TEXT, {"body": "a"}, "text/plain; charset=utf-8", b"a"),
    ],
)
def test_bodies_that_are_a_file_or_a_text(recorder, folder, media_type, schema, arguments, sent, content):
    offer = upload(media_type, {} if schema is None else {"schema": schema}, recorder, folder)
    assert call(offer, arguments).ok
    assert (recorder.headers[-1].get("content-type"), recorder.bodies[-1]) == (sent, content)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("../outside.txt", "there is no file"),
        ("pictures/../../outside.txt", "there is no file"),
        ("{folder}/../outside.txt", "there is no file"),
        ("/etc/passwd", "there is no file"),
        ("~/outside.txt", "there is no file"),
        ("link.txt", "there is no file"),
        (".hidden", "there is no file"),
        ("pipe", "there is no file"),
        ("pictures", "which holds data.csv, link.txt, notes.unknown, pipe, report.pdf, pictures/dot.png"),
        ("a" * 5_000, "is no path of a file"),
        ("a\0b", "write the path"),
        ("data.csv", "data.csv is text/csv; this takes image/png or image/jpg"),
    ],
)
def test_a_file_outside_the_folder_or_of_another_type_is_not_sent(recorder, folder, name, sentence):
    media = form({"c": FILE}, {"c": {"contentType": "image/png, image/jpg"}})
    count = len(recorder.targets)
    refused = call(upload("multipart/form-data", media, recorder, folder), {"c": name.replace("{folder}", str(folder))})
    assert refused.status is Status.PARSE_ERR and refused.error is not None and sentence in refused.error.message
    assert "secret" not in refused.error.message and len(recorder.targets) == count


@pytest.mark.parametrize(("files", "sentence"), [("", "has no folder of files; name one"), ("/nowhere", "there is no")])
def test_without_a_folder_no_file_is_sent(recorder, files, sentence):
    count = len(recorder.targets)
    offer = upload("application/octet-stream", {}, recorder, files)
    refused = call(offer, {"file": "a"})
    assert refused.error is not None and refused.error.code == "files_missing" and sentence in refused.error.message
    assert len(recorder.targets) == count


def test_a_text_that_its_character_set_cannot_hold_is_not_sent(recorder):
    refused = call(upload("text/csv; charset=ascii", {"schema": TEXT}, recorder), {"body": "ü"})
    assert refused.status is Status.PARSE_ERR and "this text cannot be written" in refused.error.message


def test_a_folder_of_files_is_something_that_a_person_confirms(recorder, folder):
    offer = upload("application/octet-stream", {}, recorder, folder)
    assert f"reads and sends files of the folder {folder} on this machine" in list_wants(offer.spec)
    assert open_worker(offer.spec).stays_because(load_config(offer.spec)) == "it sends files of this machine"


@pytest.mark.parametrize(
    ("media_type", "media", "sentence"),
    [
        ("multipart/form-data", form({"c": {"type": "object", "properties": {"f": FILE}}}), "a file within an object"),
        ("multipart/form-data", form({"c": TEXT}, {"c": {"headers": {"X": {"required": True}}}}), "headers of its own"),
        ("multipart/form-data", form({"c": TEXT}, {"c": {"contentType": "text/csv\r\nx: y"}}), "is none"),
        ("multipart/form-data", form({"c": TEXT}, oneOf=[{"properties": {"f": FILE}}]), "only fields that its schema"),
        ("application/x-www-form-urlencoded", form({"c": FILE}), "has no place for a file"),
        ("application/octet-stream", form({"c": TEXT}), "only a file can be sent so"),
        ("text/csv", form({"c": TEXT}), "its fields can be written as JSON and as forms alone"),
    ],
)
def test_bodies_without_a_right_way_are_refused_with_the_reason(media_type, media, sentence):
    problem = read_offer("/x", "post", {"requestBody": {"content": {media_type: media}}}).problem
    assert "cannot be sent: " in problem and sentence in problem


def test_the_first_type_that_can_be_written_is_taken(recorder, folder):
    content = {
        "application/xml": form({"f": FILE}),
        "application/json": form({"f": FILE}),
        "application/x-www-form-urlencoded": form({"f": FILE}),
        "multipart/form-data": form({"f": FILE}),
    }
    offer = read_offer("/x", "post", {"requestBody": {"content": content}})
    assert offer.spec.config["body"] == "multipart"
    offer = read_offer("/x", "post", {"requestBody": {"content": {**content, "application/json": form({"a": TEXT})}}})
    assert offer.spec.config["body"] == "json"


NAMED = st.text(min_size=1, max_size=20)
CONTENTS = st.binary(max_size=40) | st.sampled_from([b"\r\n", b"--", b"\r\n--x--\r\n"])


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(NAMED, CONTENTS), min_size=1, max_size=4))
def test_what_a_form_of_parts_holds_is_read_back(fields):
    from multipart.multipart import MultipartParser, parse_options_header  # python-multipart, which servers use

    content_type, body = write_multipart([Part(name, content, "", name) for name, content in fields])
    contents, headers = list[bytearray](), list[bytearray]()
    boundary = parse_options_header(content_type)[1][b"boundary"]
    parser = MultipartParser(
        boundary,
        {
            "on_part_begin": lambda: contents.append(bytearray()),
            "on_part_data": lambda data, start, end: contents[-1].extend(data[start:end]),
            "on_header_begin": lambda: headers.append(bytearray()),
            "on_header_value": lambda data, start, end: headers[-1].extend(data[start:end]),
        },
    )
    parser.write(body)
    parser.finalize()
    assert [bytes(content) for content in contents] == [content for _, content in fields]
    for header, (name, _) in zip(headers, fields, strict=True):
        quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        assert bytes(header) == f'form-data; name="{quoted}"; filename="{quoted}"'.encode("utf-8", "surrogatepass")
