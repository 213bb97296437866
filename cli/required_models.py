"""Looking for the models before a stack starts: without them workers wait, and documents too."""

from cli.errors import CommandError


def require_models() -> None:
    """Return when the models that the settings name are there, each file the pinned one.

    Raises:
        CommandError: one is missing or wrong, or the settings are.
    """
    from cli.settings import load_settings
    from workers.ocr.errors import ModelFileError
    from workers.ocr.profiles import open_profile
    from workers.settings import OcrSettings

    settings = load_settings(OcrSettings)
    try:
        open_profile(settings.profile, settings.models_dir)
    except ModelFileError as error:
        raise CommandError(str(error), "`pagefleet doctor` looks for the cause.") from error
