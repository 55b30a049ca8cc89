"""``python app/main.py``: the same as the installed command ``leftfold``."""

import _signal  # type: ignore[import-not-found] # see `app.start`
import sys

if __name__ == "__main__":
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    try:
        from app.start import main

        main()
    except ModuleNotFoundError as error:
        sys.exit(f"leftfold: {error.name} is not installed; run `make run` once to set things up")
