"""Runs every benchmark (or those named) and writes its tables as Markdown and CSV."""

import argparse
import importlib
import pathlib
import sys
import time

HELPERS = {"__init__", "__main__", "measure"}


def main() -> int:
    """`python -m benchmarks [name …] [--out benchmarks/results]`."""
    folder = pathlib.Path(__file__).parent
    names = sorted(p.stem for p in folder.glob("*.py") if p.stem not in HELPERS and not p.stem.startswith("_"))
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *names], help="benchmarks to run (default: all)")
    parser.add_argument("--out", type=pathlib.Path, default=folder / "results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or names:
        start = time.perf_counter()
        importlib.import_module(f"benchmarks.{name}").run(arguments.out)
        print(f"{name}: {time.perf_counter() - start:.0f} s, tables in {arguments.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
