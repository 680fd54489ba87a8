#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Loads the library, starts and stops it, and unloads it, three times: no eventfd is left, and no signal handler changed.

    unload.py LIBRARY
"""
import _ctypes
import ctypes
import os
import signal
import sys

CONF_BYTES = 1 << 16  # more than struct plx_eal_conf has; zero is the default of each member


def eventfds():
    folder = '/proc/self/fd'
    paths = [f'{folder}/{fd}' for fd in os.listdir(folder)]
    return sum('[eventfd]' in os.readlink(path) for path in paths if os.path.islink(path))


def actions():
    """The handlers and flags of signals that the library may catch; the mask is between the two."""
    action, out = ctypes.create_string_buffer(256), []
    for number in (signal.SIGINT, signal.SIGSEGV):
        ctypes.CDLL(None).sigaction(number, None, action)
        out += [action.raw[:8], action.raw[136:140]]
    return out


def round_trip(path):
    conf = ctypes.create_string_buffer(CONF_BYTES)
    library = ctypes.CDLL(path)
    assert library.plx_eal_init(conf) == 0 and library.plx_eal_fini() == 0
    library.plx_eal_conf_fini(conf)
    _ctypes.dlclose(library._handle)
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    except OSError:
        return
    sys.exit('the library stays loaded')


signal.signal(signal.SIGINT, lambda number, frame: None)
signal.signal(signal.SIGSEGV, lambda number, frame: None)
before = eventfds(), actions()
for _ in range(3):
    round_trip(sys.argv[1])
    after = eventfds(), actions()
    assert after == before, (after, before)
