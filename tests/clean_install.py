"""Build the sdist and the wheel, and use the wheel in an environment that has torch alone.

    python tests/clean_install.py

The distributions stay in build/dist; the environment is removed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "build" / "dist"
TORCH_ALONE = """
import pickle
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
print(lossforge.__version__, "works with torch alone, kernel:", lossforge.kernels.describe())
"""


def main() -> None:
    """Fails at the first step that does."""
    shutil.rmtree(DIST, ignore_errors=True)
    build = [sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)]
    run(build, stdout=subprocess.DEVNULL)
    (wheel,) = DIST.glob("*.whl")
    pure_only = {**os.environ, "LOSSFORGE_PURE": "1"}
    run([*build, "--wheel"], stdout=subprocess.DEVNULL, env=pure_only)
    (pure,) = DIST.glob("*-none-any.whl")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        quiet = ["--quiet", "--disable-pip-version-check"]
        constraints = ["-c", str(ROOT / "constraints.txt")]
        run([python, "-m", "pip", "install", *quiet, *constraints, str(wheel)])
        # from elsewhere, so that the checkout is not what is imported; torch warns without numpy
        ignore = ["-W", "error", "-W", "ignore:Failed to initialize NumPy:UserWarning"]
        built = "assert lossforge.kernels.is_built()" if shutil.which("cc") else ""
        run([python, *ignore, "-c", TORCH_ALONE + built], cwd=folder)
        again = ["--force-reinstall", "--no-deps"]
        run([python, "-m", "pip", "install", *quiet, *again, str(pure)])
        without = TORCH_ALONE + "assert lossforge.kernels.describe() == 'composed'"
        run([python, *ignore, "-c", without], cwd=folder)
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
