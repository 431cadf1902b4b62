"""The measurements of page 01 that it does not print, because writing their functions is an exercise."""

import random

import torch
from torch import nn


def mixture(queries, keys, values, temperature):
    """The outputs (N, Dv) of soft lookup with dot products; a temperature of 0 is the hard lookup."""
    scores = queries @ keys.T  # (N, S)
    if temperature == 0:
        return values[scores.argmax(dim=-1)]
    return (scores / temperature).softmax(dim=-1) @ values


def answer_to_a_nudge(keys, values, temperature, step=1e-6):
    """The share of 1000 random queries whose output moves when their first component grows by a small step."""
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(1000, keys.shape[1], generator=generator, dtype=torch.float64)
    nudge = step * torch.eye(keys.shape[1], dtype=torch.float64)[0]
    before, after = (mixture(q, keys.double(), values.double(), temperature) for q in (queries, queries + nudge))
    return (before != after).any(dim=-1).double().mean().item()


def search(wish, keys, values, temperature, start, steps, rate):
    """Move a query downhill from `start`, to bring its output near `wish`; return the distance before and after.

    The hard lookup has no gradient to follow, and autograd none to offer, so there the query moves by nothing.
    """
    query, distances = start, []
    for _ in range(steps + 1):
        query = query.detach().requires_grad_()
        loss = (mixture(query[None], keys, values, temperature)[0] - wish).square().sum()
        distances.append(loss.detach().sqrt().item())
        if loss.requires_grad:
            (slope,) = torch.autograd.grad(loss, query)
            query = query - rate * slope
    return distances[0], distances[-1]


def jacobian_error(scores):
    """The largest difference between diag(w) − w wᵀ and what autograd finds, over all entries."""
    w = scores.softmax(dim=-1)
    by_hand = torch.diag(w) - torch.outer(w, w)
    return (by_hand - torch.autograd.functional.jacobian(lambda s: s.softmax(dim=-1), scores)).abs().max().item()


def smooth(x_query, x_keys, y_keys, bandwidth):
    """The kernel average at each x_query (N,), and its weights (N, S)."""
    weights = (-((x_query[:, None] - x_keys) ** 2) / (2 * bandwidth**2)).softmax(dim=-1)
    return weights @ y_keys, weights


def backward_through_time(gain, steps, width=64, draws=20):
    """For 1 … steps: the median norm of a random unit gradient after so many steps back through a tanh recurrence.

    The recurrent matrix is `gain` times a rotation, so that a step without the tanh would multiply a norm by `gain`.
    """
    generator = torch.Generator().manual_seed(0)
    norms = []
    for _ in range(draws):
        rotation, _ = torch.linalg.qr(torch.randn(width, width, generator=generator))
        states = [torch.zeros(width, requires_grad=True)]
        for _ in range(steps):
            states.append(torch.tanh(gain * rotation @ states[-1] + 0.2 * torch.randn(width, generator=generator)))
        direction = torch.randn(width, generator=generator)
        gradients = torch.autograd.grad(states[-1], states[:-1], direction / direction.norm())
        norms.append(torch.stack([g.norm() for g in gradients]).flip(0))
    return torch.stack(norms).median(dim=0).values.tolist()


def shares_by_distance(steps, fits_at, width=64):
    """The weights of one random query over `steps` random keys, one of which is made to fit it."""
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(width, generator=generator)
    keys = torch.randn(steps, width, generator=generator)
    keys[fits_at - 1] += 0.6 * query
    return (keys @ query / width**0.5).softmax(dim=-1)


# A grammar of English sentences, and their French. A colour follows its noun in French, a size stays in front,
# and *the* and the adjectives take the noun's gender: to write *la*, a model must look at a noun further on.
NOUNS = {"cat": "chat m", "dog": "chien m", "horse": "cheval m", "boy": "garçon m"}
NOUNS |= {"house": "maison f", "car": "voiture f", "girl": "fille f", "table": "table f"}
SIZES = {"small": ("petit", "petite"), "tall": ("grand", "grande")}
COLOURS = {
    "green": ("vert", "verte"),
    "black": ("noir", "noire"),
    "white": ("blanc", "blanche"),
    "grey": ("gris", "grise"),
}
VERBS = {"sees": "voit", "finds": "trouve", "loves": "aime", "follows": "suit"}


def noun_phrase(noun, size, colour):
    """The English words, the French words, and for each French word the place of the English one it renders."""
    french, gender = NOUNS[noun].split()
    female = gender == "f"
    english = ["the", *([size] if size else []), *([colour] if colour else []), noun]
    words = [("la" if female else "le", 0)]
    if size:
        words.append((SIZES[size][female], 1))
    words.append((french, len(english) - 1))
    if colour:
        words.append((COLOURS[colour][female], len(english) - 2))
    return english, [word for word, _ in words], [place for _, place in words]


