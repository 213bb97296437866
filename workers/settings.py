"""The only reader of the environment in ``workers``."""

import os
from pathlib import Path


def home_dir() -> Path:
    """Return the folder with everything local: models and the embedded servers' data."""
    configured = os.environ.get("PAGEFLEET_HOME")
    if configured:
        return Path(configured).expanduser()
    checkout = Path(__file__).resolve().parents[1]
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".pagefleet"
    return Path.home() / ".local" / "share" / "pagefleet"


def models_dir() -> Path:
    """Return the folder with the model files."""
    configured = os.environ.get("PAGEFLEET_MODELS_DIR")
    return Path(configured).expanduser() if configured else home_dir() / "models"
