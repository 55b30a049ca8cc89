"""Settings: which source wins, what is refused and how, and what a project may not say."""

import json
import re

import pytest

from app.configuration import DEFAULT_TOOLS, VARIABLES, choices
from app.errors import UsageError
from app.settings import run_settings, settings
from domain.thinking import THINKING_LEVELS
from tests.app.programs import ROOT, Program, events
from tests.server import ScriptedServer, reply


@pytest.fixture
def files(tmp_path, home, monkeypatch):
    """The user's and the project's file, and a working directory inside of the project."""
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    home.mkdir()
    monkeypatch.chdir(project / "src")
    return home / "settings.toml", project / ".leftfold.toml"


def test_flags_over_environment_over_project_over_user_over_defaults(files, monkeypatch):
    user, project = files
    assert run_settings().keys.thinking == "off"

    user.write_text('model = "user"\nthinking = "low"\ncontext_window = 5000\nyes = true')
    project.write_text('model = "project"\nthinking = "medium"')
    monkeypatch.setenv("LEFTFOLD_THINKING", "high")
    found = run_settings()
    assert (found.keys.model, found.keys.thinking) == ("project", "high")
    assert (found.keys.context_window, found.keys.yes) == (5000, True)

    monkeypatch.setenv("MODEL_ID", "environment")
    assert run_settings().keys.model == "environment"

    found = run_settings(model="flag", thinking="max")
    assert (found.model, found.keys.model) == ("flag", "flag")
    assert (found.thinking, found.keys.thinking) == ("max", "max")


def test_a_byte_order_mark_is_no_part_of_a_file(files):
    for file, model in zip(files, ("user", "project"), strict=True):
        file.write_bytes(f'model = "{model}"'.encode("utf-8-sig"))
        assert run_settings().keys.model == model


def test_a_flag_counts_for_a_resumed_conversation_and_a_file_only_for_a_new_one(files):
    files[0].write_text('model = "user"')

    assert run_settings().model is None


def test_the_project_file_is_looked_for_up_to_the_git_root(files):
    _, project = files
    (project.parents[1] / ".leftfold.toml").write_text('model = "above"')
    assert run_settings().keys.model != "above"

    project.write_text('model = "root"')
    assert run_settings().keys.model == "root"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("modle = 'x'", "there is no setting 'modle'; did you mean 'model'?"),
        ("zzz = 1", "there is no setting 'zzz'; there are: model, "),
        ("thinking = 3", "thinking = 3: choose one of 'off', 'low'"),
        ("thinking = 'hard'", "thinking = 'hard': choose one of"),
        ("context_window = 'much'", "context_window = 'much': give a number of tokens"),
        ("context_window = 12", "context_window = 12: give a number of tokens, at least 4000"),
        ("max_tokens = 'much'", "max_tokens = 'much': give a number above 0"),
        ("max_tokens = 0", "max_tokens = 0: give a number above 0"),
        ("yes = 'true'", "yes = 'true': it is either true or false"),
        ("yes = 1", "yes = 1: it is either true or false"),
        ("model = 5", "model = 5: it has to be text"),
        ("tools = ['bsh']", "did you mean 'bash'?"),
        ("tools = []", "name at least one"),
        ("model = ", "this is no TOML"),
        ("model = '\xff'", "this is no TOML"),
    ],
)
def test_what_makes_no_sense_names_the_file_and_the_key(files, text, complaint):
    user, _ = files
    user.write_bytes(text.encode("latin-1"))

    with pytest.raises(UsageError) as problem:
        run_settings()

    assert str(problem.value).startswith(f"{user}: ")
    assert complaint in str(problem.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LEFTFOLD_THINKING", "hard"),
        ("LEFTFOLD_YES", "perhaps"),
        ("LEFTFOLD_CONTEXT_WINDOW", "many"),
        ("LEFTFOLD_CONTEXT_WINDOW", "\udcff"),
        ("LEFTFOLD_THEME", "dark\udcff"),
        ("LEFTFOLD_MAX_COST", "1\udcff"),
        ("LEFTFOLD_TOOLS", "bash,cat"),
    ],
)
def test_a_variable_that_makes_no_sense_is_named(files, monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)

    with pytest.raises(UsageError, match=f"^{variable}="):
        run_settings()


def test_variables_are_read_as_what_they_stand_for(files, monkeypatch):
    monkeypatch.setenv("LEFTFOLD_YES", "true")
    monkeypatch.setenv("LEFTFOLD_TOOLS", "read, bash")
    monkeypatch.setenv("LEFTFOLD_CONTEXT_WINDOW", "9000")

    found = run_settings()

    assert (found.keys.yes, found.tools, found.keys.context_window) == (
        True,
        ("read", "bash"),
        9000,
    )


