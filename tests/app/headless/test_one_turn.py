"""`-p` and `--input stream-json`: every call has its result, every failure is one, and by schema."""

import json

import jsonschema
import pytest

from tests.app.in_process import run
from tests.app.programs import Program
from tests.json_docs import SCHEMAS
from tests.server import ScriptedServer, call, refuse, reply


def check(name, line):
    jsonschema.validate(line, json.loads((SCHEMAS / f"{name}.json").read_text()))


def of(objects, kind):
    return [found for found in objects if found["type"] == kind]


@pytest.fixture
def server(monkeypatch):
    with ScriptedServer([]) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        yield server


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_refused_calls_have_their_results_and_are_told_once(server, output):
    calls = [
        call("bash", command="touch a", call_id="one"),
        call("bash", command="touch b", call_id="two"),
    ]
    server.add(
        reply(*calls), reply(call("bash", command="touch c", call_id="three")), reply("I see.")
    )
    done = run("-p", "make them", "--output", output)

    assert (done.code, "--yes" in done.complaint) == (0, True)
    assert "nobody was there to ask: 3" in done.complaint
    if output == "stream-json":
        told = of(done.objects, "tool_result")
        assert [each["tool_use_id"] for each in told] == ["one", "two", "three"]
        assert all(each["is_error"] and "--yes" in each["content"] for each in told)
        kinds = [each["type"] for each in done.objects if each["type"] != "stream"]
        assert kinds == ["conversation", *["tool_result"] * 3, "result"]
    for line in done.objects if output != "text" else ():
        check("stream-json", line)


def test_calls_that_never_ran_have_their_results_in_the_stream(server):
    """Cut off, of an unknown tool, or mixed with one that runs: each has one result."""
    server.add(
        reply(call("bash", command="x" * 200, call_id="cut"), cut=True),
        reply(call("fly", call_id="fly"), call("bash", command="echo hi", call_id="ran")),
        reply("Done."),
    )
    done = run("-p", "go", "--yes", "--output", "stream-json")

    assert (done.code, done.err) == (0, "")
    told = of(done.objects, "tool_result")
    assert sorted(each["tool_use_id"] for each in told) == ["cut", "fly", "ran"]
    for line in done.objects:
        check("stream-json", line)


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_a_retry_is_told(server, output):
    server.add(refuse(529, retry_after=0.01), reply("At last."))
    done = run("-p", "hello", "--output", output)

    assert done.code == 0
    if output == "stream-json":
        assert done.err == ""
        assert [
            each["event"]["attempt"]
            for each in of(done.objects, "stream")
            if each["event"]["type"] == "retry"
        ] == [1]
    else:
        assert done.complaint.startswith("leftfold: retrying in 0 s, try 1 of ")
        assert "overloaded" in done.err


@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_turn_that_fails_says_so_in_the_result_and_on_stderr(server, output):
    server.add(refuse(401, "invalid key"))
    done = run("-p", "hello", "--output", output)

    result = done.objects[-1]
    check("result", result)
    assert (done.code, result["outcome"]) == (1, "failed")
    assert result["error"]["message"] in done.complaint


def settings_of_nonsense(home):
    home.mkdir()
    (home / "settings.toml").write_text("model = [")


def store_that_is_a_file(home):
    home.mkdir()
    (home / "conversations").write_text("")


def log_without_events(home):
    store = home / "conversations"
    store.mkdir(parents=True)
    (store / "01920000-0000-7000-8000-000000000001.jsonl").write_bytes(b"\0" * 100)


FAILURES = {
    "settings": (settings_of_nonsense, [], 2),
    "no such thinking": (None, ["--thinking", "nonsense"], 2),
    "no such option": (None, ["--nonsense"], 2),
    "options that exclude": (None, ["-c", "-r", "0192"], 2),
    "no such conversation": (None, ["-r", "ffff-ffff"], 1),
    "a store that is none": (store_that_is_a_file, ["-c"], 1),
    "a log that nobody can read": (log_without_events, ["-r", "0192"], 1),
    "no text": (None, [], 2),
}


@pytest.mark.parametrize("output", [["-p", "hi", "--output", "json"], ["--output=stream-json", "-phi"], ["--input", "stream-json"]], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_before_the_turn_is_one_result(home, server, kind, output):
    prepare, arguments, code = FAILURES[kind]
    if prepare is not None:
        prepare(home)
    if kind == "no text":
        output = ["-p", " ", "--output", "json"]
    done = run(*arguments, *output)

    [result] = done.objects
    check("result", result)
    assert (done.code, result["outcome"], result["id"]) == (code, "failed", None)
    assert result["error"]["message"].splitlines()[0] in done.complaint
    assert server.requests == []


def test_without_a_key_it_is_a_result_too(tmp_path):
    done = run("-p", "hi", "--output", "json")

    assert (done.code, done.objects[0]["error"]["type"]) == (2, "no_credentials")


@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_damage_is_in_what_a_turn_prints(server, home, output):
    server.add(reply("One."), reply("Two."))
    run("-p", "first")
    [log] = (home / "conversations").glob("*.jsonl")
    log.write_bytes(log.read_bytes().replace(b"first", b"FIRST"))
    done = run("-c", "-p", "second", "--output", output)

    assert done.code == 0
    assert "checksum disagrees" in done.complaint
    for line in of(done.objects, "conversation") + of(done.objects, "result"):
        check("stream-json", line)
        assert line["damage"]["findings"][0]["kind"] == "checksum"


# -- exit codes and pipes --------------------------------------------------------------------------


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_standard_stream_that_is_closed_costs_nothing(tmp_path, closed):
    """The next file that is opened would take its number, and what is printed would go there."""
    program = Program(tmp_path)
    for output in ("text", "stream-json"):
        done = program.run("--offline", "-p", "hello", "--output", output, redirected=closed)
        assert (done.code, done.err) == (0, "")
        assert bool(done.out) == (">&-" not in closed.replace("2>&-", ""))
    done = program.run("list", redirected=closed)
    assert (done.code, done.err) == (0, "")
    assert program.run("verify").code == 0


@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_result_that_finds_no_room_is_an_error(tmp_path, output):
    """The turn is in the log, and whoever reads the file gets nothing of it."""
    program = Program(tmp_path)
    done = program.run("--offline", "-p", "hello", "--output", output, redirected=">/dev/full")

    assert (done.code, done.err) == (
        1, "leftfold: standard output: No space left on device\n",
    )  # fmt: skip
    assert program.run("verify").code == 0


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    """`leftfold list --all | head -1`, of more than a pipe holds."""
    with ScriptedServer([reply("x" * 300_000)]) as server:
        program = Program(tmp_path, server)
        assert program.run("-p", "much").code == 0
    for arguments in (["show", program.id()], ["log", program.id(), "--json"]):
        with program.started(*arguments) as process:
            process.stdout.read(1)
            process.stdout.close()
            process.stdout = None
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b""), arguments
