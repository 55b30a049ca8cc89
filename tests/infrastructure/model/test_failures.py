"""What a refusal becomes, whatever the server sends."""

import json

from infrastructure.model.failures import refusal


def test_a_body_that_is_nested_deeply_or_is_a_page_without_an_end_is_an_error_like_any_other():
    """Nested 900 deep it ended the program; a page of 15 MB of open tags was read for minutes."""
    deep = json.loads('{"error":' * 900 + '"no"' + "}" * 900)
    for body in (deep, "<html>" + "<p " * 5_000_000, "<script>" * 2_000_000):
        problem = refusal(body, status=400, headers={})
        assert problem.status == 400
        assert len(problem.reason) < 1000


def test_a_place_that_stands_beside_the_words_is_said_with_them():
    place = {"type": "extra_forbidden", "loc": ["body", "tools", 0, "strict"], "msg": "No extras"}

    assert (
        "body.tools.0.strict: No extras"
        in refusal({"detail": [place]}, status=422, headers={}).reason
    )