# -- an untrusted project --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("yes", "true"),
        ("store", '"/srv/logs"'),
        ("durability", '"os"'),
        ("max_requests", "9"),
        ("max_cost", "0.5"),
    ],
)
def test_a_project_can_say_nothing_that_only_its_user_may(files, key, value):
    """The user's own file may say the same: it is not the value that is refused."""
    user, project = files
    user.write_text(f"{key} = {value}")
    run_settings()
    project.write_text(f"{key} = {value}")

    with pytest.raises(UsageError, match=f"'{key}' is for the user's own settings"):
        run_settings()


@pytest.mark.parametrize("key", ["api_key", "base_url", "anthropic_api_key"])
@pytest.mark.parametrize("file", [0, 1], ids=["user", "project"])
def test_keys_and_addresses_are_no_settings(files, file, key):
    files[file].write_text(f'{key} = "x"')

    with pytest.raises(UsageError, match=f"no setting '{key}'"):
        run_settings()


def test_a_project_can_take_tools_away_and_give_none_back(files):
    user, project = files
    project.write_text('tools = ["bash", "read"]')
    assert run_settings().tools == ("bash", "read")

    user.write_text('tools = ["read", "edit"]')
    assert run_settings().tools == ("read",)

    project.write_text("read_only = false")
    with pytest.raises(UsageError, match="not off"):
        run_settings()


@pytest.mark.parametrize("said", ['store = "~nobody-here/x"', 'system_prompt = "@~nobody-here/x"'])
def test_the_home_of_nobody_is_no_place(files, said):
    files[0].write_text(said)

    with pytest.raises(UsageError, match="~nobody-here/x: whose home"):
        run_settings()


@pytest.mark.parametrize("by", ["flag", "environment"])
def test_what_is_said_over_a_project_is_not_narrowed_even_if_it_says_the_same(
    files, monkeypatch, by
):
    user, project = files
    project.write_text('tools = ["bash"]')
    user.write_text('tools = ["read"]')
    if by == "environment":
        monkeypatch.setenv("LEFTFOLD_TOOLS", "bash")

    assert run_settings(tools="bash" if by == "flag" else None).tools == ("bash",)


def test_an_empty_text_is_said_and_an_empty_variable_is_not(files, monkeypatch):
    """Who gives `--system-prompt ""` does not want the one of a file."""
    files[0].write_text('system_prompt = "of the user"\nappend_system_prompt = "more"')
    monkeypatch.setenv("LEFTFOLD_SYSTEM_PROMPT", "")
    assert run_settings().system_prompt == "of the user"

    found = run_settings(system_prompt="", append_system_prompt="", yes=False)

    assert (found.system_prompt, found.append_system_prompt) == ("", "")
    assert choices({"yes": False}).sources["yes"] is None


@pytest.mark.parametrize("more", ["", "yes = false\n"], ids=["read plainly", "checked"])
def test_a_store_named_in_settings_is_the_same_in_every_directory(files, tmp_path, more):
    files[0].write_text(f'{more}store = "logs"')

    assert settings().store == run_settings().store == files[0].parent / "logs"

    files[0].write_text(f'{more}store = "{tmp_path}/elsewhere"')
    assert settings().store == run_settings().store == tmp_path / "elsewhere"


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "~/secret", "link"])
def test_a_project_can_only_name_its_own_files(files, tmp_path, path):
    _, project = files
    (tmp_path / "secret").write_text("a key")
    (project.parent / "link").symlink_to("/etc/hostname")
    project.write_text(f'append_system_prompt = "@{path}"')

    with pytest.raises(UsageError, match="no file of the project: it lies outside"):
        run_settings()


def test_a_file_named_in_settings_is_seen_from_that_file(files):
    user, project = files
    (project.parent / "rules.txt").write_text("of the project")
    project.write_text('append_system_prompt = "@rules.txt"')
    (user.parent / "me.txt").write_text("of the user")
    user.write_text('system_prompt = "@me.txt"')

    found = run_settings()

    assert (found.system_prompt, found.append_system_prompt) == ("of the user", "of the project")


# -- where it is known -----------------------------------------------------------------------------


def test_the_keys_are_the_same_everywhere(files):
    documented = re.findall(
        r"(?m)^\| `(\w+)` \|[^|]*\| `(\w+)` \|", (ROOT / "docs" / "settings.md").read_text()
    )
    assert sorted(documented) == sorted(VARIABLES.items())
    assert run_settings().tools == DEFAULT_TOOLS
    for level in THINKING_LEVELS:
        assert choices({"thinking": level}).keys.thinking == level


