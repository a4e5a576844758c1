"""Make the tests independent of the machine and the shell; torch must not be imported before."""

import os
import signal
import sys

TORCH_CAME_FIRST = "torch" in sys.modules

# Virtual machines may advertise AMX without being able to use it. oneDNN's bf16 convolutions then
# end in SIGILL or in "could not create a primitive", after which float32 convolutions of the same
# process fail too. Without AMX they are right on every x86-64 machine. Child processes and the
# workers of xdist inherit the variable; a value that is set already is kept.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

# what a terminal or a CI service may set, and tests of printed text would see
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)

# A CI service or nohup may start the tests with signals ignored, which their children inherit.
for name in ("SIGTERM", "SIGHUP"):
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)
