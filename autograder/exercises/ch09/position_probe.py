"""Where in a long context is a fact found? A probe for any callable that answers; here the judge plants the readers."""

import re

from autograder.exercise import exercise


@exercise("ch09", points={"finds": 2, "misses": 2}, returns="found", see="09-reading-attention#a-position-probe")
def position_probe(answer, fact, question, distractors, positions):
    """For each position p, whether answer(prompt) has the fact's value when its sentence stands behind p distractors.

    fact: (sentence, value), as ("The code of the red door is 4417.", "4417"). The prompt holds the distractors in order
    with the sentence among them, and at last the question, each on a line of its own. Case does not count.
    """
    sentence, value = fact
    found = []
    for p in positions:
        lines = [*distractors[:p], sentence, *distractors[p:], question]
        found.append(value.lower() in answer("\n".join(lines)).lower())
    return found


def reader(sees, says="It is {}."):
    """A reader that answers from the lines for which sees(index, lines) holds; the last line is the question."""

    def answer(prompt):
        *lines, question = filter(None, map(str.strip, prompt.splitlines()))
        seen = [line for i, line in enumerate(lines) if sees(i, lines)]
        found = [
            word
            for line in seen
            for word in line.rstrip(".").split()
            if word.isupper() and "code" in line and "red" in question
        ]
        return says.format(found[0]) if found else "I do not know."

    return answer


READERS = {
    "finds": {
        "reads_everything": reader(lambda i, lines: True),
        "answers_in_small_letters": lambda prompt: reader(lambda i, lines: True)(prompt).lower(),
        "answers_in_whole_sentences": reader(lambda i, lines: True, says="The code of the red door is {}."),
        "reads_no_lines": lambda prompt: (
            " ".join(re.findall("[A-Z]{4,}", prompt)) if prompt.rstrip().endswith("?") else ""
        ),
    },
    "misses": {
        "reads_the_first_three_lines": reader(lambda i, lines: i < 3),
        "reads_the_last_two_lines": reader(lambda i, lines: i >= len(lines) - 2),
        "reads_line_four": reader(lambda i, lines: i == 4),
        "misses_the_middle": reader(lambda i, lines: not len(lines) / 3 < i < 2 * len(lines) / 3),
        "reads_nothing": reader(lambda i, lines: False),
        "wants_eight_lines": reader(lambda i, lines: len(lines) == 8),
        "wants_the_question_last": reader(lambda i, lines: not any(line.endswith("?") for line in lines)),
        "reads_what_is_said_once": reader(lambda i, lines: lines.count(lines[i]) == 1),
        "wants_order": reader(
            lambda i, lines: [x for x in lines if "box" in x] == sorted(x for x in lines if "box" in x)
        ),
    },
}
ASKED = {
    "fact": ("The code of the red door is KESTREL.", "KESTREL"),
    "question": "What is the code of the red door?",
    "distractors": [
        f"There is a {thing} in box {n}."
        for n, thing in enumerate(("bell", "rope", "lamp", "coin", "shoe", "drum", "ring"), 1)
    ],
    "positions": [5, 0, 7, 2, 4],  # in no order: the answers come in the order asked
}
for property, readers in READERS.items():
    for name, answer in readers.items():
        position_probe.plant(property, name, answer=answer, **ASKED)


def probe(
    answer,
    fact,
    question,
    distractors,
    positions,
    *,
    join="\n",
    value=1,
    shift=0,
    order=list,
    lower=True,
    ask="last",
    same=None,
    fill=True,
    after=True,
    twice=False,
):
    """One probe with a knob for each slip."""
    found = []
    for p in order(positions):
        p = same if same is not None else max(0, p + shift)
        lines = [*distractors[:p], *[fact[0]] * (1 + twice), *(distractors[p:] if after else [])] if fill else [fact[0]]
        lines = [question, *lines] if ask == "first" else [*lines, question]
        reply, wanted = answer(join.join(lines)), fact[value]
        found.append(wanted.lower() in reply.lower() if lower else wanted in reply)
    return found


slip = position_probe.slips(probe)
slip(
    "whole_sentence_wanted",
    "Your probe looks for the whole sentence in the reply. “It is KESTREL.” has the value, and is right.",
    value=0,
)
slip("case_counts", "Your probe misses a reply that has the value in small letters.", lower=False)
slip("one_place_for_all", "Your probe puts the fact at the same place for every position.", same=0)
slip("one_too_far", "Your probe puts the fact behind one distractor too many.", shift=1)
slip("one_too_near", "Your probe puts the fact behind one distractor too few.", shift=-1)
slip(
    "sorted_positions",
    "Your probe's results come in the order of the sorted positions. They come in the order asked.",
    order=sorted,
)
slip("question_first", "Your probe asks before the context. The question comes last.", ask="first")
slip("no_distractors", "Your probe leaves the distractors out.", fill=False)
slip("nothing_behind", "Your probe leaves out the distractors behind the fact.", after=False)
slip("said_twice", "Your probe puts the fact in twice.", twice=True)
slip("no_separator", "Your probe joins the parts with nothing between them. Each stands on a line of its own.", join="")


@position_probe.mistake
def put_into_the_callers_list(answer, fact, question, distractors, positions):
    """Your probe leaves each fact in the list of distractors, so that later prompts hold it several times."""
    context, found = list(distractors), []
    for p in positions:
        context.insert(p, fact[0])
        found.append(fact[1].lower() in answer("\n".join([*context, question])).lower())
    return found


@position_probe.mistake
def always_found(answer, fact, question, distractors, positions):
    """Your probe reports the fact found at every position, whatever the reply is."""
    return [True for _ in positions]


@position_probe.right
def by_insertion(answer, fact, question, distractors, positions):
    results = []
    for p in positions:
        context = list(distractors)
        context.insert(p, fact[0])
        results.append(answer("\n".join(context) + f"\n{question}").casefold().find(fact[1].casefold()) >= 0)
    return tuple(results)


@position_probe.right
def as_numbers(answer, fact, question, distractors, positions):
    return [int(hit) for hit in probe(answer, fact, question, distractors, positions)]
