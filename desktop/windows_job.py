"""Windows: a job whose processes end when Deskhand does, also when it is killed. Used by ``processes`` alone.

Windows closes the handles of a process that has ended; with the last handle of this job all processes in it are ended, and
those that they started.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_EXTENDED_LIMITS = 9
"""JobObjectExtendedLimitInformation."""
_KILL_ON_JOB_CLOSE = 0x2000
_size = ctypes.c_size_t


class _BasicLimits(ctypes.Structure):
    """JOBOBJECT_BASIC_LIMIT_INFORMATION."""

    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", _size),
        ("MaximumWorkingSetSize", _size),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", _size),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", _size),
        ("JobMemoryLimit", _size),
        ("PeakProcessMemoryUsed", _size),
        ("PeakJobMemoryUsed", _size),
    )


def end_with_us(process_handle: int) -> None:
    """Puts a process into the job. One that can't be put there is ended by other means alone."""
    if sys.platform == "win32":
        kernel, job = _job()
        kernel.AssignProcessToJobObject(job, ctypes.c_void_p(process_handle))


@functools.cache
def _job() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The system's library and the job's handle, which is never closed: Windows does that when we end."""
    if sys.platform != "win32":
        raise NotImplementedError
    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    job = ctypes.c_void_p(kernel.CreateJobObjectW(None, None))
    limits = ExtendedLimits()
    limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
    kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
    return kernel, job
