"""MkDocs: the gallery is in the navigation where `make gallery` has built it."""

import pathlib


def on_config(config):
    """Adds the gallery between the theory and the choices."""
    if (pathlib.Path(config["docs_dir"]) / "gallery" / "index.md").is_file():
        config["nav"].insert(3, {"Gallery": "gallery/index.md"})
    return config
