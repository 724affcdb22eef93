"""The published JSON Schemas, and what is wrong with a document under its own."""

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

FOLDER = Path(__file__).parents[1] / "docs/reference/schemas"


@cache
def validator(name):
    schema = json.loads((FOLDER / f"{name.replace('/', '-')}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def errors(document):
    """Return each error of a document with its place."""
    found = validator(document["schema"]).iter_errors(document)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in found]
