"""How long a check takes: python benchmarks/checks.py

Milliseconds in a fresh process, the median of three: importing the judge after torch; the first check of a right
answer (inputs are drawn, the reference is run); the same again; the first of a mistake; of an unforeseen wrong answer.
"""

import json
import statistics
import subprocess
import sys

CODE = """
import json, sys, time, torch
began = time.perf_counter()
import autograder
from autograder.exercises import get
exercise = get(sys.argv[1])
spent = {"import": time.perf_counter() - began}
right, wrong = exercise.right[0].answer, exercise.mistakes[0].answer
unlisted = lambda *args: [0.9 * x if torch.is_tensor(x) else x for x in autograder.observe.listed(right(*args))]
for name, answer in (("right", right), ("again", right), ("mistake", wrong), ("unlisted", unlisted)):
    began = time.perf_counter()
    autograder.judge(exercise.name, answer)
    spent[name] = time.perf_counter() - began
print(json.dumps(spent))
"""
COLUMNS = ("import", "right", "again", "mistake", "unlisted")


def measure(name, runs=3):
    command = [sys.executable, "-c", CODE, name]
    spent = [json.loads(subprocess.check_output(command, text=True)) for _ in range(runs)]
    return {column: 1e3 * statistics.median(run[column] for run in spent) for column in COLUMNS}


def main():
    from autograder import exercises

    print("exercise".ljust(36) + "".join(column.rjust(10) for column in COLUMNS) + "   (ms)")
    for exercise in exercises():
        row = measure(exercise.name)
        print(exercise.name.ljust(36) + "".join(f"{row[column]:10.0f}" for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
