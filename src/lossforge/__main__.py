"""`python -m lossforge`, and the console command: the command line, if its extra is installed."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from .cli.main import app
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('the lossforge command needs typer: pip install "lossforge[bench]"')
    app(prog_name="lossforge")


if __name__ == "__main__":
    main()
