"""Lets headrace and the peer take turns on the same net and batch, and prints the table."""

import argparse
import os
import select
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BLOCKS = 8
WIDTH = 256
LIMIT_SECONDS = 120

# (hidden width, microbatches, rows of a microbatch, steps of a sample)
CASES = [
    (256, 8, 64, 4),
    (256, 32, 8, 3),
    (1024, 8, 64, 2),
    (1024, 32, 8, 2),
    (1024, 32, 16, 2),
]


class Side:
    """A program that answers requests, one line each."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.expect("ready")

    def line(self):
        if not select.select([self.process.stdout], [], [], LIMIT_SECONDS)[0]:
            raise SystemExit(f"{self.process.args[0]}: no answer within {LIMIT_SECONDS} s")
        text = self.process.stdout.readline()
        if not text:
            raise SystemExit(f"{self.process.args[0]} ended with {self.process.wait()}")
        return text.strip()

    def expect(self, text):
        while self.line() != text:
            pass

    def run(self, *request):
        print(*request, file=self.process.stdin, flush=True)
        seconds, loss, norm = map(float, self.line().split())
        return seconds, loss, norm

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()


def spread(values, decimals):
    return (
        f"{statistics.median(values):.{decimals}f} "
        f"({min(values):.{decimals}f} to {max(values):.{decimals}f})"
    )


def agree(ours, theirs, request):
    """The same loss and gradient norm, or the comparison is void."""
    for name, a, b in zip(("loss", "gradient norm"), ours[1:], theirs[1:]):
        if abs(a - b) > 1e-5 * abs(b):
            raise SystemExit(f"{request}: {name} {a} (headrace) and {b} (peer) differ")


def compare(program, hidden, cases, rounds):
    with tempfile.TemporaryDirectory() as folder:
        sizes = (folder + "/net", str(BLOCKS), str(WIDTH), str(hidden))
        ours = Side(program, *sizes)
        theirs = Side(sys.executable, HERE + "/peer.py", *sizes)
        for _, microbatches, rows, steps in cases:
            for schedule in ("1F1B", "GPipe"):
                request = (schedule, microbatches, rows, steps)
                pairs = [(ours.run(*request), theirs.run(*request)) for _ in range(rounds + 1)]
                agree(*pairs[0], request)
                samples = [(a[0] * 1e3, b[0] * 1e3) for a, b in pairs[1:]]
                print(
                    f"| {schedule} | {hidden} | {microbatches} | {rows} "
                    f"| {spread([a for a, _ in samples], 1)} | {spread([b for _, b in samples], 1)} "
                    f"| {spread([b / a for a, b in samples], 2)} |",
                    flush=True,
                )
        ours.close()
        theirs.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="bench_peer_pipelining")
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    print(f"{BLOCKS} blocks {WIDTH} -> hidden -> {WIDTH}, K = 2, {args.rounds} pairs\n")
    print("| schedule | hidden | M | rows | headrace, ms a step | peer, ms a step | peer / headrace |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for hidden in dict.fromkeys(case[0] for case in CASES):
        compare(args.program, hidden, [c for c in CASES if c[0] == hidden], args.rounds)


if __name__ == "__main__":
    main()
