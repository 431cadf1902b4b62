"""Reads regular files and nothing else: a link, a pipe, a socket or a device that was handed in is never opened."""

import os
import stat

KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}


class Refused(ValueError):
    """This is not read; the message says why, as the end of a sentence that begins with the name."""


def kind(path) -> str | None:
    """What lies there, in words; None for nothing, or nothing that can be seen."""
    try:
        return KINDS[stat.S_IFMT(os.lstat(path).st_mode)]
    except OSError:
        return None


def content(path, limit: int) -> bytes:
    """All of a file of at most `limit` bytes."""
    if (found := kind(path)) != "a file":
        raise Refused(f"is {found or 'not there'}, not a file")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        raise Refused(f"may not be opened ({problem.strerror})") from None
    with open(handle, "rb") as file:
        raw = file.read(limit + 1) if os.fstat(handle).st_size <= limit else None
    if raw is None or len(raw) > limit:
        raise Refused(f"is larger than {limit >> 20} MB" if limit >> 20 else f"is larger than {limit} bytes")
    return raw
