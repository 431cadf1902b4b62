"""python -m autograder: the course's commands."""

import argparse
import os
import signal
import sys

from .errors import BadInput


def main(arguments=None):
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does: workers stopped, files whole
    any_letters(sys.stdout, sys.stderr)
    sys.modules.setdefault("rfc3987_syntax", None)  # jsonschema would take a second to import it, and do without
    if place := os.environ.get("COURSE_DATA"):
        os.environ["COURSE_DATA"] = os.path.abspath(place)
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # as with `| head`: who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as problem:
        print(f"{problem.filename or 'The output'}: {problem.strerror or problem}.", file=sys.stderr)
        return 2
    except BadInput as problem:
        print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; what was finished is kept", file=sys.stderr)
        return 130


def any_letters(*streams):
    """Print what the terminal cannot show as a question mark; names of files may hold anything."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):  # a test's has not
            stream.reconfigure(errors="replace")


def parser():
    top = argparse.ArgumentParser(
        prog="python -m autograder", description="Write notebooks, grade a class, measure the grader."
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, help):
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(run=run)
        return made

    made = command("notebooks", notebooks, "Write nbgrader's sources and the students' notebooks from solutions/.")
    made.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a notebook is out of date or holds a solution"
    )
    made = command("grade", grade, "Grade every submission of an assignment, and show the table.")
    made.add_argument("assignment")
    made.add_argument("--student", help="this student alone")
    made.add_argument("--jobs", type=int, default=1, help="how many submissions to judge at the same time")
    made.add_argument("--unboxed", action="store_true", help="without a sandbox, where this machine has none")
    made = command("grades", grades, "Show the verdict of every submission.")
    made.add_argument("--json", action="store_true")
    made = command("selftest", selftest, "Measure the grader: mistakes rejected and named, right answers accepted.")
    made.add_argument("exercises", nargs="*", metavar="EXERCISE", help='as "ch02/project_qkv"; every one by default')
    made.add_argument("--draws", type=int, default=20)
    made.add_argument("--json", action="store_true")
    command("doctor", doctor, "Say what this machine can do, and what mends each shortfall.")
    command("demo", demo, "Grade the demonstration class through nbgrader and write its feedback.")
    return top


def notebooks(options):
    from .notebooks import main

    return main(options.check)


def grade(options):
    from .gradebook import grade

    return grade(options.assignment, options.student, options.jobs, options.unboxed)


def grades(options):
    from .gradebook import grades

    return grades(options.json)


def selftest(options):
    from .selftest import main

    return main(options.draws, options.json, options.exercises)


def doctor(options):
    from .doctor import main

    return main()


def demo(options):
    from .demo import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
