# SPDX-License-Identifier: LGPL-2.1-or-later
"""libtwheel, as ctypes sees it: structures, functions and constants.

Functions of the library are called with the interpreter's lock held, as they return at
once, so that no thread can close a wheel under another one; but for twheel_wait(), which
is called without it.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import (POINTER, Structure, c_bool, c_int, c_int32, c_uint, c_uint16, c_uint32,
                    c_uint64, c_void_p)

LIBRARY = "libtwheel.so.0"

OP_ADD = 1
OP_MODIFY = 2
OP_CANCEL = 3
OP_COMPLETE = 4
OP_WATCH = 5
OP_SIGNAL = 6
OP_QUERY = 7

ABS = 1
CANCEL_ON_SET = 2
LEVEL = 4
QUIET = 8
SET_DATA = 16
DEADLINE = 32

CONFIG_CPU = 1

NEVER = 2**64 - 1

# struct twheel_record and struct twheel_entry, for the module struct
RECORD_FORMAT = "=7Q2I"
ENTRY_FORMAT = "=6Q6I"
RECORD_SIZE = 64
ENTRY_SIZE = 72


class Cmd(Structure):
    """struct twheel_cmd."""

    _fields_ = [
        ("op", c_uint16),
        ("flags", c_uint16),
        ("result", c_int32),
        ("id", c_uint64),
        ("data", c_uint64),
        ("time_ns", c_uint64),
        ("interval_ns", c_uint64),
        ("slack_ns", c_uint64),
        ("key", c_uint64),
        ("quorum", c_uint32),
        ("reserved", c_uint32),
    ]


class Config(Structure):
    """struct twheel_config."""

    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("clockid", c_int32),
        ("cpu", c_uint32),
        ("max_events", c_uint64),
        ("slack_ns", c_uint64),
        ("wake_count", c_uint32),
        ("nr_deadlines", c_uint32),
        ("wake_delay_ns", c_uint64),
    ]


class Info(Structure):
    """struct twheel_info."""

    _fields_ = [
        ("size", c_uint32),
        ("abi", c_uint32),
        ("features", c_uint64),
        ("tick_ns", c_uint64),
        ("max_events", c_uint64),
    ]


class Records(Structure):
    """struct twheel_records."""

    _fields_ = [
        ("records", c_void_p),
        ("nr", c_uint),
        ("room", c_uint),
    ]


def _function(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype = result
    function.argtypes = arguments
    return function


_library = ctypes.PyDLL(LIBRARY)

twheel_open_path = _function(_library, "twheel_open_path", c_int, POINTER(c_void_p),
                             ctypes.c_char_p, POINTER(Config))
twheel_close = _function(_library, "twheel_close", None, c_void_p)
twheel_fd = _function(_library, "twheel_fd", c_int, c_void_p)
twheel_info = _function(_library, "twheel_info", POINTER(Info), c_void_p)
twheel_has = _function(_library, "twheel_has", c_bool, c_void_p, c_uint64)
twheel_now_ns = _function(_library, "twheel_now_ns", c_uint64, c_void_p)
twheel_run = _function(_library, "twheel_run", c_int, c_void_p, POINTER(Cmd))
twheel_read = _function(_library, "twheel_read", c_int, c_void_p, POINTER(Records))
twheel_list_sized = _function(_library, "twheel_list_sized", c_int, c_void_p, c_void_p,
                              ctypes.c_size_t, c_uint, POINTER(c_uint64))
twheel_deadline_get = _function(_library, "twheel_deadline_get", c_int, c_void_p)
twheel_deadline_put = _function(_library, "twheel_deadline_put", c_int, c_void_p, c_uint32)
twheel_deadlines = _function(_library, "twheel_deadlines", c_void_p, c_void_p)

twheel_wait = _function(ctypes.CDLL(LIBRARY), "twheel_wait", c_int, c_void_p,
                        POINTER(Records), c_uint64)


def check(result: int) -> int:
    """Return what a function returned, or raise the OSError that it says."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result
