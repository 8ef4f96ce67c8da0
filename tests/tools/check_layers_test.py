"""Does tools/check_layers catch what it is there to catch? Small made-up trees, one fault each.

Usage: check_layers_test.py PATH_TO_CHECK_LAYERS
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = None

ROOMS = """\
# bottom up
base:
plan: base
comm: base torch
runtime: plan comm torch
train: runtime plan torch
"""

SOUND = {
    "cmake/rooms.txt": ROOMS,
    "headrace/base/error.h": "#pragma once\n#include <string>\n",
    "headrace/plan/cut.h": '#pragma once\n#include "headrace/base/error.h"\n',
    "headrace/comm/group.h": "#pragma once\n#include <ATen/core/Tensor.h>\n",
    "headrace/runtime/pipeline.h": '#pragma once\n#include "headrace/base/error.h"\n',
    "headrace/train/loop.h": "#pragma once\n",
    "headrace/headrace.h": '#pragma once\n#include "headrace/runtime/pipeline.h"\n',
    "app/CMakeLists.txt": "add_executable(headrace main.cpp)\n"
    "add_executable(headrace-torch main_torch.cpp command_train.cpp)\n",
    "app/main.cpp": '#include "headrace/plan/cut.h"\n',
    "app/main_torch.cpp": '#include "headrace/train/loop.h"\n',
    "examples/stock.cpp": '#include "headrace/headrace.h"\n',
    "tests/plan/cut_test.cpp": '#include "headrace/plan/cut.h"\n',
}


def check(changes):
    """(exit code, output) of the checker over the sound tree with `changes` made to it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**SOUND, **changes}.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-B", CHECKER, folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=20,
            check=False,
        )
        return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def assert_fault(self, changes, *expected):
        code, output = check(changes)
        self.assertEqual(code, 1, output)
        self.assertIn("1 faults", output)
        for text in expected:
            self.assertIn(text, output)

    def test_sound_tree_has_no_fault(self):
        code, output = check({})
        self.assertEqual((code, output), (0, "check_layers: 10 files, 0 faults\n"))

    def test_hidden_folders_are_left_out(self):
        self.assertEqual(check({"bench/peer/.venv/include/a.h": "int a();\n"})[0], 0)

    def test_room_that_looks_up_is_named_with_its_line(self):
        self.assert_fault(
            {"headrace/plan/cut.cpp": '\n\n#include "headrace/runtime/pipeline.h"\n'},
            "headrace/plan/cut.cpp:3: room plan may not use runtime",
        )

    def test_room_may_use_what_its_rooms_use_but_not_its_neighbour(self):
        self.assertEqual(check({"headrace/train/a.cpp": '#include "headrace/comm/group.h"\n'})[0], 0)
        self.assert_fault(
            {"headrace/comm/a.cpp": '# include "headrace/plan/cut.h"\n'}, "room comm may not use plan"
        )

    def test_torch_free_room_may_not_see_libtorch(self):
        for header in ("torch/nn/module.h", "ATen/ATen.h", "c10/core/Device.h"):
            self.assert_fault(
                {"headrace/plan/cut.cpp": f"#include <{header}>\n"},
                f"headrace/plan/cut.cpp:1: room plan is free of LibTorch and may not include {header}",
            )

    def test_nobody_includes_the_heavy_headers(self):
        for file in ("headrace/comm/a.cpp", "examples/a.cpp", "tests/train/a_test.cpp"):
            self.assert_fault({file: "#include <torch/torch.h>\n"}, f"{file}:1: torch/torch.h costs")

    def test_header_without_pragma_once(self):
        self.assert_fault({"headrace/base/a.h": "int a();\n"}, "headrace/base/a.h:1:", "#pragma once")

    def test_headers_that_include_each_other(self):
        self.assert_fault(
            {
                "headrace/base/a.h": '#pragma once\n#include "headrace/base/b.h"\n',
                "headrace/base/b.h": '#pragma once\n#include "headrace/base/a.h"\n',
            },
            "headrace/base/a.h -> headrace/base/b.h -> headrace/base/a.h",
        )

    def test_header_that_does_not_exist(self):
        self.assert_fault(
            {"headrace/plan/cut.cpp": '#include "headrace/base/eror.h"\n'}, "eror.h does not exist"
        )

    def test_folder_that_is_no_room(self):
        self.assert_fault({"headrace/misc/a.cpp": "int a;\n"}, "misc is no room")

    def test_torch_free_program_may_not_use_torch_rooms(self):
        self.assert_fault(
            {"app/main.cpp": '#include "headrace/train/loop.h"\n'},
            "app/main.cpp:1: the torch-free program may not use train",
        )

    def test_rooms_may_not_use_the_umbrella_header_or_the_tests(self):
        for header in ("headrace/headrace.h", "tests/plan/cut.h", "app/command.h"):
            self.assert_fault(
                {"headrace/train/a.cpp": f'#include "{header}"\n'}, "which stands above the rooms"
            )

    def test_tests_of_a_room_use_no_more_than_the_room(self):
        self.assert_fault(
            {"tests/plan/a_test.cpp": '#include "headrace/runtime/pipeline.h"\n'},
            "the tests of plan may not use runtime",
        )

    def test_table_that_could_form_a_cycle_is_refused(self):
        code, output = check({"cmake/rooms.txt": "base: plan\nplan: base\n"})
        self.assertEqual(code, 2, output)
        self.assertIn("rooms.txt:1: base uses plan, which is not named above it", output)


if __name__ == "__main__":
    CHECKER = sys.argv.pop(1)
    unittest.main()
