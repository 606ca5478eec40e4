"""The JSON Schema of definitions for clients, from the limits that the fields have.

`python -m rappor.collection.client_schema` writes docs/reference/collection.schema.json. A schema
cannot say how fields fit together; docs/clients.md lists those rules.
"""

from __future__ import annotations

import json
from typing import Any

from rappor.collection import fields
from rappor.collection.client_json import DAY, EDGE, FORMAT, REQUIRED
from rappor.collection.periods import PERIODS
from rappor.collection.template import ABOUT
from rappor.mechanism import DIALECTS, KINDS
from rappor.mechanism.views import FIELD_KINDS, FIELD_NAME, MAX_FIELDS, MIN_FIELDS
from rappor.params import MAX_M, MAX_WHOLE
from rappor.wire.dimensions import COLLECTION_NAME, DIMENSION_NAME, DIMENSION_VALUE, OTHER
from rappor.wire.protocol import MAX_DIMENSIONS, MAX_VERSION

_DAY_PERIOD, _WEEK_PERIOD = DAY.pattern, "[0-9]{4}-W[0-9]{2}"


def document() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12)."""
    properties = {
        name: {"description": ABOUT[name], **shape} for name, shape in _properties().items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A RAPPOR collection, as its clients read it",
        "type": "object",
        "properties": {"format": {"const": FORMAT}, **properties},
        "required": ["format", *REQUIRED],
        "additionalProperties": False,
    }


def _properties() -> dict[str, dict[str, Any]]:
    texts = {"type": "string"}
    flag = {"type": "boolean"}
    return {
        "name": _matching(COLLECTION_NAME.pattern),
        "version": _whole(1, MAX_VERSION),
        "kind": {"enum": list(KINDS)},
        "params": _object(
            {
                **{name: _whole(1, limit) for name, limit in MAX_WHOLE.items()},
                "f": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                "p": _PROBABILITY,
                "q": _PROBABILITY,
            }
        ),
        "description": {**texts, "maxLength": fields.MAX_TEXT},
        "dialect": {"enum": list(DIALECTS)},
        "period": {"enum": list(PERIODS)},
        "dimensions": {
            "type": "object",
            "maxProperties": MAX_DIMENSIONS,
            "propertyNames": _matching(DIMENSION_NAME.pattern),
            "additionalProperties": {
                "type": "array",
                "minItems": 1,
                "maxItems": fields.MAX_DIMENSION_VALUES,
                "uniqueItems": True,
                "items": {**_matching(DIMENSION_VALUE.pattern), "not": {"const": OTHER}},
            },
        },
        "reports_per_period": _whole(1, fields.MAX_REPORTS_PER_PERIOD),
        "max_values": _whole(1, fields.MAX_VALUES),
        "max_epsilon": {"type": "number", "exclusiveMinimum": 0},
        "null_reports": flag,
        "one_time": flag,
        "budget": flag,
        "schedule": {
            "type": "array",
            "items": _object(
                {
                    "from": _matching(f"{_DAY_PERIOD}|{_WEEK_PERIOD}"),
                    "p": _PROBABILITY,
                    "q": _PROBABILITY,
                }
            ),
        },
        "clients_per_person": _whole(1, fields.MAX_CLIENTS_PER_PERSON),
        **_LISTED,
        "fields": {
            "type": "array",
            "minItems": MIN_FIELDS,
            "maxItems": MAX_FIELDS,
            "items": _object(
                {"name": _matching(FIELD_NAME.pattern), "kind": {"enum": list(FIELD_KINDS)}},
                _LISTED,
            ),
        },
        "views": {
            "type": "array",
            "minItems": 1,
            "items": _object(
                {
                    "fields": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MAX_FIELDS,
                        "uniqueItems": True,
                        "items": _matching(FIELD_NAME.pattern),
                    },
                    "cohorts": _whole(1, MAX_M),
                }
            ),
        },
        "group": _matching(fields.GROUP.pattern),
        "expires": _matching(DAY.pattern),
    }


_PROBABILITY = {"type": "number", "minimum": 0, "maximum": 1}


def _matching(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^(?:{pattern})$"}


def _whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }


_LISTED = {
    "categories": {"type": "array", "minItems": 1, "items": {"type": "string"}},
    "ranges": _object(
        {"edges": {"type": "array", "minItems": 1, "items": _matching(EDGE.pattern)}}
    ),
}


if __name__ == "__main__":
    print(json.dumps(document(), indent=2, ensure_ascii=False))
