"""A delay line: one process that passes frames between two network devices, each after a fixed time.

    python3 -m lab.delay_line DEVICE DEVICE MICROSECONDS

The kernels of test machines may lack netem. The devices must be up; their other ends may be ports of bridges. Frames
keep their order and their offloads, so that TCP sends large ones."""

from __future__ import annotations

import collections
import contextlib
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23  # <linux/if_packet.h>
SO_RCVBUFFORCE = 33  # <asm-generic/socket.h>
BUFFER_BYTES = 16 << 20
LARGEST_FRAME = 1 << 17


def open_device(device: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    end.bind((device, 0))
    return end


def main() -> None:
    one, other = open_device(sys.argv[1]), open_device(sys.argv[2])
    delay = int(sys.argv[3]) / 1e6
    across = {one: other, other: one}
    waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
    print("ready", flush=True)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select([one, other], [], [], pause)[0]:
            waiting.append((time.monotonic() + delay, across[end], end.recv(LARGEST_FRAME)))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, frame = waiting.popleft()
            with contextlib.suppress(OSError):  # a full queue drops the frame, as a switch does
                end.send(frame)


if __name__ == "__main__":
    main()
