"""A diffrax solver seen through: everything but the step itself is the wrapped solver's."""

import diffrax


class AbstractTransparentSolver(diffrax.AbstractAdaptiveSolver, diffrax.AbstractWrappedSolver):
    """Base of adaptive solvers that change only what a step of `solver` ends on. Subclass with `solver` and `step`."""

    @property
    def term_structure(self):
        """Of the wrapped solver."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self):  # pyright: ignore
        """Of the wrapped solver."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self):
        """Of the wrapped solver."""
        return self.solver.term_compatible_contr_kwargs

    @property
    def scan_kind(self):
        """Of the wrapped solver (diffrax asks Runge–Kutta solvers for it in forward mode)."""
        return getattr(self.solver, "scan_kind", "bounded")

    @property
    def root_finder(self):
        """Of the wrapped solver, where it is implicit."""
        return self.solver.root_finder

    @property
    def root_find_max_steps(self):
        """Of the wrapped solver, where it is implicit."""
        return self.solver.root_find_max_steps

    def order(self, terms):
        """The order of the wrapped solver."""
        return self.solver.order(terms)

    def strong_order(self, terms):
        """The strong order of the wrapped solver."""
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        """The error order of the wrapped solver."""
        return self.solver.error_order(terms)

    def init(self, terms, t0, t1, y0, args):
        """The state of the wrapped solver."""
        return self.solver.init(terms, t0, t1, y0, args)

    def func(self, terms, t0, y0, args):
        """The vector field of the wrapped solver."""
        return self.solver.func(terms, t0, y0, args)
