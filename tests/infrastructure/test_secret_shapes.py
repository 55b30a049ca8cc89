"""Known shapes are masked in any pieces; ordinary code is left as it is."""

import random
import string
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrastructure.secret_shapes import _MOST_HELD, SHAPES, Mask, mark, masked
from tests.levels import examples

ROOT = Path(__file__).parents[2]
ALNUM = string.ascii_letters + string.digits
WORD = f"{ALNUM}_-"
BASE64 = f"{ALNUM}+/"
VALUE = "Zq8vT3nWx7LmB2kR5yJ9"


def chars(of, count):
    return "".join(random.choices(of, k=count))


def pem(kind="RSA ", newline="\n"):
    body = newline.join(chars(BASE64, 64) for _ in range(20))
    return newline.join(
        [f"-----BEGIN {kind}PRIVATE KEY-----", body, f"{chars(BASE64, 22)}==", f"-----END {kind}PRIVATE KEY-----"]
    )  # fmt: skip


SAMPLES = {
    "private key": [
        pem,
        lambda: pem("OPENSSH "),
        lambda: pem("", "\\n"),
        lambda: pem("EC ", "\r\n"),
    ],
    "AWS secret key": [
        lambda: f"aws_secret_access_key = {chars(BASE64, 40)}",
        lambda: f'AWS_SECRET_ACCESS_KEY="{chars(BASE64, 40)}"',
        lambda: f'"SecretAccessKey": "{chars(BASE64, 40)}"',
    ],
    "AWS access key": [lambda: f"AKIA{chars(string.ascii_uppercase + '234567', 16)}"],
    "GitHub token": [
        lambda: f"ghp_{chars(ALNUM, 36)}",
        lambda: f"github_pat_{chars(ALNUM, 22)}_{chars(ALNUM, 59)}",
    ],
    "GitLab token": [lambda: f"glpat-{chars(ALNUM, 20)}"],
    "Slack token": [lambda: f"xoxb-{chars(string.digits, 12)}-{chars(ALNUM, 24)}"],
    "Slack webhook": [
        lambda: (
            f"https://hooks.slack.com/services/T{chars(ALNUM, 8)}/B{chars(ALNUM, 8)}/{chars(ALNUM, 24)}"
        )
    ],
    "Stripe key": [lambda: f"sk_live_{chars(ALNUM, 24)}", lambda: f"whsec_{chars(ALNUM, 32)}"],
    "Anthropic key": [lambda: f"sk-ant-api03-{chars(WORD, 93)}AA"],
    "OpenAI key": [lambda: f"sk-proj-{chars(WORD, 64)}a", lambda: f"sk-{chars(ALNUM, 48)}"],
    "Google API key": [lambda: f"AIza{chars(WORD, 35)}"],
    "Google token": [lambda: f"ya29.{chars(WORD, 60)}a", lambda: f"GOCSPX-{chars(ALNUM, 28)}"],
    "npm token": [lambda: f"npm_{chars(ALNUM, 36)}"],
    "PyPI token": [lambda: f"pypi-AgEIcHlwaS5vcmc{chars(WORD, 70)}a"],
    "Hugging Face token": [lambda: f"hf_{chars(ALNUM, 34)}"],
    "SendGrid key": [lambda: f"SG.{chars(WORD, 22)}.{chars(WORD, 43)}"],
    "DigitalOcean token": [lambda: f"dop_v1_{chars('0123456789abcdef', 64)}"],
    "JSON web token": [
        lambda: f"eyJ{chars(WORD, 33)}.eyJ{chars(WORD, 80)}.{chars(WORD, 42)}a",
        lambda: f"eyJ{chars(WORD, 33)}.eyJ{chars(WORD, 3000)}.{chars(WORD, 342)}a",
    ],
    "GITHUB_PASSWORD": [lambda: VALUE],
}
VALUES = {VALUE: "GITHUB_PASSWORD"}
EACH = [(name, make) for name, makes in SAMPLES.items() for make in makes]
SURROUNDINGS = [
    "",
    "\n",
    " ",
    '"',
    "=",
    "x = ",
    "(",
    "export KEY=",
    "Authorization: Bearer ",
    "é ",
    "\x1b[31m",
]