def test_commands_that_look_at_logs_know_the_store_of_the_user_file(files, tmp_path):
    files[0].write_text(f'store = "{tmp_path}/elsewhere"\ndurability = "os"\nmodle = "ignored"')

    found = settings()

    assert found.store == tmp_path / "elsewhere"
    assert found.environment["LEFTFOLD_DURABILITY"] == "os"
    assert settings(store=str(tmp_path / "flag")).store == tmp_path / "flag"
    files[0].write_text("store = 5")
    with pytest.raises(UsageError, match=r"settings\.toml: store = 5: it has to be text"):
        settings()


@pytest.mark.parametrize("more", ["", "yes = false\n"], ids=["read plainly", "checked"])
def test_the_environment_wins_over_the_user_file_whichever_way_that_is_read(
    files, monkeypatch, tmp_path, more
):
    files[0].write_text(f'{more}store = "{tmp_path}/file"\ndurability = "fsync"\nmodel = "file"')
    monkeypatch.setenv("LEFTFOLD_STORE", str(tmp_path / "variable"))
    monkeypatch.setenv("LEFTFOLD_DURABILITY", "os")
    monkeypatch.setenv("MODEL_ID", "variable")

    for found in (settings(), run_settings()):
        assert found.store == tmp_path / "variable"
        assert found.environment["LEFTFOLD_DURABILITY"] == "os"
        assert found.keys.model == "variable"


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        *((f"LEFTFOLD_YES={text}", "yes", True) for text in ("1", "yes", "on", "TRUE", "y", "t")),
        *((f"LEFTFOLD_BELL={text}", "bell", False) for text in ("0", "no", "OFF", "False")),
        ("LEFTFOLD_MAX_COST= 2.5 ", "max_cost", 2.5),
        ("LEFTFOLD_MAX_REQUESTS=7", "max_requests", 7),
        ("LEFTFOLD_IDLE_LIMIT=inf", None, "give a number above 0"),
        ("LEFTFOLD_MAX_COST=nan", None, "give a number above 0"),
        ("LEFTFOLD_BELL=2", None, "it is either true or false"),
        ("LEFTFOLD_THEME=Dark", None, "choose one of 'auto', 'dark' or 'light'"),
        ("LEFTFOLD_SYSTEM_PROMPT=null", "system_prompt", "null"),
        ("LEFTFOLD_SYSTEM_PROMPT= 5 ", "system_prompt", " 5 "),
    ],
)
def test_what_a_variable_says_is_text_of_the_settings_type(files, monkeypatch, said, key, value):
    variable, text = said.split("=")
    monkeypatch.setenv(variable, text)

    if key is not None:
        assert getattr(run_settings().keys, key) == value
        return
    with pytest.raises(UsageError, match=f"^{variable}={text!r}: {re.escape(value)}"):
        run_settings()


def test_config_shows_each_value_and_where_it_comes_from(tmp_path):
    program = Program(tmp_path, MODEL_ID="from-environment")
    program.home.mkdir()
    (program.home / "settings.toml").write_text('thinking = "low"\nmodel = "hidden"')
    (program.cwd / ".leftfold.toml").write_text("read_only = true")

    done = program.run("config", "--json")
    found = json.loads(done.out)

    assert (done.code, done.err) == (0, "")
    assert found["model"] == {
        "value": "from-environment",
        "from": "environment",
        "place": "MODEL_ID",
    }
    assert found["thinking"] == {
        "value": "low",
        "from": "user",
        "place": str(program.home / "settings.toml"),
    }
    assert found["read_only"]["place"] == str(program.cwd / ".leftfold.toml")
    assert found["yes"] == {"value": False, "from": "default", "place": None}
    assert found["home"]["place"] == "LEFTFOLD_HOME"
    assert found["store"]["value"] == str(program.store)
    assert list(found) == ["home", *VARIABLES, "hooks"]
    text = program.run("config").out
    assert 'thinking              "low"' in text
    assert f"user: {program.home}/settings.toml" in text


def test_settings_reach_the_conversation(tmp_path):
    with ScriptedServer([reply("One.")]) as server:
        program = Program(tmp_path, server)
        program.home.mkdir()
        (program.home / "settings.toml").write_text('model = "mine"\nthinking = "low"')
        assert program.run("-p", "go").code == 0

        assert server.requests[0].json["model"] == "mine"
    levels = [e for e in events(program.log()) if e["topic"] == "ThinkingLevelChanged"]
    assert levels[0]["state"]["level"] == "low"
