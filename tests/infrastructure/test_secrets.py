"""The gate: no text of an error tells a secret, whole or in part, and other text stays as it is."""

import os
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.explanations import explanation, name_of, traceback_of
from domain.text import valid
from infrastructure.errors import ModelError, StoreError
from infrastructure.secrets import is_secret, names_secret, redacted

KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
PLAIN = "Zq8vT3nWx7LmB2kR5yJ9"


@pytest.fixture(autouse=True)
def _secrets(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\r")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-team: blue-team\nx-pass: {PLAIN}")
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter22")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"invalid x-api-key {KEY}", "invalid x-api-key [ANTHROPIC_API_KEY]"),
        (f"header 'Bearer {KEY}\\r'", "header 'Bearer [ANTHROPIC_API_KEY]\\r'"),
        (f"key ending in {KEY[-8:]}", "key ending in [ANTHROPIC_API_KEY]"),
        (f"key {KEY[:17]}...", "key [ANTHROPIC_API_KEY]..."),
        (f"value {PLAIN}", "value [ANTHROPIC_CUSTOM_HEADERS]"),
        ("password hunter22", "password [DATABASE_PASSWORD]"),
        ("another key sk-proj-abcd1234efgh", "another key [secret]"),
        ("sk-live-***wxyz", "[secret]"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [secret]"),
        ("authorization: abcdef123", "authorization: [secret]"),
        ("{'x-api-key': 'abc123'}", "{'x-api-key': '[secret]'}"),
        ("http://me:word@host:1/a", "http://[secret]@host:1/a"),
        ("http://token@host/", "http://[secret]@host/"),
        ("https://h/v1?key=abc&x=1", "https://h/v1?key=[secret]&x=1"),
        ("https://h/?a=1&access_token=abc#f", "https://h/?a=1&access_token=[secret]#f"),
        ("token ghp_QWERTYUIOPASDF", "token [secret]"),
    ],
)
def test_a_secret_is_replaced(text, shown):
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the API does not know this model or address (HTTP 404): check --model",
        "http://127.0.0.1:8080/v1/messages?beta=true",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "check ANTHROPIC_API_KEY",
        "me@example.com, a task-force, risk-averse",
        "x-api-key header is required",
        "expected a Bearer token",
        "authorization is needed",
    ],
)
def test_other_text_stays_as_it_is(text):
    assert redacted(text) == text


@given(st.text(max_size=30), st.integers(0, 30), st.integers(8, 50), st.text(max_size=30))
def test_no_piece_of_a_key_comes_through(before, start, length, after):
    piece = KEY[start : start + length]
    shown = redacted(f"{before} {piece} {after}")

    assert not any(KEY[at : at + 8] in shown for at in range(len(KEY) - 7)) or len(piece) < 8


@pytest.mark.parametrize("wrap", [ModelError, StoreError])
def test_every_way_in_which_an_error_is_told_passes_the_gate(wrap):
    try:
        try:
            raise ValueError(f"no such key: {KEY}")
        except ValueError as error:
            raise wrap(f"refused {KEY}") from error
    except wrap as error:
        told = [explanation(error)[0], name_of(error), traceback_of(error)]

    assert all(told)
    assert not any(KEY[4:20] in text for text in told)
    assert "Traceback" in told[2]


_CREDENTIALS = """
ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS AWS_ACCESS_KEY_ID
AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_BEARER_TOKEN_BEDROCK AZURE_CLIENT_SECRET
AZURE_STORAGE_KEY GOOGLE_API_KEY GEMINI_API_KEY OPENAI_API_KEY OPENAI_KEY OPENAIKEY GITHUB_TOKEN
GH_TOKEN NPM_TOKEN NPM_CONFIG__AUTH PYPI_TOKEN HF_TOKEN DATABASE_PASSWORD PGPASSWORD DB_PASS
MYSQL_ROOT_PASSWORD SSH_PASSPHRASE APIKEY MYAPIKEY API_KEYS TS_AUTHKEY SLACK_SIGNING_SECRET
SESSION_COOKIE CIPHER_KEY STRIPE_SECRET_KEY VAULT_TOKEN GOOGLE_CREDENTIALS JWT_PRIVATE_KEY
PROXY_AUTHORIZATION ENCRYPTION_KEY KEY TOKEN PASSWORD SECRET KEY2 api-key apikey accessToken
clientSecret APIKey x-api-key access_token
"""
_WORDS = """
MONKEY TURKEY HOCKEY DONKEY WHISKEY HOTKEY JOCKEY KEYBOARD KEYMAP KEYCHAIN KEYSTROKES XKEYSYMDB
COMPASS BYPASS PASSAGE PASSIVE SECRETARY TOKENIZER TOKENIZERS_PARALLELISM MAX_TOKENS PRIVATEER
AUTHOR PATH HOME COOKIECUTTER_CONFIG MonkeyBusiness
"""
CREDENTIALS, WORDS = _CREDENTIALS.split(), _WORDS.split()
ANYWHERE = [name for name in CREDENTIALS if not name.endswith("_AUTH")]  # that is one at the end
BORDERS = st.sampled_from(["_", "-", ".", "__", "_2_"])


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_name_that_speaks_of_a_secret_is_one(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", [*WORDS, "ANTHROPIC_IDENTITY_TOKEN_FILE"])
def test_the_place_of_a_secret_and_other_words_are_none(name):
    assert not is_secret(name)


@given(st.lists(st.sampled_from(WORDS[:-7]), max_size=3), st.sampled_from(ANYWHERE), BORDERS)
def test_a_word_counts_wherever_it_stands_and_a_part_of_one_nowhere(words, credential, border):
    assert names_secret(border.join([credential, *words]))
    assert names_secret(border.join([credential.lower(), "x"]))
    assert not names_secret(border.join(words))


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"])
def test_a_secret_that_is_no_text_is_hidden_and_breaks_nothing(monkeypatch, name):
    """Each error became a traceback, which hid what was wrong."""
    secret = f"x: {PLAIN[::-1]}\udcff{KEY[::-1]}"
    monkeypatch.setenv(name, secret)

    for form in (secret, valid(secret), quote(os.fsencode(secret), safe="")):
        told = redacted(f"it was <{form}>")
        assert f"[{name}]" in told
        assert PLAIN[::-1] not in told
        assert KEY[::-1] not in told
