"""Build the C kernel, if there is a compiler; pyproject.toml has everything else.

With LOSSFORGE_PURE=1 nothing is compiled, and the wheel is one for every machine.
"""

import os
import sys
import sysconfig

from setuptools import Extension, setup

LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")  # which has no such interface yet
KERNEL = Extension(
    "lossforge.kernels._rows",
    ["src/lossforge/kernels/rows.c"],
    depends=["src/lossforge/kernels/rows.h", "src/lossforge/kernels/polynomials.h"],
    # no -ffast-math: it assumes infinities away, and makes the linker flush denormals for all code
    extra_compile_args=[
        *("-std=gnu11", "-O3", "-fopenmp-simd", "-pthread"),
        *("-fno-math-errno", "-fno-trapping-math"),
    ],
    extra_link_args=["-pthread"],
    libraries=["m"],
    py_limited_api=LIMITED,  # nothing of Python is in it: one build for every version
    optional=True,  # without a compiler, losses are composed of torch operations
)

compiled = sys.platform != "win32" and not os.environ.get("LOSSFORGE_PURE")
setup(
    ext_modules=[KERNEL] if compiled else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if compiled and LIMITED else {},
)
