"""Two programs on one conversation: the second is told, and offered a copy or a look."""

import pexpect

from tests.app.programs import Program


def test_a_second_program_is_told_who_holds_it_until_the_holder_dies(tmp_path):
    program = Program(tmp_path, TERM="dumb")
    repl = program.at_terminal("--offline")
    repl.expect("leftfold>")
    repl.send("hello there\r")
    repl.expect("offline model")
    repl.expect("leftfold>")
    again = ["--offline", "-r", program.id()]

    told = program.run(*again, "-p", "hi")
    assert told.code == 1
    assert f"pid {repl.pid}" in told.complaint
    assert f"--fork {program.id()}" in told.complaint

    second = program.at_terminal(*again)
    second.expect(f"pid {repl.pid}")
    second.expect("Go on in a copy")
    second.send("fork\r")
    second.expect("Restored 2 messages")
    second.close(force=True)

    third = program.at_terminal(*again)
    third.expect("Go on in a copy")
    third.send("look\r")
    third.expect("hello there")
    third.expect(pexpect.EOF)

    repl.kill(9)
    repl.wait()
    assert Program(tmp_path).run("-r", again[-1], "--offline", "-p", "hi").code == 0
