"""`python -m lossforge`, and the console command: the command line, if its extra is installed."""

import sys

from . import interrupts


def main() -> None:
    """Run the command line."""
    interrupts.install()
    try:
        from .cli.main import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('the lossforge command needs typer: pip install "lossforge[bench]"')
    run()


if __name__ == "__main__":
    main()