def in_pieces(data, cuts):
    mask = Mask(VALUES)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    given = b"".join(mask.feed(data[a:b]) for a, b in pairwise(places))
    return given + mask.rest(), mask.found


def test_every_shape_has_a_sample():
    assert {shape.name for shape in SHAPES} | set(VALUES.values()) == set(SAMPLES)


@settings(max_examples=examples(400))
@given(
    which=st.sampled_from(EACH),
    seed=st.integers(0, 2**32),
    before=st.sampled_from(SURROUNDINGS),
    after=st.sampled_from(["", "\n", " ", '"', ",", ")", "; ", "\nmore\n"]),
    cuts=st.lists(st.integers(0, 10_000), max_size=12),
)
def test_a_planted_key_never_comes_through_however_it_is_cut(which, seed, before, after, cuts):
    name, make = which
    random.seed(seed)
    key = make()
    text = f"some output\n{before}{key}{after}"
    whole, found = masked(text, VALUES)
    pieces, found_in_pieces = in_pieces(text.encode(), cuts)

    assert mark(name) in whole
    assert name in found
    assert pieces.decode() == whole
    assert found_in_pieces == found
    secret = key.rpartition("= ")[2].rpartition('": "')[2]
    assert not any(secret[at : at + 16] in whole for at in range(10, len(secret) - 28))


@pytest.mark.parametrize("make", [make for _, make in EACH])
def test_a_key_that_comes_byte_by_byte_is_masked(make):
    random.seed(1)
    data = f"see {make()} and go on\n".encode()

    assert in_pieces(data, range(len(data)))[0] == masked(data.decode(), VALUES)[0].encode()


def test_a_token_that_is_longer_than_what_can_be_held_is_left_out_to_its_end():
    random.seed(2)
    token = f"eyJ{chars(WORD, 33)}.eyJ{chars(WORD, 300)}.{chars(WORD, 4 * _MOST_HELD)}a"
    data = f"see {token} end\n".encode()
    mask = Mask({})
    given = b"".join(mask.feed(data[at : at + 1000]) for at in range(0, len(data), 1000))
    given += mask.rest()

    assert given == b"see [masked: JSON web token] end\n"


def test_what_is_no_secret_is_not_held_back():
    """Dots, a question, half a line: a person watches."""
    mask = Mask(VALUES)

    for piece in (b"..", b".", b"Really? [y/N] ", b"50%", b"\xff\x00", b"Processing", b" bags"):
        assert mask.feed(piece) == piece


def test_ordinary_code_stays_as_it_is():
    """All of this repository but for tests, which plant keys."""
    files = [
        *(path for folder in ("app", "domain", "infrastructure", "docs") for path in (ROOT / folder).rglob("*")),
        *ROOT.glob("*.*"),
    ]  # fmt: skip
    texts = [path.read_text() for path in files if path.suffix in (".py", ".md", ".json", ".po", ".toml", ".lock")]  # fmt: skip

    assert len(texts) > 200
    assert [masked(text, {})[1] for text in texts if masked(text, {})[1]] == []


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----",
        "if line.startswith('-----BEGIN RSA PRIVATE KEY-----'):\n    return load(line)\n",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
        "AKIA", "sk-learn", "risk-averse", "task-force", "sk-test", "ghp_short", "eyJ", "npm_config_registry",
        "hf_hub_download(repo_id)", "AIzawa", "SG.A", "sha512-" + "a" * 88, "a" * 5000, "f" * 64,
        "https://hooks.slack.com/services/", "aws_secret_access_key = os.environ['X']", "xoxb-",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(text):
    assert masked(text, {}) == (text, [])
    assert in_pieces(text.encode(), range(0, len(text), 7))[0] == text.encode()
