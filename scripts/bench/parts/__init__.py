# SPDX-License-Identifier: BSD-3-Clause
"""The parts, by name. A new one is a subclass of Part, a line here and in options.py."""
from bench.parts.counts import Instructions, Rings
from bench.parts.idle import Idle, Links
from bench.parts.messages import Live, Rtt, Stream
from bench.parts.netio import Netio, Soak
from bench.parts.peers import Peers
from bench.parts.services import Services
from bench.parts.verbs import Verbs

ALL = {part.name: part for part in (Rtt, Stream, Rings, Idle, Links, Netio, Services, Verbs, Peers, Instructions, Soak,
                                    Live)}
