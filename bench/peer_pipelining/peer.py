"""The peer: torch.distributed.pipelining, two processes over Gloo on the loopback device.

Requests on stdin, one a line: "<schedule> <M> <rows a microbatch> <steps>"; each is answered by
"<seconds a step> <loss> <gradient norm>". Started by compare.py.
"""

import argparse
import math
import os
import sys
import tempfile
import time

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

WORKERS = 2
MOST_ROWS = 4096
SCHEDULES = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}


class Block(torch.nn.Module):
    """x + Linear(GELU(Linear(LayerNorm(x)))), as in bench/blocks.h."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def load(path, blocks, width, hidden):
    """The net and the batch that the other side wrote."""
    values = numpy.fromfile(path, dtype=numpy.float32)
    net = torch.nn.Sequential(*[Block(width, hidden) for _ in range(blocks)])
    at = 0

    def take(shape):
        nonlocal at
        count = math.prod(shape)
        tensor = torch.from_numpy(values[at : at + count].copy()).view(shape)
        at += count
        return tensor

    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(take(parameter.shape))
    x = take((MOST_ROWS, width))
    y = take((MOST_ROWS, width))
    assert at == len(values), f"{path}: {len(values)} floats, {at} expected"
    return net, x, y


class Rank:
    """One process: its half of the net, and a schedule for each request it has seen."""

    def __init__(self, rank, args, store):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=WORKERS)
        net, self.x, self.y = load(args.file, args.blocks, args.width, args.hidden)
        half = args.blocks // WORKERS
        self.rank = rank
        self.module = net[rank * half : (rank + 1) * half]
        self.schedules = {}

    def schedule(self, name, microbatches, rows):
        key = (name, microbatches, rows)
        if key not in self.schedules:
            stage = PipelineStage(self.module, self.rank, WORKERS, torch.device("cpu"))
            self.schedules[key] = SCHEDULES[name](
                stage, microbatches, loss_fn=torch.nn.functional.mse_loss
            )
        return self.schedules[key]

    def step(self, schedule, x, y):
        for parameter in self.module.parameters():
            parameter.grad = None
        if self.rank == 0:
            schedule.step(x)
            return []
        losses = []
        schedule.step(target=y, losses=losses)
        return losses

    def run(self, name, microbatches, rows, steps):
        schedule = self.schedule(name, microbatches, rows)
        x = self.x[: microbatches * rows]
        y = self.y[: microbatches * rows]
        self.step(schedule, x, y)
        dist.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            losses = self.step(schedule, x, y)
        seconds = (time.perf_counter() - start) / steps
        squares = sum(p.grad.double().square().sum().item() for p in self.module.parameters())
        loss = sum(loss.item() for loss in losses) / microbatches
        return seconds, loss, squares


def serve(rank, args, store, pipes):
    worker = Rank(rank, args, store)
    pipe = pipes[rank]
    pipe.send("ready")
    while (request := pipe.recv()) is not None:
        pipe.send(worker.run(*request))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    for name in ("blocks", "width", "hidden"):
        parser.add_argument(name, type=int)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs = zip(*[mp.Pipe() for _ in range(WORKERS)])
        ranks = mp.spawn(
            serve, (args, folder + "/store", theirs), nprocs=WORKERS, join=False, daemon=True
        )
        for pipe in mine:
            pipe.recv()
        print("ready", flush=True)
        for line in sys.stdin:
            name, *numbers = line.split()
            for pipe in mine:
                pipe.send((name, *map(int, numbers)))
            results = [pipe.recv() for pipe in mine]
            seconds = max(result[0] for result in results)
            norm = math.sqrt(sum(result[2] for result in results))
            print(f"{seconds:.9g} {results[-1][1]:.9g} {norm:.9g}", flush=True)
        for pipe in mine:
            pipe.send(None)
        ranks.join()


if __name__ == "__main__":
    main()
