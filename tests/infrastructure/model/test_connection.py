"""Whatever the environment says: an answer, or an error that names the variable. Never a bug."""

import asyncio
import os
import re
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.answer import Answer
from infrastructure.errors import ModelError
from infrastructure.model import environment
from infrastructure.model.client import AnthropicModel
from infrastructure.model.proxies import proxy_of
from tests.infrastructure.model.test_retries import REQUEST
from tests.levels import examples
from tests.raw_server import RawServer, response, said, sse
from tests.server import ScriptedServer, refuse, reply

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
REFUSING = "http://127.0.0.1:9"  # the port that discards: nobody is there


async def ask(model):
    answer = Answer()
    try:
        async for event in model.stream(REQUEST):
            answer.apply(event)
    except ModelError as error:
        return error
    finally:
        await model.close()
    return "".join(raw.get("text", "") for raw in answer.content)


def asked(variables, *, base_url=None):
    """Return the text of the answer, or the error, in an environment with these *variables*."""
    with ScriptedServer([reply("Hi.")]) as server:
        around = {"ANTHROPIC_BASE_URL": base_url or server.url, "ANTHROPIC_API_KEY": KEY}
        kept = {name: os.environ[name] for name in ("PATH", "HOME")}
        with patch.dict(os.environ, kept | around | variables, clear=True):
            return asyncio.run(ask(AnthropicModel(max_retries=0)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_BASE_URL", "http://[::1"),
        ("ANTHROPIC_BASE_URL", "api.anthropic.com"),
        ("ANTHROPIC_BASE_URL", "localhost:8080"),
        ("ANTHROPIC_BASE_URL", "ftp://here"),
        ("ANTHROPIC_BASE_URL", "http://"),
        ("ANTHROPIC_BASE_URL", "http://a b.com"),
        ("ANTHROPIC_BASE_URL", "http://here:port"),
        ("ANTHROPIC_BASE_URL", "http://here:99999"),
        ("ANTHROPIC_BASE_URL", "http://one.com\nhttp://two.com"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem"),
        ("SSL_CERT_FILE", __file__),
        ("SSL_CERT_DIR", "/nowhere"),
        ("HTTP_PROXY", "http://[::1"),
        ("HTTPS_PROXY", "ftp://proxy:1"),
        ("ALL_PROXY", "socks5://127.0.0.1:1080"),
        ("all_proxy", "://"),
        ("https_proxy", "http://here:port"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x-team: caf\u00e9"),
        ("ANTHROPIC_CUSTOM_HEADERS", "x team: blue"),
        ("ANTHROPIC_API_KEY", "sk-ant-caf\u00e9"),
        ("ANTHROPIC_API_KEY", "sk-ant one"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(name, value):
    error = asked({name: value})

    assert isinstance(error, ModelError), error
    assert name in str(error)
    assert len(str(error).splitlines()) == 1
    if "KEY" not in name and "HEADERS" not in name:
        assert repr(value) in str(error)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANTHROPIC_PROFILE", "nobody"),
        ("ANTHROPIC_PROFILE", "../../etc"),
        ("ANTHROPIC_IDENTITY_TOKEN_FILE", "/nowhere/token"),
        ("ANTHROPIC_CONFIG_DIR", "/nowhere"),
    ],
)
def test_credentials_that_cannot_be_used_are_named(name, value):
    rule = {"ANTHROPIC_FEDERATION_RULE_ID": "fr_1", "ANTHROPIC_ORGANIZATION_ID": "org_1"}
    more = rule if "TOKEN" in name else {}
    error = asked({"ANTHROPIC_API_KEY": "", name: value, **more})

    assert isinstance(error, ModelError), error
    assert f"{name}={value!r}" in str(error)


@pytest.mark.parametrize(
    "variables",
    [
        {"NO_PROXY": "localhost,127.0.0.0/8,fd00::/8"},
        {"NO_PROXY": "[::1, a b, http://[, 10.0.0.0/99, *.*, \u00e9, ,://"},
        {"HTTP_PROXY": REFUSING, "NO_PROXY": "[::1, 10.0.0.0/99, x/y"},
        {"HTTP_PROXY": REFUSING},
        {"http_proxy": REFUSING, "https_proxy": REFUSING},
        {"ALL_PROXY": REFUSING},
        {"ANTHROPIC_LOG": "loud"},
        {"ANTHROPIC_AUTH_TOKEN": "another"},
        {"ANTHROPIC_CUSTOM_HEADERS": "x-team: blue\nno header\n"},
        {"ANTHROPIC_API_KEY": f"{KEY}\r\n"},
        {"ANTHROPIC_API_KEY": f"\ufeff\u00a0'{KEY}'\n"},
        {"ANTHROPIC_API_KEY": " ", "ANTHROPIC_AUTH_TOKEN": f"{KEY}\r"},
        {"OTEL_PROPAGATORS": "nobody", "OTEL_PYTHON_TRACER_PROVIDER": "nobody"},
        {"ANTHROPIC_OPEN_TELEMETRY_TRACES_MAX_CONTENT_BYTES": "many"},
        {"SSL_CERT_FILE": "", "HTTP_PROXY": "", "NO_PROXY": ""},
    ],
)
def test_what_can_be_understood_is(variables):
    assert asked(variables) == "Hi."


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "my.localhost", "127.0.0.1", "127.8.8.8", "127.1", "[::1]"]
)
def test_loopback_goes_through_no_proxy(host):
    with RawServer(response(sse(*said("Through the proxy.")))) as proxy:
        variables = {"HTTP_PROXY": proxy.url, "ALL_PROXY": proxy.url}
        error = asked(variables, base_url=f"http://{host}:9")

    assert "no connection" in str(error)
    assert proxy.requests == []


def test_another_host_goes_through_the_proxy_unless_it_is_an_exception():
    with RawServer(response(sse(*said("Through the proxy.")))) as proxy:
        variables = {"HTTP_PROXY": proxy.url}
        there = "http://api.example"
        assert asked(variables, base_url=there) == "Through the proxy."
        error = asked(variables | {"NO_PROXY": "10.0.0.0/99,example"}, base_url=there)

    assert isinstance(error, ModelError)
    assert there in str(error)


@pytest.mark.parametrize(
    ("variables", "address", "name"),
    [
        ({"HTTPS_PROXY": REFUSING}, "https://api.example", "HTTPS_PROXY"),
        ({"https_proxy": REFUSING}, "https://api.example", "https_proxy"),
        ({"HTTPS_PROXY": "http://127.0.0.1:7", "https_proxy": REFUSING}, "https://api.example", "https_proxy"),
        ({"HTTPS_PROXY": "http://127.0.0.1:7", "http_proxy": REFUSING}, "http://api.example", "http_proxy"),
        ({"ALL_PROXY": "127.0.0.1:9"}, "https://api.example", "ALL_PROXY"),
        ({"ALL_PROXY": "http://127.0.0.1:7", "HTTPS_PROXY": REFUSING}, "https://api.example", "HTTPS_PROXY"),
        ({"HTTP_PROXY": REFUSING}, "https://127.0.0.2:9", None),
        ({"HTTP_PROXY": REFUSING}, "https://api.invalid", None),
        ({"HTTPS_PROXY": REFUSING, "NO_PROXY": "invalid,other"}, "https://api.invalid", None),
        ({"HTTPS_PROXY": REFUSING, "NO_PROXY": "*"}, "https://api.invalid", None),
        ({}, "https://api.invalid", None),
    ],
)  # fmt: skip
def test_a_proxy_that_is_dead_is_named_and_no_other(variables, address, name):
    """Only the API and ANTHROPIC_BASE_URL were: neither was wrong."""
    error = asked(variables, base_url=address)

    assert f"no connection to the API at {address}" in str(error)
    names = {found.upper() for found in re.findall(r"\w+_PROXY", str(error), re.IGNORECASE)}
    if name is None:
        assert not names
        assert "check the network" in str(error)
    else:
        assert f"through the proxy {variables[name]} of {name} " in str(error)
        assert f"check {name} " in str(error)
        assert names == {name.upper(), "NO_PROXY"}


@pytest.mark.parametrize(
    ("entry", "direct", "others"),
    [
        ("10.0.0.0/8", ["10.2.3.4"], ["11.2.3.4", "ten"]),
        ("fd00::/8", ["[fd00::1]"], ["[fe00::1]"]),
        ("[::2]", ["[::2]", "[::2]:8443"], ["[::3]"]),
        ("corp", ["corp", "a.corp", "CORP"], ["acorp"]),
        (".corp", ["a.corp"], ["corp"]),
        ("*.corp", ["a.corp"], ["corp"]),
        ("bar:8443", ["bar:8443"], ["bar"]),
        ("https://bar", ["bar"], ["foo"]),
        ("http://bar", [], ["bar"]),
        (" 'bar' ", ["bar"], ["foo"]),
        ("x/y,http://[,:::,é", [], ["bar"]),
        ("*", ["bar", "10.2.3.4"], []),
    ],
)
def test_hosts_that_no_proxy_names_are_reached_without_one(entry, direct, others):
    variables = {"ALL_PROXY": REFUSING, "NO_PROXY": f"else,{entry}"}
    with patch.dict(os.environ, variables, clear=True):
        reached = {host: proxy_of(f"https://{host}/") is None for host in direct + others}

    assert reached == dict.fromkeys(direct, True) | dict.fromkeys(others, False)


def test_credentials_of_a_dead_proxy_are_in_no_error():
    error = asked({"HTTPS_PROXY": "http://me:password1@127.0.0.1:9"}, base_url="https://a.example")

    assert "through the proxy http" in str(error)
    assert "password1" not in str(error)


def test_a_model_with_an_address_of_its_own_is_untouched():
    wrong = {
        "ANTHROPIC_API_KEY": "caf\u00e9",
        "ANTHROPIC_BASE_URL": "http://[::1",
        "ANTHROPIC_CUSTOM_HEADERS": "x team: caf\u00e9",
        "ANTHROPIC_PROFILE": "nobody",
        "SSL_CERT_FILE": "/nowhere",
        "ALL_PROXY": "socks5://x",
        "NO_PROXY": "[",
    }
    with ScriptedServer([reply("Hi.")]) as server, patch.dict(os.environ, wrong):
        model = AnthropicModel(base_url=server.url, api_key="offline")
        assert asyncio.run(ask(model)) == "Hi."
        assert os.environ["ANTHROPIC_CUSTOM_HEADERS"] == "x team: caf\u00e9"


VALUES = st.one_of(
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=30),
    st.sampled_from(
        [
            "http://[",
            "https://u:p@h:1",
            "socks5h://h",
            "127.0.0.1/8",
            "[::]/0",
            "*",
            "\r\n",
            "@",
            "%00",
        ]
    ),
    st.text("/:@[]%*.,0123456789 \r\n\tah\u00e9", max_size=20),
)
NAMES = [
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_LOG",
    "ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID",
    "ANTHROPIC_OPEN_TELEMETRY", "OTEL_PROPAGATORS", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "no_proxy", "HOME",
]  # fmt: skip


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5))
def test_whatever_the_environment_says_there_is_an_answer_or_an_error(variables):
    got = asked(variables)

    assert got == "Hi." or isinstance(got, ModelError)
    assert got == "Hi." or len(str(got).splitlines()) == 1
    environment.has_credentials()
    with patch.dict(os.environ, variables):
        environment.knows_caching()


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("echo", [KEY, KEY[:20], KEY[-10:], f"Bearer {KEY}", f"...{KEY[-8:]}"])
def test_a_key_that_the_server_echoes_is_in_no_error(echo):
    with ScriptedServer([refuse(401, f"invalid x-api-key {echo}")]) as server:
        variables = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": f"{KEY}\r"}
        with patch.dict(os.environ, variables):
            error = asyncio.run(ask(AnthropicModel(max_retries=0)))

    assert "HTTP 401" in str(error)
    assert not any(KEY[at : at + 8] in str(error) for at in range(len(KEY) - 8))


def test_credentials_of_a_proxy_are_in_no_error():
    error = asked({"HTTPS_PROXY": "ftp://me:password1@proxy:1/?token=abc123"})

    assert "HTTPS_PROXY" in str(error)
    assert "proxy:1" in str(error)
    assert "password1" not in str(error)
    assert "abc123" not in str(error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_takes_neither_the_conversation_nor_a_header_anywhere(status):
    with RawServer(response(sse(*said("Hi.")))) as elsewhere:
        place = f"{elsewhere.url}/v1/messages".replace("127.0.0.1", "localhost")
        with RawServer(response(status=status, headers=[("location", place)])) as server:
            error = asked({"ANTHROPIC_CUSTOM_HEADERS": "X-Gateway-Key: abc"}, base_url=server.url)
    assert elsewhere.requests == []
    assert error.status == status
    assert str(error).endswith(
        f"nothing was sent to {place}; if that is right, change ANTHROPIC_BASE_URL"
    )