def sentence(rng):
    """A random sentence: English words, French words, and their alignment."""

    def phrase():
        return noun_phrase(rng.choice(list(NOUNS)), rng.choice([None, *SIZES]), rng.choice([None, *COLOURS]))

    (en_1, fr_1, at_1), verb, (en_2, fr_2, at_2) = phrase(), rng.choice(list(VERBS)), phrase()
    start = len(en_1) + 1
    places = [*at_1, len(en_1), *(start + place for place in at_2)]
    return [*en_1, verb, *en_2], [*fr_1, VERBS[verb], *fr_2], places


def sentences():
    """How many English sentences the grammar has."""
    return (len(NOUNS) * (len(SIZES) + 1) * (len(COLOURS) + 1)) ** 2 * len(VERBS)


ENGLISH = ["", "the", *NOUNS, *SIZES, *COLOURS, *VERBS]
FRENCH = ["", "le", "la", *(noun.split()[0] for noun in NOUNS.values()), *(w for pair in SIZES.values() for w in pair)]
FRENCH += [*(word for pair in COLOURS.values() for word in pair), *VERBS.values()]


def padded(sentences, vocabulary):
    """The indices of the words, rows filled up with 0: (B, longest)."""
    rows = [torch.tensor([vocabulary.index(word) for word in words]) for words in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


class Translator(nn.Module):
    """An encoder that reads both ways, and a decoder that looks at all of it with additive attention."""

    def __init__(self, width=24):
        super().__init__()
        self.english, self.french = nn.Embedding(len(ENGLISH), width), nn.Embedding(len(FRENCH), width)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.decoder = nn.GRUCell(3 * width, width)
        self.w_q, self.w_k = nn.Linear(width, width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.v = nn.Linear(width, 1, bias=False)
        self.start, self.out = nn.Linear(width, width), nn.Linear(3 * width, len(FRENCH))

    def forward(self, source, target):
        """source (B, S), target (B, N) → the scores of each French word (B, N, words), the weights (B, N, S)."""
        annotations, last = self.encoder(self.english(source))  # (B, S, 2E)
        keys, closed = self.w_k(annotations), source == 0  # (B, S, D), (B, S)
        state = torch.tanh(self.start(last[1]))  # (B, E), from the backward reading, which ends at the first word
        before = self.french(torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1))  # (B, N, E)
        said, weights = [], []
        for i in range(target.shape[1]):
            scores = self.v(torch.tanh(self.w_q(state)[:, None] + keys)).squeeze(-1)  # (B, S)
            weights.append(scores.masked_fill(closed, -torch.inf).softmax(dim=-1))
            context = (weights[-1][..., None] * annotations).sum(dim=1)  # (B, 2E)
            state = self.decoder(torch.cat([before[:, i], context], dim=-1), state)
            said.append(self.out(torch.cat([state, context], dim=-1)))
        return torch.stack(said, dim=1), torch.stack(weights, dim=1)


def train_translator(steps, batch=32, start=0):
    """Train a translator on random sentences; return it and the set of English sentences that it saw.

    start: the seed of its first parameters. The sentences are the same for all.
    """
    torch.manual_seed(start)
    rng, seen = random.Random(0), set()
    model = Translator()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        english, french, _ = zip(*(sentence(rng) for _ in range(batch)), strict=True)
        seen.update(map(" ".join, english))
        target = padded(french, FRENCH)
        said, _ = model(padded(english, ENGLISH), target)
        loss = nn.functional.cross_entropy(said.flatten(0, 1), target.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), seen


@torch.no_grad()
def examine(model, seen, count):
    """On sentences not seen in training, as shares: words right; words other than articles whose largest weight is on
    the word that they render; articles whose largest weight is on *the*; on an adjective between it and the noun whose
    gender they take; and on that noun."""
    rng, fresh = random.Random(1), []
    while len(fresh) < count:
        candidate = sentence(rng)
        if " ".join(candidate[0]) not in seen:
            fresh.append(candidate)
    english, french, _ = zip(*fresh, strict=True)
    target = padded(french, FRENCH)
    said, weights = model(padded(english, ENGLISH), target)
    said, looked = said.argmax(dim=-1), weights.argmax(dim=-1)
    right, aligned, on_the, before_noun, on_noun = [], [], [], [], []
    for b, (source, words, at) in enumerate(fresh):
        for i, word in enumerate(words):
            right.append(FRENCH[said[b, i]] == word)
            if word in ("le", "la"):
                noun = next(j for j in range(at[i], len(source)) if source[j] in NOUNS)
                on_the.append(looked[b, i].item() == at[i])
                before_noun.append(at[i] < looked[b, i].item() < noun)
                on_noun.append(looked[b, i].item() == noun)
            else:
                aligned.append(looked[b, i].item() == at[i])
    return [sum(group) / len(group) for group in (right, aligned, on_the, before_noun, on_noun)]


@torch.no_grad()
def read(model, english, french):
    """The weights for one pair of sentences, given as strings: (N, S)."""
    _, weights = model(padded([english.split()], ENGLISH), padded([french.split()], FRENCH))
    return weights[0]
