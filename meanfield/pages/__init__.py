"""Interactive pages: one self-contained HTML file each, which needs no network and no installation to be read."""

from .profile import view_profile as view_profile
from .runs import read_runs as read_runs
from .view import view as view
