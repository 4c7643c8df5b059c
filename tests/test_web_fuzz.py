"""The API against its own description: whatever is sent, the answer is one that the description allows."""

from __future__ import annotations

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from kvgauge.web.app import create_app
from web_support import OFFLINE

SCHEMA = schemathesis.openapi.from_asgi(
    "/api/v1/openapi.json", create_app(OFFLINE), headers={"Host": "127.0.0.1"}
)


@SCHEMA.parametrize()
@settings(
    max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
def test_answers_are_those_described(case):
    case.call_and_validate(headers={"Host": "127.0.0.1"}, excluded_checks=[positive_data_acceptance])
