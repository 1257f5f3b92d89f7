"""The shell's front door: `meanfield COMMAND …` finds the command, tyro parses its options, and its module does the work.

A command's module is imported only when it is called, and a command whose module is not installed is not offered.
"""

import argparse
import importlib
import importlib.util
import sys
from collections.abc import Sequence

COMMANDS = {
    "demo": ("meanfield.demo:demo", "run the dynamics experiments and write a page with pictures and measured claims"),
    "flow": ("meanfield.cli_flow:flow", "simulate tokens on the sphere; figures, numbers and a film"),
    "ascend": ("meanfield.cli_ascend:ascend", "maximise the energy under a fixed marginal, with a certificate"),
    "profile": ("meanfield.cli_profile:profile", "influence of every position on the last, from an architecture alone"),
    "measure": ("meanfield.cli_measure:measure", "mixing, attention and influence of a pretrained checkpoint"),
    "sweep": ("meanfield.cli_sweep:sweep", "run a parameter grid from a TOML file; resumes"),
    "view": ("meanfield.cli_view:view", "one interactive page of a run"),
    "experiment list": ("meanfield.cli_experiment:list_experiments", "the experiments and what each shows"),
    "experiment run": ("meanfield.cli_experiment:run", "run one experiment: figures, numbers, claims.json, run.json"),
    "experiment gallery": ("meanfield.cli_experiment:gallery", "run all experiments and build the gallery"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, 1 where a claim fails, 2 for a mistake in the call."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    name = _command(arguments)
    target, _ = COMMANDS[name]
    module, function = target.split(":")
    if not _installed(target):
        return _mistake(f"the command {name!r} is not part of this installation")
    import tyro

    try:
        rest = arguments[len(name.split()) :]
        if "--distributed" in rest:  # before anything asks JAX for a device
            rest = importlib.import_module("meanfield.distributed").enter(rest, name)
        call = getattr(importlib.import_module(module), function)
        return int(tyro.cli(call, args=rest, prog=f"meanfield {name}") or 0)
    except BrokenPipeError:  # the reader of our output has gone, as after `| head`
        sys.stdout = None
        return 1
    except (ValueError, ImportError, OSError, RuntimeError) as error:
        return _mistake(str(error))


def _command(arguments: list[str]) -> str:
    """The longest known command that `arguments` start with; otherwise prints help or the mistake and exits."""
    for length in (2, 1):
        name = " ".join(arguments[:length])
        if name in COMMANDS and len(arguments) >= length:
            return name
    offered = {name: text for name, (target, text) in COMMANDS.items() if _installed(target)}
    group = arguments[0] if arguments and any(name.startswith(f"{arguments[0]} ") for name in offered) else ""
    listed = {name: text for name, text in offered.items() if name.startswith(group)}
    width = max(map(len, listed))
    parser = argparse.ArgumentParser(
        prog="meanfield",
        usage="meanfield COMMAND [options]   (meanfield COMMAND --help for its options)",
        description="Transformers as dynamical systems: token flows on the sphere, certified maximisers, propagation.",
        epilog="commands:\n" + "\n".join(f"  {name:<{width}}  {text}" for name, text in listed.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    wrong = [word for word in arguments[1 if group else 0 :] if word not in ("-h", "--help")]
    if wrong:
        parser.error(f"unknown command {' '.join([group, wrong[0]]).strip()!r}: use one of {', '.join(listed)}")
    parser.print_help()
    raise SystemExit(0)


def _installed(target: str) -> bool:
    return importlib.util.find_spec(target.split(":")[0]) is not None


def _mistake(message: str) -> int:
    sys.stderr.write(f"meanfield: error: {message}\n")
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
