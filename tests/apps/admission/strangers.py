#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""TCP connections that never become links. Prints "N made" after each hundred, and the number at the end.

    strangers.py HOST:PORT SOURCE COUNT RATE SECONDS [hello] [leave] [again]

RATE is per second. hello: they say plx_tcp's HELLO, otherwise nothing. leave: they close at once, otherwise they stay.
again: those that the server closes are replaced.
"""
import contextlib
import resource
import select
import socket
import sys
import time

OPEN_MAX = 8192  # at a time; one more closes the oldest
# A request to connect, with the opening of a link's HELLO: 14 bytes of private data.
HELLO = b'\x93PLXTCP\n\x01\x01\x0e\0\0\0\0\0' b'\x01\x042XLP\2\2\2\0\3\2\2\0'
CLOSED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
IP_BIND_ADDRESS_NO_PORT = 24


class Strangers:
    def __init__(self, address, source, count, hows):
        host, port = address.split(':')
        self.to, self.source, self.count, self.hows = (host, int(port)), source, count, hows
        self.made = self.closed = 0
        self.open = {}  # by descriptor, the oldest first
        self.epoll = select.epoll()

    def make_one(self):
        if len(self.open) == OPEN_MAX:
            self.open.pop(next(iter(self.open))).close()
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        one.bind((self.source, 0))
        one.connect_ex(self.to)
        self.epoll.register(one, select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)
        self.open[one.fileno()] = one
        self.made += 1
        if self.made % 100 == 0:
            print(self.made, 'made', flush=True)

    def on_event(self, descriptor, events):
        one = self.open.get(descriptor)
        if events & CLOSED:
            self.closed += 1
        elif 'hello' in self.hows:
            with contextlib.suppress(OSError):
                one.send(HELLO)
        if events & CLOSED or 'leave' in self.hows:
            self.open.pop(descriptor).close()

    def run(self, rate, seconds):
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < seconds:
            most = self.count + (self.closed if 'again' in self.hows else 0)
            for _ in range(min(64, most - self.made, int(1 + passed * rate) - self.made)):
                self.make_one()
            for event in self.epoll.poll(0.001):
                self.on_event(*event)
        print(f'{self.made} made, the server closed {self.closed}')


def main():
    address, source, count, rate, seconds, *hows = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    Strangers(address, source, int(count), hows).run(int(rate), float(seconds))


if __name__ == '__main__':
    main()
