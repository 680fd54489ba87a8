# SPDX-License-Identifier: BSD-3-Clause
"""The parts, by name. A new one is a module with a subclass of Part, and a line here and in options.py."""
from bench.parts.idle import Idle
from bench.parts.instructions import Instructions
from bench.parts.links import Links
from bench.parts.live import Live
from bench.parts.netio import Netio
from bench.parts.rings import Rings
from bench.parts.rtt import Rtt
from bench.parts.services import Services
from bench.parts.soak import Soak
from bench.parts.stream import Stream
from bench.parts.verbs import Verbs

ALL = {part.name: part for part in (Rtt, Stream, Rings, Idle, Links, Netio, Services, Verbs, Instructions,
                                  Soak, Live)}
