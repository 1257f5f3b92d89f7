"""`meanfield demo`: the collapse of plain attention and what labels do against it, on one page."""

import pathlib
import sys

from . import _report
from .files import write_text

STORY = (
    "collapse",
    "rope",
    "generalised_rope",
    "prefix_gauges",
    "rotate_values",
    "cosine",
    "distance_bias",
    "causal",
    "metastability",
)

INTRODUCTION = """
<p>Tokens x<sub>i</sub> on a sphere follow self-attention through depth (time t). Without labels every run ends in one
point: <em>mode collapse</em>. Labels ξ<sub>i</sub> that never move (positions, prompts) change where tokens end:
on a circle, on a curve, in several clusters, or still in one point. Each section below is one experiment; every claim is
a number measured in this run against a threshold stated beforehand. <a href="#next">How to go on</a> is at the end.</p>
"""
NEXT = """
<h2 id="next">How to go on</h2>
<pre>meanfield experiment list                      # what else there is
meanfield flow --gauge rope --n 128 --film gif # your own run, with a film
meanfield flow --help                          # kernels, masks, labels</pre>
<pre>import jax, meanfield as mf
rho = mf.Marginal.circle(128)                          # labels on a circle
x0 = mf.sphere.sample(jax.random.key(0), (128, 3))     # random tokens on S²
kernel = mf.RoPE(mf.ExpDot(beta=1.0), jax.numpy.ones(1))
traj = mf.flow(mf.USA(kernel), x0, rho, jax.numpy.linspace(0.0, 20.0, 81))
mf.plot.save(mf.plot.tokens(traj, cyclic=True), "tokens.png")</pre>
"""


def demo(out: pathlib.Path = pathlib.Path("runs/demo"), seed: int = 0, smoke: bool = False, jobs: int = 2) -> int:
    """Run every dynamics experiment at full size and write one page; prints the path of index.html.

    Args:
        out: Folder of the page and of every experiment's figures, numbers, claims.json and run.json.
        seed: Seed of every random draw.
        smoke: The smallest sizes (claims need not hold).
        jobs: Experiments that run at the same time, each in its own process.
    """
    names = [f"dynamics_{name}" for name in STORY]
    sys.stdout.write(f"running {len(names)} experiments, about a minute or two on two cores\n")
    sys.stdout.flush()
    results = _report.run_all(names, out, smoke, seed, jobs, quick=True)
    for result in results:
        held = sum(row["holds"] for row in result.claims)
        said = result.error or f"{held} of {len(result.claims)} claims hold, {result.record['wall_seconds']:.1f} s"
        sys.stdout.write(f"{'ok  ' if result.holds else 'FAIL'} {result.name}: {said}\n")
    page = _report.write_html(out / "index.html", "Mode collapse, and labels against it", INTRODUCTION, results, NEXT)
    write_text(out / ".gitignore", "*\n")
    sys.stdout.write(f"{page.resolve()}\n")
    return 0 if smoke or all(result.holds for result in results) else 1
