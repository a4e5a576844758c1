"""Build the sdist and the wheels, and use the wheels where there is torch alone.

    python tests/clean_install.py [PYTHON ...]

There is a wheel with the compiled kernel and one without. Both are tried in an empty environment of
this interpreter, or of those that are named. The distributions stay in build/dist; the environments
are removed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "build" / "dist"
TORCH_ALONE = """
import pickle
import sys
from importlib.util import find_spec

import torch
import lossforge

assert "site-packages" in lossforge.__file__, lossforge.__file__
assert not [name for name in ("numpy", "scipy", "typer", "pydantic") if find_spec(name)]
logits = torch.randn(8, 10, requires_grad=True)
for name in ("BEF", "BQF", "GCE", "NCE+AGCE"):
    loss = pickle.loads(pickle.dumps(lossforge.make(name)))
    loss(logits, torch.arange(8)).backward()
    assert logits.grad.isfinite().all()
noise = lossforge.noise.symmetric(10, 0.8)
assert lossforge.theory.certify(lossforge.BEF(), noise).status == "PROVED"
where = f"Python {sys.version.split()[0]}, torch {torch.__version__}"
kernel = lossforge.kernels.describe()
print(lossforge.__version__, "works with torch alone,", where, "kernel:", kernel)
"""


def main() -> None:
    """Fails at the first step that does."""
    wheel, pure = build_all()
    for interpreter in sys.argv[1:] or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            run([interpreter, "-m", "venv", folder])
            try_out(Path(folder, "bin", "python"), wheel, pure)


def build_all() -> tuple[Path, Path]:
    """Build the sdist and both wheels; returns the one with the kernel and the one without."""
    shutil.rmtree(DIST, ignore_errors=True)
    build = [sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)]
    run(build, stdout=subprocess.DEVNULL)
    (wheel,) = DIST.glob("*.whl")
    pure_only = {**os.environ, "LOSSFORGE_PURE": "1"}
    run([*build, "--wheel"], stdout=subprocess.DEVNULL, env=pure_only)
    (pure,) = DIST.glob("*-none-any.whl")
    return wheel, pure


def try_out(python: Path, wheel: Path, pure: Path) -> None:
    """Install one wheel after the other into an environment, and use each."""
    quiet = ["--quiet", "--disable-pip-version-check"]
    constraints = ["-c", str(ROOT / "constraints.txt")]
    run([python, "-m", "pip", "install", *quiet, *constraints, wheel])
    # from elsewhere, so that the checkout is not what is imported; torch warns without numpy
    ignore = ["-W", "error", "-W", "ignore:Failed to initialize NumPy:UserWarning"]
    elsewhere = python.parent
    built = "assert lossforge.kernels.is_built()" if shutil.which("cc") else ""
    run([python, *ignore, "-c", TORCH_ALONE + built], cwd=elsewhere)
    again = ["--force-reinstall", "--no-deps"]
    run([python, "-m", "pip", "install", *quiet, *again, pure])
    without = TORCH_ALONE + "assert lossforge.kernels.describe() == 'composed'"
    run([python, *ignore, "-c", without], cwd=elsewhere)
    asked = subprocess.run(
        [python.with_name("lossforge"), "losses"], capture_output=True, text=True
    )
    assert (asked.returncode, asked.stdout) == (1, ""), asked
    assert 'pip install "lossforge[bench]"' in asked.stderr, asked
    sys.stdout.write(asked.stderr.splitlines()[-1] + "\n")


def run(words: list, **options) -> None:
    subprocess.run([str(word) for word in words], check=True, **options)


if __name__ == "__main__":
    main()
