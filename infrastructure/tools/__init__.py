"""What a model can have done on this machine: run a command, read, write and edit files.

Tools act and answer; they know nothing of events. The loop records before and after.
"""

from __future__ import annotations

from typing import Any, Final

from infrastructure.tools.bash import Bash
from infrastructure.tools.edit import EditTool
from infrastructure.tools.find import Find
from infrastructure.tools.grep import Grep
from infrastructure.tools.ls import Ls
from infrastructure.tools.output import ToolContext, ToolOutput
from infrastructure.tools.read import Read
from infrastructure.tools.tool import Tool
from infrastructure.tools.write import Write

__all__ = ["TOOLS", "Tool", "ToolContext", "ToolOutput"]

TOOLS: Final[tuple[Tool[Any], ...]] = (
    Bash(),
    Read(),
    Write(),
    EditTool(),
    Ls(),
    Find(),
    Grep(),
)
