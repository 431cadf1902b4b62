"""A cache of keys and values: state over several calls, and the bytes it keeps."""

import torch

from autograder.exercise import exercise


def appended(KVCache, sizes, chunks):
    """Make a cache, append chunk after chunk; what each append returns, copied at once."""
    cache = KVCache(*sizes)
    return [x.clone() for k, v in chunks for x in cache.append(k, v)]


@exercise(
    "ch08",
    points={"contents": 3, "bytes": 1},
    returns=", ".join(f"{x} after append {n}: B Hkv S D" for n in (1, 2, 3) for x in ("keys", "values")),
    see="08-kv-caching#a-preallocated-cache",
    drive=appended,
)
class KVCache:
    """Keys and values of all positions so far, in order; KVCache(B, Hkv, S, D) holds at most S of them."""

    def __init__(self, batch, heads, length, dim):
        self.chunks = []

    def append(self, k, v):
        self.chunks.append((k, v))
        return tuple(torch.cat(parts, 2) for parts in zip(*self.chunks, strict=True))


def chunked(draw, lengths):
    B, H, D = draw.sizes("B Hkv D")
    chunks = [tuple(draw.normal(B, H, n, D) for _ in "kv") for n in lengths]
    return {"sizes": (B, H, sum(lengths), D), "chunks": chunks}


@KVCache.case("contents")
def prefill_and_two_tokens(draw):
    return chunked(draw, (draw.choice((4, 5, 6)), 1, 1))


@KVCache.case("contents")
def three_chunks(draw):
    return chunked(draw, (3, draw.choice((4, 5)), 2))


def two_buffers(sizes, chunks):
    """Bytes of one buffer for keys and one for values, in float32."""
    B, H, S, D = sizes
    return 2 * 4 * B * H * S * D


@KVCache.case("bytes", kept=two_buffers)
def filled_to_the_end(draw):
    return chunked(draw, (7, 1, 1))


class Buffers:
    """One implementation with an attribute for each slip."""

    advance = True
    before = after = 0
    front = exchange = alias = False
    wide = 1

    def __init__(self, batch, heads, length, dim):
        self.k, self.v = (torch.zeros(batch, heads, length * self.wide, dim) for _ in "kv")
        self.v, self.n = self.k if self.alias else self.v, 0

    def append(self, k, v):
        k, v = (v, k) if self.exchange else (k, v)
        end = self.n + k.shape[2]
        for buffer, new in ((self.k, k), (self.v, v)):
            if self.front:
                buffer[:, :, new.shape[2] : end] = buffer[:, :, : self.n].clone()
            place = slice(0, new.shape[2]) if self.front else slice(self.n, end)
            buffer[:, :, place] = new
        shown = slice(self.before, end + self.after)
        self.n = end if self.advance else self.n
        return self.k[:, :, shown], self.v[:, :, shown]


slip = KVCache.slips(Buffers)
slip("only_the_newest", "Only the newest positions come back: an append forgets those before it.", advance=False)
slip("newest_left_out", "The position just appended is not among those returned.", after=-1)
slip("oldest_left_out", "The first position is not among those returned.", before=1)
slip("put_in_front", "New positions go in front of the old ones. They belong behind them.", front=True)
slip("exchanged", "Keys and values are exchanged.", exchange=True)
slip("one_buffer_for_both", "Keys and values are written to the same buffer.", alias=True)
slip(
    "room_for_more", "The cache holds more bytes than B · Hkv · S · D numbers for keys and as many for values.", wide=2
)


@KVCache.right
class Grown:
    def __init__(self, batch, heads, length, dim):
        self.kv = torch.zeros(2, batch, heads, 0, dim)

    def append(self, k, v):
        self.kv = torch.cat([self.kv, torch.stack([k, v])], 3)
        return self.kv[0], self.kv[1]


@KVCache.right
class ListOfPositions(torch.nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.kept = {"k": [], "v": []}

    def append(self, k, v):
        for name, new in (("k", k), ("v", v)):
            self.kept[name] += [position.clone() for position in new.unbind(2)]
        return torch.stack(self.kept["k"], 2), torch.stack(self.kept["v"], 2)
