#!/usr/bin/env python3
"""Writes the golden entry of a schema and prints the golden key, from docs/cache.md alone, sharing no code with cache/.

Run it only when kSchema was raised; keep the files of older schemas, which must be refused for ever.
"""
import hashlib
import pathlib
import struct

SCHEMA = 2
NUMBER = b"\xff" * 8


def number(value):
    return NUMBER + struct.pack("<Q", value)


def field(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


OPTIONS = ["--std=c++17", "--no-cache", "--gpu-architecture=sm_90a"]
KEY = hashlib.sha256(
    field("jitconv image") + number(SCHEMA) + field("sm_90a") + field("13.0") + field("build-id 0123abcd")
    + number(len(OPTIONS)) + b"".join(field(option) for option in sorted(OPTIONS))
    + field("fingerprint") + field('extern "C" __global__ void kernel() {}\n')).digest()

DESCRIPTION = field("target") + field("sm_90a") + field("empty") + field("")
METADATA = b"ptxas info: Used 168 registers\n"
PAYLOAD = bytes(range(256)) + b"\x7fELF"
BODY = (b"\x93jitc\r\n\n" + struct.pack("<Q", SCHEMA) + KEY
        + struct.pack("<QQQQ", 2, len(DESCRIPTION), len(METADATA), len(PAYLOAD)) + DESCRIPTION + METADATA + PAYLOAD)

path = pathlib.Path(__file__).with_name(f"entry_v{SCHEMA}.bin")
path.write_bytes(BODY + hashlib.sha256(BODY).digest())
print(KEY.hex())
