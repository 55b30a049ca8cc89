"""``python app/main.py``: the same as the installed command ``leftfold``."""

import sys

if __name__ == "__main__":
    try:
        from app.cli import main
    except ModuleNotFoundError as error:
        sys.exit(f"leftfold: {error.name} is not installed; run `make run` once to set things up")
    main()
