"""What signs requests and opens accounts: no tool gets it, nor finds it with its parent."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.withheld import GIVEN, for_tools, is_withheld
from tests.app.programs import ROOT, Program, events, results
from tests.server import ScriptedServer, call, reply

SECRET = "sk-of-nobody-1234567890"

WITHHELD = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE", "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY", "ANTHROPIC_WORK_SECRET", "ANTHROPIC_ENVIRONMENT_KEY",
    "ANTHROPIC_AWS_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_API_KEY",
    "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "ARM_CLIENT_SECRET",
    "CLOUDSDK_AUTH_ACCESS_TOKEN", "SLACK_WEBHOOK_URL", "DISCORD_WEBHOOK", "STRIPE_WEBHOOK_SECRET",
    "CIPHER_KEY", "POSTGRES_PASSWORD", "GCP_SERVICE_ACCOUNT_KEY", "GCLOUD_ACCESS_TOKEN",
    "VERTEX_API_KEY", "BEDROCK_API_KEY", "GATEWAY_CUSTOM_HEADERS",
)  # fmt: skip

GIVEN_TO_TOOLS = (
    "PATH", "HOME", "PWD", "OLDPWD", "LANG", "SSH_AUTH_SOCK", "AWS_PROFILE", "AWS_REGION",
    "AWS_CA_BUNDLE", "GOOGLE_CLOUD_PROJECT", "AZURE_TENANT_ID", "POSTGRES_DB", "http_proxy",
    "HTTPS_PROXY", "NO_PROXY", "NPM_TOKEN", "GITHUB_TOKEN", "DATABASE_URL", "PROJECT_KEY",
    "JAVA_HOME", "VIRTUAL_ENV", "NODE_OPTIONS", "TOKENIZERS_PARALLELISM", "DOCKER_HOST",
)  # fmt: skip


@pytest.mark.parametrize("name", WITHHELD)
def test_what_signs_requests_and_opens_accounts_is_withheld(name):
    assert for_tools({name: SECRET, name.lower(): SECRET, "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize("name", GIVEN_TO_TOOLS)
def test_what_builds_need_they_get(name):
    assert for_tools({name: "x"}) == {name: "x"}


def test_a_person_gives_what_they_name_but_never_what_is_the_models():
    environment = {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "key",
        "AWS_SESSION_TOKEN": "not named",
        "AWS_SECRET": "part of a name that is given",
        "ANTHROPIC_API_KEY": SECRET,
        "aws_bearer_token_bedrock": SECRET,
        GIVEN: "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,ANTHROPIC_API_KEY aws_bearer_token_bedrock",
    }

    assert for_tools(environment) == {
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "key",
        GIVEN: environment[GIVEN],
    }


@given(st.from_regex(re.compile(r"[A-Z_]{0,20}"), fullmatch=True), st.text())
def test_nothing_gives_a_tool_what_is_the_sdks(rest, given_names):
    assert is_withheld(f"ANTHROPIC_{rest}", f"{given_names} ANTHROPIC_{rest}")


LOOK = """
import subprocess, sys
from infrastructure.withheld import hide
hide()
with open("/proc/self/environ", "rb") as file:
    sys.stdout.buffer.write(file.read() + b"|")
sys.stdout.flush()
subprocess.run(["/usr/bin/env", "-0"], check=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nobody shows it elsewhere")
def test_what_is_hidden_is_overwritten_and_nothing_else_and_is_there_for_ones_own_programs():
    environment = {
        "BEFORE": "1",
        "AWS_SECRET_ACCESS_KEY": "given to tools",
        "ANTHROPIC_API_KEY": SECRET,
        "BETWEEN": "2",
        "CLAUDE_X": "x",
        "AFTER": "3",
        GIVEN: "AWS_SECRET_ACCESS_KEY",
    }
    done = subprocess.run(
        [sys.executable, "-c", LOOK], env=environment, cwd=ROOT, capture_output=True, check=True
    )
    seen, _, inherited = done.stdout.decode().partition("|")
    hidden = environment | {"ANTHROPIC_API_KEY": "\0" * len(SECRET), "CLAUDE_X": "\0"}

    assert seen == "".join(f"{name}={value}\0" for name, value in hidden.items())
    kept = dict(entry.split("=", 1) for entry in inherited.split("\0") if entry)
    assert {name: kept[name] for name in environment} == environment


@pytest.mark.skipif(sys.platform != "linux", reason="nobody shows it elsewhere")
def test_a_tool_finds_no_credential_in_its_environment_nor_with_its_parent(tmp_path):
    command = r"env; tr '\0' '\n' < /proc/$PPID/environ; tr '\0' ' ' < /proc/$PPID/cmdline"
    script = [reply(call("bash", command=command, call_id="look")), reply("Done.")]
    secrets = dict.fromkeys(WITHHELD, SECRET) | {
        "ANTHROPIC_CUSTOM_HEADERS": f"X-Secret: {SECRET}",
        "GITHUB_TOKEN": "of the build",
    }
    for name in ("ANTHROPIC_AUTH_TOKEN", "CIPHER_KEY", "ANTHROPIC_IDENTITY_TOKEN_FILE"):
        del secrets[name]  # they would change what the program does
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        program.is_cold = True  # what the kernel shows of a process is of its start
        program.environment = secrets | program.environment | {"ANTHROPIC_API_KEY": SECRET}
        done = program.run("-p", "look", "--yes")

    assert done.code == 0, done
    found = results(events(program.log()))["look"]
    assert "app/main.py" in found  # it was our program's that it looked at
    assert "GITHUB_TOKEN=of the build" in found
    assert "PATH=" in found
    assert SECRET not in found
    assert SECRET not in program.log().read_text()
